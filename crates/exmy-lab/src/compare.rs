//! Runs set against the first of them: what was configured otherwise, what came of it, and at which step
//! their records part.
//!
//! Runs of one seed see the same batches, so a run is compared with the run of its own seed that repeats the
//! first one, where there is such a run.
//!
//! Runs of one configuration record the same bytes ([`exmy_train::train::run`]), so the first step at which
//! two records differ is where something else was computed. It is step 0 or 1 where recipe or weights differ,
//! a later one where a rule or a branch changed something.

use crate::gather::{self, NamedRun, damage, validated};
use crate::keys::{Keys, keys, repeats};
use crate::runner::differ;
use crate::table::gap_percent;
use exmy::error::{Error, Result};
use exmy_train::train::config::Config;
use exmy_train::train::record::Metrics;
use exmy_train::train::run::Summary;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use toml::Value;

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// What distinguishes it from the others.
    pub name: String,
    /// Its folder.
    pub path: std::path::PathBuf,
    /// The recipe's text.
    pub recipe: String,
    /// Its seed.
    pub seed: u64,
    /// Whether it has its result.
    pub complete: bool,
    /// The step at which it diverged.
    pub diverged_at: Option<u64>,
    /// Steps done.
    pub step: u64,
    /// Steps it is to do.
    pub steps: u64,
    /// Mean training loss at its end.
    pub train_loss: Option<f64>,
    /// The last validation loss.
    pub val_loss: Option<f64>,
    /// The path of the run that it is compared with; none of the first run.
    pub compared_with: Option<std::path::PathBuf>,
    /// Whether that one has another seed: a difference is then also of batches and first weights.
    pub other_seed: bool,
    /// How much its validation loss is above that of that run, in percent, at `gap_step`.
    pub gap_percent: Option<f64>,
    /// The last step at which both measured it.
    pub gap_step: Option<u64>,
    /// How its records differ from those of that run.
    pub records: Records,
    /// What is wrong with its records: a file was lost, cut or edited.
    pub damage: Option<String>,
}

/// How the lines of `metrics.jsonl` of two runs differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Records {
    /// It is the first run.
    First,
    /// Not at all.
    Same,
    /// All lines that both have are the same, and one has more.
    SameUpTo {
        /// The last step of both.
        step: u64,
    },
    /// From a step on.
    Differ {
        /// The first step.
        step: u64,
        /// The keys of its line that differ.
        keys: Vec<String>,
    },
}

/// A key of the configuration, and the value that each run has; `None` where it has none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyDifference {
    /// The key as `--set` takes it.
    pub key: String,
    /// The values as TOML.
    pub values: Vec<Option<String>>,
}

/// The comparison of some runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The runs; the others are compared with the first or with its repetition of their seed.
    pub runs: Vec<Compared>,
    /// The keys in which they differ.
    pub configuration: Vec<KeyDifference>,
}

/// In what some configurations differ.
pub fn differences(configs: &[&Config]) -> Vec<KeyDifference> {
    let all: Vec<Keys> = configs.iter().map(|config| keys(config)).collect();
    let names: BTreeSet<&String> = all.iter().flat_map(Keys::keys).collect();
    let of = |key: &String| KeyDifference {
        key: key.clone(),
        values: all.iter().map(|keys| keys.get(key).map(Value::to_string)).collect(),
    };
    let different = |found: &KeyDifference| differ(found.values.iter());
    names.into_iter().map(of).filter(different).collect()
}

/// How the lines of two runs differ.
pub fn records(first: &[Metrics], other: &[Metrics]) -> Records {
    match first.iter().zip(other).find(|(a, b)| a != b) {
        Some((a, b)) => {
            let keys = |line: &Metrics| match serde_json::to_value(line) {
                Ok(serde_json::Value::Object(keys)) => keys,
                _ => serde_json::Map::new(),
            };
            let (a, b) = (keys(a), keys(b));
            let all: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let differ = all.into_iter().filter(|key| a.get(*key) != b.get(*key)).cloned();
            let step = b.get("step").and_then(serde_json::Value::as_u64).unwrap_or(0);
            Records::Differ { step, keys: differ.collect() }
        }
        None if first.len() == other.len() => Records::Same,
        None => {
            let both = first.len().min(other.len());
            let last = first[..both].last().map_or(0, |line| line.step);
            Records::SameUpTo { step: last }
        }
    }
}

