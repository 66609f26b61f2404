//! Power: in what share of cases a test sees an effect that is there.
//!
//! A test that sees nothing says something only if it would have seen an effect of the size that is claimed.

use super::counts::fisher;
use super::distribution::{normal_tail, t_quantile};

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

#[cfg(test)]
mod tests {
    use super::*;

    /// G*Power 3.1, means of pairs, two-sided at 5 %.
    #[test]
    fn powers_of_a_reference() {
        for (effect, n, power) in [(0.5, 20, 0.5645), (0.5, 34, 0.8078), (0.8, 15, 0.8213)] {
            let found = interval_power(effect, 1.0, n, 0.95).unwrap();
            assert!((found - power).abs() < 5e-4, "{effect}, {n}: {found}");
        }
    }

    #[test]
    fn no_effect_is_seen_at_the_level() {
        assert!((interval_power(0.0, 2.0, 6, 0.9).unwrap() - 0.05).abs() < 1e-4);
        assert_eq!(interval_power(1.0, 1.0, 1, 0.95), None);
        assert_eq!(interval_power(1.0, f64::NAN, 5, 0.95), None);
        assert!(fisher_power((0.3, 10), (0.3, 10), 0.05) < 0.05);
    }
}
