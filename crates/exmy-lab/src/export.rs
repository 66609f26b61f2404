//! Records in the forms that other programs read: event files of TensorBoard, and lines of JSON.
//!
//! ```text
//! OUT/RUN/events.out.tfevents.0.exmy     the scalars of a run, for TensorBoard
//! OUT.jsonl                              one flat object a run and step, for data frames and W&B
//! ```
//!
//! Both hold what `metrics.jsonl` and `probes.jsonl` hold as numbers; lists of probes are left out. One run
//! at a time is read, and a file stands in its place when it is whole. Nothing in them depends on a clock.

pub mod tensorboard;

use crate::gather::{NamedRun, damage};
use exmy::error::{Error, Result};
use exmy::safetensors::whole::{self, WholeFile};
use exmy::shown::{printable_json, printable_path};
use exmy_train::train::probe::{self, Line};
use exmy_train::train::record::Metrics;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

/// The records of one run.
struct Records {
    metrics: Vec<Metrics>,
    probes: Vec<Line>,
}

impl Records {
    /// Reads them.
    fn read(run: &NamedRun) -> Result<Self> {
        if let Some(fault) = damage(&run.folder, &run.config)? {
            let path = printable_path(run.folder.path());
            return Err(Error::new(format!("{path}: {fault}")));
        }
        let (metrics, probes) = (run.folder.metrics()?, probe::read(&run.folder.probes_file())?);
        Ok(Self { metrics, probes })
    }

    /// Each step with what probes measured after it as numbers: `PROBE`, and the parts `PROBE/PART`.
    fn steps(&self) -> impl Iterator<Item = (&Metrics, BTreeMap<String, f64>)> {
        let mut probes = self.probes.iter().peekable();
        self.metrics.iter().map(move |line| {
            let mut of = BTreeMap::new();
            // Both files are in the order of steps.
            while let Some(found) = probes.next_if(|found| found.step <= line.step) {
                if found.step < line.step {
                    continue;
                }
                of.extend(found.values.value.map(|value| (found.probe.clone(), value)));
                let parts = found.values.parts.iter();
                let numbers = parts.filter_map(|(part, value)| {
                    Some((format!("{}/{part}", found.probe), value.number()?))
                });
                of.extend(numbers);
            }
            (line, of)
        })
    }
}

/// The numbers of a line of metrics under their keys.
fn numbers(line: &Metrics) -> impl Iterator<Item = (String, f64)> {
    let clipped = line.clipped.map(|clipped| f64::from(u8::from(clipped)));
    let values = [
        ("tokens", Some(line.tokens as f64)),
        ("loss", line.loss),
        ("val_loss", line.val_loss),
        ("lr", line.lr),
        ("grad_norm", line.grad_norm),
        ("clipped", clipped),
    ];
    let known = values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    known.chain(line.probes.iter().map(|(name, value)| (name.clone(), *value)))
}

/// Names of folders for runs: the last part of each path, with a number where two are the same.
fn folders(runs: &[NamedRun]) -> Vec<String> {
    let mut taken = HashSet::new();
    let name = |run: &NamedRun| {
        let path = fs::canonicalize(run.folder.path());
        let name = whole::split(path.as_deref().unwrap_or(run.folder.path())).1;
        let name = if name.is_empty() { "run".to_owned() } else { name };
        let numbered = (2_u64..).map(|i| format!("{name}-{i}"));
        let mut all = std::iter::once(name.clone()).chain(numbered);
        // There is always one more number.
        all.find(|name| taken.insert(name.clone())).unwrap_or(name)
    };
    runs.iter().map(name).collect()
}

/// The name of an event file. TensorBoard looks for the second and third part; in place of the time at which
/// others begin theirs it has 0.
const EVENTS: &str = "events.out.tfevents.0.exmy";

