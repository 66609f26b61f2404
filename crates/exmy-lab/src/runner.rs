//! Named runs in a folder, trained by any number of threads and processes.
//!
//! A [`Run`] is a configuration under a name; `exmy train`, `exmy sweep` and `exmy study` each make a list of
//! them, and [`Runner::work`] trains those that are not complete. A run is named by its contents
//! (`content_name`), so all processes find the same names, and nobody keeps a list of what is done. A run
//! with a `summary.json` is complete. A process claims a run by a lock on it, which ends with the process,
//! however that ends; then whoever comes next goes on from the last checkpoint. So processes that share a
//! folder need no server. A [`Shard`] divides the runs by their place in the list, with all that branches off
//! from them.
//!
//! What the folder is stands in its [`manifest`](Manifest); an [`OutFolder`] is one with its results.

mod file;
#[doc(hidden)]
pub mod labels;
mod manifest;
mod old;
#[doc(hidden)]
pub mod out;
#[doc(hidden)]
pub mod shard;
mod texts;

pub(crate) use labels::conditions;
pub use labels::differ;
pub use manifest::{Entry, Kind, Manifest, Page};
pub use out::{OutFolder, Status, find_run, refuse_used};
pub use shard::{ParseShardError, Shard};

use crate::device::Place;
use crate::device_slots::{self, DeviceSlots};
use crate::run_name::RunName;
use exmy::error::{Error, Result};
use exmy::parallel;
use exmy::safetensors::whole;
use exmy::shown::printable_path;
use exmy_train::train::config::Config;
use exmy_train::train::data::{Dataset, Source};
use exmy_train::train::fingerprint::Fingerprint;
use exmy_train::train::fit;
use exmy_train::train::probe::Probe;
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{self, Folder, Job, Outcome, Watch};
use exmy_train::train::start;
use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use texts::Texts;

/// The grid of a [sweep](mod@crate::sweep), spelled out.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The keys of the grid, `recipe` first and `seed` last.
    pub keys: Vec<String>,
    /// The runs: the last key changes fastest. Their names are `RECIPE-HASH`.
    pub runs: Vec<Run>,
    /// The values of the keys of each run.
    pub values: Vec<Vec<String>>,
}

/// Makes the probes that a run has in addition to those that its configuration names.
pub type MakeProbes = fn(&Config) -> Vec<Box<dyn Probe>>;

/// A run that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The name of its folder.
    pub name: String,
    /// All of it; of a branch, without the path of the run it comes from.
    pub config: Config,
    /// The name of the run that it branches off from, and at which step.
    pub parent: Option<(String, u64)>,
}

/// A name in characters every file system takes.
pub(crate) fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.@+=".contains(c) { c } else { '_' };
    name.chars().map(plain).collect()
}

/// A name for a configuration: `words`, of which at most so many characters are taken, and a hash of what
/// determines the run's bits, with the contents of files in place of their paths. `more` is hashed, too.
#[doc(hidden)]
pub fn content_name((words, most): (&str, usize), config: &Config, more: &str) -> String {
    let mut content = config.clone();
    content.data.source = Source::default();
    (content.start.weights, content.start.run) = (String::new(), String::new());
    // As the version before wrote it: its runs are found under the same hash.
    let hash = Fingerprint::of((content.former_toml() + more).as_bytes()).to_string();
    RunName { words: plain(words).chars().take(most).collect(), hash }.to_string()
}

/// The folder of a run below `parent`. Where a recipe has been written otherwise since it was made, that is
/// the one whose name ends in the same hash.
pub(crate) fn run_path(parent: &Path, name: &str) -> PathBuf {
    let path = parent.join(name);
    if !name.contains("e4m3") || path.exists() {
        return path;
    }
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let hash = |name: &str| name.parse().ok().map(|name: RunName| name.hash);
    let is_same = |path: &PathBuf| {
        let found = path.file_name().and_then(|found| hash(found.to_str()?));
        found.is_some() && found == hash(name)
    };
    // A run whose folder a kill left half-made has the same hash.
    let mut whole = entries.map(|entry| entry.path()).filter(|path| !whole::is_partial(path));
    whole.find(is_same).unwrap_or(path)
}

