//! The traits of num-traits, each exactly where its promises hold: `Zero`, `One` and `Num` where
//! zero and one exist, `Signed` where negative numbers do. `float` has the rest.

use num_traits::float::TotalOrder;
use num_traits::ops::bytes::{FromBytes, ToBytes};
use num_traits::{
    AsPrimitive, Bounded, ConstOne, ConstZero, Euclid, FromPrimitive, Inv, MulAdd, Num, NumCast,
    One, Signed, ToPrimitive, Unsigned, Zero,
};

use super::radix::{self, ParseRadixError};
use super::{Bits, FloatFormat, Minifloat, No, Yes};
use crate::math::IntInvalid;
use crate::round::Rounding;

impl<F: FloatFormat> ToBytes for Minifloat<F> {
    type Bytes = <F::Bits as Bits>::Bytes;
    fn to_be_bytes(&self) -> Self::Bytes {
        self.to_bits().to_be_bytes()
    }
    fn to_le_bytes(&self) -> Self::Bytes {
        self.to_bits().to_le_bytes()
    }
}

/// Bits above the format's width are dropped, as by [`Minifloat::from_bits`].
impl<F: FloatFormat> FromBytes for Minifloat<F> {
    type Bytes = <F::Bits as Bits>::Bytes;
    fn from_be_bytes(bytes: &Self::Bytes) -> Self {
        Self::from_bits(F::Bits::from_be_bytes(*bytes))
    }
    fn from_le_bytes(bytes: &Self::Bytes) -> Self {
        Self::from_bits(F::Bits::from_le_bytes(*bytes))
    }
}

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
    type FromStrRadixErr = ParseRadixError;

    /// To base 10 as [`FromStr`](core::str::FromStr); to base 2, 4, 8, 16 and 32 digits with an
    /// optional sign and point, of any number, rounded once to nearest even.
    fn from_str_radix(text: &str, radix: u32) -> Result<Self, ParseRadixError> {
        radix::read(text, radix, Self::FORMAT).map(Self::of)
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
            self.operand().to_int(bits, signed, Rounding::TowardZero, false, IntInvalid::Riscv);
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
                    self.operand().to_int($type::BITS, $signed, Rounding::TowardZero, false, IntInvalid::Arm);
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
