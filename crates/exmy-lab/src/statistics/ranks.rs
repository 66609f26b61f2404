//! What depends on order alone: correlation of ranks, overlap of sets, trends, ROC curves.

use super::distribution::{normal_quantile, normal_tail};
use super::intervals::{Interval, mean};
use std::collections::BTreeSet;

/// The rank of each value from 1 up; equal values share the mean of their ranks. `None` if one is NaN.
///
/// ```
/// use exmy_lab::statistics::midranks;
///
/// assert_eq!(midranks(&[3.0, 1.0, 3.0, 0.5]).unwrap(), [3.5, 2.0, 3.5, 1.0]);
/// ```
pub fn midranks(values: &[f64]) -> Option<Vec<f64>> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    // By value, so that -0 equals 0.
    order.sort_by(|&a, &b| values[a].partial_cmp(&values[b]).unwrap_or(core::cmp::Ordering::Equal));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for same in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = below as f64 + (same.len() as f64 + 1.0) / 2.0;
        same.iter().for_each(|&i| ranks[i] = rank);
        below += same.len();
    }
    Some(ranks)
}

/// Spearman's rank correlation (Am. J. Psychol. 15, 1904): Pearson's correlation of the
/// [ranks](midranks), -1 to 1.
///
/// `None` of fewer than two values, where one side is constant, or with NaN.
///
/// ```
/// use exmy_lab::statistics::spearman;
///
/// // Only the order counts.
/// assert_eq!(spearman(&[1.0, 2.0, 3.0], &[0.1, 10.0, f64::INFINITY]), Some(1.0));
/// assert_eq!(spearman(&[1.0, 2.0, 3.0], &[7.0, 7.0, 7.0]), None);
/// ```
///
/// # Panics
/// If the numbers of values differ.
pub fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    assert_eq!(a.len(), b.len(), "values that are not paired");
    let (a, b) = (midranks(a)?, midranks(b)?);
    let (mean_a, mean_b) = (mean(&a)?, mean(&b)?);
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        a.iter().zip(&b).map(|(a, b)| f(a - mean_a, b - mean_b)).sum()
    };
    // Ranks are halves: these sums are exact, and so are the ends of the scale.
    let squares = sum(&|a, _| a * a) * sum(&|_, b| b * b);
    (squares > 0.0).then(|| (sum(&|a, b| a * b) / squares.sqrt()).clamp(-1.0, 1.0))
}

/// Jaccard's overlap of two sets: members of both over members of either (Bull. Soc. Vaud. Sci. Nat.
/// 37, 1901). Members named twice count once; two empty sets are the same, 1.
///
/// ```
/// use exmy_lab::statistics::jaccard;
///
/// assert_eq!(jaccard(&[1, 2, 3], &[3, 4, 2, 2]), 0.5);
/// ```
pub fn jaccard<T: Ord>(a: &[T], b: &[T]) -> f64 {
    let (a, b): (BTreeSet<&T>, BTreeSet<&T>) = (a.iter().collect(), b.iter().collect());
    match a.union(&b).count() {
        0 => 1.0,
        either => a.intersection(&b).count() as f64 / either as f64,
    }
}

/// What [`mann_kendall`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Pairs in which the later value is higher, less those in which it is lower.
    pub s: i64,
    /// `s` over the number of pairs, -1 to 1: Kendall's tau-a of value and time.
    pub tau: f64,
    /// `s` moved by one toward 0, over its standard deviation where there is no trend.
    pub z: f64,
    /// How likely at least such a rise is without one.
    pub p_rising: f64,
    /// How likely at least such a fall is without one.
    pub p_falling: f64,
}

