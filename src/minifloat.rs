//! The typed scalar: a code whose type says its format.
//!
//! [`Minifloat<F>`] is the code itself and nothing more (`repr(transparent)`), with the interface
//! of `f32` where that makes sense: conversions, classification, comparison by value. It is
//! defined by [`Format`] alone - every answer here is the run-time format's, evaluated for a
//! constant - so the two cannot disagree. Arithmetic is done in `f32` or `f64` and rounded back.
//!
//! The marker `F` is [`ExMy<E, M, S>`](ExMy) for every valid signed shape of up to 16 bits and a
//! few wider ones, a marker such as [`E8M0Format`], or
//! a type made with [`format!`](crate::format!).

#![forbid(unsafe_code)]

mod shapes;
mod traits;

pub use shapes::*;

use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::num::FpCategory;

use crate::format::{Format, Value};
use crate::round::{Overflow, Rounding};

/// An unsigned integer that stores a code: `u8`, `u16`, `u32` or `u64`.
pub trait Bits:
    Copy + Eq + Ord + Hash + fmt::Debug + fmt::LowerHex + fmt::UpperHex + fmt::Binary + sealed::Sealed
{
    /// Bits of the integer.
    const WIDTH: u32;
    /// Widens.
    fn to_u64(self) -> u64;
    /// Keeps the low bits.
    fn from_u64(code: u64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! bits {
    ($($type:ident)*) => {$(
        impl sealed::Sealed for $type {}
        impl Bits for $type {
            const WIDTH: u32 = <$type>::BITS;
            #[inline]
            fn to_u64(self) -> u64 {
                self.into()
            }
            #[inline]
            fn from_u64(code: u64) -> Self {
                code as $type
            }
        }
    )*};
}

bits!(u8 u16 u32 u64);

/// A format as a type.
///
/// Implemented for [`ExMy`] shapes and by [`format!`](crate::format!).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number format the crate has generated",
    label = "no format of this shape",
    note = "`ExMy<E, M, S>` exists for the valid signed shapes of up to 16 bits and for E8M10, E8M13, E8M23 and E11M52 with `Ieee`",
    note = "another one can be declared: `exmy::format! {{ pub struct MyFormat(u32): e6m20, bias 31 }}`"
)]
pub trait FloatFormat: Copy + 'static {
    /// The integer that stores a code.
    type Bits: Bits;
    /// The format.
    const FORMAT: Format;
    /// Its remarkable codes.
    #[doc(hidden)]
    const CODES: Codes<Self::Bits>;
}

/// The codes behind the constants of [`Minifloat`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Codes<B> {
    pub max: B,
    pub min: B,
    pub min_positive: B,
    pub min_normal: Option<B>,
    pub one: Option<B>,
    pub epsilon: Option<B>,
    pub nan: Option<B>,
    pub infinity: Option<B>,
    pub neg_infinity: Option<B>,
}

/// A number of the format `F`, stored as its code.
///
/// Equality and order are those of values: `-0 == +0`, and NaN is unequal to everything, itself
/// included. [`total_cmp`](Self::total_cmp) orders all codes.
///
/// ```
/// use exmy::minifloat::{E4M3, ExMy, Minifloat};
///
/// let x = E4M3::from_f32(0.3);
/// assert_eq!((x.to_bits(), x.to_f32()), (0x2A, 0.3125));
/// assert_eq!(Minifloat::<ExMy<8, 3>>::from_f32(1.0 / 3.0).to_f32(), 0.34375);
/// ```
///
/// A shape that no one has generated does not compile:
///
/// ```compile_fail
/// let x = exmy::minifloat::Minifloat::<exmy::minifloat::ExMy<9, 30>>::from_f32(1.0);
/// ```
#[repr(transparent)]
pub struct Minifloat<F: FloatFormat>(F::Bits);

impl<F: FloatFormat> Minifloat<F> {
    /// The format as a value.
    pub const FORMAT: Format = {
        assert!(F::FORMAT.bits() <= F::Bits::WIDTH, "the integer is too narrow for the format");
        F::FORMAT
    };
    /// The largest finite number.
    pub const MAX: Self = Self(F::CODES.max);
    /// The smallest finite number: `-MAX`, -2 for INT8, and the one of code 0 without a sign.
    pub const MIN: Self = Self(F::CODES.min);
    /// The smallest number above zero, subnormal or not.
    pub const MIN_POSITIVE: Self = Self(F::CODES.min_positive);
    /// The smallest positive normal number, if any is normal.
    pub const MIN_NORMAL: Option<Self> = Self::wrap(F::CODES.min_normal);
    /// One, if the format has it.
    pub const ONE: Option<Self> = Self::wrap(F::CODES.one);
    /// The distance from 1 to the next larger number, if both and the distance exist.
    pub const EPSILON: Option<Self> = Self::wrap(F::CODES.epsilon);
    /// The canonical NaN, if the format has one.
    pub const NAN: Option<Self> = Self::wrap(F::CODES.nan);
    /// Positive infinity, if the format has it.
    pub const INFINITY: Option<Self> = Self::wrap(F::CODES.infinity);
    /// Negative infinity, if the format has it.
    pub const NEG_INFINITY: Option<Self> = Self::wrap(F::CODES.neg_infinity);

