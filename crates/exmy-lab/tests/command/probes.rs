//! What runs measure in addition to their losses: that it changes nothing, survives a resume and means what
//! it says where that is known.

use crate::kill::kill_after;
use crate::{TINY, exmy, succeed, text_file};
use exmy_train::train::probe::{Line, read};
use exmy_train::train::record::{Metrics, read_metrics};
use exmy_train::train::run::Folder;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Probes of all kinds: of weights, of gradients, of what is multiplied, of what softmax and head see.
const ALL: &str = "record.probes=[\"lastbin.gamma\",\"lastbin.activations\",\"rho_same\",\"cos_same\",\
    \"eps_traj\",\"rho_traj\",\"cos_traj\",\"eps_same\",\"sharpness\",\"sharpness_lbfgsb:10\",\
    \"norms\",\"gamma\",\"rounding\",\"kurtosis\",\"channels\",\"spikes\",\
    \"hot:4\",\"products\",\"attention\",\"swiglu\",\"logits\",\"activations\",\"lastbin.weights:e2m3\"]";
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

fn probes(run: &Path) -> Vec<Line> {
    read(&run.join("probes.jsonl")).unwrap()
}

/// A recipe that draws random bits and remembers hot channels has the same weights and metrics, byte for
/// byte.
#[test]
fn probes_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let linear = ALL.replace("\"attention\"", "\"gates\"");
    for (recipe, parts, mixer, all) in [
        ("chon", "1", "attention", ALL),
        ("msamp-o1", "2", "attention", ALL),
        ("mxpaper-e4m3", "1", "attention", ALL),
        ("chon", "1", "gla", &linear),
    ] {
        let (parts, model) =
            (format!("train.accumulate={parts}"), format!("model.mixer=\"{mixer}\""));
        let name = |what: &str| format!("{recipe}-{mixer}-{what}");
        let more = ["--set", &parts, "--set", &model, "--set", "train.steps=30"];
        let without = train(folder.path(), &name("without"), recipe, &more);
        let with = [&SOME[..4], &["--set", all, "--set", &parts, "--set", &model]].concat();
        let with = train(folder.path(), &name("with"), recipe, &with);
        for file in ["model.safetensors", "metrics.jsonl"] {
            let [a, b] = [&without, &with].map(|run| fs::read(run.join(file)).unwrap());
            assert!(a == b, "{recipe}: {file}");
        }
        let [a, mut b] = [&without, &with].map(|run| Folder::new(run).summary().unwrap().unwrap());
        // The digest of what they measured.
        assert!(b.records.as_mut().unwrap().probes.take().is_some());
        assert_eq!(a, b, "{recipe}");
        assert!(!without.join("probes.jsonl").exists());
        let lines = probes(&with);
        let at = |step: u64| lines.iter().filter(|line| line.step == step).count();
        assert_eq!((0..=30).map(at).filter(|&count| count > 0).count(), 7);
        // Before the first step there is neither a gradient to compare nor anything multiplied.
        assert_eq!((at(0), at(5), at(30)), (7, 23, 23), "{recipe}, {mixer}");
    }
}

/// The gradient that probes see is the one that the step is made by, however many parts it is summed over.
#[test]
fn gradients_of_divided_batches_are_means() {
    let folder = tempfile::tempdir().unwrap();
    let run = |parts: usize| {
        let parts = format!("train.accumulate={parts}");
        let probes = "record.probes=[\"norms\",\"eps_same\",\"eps_traj\"]";
        let every = "record.probe_every=10";
        train(folder.path(), &parts, "f32", &["--set", &parts, "--set", probes, "--set", every])
    };
    let runs = [1, 4].map(run);
    for run in &runs {
        let metrics = metrics(run);
        let lines = probes(run);
        let norms = lines.iter().filter(|line| line.probe == "norms" && line.step > 0);
        let mut count = 0;
        for line in norms {
            let (found, norm) = (line.values.value.unwrap(), metrics[line.step as usize].grad_norm);
            assert!((found / norm.unwrap() - 1.0).abs() < 1e-6, "{found} {norm:?}");
            count += 1;
        }
        assert!(count > 0);
    }
    // The same batch in one part or in four, at the same weights.
    for name in ["eps_same", "eps_traj"] {
        let bound = runs.each_ref().map(|run| {
            let lines = probes(run);
            let eps = lines.iter().find(|line| line.probe == name && line.step > 0).unwrap();
            eps.values.parts["bound"].number().unwrap()
        });
        assert!((bound[0] / bound[1] - 1.0).abs() < 0.05, "{name}: {bound:?}");
    }
}

/// The gradient of f32 is its own shadow and its own twin; fewer bits lead further away, and rules see that.
#[test]
fn fewer_bits_are_further_from_f32() {
    let folder = tempfile::tempdir().unwrap();
    let last = |name: &str, recipe: &str| {
        let lines = probes(&train(folder.path(), name, recipe, &SOME));
        let names = ["rho_same", "rho_traj", "cos_same", "sharpness", "products"];
        names.map(|name| {
            let found = lines.iter().rfind(|line| line.probe == name);
            found.and_then(|line| line.values.value).unwrap()
        })
    };
    let [rho, twin, cosine, sharpness, error] = last("f32", "f32");
    assert_eq!([rho, twin, error], [0.0; 3]);
    assert!((cosine - 1.0).abs() < 1e-6 && sharpness > 0.0, "{cosine} {sharpness}");
    let found = ["mxfp8-e4m3", "mxfp4"].map(|recipe| last(recipe, recipe));
    for i in [0, 1, 4] {
        assert!(0.005 < found[0][i] && 2.0 * found[0][i] < found[1][i], "{i}: {found:?}");
    }
    let rule = "when=[{metric=\"rho_same\",above=0.0,then=\"f32\"}]";
    let switched = train(folder.path(), "rule", "mxfp4", &[&SOME[..], &["--set", rule]].concat());
    let lines = metrics(&switched);
    assert_eq!(lines.iter().filter(|line| !line.events.is_empty()).count(), 1);
    assert_eq!(lines.last().unwrap().probes["rho_same"], 0.0);
    assert_eq!(lines.last().unwrap().probes.len(), 1, "only what a rule reads");
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
    for file in ["metrics.jsonl", "probes.jsonl"] {
        assert!(
            fs::read(whole.join(file)).unwrap() == fs::read(killed.join(file)).unwrap(),
            "{file}"
        );
    }
}
