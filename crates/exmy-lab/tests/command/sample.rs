//! `exmy sample`: the same seed continues a prompt in the same way.

use crate::{TINY, exmy, succeed, text_file};

#[test]
fn a_model_continues_its_prompt_reproducibly() {
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let mut command = exmy(&["train", "--data", &data, "--recipe", "mxfp8-e4m3", "--out", "out"]);
    succeed(command.args(TINY).current_dir(folder.path()));
    let sample = |folder_name: &str, seed: &str| {
        let mut command = exmy(&["sample", folder_name, "--prompt", "w1 w4 ", "--tokens", "40"]);
        command.args(["--seed", seed]).current_dir(folder.path());
        succeed(&mut command).stdout
    };
    let text = sample("out", "1");
    assert!(text.starts_with(b"w1 w4 "));
    assert_eq!(text.len(), 6 + 40 + 1);
    assert_eq!(text, sample("out/mxfp8-e4m3-s5", "1"));
    assert_ne!(text, sample("out", "2"));
}