    const fn wrap(code: Option<F::Bits>) -> Option<Self> {
        match code {
            Some(code) => Some(Self(code)),
            None => None,
        }
    }

    /// The number with this code. Bits above the format's width are ignored and dropped.
    #[inline]
    pub fn from_bits(bits: F::Bits) -> Self {
        Self::of(bits.to_u64() & crate::format::low_bits(Self::FORMAT.bits()))
    }

    #[inline]
    fn of(code: u64) -> Self {
        Self(F::Bits::from_u64(code))
    }

    #[inline]
    fn code(self) -> u64 {
        self.0.to_u64()
    }

    /// The code.
    #[inline]
    pub fn to_bits(self) -> F::Bits {
        self.0
    }

    /// The exact value.
    #[inline]
    pub fn value(self) -> Value {
        Self::FORMAT.decode(self.code())
    }

    /// The nearest number, ties to even, with the format's natural overflow: infinity or NaN where
    /// there is one, else the largest value ([`Overflow::None`]).
    #[inline]
    pub fn from_f32(x: f32) -> Self {
        Self::from_f32_with(x, Rounding::Rne, Overflow::None)
    }

    /// The number that `mode` and `overflow` choose; for stochastic modes the random bits are 0.
    ///
    /// # Panics
    /// If `mode` is stochastic with a bit count outside 1..=32.
    #[inline]
    pub fn from_f32_with(x: f32, mode: Rounding, overflow: Overflow) -> Self {
        Self::of(Self::FORMAT.encode_f32(x, mode, overflow, 0).code)
    }

    /// Stochastic rounding, variant A, with natural overflow, by the top `bits` bits of the word
    /// `random`.
    ///
    /// # Panics
    /// If `bits` is not in 1..=32.
    #[inline]
    pub fn from_f32_stochastic(x: f32, random: u32, bits: u32) -> Self {
        let mode = Rounding::stochastic(bits);
        Self::of(Self::FORMAT.encode_f32(x, mode, Overflow::None, random).code)
    }

    /// The nearest number, ties to even, with natural overflow; not by way of `f32`.
    #[inline]
    pub fn from_f64(x: f64) -> Self {
        Self::from_f64_with(x, Rounding::Rne, Overflow::None)
    }

    /// The number that `mode` and `overflow` choose; for stochastic modes the random bits are 0.
    ///
    /// # Panics
    /// If `mode` is stochastic with a bit count outside 1..=32.
    #[inline]
    pub fn from_f64_with(x: f64, mode: Rounding, overflow: Overflow) -> Self {
        Self::of(Self::FORMAT.encode_f64(x, mode, overflow, 0).code)
    }

    /// Stochastic rounding, variant A, with natural overflow, by the top `bits` bits of the word
    /// `random`.
    ///
    /// # Panics
    /// If `bits` is not in 1..=32.
    #[inline]
    pub fn from_f64_stochastic(x: f64, random: u32, bits: u32) -> Self {
        let mode = Rounding::stochastic(bits);
        Self::of(Self::FORMAT.encode_f64(x, mode, Overflow::None, random).code)
    }

    /// The number of this format nearest to one of another, ties to even, rounded once.
    #[inline]
    pub fn from_minifloat<G: FloatFormat>(x: Minifloat<G>) -> Self {
        Self::of(Self::FORMAT.encode(x.value(), Rounding::Rne, Overflow::None, 0).code)
    }

    /// As `f32`; exact where [`Format::is_exact_in_f32`] says so, else nearest even.
    #[inline]
    pub fn to_f32(self) -> f32 {
        self.value().to_f32()
    }

    /// As `f64`; exact for every shape of up to 11 exponent and 52 significand bits with a usual
    /// bias, else nearest even.
    #[inline]
    pub fn to_f64(self) -> f64 {
        self.value().to_f64()
    }

