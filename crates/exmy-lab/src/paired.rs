//! What of paired seeds counts as a claim that holds, as one whose opposite does, or as neither.
//!
//! Orderings are claimed where the 95 % interval of the paired difference excludes 0, bounds where that of
//! the mean does not reach them, trends where the test of Mann and Kendall finds them in every seed.

use crate::finding::Verdict;
use crate::statistics::{Interval, mann_kendall, mean, mean_interval, paired_interval};

/// Whether a criterion holds (`true`), its opposite does, or neither, with the numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Side {
    pub(crate) holds: Option<bool>,
    pub(crate) text: String,
}

/// What an interval says of an estimate that should lie above `bound`.
fn side(found: Option<Interval>, bound: f64, above: bool) -> Option<bool> {
    let found = found?;
    let (over, under) = (found.low > bound, found.high < bound);
    match (over, under) {
        (true, _) => Some(above),
        (_, true) => Some(!above),
        _ => None,
    }
}

/// `estimate [low, high]`, signed or not.
pub(crate) fn interval(found: Option<Interval>) -> String {
    match found {
        Some(Interval { estimate, low, high }) => {
            format!("{estimate:+.3} [{low:+.3}, {high:+.3}]")
        }
        None => "no interval".into(),
    }
}

impl Side {
    /// That `a` is below `b`, pair by pair; `unit` follows the numbers.
    pub(crate) fn below(a: (&str, &[f64]), b: (&str, &[f64]), unit: &str) -> Self {
        let found = paired_interval(a.1, b.1, 0.95);
        let text = match found {
            Some(_) => {
                format!("{} minus {}: {}{unit}, {} pairs", a.0, b.0, interval(found), a.1.len())
            }
            None => {
                let values = |values: &[f64]| {
                    values.iter().map(|x| format!("{x:.3}")).collect::<Vec<_>>().join(", ")
                };
                let (a_values, b_values) = (values(a.1), values(b.1));
                format!("{} {a_values}{unit}, {} {b_values}: no interval", a.0, b.0)
            }
        };
        Self { holds: side(found, 0.0, false), text }
    }

    /// That the mean of the values is above a bound.
    pub(crate) fn above(what: &str, values: &[f64], bound: f64, unit: &str) -> Self {
        let found = mean_interval(values, 0.95);
        let shown = match (found, mean(values)) {
            (Some(Interval { estimate, low, high }), _) => {
                format!("{estimate:.3} [{low:.3}, {high:.3}]")
            }
            (None, Some(mean)) => format!("{mean:.3} (one value)"),
            (None, None) => "not measured".into(),
        };
        Self {
            holds: side(found, bound, true),
            text: format!("{what}: {shown}{unit} against {bound}"),
        }
    }

    /// That the mean of the values is under a bound.
    pub(crate) fn under(what: &str, values: &[f64], bound: f64, unit: &str) -> Self {
        let Self { holds, text } = Self::above(what, values, bound, unit);
        Self { holds: holds.map(|above| !above), text }
    }

    /// That all series rise by the test of Mann and Kendall at 5 %.
    pub(crate) fn rising(what: &str, series: &[Vec<(f64, f64)>]) -> Self {
        let trend = |series: &Vec<(f64, f64)>| {
            mann_kendall(&series.iter().map(|&(_, y)| y).collect::<Vec<_>>())
        };
        let trends: Vec<_> = series.iter().filter_map(trend).collect();
        let all = !trends.is_empty() && trends.len() == series.len();
        let holds = match all {
            true if trends.iter().all(|t| t.p_rising < 0.05) => Some(true),
            true if trends.iter().all(|t| t.p_falling < 0.05) => Some(false),
            _ => None,
        };
        let taus: Vec<String> = trends.iter().map(|t| format!("{:+.2}", t.tau)).collect();
        let taus = if taus.is_empty() { "too few points".into() } else { taus.join(", ") };
        Self { holds, text: format!("{what} over time, Kendall's tau by seed: {taus}") }
    }

    /// The opposite claim.
    pub(crate) fn not(self) -> Self {
        Self { holds: self.holds.map(|holds| !holds), ..self }
    }
}

/// Reproduced if all claims hold, contradicted if the opposite of one does.
pub(crate) fn verdict(claims: &[Side]) -> Verdict {
    let text = claims.iter().map(|claim| claim.text.as_str()).collect::<Vec<_>>().join("; ");
    if claims.iter().any(|claim| claim.holds == Some(false)) {
        Verdict::Contradicted(text)
    } else if !claims.is_empty() && claims.iter().all(|claim| claim.holds == Some(true)) {
        Verdict::Reproduced(text)
    } else {
        Verdict::NotSeen(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(claims: &[Side]) -> &'static str {
        verdict(claims).word()
    }

    #[test]
    fn orderings_are_judged_by_the_paired_interval() {
        let (low, high) = ([0.5, 0.6, 0.4, 0.5, 0.55], [0.9, 1.1, 0.8, 1.0, 0.9]);
        let noisy = [0.1, 1.2, 0.4, 0.9, 0.2];
        let below = |a: &[f64], b: &[f64]| Side::below(("a", a), ("b", b), " %");
        assert_eq!(word(&[below(&low, &high)]), "reproduced");
        assert_eq!(word(&[below(&high, &low)]), "contradicted");
        assert_eq!(word(&[below(&low, &noisy)]), "not seen at this scale");
        assert_eq!(word(&[below(&low[..1], &high[..1])]), "not seen at this scale");
        assert_eq!(word(&[below(&low, &high), below(&low, &noisy)]), "not seen at this scale");
        assert_eq!(word(&[below(&low, &high), below(&high, &low)]), "contradicted");
        assert_eq!(word(&[]), "not seen at this scale");
        // A run that diverged has no gap to take the mean of.
        assert_eq!(below(&[f64::INFINITY, 1.0], &[1.0, 2.0]).holds, None);
        assert!(
            below(&low, &high).text.contains("a minus b: -0.430"),
            "{}",
            below(&low, &high).text
        );
    }

    #[test]
    fn bounds_and_trends_are_judged() {
        let values = [0.8, 0.82, 0.79];
        assert_eq!(Side::above("x", &values, 0.7, "").holds, Some(true));
        assert_eq!(Side::above("x", &values, 0.9, "").holds, Some(false));
        assert_eq!(Side::above("x", &values, 0.8, "").holds, None);
        assert_eq!(Side::under("x", &values, 0.9, "").holds, Some(true));
        let rise = |sign: f64| (0..9).map(|i| (f64::from(i), sign * f64::from(i * i))).collect();
        let flat: Vec<(f64, f64)> = (0..9).map(|i| (f64::from(i), f64::from(i % 2))).collect();
        let holds = |series: &[Vec<(f64, f64)>]| Side::rising("x", series).holds;
        assert_eq!(holds(&[rise(1.0), rise(2.0)]), Some(true));
        assert_eq!(holds(&[rise(-1.0), rise(-2.0)]), Some(false));
        assert_eq!(holds(&[rise(1.0), flat]), None);
        assert_eq!(holds(&[]), None);
        assert_eq!(Side::rising("x", &[rise(1.0)]).not().holds, Some(false));
    }
}
