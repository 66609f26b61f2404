//! What a page of runs says first: how far each condition ends from the one it is compared with, and whether
//! that can be believed.

use super::condition::Condition;
use crate::amounts::duration;
use crate::gather::RecordedRun;
use crate::remaining::Remaining;
use crate::statistics::{Interval, mean, mean_interval};
use crate::table::{self, gap_percent};
use exmy_train::train::run::is_at_work;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How far a condition is from the one it is compared with, in per cent of the validation loss: the mean over
/// the seeds that both have, at the last step at which all of these runs measured it.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// The mean.
    pub percent: f64,
    /// Its interval, of two seeds or more.
    pub(super) interval: Option<Interval>,
    /// How many seeds both have.
    pub(super) seeds: usize,
    /// The step and how many there are to be, where not all of the runs are complete.
    pub at: Option<(u64, u64)>,
}

impl Gap {
    /// That of one of several conditions. What diverged has no gap, and nothing has one to it.
    pub fn of(one: &Condition<'_>, all: &[Condition<'_>]) -> Option<Self> {
        let base = &all[one.base?];
        let pairs = one.runs.iter().filter_map(|run| {
            let other = base.runs.iter().find(|other| other.config.seed == run.config.seed)?;
            let is_over = [run, other].iter().any(|run| run.diverged_at().is_some());
            (!is_over).then_some([*run, *other])
        });
        let pairs: Vec<[&RecordedRun; 2]> = pairs.collect();
        let losses = pairs.iter().map(|pair| pair.map(RecordedRun::validated));
        let losses: Vec<[BTreeMap<u64, f64>; 2]> =
            losses.filter(|[own, other]| own.keys().any(|step| other.contains_key(step))).collect();
        let in_all = |step: &u64| losses.iter().flatten().all(|known| known.contains_key(step));
        let step = losses.first()?[0].keys().copied().rfind(in_all)?;
        let gaps: Vec<f64> =
            losses.iter().map(|[own, other]| gap_percent(own[&step], other[&step])).collect();
        let is_open = pairs.iter().flatten().any(|run| run.summary.is_none());
        let (percent, interval) = (mean(&gaps)?, mean_interval(&gaps, 0.95));
        let at = is_open.then_some((step, one.runs[0].config.train.steps));
        Some(Self { percent, interval, seeds: gaps.len(), at })
    }

    /// `0.98 % higher (95 % interval +0.71 to +1.26 %)`; the first of several says what its interval is.
    fn words(&self, is_first: bool) -> String {
        let Self { percent, interval, .. } = self;
        let side = if *percent < 0.0 { "lower" } else { "higher" };
        let interval = interval.map_or_else(String::new, |found| {
            let what = if is_first { "95 % interval " } else { "" };
            format!(" ({what}{:+.2} to {:+.2} %)", found.low, found.high)
        });
        format!("{:.2} % {side}{interval}", percent.abs())
    }

    /// Whether seeds leave open on which side it is.
    fn is_open(&self) -> bool {
        self.interval.is_some_and(|found| !found.excludes(0.0))
    }
}

/// Words with commas, the last with `and`.
pub(super) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Conditions that are named before the rest is counted.
const MOST: usize = 6;

