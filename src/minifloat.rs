//! The typed scalar: a code whose type says its format.
//!
//! [`Minifloat<F>`] is the code itself and nothing more (`repr(transparent)`), with the interface
//! of `f32`: conversions, classification, comparison by value, operators, functions. It is defined
//! by [`Format`] and [`math::Context`](crate::math::Context) alone. Where this module computes with
//! the machine's `f32` and `f64` instead, the result is the same, and tests compare them code by
//! code. Every result is the exact one, rounded once ([`Minifloat::RULES`]);
//! [`Minifloat::with_rules`] takes other rules and returns flags.
//!
//! | | |
//! |---|---|
//! | from and to | `from_f32`, `from_f64`, `from_f32_saturating`, `to_f32`, `to_f64`, exact ones by `From` |
//! | as text and bytes | `parse`, `to_string`; `from_bits`, `to_le_bytes` |
//! | of num-traits | `as_()`, `NumCast`, `Num`, `Float`, ... |
//! | constants | `MAX`, `MIN_POSITIVE`, `EPSILON`, `NAN` ..., `from_f32_const`, [`number!`](crate::number) |
//! | arithmetic | `+ - * / %`, `mul_add`, `sqrt`, `recip`, `rsqrt`, `hypot`, `Sum`, `Product` |
//! | choice | `min`, `maximum`, `clamp`, `copysign`, `next_up`, `floor`, `round_ties_even`, `total_cmp` |
//! | functions | `exp`, `ln`, `sin`, `atan2`, `tanh`, `sin_pi` ..., `powf`, `cbrt` |
//!
//! Traits are implemented where the format has what they promise: `Eq`, `Ord` and `Hash` without
//! NaN, `Neg` and `Signed` with a sign, `Zero` with a zero, `Float` with all that binary32 has.
//!
//! The marker `F` is [`ExMy<E, M, S>`](ExMy) for every valid signed shape of up to 16 bits and a
//! few wider ones. Others are markers such as [`E8M0Format`] and types made with
//! [`define_format!`](crate::define_format!).

#![forbid(unsafe_code)]

mod arithmetic;
mod bits;
mod class;
mod constant;
mod convert;
mod facts;
mod fast;
mod float;
mod functions;
mod names;
#[cfg(feature = "approx")]
mod near;
mod num;
mod power;
mod quick;
mod radix;
#[cfg(feature = "rand")]
mod rand;
mod select;
mod shapes;
mod traits;
mod widen;

pub use bits::Bits;
#[cfg(feature = "alloc")]
pub(crate) use bits::sealed::Word;
#[cfg(feature = "alloc")]
pub(crate) use bits::{CodeSlice, CodeSliceMut};
#[doc(hidden)]
pub use constant::Scalar;
pub use facts::{Fact, FloatFacts, No, Yes};
pub use names::*;
pub use radix::ParseRadixError;
pub use shapes::*;

use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use crate::format::Format;

