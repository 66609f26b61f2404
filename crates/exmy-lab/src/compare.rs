//! Runs set against the first of them: what was configured otherwise, what came of it, and at which step
//! their records part.
//!
//! Runs of one configuration record the same bytes ([`exmy_train::train::run`]), so the first step at which
//! two records differ is where something else was computed: step 0 or 1 where recipe or weights differ, a
//! later one where a rule or a branch changed something.

use crate::gather::NamedRun;
use crate::inventory::recent_loss;
use crate::table::gap_percent;
use exmy::error::{Error, Result};
use exmy_train::train::config::Config;
use exmy_train::train::record::Metrics;
use exmy_train::train::run::{Summary, intact};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

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
    /// How much its validation loss is above that of the first run, in percent, at `gap_step`.
    pub gap_percent: Option<f64>,
    /// The last step at which both measured it.
    pub gap_step: Option<u64>,
    /// How its records differ from those of the first run.
    pub records: Records,
    /// What is wrong with its records: a file was lost, cut or edited.
    pub damage: Option<String>,
}

/// How the lines of `metrics.jsonl` of two runs differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Records {
    /// It is the run that the others are compared with.
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
pub struct Difference {
    /// The key as `--set` takes it.
    pub key: String,
    /// The values as TOML.
    pub values: Vec<Option<String>>,
}

/// The comparison of some runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The runs, the first of which the others are compared with.
    pub runs: Vec<Compared>,
    /// The keys in which they differ.
    pub configuration: Vec<Difference>,
}

/// The keys and values of a configuration, the keys as `--set` takes them.
fn flat(config: &Config) -> BTreeMap<String, String> {
    fn walk(prefix: &str, table: &toml::Table, keys: &mut BTreeMap<String, String>) {
        for (key, value) in table {
            let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            match value {
                toml::Value::Table(table) => walk(&key, table, keys),
                value => drop(keys.insert(key, value.to_string())),
            }
        }
    }
    let mut keys = BTreeMap::new();
    // It was written from a table, and is one.
    walk("", &config.to_toml().parse().unwrap_or_default(), &mut keys);
    keys
}

/// In what some configurations differ.
pub fn differences(configs: &[&Config]) -> Vec<Difference> {
    let all: Vec<_> = configs.iter().map(|config| flat(config)).collect();
    let keys: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    let of = |key: &String| Difference {
        key: key.clone(),
        values: all.iter().map(|config| config.get(key).cloned()).collect(),
    };
    let differ = |found: &Difference| found.values.iter().any(|value| *value != found.values[0]);
    keys.into_iter().map(of).filter(differ).collect()
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

/// The validation losses of a run by step.
fn validated(lines: &[Metrics]) -> BTreeMap<u64, f64> {
    lines.iter().filter_map(|line| Some((line.step, line.val_loss?))).collect()
}

/// The gap of a run to the first one, and the step at which it was measured.
pub fn gap(first: &BTreeMap<u64, f64>, other: &BTreeMap<u64, f64>) -> Option<(f64, u64)> {
    let (step, loss) = other.iter().rev().find(|(step, _)| first.contains_key(step))?;
    Some((gap_percent(*loss, first[step]), *step))
}

/// Compares runs with the first of them, and says what is wrong with those that cannot be read. Of two runs
/// at a time the records are held.
pub fn compare(runs: &[NamedRun]) -> (Comparison, Vec<Error>) {
    let (mut compared, mut configs, mut broken) = (Vec::<Compared>::new(), Vec::new(), Vec::new());
    let mut first: Option<First> = None;
    for run in runs {
        match of_run(run, first.as_ref()) {
            Ok((found, own)) => {
                compared.push(found);
                configs.push(&run.config);
                first.get_or_insert(own);
            }
            Err(error) => broken.push(error),
        }
    }
    (Comparison { runs: compared, configuration: differences(&configs) }, broken)
}

/// What is held of the run that others are compared with.
struct First {
    lines: Vec<Metrics>,
    /// Validation losses by step, and their unit.
    losses: BTreeMap<u64, f64>,
    unit: &'static str,
}

/// A run compared with the first one, and what is to be held of it if it is that.
fn of_run(run: &NamedRun, first: Option<&First>) -> Result<(Compared, First)> {
    let (lines, summary) = (run.folder.metrics()?, run.folder.summary()?);
    let (losses, unit) = (validated(&lines), run.config.model.loss_unit());
    // Losses of different kinds have no gap.
    let gap = first.filter(|of| of.unit == unit).and_then(|of| gap(&of.losses, &losses));
    let of = |value: fn(&Summary) -> Option<f64>| summary.as_ref().map(value);
    let last = || losses.last_key_value().map(|(_, loss)| *loss);
    let found = Compared {
        name: run.name.clone(),
        path: run.folder.path().to_owned(),
        recipe: run.config.recipe.to_string(),
        seed: run.config.seed,
        complete: summary.is_some(),
        diverged_at: summary.as_ref().and_then(|summary| summary.diverged_at),
        step: lines.last().map_or(0, |line| line.step),
        steps: run.config.train.steps,
        train_loss: of(|summary| summary.train_loss).unwrap_or_else(|| recent_loss(&lines)),
        val_loss: of(|summary| summary.val_loss).unwrap_or_else(last),
        gap_percent: gap.map(|(percent, _)| percent),
        gap_step: gap.map(|(_, step)| step),
        records: first.map_or(Records::First, |of| records(&of.lines, &lines)),
        damage: intact::of_run(&run.folder, &run.config)?,
    };
    Ok((found, First { lines, losses, unit }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use exmy_train::train::preset::preset;

    fn line(step: u64, loss: f64) -> Metrics {
        let val_loss = step.is_multiple_of(2).then_some(loss);
        Metrics { step, loss: Some(loss), val_loss, ..Metrics::default() }
    }

    #[test]
    fn the_first_step_that_differs_is_found() {
        let first: Vec<Metrics> = (0..5).map(|step| line(step, 2.0)).collect();
        assert_eq!(records(&first, &first), Records::Same);
        assert_eq!(records(&first, &first[..3]), Records::SameUpTo { step: 2 });
        let mut other = first.clone();
        other[3].loss = Some(2.0 + f64::EPSILON * 2.0);
        other[4].lr = Some(1.0);
        let keys = vec!["loss".to_owned()];
        assert_eq!(records(&first, &other), Records::Differ { step: 3, keys });
    }

    #[test]
    fn gaps_are_of_the_last_step_of_both() {
        let first = validated(&(0..7).map(|step| line(step, 2.0)).collect::<Vec<_>>());
        let other = validated(&(0..5).map(|step| line(step, 2.5)).collect::<Vec<_>>());
        assert_eq!(gap(&first, &other), Some((25.0, 4)));
        assert_eq!(gap(&first, &BTreeMap::new()), None);
    }

    #[test]
    fn keys_are_those_that_differ() {
        let one = preset("nano").unwrap();
        let mut other = one.clone();
        assert!(differences(&[&one, &other]).is_empty());
        (other.recipe, other.train.batch) = ("mxfp4".parse().unwrap(), 3);
        let found = differences(&[&one, &other, &one]);
        let keys: Vec<&str> = found.iter().map(|found| found.key.as_str()).collect();
        assert_eq!(keys, ["recipe", "train.batch"]);
        assert_eq!(found[0].values[1].as_deref(), Some("\"mxfp4\""));
        assert_eq!(found[1].values[1].as_deref(), Some("3"));
    }
}