/// Refuses runs of which one cannot be trained at a place, for want of memory or of tensor cores.
///
/// # Errors
/// If there is one; the error names it.
pub fn refuse_impossible<'a>(
    runs: impl IntoIterator<Item = (&'a str, &'a Config)>,
    place: &Place,
) -> Result<()> {
    let refusal = |(name, config)| {
        let error = fit::refusal(config).or_else(|| place.refuse(config).err());
        error.map(|error| (name, error))
    };
    match runs.into_iter().find_map(refusal) {
        Some((name, error)) => Err(Error::new(format!("{name}: {error}"))),
        None => Ok(()),
    }
}

/// The places of the runs that are a shard's, in order: those that are no branches by their place among
/// these, with all that branch off from them. A run's parent stands before it.
pub fn share(runs: &[Run], shard: Shard) -> Vec<usize> {
    let mut own = BTreeSet::new();
    let (mut roots, mut all) = (0, Vec::new());
    for (i, run) in runs.iter().enumerate() {
        let is_own = match &run.parent {
            Some((parent, _)) => own.contains(parent.as_str()),
            None => {
                roots += 1;
                (roots - 1) % shard.count() == shard.index()
            }
        };
        if is_own {
            own.insert(run.name.as_str());
            all.push(i);
        }
    }
    all
}

/// What trains a run, watched by what it is called with.
pub type Train<'a> = &'a mut dyn FnMut(&mut dyn Watch) -> Result<Outcome>;

/// What a [`Runner`] reports while it works, from any thread.
pub trait Progress: Sync {
    /// Trains run `index` of the list by calling `train` with what watches it. The data are those it learns.
    ///
    /// # Errors
    /// Those of `train`.
    fn run(&self, index: usize, data: &Dataset, train: Train<'_>) -> Result<Outcome>;

    /// Whether to go on; looked at between runs.
    fn goes_on(&self) -> bool;

    /// Before it waits for other processes, which have so many of the runs.
    fn waits(&self, _runs: usize) {}
}

/// Shows nothing and never stops.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Watch for Silent {
    fn step(&mut self, _: &Metrics, _: u64) -> bool {
        true
    }

    fn phase(&mut self, _: &str) {}
}

impl Progress for Silent {
    fn run(&self, _: usize, _: &Dataset, train: Train<'_>) -> Result<Outcome> {
        train(&mut Self)
    }

    fn goes_on(&self) -> bool {
        true
    }
}

/// How [`Runner::work`] ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Whether the progress asked to stop.
    pub stopped: bool,
    /// Names of runs that were left to other processes, which work on them or on what they branch off from.
    pub left: Vec<String>,
}

/// Trains runs in one folder.
#[derive(Clone, Debug)]
pub struct Runner {
    path: PathBuf,
    probes: MakeProbes,
    jobs: usize,
    shard: Shard,
    steals: bool,
    waits: bool,
    place: Place,
}

/// Stops a run when the others stop.
struct Stopping<'a> {
    watch: &'a mut dyn Watch,
    stop: &'a AtomicBool,
}

impl Watch for Stopping<'_> {
    fn begin(&mut self) {
        self.watch.begin();
    }

    fn step(&mut self, metrics: &Metrics, steps: u64) -> bool {
        self.watch.step(metrics, steps) && !self.stop.load(Ordering::Relaxed)
    }

    fn phase(&mut self, what: &str) {
        self.watch.phase(what);
    }
}

/// What became of one run.
enum RunState {
    Complete,
    Stopped,
    /// Another process has it.
    Busy,
}

/// What is left to do.
#[derive(Default)]
struct Queue {
    /// Places in the list.
    waiting: VecDeque<usize>,
    /// At which a thread of this process is.
    active: usize,
    /// At which another process was when it was last looked at.
    busy: Vec<usize>,
    error: Option<Error>,
}

/// How long to wait for threads of this process, and for other processes.
const SOON: Duration = Duration::from_millis(20);
#[doc(hidden)]
pub const LATER: Duration = Duration::from_millis(200);

