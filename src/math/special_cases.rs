//! The special cases of arithmetic: divisions by zero, differences of infinities, roots of negative
//! numbers and their kin, and where two sets of rules answer them differently.
//!
//! IEEE 754-2019 (6.1, 7.2, 7.3, 9.6) and IEEE P3109 (Interim Report 4.0) disagree on most of them,
//! and so do devices on the NaN that comes out. Operands are of the result's format; a case whose
//! operands it has not - infinities in FP4 - does not occur.
//!
//! ```
//! use exmy::format::Format;
//! use exmy::math::special_cases::SpecialCase;
//! use exmy::round::Profile;
//!
//! let to = Format::E5M2;
//! let [a, b] = [Profile::Ieee, Profile::P3109].map(|profile| profile.rules(to));
//! let differences: Vec<_> =
//!     SpecialCase::all(to, a, b).filter(SpecialCase::differs).map(|case| case.to_string()).collect();
//! assert_eq!(differences[0], "1 / 0: inf (0x7c) | NaN (0x7e)");
//! ```

use super::differences::{Hex, Plain};
use super::{Context, Operand};
use crate::format::Format;
use crate::round::{Rounded, Rules};
use core::fmt;

/// An operation on special operands, by two sets of rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpecialCase {
    /// The operation and its operands: `1 / 0`, `sqrt(-1)`.
    pub text: &'static str,
    /// The format of operands and results.
    pub format: Format,
    /// What the first rules make of it.
    pub a: Rounded,
    /// What the second rules make of it.
    pub b: Rounded,
}

/// The operands of special cases, as far as a format has them.
struct SpecialOperands {
    format: Format,
}

impl SpecialOperands {
    fn operand(&self, code: Option<u64>) -> Option<Operand> {
        Some(Operand::new(self.format, code?))
    }

    fn one(&self) -> Option<Operand> {
        self.operand(self.format.one_code())
    }

    fn minus_one(&self) -> Option<Operand> {
        let negative = self.format.is_signed();
        let one = self.one()?;
        negative
            .then(|| Context::new(self.format, Rules::DEFAULT).neg(one).code)
            .map(|code| Operand::new(self.format, code))
    }

    fn zero(&self) -> Option<Operand> {
        self.operand(self.format.has_zero().then_some(0))
    }

    fn minus_zero(&self) -> Option<Operand> {
        let format = self.format;
        self.operand(format.has_negative_zero().then(|| 1 << format.magnitude_bits()))
    }

    fn inf(&self) -> Option<Operand> {
        self.operand(self.format.infinity_code(false))
    }

    fn minus_inf(&self) -> Option<Operand> {
        self.operand(self.format.infinity_code(true))
    }

    fn max(&self) -> Option<Operand> {
        self.operand(Some(self.format.max_code()))
    }

    fn nan(&self) -> Option<Operand> {
        self.operand(self.format.nan_code())
    }
}

type Case = (&'static str, fn(&Context, &SpecialOperands) -> Option<Rounded>);

const CASES: [Case; 29] = [
    ("1 / 0", |c, n| Some(c.div(n.one()?, n.zero()?))),
    ("-1 / 0", |c, n| Some(c.div(n.minus_one()?, n.zero()?))),
    ("1 / -0", |c, n| Some(c.div(n.one()?, n.minus_zero()?))),
    ("0 / 0", |c, n| Some(c.div(n.zero()?, n.zero()?))),
    ("inf / inf", |c, n| Some(c.div(n.inf()?, n.inf()?))),
    ("1 / inf", |c, n| Some(c.div(n.one()?, n.inf()?))),
    ("inf / 0", |c, n| Some(c.div(n.inf()?, n.zero()?))),
    ("recip(0)", |c, n| Some(c.recip(n.zero()?))),
    ("recip(-0)", |c, n| Some(c.recip(n.minus_zero()?))),
    ("inf - inf", |c, n| Some(c.sub(n.inf()?, n.inf()?))),
    ("inf + -inf", |c, n| Some(c.add(n.inf()?, n.minus_inf()?))),
    ("0 x inf", |c, n| Some(c.mul(n.zero()?, n.inf()?))),
    ("0 x -inf", |c, n| Some(c.mul(n.zero()?, n.minus_inf()?))),
    ("0 x inf + 1", |c, n| Some(c.fma(n.zero()?, n.inf()?, n.one()?))),
    ("sqrt(-1)", |c, n| Some(c.sqrt(n.minus_one()?))),
    ("sqrt(-0)", |c, n| Some(c.sqrt(n.minus_zero()?))),
    ("sqrt(-inf)", |c, n| Some(c.sqrt(n.minus_inf()?))),
    ("rsqrt(0)", |c, n| Some(c.rsqrt(n.zero()?))),
    ("rsqrt(-1)", |c, n| Some(c.rsqrt(n.minus_one()?))),
    ("rem(1, 0)", |c, n| Some(c.rem(n.one()?, n.zero()?))),
    ("rem(inf, 1)", |c, n| Some(c.rem(n.inf()?, n.one()?))),
    ("fmod(1, inf)", |c, n| Some(c.fmod(n.one()?, n.inf()?))),
    ("hypot(inf, NaN)", |c, n| Some(c.hypot(n.inf()?, n.nan()?))),
    ("max + max", |c, n| Some(c.add(n.max()?, n.max()?))),
    ("max x max", |c, n| Some(c.mul(n.max()?, n.max()?))),
    ("1 - 1", |c, n| Some(c.sub(n.one()?, n.one()?))),
    ("0 x -1", |c, n| Some(c.mul(n.zero()?, n.minus_one()?))),
    ("NaN + 1", |c, n| Some(c.add(n.nan()?, n.one()?))),
    ("0 - 1", |c, n| Some(c.sub(n.zero()?, n.one()?))),
];

impl SpecialCase {
    /// All cases that occur in a format, by two sets of rules.
    pub fn all(format: Format, a: Rules, b: Rules) -> impl Iterator<Item = Self> {
        let [a, b] = [a, b].map(|rules| Context::new(format, rules).with_random(0));
        CASES.iter().filter_map(move |(text, result)| {
            let numbers = SpecialOperands { format };
            let (a, b) = (result(&a, &numbers)?, result(&b, &numbers)?);
            Some(Self { text, format, a, b })
        })
    }

    /// Whether the codes differ.
    pub fn differs(&self) -> bool {
        self.a.code != self.b.code
    }
}

impl fmt::Display for SpecialCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = [self.a, self.b].map(|rounded| Operand::new(self.format, rounded.code));
        write!(f, "{}: {} ({}) | {} ({})", self.text, Plain(a), Hex(a), Plain(b), Hex(b))
    }
}
