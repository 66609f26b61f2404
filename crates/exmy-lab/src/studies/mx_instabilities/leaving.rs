//! When a run first leaves its lowest loss.
//!
//! To 20,000 steps losses shoot up and come back more than once, so what the end looks like says little of
//! when a run stopped learning. And a run that shoots up in its last steps has not diverged by the rule that
//! looks at its last tenth. A run leaves its lowest loss where the median of five means of ten steps is above
//! ten times the lowest such median before. That was decided after the runs of F2-15 had been seen. F2-22 is
//! judged by it; beside the verdicts of the other figures of the paper's size it is shown.

use super::survival::Survival;
use super::*;
use crate::finding::{Part, Table};
use crate::measure::Results;
use crate::outcome::{Outcome, number};
use crate::spikes::Curve;
use crate::statistics::median;
use exmy::error::Result;

/// Means in a median, and how many times the lowest median is far from it.
const MEANS: usize = 5;
const FAR: f64 = 10.0;

/// What a loss curve does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leaving {
    /// The lowest median.
    pub lowest: f64,
    /// Where the run first leaves the lowest before.
    pub at: Option<u64>,
    /// The last median.
    pub end: f64,
}

impl Leaving {
    /// Absent of a curve of fewer than fifty steps.
    pub fn of(losses: &Curve) -> Option<Self> {
        let (mut found, mut lowest): (Option<Self>, f64) = (None, f64::INFINITY);
        for window in tens(losses).windows(MEANS) {
            let values: Vec<f64> = window.iter().map(|mean| mean.1).collect();
            // A loss that is no finite number is far from any.
            let end = match values.iter().all(|value| value.is_finite()) {
                true => median(&values)?,
                false => f64::INFINITY,
            };
            let step = window[MEANS - 1].0 as u64;
            let left = (end > FAR * lowest).then_some(step);
            lowest = lowest.min(end);
            let at = found.and_then(|found| found.at).or(left);
            found = Some(Self { lowest, at, end });
        }
        found
    }
}

/// The means of each ten steps of a curve, at the last of them. Those of a thinned curve are the same but for
/// its six digits: its points are means of the steps since the one before.
pub fn tens(curve: &Curve) -> Vec<(f64, f64)> {
    let (mut means, mut sum, mut first, mut before) = (Vec::new(), 0.0, 0, 0);
    for &(step, value) in curve {
        sum += value * (step - before) as f64;
        before = step;
        if step.is_multiple_of(10) {
            means.push((step as f64, sum / (step - first) as f64));
            (sum, first) = (0.0, step);
        }
    }
    means
}

/// How long runs go on without leaving their lowest loss.
pub(super) fn left(results: &Results<'_>, base: &'static str) -> Result<Survival> {
    Survival::by(results, base, |run| Leaving::of(&run.losses)?.at)
}

/// When runs first leave their lowest loss, beside those of one recipe.
pub(super) fn table(left: &Survival) -> Part {
    left.table_of(
        "leave their lowest loss (the median of five means of ten steps goes above ten times the lowest)",
        ["left", "not left"],
    )
}

/// What leaves its lowest loss when, recipe by recipe and run by run.
pub(super) fn tables(results: &Results<'_>) -> Result<Vec<Part>> {
    let mut each = Table::new(
        "each run: its lowest loss, where it is first left, and the last one",
        &["numbers", "seed", "lowest", "left at", "last, times the lowest"],
    );
    for point in &results.points {
        for Outcome { trained, losses, .. } in results.outcomes(point)? {
            let Some(loss) = Leaving::of(&losses) else { continue };
            each.row([
                point.words(&[]),
                trained.summary.seed.to_string(),
                number(loss.lowest),
                loss.at.map_or_else(|| "-".into(), |at| at.to_string()),
                format!("{:.1}", loss.end / loss.lowest),
            ]);
        }
    }
    Ok(vec![table(&left(results, BETAS.name)?), Part::Table(each)])
}
