//! What runs say of a test: that a claim holds, that its opposite does, or neither, with the numbers.
//!
//! Orderings are claimed where the 95 % interval of the paired difference excludes 0, bounds where that of
//! the mean does not reach them, trends where the test of Mann and Kendall finds them in every seed.

use crate::finding::{Findings, Part, Power, SEEN, Verdict};
use crate::statistics::{Interval, Trend, mann_kendall, mean, mean_interval, paired_interval};

/// A mean and its interval in words, of figures whose tables have three digits.
pub(crate) fn interval(found: Option<Interval>) -> String {
    found.map_or_else(|| "no interval".into(), |found| found.words(3))
}

/// What runs say of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestResult {
    pub holds: bool,
    pub opposite: bool,
    /// Whether anything could be computed.
    pub known: bool,
    /// How often it would have been seen, if the paper's effect were there.
    pub power: Power,
    /// The numbers.
    pub text: String,
    /// Of what is asked together, each part; none of a single test, and of several of which one is enough.
    pub parts: Vec<TestResult>,
}

impl TestResult {
    /// Of an interval of a difference that should be above 0.
    pub(crate) fn of(found: Option<Interval>, text: String) -> Self {
        let holds = found.is_some_and(|gap| gap.low > 0.0);
        let opposite = found.is_some_and(|gap| gap.high < 0.0);
        Self {
            holds,
            opposite,
            known: found.is_some(),
            power: Power::UNSTATED,
            text,
            parts: Vec::new(),
        }
    }

    /// Of what holds or does not, and has no opposite.
    pub fn either(holds: bool, text: String) -> Self {
        Self {
            holds,
            opposite: false,
            known: true,
            power: Power::UNSTATED,
            text,
            parts: Vec::new(),
        }
    }

    /// That `a` is below `b`, pair by pair; `unit` follows the numbers.
    pub fn below(a: (&str, &[f64]), b: (&str, &[f64]), unit: &str) -> Self {
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
        Self::of(found, text).negated()
    }

    /// That the mean of the values is above a bound.
    pub fn above(what: &str, values: &[f64], bound: f64, unit: &str) -> Self {
        let found = mean_interval(values, 0.95);
        let shown = match (found, mean(values)) {
            (Some(Interval { estimate, low, high }), _) => {
                format!("{estimate:.3} ({low:.3} to {high:.3})")
            }
            (None, Some(mean)) => format!("{mean:.3} (one value)"),
            (None, None) => "not measured".into(),
        };
        let over = found.is_some_and(|found| found.low > bound);
        let opposite = found.is_some_and(|found| found.high < bound);
        let text = format!("{what}: {shown}{unit} against {bound}");
        Self { opposite, known: found.is_some(), ..Self::either(over, text) }
    }

    /// That the mean of the values is under a bound.
    pub fn under(what: &str, values: &[f64], bound: f64, unit: &str) -> Self {
        Self::above(what, values, bound, unit).negated()
    }

    /// That all series rise by the test of Mann and Kendall at 5 %.
    pub fn rising(what: &str, series: &[Vec<(f64, f64)>]) -> Self {
        let trend = |series: &Vec<(f64, f64)>| {
            mann_kendall(&series.iter().map(|&(_, y)| y).collect::<Vec<_>>())
        };
        let trends: Vec<_> = series.iter().filter_map(trend).collect();
        let all = !trends.is_empty() && trends.len() == series.len();
        let by = |p: fn(&Trend) -> f64| all && trends.iter().all(|trend| p(trend) < 0.05);
        let (holds, opposite) = (by(|trend| trend.p_rising), by(|trend| trend.p_falling));
        let taus: Vec<String> = trends.iter().map(|t| format!("{:+.2}", t.tau)).collect();
        let taus = if taus.is_empty() { "too few points".into() } else { taus.join(", ") };
        let text = format!("{what} over time, Kendall's tau by seed: {taus}");
        Self { opposite, known: all, ..Self::either(holds, text) }
    }

