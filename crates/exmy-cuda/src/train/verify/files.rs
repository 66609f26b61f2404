//! The files of whole runs, compared byte by byte between devices.
//!
//! One run has all that a run can go through: parts of steps, probes, an evaluation in between, a change of
//! the recipe at a step, a rollback, and memory of the recipes that a checkpoint keeps. It is trained on the
//! CPU, on the device, and on both in turns: stopped on one and resumed on the other, before the rollback and
//! after it. Another branches off from it. Every file of each must be the CPU's, but for `timing.jsonl`.
//!
//! A last run diverges: its learning rate is such that losses and gradients are no numbers after some steps.
//! All of its files are compared, too: in files a NaN is always the same one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use exmy::error::{Error, Result};
use exmy_train::nn::device::Cpu;
use exmy_train::train::config::Config;
use exmy_train::train::data::Dataset;
use exmy_train::train::device::TrainingDevice;
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{Folder, Job, RunLock, Watch, load_data, lock};
use exmy_train::train::start;
use exmy_train::train::together::train_together;

use super::super::{Cuda, ring};
use super::places;
use super::runs;

pub use super::places::Difference;

/// What is changed of a family's configuration. The rule acts at step 8, on what it saw from step 4 on, and
/// leads back to step 3.
const CHANGES: &str = "[model]\nd_model = 32\nheads = 2\nkv_heads = 1\nhidden = 48\ncontext = 17\n\
    [data]\nnoise = 0.1\n[train]\nsteps = 14\nz_loss = 1e-4\nbatch = 4\n\
    [record]\neval_every = 5\ncheckpoint_every = 3\ncheckpoint_at = [6]\nkeep = 2\nprobe_every = 4\n\
    probes = ['norms', 'rounding', 'kurtosis', 'rho_same', 'hot:4', 'attention', 'logits', 'activations', \
    'lastbin.activations', 'products']\n\
    [[at]]\nstep = 6\nthen = 'chon'\n\
    [[when]]\nmetric = 'spikes'\nabove = -1.0\nfor = 2\nthen = '+out=bf16'\nrollback = true\ntimes = 1";

/// What is changed of a family's configuration so that it diverges: within ten steps and not in the first.
const DIVERGES: &str = "[train]\nsteps = 20\nlr = 1e3\nclip = 0.0\nwarmup = 0\n\
    [record]\neval_every = 0\ncheckpoint_every = 3\nkeep = 4\n\
    probe_every = 2\nprobes = ['norms', 'rounding']";

/// A run, and how its files fared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Where it was trained.
    pub name: &'static str,
    /// Files of the CPU's run.
    pub files: usize,
    /// Bytes of them.
    pub bytes: usize,
    /// The first difference.
    pub first: Option<Difference>,
}

/// Files by their paths in a folder.
type Files = BTreeMap<String, Vec<u8>>;

/// Stops after a step.
struct Until(u64);

impl Watch for Until {
    fn step(&mut self, metrics: &Metrics, _: u64) -> bool {
        metrics.step < self.0
    }

    fn phase(&mut self, _: &str) {}
}

fn locked(folder: &Folder) -> Result<RunLock> {
    lock(folder)?.ok_or_else(|| Error::new("another process has the run"))
}

/// Trains the run in `folder` up to a step, or to its end.
fn advance(
    device: &impl TrainingDevice,
    folder: &Folder,
    data: &Dataset,
    until: u64,
) -> Result<()> {
    let lock = locked(folder)?;
    device.train(None, Job::new(folder, data, &mut Until(until), &lock)).map(|_| ())
}

/// All files of a run but `timing.jsonl`.
fn read(folder: &Path) -> Result<Files> {
    let mut files = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(place) = folders.pop() {
        let entries = fs::read_dir(&place).map_err(|error| Error::io("read", &place, error))?;
        for entry in entries {
            let path = entry.map_err(|error| Error::io("read", &place, error))?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            if name != "timing.jsonl" {
                let bytes = fs::read(&path).map_err(|error| Error::io("read", &path, error))?;
                files.insert(name, bytes);
            }
        }
    }
    Ok(files)
}

fn difference(expected: &Files, found: &Files) -> Option<Difference> {
    let names = expected.keys().chain(found.keys());
    names.into_iter().find_map(|file| {
        let both = [expected, found].map(|files| files.get(file).map(Vec::as_slice));
        places::difference(file, both)
    })
}

