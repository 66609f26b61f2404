//! Whether a run fits into the memory there is, checked before it begins.
//!
//! A run is refused where it cannot go well: what it keeps from step to step is more than all there is, or
//! the process may run out of addresses, where an allocation ends it without a word of its own. What may be
//! had by swapping is a warning.
//!
//! What a run needs is counted on paper ([`Paper`]), which no run stays below and none exceeds twice.

use crate::train::config::{Config, EVALUATED_ROWS, Record, Train};
use crate::train::memory::{available, had, is_limited, size};
use crate::train::profile::Paper;
use exmy::error::Error;

/// Why a run is not to be begun, if it is not.
pub fn refusal(config: &Config) -> Option<Error> {
    let paper = Paper::of_run(config);
    let left = is_limited().then(|| had(2 * paper.total()));
    refused(&paper, config, available(), left)
}

/// Why a run cannot be begun even where that is wanted: there are fewer addresses than no run stays below.
pub fn impossible(config: &Config) -> Option<Error> {
    let least = Paper::of_run(config).total();
    let left = Some(least).filter(|_| is_limited()).map(had).filter(|&left| left < least)?;
    let (least, left) = (size(least), size(left));
    let what =
        format!("the run needs {least}, and the limit of addresses (ulimit -v) leaves {left}");
    Some(Error::new(what).hint("raise the limit, or take a smaller model or batch"))
}

/// Why a run is not begun with `available` bytes of memory and `left` bytes of addresses.
pub fn refused(
    paper: &Paper,
    config: &Config,
    available: Option<u64>,
    left: Option<u64>,
) -> Option<Error> {
    let most = 2 * paper.total();
    if let Some(left) = left.filter(|&left| left < most) {
        let what = format!(
            "the run may need up to {}, and the limit of addresses (ulimit -v) leaves {}",
            size(most),
            size(left)
        );
        let advice = advice(config, paper, left / 2);
        return Some(Error::new(what).hint(format!("raise the limit; or {advice}")));
    }
    let available = available.filter(|&available| paper.kept() > available)?;
    shortage(config, available)
}

/// The warning before a run that needs more than `available` bytes: the numbers, and what would
/// make it fit.
pub fn shortage(config: &Config, available: u64) -> Option<Error> {
    let paper = Paper::of_run(config);
    if paper.total() <= available {
        return None;
    }
    let Paper { weights, gradients, moments, activations, evaluation } = paper;
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
    Some(Error::new(what).hint(advice(config, &paper, available)))
}

/// The least change after which a run needs at most so many bytes; as many parts of the batch at least as
/// twice those it has, where it did not fit although it should.
pub fn smaller(config: &Config, available: u64) -> String {
    let paper = Paper::of_run(config);
    if paper.total() > available {
        return advice(config, &paper, available);
    }
    let Train { accumulate, batch, .. } = config.train;
    let more = (2 * accumulate..=batch).find(|&parts| batch.is_multiple_of(parts));
    match more {
        Some(parts) => format!("--set train.accumulate={parts} needs less"),
        None => "take a smaller model or model.context".into(),
    }
}

/// The least change that makes a run fit.
fn advice(config: &Config, paper: &Paper, available: u64) -> String {
    let Config { train, record, .. } = config;
    let fixed = paper.kept();
    if fixed > available {
        return "a smaller model, or another machine: its weights with gradients and moments alone are \
                too large"
            .into();
    }
    let parts = (train.accumulate..=train.batch).filter(|&parts| train.batch.is_multiple_of(parts));
    let fits = |config: &Config| Paper::of_run(config).total() <= available;
    let (mut changed, mut settings) = (config.clone(), Vec::new());
    if paper.evaluation > available - fixed {
        // As many windows as fit, by halves.
        let most = if record.eval_windows == 0 { usize::MAX } else { record.eval_windows };
        let windows =
            std::iter::successors(Some(most.min(EVALUATED_ROWS)), |&n| (n > 1).then_some(n / 2));
        for eval_windows in windows {
            let record = Record { eval_windows, ..record.clone() };
            changed = Config { record, ..changed };
            if Paper::of_run(&changed).evaluation <= available - fixed {
                break;
            }
        }
        settings.push(format!("--set record.eval_windows={}", changed.record.eval_windows));
    }
    if paper.activations > available - fixed {
        for accumulate in parts {
            changed.train = Train { accumulate, ..train.clone() };
            if Paper::of_run(&changed).activations <= available - fixed {
                break;
            }
        }
        settings.push(format!("--set train.accumulate={}", changed.train.accumulate));
    }
    let (settings, total) = (settings.join(" "), size(Paper::of_run(&changed).total()));
    match fits(&changed) {
        true => format!("{settings} needs {total}"),
        false => format!("even {settings} needs {total}: take a smaller model or model.context"),
    }
}