/// One call of [`Runner::work`].
struct Work<'a> {
    runner: &'a Runner,
    runs: &'a [Run],
    texts: Texts,
    progress: &'a dyn Progress,
    queue: Mutex<Queue>,
    done: Mutex<BTreeSet<&'a str>>,
    stop: AtomicBool,
    /// Whether it was said that other processes are waited for.
    reported: AtomicBool,
    /// Who is on the device.
    slots: DeviceSlots,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Runner {
    /// For runs in folders below `path`, one at a time with all threads, all of them.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let (jobs, shard) = (1, Shard::ALL);
        let place = Place::default();
        let path = path.into();
        Self { path, probes: |_| Vec::new(), jobs, shard, steals: false, waits: false, place }
    }

    /// The same with further probes.
    #[must_use]
    pub fn with_probes(self, probes: MakeProbes) -> Self {
        Self { probes, ..self }
    }

    /// The same, with so many runs at once of one thread each. Small models use cores better that way, and
    /// the bits are the same.
    #[must_use]
    pub fn with_jobs(self, jobs: usize) -> Self {
        Self { jobs, ..self }
    }

    /// The same on a device.
    #[must_use]
    pub fn on(self, place: Place) -> Self {
        Self { place, ..self }
    }

    /// The same with a part of the runs.
    #[must_use]
    pub fn with_shard(self, shard: Shard) -> Self {
        Self { shard, ..self }
    }

    /// The same; after its own part it trains what is left of the others'.
    #[must_use]
    pub fn stealing(self, steals: bool) -> Self {
        Self { steals, ..self }
    }

    /// The same; it waits for runs that other processes work on, and takes over what they leave.
    #[must_use]
    pub fn waiting(self) -> Self {
        Self { waits: true, ..self }
    }

    /// The folder of a run.
    pub fn folder(&self, name: &str) -> Folder {
        Folder::new(run_path(&self.path, name))
    }

    /// Trains what of `runs` is this shard's, not complete and not another process's. `known` are data that
    /// are loaded already.
    ///
    /// # Errors
    /// If files cannot be read or written, or a run cannot be trained. The other runs are stopped with
    /// checkpoints.
    pub fn work(
        &self,
        runs: &[Run],
        known: Option<Arc<Dataset>>,
        progress: &dyn Progress,
    ) -> Result<End> {
        std::fs::create_dir_all(&self.path)
            .map_err(|error| Error::io("create", &self.path, error))?;
        let own = share(runs, self.shard);
        let mut order = own.clone();
        if self.steals {
            order.extend((0..runs.len()).filter(|i| own.binary_search(i).is_err()));
        }
        let (mut waiting, mut done) = (VecDeque::new(), BTreeSet::new());
        for i in order {
            match self.folder(&runs[i].name).summary()? {
                Some(_) => drop(done.insert(runs[i].name.as_str())),
                None => waiting.push_back(i),
            }
        }
        let jobs = self.jobs.min(waiting.len());
        let work = Work {
            runner: self,
            runs,
            texts: Texts::new(known),
            progress,
            queue: Mutex::new(Queue { waiting, ..Queue::default() }),
            done: Mutex::new(done),
            stop: AtomicBool::new(false),
            reported: AtomicBool::new(false),
            slots: self.place.slots()?,
        };
        std::thread::scope(|scope| {
            for _ in 1..jobs {
                // Where no more threads can be had, those that began do the work.
                if std::thread::Builder::new().spawn_scoped(scope, || work.thread()).is_err() {
                    break;
                }
            }
            work.thread();
        });
        let stopped = work.stop.into_inner();
        let queue = work.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = queue.error {
            return Err(error);
        }
        // Where the progress asked to stop, those that wait are left to nobody.
        let waiting = queue.waiting.iter().filter(|_| !stopped);
        let left = queue.busy.iter().chain(waiting).map(|&i| runs[i].name.clone());
        Ok(End { stopped, left: left.collect() })
    }
}