    /// Its parts; itself where it has none.
    fn split(&self) -> &[Self] {
        if self.parts.is_empty() { std::slice::from_ref(self) } else { &self.parts }
    }

    /// How often it would have been seen; where nothing could be computed, too few values are there to say.
    pub(crate) fn known_power(&self) -> Power {
        if self.known { self.power } else { Power::FewSeeds }
    }

    /// What is said of each part.
    pub fn judged(&self) -> Vec<Verdict> {
        let of = |part: &Self| {
            let verdict = Verdict::of(part.holds, part.opposite, part.text.clone());
            verdict.with_power(part.known_power())
        };
        self.parts.iter().map(of).collect()
    }

    /// The opposite claim.
    pub fn negated(self) -> Self {
        let parts = self.parts.into_iter().map(Self::negated).collect();
        Self { holds: self.opposite, opposite: self.holds, parts, ..self }
    }
}

/// Reproduced if all claims hold, contradicted if the opposite of one does, untested where one of those that
/// do not hold could not be computed.
pub fn verdict(claims: &[TestResult]) -> Verdict {
    let result = every(claims);
    match Verdict::of(result.holds && !claims.is_empty(), result.opposite, result.text) {
        Verdict::NotSeen(text) if claims.is_empty() || !result.known => Verdict::Untested(text),
        other => other,
    }
}

/// What they say of a claim that has each of them as a part, and what is shown of it.
pub fn concluded(claims: &[TestResult], parts: Vec<Part>) -> Findings {
    Findings { judged: every(claims).judged(), ..Findings::of(verdict(claims), parts) }
}

/// What several say.
pub(crate) fn joined(results: &[TestResult]) -> String {
    results.iter().map(|one| one.text.as_str()).collect::<Vec<_>>().join("; ")
}

/// All of several; the opposite is that of all.
pub fn all(results: &[TestResult]) -> TestResult {
    TestResult {
        holds: results.iter().all(|one| one.holds),
        opposite: results.iter().all(|one| one.opposite),
        known: results.iter().all(|one| one.known),
        power: weakest(results),
        text: joined(results),
        parts: results.iter().flat_map(TestResult::split).cloned().collect(),
    }
}

/// The lowest power of those that do not hold, as all must be seen. One that is known to be too low says so
/// of all, whatever is not known of the others.
fn weakest(results: &[TestResult]) -> Power {
    let missed = results.iter().filter(|one| !one.holds).map(|one| one.power);
    let lower = |low, one| match (low, one) {
        (Power::Share(a), Power::Share(b)) => Power::Share(a.min(b)),
        (Power::Share(a), _) | (_, Power::Share(a)) if a < SEEN => Power::Share(a),
        (Power::Share(_), unknown) | (unknown, _) => unknown,
    };
    missed.reduce(lower).unwrap_or(Power::UNSTATED)
}

/// The highest power, as one must be seen.
fn strongest(results: &[TestResult]) -> Power {
    let higher = |high, one| match (high, one) {
        (Power::Share(a), Power::Share(b)) => Power::Share(a.max(b)),
        (Power::Share(a), _) | (_, Power::Share(a)) => Power::Share(a),
        (unknown, _) => unknown,
    };
    results.iter().map(|one| one.power).reduce(higher).unwrap_or(Power::UNSTATED)
}

/// All, but the opposite of one is enough.
pub fn every(results: &[TestResult]) -> TestResult {
    TestResult { opposite: results.iter().any(|one| one.opposite), ..all(results) }
}

/// One of several, and the opposite where none holds.
pub fn any(results: &[TestResult]) -> TestResult {
    let holds = results.iter().any(|one| one.holds);
    TestResult {
        holds,
        opposite: !holds && results.iter().any(|one| one.opposite),
        known: results.iter().any(|one| one.known),
        power: strongest(results),
        text: joined(results),
        parts: Vec::new(),
    }
}
