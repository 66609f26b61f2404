//! The folder that a study's runs lie in: what is missing is trained, what is there is read.
//!
//! ```text
//! DIR/runs/NAME/     one run each, named by its contents
//! ```
//!
//! Several runs are trained at once, each with one thread: small models use cores better that way, and the
//! bits are the same. A branch waits for the run it comes from. A study that was stopped goes on
//! where it was. Processes that share the folder divide the runs by their place in the plan, roots
//! with all their branches.

use crate::arm::Arm;
use crate::sweep::Shard;
use exmy::error::{Error, Result};
use exmy::parallel;
use exmy::safetensors::given;
use exmy_train::train::config::Config;
use exmy_train::train::data::Dataset;
use exmy_train::train::probe::{self, Line, Probe};
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{self, Folder, Summary, Watch, intact};
use exmy_train::train::start;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes the probes that a run has beside those that its configuration names.
pub type MakeProbes = fn(&Config) -> Vec<Box<dyn Probe>>;

/// A study's folder.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
    probes: MakeProbes,
}

/// What [`Store::train`] tells while it works, from any thread.
pub trait Progress: Sync {
    /// After each step of some run; `false` asks all to stop with checkpoints.
    fn step(&self) -> bool;
    /// After a run: its name, how many are complete now, of how many.
    fn end(&self, name: &str, done: usize, count: usize);
}

/// One complete run.
#[derive(Clone, Debug)]
pub struct Trained {
    /// Its folder.
    pub folder: Folder,
    /// Its result.
    pub summary: Summary,
    /// Its metrics, step by step.
    pub metrics: Vec<Metrics>,
}

impl Trained {
    /// Steps and training losses; a step without a finite loss is NaN.
    pub fn losses(&self) -> Vec<(f64, f64)> {
        let trained = self.metrics.iter().filter(|line| line.step > 0);
        trained.map(|line| (line.step as f64, line.loss.unwrap_or(f64::NAN))).collect()
    }

    /// Steps and gradient norms.
    pub fn norms(&self) -> Vec<(f64, f64)> {
        let trained = self.metrics.iter().filter(|line| line.step > 0);
        trained.map(|line| (line.step as f64, line.grad_norm.unwrap_or(f64::NAN))).collect()
    }

    /// What a probe measured, step by step.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn probe(&self, name: &str) -> Result<Vec<Line>> {
        let lines = probe::read(&self.folder.probes_file())?;
        Ok(lines.into_iter().filter(|line| line.probe == name).collect())
    }

    /// Steps and values of a probe.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn values(&self, name: &str) -> Result<Vec<(f64, f64)>> {
        let lines = self.probe(name)?;
        let pair = |line: &Line| Some((line.step as f64, line.values.value?));
        Ok(lines.iter().filter_map(pair).collect())
    }

    /// The loss that the run is judged by: the mean of the last tenth of its steps, infinite if it diverged.
    pub fn tail_loss(&self) -> f64 {
        self.summary.train_loss.unwrap_or(f64::INFINITY)
    }
}

/// The complete runs of a store, by arm.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    store: &'a Store,
}

impl Runs<'_> {
    /// The run of an arm.
    ///
    /// # Errors
    /// If it is not complete, or its files cannot be read.
    pub fn of(&self, arm: &Arm) -> Result<Trained> {
        let folder = self.store.folder(&arm.name());
        let summary = folder.summary()?.ok_or_else(|| {
            Error::new(format!("the run {} is not complete", arm.name()))
                .hint("train the study's runs first: the same command without --shard")
        })?;
        let metrics = folder.metrics()?;
        let damaged = |what: String| {
            let path = folder.path().display();
            Error::new(format!("{path}: {what}")).hint("remove this folder; it is trained again")
        };
        let last = metrics.last().map_or(0, |line| line.step);
        if last != summary.steps || metrics.len() as u64 != last + 1 {
            return Err(damaged(format!(
                "metrics.jsonl has {} lines up to step {last}, the summary says {} steps",
                metrics.len(),
                summary.steps
            )));
        }
        let mut config = folder.config()?;
        if let Some(what) = intact::of_run(&folder, &config)? {
            return Err(damaged(what));
        }
        config.start = arm.config.start.clone();
        config.data.source = arm.config.data.source.clone();
        if config != arm.config {
            return Err(damaged("config.toml is not that of the run's name".into()));
        }
        if let Some(what) = probes_cut_short(&folder, &config, &summary)? {
            return Err(damaged(what));
        }
        Ok(Trained { folder, summary, metrics })
    }
}

