//! What a set of cases exercises: classes of operands and results, flags, ties, thresholds.

use std::fmt;

use super::Cases;
use crate::error::Error;
use crate::format::{Format, Sign, Value};
use crate::round::{Flags, Flush, Rounding};
use crate::vectors::evaluate::{Evaluator, Outcome, Settings};
use crate::vectors::function::{Kind, TestFunction};
use crate::vectors::operation::Operation;

const BACK: &str = "back to the largest number";
const UP: &str = "up to the smallest normal number";

/// How often each thing happens in a set. Its text is a table, a row a line, the number first. What is known
/// to be impossible has `-` in its place; what might happen and does not is marked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    rows: Vec<(&'static str, &'static str, u64)>,
    /// Rows of what cannot happen.
    impossible: Vec<(&'static str, &'static str)>,
}

impl Coverage {
    /// The rows: of what, what, and how often.
    pub fn rows(&self) -> &[(&'static str, &'static str, u64)] {
        &self.rows
    }

    /// Whether something is known to be impossible, whatever the cases: of all cases that there are none has
    /// it, or no result of the operation or of the rounding mode does.
    pub fn is_impossible(&self, of: &str, what: &str) -> bool {
        self.impossible.contains(&(of, what))
    }

    /// Says of something that did not happen that it cannot.
    pub(in crate::vectors) fn rule_out(&mut self, of: &'static str, what: &'static str) {
        let never = |row: &(&str, &str, u64)| *row == (of, what, 0);
        if self.rows.iter().any(never) && !self.is_impossible(of, what) {
            self.impossible.push((of, what));
        }
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
        found.rule_out_by(evaluator, cases);
        Ok(found)
    }

    /// What cannot happen: all that does not, in all cases there are; else what the operation or the rounding
    /// mode excludes.
    fn rule_out_by(&mut self, evaluator: &Evaluator, cases: &Cases) {
        if cases.are_all() && evaluator.random_bits() == 0 {
            let never = self.rows.iter().filter(|(.., count)| *count == 0);
            self.impossible = never.map(|(of, what, _)| (*of, *what)).collect();
            return;
        }
        for (of, what) in ruled_out(evaluator) {
            self.rule_out(of, what);
        }
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
        self.add("rounded", BACK, beyond);
        if let Some(least) = format.min_normal_code()
            && format.has_subnormals()
        {
            let up = inexact && size(code) == least && found == away;
            self.add("rounded", UP, up);
        }
    }
}

/// What a function does with no operands.
fn ruled_out(evaluator: &Evaluator) -> Vec<(&'static str, &'static str)> {
    let rules = evaluator.context().rules;
    let rounded: &[&str] = match rules.rounding {
        _ if rules.flush == Flush::None && is_exact(evaluator.function()) => {
            &["toward zero", "away from zero", "a tie", BACK, UP]
        }
        Rounding::TowardZero => &["away from zero", UP],
        Rounding::AwayFromZero => &["toward zero", BACK],
        _ => &[],
    };
    let rounded = rounded.iter().map(|what| ("rounded", *what));
    rounded.chain(excluded_by(evaluator.function()).iter().copied()).collect()
}

/// What no result of an operation on one format has, whatever the rounding mode.
fn excluded_by(function: &TestFunction) -> &'static [(&'static str, &'static str)] {
    let Kind::Format(to) = function.result() else { return &[] };
    if function.operands().iter().any(|kind| *kind != Kind::Format(to)) {
        return &[];
    }
    // The significand of the largest number has a one in each place.
    let full = matches!(to.max(), Value::Finite { significand, .. }
        if (significand + 1).is_power_of_two() && significand.count_ones() == to.man_bits() + 1);
    match function.operation() {
        Operation::Abs => &[("result is", "negative")],
        // A sum is a multiple of the last place of subnormal numbers, and so exact among them.
        Operation::Add | Operation::Sub | Operation::Faa => &[("rounded", UP)],
        // A numerator below 2^n times the denominator lies so far below that the quotient is no more than the
        // number before 2^n.
        Operation::Div if full => &[("rounded", BACK)],
        // Roots lie far within the range. One halfway between two numbers would have a square of more than
        // twice their digits.
        Operation::Sqrt if 2 * to.emin() < to.lsb() && to.emax() > 2 => &[
            ("result is", "subnormal"),
            ("result is", "the smallest normal number"),
            ("result is", "the largest number"),
            ("rounded", "a tie"),
            ("rounded", BACK),
            ("rounded", UP),
        ],
        _ => &[],
    }
}

