//! `exmy watch` on a terminal, which is as it was afterwards.

use crate::{TINY, exmy, printed, run_of, skipped, succeed, text_file};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Kills what it has begun, however the test ends.
struct Begun(Child);

impl Drop for Begun {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A run that goes on until the result is dropped, below `runs`.
fn training(root: &Path, settings: &[&str]) -> Begun {
    let data = text_file(root);
    let train = ["train", "--data", &data, "--recipe", "f32,mxfp4", "--quiet", "--out", "runs"];
    let more = ["--set", "train.steps=1000000", "--threads", "1"];
    let mut command = exmy(&train);
    command.args(settings.iter().flat_map(|setting| ["--set", setting]));
    let child = command.args(TINY).args(more).current_dir(root).stderr(Stdio::null()).spawn();
    let child = Begun(child.unwrap());
    // Lines are gathered before they are written.
    let has_lines = || {
        let file = run_of(&root.join("runs"), "f32-s5").join("metrics.jsonl");
        fs::metadata(file).is_ok_and(|file| file.len() > 0)
    };
    let begun = Instant::now();
    while !has_lines() {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is trained");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

/// What a terminal of so many columns shows of a shell's script, which is fed some keys after a while.
fn on_terminal(root: &Path, columns: u32, script: &str, keys: &str) -> Option<String> {
    let script =
        format!("stty rows 24 cols {columns}; stty -g > before; {script}; stty -g > after");
    let mut command = Command::new("script");
    command.args(["-qec", &script, "/dev/null"]).current_dir(root).env("TERM", "xterm");
    command.env_remove("NO_COLOR").stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        skipped("script of util-linux");
        return None;
    };
    std::thread::sleep(Duration::from_millis(1500));
    // It may have ended by itself.
    let mut input = child.stdin.take().unwrap();
    let _ = input.write_all(keys.as_bytes());
    let output = child.wait_with_output().unwrap();
    drop(input);
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    assert_eq!(read("before"), read("after"), "the terminal is not as it was: {script}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
#[cfg(target_os = "linux")]
fn q_ends_and_the_terminal_is_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let child = training(root, &[]);
    let program = env!("CARGO_BIN_EXE_exmy");
    let watch = format!("{program} watch runs --every 1");
    let Some(seen) = on_terminal(root, 120, &format!("{watch}; echo code $?"), "xq") else {
        return;
    };
    assert!(seen.contains("code 0") && seen.contains("q: quit"), "{seen:?}");
    assert!(seen.contains("\u{1b}[36mat work\u{1b}[0m") && seen.contains("waiting"), "{seen:?}");
    assert!(seen.contains(" left of all"), "{seen:?}");
    assert!(!seen.contains("xq"), "keys are shown: {seen:?}");
    // Signals end it within a second, and keys of signals keep their meaning.
    let end = format!("{watch} & sleep 0.7; kill -TERM $!; wait $!; echo code $?");
    assert!(on_terminal(root, 80, &end, "").unwrap().contains("code 143"));
    let begun = Instant::now();
    let seen =
        on_terminal(root, 40, &format!("trap : INT; {watch}; echo code $?"), "\u{3}").unwrap();
    assert!(seen.contains("code 130"), "{seen:?}");
    assert!(begun.elapsed() < Duration::from_secs(3));
    // Into a pipe there is one look, without a colour.
    let seen = printed(root, "watch", &["runs"]);
    assert!(!seen.contains('\u{1b}') && !seen.contains("curve"), "{seen}");
    drop(child);
}

/// A run at work is whole at every look, however soon a checkpoint replaces the one before: its records go on
/// behind what the checkpoint says of them.
#[test]
fn a_run_at_work_is_not_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let settings = [
        "record.checkpoint_every=1",
        "record.keep=1",
        "record.probes=[\"norms\"]",
        "record.probe_every=1",
    ];
    let child = training(root, &settings);
    for command in ["watch runs --once", "ls runs", "report runs", "plot runs"].repeat(10) {
        let words: Vec<&str> = command.split(' ').collect();
        printed(root, words[0], &words[1..]);
    }
    drop(child);
}

/// Progress says which run of how many it is, and what it multiplies in where its name does not.
#[test]
fn progress_names_recipe_and_seed() {
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let train = ["train", "--data", &data, "--recipe", "f32,nv-nvfp4", "--out", "runs"];
    let more = ["--set", "train.steps=8", "--seeds", "2"];
    let output = succeed(exmy(&train).args(TINY).args(more).current_dir(folder.path()));
    let said = String::from_utf8(output.stderr).unwrap();
    for name in ["1/4 f32, seed 5", "2/4 f32, seed 6", "4/4 nv-nvfp4, seed 6"] {
        assert!(said.contains(&format!("\n{name}: 8 steps in ")), "{said}");
    }
    let shares: Vec<&str> = said.lines().filter(|line| line.contains("multiply in")).collect();
    assert!(shares.len() == 1 && shares[0].starts_with("3/4 nv-nvfp4: "), "{said}");
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(!table.contains("f32 100.0 %") && table.contains("  nv-nvfp4: "), "{table}");
}

#[test]
fn gaps_are_to_the_first_recipe() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let data = text_file(root);
    let train = ["train", "--data", &data, "--recipe", "f32,mxfp4", "--quiet", "--out", "runs"];
    succeed(exmy(&train).args(TINY).args(["--set", "train.steps=8"]).current_dir(root));
    let compared = printed(root, "compare", &["runs", "--json"]);
    let compared: serde_json::Value = serde_json::from_str(&compared).unwrap();
    let gap = format!("{:+.2} %", compared["runs"][1]["gap_percent"].as_f64().unwrap());
    let seen = printed(root, "watch", &["runs"]);
    let line = |name: &str| seen.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("mxfp4").contains(&gap) && !line("f32").contains('%'), "{seen}");
}
