//! Run folders wherever they lie: below an output folder, a sweep, a study, or named one by one.

use crate::keys::{comparable, repeats};
use crate::run_name::RunName;
use crate::runner::{Entry, Manifest, find_run};
use crate::store::probes_cut_short;
use crate::timing::{self, Time};
use exmy::error::{Error, Result};
use exmy::safetensors::whole;
use exmy::shown::printable_path;
use exmy_train::train::config::Config;
use exmy_train::train::probe::{self, Line};
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{self, Folder, Summary, intact};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

mod names;

#[doc(hidden)]
pub use names::{Names, conditions, names};

/// Folders below a named one that are looked into.
const DEPTH: usize = 4;

/// A run as its files show it, complete or not.
#[derive(Clone, Debug)]
pub struct RecordedRun {
    /// What distinguishes it from the others.
    pub name: String,
    /// The same without the seed.
    pub condition: String,
    /// Its folder.
    pub folder: Folder,
    /// Its configuration.
    pub config: Config,
    /// Its lines so far.
    pub metrics: Vec<Metrics>,
    /// Its result, if it is complete.
    pub summary: Option<Summary>,
}

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has its result.
    Complete,
    /// It ended because it diverged.
    Diverged,
    /// It has its result, and its records are not what was written.
    Damaged,
    /// A process works on it.
    AtWork,
    /// It has no record yet, and a process works on a run of the same folder.
    Waiting,
    /// Nobody is seen at work.
    Stopped,
}

impl State {
    /// The same of a run of which it is known whether something is wrong with its records.
    #[must_use]
    pub fn checked(self, is_damaged: bool) -> Self {
        let is_over = matches!(self, Self::Complete | Self::Diverged);
        if is_over && is_damaged { Self::Damaged } else { self }
    }

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Diverged => "diverged",
            Self::Damaged => "damaged",
            Self::AtWork => "at work",
            Self::Waiting => "waiting",
            Self::Stopped => "stopped",
        }
    }
}

/// Where some runs stand.
pub fn states(runs: &[RecordedRun]) -> Vec<State> {
    let alone = runs.iter().map(|run| (&run.folder, run.summary.as_ref(), !run.metrics.is_empty()));
    states_of(&alone.collect::<Vec<_>>())
}

/// Where runs stand of which the folder and the result are known, and whether they have records.
pub(crate) fn states_of(runs: &[(&Folder, Option<&Summary>, bool)]) -> Vec<State> {
    let of = |(folder, summary, _): &(&Folder, Option<&Summary>, bool)| alone(folder, *summary);
    let mut states: Vec<State> = runs.iter().map(of).collect();
    // Whether somebody is at work below a folder that holds runs.
    let mut busy: HashMap<&Path, bool> = HashMap::new();
    let parents: Vec<&Path> = runs.iter().map(|run| whole::split(run.0.path()).0).collect();
    for (parent, state) in parents.iter().zip(&states) {
        if *state == State::AtWork {
            busy.insert(parent, true);
        }
    }
    for (((.., has_records), parent), state) in runs.iter().zip(&parents).zip(&mut states) {
        // What was begun and is worked on by nobody was stopped, whatever lies next to it.
        if *state == State::Stopped && !has_records {
            let is_busy = *busy.entry(parent).or_insert_with(|| is_busy(parent));
            *state = if is_busy { State::Waiting } else { State::Stopped };
        }
    }
    states
}

/// Whether somebody is at work on a run directly below a folder.
fn is_busy(parent: &Path) -> bool {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut folders = entries.map(|entry| Folder::new(entry.path()));
    folders.any(|folder| folder.config_file().is_file() && run::is_at_work(&folder))
}

/// Where a run stands, as far as its own files show.
fn alone(folder: &Folder, summary: Option<&Summary>) -> State {
    match summary {
        Some(summary) if summary.diverged_at.is_some() => State::Diverged,
        Some(_) => State::Complete,
        None if run::is_at_work(folder) => State::AtWork,
        None => State::Stopped,
    }
}

impl RecordedRun {
    /// What is wrong with its records: a file was lost, cut or edited. Of a run without a result that is said
    /// up to its newest checkpoint.
    pub fn missing(&self) -> Option<String> {
        damage(&self.folder, &self.config).unwrap_or_else(|error| Some(first_line(&error)))
    }

    /// The step at which it diverged.
    pub fn diverged_at(&self) -> Option<u64> {
        self.summary.as_ref()?.diverged_at
    }

