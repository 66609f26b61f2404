//! The traits of num-traits, each exactly where its promises hold: `Zero`, `One` and `Num` where
//! zero and one exist, `Signed` where negative numbers do, `FloatCore`, `FloatConst` and `Float`
//! where a format has all that binary32 has (IEEE's special values, normal numbers, an epsilon).

use num_traits::float::{FloatConst, FloatCore, TotalOrder};
use num_traits::{
    AsPrimitive, Bounded, ConstOne, ConstZero, Euclid, FromPrimitive, Inv, MulAdd, Num, NumCast,
    One, Signed, ToPrimitive, Unsigned, Zero,
};

use super::{FloatFormat, Minifloat, No, Yes};
use crate::format::Value;
use crate::math::{IntInvalid, Operand};
use crate::round::Rounding;
use crate::text::ParseNumberError;

impl<F: FloatFormat<Zero = Yes>> Zero for Minifloat<F> {
    fn zero() -> Self {
        <Self as ConstZero>::ZERO
    }
    fn is_zero(&self) -> bool {
        (*self).is_zero()
    }
}

impl<F: FloatFormat<Zero = Yes>> ConstZero for Minifloat<F> {
    const ZERO: Self = Self(F::CODES.first);
}

impl<F: FloatFormat<One = Yes>> One for Minifloat<F> {
    fn one() -> Self {
        <Self as ConstOne>::ONE
    }
}

impl<F: FloatFormat<One = Yes>> ConstOne for Minifloat<F> {
    const ONE: Self = match Self::ONE {
        Some(one) => one,
        None => panic!("`One` says that there is a one"),
    };
}

/// The finite range.
impl<F: FloatFormat> Bounded for Minifloat<F> {
    fn min_value() -> Self {
        Self::MIN
    }
    fn max_value() -> Self {
        Self::MAX
    }
}

impl<F: FloatFormat<Zero = Yes, One = Yes>> Num for Minifloat<F> {
    type FromStrRadixErr = ParseNumberError;

    /// As [`FromStr`](core::str::FromStr).
    ///
    /// # Panics
    /// If `radix` is not 10.
    fn from_str_radix(text: &str, radix: u32) -> Result<Self, ParseNumberError> {
        assert!(radix == 10, "numbers are read to base 10, not {radix}");
        text.parse()
    }
}

impl<F: FloatFormat<Signed = Yes, Zero = Yes, One = Yes>> Signed for Minifloat<F> {
    fn abs(&self) -> Self {
        (*self).abs()
    }
    /// `self - other`, or zero if that is negative.
    fn abs_sub(&self, other: &Self) -> Self {
        if *self <= *other { <Self as ConstZero>::ZERO } else { *self - *other }
    }
    fn signum(&self) -> Self {
        (*self).signum()
    }
    fn is_positive(&self) -> bool {
        !self.is_nan() && self.is_sign_positive()
    }
    fn is_negative(&self) -> bool {
        !self.is_nan() && self.is_sign_negative()
    }
}

impl<F: FloatFormat<Signed = No, Zero = Yes, One = Yes>> Unsigned for Minifloat<F> {}

impl<F: FloatFormat> MulAdd for Minifloat<F> {
    type Output = Self;
    fn mul_add(self, a: Self, b: Self) -> Self {
        self.mul_add(a, b)
    }
}

impl<F: FloatFormat> Inv for Minifloat<F> {
    type Output = Self;
    fn inv(self) -> Self {
        self.recip()
    }
}

impl<F: FloatFormat> Euclid for Minifloat<F> {
    fn div_euclid(&self, v: &Self) -> Self {
        (*self).div_euclid(*v)
    }
    fn rem_euclid(&self, v: &Self) -> Self {
        (*self).rem_euclid(*v)
    }
}

impl<F: FloatFormat> TotalOrder for Minifloat<F> {
    fn total_cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.total_cmp(other)
    }
}

impl<F: FloatFormat> Minifloat<F> {
    /// The integer part as the low bits of a two's complement word, if the type has it.
    fn truncated(self, bits: u32, signed: bool) -> Option<u128> {
        let (word, flags) =
            self.operand().to_int(bits, signed, Rounding::Rtz, false, IntInvalid::Riscv);
        flags.is_empty().then_some(word)
    }
}

macro_rules! to_integers {
    ($($name:ident $type:ident $signed:literal),*) => {
        $(fn $name(&self) -> Option<$type> {
            self.truncated($type::BITS, $signed).map(|word| word as $type)
        })*
    };
}

/// Integers are the value truncated; `None` for what does not fit.
impl<F: FloatFormat> ToPrimitive for Minifloat<F> {
    to_integers! {
        to_i8 i8 true, to_i16 i16 true, to_i32 i32 true, to_i64 i64 true, to_i128 i128 true,
        to_isize isize true, to_u8 u8 false, to_u16 u16 false, to_u32 u32 false, to_u64 u64 false,
        to_u128 u128 false, to_usize usize false
    }
    fn to_f32(&self) -> Option<f32> {
        Some((*self).to_f32())
    }
    fn to_f64(&self) -> Option<f64> {
        Some((*self).to_f64())
    }
}