/// The sentences; `rows` and `gaps` are those of the conditions.
pub fn answer(
    all: &[Condition<'_>],
    rows: &[table::Row],
    gaps: &[Option<Gap>],
    left: &Remaining,
    unit: &str,
) -> Vec<String> {
    let mut said = Vec::new();
    let unfinished: usize = rows.iter().map(|row| row.unfinished).sum();
    let runs: usize = rows.iter().map(|row| row.runs).sum();
    let are = |count: usize| if count == 1 { "is" } else { "are" };
    if unfinished > 0 {
        said.push(format!("{unfinished} of {runs} runs {} not complete.", are(unfinished)));
    }
    if left.not_begun > 0 {
        let count = left.not_begun;
        said.push(format!("{count} more {} planned and not begun.", are(count)));
    }
    if let Some(all) = left.all {
        said.push(format!("All will be done in about {}.", duration(all)));
    }
    for (i, base) in all.iter().enumerate() {
        let own: Vec<usize> = (0..all.len()).filter(|&j| all[j].base == Some(i)).collect();
        if !own.is_empty() {
            said.extend(compared(base, &own, all, rows, gaps));
        } else if base.base.is_none() && all.len() == 1 {
            said.extend(alone(base, &rows[i], unit));
        }
    }
    said.extend(diverged(all, rows));
    said.extend(so_far(all, rows, gaps, unit));
    let mut runs = all.iter().flat_map(|one| &one.runs);
    if unfinished > 0 && !runs.any(|run| is_at_work(&run.folder)) {
        said.push("Nobody is at work on what is not complete.".into());
    }
    said
}

/// How far those have come of which no gap is known, and that are not compared with.
fn so_far(
    all: &[Condition<'_>],
    rows: &[table::Row],
    gaps: &[Option<Gap>],
    unit: &str,
) -> Option<String> {
    let of = |(i, one): (usize, &Condition<'_>)| {
        let is_compared =
            |(other, gap): (&Condition<'_>, &Option<Gap>)| gap.is_some() && other.base == Some(i);
        let is_said = gaps[i].is_some() || all.iter().zip(gaps).any(is_compared);
        if rows[i].unfinished < rows[i].runs || is_said {
            return None;
        }
        let step = one.runs.iter().filter_map(|run| Some(run.metrics.last()?.step)).min()?;
        let loss = one.losses()[0]?;
        let of = one.runs[0].config.train.steps;
        Some(format!("{} has come to step {step} of {of} with {loss:.4}", one.name))
    };
    let mut words: Vec<String> = all.iter().enumerate().filter_map(of).collect();
    let more = words.len().saturating_sub(MOST);
    words.truncate(MOST);
    words.extend((more > 0).then(|| format!("{more} more as the table says")));
    (!words.is_empty()).then(|| format!("Training losses so far, in {unit}: {}.", list(&words)))
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
    let mut alike: Vec<_> = known.iter().map(|(_, gap)| (gap.at, Reverse(gap.seeds))).collect();
    alike.sort_unstable();
    alike.dedup();
    let mut said: Vec<String> = Vec::new();
    for (at, Reverse(seeds)) in alike {
        let is_alike = |(_, gap): &&(&str, &Gap)| gap.at == at && gap.seeds == seeds;
        let known: Vec<_> = known.iter().filter(is_alike).copied().collect();
        said.extend(at_step(&base.name, at, seeds, &known));
    }
    if known.iter().any(|(_, gap)| gap.seeds == 1) {
        said.push(
            "One seed does not say how much of a difference is chance; --seeds 3 would.".into(),
        );
    }
    said
}

/// What is said of gaps over so many seeds at one step, or at the end.
fn at_step(
    base: &str,
    at: Option<(u64, u64)>,
    seeds: usize,
    known: &[(&str, &Gap)],
) -> Vec<String> {
    let named = |gaps: &[&(&str, &Gap)], words: &dyn Fn(bool, &str, &Gap) -> String| {
        let first = gaps.iter().take(MOST).enumerate();
        let mut text: Vec<String> =
            first.map(|(i, (name, gap))| words(i == 0, name, gap)).collect();
        if gaps.len() > MOST {
            text.push(format!("{} more as the table says", gaps.len() - MOST));
        }
        list(&text)
    };
    let (open, seen): (Vec<_>, Vec<_>) = known.iter().partition(|(_, gap)| gap.is_open());
    let (head, verb) = match at {
        Some((step, steps)) => (format!("At step {step} of {steps}, against {base}"), "is"),
        None => (format!("Against {base}"), "ends"),
    };
    let mut said = Vec::new();
    if !seen.is_empty() {
        let over = match seeds {
            1 => ", of one seed".to_owned(),
            _ => format!(", over {seeds} seeds"),
        };
        let words = named(&seen, &|is_first, name, gap| {
            let verb = if is_first { format!(" {verb}") } else { String::new() };
            format!("{name}{verb} {}", gap.words(is_first))
        });
        said.push(format!("{head}, the validation loss of {words}{over}."));
    }
    let range = |gap: &Gap| {
        let [low, high] = gap.interval.map_or([f64::NAN; 2], |found| [found.low, found.high]);
        format!("{:+.2} %, anywhere from {low:+.2} to {high:+.2} %", gap.percent)
    };
    let settle = format!("{head}, {} seeds do not settle", counted(seeds));
    match &open[..] {
        [] => {}
        [(name, gap)] => said.push(format!("{settle} {name}: {}.", range(gap))),
        several => {
            let words = named(several, &|_, name, gap| format!("{name} ({})", range(gap)));
            said.push(format!("{settle} {words}."));
        }
    }
    said
}

/// A small number as a word.
fn counted(count: usize) -> String {
    const WORDS: [&str; 8] = ["two", "three", "four", "five", "six", "seven", "eight", "nine"];
    let word = count.checked_sub(2).and_then(|i| WORDS.get(i));
    word.map_or_else(|| count.to_string(), |word| (*word).to_owned())
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
