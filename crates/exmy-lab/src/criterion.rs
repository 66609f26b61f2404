//! The criterion of an analysis as a value: what must lie where, by which test, and what is its opposite.
//!
//! An analysis judges by the thresholds of these values, and the sentence that states the criterion is
//! generated from them. Where no value says what is asked ([`Is::So`]) the sentence has words of its own, and
//! the analysis answers for them.

use crate::test_result::TestResult;

/// One thing that is asked: where a quantity must lie, by which test.
#[derive(Clone, Copy, Debug)]
pub struct Requirement {
    /// What is measured, as the subject of a sentence.
    pub of: &'static str,
    pub is: Is,
    pub by: By,
}

/// Where a quantity must lie.
#[derive(Clone, Copy, Debug)]
pub enum Is {
    /// Above another quantity.
    Above(&'static str),
    /// Below another quantity.
    Below(&'static str),
    /// Above a bound.
    Over(f64),
    /// Below a bound.
    Under(f64),
    AtLeast(f64),
    AtMost(f64),
    Exactly(f64),
    Rising,
    Falling,
    /// What no number says, as a predicate; it has no opposite.
    So(&'static str),
}

/// By which test.
#[derive(Clone, Copy, Debug)]
pub enum By {
    /// By the number itself.
    Value,
    /// By the 95 % interval: of the mean, or of the mean paired difference.
    Interval,
    /// By the interval of Hanley and McNeil.
    Areas,
    /// By the test of Mann and Kendall at 5 %, in each run.
    Trend,
    /// By the sign test, if its p is at most so much.
    Signs(f64),
    /// By the log-rank test, one-sided, if its p is at most so much.
    LogRank(f64),
}

/// When the opposite of a claim holds.
#[derive(Clone, Copy, Debug)]
pub enum Opposite {
    /// Never.
    None,
    /// Where each requirement is the other way round.
    Each,
    /// Where one is.
    One,
    /// Where all of these hold.
    All(&'static [Requirement]),
    /// Where one of these does.
    Any(&'static [Requirement]),
}

/// All that an analysis asks.
#[derive(Clone, Copy, Debug)]
pub struct Criterion {
    /// All of them must hold.
    pub requirements: &'static [Requirement],
    pub opposite: Opposite,
    /// What the words mean and what the control is, in sentences.
    pub note: fn() -> String,
}

/// A requirement.
pub const fn ask(of: &'static str, is: Is, by: By) -> Requirement {
    Requirement { of, is, by }
}

impl Requirement {
    /// That values are above those of the other quantity, or below them, pair by pair; `unit` follows the
    /// numbers.
    pub(crate) fn of_pairs(&self, own: &[f64], others: &[f64], unit: &str) -> TestResult {
        match self.is {
            Is::Below(other) => TestResult::below((self.of, own), (other, others), unit),
            Is::Above(other) => TestResult::below((other, others), (self.of, own), unit),
            _ => unreachable!("{}: no pairs", self.of),
        }
    }

    /// That the mean of values is above the bound, or below it.
    pub(crate) fn of_values(&self, values: &[f64], unit: &str) -> TestResult {
        match self.is {
            Is::Over(bound) => TestResult::above(self.of, values, bound, unit),
            Is::Under(bound) => TestResult::under(self.of, values, bound, unit),
            _ => unreachable!("{}: no bound", self.of),
        }
    }

    /// That every series rises, or falls.
    pub(crate) fn of_series(&self, series: &[Vec<(f64, f64)>]) -> TestResult {
        match self.is {
            Is::Rising => TestResult::rising(self.of, series),
            Is::Falling => TestResult::rising(self.of, series).negated(),
            _ => unreachable!("{}: no trend", self.of),
        }
    }

    /// The bound; NaN where there is none.
    pub(crate) const fn bound(&self) -> f64 {
        match self.is {
            Is::Over(x) | Is::Under(x) | Is::AtLeast(x) | Is::AtMost(x) | Is::Exactly(x) => x,
            Is::Above(_) | Is::Below(_) | Is::Rising | Is::Falling | Is::So(_) => f64::NAN,
        }
    }

    /// The other way round, if there is another way.
    fn mirrored(&self) -> Option<Self> {
        let is = match self.is {
            Is::Above(other) => Is::Below(other),
            Is::Below(other) => Is::Above(other),
            Is::Over(bound) => Is::Under(bound),
            Is::Under(bound) => Is::Over(bound),
            Is::AtLeast(bound) => Is::AtMost(bound),
            Is::AtMost(bound) => Is::AtLeast(bound),
            Is::Rising => Is::Falling,
            Is::Falling => Is::Rising,
            Is::Exactly(_) | Is::So(_) => return None,
        };
        Some(Self { is, ..*self })
    }

    fn words(&self) -> String {
        let is = match self.is {
            Is::Above(other) => format!("is above {other}"),
            Is::Below(other) => format!("is below {other}"),
            Is::Over(bound) => format!("is above {bound}"),
            Is::Under(bound) => format!("is below {bound}"),
            Is::AtLeast(bound) => format!("is at least {bound}"),
            Is::AtMost(bound) => format!("is at most {bound}"),
            Is::Exactly(bound) => format!("is {bound}"),
            Is::Rising => "rises".into(),
            Is::Falling => "falls".into(),
            Is::So(predicate) => predicate.into(),
        };
        let by = match (self.by, self.is) {
            (By::Value, _) => String::new(),
            (By::Interval, Is::Above(_) | Is::Below(_)) => {
                " (95 % interval of the paired difference)".into()
            }
            (By::Interval, _) => " (95 % interval)".into(),
            (By::Areas, _) => " (interval of Hanley and McNeil)".into(),
            (By::Trend, _) => " in each run (test of Mann and Kendall, one-sided, 5 %)".into(),
            (By::Signs(p), _) => format!(" (sign test, p at most {p})"),
            (By::LogRank(p), _) => format!(" (log-rank test, one-sided, p at most {p})"),
        };
        format!("{} {is}{by}", self.of)
    }
}

impl Criterion {
    pub const fn new(requirements: &'static [Requirement], opposite: Opposite) -> Self {
        Self { requirements, opposite, note: String::new }
    }

    /// The same with sentences about its words.
    #[must_use]
    pub const fn noted(self, note: fn() -> String) -> Self {
        Self { note, ..self }
    }

    /// When the claim holds.
    pub(crate) fn holds(&self) -> String {
        joined(self.requirements.iter().copied(), ", and ")
    }

    /// When its opposite does.
    pub(crate) fn opposite(&self) -> Option<String> {
        let mirrored = self.requirements.iter().filter_map(Requirement::mirrored);
        Some(match self.opposite {
            Opposite::None => return None,
            Opposite::Each => joined(mirrored, ", and "),
            Opposite::One => joined(mirrored, ", or "),
            Opposite::All(requirements) => joined(requirements.iter().copied(), ", and "),
            Opposite::Any(requirements) => joined(requirements.iter().copied(), ", or "),
        })
    }

    /// All of it in sentences.
    pub(crate) fn sentence(&self) -> String {
        let opposite =
            self.opposite().map_or_else(String::new, |asks| format!("; contradicted where {asks}"));
        let note = (self.note)();
        let space = if note.is_empty() { "" } else { " " };
        format!("Reproduced where {}{opposite}.{space}{note}", self.holds())
    }
}

fn joined(requirements: impl Iterator<Item = Requirement>, by: &str) -> String {
    requirements.map(|one| one.words()).collect::<Vec<_>>().join(by)
}