    /// Whether this is NaN.
    #[inline]
    pub fn is_nan(self) -> bool {
        self.value().is_nan()
    }

    /// Whether this is an infinity.
    #[inline]
    pub fn is_infinite(self) -> bool {
        self.value().is_infinite()
    }

    /// Whether this is neither NaN nor infinite.
    #[inline]
    pub fn is_finite(self) -> bool {
        self.value().is_finite()
    }

    /// Whether this is zero of either sign.
    #[inline]
    pub fn is_zero(self) -> bool {
        self.value().is_zero()
    }

    /// Whether this is finite, not zero, and has full precision.
    #[inline]
    pub fn is_normal(self) -> bool {
        self.classify() == FpCategory::Normal
    }

    /// Whether this is below the smallest normal number but not zero.
    #[inline]
    pub fn is_subnormal(self) -> bool {
        self.classify() == FpCategory::Subnormal
    }

    /// Whether the value's sign is minus, of zero and NaN too where their codes carry one.
    #[inline]
    pub fn is_sign_negative(self) -> bool {
        self.value().is_sign_negative()
    }

    /// The class of the number. In a format without normal numbers all but zero are subnormal;
    /// integers of two's complement count so too.
    pub fn classify(self) -> FpCategory {
        match self.value() {
            Value::Nan { .. } => FpCategory::Nan,
            Value::Infinite { .. } => FpCategory::Infinite,
            Value::Finite { significand: 0, .. } => FpCategory::Zero,
            Value::Finite { significand, exponent, .. } => {
                let magnitude = Value::Finite { negative: false, significand, exponent };
                match Self::FORMAT.min_normal() {
                    Some(smallest) if magnitude >= smallest => FpCategory::Normal,
                    _ => FpCategory::Subnormal,
                }
            }
        }
    }

    /// The magnitude, NaN's sign removed too. The one number without one, -2 of INT8, gives the
    /// largest.
    #[must_use]
    pub fn abs(self) -> Self {
        if self.is_sign_negative() { self.negated() } else { self }
    }

    /// The number of opposite sign: itself where that is the only one of its size (zero without a
    /// negative zero, an unsigned NaN).
    fn negated(self) -> Self {
        let flipped = match self.value() {
            Value::Nan { negative } => Value::Nan { negative: !negative },
            Value::Infinite { negative } => Value::Infinite { negative: !negative },
            Value::Finite { negative, significand, exponent } => {
                Value::Finite { negative: !negative, significand, exponent }
            }
        };
        Self::of(Self::FORMAT.encode(flipped, Rounding::Rne, Overflow::None, 0).code)
    }

    /// A total order: negative NaN, numbers ascending with -0 below +0, positive NaN; NaNs among
    /// each other by code. Where NaN has no sign it counts as positive.
    pub fn total_cmp(&self, other: &Self) -> Ordering {
        // Negative NaN -2, negative -1, positive 0, positive NaN 1.
        let rank = |x: Self| match (x.is_nan(), x.is_sign_negative()) {
            (true, true) => -2,
            (true, false) => 1,
            (false, true) => -1,
            (false, false) => 0,
        };
        let order = rank(*self).cmp(&rank(*other));
        let numbers = self.value().compare(other.value()).unwrap_or_else(|| {
            // Only two NaNs of one sign get here with equal ranks.
            let order = self.0.cmp(&other.0);
            if self.is_sign_negative() { order.reverse() } else { order }
        });
        order.then(numbers)
    }
}

impl<F: FloatFormat> Copy for Minifloat<F> {}

impl<F: FloatFormat> Clone for Minifloat<F> {
    fn clone(&self) -> Self {
        *self
    }
}

/// The number with code 0: zero, or the smallest number of a format without zero.
impl<F: FloatFormat> Default for Minifloat<F> {
    fn default() -> Self {
        Self::of(0)
    }
}

impl<F: FloatFormat> PartialEq for Minifloat<F> {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl<F: FloatFormat> PartialOrd for Minifloat<F> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.value().compare(other.value())
    }
}

/// A wrapper that hashes and compares codes, for use as a key.
#[derive(Clone, Copy)]
pub struct ByCode<F: FloatFormat>(
    /// The number.
    pub Minifloat<F>,
);

impl<F: FloatFormat> PartialEq for ByCode<F> {
    fn eq(&self, other: &Self) -> bool {
        self.0.0 == other.0.0
    }
}

impl<F: FloatFormat> Eq for ByCode<F> {}

impl<F: FloatFormat> Hash for ByCode<F> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.0.hash(state);
    }
}
