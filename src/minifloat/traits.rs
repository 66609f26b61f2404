//! The traits of the language and of the ecosystem.
//!
//! `From` stands for exact widening only. Into `f64` it exists for the types of this crate whose
//! every value is one; [`Minifloat::to_f64`] rounds where it must. No trait here does arithmetic.

use core::fmt;
use core::ops::Neg;
use core::str::FromStr;

use num_traits::{Bounded, FromPrimitive, ToPrimitive};

use super::{FloatFormat, Minifloat, Yes};
use crate::format::Value;
use crate::round::{Overflow, Rounding, Rules};
use crate::text::ParseNumberError;

/// The number of opposite sign. What has no counterpart stays: zero without a negative zero and its
/// NaN; -2 of INT8 becomes the largest value. Unsigned formats have no negation.
impl<F: FloatFormat<Signed = Yes>> Neg for Minifloat<F> {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        self.negated()
    }
}

/// The shortest decimal that [`FromStr`] reads back, as `f32` writes its own: 0.3125 of E4M3 is
/// `0.3`. `{:#}` writes all digits; see [`Number`](crate::text::Number).
impl<F: FloatFormat> fmt::Display for Minifloat<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Self::FORMAT.display(self.code()), f)
    }
}

/// The shortest decimal with an exponent.
impl<F: FloatFormat> fmt::LowerExp for Minifloat<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerExp::fmt(&Self::FORMAT.display(self.code()), f)
    }
}

/// The exact value, as [`Value`] is written, then the code: `0.3125 (0x2a)`.
impl<F: FloatFormat> fmt::Debug for Minifloat<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.value(), f)?;
        write!(f, " ({:#x})", self.to_bits())
    }
}

/// Decimal or hexadecimal text of any length, rounded once to nearest even with natural overflow;
/// [`Format::parse`](crate::format::Format::parse) takes other rules.
impl<F: FloatFormat> FromStr for Minifloat<F> {
    type Err = ParseNumberError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::FORMAT.parse(text, &Rules::DEFAULT, 0).map(|rounded| Self::of(rounded.code))
    }
}

macro_rules! radix {
    ($($trait:ident)*) => {$(
        /// The code.
        impl<F: FloatFormat> fmt::$trait for Minifloat<F> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::$trait::fmt(&self.to_bits(), f)
            }
        }
    )*};
}

radix!(LowerHex UpperHex Binary);

macro_rules! exact_in_f64 {
    ($($name:ident)*) => {$(
        const _: () = assert!(super::$name::FORMAT.is_exact_in_f64());

        impl From<super::$name> for f64 {
            fn from(x: super::$name) -> Self {
                x.to_f64()
            }
        }
    )*};
}

macro_rules! exact_in_f32 {
    ($($name:ident)*) => {$(
        const _: () = assert!(super::$name::FORMAT.is_exact_in_f32());

        impl From<super::$name> for f32 {
            fn from(x: super::$name) -> Self {
                x.to_f32()
            }
        }
    )*};
}

exact_in_f64!(E4M3 E5M2 E4M3Ieee E3M4 E4M3Fnuz E5M2Fnuz E4M3B11Fnuz E3M2 E2M3 E2M1 E3M0 Int8 E8M0
    Ue4m3 Ue5m3 F16 Bf16 Tf32 E8M3 E8M4 E8M5 E8M6 E8M13);
exact_in_f32!(E4M3 E5M2 E4M3Ieee E3M4 E4M3Fnuz E5M2Fnuz E4M3B11Fnuz E3M2 E2M3 E2M1 E3M0 Int8 E8M0
    Ue4m3 Ue5m3 F16 Bf16 Tf32 E8M3 E8M4 E8M5 E8M6 E8M13);

/// Integers are the value truncated, as for `f64`; `None` for what does not fit.
impl<F: FloatFormat> ToPrimitive for Minifloat<F> {
    fn to_i64(&self) -> Option<i64> {
        self.value().to_f64().to_i64()
    }
    fn to_u64(&self) -> Option<u64> {
        self.value().to_f64().to_u64()
    }
    fn to_i128(&self) -> Option<i128> {
        self.value().to_f64().to_i128()
    }
    fn to_u128(&self) -> Option<u128> {
        self.value().to_f64().to_u128()
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
        let (negative, significand) = (n < 0, n.unsigned_abs());
        let value = Value::Finite { negative, significand, exponent: 0 };
        Some(Self::of(Self::FORMAT.encode(value, Rounding::Rne, Overflow::None, 0).code))
    }
    fn from_u64(n: u64) -> Option<Self> {
        let value = Value::Finite { negative: false, significand: n, exponent: 0 };
        Some(Self::of(Self::FORMAT.encode(value, Rounding::Rne, Overflow::None, 0).code))
    }
    fn from_f32(x: f32) -> Option<Self> {
        Some(Self::from_f32(x))
    }
    fn from_f64(x: f64) -> Option<Self> {
        Some(Self::from_f64(x))
    }
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

#[cfg(feature = "half")]
mod half {
    use crate::minifloat::{Bf16, F16};

    macro_rules! same_codes {
        ($ours:ident $theirs:ident) => {
            /// The same code.
            impl From<half::$theirs> for $ours {
                fn from(x: half::$theirs) -> Self {
                    Self::from_bits(x.to_bits())
                }
            }

            /// The same code.
            impl From<$ours> for half::$theirs {
                fn from(x: $ours) -> Self {
                    Self::from_bits(x.to_bits())
                }
            }
        };
    }

    same_codes!(F16 f16);
    same_codes!(Bf16 bf16);
}

/// Distance of values, in `f64`; equal infinities are close, NaN is close to nothing.
#[cfg(feature = "approx")]
impl<F: FloatFormat> approx::AbsDiffEq for Minifloat<F> {
    type Epsilon = f64;

    /// Half a step at one, or half the smallest value where one does not exist.
    fn default_epsilon() -> f64 {
        Self::EPSILON.unwrap_or(Self::MIN_POSITIVE).value().to_f64() / 2.0
    }

    fn abs_diff_eq(&self, other: &Self, epsilon: f64) -> bool {
        self.value().to_f64().abs_diff_eq(&other.value().to_f64(), epsilon)
    }
}

/// As the code, an unsigned integer: compact, exact, and the same for NaN and negative zero.
#[cfg(feature = "serde")]
impl<F: FloatFormat<Bits: serde::Serialize>> serde::Serialize for Minifloat<F> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_bits().serialize(serializer)
    }
}

/// From the code; an integer with bits beyond the format's width is refused.
#[cfg(feature = "serde")]
impl<'de, F: FloatFormat<Bits: serde::Deserialize<'de>>> serde::Deserialize<'de> for Minifloat<F> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bits = F::Bits::deserialize(deserializer)?;
        let number = Self::from_bits(bits);
        if number.to_bits() == bits {
            Ok(number)
        } else {
            Err(serde::de::Error::custom(format_args!(
                "code {bits:#x} has more than the {} bits of {}",
                Self::FORMAT.bits(),
                Self::FORMAT
            )))
        }
    }
}