/// The gap of a run to the first one, and the step at which it was measured.
pub fn gap(first: &BTreeMap<u64, f64>, other: &BTreeMap<u64, f64>) -> Option<(f64, u64)> {
    let (step, loss) = other.iter().rev().find(|(step, _)| first.contains_key(step))?;
    Some((gap_percent(*loss, first[step]), *step))
}

/// Compares runs with the first of them, or with that one's repetition of their seed, and says what is wrong
/// with those that cannot be read. The records of the first run and its repetitions are held, and of one run
/// more.
pub fn compare(runs: &[NamedRun]) -> (Comparison, Vec<Error>) {
    let mut bases: Vec<(&NamedRun, Base)> = Vec::new();
    for run in runs {
        let is_new = bases.iter().all(|(base, _)| base.config.seed != run.config.seed);
        let first = bases.first();
        if is_new && first.is_none_or(|(first, _)| repeats(&run.config, &first.config)) {
            bases.extend(Base::of(run).ok().map(|base| (run, base)));
        }
    }
    let (mut compared, mut configs, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    for run in runs {
        let is_other = |(base, _): &&(&NamedRun, Base)| !std::ptr::eq(*base, run);
        let same_seed =
            bases.iter().filter(is_other).find(|(base, _)| base.config.seed == run.config.seed);
        let base = same_seed.or(bases.first().filter(is_other));
        match of_run(run, base.map(|(base, held)| (*base, held))) {
            Ok(found) => {
                compared.push(found);
                configs.push(&run.config);
            }
            Err(error) => broken.push(error),
        }
    }
    (Comparison { runs: compared, configuration: differences(&configs) }, broken)
}

/// What is held of a run that others are compared with.
struct Base {
    lines: Vec<Metrics>,
    summary: Option<Summary>,
    /// Validation losses by step, and their unit.
    losses: BTreeMap<u64, f64>,
    unit: &'static str,
}

impl Base {
    fn of(run: &NamedRun) -> Result<Self> {
        let (lines, summary) = (run.folder.metrics()?, run.folder.summary()?);
        let (losses, unit) = (validated(summary.as_ref(), &lines), run.config.model.loss_unit());
        Ok(Self { lines, summary, losses, unit })
    }
}

/// A run compared with another one.
fn of_run(run: &NamedRun, base: Option<(&NamedRun, &Base)>) -> Result<Compared> {
    let Base { lines, summary, losses, unit } = &Base::of(run)?;
    // Losses of different kinds have no gap.
    let gap = base.filter(|(_, of)| of.unit == *unit).and_then(|(_, of)| gap(&of.losses, losses));
    let [train_loss, val_loss] = gather::losses(summary.as_ref(), lines);
    Ok(Compared {
        name: run.name.clone(),
        path: run.folder.path().to_owned(),
        recipe: run.config.recipe.to_string(),
        seed: run.config.seed,
        complete: summary.is_some(),
        diverged_at: summary.as_ref().and_then(|summary| summary.diverged_at),
        step: lines.last().map_or(0, |line| line.step),
        steps: run.config.train.steps,
        train_loss,
        val_loss,
        compared_with: base.map(|(other, _)| other.folder.path().to_owned()),
        other_seed: base.is_some_and(|(other, _)| other.config.seed != run.config.seed),
        gap_percent: gap.map(|(percent, _)| percent),
        gap_step: gap.map(|(_, step)| step),
        records: base.map_or(Records::First, |(_, of)| records(&of.lines, lines)),
        damage: damage(&run.folder, &run.config)?,
    })
}
