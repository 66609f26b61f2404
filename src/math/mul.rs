//! Products: [`mul`](Context::mul) (IEEE 754-2019, 5.4.1).
//!
//! The product of two significands of up to 53 bits is exact in 106.

use super::{Context, Operand};
use crate::format::Value;
use crate::round::{Exact, Rounded};

impl Context {
    /// `a * b`, rounded once. Zero times infinity gives NaN ([`INVALID`](crate::round::Flags::INVALID)).
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::{Flags, Rules};
    ///
    /// let context = Context::new(Format::E4M3FN, Rules::DEFAULT);
    /// let mul = |a, b| context.mul(Operand::f32(a), Operand::f32(b));
    /// assert_eq!(mul(-2.0_f32.powi(-9), 0.5).code, 0x80); // half of the smallest number: a tie, to -0
    /// assert_eq!(mul(0.0, f32::INFINITY).flags, Flags::INVALID);
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add).
    #[inline]
    pub const fn mul(&self, a: Operand, b: Operand) -> Rounded {
        let (x, y) = (self.read(a), self.read(b));
        if x.is_nan() || y.is_nan() {
            return self.pass_first_nan(&[a, b]);
        }
        match product(x, y) {
            Product::Finite(exact) => self.finish(exact),
            Product::Infinite(negative) => self.to.round_infinity(negative, &self.rules),
            Product::Invalid => self.to.made_nan(&self.rules),
        }
    }
}

/// An exact product of two values that are not NaN.
pub(super) enum Product {
    Finite(Exact),
    Infinite(bool),
    Invalid,
}

#[inline]
pub(super) const fn product(a: Value, b: Value) -> Product {
    let negative = a.is_sign_negative() != b.is_sign_negative();
    match (a, b) {
        (
            Value::Finite { significand: x, exponent: i, .. },
            Value::Finite { significand: y, exponent: j, .. },
        ) => Product::Finite(Exact {
            negative,
            significand: x as u128 * y as u128,
            exponent: i + j,
            sticky: false,
        }),
        _ if a.is_zero() || b.is_zero() => Product::Invalid,
        _ => Product::Infinite(negative),
    }
}
