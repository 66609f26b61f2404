//! `exmy compare`: runs set against the first of them, seed by seed.

use crate::phase::Phase;
use crate::rows::{Line, table, width};
use crate::{PARTLY, show};
use clap::Args;
use exmy::error::{Error, Result};
use exmy_lab::compare::{Compared, Comparison, KeyDifference, Records, compare};
use exmy_lab::gather::{configured, first_line};
use serde_json::json;
use std::path::PathBuf;

/// Compare runs with the first of them: losses, configuration, the first step that differs
///
/// Runs that are damaged are named, and then the exit code is 1.
#[derive(Args)]
#[command(after_long_help = HELP)]
pub(crate) struct Arguments {
    /// Folders of runs, or folders above them; two runs at least
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Examples:
  exmy compare runs/0001                              # all runs of a folder
  exmy compare runs/0001/f32-s1 runs/0002/f32-s1      # the hash at the end may be left out
  exmy compare runs/0001 --json | jq '.runs[].gap_percent'

A run is compared with the repetition of the first run that has its seed; without one with the first run,
and \"(other seed)\" says so.
gap: validation loss above that of that run, at the last step at which both have one.
differs from: the first step at which metrics.jsonl differs from that run's; --json says in what.";

/// More runs than these stand below each other.
const MANY: usize = 6;

/// How a run's records differ, in a cell.
fn words(records: &Records) -> String {
    match records {
        Records::First => "-".into(),
        Records::Same => "never".into(),
        Records::SameUpTo { step } => format!("not up to {step}"),
        Records::Differ { step, .. } => format!("step {step}"),
    }
}

fn line(number: usize, run: &Compared) -> Line {
    let of = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.4}"));
    let gap = match (run.gap_percent, run.gap_step) {
        (Some(gap), Some(step)) if step != run.step => format!("{gap:+.2} % at {step}"),
        (Some(gap), _) => format!("{gap:+.2} %"),
        _ => "-".into(),
    };
    let gap = if run.other_seed { format!("{gap} (other seed)") } else { gap };
    let steps = match run.step == run.steps {
        true => run.steps.to_string(),
        false => format!("{}/{}", run.step, run.steps),
    };
    let remark = match (&run.damage, run.diverged_at) {
        (Some(damage), _) => format!("damaged: {damage}"),
        (None, Some(step)) => format!("diverged at step {step}"),
        (None, None) => String::new(),
    };
    let cells = [steps, of(run.train_loss), of(run.val_loss), gap, words(&run.records)];
    Line { name: format!("{number} {}", run.name), cells: cells.into(), remark }
}

/// The comparison as two tables.
fn text(found: &Comparison, width: Option<usize>) -> String {
    let runs: Vec<Line> = (1..).zip(&found.runs).map(|(i, run)| line(i, run)).collect();
    let heads = ["run", "steps", "train loss", "val loss", "gap", "differs from"];
    let text = table(&heads, 0, &runs, width);
    text + "\n" + &configuration(found.runs.len(), &found.configuration, width)
}

/// The keys in which the configurations of so many runs differ. Of many runs each has a line, of a few a
/// column.
fn configuration(runs: usize, keys: &[KeyDifference], width: Option<usize>) -> String {
    if keys.is_empty() {
        return "all keys of the configurations are the same\n".into();
    }
    let plain = |value: &Option<String>| match value {
        Some(value) => value.trim_matches('"').to_owned(),
        None => "-".to_owned(),
    };
    let line = |name: &str, cells| Line { name: name.into(), cells, remark: String::new() };
    let numbers: Vec<String> = (1..=runs).map(|i| i.to_string()).collect();
    let numbers = || numbers.iter().map(String::as_str);
    let (heads, lines): (Vec<&str>, Vec<Line>) = if runs > MANY.max(keys.len()) {
        let cells = |i: usize| keys.iter().map(|key| plain(&key.values[i])).collect();
        let lines = numbers().enumerate().map(|(i, number)| line(number, cells(i)));
        (keys.iter().map(|key| key.key.as_str()).collect(), lines.collect())
    } else {
        let cells = |key: &KeyDifference| key.values.iter().map(plain).collect();
        (numbers().collect(), keys.iter().map(|key| line(&key.key, cells(key))).collect())
    };
    let heads: Vec<&str> = std::iter::once("configuration").chain(heads).collect();
    table(&heads, heads.len(), &lines, width)
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let reading = Phase::begin("reading the runs", false);
    let (runs, mut broken) = configured(&arguments.runs)?;
    if runs.len() + broken.len() < 2 {
        return Err(Error::new("there is one run, and two are compared at least")
            .hint("name another, or a folder of several: exmy compare runs/0001"));
    }
    let (found, unread) = compare(&runs);
    broken.extend(unread);
    drop(reading);
    if found.runs.len() < 2 {
        broken.iter().for_each(|error| say!("left out: {error}"));
        return Err(Error::new("two runs are compared at least, and fewer can be read"));
    }
    let is_whole = broken.is_empty() && found.runs.iter().all(|run| run.damage.is_none());
    if arguments.json {
        let left_out: Vec<String> = broken.iter().map(first_line).collect();
        show::json(&json!({
            "runs": found.runs, "configuration": found.configuration, "left_out": left_out,
        }))?;
    } else {
        show::result(&text(&found, width()))?;
        broken.iter().for_each(|error| say!("left out: {error}"));
    }
    Ok(if is_whole { 0 } else { PARTLY })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_runs_stand_below_each_other() {
        let key = |key: &str, runs: usize| {
            let values = (1..=runs).map(|i| (i > 1).then(|| format!("\"{key}{i}\""))).collect();
            KeyDifference { key: key.into(), values }
        };
        let few = "configuration  1  2\nrecipe         -  recipe2\nseed           -  seed2\n";
        assert_eq!(configuration(2, &[key("recipe", 2), key("seed", 2)], None), few);
        let many = configuration(7, &[key("recipe", 7), key("seed", 7)], Some(80));
        let lines: Vec<&str> = many.lines().collect();
        assert_eq!(lines[0], "configuration  recipe   seed");
        assert_eq!(lines[1..3], ["1              -        -", "2              recipe2  seed2"]);
        assert_eq!(lines.len(), 8);
        assert!(configuration(7, &[], None).starts_with("all keys"));
    }
}