    /// Its training and validation loss: of the result, else so far. What diverged has none, and no number
    /// that looks like one.
    pub fn losses(&self) -> [Option<f64>; 2] {
        losses(self.summary.as_ref(), &self.metrics)
    }

    /// Its validation losses after the first step, by step; none of what diverged.
    pub fn validated(&self) -> BTreeMap<u64, f64> {
        validated(self.summary.as_ref(), &self.metrics)
    }

    /// The one of some runs that it is compared with: of the recipe of the first with the same conditions,
    /// and of the same seed. Of the first recipe itself it is none.
    pub fn base<'a>(&self, runs: &'a [Self]) -> Option<&'a Self> {
        let mut alike = runs.iter().filter(|of| comparable(&of.config, &self.config)).peekable();
        let first = &alike.peek()?.config;
        let is_base = |of: &Config| repeats(of, first) && of.seed == self.config.seed;
        let base = alike.find(|of| is_base(&of.config))?;
        (!repeats(&self.config, first)).then_some(base)
    }

    /// How long it was trained.
    pub fn time(&self) -> Time {
        timing::of(&self.folder, timing::tokens_per_step(&self.config))
    }

    /// What its probes measured so far.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn probes(&self) -> Result<Vec<Line>> {
        probe::read(&self.folder.probes_file())
    }

    /// The quantities that it has recorded: of metrics, and probes that have a value of their own.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn recorded(&self) -> Result<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for line in &self.metrics {
            let values = [line.loss, line.val_loss, line.grad_norm, line.lr];
            let of_steps = OF_STEPS.iter().zip(values).filter(|(_, value)| value.is_some());
            names.extend(of_steps.map(|(&name, _)| name.to_owned()));
            names.extend(line.probes.keys().cloned());
        }
        let lines = self.probes()?.into_iter().filter(|line| line.values.value.is_some());
        names.extend(lines.map(|line| line.probe));
        Ok(names)
    }

    /// Steps and values of a quantity: `loss`, `val_loss`, `grad_norm`, `lr`, the name of a probe, or the
    /// name of a probe, a slash and one of its parts.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn curve(&self, quantity: &str) -> Result<Vec<(f64, f64)>> {
        let of_line = |line: &Metrics| match quantity {
            "loss" => line.loss,
            "val_loss" => line.val_loss,
            "grad_norm" => line.grad_norm,
            "lr" => line.lr,
            name => line.probes.get(name).copied(),
        };
        let pair = |line: &Metrics| Some((line.step as f64, of_line(line)?));
        let points: Vec<_> = self.metrics.iter().filter_map(pair).collect();
        if !points.is_empty() {
            return Ok(points);
        }
        let (probe, part) = match quantity.split_once('/') {
            Some((probe, part)) => (probe, Some(part)),
            None => (quantity, None),
        };
        let value = |line: &Line| match part {
            None => line.values.value,
            Some(part) => line.values.parts.get(part).and_then(probe::Value::number),
        };
        let lines = self.probes()?;
        let lines = lines.iter().filter(|line| line.probe == probe);
        Ok(lines.filter_map(|line| Some((line.step as f64, value(line)?))).collect())
    }
}

/// Training losses are averaged over so many of the last steps while there is no result.
pub const AVERAGED: usize = 20;

/// The mean training loss of the last steps of some lines.
fn recent_loss(lines: &[Metrics]) -> Option<f64> {
    let losses: Vec<f64> = lines.iter().rev().filter_map(|l| l.loss).take(AVERAGED).collect();
    (!losses.is_empty()).then(|| losses.iter().sum::<f64>() / losses.len() as f64)
}

/// Training and validation loss by a result, else by the last of some lines.
pub(crate) fn losses(summary: Option<&Summary>, lines: &[Metrics]) -> [Option<f64>; 2] {
    match summary {
        Some(summary) if summary.diverged_at.is_some() => [None; 2],
        Some(summary) => [summary.train_loss, summary.val_loss],
        None => [recent_loss(lines), lines.iter().rev().find_map(|line| line.val_loss)],
    }
}

/// Validation losses by step. Before the first step they say nothing of a format, and what diverged has none
/// that is to be compared.
pub(crate) fn validated(summary: Option<&Summary>, lines: &[Metrics]) -> BTreeMap<u64, f64> {
    let has_end = summary.is_some_and(|summary| summary.diverged_at.is_some());
    let lines = lines.iter().filter(|line| line.step > 0 && !has_end);
    lines.filter_map(|line| Some((line.step, line.val_loss?))).collect()
}

