//! What a page of runs says first: how far each condition ends from the one it is compared with, and whether
//! that can be believed.

use super::condition::Condition;
use crate::gather::RecordedRun;
use crate::statistics::{Interval, mean, mean_interval};
use crate::table::{self, gap_percent};
use std::collections::BTreeMap;

/// How far a condition is from the one it is compared with, in per cent of the validation loss.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gap {
    /// Of the means over seeds where all are complete, as `exmy train` prints it; else the mean over seeds.
    pub(super) percent: f64,
    /// The interval of the mean over seeds, of two seeds or more.
    pub(super) interval: Option<Interval>,
    /// How many seeds both have.
    pub(super) seeds: usize,
}

/// The gap of a run to another at the last step at which both measured the validation loss.
fn of_run(run: &RecordedRun, base: &RecordedRun) -> Option<f64> {
    let validated = |run: &RecordedRun| -> BTreeMap<u64, f64> {
        run.metrics.iter().filter_map(|line| Some((line.step, line.val_loss?))).collect()
    };
    let (own, other) = (validated(run), validated(base));
    let (step, loss) = own.iter().rev().find(|(step, _)| other.contains_key(step))?;
    // Before the first step nothing is known of a format.
    (*step > 0).then(|| gap_percent(*loss, other[step]))
}

impl Gap {
    /// That of one of several conditions; `row` is its row of the table.
    pub(super) fn of(one: &Condition<'_>, all: &[Condition<'_>], row: &table::Row) -> Option<Self> {
        let base = &all[one.base?];
        let of_seed = |run: &&RecordedRun| {
            let other = base.runs.iter().find(|other| other.config.seed == run.config.seed)?;
            of_run(run, other)
        };
        let gaps: Vec<f64> = one.runs.iter().filter_map(of_seed).collect();
        let whole = row.gap.filter(|_| gaps.len() == one.runs.len() && row.unfinished == 0);
        let percent = whole.filter(|_| row.diverged.is_none()).or_else(|| mean(&gaps))?;
        Some(Self { percent, interval: mean_interval(&gaps, 0.95), seeds: gaps.len() })
    }

    /// `0.98 % higher (95 % interval +0.71 to +1.26 %)`.
    fn words(&self) -> String {
        let Self { percent, interval, .. } = self;
        let side = if *percent < 0.0 { "lower" } else { "higher" };
        let interval = interval.map_or_else(String::new, |found| {
            format!(" (95 % interval {:+.2} to {:+.2} %)", found.low, found.high)
        });
        format!("{:.2} % {side}{interval}", percent.abs())
    }

    /// Whether seeds leave open on which side it is.
    fn is_open(&self) -> bool {
        self.interval.is_some_and(|found| !found.excludes(0.0))
    }
}

/// Words with commas, the last with `and`.
fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Conditions that are named before the rest is counted.
const MOST: usize = 6;