/// Whether results are operands, or exact in their format: of numbers of one format alone, or of one that has
/// all numbers of the other.
fn is_exact(function: &TestFunction) -> bool {
    use Operation::*;
    let Kind::Format(to) = function.result() else { return false };
    let same = function.operands().iter().all(|kind| *kind == Kind::Format(to));
    match function.operation() {
        Rem
        | Fmod
        | Negate
        | Abs
        | CopySign
        | Minimum
        | Maximum
        | MinimumNumber
        | MaximumNumber
        | MinimumMagnitude
        | MaximumMagnitude
        | MinimumMagnitudeNumber
        | MaximumMagnitudeNumber
        | MinimumFinite
        | MaximumFinite
        | Clamp
        | NextUp
        | NextDown => same,
        Convert => match function.operands()[0] {
            Kind::Format(from) => {
                let floating = |format: Format| format.sign() != Sign::TwosComplement;
                let least = if to.has_subnormals() { from.emin() } else { from.lsb() };
                floating(from)
                    && floating(to)
                    && (to.is_signed() || !from.is_signed())
                    && (to.has_zero() || !from.has_zero())
                    && to.man_bits() >= from.man_bits()
                    && to.emax() > from.emax()
                    && to.emin() <= least
            }
            _ => false,
        },
        _ => false,
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
            let (count, never) = match count {
                0 if self.is_impossible(of, what) => ("-".to_owned(), ""),
                0 => ("0".to_owned(), "   <- never"),
                _ => (count.to_string(), ""),
            };
            let end = if i + 1 < self.rows.len() { "\n" } else { "" };
            write!(f, "{count:>width$}  {of} {what}{never}{end}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::cases::Request;

    /// In formats with so few codes that all operands are tried, nothing happens of which a rule says that it
    /// is impossible.
    #[test]
    fn what_is_ruled_out_happens_with_no_operands() {
        let mut count = 0;
        for operation in [
            "abs", "negate", "add", "sub", "div", "sqrt", "rem", "fmod", "copySign", "minimum",
            "nextUp",
        ] {
            for format in ["e3m2", "e2m3", "e4m1", "e4m2", "e3m2-ieee", "e5m1"] {
                let function: TestFunction = format!("{format}_{operation}").parse().unwrap();
                for rounding in [None, Some(Rounding::TowardZero), Some(Rounding::AwayFromZero)] {
                    let settings = Settings { rounding, ..Settings::default() };
                    let evaluator = function.evaluator(&settings).unwrap();
                    let cases = Cases::new(&function, &Request::default()).unwrap();
                    assert!(cases.are_all());
                    let found = Coverage::of(&evaluator, &cases).unwrap();
                    for (of, what) in ruled_out(&evaluator) {
                        count += 1;
                        assert!(
                            found.rows.iter().all(|row| (row.0, row.1) != (of, what) || row.2 == 0),
                            "{function} {rounding:?}: {of} {what}\n{found}"
                        );
                    }
                }
            }
        }
        for function in ["e4m3_to_f16", "e5m2_to_bf16", "e3m2_to_e4m3", "e2m1_to_e5m2"] {
            let function: TestFunction = function.parse().unwrap();
            let evaluator = function.evaluator(&Settings::default()).unwrap();
            let found =
                Coverage::of(&evaluator, &Cases::new(&function, &Request::default()).unwrap());
            let found = found.unwrap();
            assert!(ruled_out(&evaluator).len() == 5, "{function}");
            let inexact = |row: &&(&str, &str, u64)| row.0 == "rounded" && row.1 != "exact";
            assert!(found.rows.iter().filter(inexact).all(|row| row.2 == 0), "{found}");
        }
        assert!(count > 250, "{count}");
    }
}