/// What would work where a run is somebody else's.
const SHARED: &str = "another process works on it: wait for it or stop it; processes share a study if each \
                      is given a part of it, --shard 0/2 and --shard 1/2, say";

/// How names of probes begin that measure something at each step that is due, whatever the recipe. Others may have nothing to
/// say: `rounding` where nothing is rounded, what compares gradients where one is 0.
const STEADY: [&str; 13] = [
    "lastbin.",
    "norms",
    "hot",
    "channels",
    "phi",
    "logits",
    "kurtosis",
    "spikes",
    "products",
    "attention",
    "gates",
    "swiglu",
    "activations",
];

/// What is wrong with the probes that a complete run's configuration names, if something is.
pub(crate) fn probes_cut_short(
    folder: &Folder,
    config: &Config,
    summary: &Summary,
) -> Result<Option<String>> {
    let record = &config.record;
    if record.probes.is_empty() {
        return Ok(None);
    }
    // A branch has the lines of its own steps.
    let own = config.start.step + 1..=summary.steps;
    let due = own.rev().find(|&step| record.probes_at(step));
    // What diverged may have had nothing to measure at its end, and some probes have nothing to say at some steps.
    let is_steady = |name: &String| STEADY.iter().any(|word| name.starts_with(word));
    let steady = record.probes.iter().any(is_steady);
    let due = due.filter(|_| steady && summary.diverged_at.is_none());
    cut_short(&folder.probes_file(), due)
}

/// What is wrong with the probes of a complete run, if its file is missing or does not reach the last
/// step at which they were due.
fn cut_short(path: &Path, due: Option<u64>) -> Result<Option<String>> {
    let text = match given::lines(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Some("probes.jsonl is missing".into()));
        }
        Err(error) => return Err(Error::io("read", path, error)),
    };
    if text.is_empty() {
        return Ok(due.map(|due| format!("probes.jsonl is empty, and probes were due at {due}")));
    }
    let Some(whole) = text.strip_suffix(b"\n") else {
        return Ok(Some("probes.jsonl ends within a line".into()));
    };
    let last = whole.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    let step = serde_json::from_slice::<Line>(last).map(|line| line.step).ok();
    Ok(match (step, due) {
        (None, _) => Some("the last line of probes.jsonl is none of a probe".into()),
        (Some(step), Some(due)) if step != due => {
            Some(format!("probes.jsonl ends at step {step}, and probes were due at {due}"))
        }
        _ => None,
    })
}

/// Stops a run when the others stop.
struct Stopping<'a> {
    progress: &'a dyn Progress,
    stop: &'a AtomicBool,
}

impl Watch for Stopping<'_> {
    fn step(&mut self, _: &Metrics, _: u64) -> bool {
        if !self.progress.step() {
            self.stop.store(true, Ordering::Relaxed);
        }
        !self.stop.load(Ordering::Relaxed)
    }

    fn phase(&mut self, _: &str) {}
}

/// What is left to do.
struct Queue<'a> {
    /// In the order of the plan, parents first.
    waiting: Vec<&'a Arm>,
    done: BTreeSet<String>,
    error: Option<Error>,
}

impl<'a> Queue<'a> {
    /// The next arm whose parent is complete.
    fn next(&mut self) -> Option<&'a Arm> {
        let ready = |arm: &&Arm| {
            arm.parent.as_ref().is_none_or(|(parent, _)| self.done.contains(&parent.name()))
        };
        let at = self.waiting.iter().position(ready)?;
        Some(self.waiting.remove(at))
    }
}

