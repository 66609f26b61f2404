//! The comparison traits of the crate `approx`, with its conventions for `f32`.
//!
//! Equal numbers are close, infinities too, whatever the tolerance; NaN is close to nothing.
//! Distances are not those of numbers rounded to `f64`, which some formats exceed. The exact
//! distance is rounded once, upwards. For a relative one the numbers are scaled first.

use approx::{AbsDiffEq, RelativeEq, UlpsEq};

use super::{FloatFormat, Minifloat};
use crate::format::{Format, Sign, Value};
use crate::math::{Context, Operand};
use crate::round::{Overflow, Rounding, Rules};

/// The distance of two numbers, rounded up to binary64, so that it exceeds a number of binary64
/// where the exact distance does.
fn distance(a: Operand, b: Operand) -> f64 {
    let context = Context::new(Format::F64, Rules::DEFAULT.with_rounding(Rounding::TowardPositive));
    let (low, high) = if a.value() <= b.value() { (a, b) } else { (b, a) };
    f64::from_bits(context.sub(high, low).code)
}

/// A finite number over `2^power`; a very small one rounds away from zero.
fn scaled(value: Value, power: i32) -> f64 {
    let Value::Finite { negative, significand, exponent } = value else { return f64::NAN };
    let value = Value::Finite { negative, significand, exponent: exponent.saturating_sub(power) };
    f64::from_bits(Format::F64.encode(value, Rounding::AwayFromZero, Overflow::None, 0).code)
}

/// `floor(log2)` of a finite number's magnitude; the least integer of zero.
fn top(value: Value) -> i32 {
    match value {
        Value::Finite { significand: significand @ 1.., exponent, .. } => {
            exponent.saturating_add(significand.ilog2() as i32)
        }
        _ => i32::MIN,
    }
}

/// By the exact distance of the values.
impl<F: FloatFormat> AbsDiffEq for Minifloat<F> {
    type Epsilon = f64;

    /// Half a step at one, or half the smallest value where one does not exist.
    fn default_epsilon() -> f64 {
        Self::EPSILON.unwrap_or(Self::MIN_POSITIVE).value().to_f64() / 2.0
    }

    fn abs_diff_eq(&self, other: &Self, epsilon: f64) -> bool {
        if self == other {
            return true;
        }
        if self.is_nan() || other.is_nan() {
            return false;
        }
        distance(self.operand(), other.operand()) <= epsilon
    }
}

/// By the distance over the larger magnitude, in binary64.
impl<F: FloatFormat> RelativeEq for Minifloat<F> {
    fn default_max_relative() -> f64 {
        Self::default_epsilon()
    }

    fn relative_eq(&self, other: &Self, epsilon: f64, max_relative: f64) -> bool {
        if self == other {
            return true;
        }
        if !self.is_finite() || !other.is_finite() {
            return false;
        }
        if self.abs_diff_eq(other, epsilon) {
            return true;
        }
        let (a, b) = (self.value(), other.value());
        let power = top(a).max(top(b));
        let (a, b) = (scaled(a, power), scaled(b, power));
        distance(Operand::f64(a), Operand::f64(b)) <= a.abs().max(b.abs()) * max_relative
    }
}

/// By how many codes lie between; infinity follows the largest number, and numbers of opposite
/// signs are only close by their distance.
impl<F: FloatFormat> UlpsEq for Minifloat<F> {
    fn default_max_ulps() -> u32 {
        4
    }

    fn ulps_eq(&self, other: &Self, epsilon: f64, max_ulps: u32) -> bool {
        if self.abs_diff_eq(other, epsilon) {
            return true;
        }
        let (a, b) = (self.value(), other.value());
        if a.is_nan() || b.is_nan() || a.is_sign_negative() != b.is_sign_negative() {
            return false;
        }
        // Of one sign, two's complement counts alike too: in the codes' low bits.
        let integer = matches!(F::FORMAT.sign(), Sign::TwosComplement);
        let mask = if integer { u64::MAX } else { F::FORMAT.magnitude_mask() };
        (self.code() & mask).abs_diff(other.code() & mask) <= max_ulps.into()
    }
}
