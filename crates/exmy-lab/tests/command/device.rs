//! `--device` and `exmy device` where the driver sees no GPU: one line that says so, and nothing made.

use crate::{exmy, printed};

/// The program on a machine whose GPUs, if it has some, are hidden.
fn without_gpu(arguments: &[&str]) -> std::process::Output {
    exmy(arguments).env("CUDA_VISIBLE_DEVICES", "-1").output().unwrap()
}

#[test]
fn a_missing_gpu_is_one_line_and_makes_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    for device in ["cuda", "cuda:7"] {
        let output = without_gpu(&["train", "--device", device, "--out", out]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("GPU") && text.contains("--device cpu"), "{text}");
        assert!(text.lines().count() == 2, "{text}");
    }
    assert!(!folder.path().join("out").exists());
    for arguments in [["train", "--device", "gpu"], ["device", "--device", "cuda"]] {
        let output = without_gpu(&arguments);
        assert_eq!(output.status.code(), Some(2));
    }
    for device in ["gpu", "cuda:", "cuda:+1", "cuda:1 "] {
        let output = without_gpu(&["train", "--device", device]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("cpu, cuda, cuda:1"), "{text}");
    }
    let out = folder.path().join("study");
    let output = without_gpu(&[
        "study",
        "bit-reduction",
        "--figure",
        "BR-11",
        "--scale",
        "smoke",
        "--device",
        "cuda",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!out.exists(), "no folder of a report that cannot be");
}

/// `auto` says why it is the processor, and trains there; `--quiet` says nothing.
#[test]
fn auto_says_why_it_is_the_processor() {
    let folder = tempfile::tempdir().unwrap();
    for (quiet, lines) in [(None, 1), (Some("--quiet"), 0)] {
        let out = folder.path().join(lines.to_string());
        let mut arguments = vec!["train", "--device", "auto", "--steps", "1", "--recipe", "f32"];
        arguments.extend(["--set", "record.eval_windows=1", "--out", out.to_str().unwrap()]);
        arguments.extend(quiet);
        let output = without_gpu(&arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{text}");
        let said = text.lines().filter(|line| line.contains("--device auto is the processor: "));
        assert_eq!(said.count(), lines, "{text}");
    }
}

/// Kernels can be compiled without a GPU, but not without their compiler.
#[test]
fn kernels_are_compiled_ahead() {
    let folder = tempfile::tempdir().unwrap();
    let compile = |capability: &str| {
        let mut command = exmy(&["device", "--compile", capability]);
        command.env("EXMY_CACHE", folder.path()).env("EXMY_NVRTC", folder.path().join("none"));
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, text) = compile("9.0a");
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("NVRTC") && text.contains("EXMY_NVRTC"), "{text}");
    for capability in ["7.5", "99"] {
        let (code, text) = compile(capability);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("two numbers, 8.0 or higher"), "{text}");
    }
    // A folder that cannot be written is found before a compiler is looked for; none is left in the other.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let mut command = exmy(&["device", "--compile", "9.0"]);
    let output =
        command.env("EXMY_CACHE", file.join("cache")).env("EXMY_NVRTC", "").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("cannot be written"), "{text}");
}

#[test]
fn the_list_of_gpus_may_be_empty() {
    let output = without_gpu(&["device"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stdout).unwrap().contains("GPU"));
    let folder = tempfile::tempdir().unwrap();
    let help = printed(folder.path(), "device", &["--help"]);
    assert!(help.contains("--verify"));
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
    let refused = |mut command: std::process::Command, words: &str| {
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
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let rank = |rank: &str| {
        let mut command = train("ranks", &["--ranks"]);
        command.env("RANK", rank).env("WORLD_SIZE", "2").env("MASTER_ADDR", "127.0.0.1");
        command.env("MASTER_PORT", port.to_string()).stdout(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let both = [rank("1"), rank("0")].map(|mut process| process.wait().unwrap());
    assert!(both.iter().all(std::process::ExitStatus::success), "{both:?}");
    let file = |name: &str, file: &str| {
        let mut run = std::fs::read_dir(out(name)).unwrap().map(|entry| entry.unwrap().path());
        std::fs::read(run.find(|path| path.is_dir()).unwrap().join(file)).unwrap()
    };
    for name in ["two", "ranks"] {
        for path in ["config.toml", "metrics.jsonl", "model.safetensors", "summary.json"] {
            assert!(file(name, path) == file("one", path), "{name}: {path}");
        }
        let timing = String::from_utf8(file(name, "timing.jsonl")).unwrap();
        assert!(timing.contains("\"device\":\"cpu, rank 0 of 2\""), "{timing}");
    }
}

/// A rank that is killed ends all: rank 0 says which, and the run goes on from its checkpoint on one device.
#[test]
fn a_rank_that_dies_ends_all() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let start = |rank: &str| {
        let mut command = exmy(&["train", "--quiet", "--ranks", "--preset", "gpt-nano"]);
        command.args(["--recipe", "f32", "--steps", "1e6", "--out", out.to_str().unwrap()]);
        for setting in ["train.batch=2", "train.accumulate=2", "record.checkpoint_every=2"] {
            command.args(["--set", setting]);
        }
        command.args(["--set", "record.eval_windows=1", "--set", "record.eval_every=0"]);
        command.env("RANK", rank).env("WORLD_SIZE", "2").env("MASTER_ADDR", "127.0.0.1");
        command.env("MASTER_PORT", port.to_string()).stderr(std::process::Stdio::piped());
        command.spawn().unwrap()
    };
    let (mut other, lead) = (start("1"), start("0"));
    let has_checkpoint = || {
        let runs = std::fs::read_dir(&out).into_iter().flatten().flatten();
        let mut steps =
            runs.filter_map(|run| std::fs::read_dir(run.path().join("checkpoints")).ok());
        steps.any(|mut steps| steps.next().is_some())
    };
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !has_checkpoint() {
        assert!(std::time::Instant::now() < until, "no checkpoint");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    other.kill().unwrap();
    other.wait().unwrap();
    let output = lead.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("rank 1 has ended") && text.contains("--resume goes on"), "{text}");
}
