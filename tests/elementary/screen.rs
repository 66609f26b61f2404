//! A fast screen: the functions in binary64 by the crate `libm`, believed to 2^-42, and rounding
//! into an IEEE-like format by comparison with its values. What the screen leaves open goes to the
//! arbitrary-precision oracle.

use exmy::math::elementary::Function;
use exmy::round::Rounding;

use crate::common::{Model, Num, power};

/// `f(x)` to a few units of binary64's last place.
pub(crate) fn unary(function: Function, x: f64) -> f64 {
    use Function as F;
    use std::f64::consts::PI;
    // x modulo 2, exactly.
    let turns = x % 2.0;
    match function {
        F::Exp => libm::exp(x),
        F::Exp2 => libm::exp2(x),
        F::Expm1 => libm::expm1(x),
        F::Log => libm::log(x),
        F::Log2 => libm::log2(x),
        F::Log1p => libm::log1p(x),
        F::Softplus if x > 0.0 => x + libm::log1p(libm::exp(-x)),
        F::Softplus => libm::log1p(libm::exp(x)),
        F::Sin => libm::sin(x),
        F::Cos => libm::cos(x),
        F::Tan => libm::tan(x),
        F::Asin => libm::asin(x),
        F::Acos => libm::acos(x),
        F::Atan => libm::atan(x),
        F::Sinh => libm::sinh(x),
        F::Cosh => libm::cosh(x),
        F::Tanh => libm::tanh(x),
        F::Asinh => libm::asinh(x),
        F::Acosh => libm::acosh(x),
        F::Atanh => libm::atanh(x),
        // Zeros lie at integers: reduced to the nearest, nothing cancels afterwards.
        F::SinPi => {
            let near = libm::rint(turns);
            let sign = if near % 2.0 == 0.0 { 1.0 } else { -1.0 };
            sign * libm::sin(PI * (turns - near))
        }
        F::CosPi => {
            let near = libm::rint(turns - 0.5);
            let sign = if near % 2.0 == 0.0 { -1.0 } else { 1.0 };
            sign * libm::sin(PI * (turns - 0.5 - near))
        }
        F::TanPi => unary(F::SinPi, x) / unary(F::CosPi, x),
        F::AsinPi => libm::asin(x) / PI,
        F::AcosPi => libm::acos(x) / PI,
        F::AtanPi => libm::atan(x) / PI,
        F::Atan2 | F::Atan2Pi | F::Pow => unreachable!("two operands"),
    }
}

/// A format's magnitudes as binary64 numbers.
pub(crate) struct Screen {
    magnitudes: Vec<f64>,
    max_code: u64,
    infinity: u64,
    sign: u64,
}

/// Where a magnitude lies: above the value of a code, in which half of the gap.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Place {
    lower: u64,
    upper_half: bool,
}

impl Screen {
    /// Of an IEEE-like format whose values binary64 has.
    pub(crate) fn new(model: &Model) -> Self {
        Self {
            magnitudes: model.magnitudes().iter().map(|x| x.to_f64()).collect(),
            max_code: model.max_code(),
            infinity: model.infinity(false).unwrap(),
            sign: 1 << (model.bits() - 1),
        }
    }

    fn place(&self, x: f64) -> Option<Place> {
        let upper = self.magnitudes.partition_point(|value| *value <= x);
        if upper == self.magnitudes.len() {
            // Beyond: as far above the largest value as there is a value after it.
            return Some(Place { lower: self.max_code + 1, upper_half: true });
        }
        let (low, high) = (self.magnitudes[upper - 1], self.magnitudes[upper]);
        let middle = low + (high - low) / 2.0;
        (x != low && x != middle)
            .then_some(Place { lower: upper as u64 - 1, upper_half: x > middle })
    }

    /// The place of every number within 2^-42 of `y`, if it is one.
    pub(crate) fn screened(&self, y: f64) -> Option<Place> {
        // What overflows or underflows in binary64 does so by far in the format.
        let y = y.abs().clamp(power(-1000), power(1000));
        let (low, high) =
            (self.place(y * (1.0 - power(-42)))?, self.place(y * (1.0 + power(-42)))?);
        (low == high).then_some(low)
    }

    /// The place by nearest rounding alone: the boundary at a value does not matter.
    pub(crate) fn nearest(&self, y: f64) -> Option<u64> {
        let y = y.abs().clamp(power(-1000), power(1000));
        let code = |x| {
            let upper = self.magnitudes.partition_point(|value| *value <= x);
            let Some(high) = self.magnitudes.get(upper) else { return Some(upper as u64) };
            let low = self.magnitudes[upper - 1];
            let middle = low + (high - low) / 2.0;
            (x != middle).then_some(upper as u64 - u64::from(x < middle))
        };
        let (low, high) = (code(y * (1.0 - power(-42)))?, code(y * (1.0 + power(-42)))?);
        (low == high).then(|| low.min(self.infinity))
    }

    /// The code of a number in a place, which is no value and no middle.
    pub(crate) fn code(&self, negative: bool, place: Place, mode: Rounding) -> u64 {
        let Place { lower, upper_half } = place;
        let up = match mode {
            Rounding::TiesToEven | Rounding::TiesToAway | Rounding::TiesToZero => upper_half,
            Rounding::TowardZero => false,
            Rounding::TowardPositive => !negative,
            Rounding::TowardNegative => negative,
            Rounding::AwayFromZero => true,
            Rounding::ToOdd => lower.is_multiple_of(2),
            _ => unreachable!("deterministic modes"),
        };
        // Beyond the largest value, inward modes stay there and odd prefers an odd code.
        let inward = match mode {
            Rounding::TowardZero => true,
            Rounding::TowardPositive => negative,
            Rounding::TowardNegative => !negative,
            Rounding::ToOdd => self.max_code % 2 == 1,
            _ => false,
        };
        let rounded = lower + u64::from(up);
        let magnitude = if rounded <= self.max_code {
            rounded
        } else if inward {
            self.max_code
        } else {
            self.infinity
        };
        magnitude | if negative { self.sign } else { 0 }
    }

    /// The sign bit on a magnitude code.
    pub(crate) fn signed(&self, negative: bool, magnitude: u64) -> u64 {
        magnitude | if negative { self.sign } else { 0 }
    }
}

/// A model's number as binary64.
pub(crate) fn to_f64(negative: bool, x: Num) -> f64 {
    if negative { -x.to_f64() } else { x.to_f64() }
}
