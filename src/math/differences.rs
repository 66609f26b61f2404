//! Where two sets of rules give different codes for the same operands, as ranges of operands.
//!
//! Rounding never reverses an order, and neither do the rules of overflow, flush and sign. So
//! among the finite operands of one sign - and among infinities, quiet and signaling NaNs, each
//! taken for itself - all operands with the same result lie side by side. If the ends of a range
//! agree, all of it does; a search that doubles its steps and then bisects finds where a result
//! ends. That makes the list of differences *complete*, for binary64 operands as for FP4, while
//! asking the rounding core some dozens of times a result.
//!
//! ```
//! use exmy::format::Format;
//! use exmy::math::differences::Differences;
//! use exmy::round::Profile;
//!
//! let (from, to) = (Format::F32, Format::E4M3FN);
//! let [a, b] = [Profile::OcpSat, Profile::OcpNonsat].map(|profile| profile.conversion(from, to));
//! let differences: Vec<_> = Differences::new(from, to, a, b)?.map(|d| d.to_string()).collect();
//! assert_eq!(differences, [
//!     "464.00003 to inf (0x43e80001 to 0x7f800000): 448 (0x7e) | NaN (0x7f)",
//!     "-464.00003 to -inf (0xc3e80001 to 0xff800000): -448 (0xfe) | -NaN (0xff)",
//! ]);
//! # Ok::<(), exmy::math::differences::TooMany>(())
//! ```

use super::{Context, Operand};
use crate::format::{Format, Sign, Specials, Value};
use crate::round::Rules;
use core::fmt;

/// The last operand not above `last` up to which, from `first` on, all results are the `same`.
///
/// `same` must hold for `first`, and be a property of the result of a conversion, so that within
/// one region of operands those that have it lie side by side.
pub(crate) fn run_end(from: Format, first: u64, last: u64, same: impl Fn(u64) -> bool) -> u64 {
    let last = last.min(region_end(from, first));
    // `good` has the property; then so has everything up to it.
    let (mut good, mut step) = (first, 1);
    let bad = loop {
        if good == last {
            return last;
        }
        let next = if last - good < step { last } else { good + step };
        if !same(next) {
            break next;
        }
        (good, step) = (next, step << 1);
    };
    let (mut good, mut bad) = (good, bad);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if same(middle) { good = middle } else { bad = middle }
    }
    good
}

/// The last code of the region that `code` lies in. Regions are zero (or what stands in its place),
/// the finite numbers of one sign, infinity, and the NaNs of one sign without or with the quiet
/// bit.
fn region_end(format: Format, code: u64) -> u64 {
    let magnitude = code & format.magnitude_mask();
    let sign = code - magnitude;
    let end = match format.sign() {
        _ if magnitude == 0 => 0,
        Sign::TwosComplement => format.magnitude_mask(),
        _ if magnitude <= format.max_code() => format.max_code(),
        _ if format.infinity_code(false) == Some(magnitude) => magnitude,
        _ => match (format.specials(), format.nan_code()) {
            (Specials::Ieee, Some(quiet)) if magnitude < quiet => quiet - 1,
            _ => format.magnitude_mask(),
        },
    };
    sign | end
}

/// Operands in a row for which two sets of rules differ, in the same way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The first operand: in the order of codes, so that magnitudes ascend.
    pub first: Operand,
    /// The last operand.
    pub last: Operand,
    /// The result of the first rules.
    pub a: Operand,
    /// The result of the second rules.
    pub b: Operand,
}

/// Every operand for which two sets of rules give different codes, as an iterator of ranges in
/// ascending order of codes.
///
/// Stochastic modes round by the random word of the context, 0. Flags are not compared.
#[derive(Clone, Debug)]
pub struct Differences {
    from: Format,
    a: Context,
    b: Context,
    /// The operand to be looked at next; `None` after the last one.
    next: Option<u64>,
}

/// There would be too many results to ask for: neither the operands nor the results are few.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooMany {
    from: Format,
    to: Format,
}

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        let bits = Differences::MOST_BITS;
        write!(
            f,
            "the differences from {from} to {to} cannot be listed: one of the two formats must \
             have at most {bits} bits"
        )
    }
}

impl core::error::Error for TooMany {}

