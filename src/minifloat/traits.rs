//! The traits of the language and of the ecosystem.
//!
//! Arithmetic's are in `arithmetic`, exact widening (`From`) in `widen`, num-traits' in `num`.

use core::fmt;
use core::ops::Neg;
use core::str::FromStr;

#[cfg(feature = "arbitrary")]
use super::Bits as _;
use super::{FloatFormat, Minifloat, Yes};
use crate::round::Rules;
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

/// By reference, as of `f32`.
impl<F: FloatFormat<Signed = Yes>> Neg for &Minifloat<F> {
    type Output = Minifloat<F>;
    #[inline]
    fn neg(self) -> Minifloat<F> {
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

/// The shortest decimal with an exponent.
impl<F: FloatFormat> fmt::UpperExp for Minifloat<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::UpperExp::fmt(&Self::FORMAT.display(self.code()), f)
    }
}

/// The exact value, as [`Value`](crate::format::Value) is written, then the code: `0.3125 (0x2a)`.
impl<F: FloatFormat> fmt::Debug for Minifloat<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.value(), f)?;
        write!(f, " ({:#x})", self.to_bits())
    }
}

/// Decimal or hexadecimal text of any length, rounded once to nearest even with natural overflow;
/// [`Format::parse`](crate::format::Format::parse) takes other rules.
///
/// ```
/// use exmy::minifloat::E4M3;
///
/// let x: E4M3 = "0.3".parse()?;
/// assert_eq!((x.to_bits(), x.to_string()), (0x2A, "0.3".to_string()));
/// # Ok::<(), exmy::text::ParseNumberError>(())
/// ```
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

/// Any code: every number, and every NaN.
#[cfg(feature = "arbitrary")]
impl<'a, F: FloatFormat> arbitrary::Arbitrary<'a> for Minifloat<F> {
    fn arbitrary(u: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        let mut bytes = Self::default().to_bits().to_le_bytes();
        u.fill_buffer(bytes.as_mut())?;
        Ok(Self::from_bits(super::Bits::from_le_bytes(bytes)))
    }

    fn size_hint(_: usize) -> (usize, Option<usize>) {
        (size_of::<F::Bits>(), Some(size_of::<F::Bits>()))
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