/// The sentences; `rows` and `gaps` are those of the conditions.
pub(super) fn answer(
    all: &[Condition<'_>],
    rows: &[table::Row],
    gaps: &[Option<Gap>],
    unit: &str,
) -> Vec<String> {
    let mut said = Vec::new();
    for (i, base) in all.iter().enumerate() {
        let own: Vec<usize> = (0..all.len()).filter(|&j| all[j].base == Some(i)).collect();
        if !own.is_empty() {
            said.extend(compared(base, &own, all, rows, gaps));
        } else if base.base.is_none() && all.len() == 1 {
            said.extend(alone(base, &rows[i], unit));
        }
    }
    said.extend(diverged(all, rows));
    let unfinished: usize = rows.iter().map(|row| row.unfinished).sum();
    let runs: usize = rows.iter().map(|row| row.runs).sum();
    if unfinished > 0 {
        said.push(format!(
            "{unfinished} of {runs} runs are not complete; numbers are those of the last step that the runs \
             of a seed have in common."
        ));
    }
    said
}

/// What is said of one condition without another.
fn alone(one: &Condition<'_>, row: &table::Row, unit: &str) -> Option<String> {
    let loss = row.val_loss?;
    let spread = row.spread.map_or_else(String::new, |sd| {
        format!(", with a standard deviation of {sd:.4} over {} seeds", one.runs.len())
    });
    Some(format!("{} ends with a validation loss of {loss:.4} {unit}{spread}.", one.name))
}

/// What is said of those that are compared with one.
fn compared(
    base: &Condition<'_>,
    own: &[usize],
    all: &[Condition<'_>],
    rows: &[table::Row],
    gaps: &[Option<Gap>],
) -> Vec<String> {
    let mut known: Vec<(&str, &Gap)> = own
        .iter()
        .filter(|&&i| rows[i].diverged.is_none_or(|(_, count)| count < rows[i].runs))
        .filter_map(|&i| Some((&*all[i].name, gaps[i].as_ref()?)))
        .collect();
    known.sort_by(|a, b| b.1.percent.total_cmp(&a.1.percent));
    let (open, seen): (Vec<_>, Vec<_>) = known.iter().partition(|(_, gap)| gap.is_open());
    let mut said = Vec::new();
    let named = |gaps: &[&(&str, &Gap)], words: &dyn Fn(&str, &Gap) -> String| {
        let mut text: Vec<String> =
            gaps.iter().take(MOST).map(|(name, gap)| words(name, gap)).collect();
        if gaps.len() > MOST {
            text.push(format!("{} more as the table says", gaps.len() - MOST));
        }
        list(&text)
    };
    let seeds = known.iter().map(|(_, gap)| gap.seeds).min().unwrap_or(0);
    if !seen.is_empty() {
        let over = match seeds {
            1 => ", of one seed".to_owned(),
            _ => format!(", over {seeds} seeds"),
        };
        let words = named(&seen, &|name, gap| format!("{name} ends {}", gap.words()));
        said.push(format!("Against {}, the validation loss of {words}{over}.", base.name));
    }
    if !open.is_empty() {
        let words = named(&open, &|name, gap| {
            let found = gap.interval.unwrap_or(Interval { estimate: 0.0, low: 0.0, high: 0.0 });
            format!("{name} ({:+.2} %, {:+.2} to {:+.2} %)", gap.percent, found.low, found.high)
        });
        said.push(format!(
            "Of {words} these {seeds} seeds do not show whether the loss ends above or below that of {}.",
            base.name
        ));
    }
    if seeds == 1 {
        said.push(
            "One seed does not say how much of a difference is chance; --seeds 3 would.".into(),
        );
    }
    said
}

/// What is said of runs that diverged.
fn diverged(all: &[Condition<'_>], rows: &[table::Row]) -> Option<String> {
    let of = |(one, row): (&Condition<'_>, &table::Row)| {
        let (first, count) = row.diverged?;
        let seeds =
            if row.runs == 1 { String::new() } else { format!("{count} of {} runs, ", row.runs) };
        Some(format!("{} ({seeds}step {first})", one.name))
    };
    let words: Vec<String> = all.iter().zip(rows).filter_map(of).collect();
    (!words.is_empty()).then(|| format!("Diverged: {}.", list(&words)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use exmy_train::train::preset::preset;
    use exmy_train::train::record::Metrics;
    use exmy_train::train::run::Folder;

    fn run(recipe: &str, seed: u64, loss: f64) -> RecordedRun {
        let mut config = preset("nano").unwrap();
        (config.recipe, config.seed) = (recipe.parse().unwrap(), seed);
        let line =
            |step, val_loss| Metrics { step, val_loss: Some(val_loss), ..Metrics::default() };
        RecordedRun {
            name: format!("{recipe} seed {seed}"),
            folder: Folder::new("none"),
            config,
            metrics: vec![line(0, 5.0), line(10, loss)],
            summary: None,
        }
    }

    fn said(runs: &[RecordedRun]) -> String {
        let all = super::super::condition::conditions(runs);
        let rows = super::super::rows(&all);
        let gaps: Vec<_> =
            all.iter().zip(&rows).map(|(one, row)| Gap::of(one, &all, row)).collect();
        answer(&all, &rows, &gaps, "nats").join(" ")
    }

    #[test]
    fn the_answer_names_what_is_seen_and_what_is_not() {
        let runs = [
            [("f32", 2.0, 1), ("f32", 4.0, 2), ("f32", 2.0, 3)],
            // 10, 12.5 and 15 %: mean 12.5, deviation 2.5, t(2) 4.303: 6.29 to 18.71.
            [("mxfp4", 2.2, 1), ("mxfp4", 4.5, 2), ("mxfp4", 2.3, 3)],
            // 1, -1 and 0 %.
            [("bf16", 2.02, 1), ("bf16", 3.96, 2), ("bf16", 2.0, 3)],
        ];
        let runs: Vec<RecordedRun> =
            runs.as_flattened().iter().map(|&(name, loss, seed)| run(name, seed, loss)).collect();
        let text = said(&runs);
        let one = "Against f32, the validation loss of mxfp4 ends 12.50 % higher (95 % interval +6.29 to \
                   +18.71 %), over 3 seeds.";
        assert!(text.starts_with(one), "{text}");
        assert!(
            text.contains("Of bf16 (+0.00 %, -2.48 to +2.48 %) these 3 seeds do not show"),
            "{text}"
        );
        assert!(text.contains("9 of 9 runs are not complete"), "{text}");
        let text = said(&[run("f32", 1, 2.0), run("mxfp4", 1, 1.9)]);
        assert!(
            text.contains("mxfp4 ends 5.00 % lower, of one seed. One seed does not say"),
            "{text}"
        );
        assert!(!said(&[run("f32", 1, 2.0), run("f32", 2, 2.0)]).contains("Against"));
    }
}
