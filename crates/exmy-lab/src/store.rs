//! The folder that a study's runs lie in: the [runner](crate::runner) trains what is missing, and what is
//! there is read.
//!
//! ```text
//! DIR/manifest.json  which study it is
//! DIR/runs/NAME/     one run each, named by its contents
//! ```

use crate::curves::{Curves, Probed, Record};
use crate::run_config::RunConfig;
use crate::runner::{Entry, Kind, MakeProbes, Manifest, Run, Runner, run_path};
use crate::spikes::Judgement;
use crate::study_scale::StudyScale;
use exmy::error::{Error, Result};
use exmy::safetensors::given;
use exmy::shown::printable_path;
use exmy_train::train::config::Config;
use exmy_train::train::probe::{self, Line, registry};
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{Folder, Summary, intact};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A study's folder.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
    probes: MakeProbes,
    /// What stands in for runs.
    curves: Option<Arc<Curves>>,
    /// Whether runs that the curves lack are in the folder.
    adds: bool,
}

/// One complete run.
#[derive(Clone, Debug)]
pub struct Trained {
    /// Its folder.
    pub folder: Folder,
    /// Its result.
    pub summary: Summary,
    /// Its metrics, step by step; fewer if the record is thinned.
    pub metrics: Vec<Metrics>,
    /// Of a [thinned](crate::curves) record, what is said of the whole one.
    pub judged: Option<Judgement>,
    /// Of a thinned record, what is kept of its probes.
    probes: Probed,
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

    /// What a probe measured, step by step, with its parts.
    ///
    /// # Errors
    /// If the file cannot be read, or the record is thinned.
    pub fn probe(&self, name: &str) -> Result<Vec<Line>> {
        if self.judged.is_some() {
            let what = format!("these curves do not have what {name} measured, or not its parts");
            return Err(Error::new(what).hint(
                "train the figure without --curves at the same --scale; with --curves FILE, --save-curves \
                 FILE and the same --out the command then adds to the file what it needs of probes",
            ));
        }
        let lines = probe::read(&self.folder.probes_file())?;
        Ok(lines.into_iter().filter(|line| line.probe == name).collect())
    }

    /// Steps and values of a probe.
    ///
    /// # Errors
    /// If the file cannot be read, or the record is thinned and lacks them.
    pub fn values(&self, name: &str) -> Result<Vec<(f64, f64)>> {
        let point = |(step, value): (u64, f64)| (step as f64, value);
        // Where some are kept all are: what is not there was not measured.
        if !self.probes.is_empty() {
            return Ok(self.probes.get(name).into_iter().flatten().copied().map(point).collect());
        }
        let lines = self.probe(name)?;
        Ok(lines.iter().filter_map(value_at).map(point).collect())
    }

    /// Steps and values of all probes: of these, and of what else was measured.
    pub(crate) fn probed(&self, names: &[String]) -> Result<Probed> {
        if self.judged.is_some() {
            return Ok(self.probes.clone());
        }
        let mut all: Probed = names.iter().map(|name| (name.clone(), Vec::new())).collect();
        for line in probe::read(&self.folder.probes_file())? {
            if let Some(point) = value_at(&line) {
                all.entry(line.probe).or_default().push(point);
            }
        }
        Ok(all)
    }

    /// The loss that the run is judged by: the mean of the last tenth of its steps, infinite if it diverged.
    pub fn tail_loss(&self) -> f64 {
        self.summary.train_loss.unwrap_or(f64::INFINITY)
    }
}

fn value_at(line: &Line) -> Option<(u64, f64)> {
    Some((line.step, line.values.value?))
}

/// The complete runs of a store, by run.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    store: &'a Store,
}

impl Runs<'_> {
    /// Whether a run is complete.
    ///
    /// # Errors
    /// As [`Store::has`].
    pub fn has(&self, run: &RunConfig) -> Result<bool> {
        self.store.has(run)
    }

    /// The complete run of a configuration.
    ///
    /// # Errors
    /// If it is not complete, or its files cannot be read.
    pub fn of(&self, run: &RunConfig) -> Result<Trained> {
        let name = run.name();
        if let Some(curves) = &self.store.curves {
            if let Some(record) = self.store.thinned(&name)? {
                return Ok(Trained {
                    folder: Folder::new(curves.path().join(&name)),
                    summary: record.summary.clone(),
                    metrics: record.metrics(),
                    judged: Some(record.judged.clone()),
                    probes: record.probes.clone(),
                });
            }
            if !self.store.adds {
                let what = format!("{} lacks the run {name}", printable_path(curves.path()));
                return Err(Error::new(what).hint(
                    "the figure's runs have changed since: --curves with --save-curves trains those \
                     that are missing",
                ));
            }
        }
        let folder = self.store.folder(&name);
        let summary = folder.summary()?.ok_or_else(|| {
            Error::new(format!("the run {name} is not complete"))
                .hint("train the study's runs first: the same command without --shard")
        })?;
        let metrics = folder.metrics()?;
        let damaged = |what: String| {
            let path = printable_path(folder.path());
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
        config.start = run.config.start.clone();
        config.data.source = run.config.data.source.clone();
        if config != run.config {
            return Err(damaged("config.toml is not that of the run's name".into()));
        }
        if let Some(what) = probes_cut_short(&folder, &config, &summary)? {
            return Err(damaged(what));
        }
        Ok(Trained { folder, summary, metrics, judged: None, probes: Probed::new() })
    }
}

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
    // What diverged may have had nothing to measure at its end, and some probes have nothing to say at some
    // steps.
    let is_steady = |name: &String| registry::find(name).is_some_and(|entry| entry.steady);
    let steady = record.probes.iter().any(is_steady);
    let due = due.filter(|_| steady && summary.diverged_at.is_none());
    cut_short(&folder.probes_file(), due)
}

