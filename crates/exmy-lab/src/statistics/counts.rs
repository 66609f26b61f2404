//! Tests and intervals of counts: how many runs diverged, how many pairs went which way.

use super::distribution::normal_quantile;
use super::intervals::Interval;

/// `ln C(n, k)`.
fn ln_choose(n: u64, k: u64) -> f64 {
    let ln_factorial = |n: u64| libm::lgamma(n as f64 + 1.0);
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// The share `hits / of` with its interval by Wilson's score (J. Am. Stat. Assoc. 22, 1927), which
/// stays within 0 and 1 and says something of 0 hits, too.
///
/// `None` if there are more hits than trials, no trials, or the confidence is not in (0, 1).
///
/// ```
/// use exmy_lab::statistics::wilson;
///
/// let none = wilson(0, 70, 0.95).unwrap();
/// assert_eq!(none.low, 0.0);
/// assert!((none.high - 0.052).abs() < 1e-4); // no failure in 70 runs: up to 5.2 %
/// ```
pub fn wilson(hits: u64, of: u64, confidence: f64) -> Option<Interval> {
    let z = normal_quantile((1.0 - confidence) / 2.0);
    if of == 0 || hits > of || !(z.is_finite() && z >= 0.0) {
        return None;
    }
    let (hits_f, n) = (hits as f64, of as f64);
    let share = hits_f / n;
    let whole = 1.0 + z * z / n;
    let middle = (share + z * z / (2.0 * n)) / whole;
    let reach = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt() / whole;
    // Exact at the ends, where the difference of equal numbers would leave a rounding error.
    Some(Interval {
        estimate: share,
        low: if hits == 0 { 0.0 } else { middle - reach },
        high: if hits == of { 1.0 } else { middle + reach },
    })
}

/// Fisher's exact test, one-sided: how likely group `a` would have at least its `hits` if the two
/// groups' hits were divided between them by chance (hypergeometric).
///
/// 1 where a group is empty. `None` if a group has more hits than members.
///
/// ```
/// use exmy_lab::statistics::fisher;
///
/// // 18 of 188 runs in bfloat16 diverged, none of 70 in TF32.
/// let p = fisher((18, 188), (0, 70)).unwrap();
/// assert!((p - 0.0027).abs() < 5e-5);
/// assert_eq!(fisher((0, 70), (18, 188)), Some(1.0)); // it has a direction
/// ```
pub fn fisher(a: (u64, u64), b: (u64, u64)) -> Option<f64> {
    if a.0 > a.1 || b.0 > b.1 {
        return None;
    }
    let hits = a.0 + b.0;
    let least = hits.saturating_sub(b.1);
    if a.0 == least {
        return Some(1.0);
    }
    let all = ln_choose(a.1 + b.1, hits);
    let chance = |k: u64| libm::exp(ln_choose(a.1, k) + ln_choose(b.1, hits - k) - all);
    let sum: f64 = (a.0..=hits.min(a.1)).rev().map(chance).sum();
    Some(sum.min(1.0))
}

/// What [`sign_test`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signs {
    /// Differences below 0.
    pub negative: u64,
    /// Differences above 0.
    pub positive: u64,
    /// Differences of exactly 0, which do not count.
    pub ties: u64,
    /// How likely at least so many would be positive by chance.
    pub p_positive: f64,
    /// How likely at least so many would be negative by chance.
    pub p_negative: f64,
    /// How likely the signs would be at least so unequal by chance.
    pub p_two_sided: f64,
}

/// The exact sign test (Arbuthnott, Phil. Trans. 27, 1710): whether differences within pairs are as
/// often positive as negative, by the binomial distribution of one half. Infinite differences count
/// by their sign, so a diverged partner is a worse one.
///
/// `None` if a difference is NaN.
///
/// ```
/// use exmy_lab::statistics::sign_test;
///
/// let signs = sign_test(&[0.1, 0.2, 0.3, 0.1, 0.2]).unwrap();
/// // Five of five: 1 in 32, and 1 in 16 where either direction would have counted.
/// assert!((signs.p_positive - 0.03125).abs() < 1e-12);
/// assert!((signs.p_two_sided - 0.0625).abs() < 1e-12);
/// ```
pub fn sign_test(differences: &[f64]) -> Option<Signs> {
    if differences.iter().any(|difference| difference.is_nan()) {
        return None;
    }
    let count = |holds: fn(&&f64) -> bool| differences.iter().filter(holds).count() as u64;
    let (negative, positive) = (count(|d| **d < 0.0), count(|d| **d > 0.0));
    let n = negative + positive;
    let chance = |k: u64| libm::exp(ln_choose(n, k) - n as f64 * core::f64::consts::LN_2);
    let at_least = |k: u64| match k {
        0 => 1.0,
        k => (k..=n).rev().map(chance).sum::<f64>().min(1.0),
    };
    Some(Signs {
        negative,
        positive,
        ties: differences.len() as u64 - n,
        p_positive: at_least(positive),
        p_negative: at_least(negative),
        p_two_sided: (2.0 * at_least(positive.max(negative))).min(1.0),
    })
}

/// How likely coins that fall on heads with these probabilities are to do so 0, 1, 2, ... times together.
///
/// ```
/// use exmy_lab::statistics::coins;
///
/// assert_eq!(coins(&[0.5, 0.25]), [0.375, 0.5, 0.125]);
/// ```
pub fn coins(heads: &[f64]) -> Vec<f64> {
    let mut chances = vec![1.0];
    for p in heads {
        chances.push(0.0);
        for k in (0..chances.len()).rev() {
            let one_more = if k > 0 { chances[k - 1] * p } else { 0.0 };
            chances[k] = chances[k] * (1.0 - p) + one_more;
        }
    }
    chances
}