/// Trains in `folder`, which is to be empty, on several devices together and on the CPU, and compares: a tied
/// head under stochastic rounding, gated linear attention under hot channels, and the run of
/// [`compare`] with its windows and its rollback, whole and with the CPU in between. There is one part more
/// than devices. `seen` gets each run once it was compared.
///
/// # Errors
/// If a device fails, or files cannot be read or written.
pub fn compare_together(
    devices: &[Cuda],
    folder: &Path,
    seen: &mut dyn FnMut(&Compared),
) -> Result<Vec<Compared>> {
    let (cpu, end, parts) = (Cpu::new(), u64::MAX, devices.len() + 1);
    let divided = format!("[train]\nbatch = {parts}\naccumulate = {parts}");
    let together = |folder: &Folder, data: &Dataset, until: u64| {
        let lock = locked(folder)?;
        let links = ring(devices)?.into_iter().map(|link| Box::new(link) as _).collect();
        let watch = &mut Until(until);
        train_together((devices, links), 1, Job::new(folder, data, watch, &lock)).map(|_| ())
    };
    let mut compared = Vec::new();
    for (name, family, recipe, changes, turns) in [
        ("a tied head, e4m3@sr8", runs::FAMILIES[1], "e4m3@sr8", "", false),
        ("gated linear attention, chon", runs::FAMILIES[2], "chon", "", false),
        ("windows and a rollback", runs::FAMILIES[0], "msamp-o1", CHANGES, false),
        ("the same, with the CPU in between", runs::FAMILIES[0], "msamp-o1", CHANGES, true),
    ] {
        let mut config = runs::config(family, recipe)?.overlaid(changes)?.overlaid(&divided)?;
        let data = load_data(&mut config)?;
        let run = |on: &str| -> Result<Folder> {
            let run = Folder::new(folder.join(format!("{}-{on}", name.replace([' ', ','], "-"))));
            run.create(&config).map(|()| run)
        };
        let (whole, other) = (run("cpu")?, run("together")?);
        advance(&cpu, &whole, &data, end)?;
        if turns {
            together(&other, &data, 5)?;
            advance(&cpu, &other, &data, 10)?;
        }
        together(&other, &data, end)?;
        let (expected, found) = (read(whole.path())?, read(other.path())?);
        let (files, bytes) = (expected.len(), expected.values().map(Vec::len).sum());
        let this = Compared { name, files, bytes, first: difference(&expected, &found) };
        seen(&this);
        compared.push(this);
    }
    Ok(compared)
}

/// Trains in `folder`, which is to be empty, and compares; `seen` gets each run once it was compared.
///
/// # Errors
/// If the device fails, or files cannot be read or written.
pub fn compare(
    device: &Cuda,
    folder: &Path,
    seen: &mut dyn FnMut(&Compared),
) -> Result<Vec<Compared>> {
    let (cpu, end) = (Cpu::new(), u64::MAX);
    let mut config = runs::config(runs::FAMILIES[0], "msamp-o1")?.overlaid(CHANGES)?;
    let data = load_data(&mut config)?;
    let run = |name: &str, config: &Config| -> Result<Folder> {
        let run = Folder::new(folder.join(name));
        run.create(config).map(|()| run)
    };
    let whole = run("cpu", &config)?;
    advance(&cpu, &whole, &data, end)?;
    let expected = read(whole.path())?;
    let mut compared = Vec::new();
    let mut keep = |name, expected: &Files, found: &Folder| -> Result<()> {
        let bytes = expected.values().map(Vec::len).sum();
        let first = difference(expected, &read(found.path())?);
        let this = Compared { name, files: expected.len(), bytes, first };
        seen(&this);
        compared.push(this);
        Ok(())
    };

    let other = run("device", &config)?;
    advance(device, &other, &data, end)?;
    keep("on the device", &expected, &other)?;

    let turns = run("cpu-first", &config)?;
    advance(&cpu, &turns, &data, 5)?;
    advance(device, &turns, &data, 10)?;
    advance(&cpu, &turns, &data, end)?;
    keep("on the CPU, the device, the CPU", &expected, &turns)?;

    let turns = run("device-first", &config)?;
    advance(device, &turns, &data, 5)?;
    advance(&cpu, &turns, &data, 10)?;
    advance(device, &turns, &data, end)?;
    keep("on the device, the CPU, the device", &expected, &turns)?;

    let changes = ["recipe=nv-nvfp4", "when=[]", "record.probes=['sharpness']"];
    let branch = start::branch(&whole, 6)?;
    let mut config = changes.iter().try_fold(branch, |config, key| config.with_setting(key))?;
    start::settle(&mut config)?;
    let branch = run("branch-cpu", &config)?;
    advance(&cpu, &branch, &data, end)?;
    let expected = read(branch.path())?;
    let branch = run("branch-device", &config)?;
    advance(device, &branch, &data, end)?;
    keep("a branch, on the device", &expected, &branch)?;

    // Magnitudes that are NaN are remembered, too.
    let recipe = "nv-nvfp4+layer1:forward:input=e4m3/tensor:e8m0@rceil@window3";
    let mut config = runs::config(runs::FAMILIES[6], recipe)?.overlaid(DIVERGES)?;
    let data = load_data(&mut config)?;
    let (whole, other) = (run("diverging-cpu", &config)?, run("diverging-device", &config)?);
    advance(&cpu, &whole, &data, end)?;
    advance(device, &other, &data, end)?;
    keep("one that diverges, on the device", &read(whole.path())?, &other)?;
    Ok(compared)
}
