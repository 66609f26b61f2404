//! Survival: what share of runs goes on without the event (divergence) after each step, and whether one group
//! meets it sooner than another.
//!
//! A run is a step and whether the event came there; if not, it was watched until that step (censored).

use super::distribution::{normal_quantile, normal_tail};
use super::intervals::Interval;

/// The estimate of Kaplan and Meier (JASA 53, 1958): after each step with an event, the share that has not
/// met it. The interval is that of `ln(-ln share)` with Greenwood's variance (Kalbfleisch and Prentice, 2002,
/// section 1.4); none of it is outside 0 to 1. Where the share is 0 it is no more than that.
///
/// ```
/// use exmy_lab::statistics::kaplan_meier;
///
/// let curve = kaplan_meier(&[(10, true), (20, false), (30, true), (30, false)], 0.95);
/// assert_eq!(curve.iter().map(|at| at.0).collect::<Vec<_>>(), [10, 30]);
/// assert_eq!((curve[0].1.estimate, curve[1].1.estimate), (0.75, 0.375));
/// ```
pub fn kaplan_meier(runs: &[(u64, bool)], confidence: f64) -> Vec<(u64, Interval)> {
    let z = normal_quantile((1.0 - confidence) / 2.0);
    let (mut share, mut greenwood) = (1.0, 0.0);
    let mut curve = Vec::new();
    for step in steps(runs) {
        let (events, at_risk) = at(runs, step);
        share *= 1.0 - events / at_risk;
        greenwood += events / (at_risk * (at_risk - events));
        let interval = if share > 0.0 {
            let reach = z * greenwood.sqrt() / -libm::log(share);
            let end = |reach: f64| libm::pow(share, libm::exp(reach));
            Interval { estimate: share, low: end(reach), high: end(-reach) }
        } else {
            Interval { estimate: 0.0, low: 0.0, high: 0.0 }
        };
        curve.push((step, interval));
    }
    curve
}

/// What the log-rank test says (Mantel, Cancer Chemotherapy Reports 50, 1966).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogRank {
    /// Events of the first group; by doses, the sum of their doses.
    pub observed: f64,
    /// How many it would have if both groups met them alike.
    pub expected: f64,
    /// Of `observed - expected`.
    pub variance: f64,
    /// `(observed - expected)` over its standard deviation; its square is the test's chi-squared.
    pub z: f64,
    /// The probability of a `z` at least as large by chance alone.
    pub p_sooner: f64,
    /// The probability of a `z` at most as large.
    pub p_later: f64,
    /// The same of one at least as far from 0.
    pub p_two_sided: f64,
}

impl LogRank {
    /// How many times as often the first group meets the event as the second, after Peto (Peto et al.,
    /// British Journal of Cancer 35, 1977). Far from 1 it is nearer to 1 than the ratio of hazards.
    pub fn hazard(&self, confidence: f64) -> Interval {
        let reach = normal_quantile((1.0 - confidence) / 2.0) * self.variance.sqrt();
        let ratio = |excess: f64| libm::exp(excess / self.variance);
        let excess = self.observed - self.expected;
        Interval {
            estimate: ratio(excess),
            low: ratio(excess - reach),
            high: ratio(excess + reach),
        }
    }
}

/// Whether the first group meets the event sooner than the second; `None` where nothing can be said, as
/// without events.
pub fn log_rank(first: &[(u64, bool)], second: &[(u64, bool)]) -> Option<LogRank> {
    log_rank_trend(&[(1.0, first), (0.0, second)])
}

/// Whether groups meet the event the sooner the larger their dose (Tarone, Biometrika 62, 1975).
pub fn log_rank_trend(groups: &[(f64, &[(u64, bool)])]) -> Option<LogRank> {
    let all: Vec<_> = groups.iter().flat_map(|group| group.1).copied().collect();
    let (mut observed, mut expected, mut variance) = (0.0, 0.0, 0.0);
    for step in steps(&all) {
        let (events, at_risk) = at(&all, step);
        let (mut first, mut second) = (0.0, 0.0);
        for &(dose, runs) in groups {
            let (own, own_risk) = at(runs, step);
            observed += dose * own;
            first += dose * own_risk;
            second += dose * dose * own_risk;
        }
        expected += events * first / at_risk;
        if at_risk > 1.0 {
            variance += events * (at_risk * second - first * first) * (at_risk - events)
                / (at_risk * at_risk * (at_risk - 1.0));
        }
    }
    (variance > 0.0).then(|| {
        let z = (observed - expected) / variance.sqrt();
        LogRank {
            observed,
            expected,
            variance,
            z,
            p_sooner: normal_tail(z),
            p_later: normal_tail(-z),
            p_two_sided: 2.0 * normal_tail(z.abs()),
        }
    })
}

/// The steps with an event, ascending.
fn steps(runs: &[(u64, bool)]) -> Vec<u64> {
    let mut steps: Vec<u64> = runs.iter().filter(|run| run.1).map(|run| run.0).collect();
    steps.sort_unstable();
    steps.dedup();
    steps
}

/// Events at a step, and runs that had met none before it.
fn at(runs: &[(u64, bool)], step: u64) -> (f64, f64) {
    let events = runs.iter().filter(|run| **run == (step, true)).count();
    let at_risk = runs.iter().filter(|run| run.0 >= step).count();
    (events as f64, at_risk as f64)
}
