//! Too little memory: refused before a run is begun, and where nobody could know it, reported without an
//! abort. And too few files that may be open.

use crate::{TINY, exmy, run_of, succeed, text_file};
use std::fs;
use std::path::Path;

/// A run that does not fit is refused before it begins, with numbers and what would make it fit.
#[test]
fn too_little_memory_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let program = env!("CARGO_BIN_EXE_exmy");
    let arguments = ["train", "--data", &data, "--recipe", "f32", "--quiet", "--steps", "2"];
    let run = |batch: &str, out: &str, more: &[&str]| {
        let mut command = std::process::Command::new("sh");
        // 1 GB of addresses; a step of 2^20 sequences of 16 tokens takes many times that.
        command.args(["-c", "ulimit -v 1000000; exec \"$@\"", "sh", program]);
        command.args(arguments).args(TINY).args(["--set", batch, "--threads", "1", "--out", out]);
        let output = command.args(more).current_dir(&folder).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run("train.batch=1048576", "large", &[]);
    let parts = [
        "error: the run may need up to",
        "GiB",
        "the limit of addresses (ulimit -v) leaves ",
        "--set train.accumulate=",
    ];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    // It would not begin.
    assert!(!said.contains("--force"), "{said}");
    assert_eq!((code, folder.path().join("large").exists()), (Some(2), false));
    // Weights that cannot be had are reported even where the run is wanted.
    let wide = ["--set", "model.d_model=8192", "--set", "model.hidden=8192", "--force"];
    let (code, said) = run("train.batch=4", "wide", &wide);
    let parts = ["error: the run needs ", "the limit of addresses (ulimit -v) leaves "];
    assert!(code == Some(2) && parts.iter().all(|part| said.contains(part)), "{code:?} {said}");
    assert!(!folder.path().join("wide").exists());
    let (code, said) = run("train.batch=4", "small", &[]);
    assert!(code == Some(0) && !said.contains("warning"), "{said}");
}

/// What is advised where memory will not do is done, and where nothing is advised nothing would help.
#[test]
fn what_is_advised_fits() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let train = "train -q --recipe f32,nvfp4 --steps 2 --threads 2 --out x";
    let loads = |limit: &u32| limited(root, *limit, "formats e4m3").0 == Some(0);
    let least = (20_000..400_000).step_by(2_000).find(loads).unwrap();
    let (mut advised, mut may_be_forced) = (0, 0);
    for limit in [6_000, 12_000, 20_000, 26_000].map(|more| least + more) {
        let (code, said) = limited(root, limit, train);
        let advice = said.split_once("; or --set ").map(|(_, rest)| rest.split_once(" needs "));
        if let Some(Some((settings, _))) = advice {
            let (code, said) = limited(root, limit, &format!("{train} --set {settings}"));
            assert_eq!(code, Some(0), "{limit}, --set {settings}: {said}");
            advised += 1;
        } else if code != Some(0) {
            let refused = said.contains("take a smaller model") || said.contains("need");
            assert!(refused && !said.contains("did not suffice"), "{limit}: {said}");
        }
        let _ = fs::remove_dir_all(root.join("x"));
        let forced = limited(root, limit, &format!("{train} --force")).1;
        if said.contains("--force begins all the same") {
            assert!(!forced.contains("error: the run needs "), "{limit}: {said}{forced}");
            may_be_forced += 1;
        }
        let lines = ["backtrace", "memory allocation of"];
        assert!(!lines.iter().any(|line| forced.contains(line)), "{limit}: {forced}");
        let has_steps = ["f32-s1", "nvfp4-s1"].iter().any(|name| {
            let checkpoints = run_of(&root.join("x"), name).join("checkpoints");
            fs::read_dir(checkpoints).is_ok_and(|mut all| all.next().is_some())
        });
        assert!(has_steps || !forced.contains("are kept"), "{limit}: {forced}");
        let _ = fs::remove_dir_all(root.join("x"));
    }
    assert!(advised > 0 && may_be_forced > 0, "a test of nothing: {advised} {may_be_forced}");
}

/// Whatever the limit of addresses, a command comes to its end or says that memory does not suffice, and then
/// leaves nothing.
#[test]
fn no_command_ends_by_abort() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let data = text_file(root);
    let train = ["train", "--data", &data, "-q", "--recipe", "f32", "--steps", "2", "--out", "r"];
    succeed(exmy(&train).args(TINY).current_dir(root));
    let tiny = TINY.join(" ");
    let fresh = format!("train --data {data} -q --recipe f32 --steps 2 --threads 1 {tiny} --out x");
    let cases = [
        fresh.clone(),
        format!("{fresh} --force"),
        "report r --out x.html".into(),
        "plot r --out x.svg".into(),
        "watch r --once".into(),
        "ls r".into(),
        "export --jsonl - r".into(),
        "sample r --tokens 2".into(),
        "study mx-instabilities --figure fig2 --scale smoke --plan --out x".into(),
    ];
    // Where the program itself cannot be loaded there is nothing to see.
    let loads = |limit: &u32| limited(root, *limit, "formats e4m3").0 == Some(0);
    let least = (20_000..400_000).step_by(2_000).find(loads).unwrap();
    for case in &cases {
        for limit in (0..5).map(|i| least + 4_000 + 6_000 * i) {
            let (code, said) = limited(root, limit, case);
            assert!(matches!(code, Some(0 | 2)), "{case}, {limit}: {code:?}, {said}");
            if code == Some(2) {
                assert!(said.contains("error: "), "{case}, {limit}: {said}");
                let left = ["x", "x.html", "x.svg"].map(|name| root.join(name).exists());
                assert_eq!(left, [false; 3], "{case}, {limit}: {said}");
            }
            let _ = fs::remove_dir_all(root.join("x"));
            ["x.html", "x.svg"].iter().for_each(|name| drop(fs::remove_file(root.join(name))));
        }
    }
}

