//! Elementary functions, correctly rounded: `exp`, `ln`, `sin` and the others of
//! [`Function`](crate::math::elementary::Function), by [`Minifloat::RULES`].
//!
//! They exist as methods where they can never fail: for formats of up to 16 bits whose numbers lie
//! between `2^-160` and `2^160`, every argument of which has been tried. For wider formats
//! [`Minifloat::with_rules`] and [`Context`](crate::math::Context) have them, with a `Result`.

use super::quick::{Estimate, Quick};
use super::{FloatFormat, Minifloat, Yes};
use crate::math::elementary::Function;

macro_rules! functions {
    ($($(#[$meta:meta])* $name:ident: $function:ident, $quick:expr;)*) => {
        impl<F: FloatFormat<Elementary = Yes>> Minifloat<F> {
            $(
                $(#[$meta])*
                #[inline]
                #[must_use]
                pub fn $name(self) -> Self {
                    const QUICK: Option<Quick> = $quick;
                    if let Some(quick) = QUICK
                        && let Some(result) = self.decided(quick)
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
    exp: Exp, Some(Quick::Exp);
    /// `2^self`, rounded once.
    exp2: Exp2, Some(Quick::Exp2);
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
    /// ```
    /// use exmy::minifloat::F16;
    ///
    /// let [zero, minus_zero, one] = [0.0, -0.0, 1.0].map(F16::from_f32);
    /// assert_eq!(minus_zero.atan2_pi(-one).to_f32(), -1.0); // the sign of zero decides the side
    /// assert_eq!(zero.atan2(minus_zero).to_f32(), 3.140625); // pi
    /// assert_eq!(F16::from_f32(0.0).sin_cos(), (zero, one));
    /// ```
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

    /// This number to the power `y`, rounded once: 1 where `y` is zero or this is 1, NaN of negative numbers
    /// where `y` is no integer.
    ///
    /// ```
    /// use exmy::minifloat::F16;
    ///
    /// let [two, half, ten] = [2.0, 0.5, 10.0].map(F16::from_f32);
    /// assert_eq!([two.pow(ten).to_f32(), two.pow(half).to_f32()], [1024.0, 1.4140625]);
    /// ```
    ///
    /// # Panics
    /// If 512 bits do not decide how to round; of no pair of numbers this is known.
    #[must_use]
    pub fn pow(self, y: Self) -> Self {
        self.elementary2(Function::Pow, y)
    }

    /// The function by integers.
    #[inline(never)]
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

    /// The result, if a number of binary64 near the exact one decides how it is rounded. It does if
    /// both ends of the interval in which the exact one lies have the same code (Ziv 1991). Around
    /// ties they never have; these are left to the integers.
    #[inline(always)]
    fn decided(self, quick: Quick) -> Option<Self> {
        if F::FORMAT.bits() <= 8 {
            let table = match quick {
                Quick::Exp => const { &Quick::Exp.table(F::FORMAT) },
                Quick::Exp2 => const { &Quick::Exp2.table(F::FORMAT) },
            };
            let code = table[self.code() as usize & 0xFF];
            return (code != Quick::UNDECIDED).then(|| Self::of(code.into()));
        }
        if !Self::BY64.encodes || !Self::BY64.decodes || self.is_nan() {
            return None;
        }
        let x = self.wide();
        if Self::BY32.encodes {
            // The exact number lies between the neighbours of its rounding to binary32.
            let nearest = (quick.rough(x) as f32).to_bits();
            let (low, high) = (nearest.saturating_sub(1), nearest + 1);
            let low = Self::BY32.encode_number(f32::from_bits(low));
            let high = Self::BY32.encode_number(f32::from_bits(high));
            if low == high {
                return Some(Self::of(low.into()));
            }
        }
        Self::decided_closely(quick.estimate(x))
    }

    #[inline(never)]
    fn decided_closely(estimate: Estimate) -> Option<Self> {
        let Estimate { value, error } = estimate;
        let (low, high) = (value - error, value + error);
        let (low, high) = (Self::BY64.encode_number(low), Self::BY64.encode_number(high));
        (low == high).then(|| Self::of(low))
    }
}
