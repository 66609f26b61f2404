//! Whether a run fits into the memory there is, checked before it begins.
//!
//! A run is refused where it cannot go well. Either what it keeps from step to step is more than all there
//! is, or the process may run out of addresses, where an allocation ends it without a word of its own. What
//! may be had by swapping is a warning.
//!
//! What a run needs is counted ([`MemoryNeed`]), which no run stays below and none exceeds twice, but for
//! what a process has beside its numbers. Advice is given only where what it leads to is not refused in turn.

use crate::train::config::{Config, EVALUATED_ROWS, Record, Train};
use crate::train::memory::{available, had, is_limited, size};
use crate::train::profile::MemoryNeed;
use exmy::error::Error;
use std::fmt;

/// What makes a run smaller; its text is a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Settings under which it fits, and the bytes that it then needs, if they are known.
    Settings(Settings, Option<u64>),
    /// Another model; where settings alone do not suffice, the smallest ones and the bytes of the run.
    SmallerModel(Option<(Settings, u64)>),
    /// What is kept from step to step is too large already.
    Machine,
}

/// Settings to be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `record.eval_windows`.
    pub eval_windows: Option<usize>,
    /// `train.accumulate`.
    pub accumulate: Option<usize>,
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let windows = self.eval_windows.map(|n| format!("--set record.eval_windows={n}"));
        let parts = self.accumulate.map(|n| format!("--set train.accumulate={n}"));
        let settings: Vec<String> = windows.into_iter().chain(parts).collect();
        f.write_str(&settings.join(" "))
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(settings, Some(needs)) => write!(f, "{settings} needs {}", size(*needs)),
            Self::Settings(settings, None) => write!(f, "{settings} needs less"),
            Self::SmallerModel(None) => f.write_str("take a smaller model or model.context"),
            Self::SmallerModel(Some((settings, needs))) => {
                let needs = size(*needs);
                write!(f, "take a smaller model or model.context: even {settings} needs {needs}")
            }
            Self::Machine => f.write_str(
                "take a smaller model, or another machine: its weights with gradients and moments alone \
                 are too large",
            ),
        }
    }
}

/// Bytes of text, lines and tables that a run has next to its numbers. Nano, with steps of one sequence,
/// needs 2.4 MiB on paper, and the least limit under which it ended well left 5.6 MiB for twice that. Larger
/// ones took less (2026-11-25, threads from 1 to 8).
const BESIDE: u64 = 4 << 20;

/// The most that a run takes of which so much is counted on paper.
pub fn most(total: u64) -> u64 {
    2 * total + BESIDE
}

/// Why a run is not to be begun, if it is not.
pub fn refusal(config: &Config) -> Option<Error> {
    let paper = MemoryNeed::of_run(config);
    let left = is_limited().then(|| had(most(paper.total())));
    refused(&paper, config, available(), left)
}

/// Why a run cannot be begun even where that is wanted: there are fewer addresses than no run stays below.
pub fn impossible(config: &Config) -> Option<Error> {
    let least = MemoryNeed::of_run(config).total();
    let left = Some(least).filter(|_| is_limited()).map(had).filter(|&left| left < least)?;
    let (least, left) = (size(least), size(left));
    let what =
        format!("the run needs {least}, and the limit of addresses (ulimit -v) leaves {left}");
    Some(Error::new(what).hint("raise the limit, or take a smaller model or batch"))
}

/// Why a run is not begun with `available` bytes of memory and `left` bytes of addresses.
pub fn refused(
    paper: &MemoryNeed,
    config: &Config,
    available: Option<u64>,
    left: Option<u64>,
) -> Option<Error> {
    let most_of_run = most(paper.total());
    if let Some(left) = left.filter(|&left| left < most_of_run) {
        let what = format!(
            "the run may need up to {}, and the limit of addresses (ulimit -v) leaves {}",
            size(most_of_run),
            size(left)
        );
        // The next process may be left a little less.
        let advice = advice(config, paper, left - left / 16, most);
        return Some(Error::new(what).hint(format!("raise the limit; or {advice}")));
    }
    let available = available.filter(|&available| paper.kept() > available)?;
    shortage(config, available)
}

/// The warning before a run that needs more than `available` bytes: the numbers, and what would
/// make it fit.
pub fn shortage(config: &Config, available: u64) -> Option<Error> {
    let paper = MemoryNeed::of_run(config);
    if paper.total() <= available {
        return None;
    }
    let MemoryNeed { weights, gradients, moments, activations, evaluation } = paper;
    let (step, which) = match activations >= evaluation {
        true => (activations, "activations of a step"),
        false => (evaluation, "an evaluation"),
    };
    let what = format!(
        "the run needs at least {}: {} for weights, {} for gradients, {} for moments and {} for {which}; \
         there are {}",
        size(paper.total()),
        size(weights),
        size(gradients),
        size(moments),
        size(step),
        size(available)
    );
    Some(Error::new(what).hint(advice(config, &paper, available, |total| total).to_string()))
}

/// The least change after which a run needs at most so many bytes; as many parts of the batch at least as
/// twice those it has, where it did not fit although it should.
pub fn smaller(config: &Config, available: u64) -> Advice {
    let paper = MemoryNeed::of_run(config);
    if paper.total() > available {
        return advice(config, &paper, available, |total| total);
    }
    let Train { accumulate, batch, .. } = config.train;
    let more = (2 * accumulate..=batch).find(|&parts| batch.is_multiple_of(parts));
    match more {
        Some(parts) => {
            let accumulate = Some(parts);
            Advice::Settings(Settings { accumulate, ..Settings::default() }, None)
        }
        None => Advice::SmallerModel(None),
    }
}

/// The least change that makes a run fit into a limit, where it takes what `need` says of its bytes on paper.
fn advice(config: &Config, paper: &MemoryNeed, limit: u64, need: fn(u64) -> u64) -> Advice {
    let Config { train, record, .. } = config;
    let fits = |part: u64| need(paper.kept() + part) <= limit;
    if !fits(0) {
        return Advice::Machine;
    }
    let parts = (train.accumulate..=train.batch).filter(|&parts| train.batch.is_multiple_of(parts));
    let (mut changed, mut settings) = (config.clone(), Settings::default());
    if !fits(paper.evaluation) {
        // As many windows as fit, by halves.
        let most = if record.eval_windows == 0 { usize::MAX } else { record.eval_windows };
        let windows =
            std::iter::successors(Some(most.min(EVALUATED_ROWS)), |&n| (n > 1).then_some(n / 2));
        for eval_windows in windows {
            let record = Record { eval_windows, ..record.clone() };
            changed = Config { record, ..changed };
            if fits(MemoryNeed::of_run(&changed).evaluation) {
                break;
            }
        }
        settings.eval_windows = Some(changed.record.eval_windows);
    }
    if !fits(paper.activations) {
        for accumulate in parts {
            changed.train = Train { accumulate, ..train.clone() };
            if fits(MemoryNeed::of_run(&changed).activations) {
                break;
            }
        }
        settings.accumulate = Some(changed.train.accumulate);
    }
    let needed = need(MemoryNeed::of_run(&changed).total());
    match needed <= limit {
        true => Advice::Settings(settings, Some(needed)),
        false => Advice::SmallerModel(Some((settings, needed))),
    }
}
