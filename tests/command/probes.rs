//! What runs measure beside their losses: that it changes nothing, survives a resume and means what it
//! says where that is known.

use crate::kill::kill_after;
use crate::{TINY, exmy, succeed, text_file};
use exmy::train::record::{Metrics, read_metrics};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

const ALL: &str = "record.probes=[\"lastbin.gamma\",\"rho_same\",\"cos_same\",\"phi\"]";
const SOME: [&str; 6] = ["--set", "train.steps=30", "--set", "record.probe_every=5", "--set", ALL];

/// Trains the tiny network; the folder of its run.
fn train(folder: &Path, name: &str, recipe: &str, more: &[&str]) -> PathBuf {
    let (data, out) = (text_file(folder), folder.join(name));
    let mut command = exmy(&["train", "--data", &data, "--quiet", "--recipe", recipe, "--out"]);
    succeed(command.arg(&out).args(TINY).args(more));
    fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).find(|p| p.is_dir()).unwrap()
}

fn metrics(run: &Path) -> Vec<Metrics> {
    read_metrics(&run.join("metrics.jsonl")).unwrap()
}

/// A recipe that draws random bits and remembers hot channels has the same weights and losses.
#[test]
fn probes_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for (recipe, parts) in [("chon", "1"), ("msamp-o1", "2")] {
        let parts = format!("train.accumulate={parts}");
        let name = |what: &str| format!("{recipe}-{what}");
        let more = ["--set", &parts, "--set", "train.steps=30"];
        let without = train(folder.path(), &name("without"), recipe, &more);
        let with = [&SOME[..], &["--set", &parts]].concat();
        let with = train(folder.path(), &name("with"), recipe, &with);
        let weights = |run: &Path| fs::read(run.join("model.safetensors")).unwrap();
        assert_eq!(weights(&without), weights(&with), "{recipe}");
        let (without, mut with) = (metrics(&without), metrics(&with));
        for line in &mut with {
            let found = line.probes.keys().map(|name| &**name).collect::<Vec<_>>();
            let expected: &[_] = match line.step {
                // Before the first step there is no gradient.
                0 => &["lastbin.gamma", "phi"],
                step if step % 5 == 0 => &["cos_same", "lastbin.gamma", "phi", "rho_same"],
                _ => &[],
            };
            assert_eq!(found, expected, "{recipe}, step {}", line.step);
            line.probes.clear();
        }
        assert_eq!(without, with, "{recipe}");
    }
}

/// The gradient of f32 is its own shadow; fewer bits lead further away, and rules can tell.
#[test]
fn fewer_bits_are_further_from_f32() {
    let folder = tempfile::tempdir().unwrap();
    let last = |name: &str, recipe: &str| {
        let run = train(folder.path(), name, recipe, &SOME);
        let line = metrics(&run).pop().unwrap();
        ["rho_same", "cos_same", "phi"].map(|name| line.probes[name])
    };
    let [rho, cosine, phi] = last("f32", "f32");
    assert_eq!(rho, 0.0);
    assert!((cosine - 1.0).abs() < 1e-6 && phi > 0.0, "{cosine} {phi}");
    let rhos = ["mxfp8-e4m3", "mxfp4"].map(|recipe| last(recipe, recipe)[0]);
    assert!(0.005 < rhos[0] && 2.0 * rhos[0] < rhos[1], "{rhos:?}");
    let rule = "when=[{metric=\"rho_same\",above=0.0,then=\"f32\"}]";
    let switched = train(folder.path(), "rule", "mxfp4", &[&SOME[..], &["--set", rule]].concat());
    let lines = metrics(&switched);
    assert_eq!(lines.iter().filter(|line| !line.events.is_empty()).count(), 1);
    assert_eq!(lines.last().unwrap().probes["rho_same"], 0.0);
}

/// A killed run goes on with the same probes' values.
#[test]
fn probes_survive_kills() {
    let folder = tempfile::tempdir().unwrap();
    let every = ["--set", "record.checkpoint_every=1"];
    let begun = Instant::now();
    let whole = train(folder.path(), "whole", "nv-nvfp4", &[&SOME[..], &every].concat());
    let (half, out) = (begun.elapsed() / 2, folder.path().join("killed"));
    let data = text_file(folder.path());
    let (name, start) = (out.to_str().unwrap(), ["train", "--data", &data, "--recipe", "nv-nvfp4"]);
    let start = [&start[..], &TINY, &SOME, &every, &["--quiet", "--out", name]].concat();
    kill_after(&start, half);
    // Where nothing had begun there is nothing to go on with.
    match out.join(whole.file_name().unwrap()).join("config.toml").exists() {
        true => succeed(exmy(&["train", "--quiet", "--resume"]).arg(&out)),
        false => succeed(&mut exmy(&start)),
    };
    let killed = out.join(whole.file_name().unwrap());
    assert_eq!(metrics(&whole), metrics(&killed));
}