/// What arms learn from: the study's text, those of arms that name another, and nothing.
struct Texts<'a> {
    own: &'a Dataset,
    /// By fingerprint.
    others: BTreeMap<String, Dataset>,
    drawn: Dataset,
}

impl<'a> Texts<'a> {
    fn new(own: &'a Dataset, arms: &[&Arm]) -> Result<Self> {
        let (known, mut others) = (format!("{:016x}", own.fingerprint), BTreeMap::new());
        for arm in arms.iter().filter(|arm| arm.config.model.decoder().is_some()) {
            let fingerprint = &arm.config.data.fingerprint;
            if *fingerprint != known && !others.contains_key(fingerprint) {
                others.insert(fingerprint.clone(), run::load_data(&mut arm.config.clone())?);
            }
        }
        Ok(Self { own, others, drawn: Dataset::drawn() })
    }

    fn of(&self, config: &Config) -> &Dataset {
        match config.model.decoder() {
            None => &self.drawn,
            Some(_) => self.others.get(&config.data.fingerprint).unwrap_or(self.own),
        }
    }
}

/// Each arm once, in order, with what it branches off from before it.
pub fn distinct(arms: &[Arm]) -> Vec<Arm> {
    fn add(arm: &Arm, seen: &mut BTreeSet<String>, all: &mut Vec<Arm>) {
        if let Some((parent, step)) = &arm.parent {
            add(parent, seen, all);
            debug_assert!(
                parent.config.record.checkpoints(*step, parent.config.train.steps),
                "a branch begins where its parent keeps a checkpoint"
            );
        }
        if seen.insert(arm.name()) {
            all.push(arm.clone());
        }
    }
    let (mut seen, mut all) = (BTreeSet::new(), Vec::new());
    arms.iter().for_each(|arm| add(arm, &mut seen, &mut all));
    all
}

/// Those of `arms`, each of which is there once, that are a shard's: roots by their place, with all that
/// branch off from them.
pub fn share(arms: &[Arm], shard: Shard) -> Vec<Arm> {
    let mut roots: Vec<String> = Vec::new();
    let mut is_own = |arm: &Arm| {
        let root = arm.root().name();
        let at = roots.iter().position(|known| *known == root).unwrap_or(roots.len());
        if at == roots.len() {
            roots.push(root);
        }
        at as u64 % shard.count() == shard.index()
    };
    arms.iter().filter(|arm| is_own(arm)).cloned().collect()
}