impl Work<'_> {
    /// Takes runs until there are no more.
    fn thread(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            if !self.progress.goes_on() {
                self.stop.store(true, Ordering::Relaxed);
                return;
            }
            let mut queue = lock(&self.queue);
            let Some(index) = self.next(&mut queue) else {
                let busy = if self.runner.waits { queue.busy.len() } else { 0 };
                if queue.active > 0 && busy + queue.waiting.len() > 0 {
                    drop(queue);
                    // What is left waits for a run that another thread is at.
                    std::thread::sleep(SOON);
                    continue;
                }
                if busy == 0 {
                    return;
                }
                let again: Vec<usize> = queue.busy.drain(..).collect();
                queue.waiting.extend(again);
                drop(queue);
                if !self.reported.swap(true, Ordering::Relaxed) {
                    self.progress.waits(busy);
                }
                std::thread::sleep(LATER);
                continue;
            };
            queue.active += 1;
            drop(queue);
            let state = self.advance(index);
            let mut queue = lock(&self.queue);
            queue.active -= 1;
            match state {
                Ok(RunState::Complete) => {
                    lock(&self.done).insert(self.runs[index].name.as_str());
                }
                Ok(RunState::Busy) => queue.busy.push(index),
                Ok(RunState::Stopped) => self.stop.store(true, Ordering::Relaxed),
                Err(error) => {
                    let path = printable_path(self.folder(index).path());
                    // Some name it themselves.
                    let named = error.to_string().contains(&path);
                    let error = if named { error } else { Error::new(format!("{path}: {error}")) };
                    queue.error.get_or_insert(error);
                    self.stop.store(true, Ordering::Relaxed);
                }
            }
        }
    }

    fn folder(&self, index: usize) -> Folder {
        self.runner.folder(&self.runs[index].name)
    }

    /// The next run whose parent is complete.
    fn next(&self, queue: &mut Queue) -> Option<usize> {
        let done = lock(&self.done);
        let is_ready = |&i: &usize| {
            let parent = self.runs[i].parent.as_ref();
            parent.is_none_or(|(parent, _)| done.contains(parent.as_str()))
        };
        let at = queue.waiting.iter().position(is_ready)?;
        queue.waiting.remove(at)
    }

    /// Begins or continues a run.
    fn advance(&self, index: usize) -> Result<RunState> {
        let (run, folder) = (&self.runs[index], self.folder(index));
        let goes_on = || !self.stop.load(Ordering::Relaxed) && self.progress.goes_on();
        let Some(_slot) = self.slots.take(device_slots::need(&run.config), goes_on) else {
            return Ok(RunState::Stopped);
        };
        if !folder.config_file().is_file() {
            folder.create(&self.settled(run)?)?;
        }
        let Some(lock) = run::lock(&folder)? else { return Ok(RunState::Busy) };
        // It may have been completed between the look and the lock.
        if folder.summary()?.is_some() {
            return Ok(RunState::Complete);
        }
        let data = self.texts.of(&run.config)?;
        let mut train = |watch: &mut dyn Watch| {
            let mut watch = Stopping { watch, stop: &self.stop };
            let probes = (self.runner.probes)(&run.config);
            self.runner.place.train(Job::new(&folder, &data, &mut watch, &lock).with_probes(probes))
        };
        let outcome = if self.runner.jobs > 1 {
            parallel::with_threads(1, || self.progress.run(index, &data, &mut train))
                .map_err(|error| Error::new("cannot start threads").because(error))??
        } else {
            self.progress.run(index, &data, &mut train)?
        };
        Ok(if outcome.summary.is_some() { RunState::Complete } else { RunState::Stopped })
    }

    /// The configuration of a run as it is trained: a branch with the path of its parent.
    fn settled(&self, run: &Run) -> Result<Config> {
        let mut config = run.config.clone();
        if let Some((parent, step)) = &run.parent {
            let folder = self.runner.folder(parent);
            config.start.run = utf8(folder.path())?.to_owned();
            config.start.step = *step;
            start::settle(&mut config)?;
        }
        Ok(config)
    }
}

/// A path as text, as records hold it.
fn utf8(path: &Path) -> Result<&str> {
    path.to_str()
        .ok_or_else(|| Error::new(format!("{}: the path is not UTF-8", printable_path(path))))
}