/// Nearest even with natural overflow, rounded once from any integer.
impl<F: FloatFormat> FromPrimitive for Minifloat<F> {
    fn from_i64(n: i64) -> Option<Self> {
        Some(Self::from_int(n.into()))
    }
    fn from_u64(n: u64) -> Option<Self> {
        Some(Self::from_int(n.into()))
    }
    fn from_i128(n: i128) -> Option<Self> {
        Some(Self::from_int(n))
    }
    fn from_u128(n: u128) -> Option<Self> {
        Some(Self::of(Self::CONTEXT.from_u128(n).code))
    }
    fn from_f32(x: f32) -> Option<Self> {
        Some(Self::from_f32(x))
    }
    fn from_f64(x: f64) -> Option<Self> {
        Some(Self::from_f64(x))
    }
}

/// Rounded once: integers are asked for as such where binary64 may not have them.
impl<F: FloatFormat> NumCast for Minifloat<F> {
    fn from<T: ToPrimitive>(n: T) -> Option<Self> {
        /// Every integer up to it is one of binary64.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let x = n.to_f64();
        if x.is_some_and(|x| x.abs() < EXACT || !x.is_finite()) {
            return x.map(Self::from_f64);
        }
        n.to_i128()
            .map(Self::from_int)
            .or_else(|| n.to_u128().map(|n| Self::of(Self::CONTEXT.from_u128(n).code)))
            .or_else(|| x.map(Self::from_f64))
    }
}

macro_rules! as_integers {
    ($($type:ident $signed:literal),*) => {$(
        /// As `as` from `f32`: truncated, saturated, NaN becomes 0.
        impl<F: FloatFormat> AsPrimitive<$type> for Minifloat<F> {
            fn as_(self) -> $type {
                let (word, _) =
                    self.operand().to_int($type::BITS, $signed, Rounding::Rtz, false, IntInvalid::Arm);
                word as $type
            }
        }

        /// As `as` to `f32`: rounded once to nearest even.
        impl<F: FloatFormat> AsPrimitive<Minifloat<F>> for $type {
            fn as_(self) -> Minifloat<F> {
                let context = &Minifloat::<F>::CONTEXT;
                #[allow(unused_comparisons)]
                let negative = self < 0;
                let magnitude = if negative { (self as u128).wrapping_neg() } else { self as u128 };
                Minifloat::of(context.from_int(negative, magnitude).code)
            }
        }
    )*};
}

as_integers! {
    i8 true, i16 true, i32 true, i64 true, i128 true, isize true,
    u8 false, u16 false, u32 false, u64 false, u128 false, usize false
}

macro_rules! as_floats {
    ($($type:ident $to:ident $from:ident),*) => {$(
        impl<F: FloatFormat> AsPrimitive<$type> for Minifloat<F> {
            fn as_(self) -> $type {
                self.$to()
            }
        }

        /// Rounded once to nearest even.
        impl<F: FloatFormat> AsPrimitive<Minifloat<F>> for $type {
            fn as_(self) -> Minifloat<F> {
                Minifloat::$from(self)
            }
        }
    )*};
}

as_floats!(f32 to_f32 from_f32, f64 to_f64 from_f64);

/// Rounded once to nearest even.
impl<F: FloatFormat, G: FloatFormat> AsPrimitive<Minifloat<G>> for Minifloat<F> {
    fn as_(self) -> Minifloat<G> {
        Minifloat::from_minifloat(self)
    }
}

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
    /// binary64.
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

impl<F: FloatFormat<Signed = Yes, Zero = Yes, One = Yes, Float = Yes>> FloatCore for Minifloat<F> {
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
}

macro_rules! constants {
    ($($name:ident)*) => {
        impl<F: FloatFormat<Float = Yes>> FloatConst for Minifloat<F> {
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
    F: FloatFormat<Signed = Yes, Zero = Yes, One = Yes, Float = Yes, Elementary = Yes>,
{
    special! {
        infinity: INFINITY;
        neg_infinity: NEG_INFINITY;
        nan: NAN;
        epsilon: EPSILON;
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
        min(other) -> Self; max(other) -> Self; recip() -> Self; sqrt() -> Self; exp() -> Self;
        exp2() -> Self; ln() -> Self; log2() -> Self; log10() -> Self; cbrt() -> Self;
        hypot(other) -> Self; sin() -> Self; cos() -> Self; tan() -> Self; asin() -> Self;
        acos() -> Self; atan() -> Self; atan2(other) -> Self; sin_cos() -> (Self, Self);
        exp_m1() -> Self; ln_1p() -> Self; sinh() -> Self; cosh() -> Self; tanh() -> Self;
        asinh() -> Self; acosh() -> Self; atanh() -> Self; powf(n) -> Self; log(base) -> Self;
        copysign(sign) -> Self;
    }
    fn mul_add(self, a: Self, b: Self) -> Self {
        Minifloat::mul_add(self, a, b)
    }
    fn clamp(self, min: Self, max: Self) -> Self {
        Minifloat::clamp(self, min, max)
    }
    fn powi(self, n: i32) -> Self {
        Minifloat::powi(self, n)
    }
    fn abs_sub(self, other: Self) -> Self {
        Signed::abs_sub(&self, &other)
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
}
