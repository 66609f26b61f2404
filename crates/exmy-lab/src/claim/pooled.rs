//! Comparisons of values seed by seed, one value a seed.

use super::{Place, TestResult, name};
use crate::grid::GridPoint;
use crate::measure::{Metric, Pick};
use crate::statistics::{Interval, Signs, mean, paired_interval, sign_test};
use exmy::error::Result;

/// A comparison of paired values.
#[derive(Clone, Debug, PartialEq)]
pub struct Paired {
    mean: f64,
    pub(crate) interval: Option<Interval>,
    pub signs: Option<Signs>,
    pairs: usize,
}

impl Paired {
    /// Compares the two of each pair; signs are shown and decide nothing.
    pub fn of(first: &[f64], second: &[f64]) -> Self {
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| a - b).collect();
        let interval = paired_interval(first, second, 0.95);
        let mean = mean(&differences).unwrap_or(f64::NAN);
        Self { mean, interval, signs: sign_test(&differences), pairs: differences.len() }
    }

    /// `+0.120 (+0.030 to +0.210), 5 of 6 pairs above 0`.
    pub fn words(&self) -> String {
        let found = self.interval.map_or_else(|| format!("{:+.3}", self.mean), |one| one.words(3));
        let above = self.signs.map_or(0, |signs| signs.positive);
        format!("{found}, {above} of {} pairs above 0", self.pairs)
    }
}

/// The mean over grid points of each seed; grid points without a value are left out.
pub fn by_seed(points: &[Vec<f64>]) -> Vec<f64> {
    let seeds = points.iter().map(Vec::len).max().unwrap_or(0);
    let of = |seed: usize| {
        let values = points.iter().filter_map(|point| point.get(seed).copied());
        mean(&values.filter(|value| !value.is_nan()).collect::<Vec<_>>())
    };
    (0..seeds).filter_map(of).collect()
}

/// The values of two grid points by seed, each the mean over all levels of some axes at which both are there.
pub(super) fn pair(
    place: &Place<'_>,
    metric: Metric,
    pair: [&[&str]; 2],
    axes: &[&str],
) -> Result<[Vec<f64>; 2]> {
    let results = place.results;
    let mut all = vec![place.here.clone()];
    for axis in axes {
        let axis = results.grid.axis(axis);
        let levels = results.levels(axis);
        let with = |point: &GridPoint| {
            levels.iter().map(|one| point.with(axis.name, one)).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    // Where one of the two is not there, there is nothing to compare.
    all.retain(|here| pair.iter().all(|pick| !results.points_of(pick, here).is_empty()));
    let of = |pick: &[&str]| -> Result<Vec<f64>> {
        let each = all.iter().map(|here| results.values(results.point(pick, here), metric));
        Ok(by_seed(&each.collect::<Result<Vec<_>>>()?))
    };
    Ok([of(pair[0])?, of(pair[1])?])
}

/// How far the first is above the second at a place, by seed.
pub(super) fn gap(
    place: &Place<'_>,
    metric: Metric,
    of: [Pick; 2],
    at: Pick,
    axes: &[&str],
) -> Result<Vec<f64>> {
    let [of, over] = of.map(|pick| [pick, at].concat());
    let [a, b] = pair(place, metric, [&of, &over], axes)?;
    Ok(a.iter().zip(&b).map(|(a, b)| a - b).collect())
}

/// Which difference is taken, and on which side of 0 it is claimed to be.
pub fn what(metric: Metric, of: Pick, over: Pick, below: bool) -> String {
    let side = if below { "below" } else { "above" };
    format!("{} of {} minus that of {}, claimed {side} 0", metric.name(), name(of), name(over))
}

/// A difference of logarithms of losses as what it is of the loss itself.
pub fn in_percent(metric: Metric, differences: &[f64]) -> String {
    match (metric, mean(differences)) {
        (Metric::LogTail, Some(mean)) => {
            format!("; the loss differs by {:+.0} %", 100.0 * libm::expm1(mean))
        }
        _ => String::new(),
    }
}

/// What two values of each seed say of the claim that the first are above, or below.
pub fn result([first, second]: &[Vec<f64>; 2], below: bool, what: String) -> TestResult {
    let found = Paired::of(first, second);
    let above = found.interval.is_some_and(|gap| gap.low > 0.0);
    let under = found.interval.is_some_and(|gap| gap.high < 0.0);
    let (holds, opposite) = if below { (under, above) } else { (above, under) };
    TestResult {
        holds,
        opposite,
        known: found.interval.is_some(),
        ..TestResult::either(false, format!("{what}: {}", found.words()))
    }
}
