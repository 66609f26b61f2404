//! What is printed of the memory before the work, beside what the process then has. The bound itself is
//! compared with every allocation in exmy-train's `tests/memory.rs`.

use super::{model, said};
use crate::exmy;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// The number of bytes in front of some words.
fn size(line: &str, behind: &str) -> f64 {
    let before = line.split_once(behind).unwrap_or_else(|| panic!("{behind}: {line}")).0;
    let words: Vec<&str> = before.split_whitespace().collect();
    let [.., number, unit] = words[..] else { panic!("{line}") };
    number.parse::<f64>().unwrap() * if unit == "GiB" { 1024.0 } else { 1.0 }
}

/// Rounded weights are a part of it, as many as recipes keep: none in f32, and none of keys and values.
#[test]
fn rounded_weights_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let line = |recipes: &str| {
        let few = ["eval", "model", "--data", "text", "--tokens", "40", "--recipe", recipes];
        let said = said(folder, &few);
        said.lines().find(|line| line.starts_with("memory")).unwrap().to_owned()
    };
    for (recipes, rounds) in
        [("f32", false), ("f32,f32+k:tensor=mxfp4", false), ("f32,mxfp4+input=f32", true)]
    {
        assert_eq!(line(recipes).contains("rounded weights"), rounds, "{recipes}");
    }
    let text = ["generate", "model", "--prompt", "Line", "--tokens", "3", "--recipe"];
    for (recipe, rounds) in [("f32", false), ("mxfp4", true)] {
        let said = said(folder, &[&text[..], &[recipe]].concat());
        assert_eq!(said.contains("rounded weights"), rounds, "{said}");
    }
}

/// What a process has at most, which Linux says while it lives.
#[cfg(target_os = "linux")]
fn peak(folder: &Path, arguments: &[&str]) -> (f64, String) {
    let mut command = exmy(arguments);
    let command = command.current_dir(folder).stdout(Stdio::null());
    let mut process =
        command.stderr(fs::File::create(folder.join("said")).unwrap()).spawn().unwrap();
    let status = format!("/proc/{}/status", process.id());
    let mut most = 0.0;
    while process.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        if let Some(line) = text.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
            most = line.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1024.0;
        }
    }
    (most, fs::read_to_string(folder.join("said")).unwrap())
}

/// A bound is one.
#[cfg(target_os = "linux")]
#[test]
fn no_more_is_taken_than_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    for more in
        [&[][..], &["--layers"], &["--by-layer"], &["--gptq", "mxfp4", "--calibrate", "text"]]
    {
        let few =
            ["eval", "model", "--data", "text", "--recipe", "f32,bf16,mxfp8-e4m3,mxfp4,nvfp4"];
        let (most, said) = peak(folder, &[&few[..], more].concat());
        let bound = size(&said, " at most");
        assert!(most > 1.0 && most <= bound, "{more:?}: {most} MiB, {said}");
    }
}
