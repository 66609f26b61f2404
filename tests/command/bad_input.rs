//! A mistake gets one clear line that says what was given and what would work, exit code 2, and
//! nothing on the disk changes.

use crate::{TINY, contents, exmy, succeed, text_file};
use std::fs;
use std::path::Path;

/// Runs in `folder`, expects exit code 2 and each of `parts` in the message, and that no file
/// appeared, vanished or changed.
fn refused(folder: &Path, arguments: &[&str], parts: &[&str]) {
    let before = contents(folder);
    let output = exmy(arguments).current_dir(folder).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    for part in parts {
        assert!(message.contains(part), "{arguments:?}: no {part:?} in\n{message}");
    }
    assert!(!message.contains("panicked"), "{message}");
    assert!(contents(folder) == before, "{arguments:?} changed the folder");
}

#[test]
fn mistakes_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    text_file(root);
    fs::write(root.join("empty.txt"), "").unwrap();
    fs::write(root.join("short.txt"), "too short").unwrap();
    fs::write(root.join("odd.bin"), [1, 2, 3]).unwrap();
    fs::write(root.join("wrong.toml"), "[train]\nstep = 3\n").unwrap();
    fs::write(root.join("broken.toml"), "[train\n").unwrap();
    fs::create_dir(root.join("nothing")).unwrap();
    let cases: &[(&[&str], &[&str])] = &[
        (&["--data", "absent.txt"], &["absent.txt", "--data takes"]),
        (&["--data", "empty.txt"], &["empty.txt", "empty"]),
        (&["--data", "nothing"], &["nothing"]),
        (&["--data", "short.txt"], &["short.txt", "64"]),
        (&["--data", "odd.bin"], &["odd.bin"]),
        (&["--data", "text.txt", "--set", "model.context=2000"], &["2000"]),
        (&["--recipe", "mxpf8-e4m3"], &["mxpf8-e4m3", "did you mean mxfp8-e4m3"]),
        (&["--recipe", "f32,,bf16"], &["no recipe \"\""]),
        (&["--recipe", "bf16,bf16"], &["two runs", "bf16-s1"]),
        (&["--preset", "nanno"], &["nanno", "did you mean nano?"]),
        (&["--set", "train.stps=3"], &["train.stps", "did you mean train.steps?"]),
        (&["--set", "train.steps=many"], &["train.steps", "many"]),
        (&["--set", "train.steps"], &["key=value"]),
        (&["--set", "train.beta1=1.5"], &["train.beta1 = 1.5", "below 1"]),
        (&["--set", "model.heads=5"], &["heads"]),
        (&["--set", "train.schedule=cosinus"], &["cosinus", "cosine"]),
        (&["--steps", "0"], &["train.steps = 0"]),
        (&["--steps", "-1"], &["-1"]),
        (&["--lr", "nan"], &["train.lr"]),
        (&["--seed", "99999999999999999999"], &["99999999999999999999"]),
        (&["--threads", "0"], &["--threads"]),
        (&["--config", "absent.toml"], &["absent.toml"]),
        (&["--config", "wrong.toml"], &["wrong.toml", "train.step", "did you mean train.steps?"]),
        (&["--config", "broken.toml"], &["broken.toml"]),
        (&["--resume", "absent"], &["absent"]),
        (&["--resume", "nothing"], &["no run in nothing"]),
        (&["--resume", "nothing", "--steps", "3"], &["--resume", "--steps"]),
        (&["--recipi", "f32"], &["--recipi", "--recipe"]),
    ];
    for (arguments, parts) in cases {
        let mut whole = vec!["train"];
        whole.extend(*arguments);
        refused(root, &whole, parts);
    }
    refused(root, &["sample", "nothing"], &["nothing"]);
    refused(root, &["sample", "text.txt"], &["text.txt"]);
    refused(root, &["trian"], &["trian", "train"]);
}

#[test]
fn a_folder_that_holds_a_run_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let data = text_file(root);
    let mut command = exmy(&["train", "--data", &data, "--recipe", "f32", "--out", "out"]);
    succeed(command.args(TINY).args(["--set", "train.steps=3"]).current_dir(root));
    let again = ["train", "--data", "text.txt", "--recipe", "bf16", "--out", "out"];
    refused(root, &again, &["out already holds a run", "--resume out"]);
    let other = ["train", "--data", "text.txt", "--recipe", "bf16", "--out", "out/f32-s5"];
    refused(root, &other, &["already holds a run"]);
    refused(root, &["train", "--out", "text.txt"], &["text.txt"]);
}

#[test]
fn changed_data_and_damaged_checkpoints_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let data = text_file(root);
    let mut command = exmy(&["train", "--data", &data, "--recipe", "f32", "--out", "out"]);
    succeed(command.args(TINY).args(["--set", "train.steps=3"]).current_dir(root));
    let run = root.join("out/f32-s5");
    fs::remove_file(run.join("summary.json")).unwrap();
    let checkpoint = run.join("checkpoints/step-00000003.safetensors");
    let whole = fs::read(&checkpoint).unwrap();
    fs::write(&checkpoint, &whole[..whole.len() / 2]).unwrap();
    refused(root, &["train", "--resume", "out"], &["step-00000003", "not a whole safetensors"]);
    fs::write(&checkpoint, &whole).unwrap();
    fs::write(&data, "another text, ".repeat(400)).unwrap();
    refused(root, &["train", "--resume", "out"], &["not those the run began with"]);
}

/// Linux file names are bytes; records are text.
#[test]
#[cfg(target_os = "linux")]
fn a_path_that_is_not_utf8_is_named() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join(OsStr::from_bytes(b"te\xFFxt.txt"));
    fs::write(&data, "a text, ".repeat(400)).unwrap();
    for option in ["--data", "--out"] {
        let output = exmy(&["train", option]).arg(&data).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("not UTF-8"), "{message}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