/// Refuses a place for event files that is none, before anything is read.
///
/// # Errors
/// If it is no folder.
pub fn check(out: &Path) -> Result<()> {
    if out.exists() && !out.is_dir() {
        return Err(Error::new(format!("{} is a file", printable_path(out)))
            .hint("name a folder: each run gets one of its own in it"));
    }
    Ok(())
}

/// What an export wrote, and what is wrong with the runs that it left out.
#[derive(Debug, Default)]
pub struct Exported {
    /// Files, or runs where there is one file.
    pub written: usize,
    /// A reason for each run that cannot be read or was changed since.
    pub left_out: Vec<Error>,
}

/// Writes an event file for each run into a folder below `out`. What an earlier call wrote there is replaced,
/// and nothing else. `goes_on` is asked before each run.
///
/// # Errors
/// If a file cannot be written; files of other runs may be there by then.
pub fn to_tensorboard(
    runs: &[NamedRun],
    out: &Path,
    goes_on: impl Fn() -> bool,
) -> Result<Exported> {
    check(out)?;
    let mut done = Exported::default();
    for (run, name) in runs.iter().zip(folders(runs)) {
        if !goes_on() {
            break;
        }
        let records = match Records::read(run) {
            Ok(records) => records,
            Err(error) => {
                done.left_out.push(error);
                continue;
            }
        };
        let folder = out.join(name);
        fs::create_dir_all(&folder).map_err(|error| Error::io("create", &folder, error))?;
        let steps = records.steps().map(|(line, probed)| {
            let all: BTreeMap<String, f64> = numbers(line).chain(probed).collect();
            (line.step, all)
        });
        placed(&folder.join(EVENTS), |file| tensorboard::write(steps, file))?;
        done.written += 1;
    }
    Ok(done)
}

/// Writes a file so that it is whole or absent.
fn placed<T>(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> Result<T> {
    whole::remove_abandoned(path);
    let attempt = || {
        let mut whole = WholeFile::create(path)?;
        let mut file = BufWriter::new(whole.file());
        let filled = fill(&mut file)?;
        file.flush()?;
        drop(file);
        whole.finish().map(|()| filled)
    };
    attempt().map_err(|error| Error::io("write", path, error))
}

/// Writes one object a run and step: `run`, `recipe`, `seed`, `peak_lr`, then the line of `metrics.jsonl`,
/// and what probes measured as numbers. `goes_on` is asked before each run.
///
/// # Errors
/// If it cannot be written, or is not gone on with ([`ErrorKind::Interrupted`]).
pub fn to_lines(
    runs: &[NamedRun],
    out: &mut dyn Write,
    goes_on: impl Fn() -> bool,
) -> io::Result<Exported> {
    let mut done = Exported::default();
    for run in runs {
        if !goes_on() {
            return Err(ErrorKind::Interrupted.into());
        }
        let records = match Records::read(run) {
            Ok(records) => records,
            Err(error) => {
                done.left_out.push(error);
                continue;
            }
        };
        for (line, probed) in records.steps() {
            let mut object = Map::new();
            object.insert("run".into(), run.name.clone().into());
            object.insert("recipe".into(), run.config.recipe.to_string().into());
            object.insert("seed".into(), run.config.seed.into());
            object.insert("peak_lr".into(), run.config.train.lr.into());
            if let Value::Object(own) = serde_json::to_value(line)? {
                object.extend(own);
            }
            object.extend(probed.into_iter().map(|(name, value)| (name, value.into())));
            writeln!(out, "{}", printable_json(&Value::Object(object).to_string()))?;
        }
        done.written += 1;
    }
    out.flush()?;
    Ok(done)
}

/// As [`to_lines`], into a file that stands in its place when it is whole.
///
/// # Errors
/// As [`to_lines`].
pub fn to_file(runs: &[NamedRun], path: &Path, goes_on: impl Fn() -> bool) -> Result<Exported> {
    placed(path, |file| to_lines(runs, file, goes_on))
}
