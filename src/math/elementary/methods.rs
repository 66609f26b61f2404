//! The elementary functions as methods of [`Context`], each with its special values.
//!
//! Special values are those of IEEE 754-2019, 9.2.1; in parentheses P3109's where they differ
//! ([`Standard`](crate::round::Standard)). A pole sets
//! [`Flags::DIVIDE_BY_ZERO`](crate::round::Flags::DIVIDE_BY_ZERO), an operand outside the domain
//! gives NaN with [`Flags::INVALID`](crate::round::Flags::INVALID).

use super::{Function, Unsupported};
use crate::math::{Context, Operand};
use crate::round::Rounded;

/// A method for each function of one operand.
macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident $function:ident;)*) => {
        impl Context {$(
            $(#[$doc])*
            /// # Errors
            /// As [`apply`](Self::apply); none for operands of a format of up to 16 bits with values
            /// between `2^-160` and `2^160`.
            #[inline]
            pub fn $name(&self, x: Operand) -> Result<Rounded, Unsupported> {
                self.apply(Function::$function, x)
            }
        )*}
    };
}

methods! {
    /// `e^x`. 0 at `-Inf`.
    exp Exp;
    /// `2^x`. 0 at `-Inf`; exact at integers.
    exp2 Exp2;
    /// `e^x - 1`. -1 at `-Inf`; keeps the sign of zero.
    expm1 Expm1;
    /// The natural logarithm of `x`. A pole at 0; negative numbers are outside the domain.
    log Log;
    /// The logarithm of `x` to base 2. A pole at 0; negative numbers are outside the domain;
    /// exact at powers of two.
    log2 Log2;
    /// `log(1 + x)`. A pole at -1, below it outside the domain; keeps the sign of zero.
    log1p Log1p;
    /// `log(1 + e^x)`. 0 at `-Inf`. Not one of IEEE 754's.
    softplus Softplus;
    /// The sine of `x` radians. Keeps the sign of zero; infinities are outside the domain.
    sin Sin;
    /// The cosine of `x` radians. Infinities are outside the domain.
    cos Cos;
    /// The tangent of `x` radians. Keeps the sign of zero; infinities are outside the domain.
    tan Tan;
    /// The arc sine of `x` in radians. Keeps the sign of zero; the domain is -1 to 1.
    asin Asin;
    /// The arc cosine of `x` in radians. +0 at 1; the domain is -1 to 1.
    acos Acos;
    /// The arc tangent of `x` in radians. `+-pi/2` at infinities; keeps the sign of zero.
    atan Atan;
    /// The hyperbolic sine of `x`. Keeps the sign of zero and infinity.
    sinh Sinh;
    /// The hyperbolic cosine of `x`. `+Inf` at both infinities.
    cosh Cosh;
    /// The hyperbolic tangent of `x`. `+-1` at infinities; keeps the sign of zero.
    tanh Tanh;
    /// The inverse hyperbolic sine of `x`. Keeps the sign of zero and infinity.
    asinh Asinh;
    /// The inverse hyperbolic cosine of `x`. +0 at 1; below it outside the domain.
    acosh Acosh;
    /// The inverse hyperbolic tangent of `x`. Poles at -1 and 1, beyond them outside the
    /// domain; keeps the sign of zero.
    atanh Atanh;
    /// The sine of `x` half turns. Zero at integers with the sign of `x` (P3109: without sign),
    /// -1 or 1 halfway between; infinities are outside the domain.
    sin_pi SinPi;
    /// The cosine of `x` half turns. -1 or 1 at integers, +0 halfway between; infinities are
    /// outside the domain.
    cos_pi CosPi;
    /// The tangent of `x` half turns. Zero at integers, with the sign of `sin_pi / cos_pi`
    /// (P3109: without sign); a pole halfway between, `+Inf` at 1/2 (P3109: outside the
    /// domain); infinities are outside the domain.
    tan_pi TanPi;
    /// The arc sine of `x` in half turns. `+-1/2` at `+-1`; keeps the sign of zero; the domain
    /// is -1 to 1.
    asin_pi AsinPi;
    /// The arc cosine of `x` in half turns. +0, 1/2, 1 at 1, 0, -1; the domain is -1 to 1.
    acos_pi AcosPi;
    /// The arc tangent of `x` in half turns. `+-1/4` at `+-1`, `+-1/2` at infinities; keeps the
    /// sign of zero.
    atan_pi AtanPi;
}

impl Context {
    /// The angle of the point `(x, y)` in radians, between `-pi` and `pi`, with the sign of `y`. On
    /// the axes, zeros and infinities count as their limits with their signs. On the diagonals,
    /// `(+-Inf, +-Inf)` among them, it is an odd multiple of `pi/4`. P3109 has no angle for two
    /// zeros or two infinities.
    ///
    /// # Errors
    /// As [`apply2`](Self::apply2).
    #[inline]
    pub fn atan2(&self, y: Operand, x: Operand) -> Result<Rounded, Unsupported> {
        self.apply2(Function::Atan2, y, x)
    }

    /// The same in half turns, between -1 and 1.
    ///
    /// # Errors
    /// As [`apply2`](Self::apply2).
    #[inline]
    pub fn atan2_pi(&self, y: Operand, x: Operand) -> Result<Rounded, Unsupported> {
        self.apply2(Function::Atan2Pi, y, x)
    }
}
