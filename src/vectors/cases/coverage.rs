//! What a set of cases exercises: classes of operands and results, flags, ties, thresholds.

use std::fmt;

use super::Cases;
use crate::error::Error;
use crate::format::{Format, Value};
use crate::round::{Flags, Rounding};
use crate::vectors::evaluate::{Evaluator, Outcome, Settings};
use crate::vectors::function::Kind;

/// How often each thing happens in a set. Its text is a table, a row a line, the number first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    rows: Vec<(&'static str, &'static str, u64)>,
}

impl Coverage {
    /// The rows: of what, what, and how often.
    pub fn rows(&self) -> &[(&'static str, &'static str, u64)] {
        &self.rows
    }

    /// Counts something that may happen, whether it did or not.
    pub(in crate::vectors) fn add(&mut self, of: &'static str, what: &'static str, happened: bool) {
        let found = self.rows.iter_mut().find(|(row, thing, _)| (*row, *thing) == (of, what));
        match found {
            Some((.., count)) => *count += u64::from(happened),
            None => self.rows.push((of, what, happened.into())),
        }
    }

    /// The class of a number.
    pub(in crate::vectors) fn class(&mut self, of: &'static str, format: Format, code: u64) {
        let value = format.decode(code);
        let magnitude = code & format.magnitude_mask();
        let subnormal = format.max_subnormal_code().is_some_and(|most| magnitude <= most);
        let infinite = value.is_infinite();
        let finite = !value.is_zero() && value.is_finite();
        if format.has_zero() {
            self.add(of, "zero", value.is_zero());
        }
        if format.max_subnormal_code().is_some() {
            self.add(of, "subnormal", finite && subnormal);
        }
        if let Some(least) = format.min_normal_code() {
            self.add(of, "the smallest normal number", magnitude == least);
            self.add(of, "normal", finite && !subnormal);
        }
        self.add(of, "the largest number", finite && magnitude == format.max_code());
        if format.has_infinity() {
            self.add(of, "infinite", infinite);
        }
        if format.has_nan() {
            self.add(of, "NaN", value.is_nan());
        }
        if format.is_signed() {
            self.add(of, "negative", value.is_sign_negative());
        }
    }

    /// What a set of cases exercises.
    ///
    /// ```
    /// use exmy::vectors::cases::{Cases, Coverage, Request};
    /// use exmy::vectors::evaluate::Settings;
    /// use exmy::vectors::function::TestFunction;
    ///
    /// let mul: TestFunction = "f16_mul".parse()?;
    /// let cases = Cases::new(&mul, &Request { count: Some(5000), ..Request::default() })?;
    /// let coverage = Coverage::of(&mul.evaluator(&Settings::default())?, &cases)?;
    /// assert!(coverage.rows().iter().all(|(.., count)| *count > 0), "{coverage}");
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where an elementary function cannot be decided.
    pub fn of(evaluator: &Evaluator, cases: &Cases) -> Result<Self, Error> {
        let function = evaluator.function();
        // Where results toward zero and away from it differ the exact one lies between, and where those to
        // the nearest differ by how they break ties it is one.
        let under = |rounding| {
            let settings = Settings { rounding: Some(rounding), ..*evaluator.settings() };
            function.evaluator(&settings).ok()
        };
        let modes = [
            Rounding::TowardZero,
            Rounding::AwayFromZero,
            Rounding::TiesToZero,
            Rounding::TiesToAway,
        ];
        let others: Option<Vec<Evaluator>> = modes.into_iter().map(under).collect();
        let mut found = Self::default();
        let mut index = 0;
        while index < cases.len() {
            let words = cases.operands(index);
            let random = cases.philox.word(index as u64);
            let outcome = evaluator.evaluate(words, random).map_err(Error::from_cause)?;
            found.add("all", "cases", true);
            for ((kind, word), name) in
                function.operands().iter().zip(words).zip(["a is", "b is", "c is"])
            {
                if let Kind::Format(format) = kind {
                    found.class(name, *format, word as u64);
                }
            }
            if let Kind::Format(format) = function.result() {
                found.class("result is", format, outcome.word as u64);
                let number = format.decode(outcome.word as u64);
                // The end of the range in place of something beyond is counted by its flag.
                let rounded = matches!(number, Value::Finite { .. })
                    && !outcome.flags.contains(Flags::SATURATED);
                if let (Some(others), true) = (&others, rounded) {
                    let mut results = [(0, false); 4];
                    for (result, other) in results.iter_mut().zip(others) {
                        *result = place(other.evaluate(words, random).map_err(Error::from_cause)?);
                    }
                    found.rounding(format, outcome.word as u64, results);
                }
            }
            for (flag, name) in [
                (Flags::INEXACT, "inexact"),
                (Flags::UNDERFLOW, "underflow"),
                (Flags::OVERFLOW, "overflow"),
                (Flags::DIVIDE_BY_ZERO, "divide by zero"),
                (Flags::INVALID, "invalid"),
                (Flags::SATURATED, "saturated"),
            ] {
                if outcome.flags.contains(flag) {
                    found.add("flag", name, true);
                }
            }
            index += 1;
        }
        Ok(found)
    }

    /// How a finite result within the range came about, by those under other modes.
    fn rounding(&mut self, format: Format, code: u64, others: [(u64, bool); 4]) {
        let [zero, away, low, high] = others;
        let size = |code: u64| code & format.magnitude_mask();
        let (inexact, found) = (zero != away, (code, false));
        self.add("rounded", "exact", !inexact);
        self.add("rounded", "toward zero", inexact && found == zero);
        self.add("rounded", "away from zero", inexact && found == away);
        self.add("rounded", "a tie", inexact && low != high);
        let beyond = inexact && size(code) == format.max_code() && found == zero;
        self.add("rounded", "back to the largest number", beyond);
        if let Some(least) = format.min_normal_code()
            && format.has_subnormals()
        {
            let up = inexact && size(code) == least && found == away;
            self.add("rounded", "up to the smallest normal number", up);
        }
    }
}

/// A result's code, and whether it lies beyond the largest number: where that saturates, the code alone is
/// the largest number's either way.
fn place(outcome: Outcome) -> (u64, bool) {
    (outcome.word as u64, outcome.flags.contains(Flags::OVERFLOW))
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|(.., count)| count.to_string().len()).max().unwrap_or(0);
        for (i, (of, what, count)) in self.rows.iter().enumerate() {
            let never = if *count == 0 { "   <- never" } else { "" };
            let end = if i + 1 < self.rows.len() { "\n" } else { "" };
            write!(f, "{count:>width$}  {of} {what}{never}{end}")?;
        }
        Ok(())
    }
}
