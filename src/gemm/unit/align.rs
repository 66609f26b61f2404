//! The heart of every fused sum: terms cut to a common last place and added as integers.

use super::factor::{Factor, FactorClass};
use super::parameters::{Cut, Nan, Parameters, Underflow};
use crate::format::Format;
use crate::math::{Context, Operand};
use crate::round::{Exact, NanCode, Overflow, Rules};

impl Cut {
    /// A term in units of `2^unit`, and whether digits were lost. `Exact` is not for here.
    #[inline]
    pub(super) const fn apply(self, term: &Factor, unit: i32) -> (i64, bool) {
        // A zero takes no part in alignment, so its exponent may be anything.
        if term.significand == 0 {
            return (0, false);
        }
        let shift = term.exponent - term.digits as i32 - unit;
        let sign = if term.negative { -1 } else { 1 };
        if shift >= 0 {
            return (sign * ((term.significand << shift) as i64), false);
        }
        // At 63 places and more nothing is left of any significand here but its sign.
        let places = if shift < -63 { 63 } else { shift.unsigned_abs() };
        let kept = term.significand >> places;
        let lost = kept << places != term.significand;
        match self {
            Self::Truncate | Self::Exact => (sign * kept as i64, lost),
            Self::Floor => ((sign * term.significand as i64) >> places, lost),
            // One unit is half a place of the kept fraction here.
            Self::Sticky => (sign * (kept | lost as u64) as i64, lost),
        }
    }

    /// Bits that alignment keeps below the fraction.
    pub(super) const fn extra(self) -> u32 {
        matches!(self, Self::Sticky) as u32
    }
}

/// `sum * 2^unit`, exactly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AlignedSum {
    /// The integer.
    pub sum: i64,
    /// The power of two of its last place.
    pub unit: i32,
}

impl AlignedSum {
    /// As a term of a further sum, with the alignment exponent that the sum had.
    pub(super) const fn term(self, exponent: i32) -> Factor {
        Factor {
            class: FactorClass::Finite,
            negative: self.sum < 0,
            exponent,
            digits: (exponent - self.unit) as u32,
            significand: self.sum.unsigned_abs(),
        }
    }

    /// As an exact number.
    pub(super) const fn exact(self) -> Exact {
        Exact {
            negative: self.sum < 0,
            significand: self.sum.unsigned_abs() as u128,
            exponent: self.unit,
            sticky: false,
        }
    }
}

/// The largest exponent of the terms that are not zero, and at least `floor`; a zero counts with
/// the exponent `zeros`, where there is one. `None` if nothing gives an exponent.
#[inline]
pub(super) fn alignment<'a>(
    terms: impl Iterator<Item = &'a Factor>,
    floor: Option<i32>,
    zeros: Option<i32>,
) -> Option<i32> {
    let exponents =
        terms.filter_map(|term| if term.is_zero() { zeros } else { Some(term.exponent) });
    exponents.chain(floor).max()
}

/// What infinities and NaN among the terms decide: NaN, or infinity of a sign; `None` if all terms
/// are finite.
pub(super) fn special<'a>(terms: impl Iterator<Item = &'a Factor>) -> Option<Factor> {
    let mut found: Option<Factor> = None;
    for term in terms.filter(|term| term.class != FactorClass::Finite) {
        let clash = term.class == FactorClass::Nan
            || found.is_some_and(|other| other.negative != term.negative);
        if clash {
            return Some(Factor::NAN);
        }
        found =
            Some(Factor { class: FactorClass::Infinite, negative: term.negative, ..Factor::ZERO });
    }
    found
}

/// An exact number rounded once, by a random word where the mode is stochastic. A sum of zero is +0, as is
/// under [`Underflow::Positive`] what becomes zero; what is too large is infinity under every mode.
#[inline]
pub(super) fn round(
    exact: Exact,
    output: Format,
    parameters: &Parameters,
    word: Option<u32>,
) -> u64 {
    let rules = parameters.rules(parameters.rounding).with_overflow(Overflow::Infinity);
    let code = parameters.flushed(output, output.round_by(exact, &rules, word.unwrap_or(0)));
    let negative_zero = 1 << (output.bits() - 1);
    let zero = exact.significand == 0 && !exact.sticky;
    let positive = zero || parameters.underflow == Underflow::Positive;
    if code == negative_zero && positive { 0 } else { code }
}

/// The code of a NaN or an infinity.
pub(super) fn round_special(special: Factor, output: Format, nan: Nan) -> u64 {
    match special.class {
        FactorClass::Infinite => {
            output.infinity_code(special.negative).unwrap_or(output.max_code())
        }
        _ => nan.code(output),
    }
}

/// A code of a format of fewer bits, as the wider one holds it.
pub(super) fn store(format: Format, code: u64, result: Format) -> u64 {
    if format == result {
        return code;
    }
    let mut rules = Rules::DEFAULT;
    rules.nan.code = NanCode::AllOnes;
    Context::new(result, rules).convert(Operand::new(format, code)).code
}