/// What is wrong with the records of a run, if something is.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn damage(folder: &Folder, config: &Config) -> Result<Option<String>> {
    match (intact::of_run(folder, config)?, folder.summary()?) {
        (None, Some(summary)) => probes_cut_short(folder, config, &summary),
        (fault, _) => Ok(fault),
    }
}

/// What an error says, without what would work: that is for who gave the command.
pub fn first_line(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Whether a folder has records of a run, whose configuration may be lost. The `summary.json` of an output
/// folder is a list of runs and none of these.
fn has_records(folder: &Folder) -> bool {
    folder.metrics_file().is_file() || matches!(folder.summary(), Ok(Some(_)))
}

/// The run folders at and below `path`, in the order of the manifest that lists them, else of their names:
/// what the others are compared with comes first. Also those that cannot be read as they lack their
/// configuration, for who asks for a folder of runs is to learn of each of them.
/// Planned runs that have no folder are listed by their recipes.
fn folders(path: &Path, depth: usize, found: &mut Contents) -> Result<()> {
    let folder = Folder::new(path);
    if folder.config_file().is_file() || has_records(&folder) {
        found.runs.push(path.to_owned());
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if depth == DEPTH => return Err(Error::io("read the folder", path, error)),
        Err(error) => {
            // One that vanished meanwhile held nothing.
            if error.kind() != ErrorKind::NotFound {
                found.closed.push(path.to_owned());
            }
            return Ok(());
        }
    };
    let mut below: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    // What a process is putting together, or was when it was killed, is no run yet.
    below.retain(|path| !whole::is_partial(path));
    below.sort();
    let before = found.runs.len();
    below.iter().try_for_each(|path| folders(path, depth - 1, found))?;
    // One that cannot be read is reported by who needs what it says.
    if let Ok(Some(manifest)) = Manifest::read(path) {
        let entries = manifest.runs.iter().enumerate();
        let places: HashMap<PathBuf, usize> =
            entries.map(|(i, entry)| (path.join(&entry.folder), i)).collect();
        let own = &mut found.runs[before..];
        own.sort_by_key(|run| places.get(run).copied().unwrap_or(usize::MAX));
        // Where a recipe was written otherwise, the hash at the end of the name says which run it is.
        let known: HashSet<String> = own.iter().filter_map(|run| hash_of(run)).collect();
        let is_there = |entry: &&Entry| {
            let folder = Path::new(&entry.folder);
            hash_of(folder).is_some_and(|hash| known.contains(&hash)) || path.join(folder).exists()
        };
        let planned = manifest.runs.iter().filter(|entry| !is_there(entry));
        found.not_begun.extend(planned.filter_map(|entry| entry.values.first().cloned()));
    }
    Ok(())
}

/// What lies at and below some paths.
#[derive(Default)]
struct Contents {
    runs: Vec<PathBuf>,
    not_begun: Vec<String>,
    /// Folders below the named ones that cannot be read.
    closed: Vec<PathBuf>,
}

impl Contents {
    /// What is wrong with the folders that cannot be read.
    fn broken(&self) -> Vec<Error> {
        let Some(first) = self.closed.first() else { return Vec::new() };
        let more = match self.closed.len() - 1 {
            0 => String::new(),
            more => format!(", nor can {more} more"),
        };
        vec![Error::new(format!("{} cannot be read{more}", printable_path(first)))]
    }
}

/// The hash at the end of the name of a run's folder.
fn hash_of(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.parse::<RunName>().ok()?.hash)
}

/// The folders of the runs at and below some paths, each once, and which folders below cannot be read.
///
/// # Errors
/// If a path cannot be read, or there is no run in one.
pub fn run_folders(paths: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<Error>)> {
    let found = find(paths)?;
    let broken = found.broken();
    Ok((found.runs, broken))
}

/// The recipes of the runs that are planned at and below some paths, and that nobody has begun: those of a
/// sweep or study, which makes the folder of a run when its turn comes.
///
/// # Errors
/// As [`run_folders`].
pub fn not_begun(paths: &[PathBuf]) -> Result<Vec<String>> {
    Ok(find(paths)?.not_begun)
}

