//! Runs that several devices or processes train together: the files of one, and the end of all where one
//! ends.

use crate::exmy;
#[cfg(target_os = "linux")]
use crate::kill::send;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A port of this machine that is free.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Lets a process be a rank of so many.
fn seated(command: &mut Command, (rank, size): (usize, usize), port: u16) -> &mut Command {
    command.env("RANK", rank.to_string()).env("WORLD_SIZE", size.to_string());
    command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", port.to_string())
}

/// Ranks that train one run, as long as it takes.
fn party(out: &Path, size: usize, settings: &[&str]) -> Vec<Child> {
    let port = port();
    let start = |rank: usize| {
        let mut command = exmy(&["train", "--quiet", "--ranks", "--preset", "gpt-nano"]);
        command.args(["--recipe", "f32", "--steps", "1e6", "--out", out.to_str().unwrap()]);
        for setting in ["record.eval_windows=1", "record.eval_every=0", "record.checkpoint_every=2"]
            .iter()
            .chain(settings)
        {
            command.args(["--set", setting]);
        }
        seated(&mut command, (rank, size), port).stderr(Stdio::piped()).spawn().unwrap()
    };
    (0..size).map(start).collect()
}

/// The exit code and what was said; who does not end is killed.
fn end(mut child: Child) -> (ExitStatus, String) {
    let until = Instant::now() + Duration::from_secs(100);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
        }
        sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    (output.status, String::from_utf8(output.stderr).unwrap())
}

/// Waits until the run has a checkpoint.
fn until_checkpoint(out: &Path) {
    let until = Instant::now() + Duration::from_secs(100);
    let has_checkpoint = || {
        let runs = fs::read_dir(out).into_iter().flatten().flatten();
        let mut steps = runs.filter_map(|run| fs::read_dir(run.path().join("checkpoints")).ok());
        steps.any(|mut steps| steps.next().is_some())
    };
    while !has_checkpoint() {
        assert!(Instant::now() < until, "no checkpoint");
        sleep(Duration::from_millis(20));
    }
}

/// Two devices of one process and two processes write what one does, and say what trained; what cannot be
/// divided is refused.
#[test]
fn several_devices_train_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let train = |name: &str, more: &[&str]| {
        let mut command = exmy(&["train", "--quiet", "--out", &out(name)]);
        command.args(["--preset", "gpt-nano", "--recipe", "mxfp4@sr8", "--steps", "3"]);
        for setting in ["train.batch=6", "train.accumulate=3", "record.eval_windows=1"] {
            command.args(["--set", setting]);
        }
        command.args(more);
        command
    };
    let refused = |mut command: Command, words: &str| {
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && text.contains(words), "{text}");
    };
    refused(train("four", &["--device", "cpu,cpu,cpu,cpu"]), "--set train.accumulate=6");
    refused(
        train("mixed", &["--device", "cpu,cuda"]),
        "one run is trained on GPUs or on the processor",
    );
    refused(train("twice", &["--device", "cuda:1,cuda:1"]), "cuda:1 is there twice");
    let mut alone = train("alone", &["--ranks"]);
    alone.env_remove("RANK").env_remove("WORLD_SIZE").env_remove("SLURM_PROCID");
    refused(alone, "SLURM_PROCID is not in the environment");
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing is made");

    assert!(train("one", &[]).status().unwrap().success());
    assert!(train("two", &["--device", "cpu,cpu"]).status().unwrap().success());
    // Of one process that counts itself there is nobody to be found.
    let mut only = train("only", &["--ranks"]);
    only.env("RANK", "0")
        .env("WORLD_SIZE", "1")
        .env_remove("MASTER_ADDR")
        .env_remove("MASTER_PORT");
    assert!(only.status().unwrap().success());
    let port = port();
    let rank = |rank: usize| {
        let mut command = train("ranks", &["--ranks"]);
        seated(&mut command, (rank, 2), port).stdout(Stdio::null()).spawn().unwrap()
    };
    let both = [rank(1), rank(0)].map(|mut process| process.wait().unwrap());
    assert!(both.iter().all(std::process::ExitStatus::success), "{both:?}");
    let file = |name: &str, file: &str| {
        let mut run = std::fs::read_dir(out(name)).unwrap().map(|entry| entry.unwrap().path());
        std::fs::read(run.find(|path| path.is_dir()).unwrap().join(file)).unwrap()
    };
    for name in ["only", "two", "ranks"] {
        for path in ["config.toml", "metrics.jsonl", "model.safetensors", "summary.json"] {
            assert!(file(name, path) == file("one", path), "{name}: {path}");
        }
        let timing = String::from_utf8(file(name, "timing.jsonl")).unwrap();
        let says = timing.contains("\"device\":\"cpu, rank 0 of 2\"");
        assert_eq!(says, name != "only", "{timing}");
    }
}

