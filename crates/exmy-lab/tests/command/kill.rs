//! A run that is killed leaves a folder from which `--resume` reaches the bits of an uninterrupted
//! run: at any moment, also inside the writing of a checkpoint, also several times.

use crate::{TINY, assert_same, exmy, heeding_signals, run_of, succeed, text_file};
use exmy::random::{Philox, Stream};
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn arguments<'a>(data: &'a str, out: &'a str) -> Vec<&'a str> {
    let mut arguments = vec!["train", "--data", data, "--recipe", "mxfp4@sr8,bf16", "--out", out];
    arguments.extend(TINY);
    // A checkpoint after every step: much of the time goes into writing them.
    arguments.extend(["--set", "record.checkpoint_every=1", "--threads", "1", "--quiet"]);
    arguments.extend(["--set", "train.steps=20"]);
    arguments
}

/// Starts the program, kills it after `after` (if it still runs) and says whether it was killed.
pub(crate) fn kill_after(arguments: &[&str], after: Duration) -> bool {
    let mut child = exmy(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    sleep(after);
    // SIGKILL on Unix: the program cannot notice.
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

/// Checkpoints that were being written when the program was killed.
fn partial_checkpoints(out: &Path) -> usize {
    let runs = fs::read_dir(out).into_iter().flatten().flatten();
    let checkpoints = runs.flat_map(|run| fs::read_dir(run.path().join("checkpoints")));
    let names = checkpoints.flatten().flatten().map(|entry| entry.file_name());
    names.filter(|name| name.to_string_lossy().starts_with(".partial-")).count()
}

#[test]
fn a_folder_with_configurations_alone_begins_at_step_0() {
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let expected = folder.path().join("expected");
    succeed(&mut exmy(&arguments(&data, expected.to_str().unwrap())));
    let bare = folder.path().join("bare");
    let names = ["mxfp4@sr8-s5", "bf16-s5"];
    let names = names.map(|name| run_of(&expected, name).file_name().unwrap().to_owned());
    for run in &names {
        fs::create_dir_all(bare.join(run)).unwrap();
        let config = expected.join(run).join("config.toml");
        fs::copy(config, bare.join(run).join("config.toml")).unwrap();
    }
    // Without the list of runs, each run folder can still be resumed by its own name.
    for run in &names {
        succeed(exmy(&["train", "--quiet", "--resume"]).arg(bare.join(run)));
        for file in ["metrics.jsonl", "model.safetensors", "summary.json"] {
            let read = |root: &Path| fs::read(root.join(run).join(file)).unwrap();
            assert!(read(&expected) == read(&bare), "{run:?}/{file}");
        }
    }
}

#[test]
fn torn_metrics_are_cut_back_to_the_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let expected = folder.path().join("expected");
    succeed(&mut exmy(&arguments(&data, expected.to_str().unwrap())));
    let torn = folder.path().join("torn");
    succeed(&mut exmy(&arguments(&data, torn.to_str().unwrap())));
    let run = run_of(&torn, "bf16-s5");
    fs::remove_file(run.join("summary.json")).unwrap();
    fs::remove_file(run.join("model.safetensors")).unwrap();
    fs::remove_file(run.join("checkpoints/step-00000020.safetensors")).unwrap();
    let metrics = fs::read(run.join("metrics.jsonl")).unwrap();
    fs::write(run.join("metrics.jsonl"), &metrics[..metrics.len() - 20]).unwrap();
    succeed(exmy(&["train", "--quiet", "--resume"]).arg(&torn));
    // One checkpoint older than usual is gone for good; all else is as it was.
    let read = |root: &Path, file: &str| fs::read(run_of(root, "bf16-s5").join(file)).unwrap();
    for file in ["metrics.jsonl", "model.safetensors", "summary.json"] {
        assert!(read(&expected, file) == read(&torn, file), "{file}");
    }
}

/// Sends a signal by its name.
#[cfg(unix)]
pub(crate) fn send(child: &Child, signal: &str) {
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
}

/// Ctrl-C and SIGTERM end cleanly with a checkpoint of its own, which the finished run no longer has.
#[test]
#[cfg(unix)]
fn interrupted_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let (expected, out) = (folder.path().join("expected"), folder.path().join("out"));
    let arguments = |out: &Path| {
        let mut command = heeding_signals(&["train", "--data", &data, "--recipe", "mxfp4@sr8,f32"]);
        command.args(TINY).args([
            "--set",
            "train.steps=600",
            "--set",
            "record.checkpoint_every=300",
        ]);
        command.args(["--set", "record.eval_every=0", "--threads", "1", "--out"]).arg(out);
        command
    };
    succeed(&mut arguments(&expected));
    let metrics = || run_of(&out, "mxfp4@sr8-s5").join("metrics.jsonl");
    let length = || fs::metadata(metrics()).map_or(0, |file| file.len());
    let mut command = arguments(&out);
    // Shells report 128 and the signal's number.
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let before = length();
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        while length() <= before {
            sleep(Duration::from_millis(1));
        }
        send(&child, signal);
        assert_eq!(child.wait().unwrap().code(), Some(code));
        command = heeding_signals(&["train", "--quiet", "--threads", "1", "--resume"]);
        command.arg(&out);
    }
    let checkpoints =
        fs::read_dir(run_of(&out, "mxfp4@sr8-s5").join("checkpoints")).unwrap().count();
    assert!(checkpoints > 0);
    succeed(exmy(&["train", "--quiet", "--resume"]).arg(&out));
    assert_same(&expected, &out, "interrupted");
}

mod long {
    use super::*;

    #[test]
    #[ignore = "long: .ci/run runs it"]
    fn killed_at_twenty_random_times_and_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let data = text_file(folder.path());
        let expected = folder.path().join("expected");
        let begun = Instant::now();
        succeed(&mut exmy(&arguments(&data, expected.to_str().unwrap())));
        let whole = begun.elapsed();
        let random = Philox::new(1, Stream::new("kill times"));
        let (mut kills, mut inside_a_write, mut attempt) = (0, 0, 0);
        // Twenty kills, of which at least one hit a checkpoint while it was being written.
        while kills < 20 || inside_a_write == 0 {
            assert!(attempt < 200, "{kills} kills, {inside_a_write} of them inside a write");
            attempt += 1;
            let out = folder.path().join(format!("run{attempt}"));
            let name = out.to_str().unwrap();
            let after = whole.mul_f64(random.uniform(2 * attempt));
            if !kill_after(&arguments(&data, name), after) {
                continue;
            }
            if !out.exists() {
                // Killed before it began: there is nothing to resume and nothing is lost.
                continue;
            }
            kills += 1;
            inside_a_write += usize::from(partial_checkpoints(&out) > 0);
            if attempt % 3 == 0 {
                // Killed once more while it goes on.
                let after = whole.mul_f64(random.uniform(2 * attempt + 1));
                kill_after(&["train", "--resume", name, "--quiet", "--threads", "2"], after);
            }
            succeed(&mut exmy(&["train", "--resume", name, "--quiet"]));
            assert_same(&expected, &out, &format!("killed after {after:?}"));
            fs::remove_dir_all(&out).unwrap();
        }
    }
}