/// What is wrong with the probes of a complete run, if its file is missing or does not reach the last
/// step at which they were due.
#[doc(hidden)]
pub fn cut_short(path: &Path, due: Option<u64>) -> Result<Option<String>> {
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

/// Each run once, in order, with what it branches off from before it.
pub fn distinct(runs: &[RunConfig]) -> Vec<RunConfig> {
    fn add(run: &RunConfig, seen: &mut BTreeSet<String>, all: &mut Vec<RunConfig>) {
        if let Some((parent, step)) = &run.parent {
            add(parent, seen, all);
            debug_assert!(
                parent.config.record.checkpoints(*step, parent.config.train.steps),
                "a branch begins where its parent keeps a checkpoint"
            );
        }
        if seen.insert(run.name()) {
            all.push(run.clone());
        }
    }
    let (mut seen, mut all) = (BTreeSet::new(), Vec::new());
    runs.iter().for_each(|run| add(run, &mut seen, &mut all));
    all
}

impl Store {
    /// The folder at `path`, existing or not.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), probes: |_| Vec::new(), curves: None, adds: false }
    }

    /// A store without a folder, whose runs are those of some curves.
    pub fn drawn_from(curves: Arc<Curves>) -> Self {
        Self { curves: Some(curves), ..Self::new("") }
    }

    /// The same folder for the runs that some curves lack. What is whole in the folder is read there.
    #[must_use]
    pub fn beside(self, curves: Arc<Curves>) -> Self {
        Self { curves: Some(curves), adds: true, ..self }
    }

    /// What stands in for runs.
    pub(crate) fn curves(&self) -> Option<&Curves> {
        self.curves.as_deref()
    }

    /// Whether some of its runs are thinned.
    pub fn is_thinned(&self) -> bool {
        self.curves.is_some()
    }

    /// Whether runs can be trained into it.
    pub fn has_folder(&self) -> bool {
        self.curves.is_none() || self.adds
    }

    /// The thinned record of a run, unless the folder has the whole one.
    fn thinned(&self, name: &str) -> Result<Option<&Record>> {
        let kept = self.curves.as_ref().and_then(|curves| curves.run(name));
        let is_whole = kept.is_some() && self.adds && self.folder(name).summary()?.is_some();
        Ok(kept.filter(|_| !is_whole))
    }

    /// Those of some runs that are its folder's: curves do not have them, or the folder has them whole.
    ///
    /// # Errors
    /// If one goes on from a checkpoint of a run of which only curves are here.
    pub fn of_folder(&self, planned: &[RunConfig]) -> Result<Vec<RunConfig>> {
        let Some(curves) = &self.curves else { return Ok(planned.to_vec()) };
        let mut own = Vec::new();
        for run in planned {
            if self.thinned(&run.name())?.is_some() {
                continue;
            }
            own.push(run.clone());
            if let Some((parent, step)) = &run.parent
                && self.thinned(&parent.name())?.is_some()
                && self.folder(&run.name()).summary()?.is_none()
            {
                let what = format!(
                    "{} goes on from step {step} of {}, of which {} has no checkpoint",
                    run.name(),
                    parent.name(),
                    printable_path(curves.path())
                );
                return Err(
                    Error::new(what).hint("train this figure without --curves, from the beginning")
                );
            }
        }
        Ok(own)
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
        Folder::new(run_path(&self.path.join("runs"), name))
    }

    /// What is complete.
    pub fn runs(&self) -> Runs<'_> {
        Runs { store: self }
    }

    /// Whether a run is complete.
    ///
    /// # Errors
    /// If its summary is there and cannot be read.
    pub fn has(&self, run: &RunConfig) -> Result<bool> {
        Ok(self.summary(run)?.is_some())
    }

    /// The summary of a run, if it is complete.
    ///
    /// # Errors
    /// As [`Store::has`].
    pub fn summary(&self, run: &RunConfig) -> Result<Option<Summary>> {
        let name = run.name();
        match self.thinned(&name)? {
            Some(record) => Ok(Some(record.summary.clone())),
            None if self.has_folder() => self.folder(&name).summary(),
            None => Ok(None),
        }
    }

    /// Says in the folder that it holds the runs of a study.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn describe(&self, study: &str, scale: StudyScale, runs: &[Run]) -> Result<()> {
        std::fs::create_dir_all(&self.path)
            .map_err(|error| Error::io("create", &self.path, error))?;
        let of = |run: &Run| Entry {
            folder: format!("runs/{}", run.name),
            values: vec![run.config.recipe.to_string(), run.config.seed.to_string()],
            result: None,
        };
        let kind = Kind::Study { study: study.to_owned(), scale };
        let keys = ["recipe", "seed"].map(str::to_owned).to_vec();
        let found = Manifest::read(&self.path)?;
        let mut manifest = Manifest::new(kind, keys, runs.iter().map(of).collect());
        manifest.page = found.as_ref().and_then(|found| found.page.clone());
        // What stands there already is not written again.
        if found.as_ref() == Some(&manifest) { Ok(()) } else { manifest.write(&self.path) }
    }

    /// What trains its runs.
    pub fn runner(&self) -> Runner {
        Runner::new(self.path.join("runs")).with_probes(self.probes)
    }
}