/// A format as a type.
///
/// Implemented for [`ExMy`] shapes and by [`define_format!`](crate::define_format!). It is sealed, so that no
/// constants can be written that contradict the format:
///
/// ```compile_fail,E0277
/// use exmy::minifloat::{FloatFormat, No};
///
/// #[derive(Clone, Copy)]
/// struct Mine;
///
/// impl FloatFormat for Mine { // `Sealed` is not implemented
///     type Bits = u8;
///     type Signed = No;
///     type Zero = No;
///     type One = No;
///     type Nan = No;
///     type Float = No;
///     type Elementary = No;
///     const FORMAT: exmy::Format = exmy::Format::E4M3FN;
///     const CODES: exmy::minifloat::ConstantCodes<u8> = todo!();
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number format the crate has generated",
    label = "no format of this shape",
    note = "`ExMy<E, M, S>` exists for the valid signed shapes of up to 16 bits and for E8M10, E8M13, \
            E8M23 and E11M52 with `Ieee`",
    note = "another one can be declared: `exmy::define_format! {{ pub struct MyFormat(u32): e6m20, \
            bias 31 }}`"
)]
pub trait FloatFormat: Copy + 'static + sealed::Sealed {
    /// The integer that stores a code.
    type Bits: Bits;
    /// Whether negative values exist: [`Fact`] of true or false, as the following.
    type Signed;
    /// Whether zero exists.
    type Zero;
    /// Whether one exists.
    type One;
    /// Whether NaN exists.
    type Nan;
    /// Whether the format has all that binary32 has: NaN, infinities, negative zero, one, its
    /// epsilon, normal numbers, and exponents of at most 16 bits.
    type Float;
    /// Whether the elementary functions are known never to fail: of up to 16 bits, with all numbers
    /// between `2^-160` and `2^160`.
    type Elementary;
    /// Whether every integer of [`Bits`](Self::Bits) is a code.
    type Full;
    /// The format.
    const FORMAT: Format;
    /// Its remarkable codes.
    #[doc(hidden)]
    const CODES: ConstantCodes<Self::Bits>;
}

/// What only the crate's own macros implement.
#[doc(hidden)]
pub mod sealed {
    pub trait Sealed {}
    impl<const E: u32, const M: u32, S> Sealed for super::ExMy<E, M, S> {}
}

/// Whether a format has all that binary32 has, and no exponent beyond what `integer_decode` of
/// num-traits returns, an `i16`.
#[doc(hidden)]
pub const fn is_float(format: Format) -> bool {
    let exponents = format.lsb() >= i16::MIN as i32 && format.emax() <= i16::MAX as i32;
    exponents
        && format.infinity_code(true).is_some()
        && format.has_nan()
        && format.has_negative_zero()
        && format.epsilon_code().is_some()
        && format.min_normal_code().is_some()
}

/// Whether every argument of the elementary functions has been tried.
#[doc(hidden)]
pub const fn is_elementary(format: Format) -> bool {
    format.bits() <= 16 && format.lsb() >= -160 && format.emax() < 160
}

/// Whether every integer is a code.
#[doc(hidden)]
pub const fn fills<B: Bits>(format: Format) -> bool {
    format.bits() == B::WIDTH
}

/// The codes behind the constants of [`Minifloat`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct ConstantCodes<B> {
    pub first: B,
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
#[cfg_attr(
    feature = "zerocopy",
    derive(zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout, zerocopy::Unaligned)
)]
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
    ///
    /// ```
    /// use exmy::minifloat::E2M1;
    ///
    /// assert_eq!(E2M1::from_bits(0xF7).to_bits(), 0x7); // four bits are a code
    /// assert_eq!(E2M1::from_bits(0x8), E2M1::from_bits(0x0)); // -0 and 0 are equal numbers
    /// ```
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
    pub const fn to_bits(self) -> F::Bits {
        self.0
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

/// A wrapper that hashes, compares and orders codes, as unsigned integers, for use as a key: NaN
/// equals itself, `-0` and `+0` are two keys.
///
/// ```
/// use std::collections::{BTreeSet, HashSet};
/// use exmy::minifloat::{ByCode, E4M3};
///
/// let numbers = [0.0, -0.0, f32::NAN, f32::NAN].map(|x| ByCode(E4M3::from_f32(x)));
/// assert_eq!(HashSet::from(numbers).len(), 3);
/// assert_eq!(BTreeSet::from(numbers).len(), 3);
/// ```
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

impl<F: FloatFormat> PartialOrd for ByCode<F> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<F: FloatFormat> Ord for ByCode<F> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.0.cmp(&other.0.0)
    }
}

impl<F: FloatFormat> fmt::Debug for ByCode<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ByCode").field(&self.0).finish()
    }
}

impl<F: FloatFormat> Hash for ByCode<F> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.0.hash(state);
    }
}