/// Memory that ends a run which was begun in spite of it leaves no folder without a step.
#[test]
fn a_run_that_memory_ends_at_once_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let (data, sizes) = (text_file(root), TINY.join(" "));
    let sizes =
        format!("{sizes} --set model.layers=4 --set model.d_model=128 --set train.batch=16");
    let train = format!("train --data {data} -q --recipe f32 --threads 1 --force {sizes} --out x");
    let mut ended = 0;
    for limit in (20_000..400_000).step_by(1_000) {
        let (code, said) = limited(root, limit, &train);
        if code == Some(0) {
            break;
        }
        ended += u32::from(said.contains("memory did not suffice"));
        let trained = root.join("x").exists().then(|| {
            let metrics = run_of(&root.join("x"), "f32-s5").join("metrics.jsonl");
            fs::read_to_string(metrics).unwrap_or_default()
        });
        let has_steps = trained.is_none_or(|metrics| metrics.contains(r#"{"step":1,"#));
        assert!(has_steps, "{limit}: {said}");
        let _ = fs::remove_dir_all(root.join("x"));
    }
    assert!(ended > 0, "no limit ended a run");
}

/// A record for which there is no memory is named, by whatever reads it.
#[test]
fn a_record_of_any_length_is_read_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let data = text_file(root);
    let train = ["train", "--data", &data, "-q", "--recipe", "f32", "--out", "r"];
    succeed(exmy(&train).args(TINY).current_dir(root));
    let metrics = run_of(&root.join("r"), "f32-s5").join("metrics.jsonl");
    let text = fs::read(&metrics).unwrap();
    fs::write(&metrics, text.repeat((64 << 20) / text.len())).unwrap();
    let mut named = 0;
    for command in
        ["report r --out x.html", "plot r --out x.svg", "watch r --once", "train --resume r"]
    {
        for limit in (40_000..400_000).step_by(60_000) {
            let (code, said) = limited(root, limit, command);
            assert!(matches!(code, Some(1 | 2)), "{command}, {limit}: {code:?}, {said}");
            assert!(!said.contains("memory allocation of"), "{command}, {limit}: {said}");
            named += u32::from(said.contains("metrics.jsonl: out of memory"));
        }
    }
    assert!(named > 0, "no limit was too little");
}

/// However few files may be open, what was not written does not stand there.
#[test]
fn too_few_open_files_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let data = text_file(root);
    let train = ["train", "--data", &data, "-q", "--recipe", "f32", "--out", "r"];
    succeed(exmy(&train).args(TINY).current_dir(root));
    fs::copy(run_of(&root.join("r"), "f32-s5").join("model.safetensors"), root.join("m")).unwrap();
    for command in ["report r --out x.html", "plot r --out x.svg", "quantize m x.m --to e4m3fn"] {
        let out = root.join(command.split(' ').find(|word| word.starts_with("x.")).unwrap());
        let mut refused = 0;
        for limit in 4..16 {
            let (code, said) = under(root, &format!("-n {limit}"), command);
            assert!(matches!(code, Some(0 | 2)), "{command}, {limit}: {code:?}, {said}");
            assert_eq!(out.exists(), code == Some(0), "{command}, {limit}: {said}");
            refused += u32::from(code == Some(2));
            let _ = fs::remove_file(&out);
        }
        assert!(refused > 0, "{command}");
    }
    let left = fs::read_dir(root).unwrap().flatten().map(|entry| entry.file_name());
    let partial: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(partial.is_empty(), "{partial:?}");
}

/// The exit code and the complaints of a command that has so many KiB of addresses.
pub(crate) fn limited(folder: &Path, limit: u32, command: &str) -> (Option<i32>, String) {
    under(folder, &format!("-v {limit}"), command)
}

/// The same under any limit of the shell.
fn under(folder: &Path, limit: &str, command: &str) -> (Option<i32>, String) {
    let program = env!("CARGO_BIN_EXE_exmy");
    let script = format!("ulimit -c 0; ulimit {limit}; exec {program} {command}");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(folder).env_remove("RUST_BACKTRACE");
    let output = shell.output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}