/// A rank that is killed ends all. All say which, and that the checkpoint stands: those beside it, too, which
/// see it go before rank 0 does.
#[test]
fn a_rank_that_dies_ends_all() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let mut ranks = party(&out, 4, &["train.batch=4", "train.accumulate=4"]);
    until_checkpoint(&out);
    ranks[2].kill().unwrap();
    let ends: Vec<_> = ranks.into_iter().map(end).collect();
    for (rank, (status, text)) in ends.iter().enumerate().filter(|(rank, _)| *rank != 2) {
        assert_eq!(status.code(), Some(2), "rank {rank}: {text}");
        assert!(text.contains("rank 2 has ended") && text.contains("--resume goes on"), "{text}");
        assert_eq!(text.matches("has ended").count(), 1, "{text}");
        assert_eq!(text.contains("rank 0: "), rank > 0, "{text}");
    }
}

/// What rank 0 refuses ends all, and all say why.
#[test]
fn all_end_as_rank_0_does() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    for (rank, child) in
        party(&out, 3, &["train.batch=4", "train.accumulate=2"]).into_iter().enumerate()
    {
        let (status, text) = end(child);
        assert_eq!(status.code(), Some(2), "{text}");
        assert!(text.contains("2 parts, and there are 3 devices"), "{text}");
        assert_eq!(text.contains("rank 0: "), rank > 0, "{text}");
    }
    assert!(!out.exists());
}

/// A rank that is asked to end, and no other one, lets all stop with a checkpoint of the last step.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_to_any_rank_stops_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let settings = ["train.batch=3", "train.accumulate=3", "record.checkpoint_every=100000"];
    let ranks = party(&out, 3, &[&settings[..], &["record.checkpoint_at=[1]"]].concat());
    until_checkpoint(&out);
    send(&ranks[1], "-TERM");
    for (rank, child) in ranks.into_iter().enumerate() {
        let (status, text) = end(child);
        assert_eq!(status.code(), Some(143), "rank {rank}: {text}");
        assert_eq!(text.contains("another rank was asked to end"), rank == 0, "{text}");
    }
    let run = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
    let run = run.into_iter().find(|path| path.join("checkpoints").is_dir()).unwrap();
    let lines = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let last = lines.lines().last().unwrap();
    let steps = fs::read_dir(run.join("checkpoints")).unwrap();
    let mut steps: Vec<_> =
        steps.map(|step| step.unwrap().file_name().into_string().unwrap()).collect();
    steps.sort();
    let step: u64 = steps.last().unwrap()["step-".len()..][..8].parse().unwrap();
    assert!(step > 1 && last.contains(&format!("\"step\":{step},")), "{last} {steps:?}");
}

/// Who waits for the others ends when it is asked to.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_the_wait_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    for rank in [0, 1] {
        let mut command = crate::heeding_signals(&["train", "--quiet", "--ranks"]);
        command.args(["--out", out.to_str().unwrap()]).stderr(Stdio::piped());
        let mut child = seated(&mut command, (rank, 3), port()).spawn().unwrap();
        // Into its wait.
        sleep(Duration::from_millis(500));
        assert_eq!(child.try_wait().unwrap(), None);
        send(&child, "-TERM");
        let (status, text) = end(child);
        assert_eq!(status.code(), Some(143), "rank {rank}: {text}");
    }
}