/// The test of Mann (Econometrica 13, 1945) and Kendall for a monotone trend in a sequence, by the
/// normal approximation with the variance corrected for ties (Kendall, Rank Correlation Methods, 1975,
/// chapter 4):
/// `var S = [n (n-1) (2n+5) - sum over ties t (t-1) (2t+5)] / 18`.
///
/// It assumes that values scatter independently about the trend; successive records of one run do
/// so the less, the closer they lie. `None` of fewer than three values, with NaN, or where all are equal.
///
/// ```
/// use exmy_lab::statistics::mann_kendall;
///
/// let trend = mann_kendall(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
/// assert_eq!((trend.s, trend.tau), (10, 1.0));
/// assert!((trend.p_rising - 0.0137).abs() < 1e-4);
/// ```
pub fn mann_kendall(values: &[f64]) -> Option<Trend> {
    let n = values.len();
    if n < 3 || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut s = 0_i64;
    for (i, late) in values.iter().enumerate() {
        for early in &values[..i] {
            s += i64::from(late > early) - i64::from(late < early);
        }
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(core::cmp::Ordering::Equal));
    let term = |n: usize| n as f64 * (n as f64 - 1.0) * (2.0 * n as f64 + 5.0);
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|same| term(same.len())).sum();
    let variance = (term(n) - ties) / 18.0;
    if variance <= 0.0 {
        return None;
    }
    let z = (s - s.signum()) as f64 / variance.sqrt();
    let tau = s as f64 / (n as f64 * (n as f64 - 1.0) / 2.0);
    Some(Trend { s, tau, z, p_rising: normal_tail(z), p_falling: normal_tail(-z) })
}

/// A receiver operating characteristic.
#[derive(Clone, Debug, PartialEq)]
pub struct Roc {
    /// The share of negatives and of positives at or above a threshold, from (0, 0) to (1, 1), a
    /// point for each distinct score from the highest down.
    pub points: Vec<(f64, f64)>,
    /// The area under them: how likely a positive scores above a negative, equal scores counting one
    /// half (Hanley and McNeil, Radiology 143, 1982).
    pub area: f64,
    /// How many are positive, and how many are not.
    pub counts: (usize, usize),
}

impl Roc {
    /// The interval of the area by Hanley and McNeil's standard error (Radiology 143, 1982, equation 1),
    /// within 0 and 1. An area of 0 or 1, which has none, is taken for one of half a pair less or more.
    pub fn interval(&self, confidence: f64) -> Interval {
        let (n, m) = (self.counts.0 as f64, self.counts.1 as f64);
        let half = 0.5 / (n * m);
        let a = self.area.clamp(half, 1.0 - half);
        let (q1, q2) = (a / (2.0 - a), 2.0 * a * a / (1.0 + a));
        let variance = a * (1.0 - a) + (n - 1.0) * (q1 - a * a) + (m - 1.0) * (q2 - a * a);
        let reach =
            normal_quantile((1.0 - confidence) / 2.0) * (variance.max(0.0) / (n * m)).sqrt();
        Interval { estimate: self.area, low: (a - reach).max(0.0), high: (a + reach).min(1.0) }
    }
}

/// How well a score finds the positives: of `(score, is positive)`.
///
/// `None` unless there are both kinds, or if a score is NaN.
///
/// ```
/// use exmy_lab::statistics::roc;
///
/// let found = roc(&[(0.9, true), (0.4, false), (0.4, true), (0.1, false)]).unwrap();
/// assert_eq!(found.area, (1.0 + 1.0 + 0.5 + 1.0) / 4.0);
/// assert_eq!(found.points, [(0.0, 0.0), (0.0, 0.5), (0.5, 1.0), (1.0, 1.0)]);
/// ```
pub fn roc(scored: &[(f64, bool)]) -> Option<Roc> {
    let positives = scored.iter().filter(|(_, positive)| *positive).count();
    let negatives = scored.len() - positives;
    if positives == 0 || negatives == 0 || scored.iter().any(|(score, _)| score.is_nan()) {
        return None;
    }
    let mut sorted = scored.to_vec();
    sorted.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(core::cmp::Ordering::Equal));
    let (mut hits, mut alarms, mut halves) = (0, 0, 0_u128);
    let mut points = vec![(0.0, 0.0)];
    for same in sorted.chunk_by(|a, b| a.0 == b.0) {
        let new = same.iter().filter(|(_, positive)| *positive).count();
        let false_new = same.len() - new;
        // Twice the pairs that these negatives lose, and once those they tie.
        halves += false_new as u128 * (2 * hits + new) as u128;
        hits += new;
        alarms += false_new;
        points.push((alarms as f64 / negatives as f64, hits as f64 / positives as f64));
    }
    let area = halves as f64 / (2.0 * positives as f64 * negatives as f64);
    Some(Roc { points, area, counts: (positives, negatives) })
}
