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