impl Store {
    /// The folder at `path`, existing or not.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), probes: |_| Vec::new() }
    }

    /// The same, whose runs are trained with further probes.
    #[must_use]
    pub fn with_probes(self, probes: MakeProbes) -> Self {
        Self { probes, ..self }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of a run.
    pub fn folder(&self, name: &str) -> Folder {
        Folder::new(self.path.join("runs").join(name))
    }

    /// What is complete.
    pub fn runs(&self) -> Runs<'_> {
        Runs { store: self }
    }

    /// Whether the run of an arm is complete.
    ///
    /// # Errors
    /// If its summary is there and cannot be read.
    pub fn has(&self, arm: &Arm) -> Result<bool> {
        Ok(self.folder(&arm.name()).summary()?.is_some())
    }

    /// The configuration of an arm as it is trained: a branch with the path of its parent.
    fn settled(&self, arm: &Arm) -> Result<Config> {
        let mut config = arm.config.clone();
        if let Some((parent, step)) = &arm.parent {
            let folder = self.folder(&parent.name());
            let path = folder.path().to_str().ok_or_else(|| {
                Error::new(format!("{}: the path is not UTF-8", folder.path().display()))
            })?;
            config.start.run = path.to_owned();
            config.start.step = *step;
            start::settle(&mut config)?;
        }
        Ok(config)
    }

    /// Begins or continues the run of an arm; whether it is complete. `texts` are those that arms learn.
    fn advance(&self, arm: &Arm, texts: &Texts<'_>, watch: &mut dyn Watch) -> Result<bool> {
        let folder = self.folder(&arm.name());
        if !folder.config_file().is_file() {
            if folder.path().exists() {
                // Left by a kill before there was anything to lose.
                std::fs::remove_dir_all(folder.path())
                    .map_err(|error| Error::io("remove", folder.path(), error))?;
            }
            folder.create(&self.settled(arm)?).map_err(|error| {
                // Nothing was there a moment ago.
                if folder.path().exists() { error.hint(SHARED) } else { error }
            })?;
        }
        let probes = (self.probes)(&arm.config);
        Ok(run::train_probed(&folder, texts.of(&arm.config), watch, probes)?.summary.is_some())
    }

    /// Trains what of `arms` is this shard's and not complete, `jobs` at a time; `false` if `progress`
    /// asked to stop.
    ///
    /// # Errors
    /// If files cannot be read or written, or a run cannot be trained.
    pub fn train(
        &self,
        arms: &[Arm],
        data: &Dataset,
        (shard, jobs): (Shard, usize),
        progress: &dyn Progress,
    ) -> Result<bool> {
        let runs = self.path.join("runs");
        std::fs::create_dir_all(&runs).map_err(|error| Error::io("create", &runs, error))?;
        let own = share(&distinct(arms), shard);
        let (mut waiting, mut done) = (Vec::new(), BTreeSet::new());
        for arm in &own {
            if self.has(arm)? {
                done.insert(arm.name());
            } else {
                waiting.push(arm);
            }
        }
        let texts = Texts::new(data, &waiting)?;
        let (count, left) = (own.len(), waiting.len());
        let queue = Mutex::new(Queue { waiting, done, error: None });
        let stop = AtomicBool::new(false);
        let lock = || queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let work = || {
            while !stop.load(Ordering::Relaxed) {
                let Some(arm) = lock().next() else {
                    if lock().waiting.is_empty() {
                        return;
                    }
                    // What is left waits for a run that another thread is at.
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    continue;
                };
                let mut watch = Stopping { progress, stop: &stop };
                let trained = parallel::with_threads(1, || self.advance(arm, &texts, &mut watch));
                let trained = trained
                    .map_err(|error| Error::new("cannot start threads").because(error))
                    .and_then(|outcome| outcome);
                match trained {
                    Ok(true) => {
                        let mut queue = lock();
                        queue.done.insert(arm.name());
                        progress.end(&arm.name(), queue.done.len(), count);
                    }
                    Ok(false) => stop.store(true, Ordering::Relaxed),
                    Err(error) => {
                        let folder = self.folder(&arm.name());
                        let path = folder.path().display().to_string();
                        // Some name it themselves.
                        let named = error.to_string().contains(&path);
                        let error =
                            if named { error } else { Error::new(format!("{path}: {error}")) };
                        let error = match run::is_at_work(&folder) {
                            true => error.hint(SHARED),
                            false => error,
                        };
                        lock().error.get_or_insert(error);
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..jobs.min(left) {
                scope.spawn(work);
            }
            work();
        });
        let Queue { error, .. } =
            queue.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        match error {
            Some(error) => Err(error),
            None => Ok(!stop.into_inner()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn probes_that_end_early_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("probes.jsonl");
        let of = |text: &str, due: Option<u64>| {
            fs::write(&path, text).unwrap();
            cut_short(&path, due).unwrap()
        };
        let line = |step: u64| {
            format!("{{\"step\":{step},\"probe\":\"norms\",\"value\":1.0,\"parts\":{{}}}}\n")
        };
        let two = line(5) + &line(10);
        assert_eq!(of(&two, Some(10)), None);
        assert_eq!(of(&two, None), None, "a run that diverged");
        assert!(of(&two, Some(15)).unwrap().contains("ends at step 10, and probes were due at 15"));
        assert!(of(&two[..two.len() - 5], Some(10)).unwrap().contains("within a line"));
        assert!(of("none\n", Some(10)).unwrap().contains("none of a probe"));
        assert!(of("", Some(10)).unwrap().contains("is empty") && of("", None).is_none());
        let nowhere = folder.path().join("nowhere");
        assert!(cut_short(&nowhere, None).unwrap().unwrap().contains("missing"));
    }
}
