//! Elementary functions, correctly rounded: `exp`, `ln`, `sin` and the others of
//! [`Function`](crate::math::elementary::Function), by [`Minifloat::RULES`].
//!
//! They exist as methods where they can never fail: for formats of up to 16 bits whose numbers lie
//! between `2^-160` and `2^160`, every argument of which has been tried. For wider formats
//! [`Minifloat::with_rules`] and [`Context`](crate::math::Context) have them, with a `Result`.

use super::quick::{self, Estimate};
use super::{FloatFormat, Minifloat, Yes};
use crate::math::elementary::Function;

macro_rules! functions {
    ($($(#[$meta:meta])* $name:ident: $function:ident, $quick:expr;)*) => {
        impl<F: FloatFormat<Elementary = Yes>> Minifloat<F> {
            $(
                $(#[$meta])*
                #[must_use]
                pub fn $name(self) -> Self {
                    let estimate: Option<fn(f64) -> Estimate> = $quick;
                    if let Some(estimate) = estimate
                        && let Some(result) = self.decided(estimate)
                    {
                        return result;
                    }
                    self.elementary(Function::$function)
                }
            )*
        }
    };
}

functions! {
    /// `e^self`, rounded once.
    ///
    /// ```
    /// use exmy::minifloat::E4M3;
    ///
    /// assert_eq!(E4M3::from_f32(1.0).exp().to_f32(), 2.75);
    /// assert_eq!(E4M3::from_f32(2.75).ln().to_f32(), 1.0);
    /// assert_eq!(E4M3::from_f32(0.5).sin_pi().to_f32(), 1.0);
    /// ```
    exp: Exp, Some(quick::exp);
    /// `2^self`, rounded once.
    exp2: Exp2, Some(quick::exp2);
    /// `e^self - 1`, rounded once.
    exp_m1: Expm1, None;
    /// The natural logarithm, rounded once; NaN of negative numbers, negative infinity of zero, or
    /// what the format makes of it.
    ln: Log, None;
    /// The logarithm to base 2, rounded once.
    log2: Log2, None;
    /// The natural logarithm of `1 + self`, rounded once.
    ln_1p: Log1p, None;
    /// `ln(1 + e^self)`, rounded once.
    softplus: Softplus, None;
    /// The sine of an angle in radians, rounded once.
    sin: Sin, None;
    /// The cosine of an angle in radians, rounded once.
    cos: Cos, None;
    /// The tangent of an angle in radians, rounded once.
    tan: Tan, None;
    /// The arcsine in radians, rounded once; NaN beyond -1 and 1.
    asin: Asin, None;
    /// The arccosine in radians, rounded once; NaN beyond -1 and 1.
    acos: Acos, None;
    /// The arctangent in radians, rounded once.
    atan: Atan, None;
    /// The hyperbolic sine, rounded once.
    sinh: Sinh, None;
    /// The hyperbolic cosine, rounded once.
    cosh: Cosh, None;
    /// The hyperbolic tangent, rounded once.
    tanh: Tanh, None;
    /// The inverse hyperbolic sine, rounded once.
    asinh: Asinh, None;
    /// The inverse hyperbolic cosine, rounded once; NaN below 1.
    acosh: Acosh, None;
    /// The inverse hyperbolic tangent, rounded once; NaN beyond -1 and 1.
    atanh: Atanh, None;
    /// The sine of an angle in half turns, rounded once.
    sin_pi: SinPi, None;
    /// The cosine of an angle in half turns, rounded once.
    cos_pi: CosPi, None;
    /// The tangent of an angle in half turns, rounded once.
    tan_pi: TanPi, None;
    /// The arcsine in half turns, rounded once.
    asin_pi: AsinPi, None;
    /// The arccosine in half turns, rounded once.
    acos_pi: AcosPi, None;
    /// The arctangent in half turns, rounded once.
    atan_pi: AtanPi, None;
}

impl<F: FloatFormat<Elementary = Yes>> Minifloat<F> {
    /// Sine and cosine of an angle in radians, each rounded once.
    #[must_use]
    pub fn sin_cos(self) -> (Self, Self) {
        (self.sin(), self.cos())
    }

    /// The angle of the point `(x, self)` in radians, between -pi and pi, rounded once.
    ///
    /// # Panics
    /// If 512 bits do not decide how to round; of no pair of numbers this is known.
    #[must_use]
    pub fn atan2(self, x: Self) -> Self {
        self.elementary2(Function::Atan2, x)
    }

    /// The angle of the point `(x, self)` in half turns, between -1 and 1, rounded once.
    ///
    /// # Panics
    /// If 512 bits do not decide how to round; of no pair of numbers this is known.
    #[must_use]
    pub fn atan2_pi(self, x: Self) -> Self {
        self.elementary2(Function::Atan2Pi, x)
    }

    /// The function by integers.
    fn elementary(self, function: Function) -> Self {
        match Self::CONTEXT.apply(function, self.operand()) {
            Ok(rounded) => Self::of(rounded.code),
            // `Elementary` says that the format is supported, and that all numbers are decided.
            Err(error) => unreachable!("{error}"),
        }
    }

    fn elementary2(self, function: Function, x: Self) -> Self {
        match Self::CONTEXT.apply2(function, self.operand(), x.operand()) {
            Ok(rounded) => Self::of(rounded.code),
            Err(error) => panic!("{error}"),
        }
    }

    /// The result, if a number of binary64 near the exact one tells how it is rounded: if both ends
    /// of the interval in which the exact one lies have the same code (Ziv 1991). Ties, around which
    /// they never have, are left to the integers.
    #[inline(always)]
    fn decided(self, estimate: fn(f64) -> Estimate) -> Option<Self> {
        if !Self::BY64.encodes || !Self::BY64.decodes {
            return None;
        }
        let x = self.wide();
        if !quick::RANGE.contains(&x) {
            return None;
        }
        let Estimate { value, error } = estimate(x);
        let (low, high) = (Self::from_f64(value - error), Self::from_f64(value + error));
        (low.code() == high.code()).then_some(low)
    }
}
