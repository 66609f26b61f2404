//! One run on several ranks: the bytes of one device, for recipes that remember and that round at random, for
//! both mixers and a tied head, with parts that do not divide evenly, resumed with another number of ranks.

use exmy::error::{Error, Result};
use exmy_train::nn::Cpu;
use exmy_train::train::config::Config;
use exmy_train::train::preset::preset;
use exmy_train::train::ranks::{Link, Ranks, Wire, channels, divides, rings, serve};
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{Folder, Watch, claim, load_data, train_among};
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

/// Stops after a step.
struct Until(u64);

impl Watch for Until {
    fn step(&mut self, metrics: &Metrics, _: u64) -> bool {
        metrics.step < self.0
    }

    fn phase(&mut self, _: &str) {}
}

/// Trains in `folder` on so many ranks.
fn train(folder: &Path, config: &Config, size: usize, until: u64) -> Result<()> {
    let mut config = config.clone();
    let data = load_data(&mut config)?;
    let folder = Folder::new(folder);
    if !folder.config_file().exists() {
        folder.create(&config)?;
    }
    let claim = claim(&folder)?.ok_or_else(|| Error::new("another process has the run"))?;
    let mut links: Vec<Box<dyn Link<Cpu>>> =
        rings(size).into_iter().map(|link| Box::new(link) as _).collect();
    let lead = links.remove(0);
    thread::scope(|scope| {
        let mut wires: Vec<Box<dyn Wire>> = Vec::new();
        let mut others = Vec::new();
        for (link, rank) in links.into_iter().zip(1..) {
            let [here, there] = channels();
            wires.push(Box::new(here));
            let ranks = Ranks::member((rank, size), link, Box::new(there));
            let (config, data) = (&config, &data);
            others.push(scope.spawn(move || serve(&Cpu::new(), config, data, ranks)));
        }
        let ranks = (size > 1).then(|| Ranks::lead(lead, wires));
        let watch = &mut Until(until);
        let done = train_among(ranks, &Cpu::new(), &folder, &data, watch, Vec::new(), &claim);
        others.into_iter().try_for_each(|other| other.join().expect("no rank panics"))?;
        done.map(drop)
    })
}

/// All files of a run but `timing.jsonl`.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut files, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(place) = folders.pop() {
        for entry in std::fs::read_dir(&place).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("timing.jsonl") {
                let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                files.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    files
}

fn same(expected: &Path, found: &Path) {
    let (expected, found) = (files(expected), files(found));
    assert!(expected.keys().eq(found.keys()), "{:?} {:?}", expected.keys(), found.keys());
    for (name, bytes) in &expected {
        assert!(bytes == &found[name], "{name} differs");
    }
}

const SMALL: &str = "[model]\nlayers = 2\nd_model = 32\nheads = 2\nkv_heads = 2\nhidden = 48\n\
    context = 16\n[train]\nbatch = 10\naccumulate = 5\n\
    [record]\neval_windows = 2\neval_every = 3\ncheckpoint_every = 2\nkeep = 2\nprobe_every = 2\n\
    probes = ['norms', 'rounding', 'kurtosis']";

fn config(name: &str, recipe: &str, changes: &str) -> Config {
    let mut config = preset(name).unwrap().overlaid(SMALL).unwrap();
    config = config.overlaid(changes).unwrap().with_setting(&format!("recipe={recipe}")).unwrap();
    config.train = config.train.with_steps(6);
    config
}

/// What both mixers, a tied head, biases and every kind of memory leave on one device, on two and on three.
#[test]
fn any_number_of_ranks_writes_the_bytes_of_one() {
    let place = tempfile::tempdir().unwrap();
    let biases = "[model]\nnorm_bias = true\nbias = { qkv = true, o = true, mlp = true }";
    let gla = "[model.gla]\nheads = 2";
    let rolled = "[[at]]\nstep = 2\nthen = 'chon'\n[[when]]\nmetric = 'spikes'\nabove = -1.0\nfor = 2\n\
        then = '+out=bf16'\nrollback = true\ntimes = 1";
    for (name, recipe, changes) in [
        ("gpt-nano", "mxfp4@sr8", biases),
        ("gla-mini", "chon", gla),
        ("nano", "msamp-o1", rolled),
        ("gpt-nano", "mxfp8-e4m3+sums=hopper:bf16", ""),
    ] {
        let config = config(name, recipe, changes);
        let folder = |size: usize| place.path().join(format!("{name}-{recipe}-{size}"));
        train(&folder(1), &config, 1, u64::MAX).unwrap();
        for size in [2, 3] {
            train(&folder(size), &config, size, u64::MAX).unwrap();
            same(&folder(1), &folder(size));
        }
    }
}

/// A run goes on with other numbers of ranks than it began with.
#[test]
fn ranks_come_and_go() {
    let place = tempfile::tempdir().unwrap();
    let config = config("nano", "nv-nvfp4", "");
    let [one, turns] = ["one", "turns"].map(|name| place.path().join(name));
    train(&one, &config, 1, u64::MAX).unwrap();
    for (size, until) in [(2, 1), (1, 3), (5, 4), (2, u64::MAX)] {
        train(&turns, &config, size, until).unwrap();
    }
    same(&one, &turns);
}

#[test]
fn more_ranks_than_parts_are_refused() {
    let config = config("nano", "f32", "");
    assert!(divides(&config, 5).is_ok());
    let error = divides(&config, 6).unwrap_err().to_string();
    assert!(error.contains("5 parts, and there are 6 devices"), "{error}");
    assert!(error.contains("--set train.accumulate=10"), "{error}");
    let error = divides(&config, 11).unwrap_err().to_string();
    assert!(error.contains("train.batch is 10"), "{error}");
}