fn find(paths: &[PathBuf]) -> Result<Contents> {
    let mut all = Contents::default();
    for path in paths {
        let path = &find_run(path);
        if !path.is_dir() {
            let what = if path.exists() { "is a file" } else { "does not exist" };
            return Err(Error::new(format!("{} {what}", printable_path(path)))
                .hint("name folders of runs, as `exmy train` writes them below runs/"));
        }
        let before = all.runs.len();
        folders(path, DEPTH, &mut all)?;
        if all.runs.len() == before {
            return Err(Error::new(format!("{} holds no run", printable_path(path)))
                .hint("a run's folder has a config.toml; name it, or a folder above it"));
        }
    }
    let mut known = HashSet::new();
    all.runs.retain(|path| known.insert(path.clone()));
    Ok(all)
}

/// The runs in some folders, and what is wrong with those that cannot be read: one broken run of a sweep
/// hides none of the others.
///
/// # Errors
/// If a folder cannot be read, there is no run in one, or no run can be read.
pub fn gather(paths: &[PathBuf]) -> Result<(Vec<RecordedRun>, Vec<Error>)> {
    let (mut configs, mut read, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    let (folders, closed) = run_folders(paths)?;
    for path in folders {
        let folder = Folder::new(&path);
        match (folder.config(), folder.metrics(), folder.summary()) {
            (Ok(config), Ok(metrics), Ok(summary)) => {
                configs.push((path.clone(), config));
                read.push((metrics, summary));
            }
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => broken.push(error),
        }
    }
    if configs.is_empty() && !broken.is_empty() {
        return Err(broken.swap_remove(0));
    }
    broken.extend(closed);
    let Names { runs, conditions } = names(&configs);
    let found = configs.into_iter().zip(runs.into_iter().zip(conditions)).zip(read);
    let run = |(((path, config), (name, condition)), (metrics, summary))| {
        let folder = Folder::new(path);
        RecordedRun { name, condition, folder, config, metrics, summary }
    };
    Ok((found.map(run).collect(), broken))
}

/// The runs that can be read and are as they were written, and what is wrong with the others.
///
/// # Errors
/// Those of [`gather`].
pub fn undamaged(paths: &[PathBuf]) -> Result<(Vec<RecordedRun>, Vec<Error>)> {
    let (mut runs, mut broken) = gather(paths)?;
    runs.retain(|run| {
        // What is drawn of changed records is not what was measured.
        let path = printable_path(run.folder.path());
        let damage = run.missing().map(|what| Error::new(format!("{path}: {what}")));
        let error = run.probes().err().or(damage);
        let is_whole = error.is_none();
        broken.extend(error);
        is_whole
    });
    Ok((runs, broken))
}

/// A run of which the records are not read yet: of many runs they are too much to hold at once.
#[derive(Clone, Debug)]
pub struct NamedRun {
    /// As that of a [`RecordedRun`].
    pub name: String,
    /// Its folder.
    pub folder: Folder,
    /// Its configuration.
    pub config: Config,
}

/// As [`gather`], of configurations alone.
///
/// # Errors
/// As [`gather`].
pub fn configured(paths: &[PathBuf]) -> Result<(Vec<NamedRun>, Vec<Error>)> {
    let (mut found, mut broken) = (Vec::new(), Vec::new());
    let (folders, closed) = run_folders(paths)?;
    for path in folders {
        match Folder::new(&path).config() {
            Ok(config) => found.push((path, config)),
            Err(error) => broken.push(error),
        }
    }
    if found.is_empty() && !broken.is_empty() {
        return Err(broken.swap_remove(0));
    }
    broken.extend(closed);
    let names = names(&found).runs;
    let run = |((path, config), name)| NamedRun { name, folder: Folder::new(path), config };
    Ok((found.into_iter().zip(names).map(run).collect(), broken))
}

/// The quantities of metrics that every run may have, in the order in which they are shown.
const OF_STEPS: [&str; 4] = ["loss", "val_loss", "grad_norm", "lr"];

/// The quantities that some runs have, each of which [has recorded](RecordedRun::recorded) so many: of
/// metrics, then probes by name.
pub fn quantities(recorded: &[BTreeSet<String>]) -> Vec<String> {
    let all: BTreeSet<&String> = recorded.iter().flatten().collect();
    let mut names: Vec<String> = all.into_iter().cloned().collect();
    let place = |name: &String| OF_STEPS.iter().position(|known| known == name);
    names.sort_by_key(|name| place(name).unwrap_or(OF_STEPS.len()));
    names
}
