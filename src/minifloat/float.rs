//! `FloatCore`, `FloatConst` and `Float` of num-traits, where a format has all that binary32 has:
//! IEEE's special values, one, an epsilon, normal numbers, exponents that fit `integer_decode`'s
//! `i16`; `Float` also needs the functions.
//!
//! Formats without an infinity, E4M3 and E2M1 among them, have none of these three. Generic code over
//! `num_traits::Float` takes E5M2, F16 or bfloat16, and code over `Num` and `Signed` takes all.

use num_traits::float::{FloatConst, FloatCore};

use super::{FloatFacts, FloatFormat, Minifloat, Yes};
use crate::format::Value;
use crate::math::Operand;

impl<F: FloatFormat> Minifloat<F> {
    fn missing(what: &str) -> ! {
        unreachable!("{} has no {what}, though `Float` says so", Self::FORMAT)
    }

    /// A constant of binary64, rounded. No constant of mathematics lies near enough to a tie of 24
    /// bits for its own rounding to matter.
    fn constant(x: f64) -> Self {
        Self::from_f64(x)
    }

    /// Magnitude, exponent and sign: `sign * significand * 2^exponent`; special values as those of
    /// binary64. Of a format with longer exponents there is no `Float`.
    fn decoded(self) -> (u64, i16, i8) {
        match self.value() {
            Value::Finite { negative, significand, exponent } => {
                (significand, exponent as i16, if negative { -1 } else { 1 })
            }
            _ => FloatCore::integer_decode(self.to_f64()),
        }
    }

    /// `self` times a constant of binary64, rounded once.
    fn scaled(self, factor: f64) -> Self {
        Self::of(Self::CONTEXT.mul(self.operand(), Operand::f64(factor)).code)
    }
}

/// What binary32 has, of formats that have it all.
macro_rules! special {
    ($($name:ident: $constant:ident;)*) => {
        $(fn $name() -> Self {
            match Self::$constant {
                Some(value) => value,
                None => Self::missing(stringify!($name)),
            }
        })*
    };
}

macro_rules! own {
    ($($name:ident($($argument:ident)?) -> $type:ty;)*) => {
        $(fn $name(self $(, $argument: Self)?) -> $type {
            Minifloat::$name(self $(, $argument)?)
        })*
    };
}

/// What `FloatCore` and `Float` have in common.
macro_rules! common {
    () => {
        special! {
            infinity: INFINITY;
            neg_infinity: NEG_INFINITY;
            nan: NAN;
            epsilon: EPSILON;
            // The smallest normal number, as of `f32`.
            min_positive_value: MIN_NORMAL;
        }
        fn neg_zero() -> Self {
            -Self::default()
        }
        fn min_value() -> Self {
            Self::MIN
        }
        fn max_value() -> Self {
            Self::MAX
        }
        own! {
            is_nan() -> bool; is_infinite() -> bool; is_finite() -> bool; is_normal() -> bool;
            is_subnormal() -> bool; classify() -> core::num::FpCategory; floor() -> Self;
            ceil() -> Self; round() -> Self; trunc() -> Self; fract() -> Self; abs() -> Self;
            signum() -> Self; is_sign_positive() -> bool; is_sign_negative() -> bool;
            min(other) -> Self; max(other) -> Self; recip() -> Self;
        }
        fn clamp(self, min: Self, max: Self) -> Self {
            Minifloat::clamp(self, min, max)
        }
        fn to_degrees(self) -> Self {
            self.scaled(57.295_779_513_082_32)
        }
        fn to_radians(self) -> Self {
            self.scaled(0.017_453_292_519_943_295)
        }
        fn integer_decode(self) -> (u64, i16, i8) {
            self.decoded()
        }
    };
}

impl<F: FloatFormat<Signed = Yes, Zero = Yes, One = Yes, Float: FloatFacts>> FloatCore
    for Minifloat<F>
{
    common!();
}

macro_rules! constants {
    ($($name:ident)*) => {
        impl<F: FloatFormat<Float: FloatFacts>> FloatConst for Minifloat<F> {
            $(fn $name() -> Self {
                Self::constant(core::f64::consts::$name)
            })*
            fn TAU() -> Self {
                Self::constant(core::f64::consts::TAU)
            }
            fn LOG10_2() -> Self {
                Self::constant(core::f64::consts::LOG10_2)
            }
            fn LOG2_10() -> Self {
                Self::constant(core::f64::consts::LOG2_10)
            }
        }
    };
}

constants! {
    E FRAC_1_PI FRAC_1_SQRT_2 FRAC_2_PI FRAC_2_SQRT_PI FRAC_PI_2 FRAC_PI_3 FRAC_PI_4 FRAC_PI_6
    FRAC_PI_8 LN_10 LN_2 LOG10_E LOG2_E PI SQRT_2
}

#[cfg(feature = "std")]
impl<F> num_traits::Float for Minifloat<F>
where
    F: FloatFormat<Signed = Yes, Zero = Yes, One = Yes, Float: FloatFacts, Elementary = Yes>,
{
    common!();
    own! {
        sqrt() -> Self; exp() -> Self; exp2() -> Self; ln() -> Self; log2() -> Self;
        log10() -> Self; cbrt() -> Self; hypot(other) -> Self; sin() -> Self; cos() -> Self;
        tan() -> Self; asin() -> Self; acos() -> Self; atan() -> Self; atan2(other) -> Self;
        sin_cos() -> (Self, Self); exp_m1() -> Self; ln_1p() -> Self; sinh() -> Self;
        cosh() -> Self; tanh() -> Self; asinh() -> Self; acosh() -> Self; atanh() -> Self;
        powf(n) -> Self; log(base) -> Self; copysign(sign) -> Self;
    }
    fn mul_add(self, a: Self, b: Self) -> Self {
        Minifloat::mul_add(self, a, b)
    }
    fn powi(self, n: i32) -> Self {
        Minifloat::powi(self, n)
    }
    fn abs_sub(self, other: Self) -> Self {
        num_traits::Signed::abs_sub(&self, &other)
    }
}