impl Differences {
    /// The widest codes that operands, or else results, may have: listing takes as many steps as
    /// the narrower of the two has codes.
    pub const MOST_BITS: u32 = 20;

    /// The differences between two rules for conversions.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::differences::Differences;
    /// use exmy::round::{Overflow, Rules};
    ///
    /// let saturating = Rules::DEFAULT.with_overflow(Overflow::Finite);
    /// let new = |from| Differences::new(from, Format::E4M3FN, Rules::DEFAULT, saturating);
    /// assert!(new(Format::BF16).is_ok() && new(Format::F32).is_ok()); // the results are few
    /// assert!(Differences::new(Format::F64, Format::F32, Rules::DEFAULT, saturating).is_err());
    /// ```
    ///
    /// # Errors
    /// If both formats have more than [`MOST_BITS`](Self::MOST_BITS) bits.
    pub fn new(from: Format, to: Format, a: Rules, b: Rules) -> Result<Self, TooMany> {
        if from.bits().min(to.bits()) > Self::MOST_BITS {
            return Err(TooMany { from, to });
        }
        let [a, b] = [a, b].map(|rules| Context::new(to, rules).with_random(0));
        Ok(Self { from, a, b, next: Some(0) })
    }

    fn results(&self, code: u64) -> (u64, u64) {
        let x = Operand::new(self.from, code);
        (self.a.convert(x).code, self.b.convert(x).code)
    }

    /// The next operands with the same pair of results, whether or not these differ.
    fn run(&mut self) -> Option<(u64, u64, (u64, u64))> {
        let (first, last) = (self.next?, *self.from.codes().end());
        let results = self.results(first);
        let end = run_end(self.from, first, last, |code| self.results(code) == results);
        self.next = (end < last).then(|| end + 1);
        Some((first, end, results))
    }
}

impl Iterator for Differences {
    type Item = Difference;

    fn next(&mut self) -> Option<Difference> {
        let (first, mut last, results) = loop {
            let run = self.run()?;
            if run.2.0 != run.2.1 {
                break run;
            }
        };
        // Neighbouring regions, such as infinity above the numbers, may share the difference.
        let class = |code: u64| {
            let value = self.from.decode(code);
            (value.is_nan(), value.is_sign_negative())
        };
        let class_of_first = class(first);
        loop {
            let mut ahead = self.clone();
            match ahead.run() {
                Some((start, end, same)) if same == results && class(start) == class_of_first => {
                    (last, self.next) = (end, ahead.next);
                }
                _ => break,
            }
        }
        let [first, last] = [first, last].map(|code| Operand::new(self.from, code));
        let [a, b] = [results.0, results.1].map(|code| Operand::new(self.a.to, code));
        Some(Difference { first, last, a, b })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, a, b } = *self;
        if first == last {
            write!(f, "{} ({})", Plain(first), Hex(first))?;
        } else if first.value().is_nan() {
            write!(f, "{} ({} to {})", Plain(first), Hex(first), Hex(last))?;
        } else {
            write!(f, "{} to {} ({} to {})", Plain(first), Plain(last), Hex(first), Hex(last))?;
        }
        write!(f, ": {} ({}) | {} ({})", Plain(a), Hex(a), Plain(b), Hex(b))
    }
}

/// A value in the shortest decimal form that binary32, or else binary64, reads back.
pub(super) struct Plain(pub(super) Operand);

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operand { format, code } = self.0;
        let value = self.0.value();
        if let Value::Nan { negative } = value {
            return f.write_str(if negative && format.nan_has_sign() { "-NaN" } else { "NaN" });
        }
        let size = value.to_f64().abs();
        let long = size != 0.0 && size.is_finite() && !(1e-4..1e7).contains(&size);
        match (format.is_exact_in_f32(), long) {
            (true, false) => write!(f, "{}", format.to_f32(code)),
            (true, true) => write!(f, "{:e}", format.to_f32(code)),
            (false, false) => write!(f, "{}", format.to_f64(code)),
            (false, true) => write!(f, "{:e}", format.to_f64(code)),
        }
    }
}

/// A code in hexadecimal, zero-padded to the format's width.
pub(super) struct Hex(pub(super) Operand);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.format.bits().div_ceil(4) as usize;
        write!(f, "0x{:0digits$x}", self.0.code)
    }
}
