//! Power: in what share of cases a test sees an effect that is there.
//!
//! A test that sees nothing says something only if it would have seen an effect of the size that is claimed.

use super::counts::fisher;
use super::distribution::{normal_tail, t_quantile};
use super::survival::log_rank;

/// In how many of all samples of `n` values of deviation `sd` and mean `effect` the interval of the mean lies
/// above 0: the upper tail of the noncentral t distribution.
///
/// `None` of fewer than two values, a deviation or an effect that is no finite number, or a confidence
/// outside (0, 1).
///
/// ```
/// use exmy_lab::statistics::interval_power;
///
/// // An effect of one deviation is seen with ten pairs in 80 % of cases (Cohen 1988, G*Power: 0.803).
/// assert!((interval_power(1.0, 1.0, 10, 0.95).unwrap() - 0.803).abs() < 5e-4);
/// ```
pub fn interval_power(effect: f64, sd: f64, n: usize, confidence: f64) -> Option<f64> {
    let df = n.checked_sub(1).filter(|&df| df > 0)? as f64;
    let t = t_quantile((1.0 - confidence) / 2.0, df);
    if !(effect.is_finite() && sd.is_finite() && t.is_finite()) {
        return None;
    }
    if sd == 0.0 {
        return Some(if effect > 0.0 { 1.0 } else { 0.0 });
    }
    let shift = effect / sd * (n as f64).sqrt();
    // Over the sample's deviation in units of the true one, whose density is s^(df - 1) exp(-df s^2 / 2) but
    // for a factor.
    let reach = 1.0 + 9.0 / df.sqrt();
    let steps = 4000;
    let (mut seen, mut all) = (0.0, 0.0);
    for i in 0..steps {
        let s = reach * (f64::from(i) + 0.5) / f64::from(steps);
        let weight = libm::exp((df - 1.0) * libm::log(s) - df * (s * s - 1.0) / 2.0);
        seen += weight * normal_tail(t * s - shift);
        all += weight;
    }
    Some(seen / all)
}

/// In how many of all cases Fisher's exact test, one-sided, is below `level`, where runs fail with these
/// shares; the second numbers are of how many runs.
///
/// ```
/// use exmy_lab::statistics::fisher_power;
///
/// // 9.6 % against none of 20 and 20 runs: six must fail.
/// assert!((fisher_power((0.096, 20), (0.0, 20), 0.05 / 3.0) - 0.0089).abs() < 1e-3);
/// ```
pub fn fisher_power(a: (f64, u64), b: (f64, u64), level: f64) -> f64 {
    let chances = |(share, of): (f64, u64)| super::coins(&vec![share; of as usize]);
    let (first, second) = (chances(a), chances(b));
    let mut seen = 0.0;
    for (hits, one) in (0..).zip(&first) {
        for (others, other) in (0..).zip(&second) {
            if fisher((hits, a.1), (others, b.1)).is_some_and(|p| p < level) {
                seen += one * other;
            }
        }
    }
    seen
}

/// In how many of all cases the log-rank test, one-sided, is at most `level`, where runs meet the event with
/// this share, the second number being how many there are, and `never` others do not meet it at all.
///
/// The others are at risk throughout, so `p` depends on how many events there are alone.
///
/// ```
/// use exmy_lab::statistics::log_rank_power;
///
/// // Of ten runs six must meet it, so that p is at most 0.0033; at a share of 0.6 that many do in 63.3 %.
/// assert!((log_rank_power((0.6, 10), 10, 0.0033) - 0.633).abs() < 5e-4);
/// ```
pub fn log_rank_power((share, runs): (f64, usize), never: usize, level: f64) -> f64 {
    let others = vec![(runs as u64 + 1, false); never];
    let is_seen = |events: usize| {
        let met: Vec<_> = (0..runs).map(|i| (i.min(events) as u64 + 1, i < events)).collect();
        log_rank(&others, &met).is_some_and(|test| test.p_later <= level)
    };
    let chances = super::coins(&vec![share; runs]);
    chances
        .iter()
        .enumerate()
        .filter(|(events, _)| is_seen(*events))
        .map(|(_, chance)| chance)
        .sum()
}
