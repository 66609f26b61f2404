//! How an exact number becomes a code: rounding modes, overflow policies and the one core that
//! applies them.
//!
//! [`Format::round`](crate::format::Format::round) takes sign, integer, power of two and a sticky
//! bit, and returns a code with flags; it uses integers only. Every conversion of every format
//! ends there, so that nothing is rounded twice. The order of steps is that of IEEE P3109 (Interim
//! Report 4.0, 4.7.3 to 4.7.5). First round to precision with an *unbounded* upper exponent, then
//! compare with the largest value and apply the overflow policy.
//!
//! The modes follow IEEE 754-2019, P3109 and, for stochastic rounding with few bits, Fitzgibbon
//! and Felix (ARITH 2025).

#![forbid(unsafe_code)]

mod convert;
mod engine;
mod nan;
mod profile;
mod rules;
mod stochastic;

pub use profile::Profile;
pub use rules::{
    AbsentNan, AbsentZero, Flush, NanCode, NanRules, Operands, Payload, Rules, SignRule, Standard,
    Tininess,
};
pub use stochastic::StochasticVariant;

/// Which of the two neighbours of a number is its result.
///
/// Below, `v` in `0..1` is the number's distance from the lower neighbour (in magnitude) in units
/// of their gap, and a neighbour is odd or even as its *code* is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Rounding {
    /// Nearest, ties to even. The mode of hardware conversions.
    #[default]
    TiesToEven,
    /// Nearest, ties away from zero.
    TiesToAway,
    /// Nearest, ties toward zero.
    TiesToZero,
    /// Toward zero.
    TowardZero,
    /// Toward positive infinity.
    TowardPositive,
    /// Toward negative infinity.
    TowardNegative,
    /// Away from zero.
    AwayFromZero,
    /// To the odd neighbour unless exact; rounding its result again, to at least two bits less,
    /// equals rounding once (Boldo and Melquiond, IEEE TC 2008).
    ToOdd,
    /// Up in magnitude with a probability near `v`, decided by random bits from the caller.
    Stochastic {
        /// How `v` is cut to `bits` bits.
        variant: StochasticVariant,
        /// Number of random bits N, 1 to 32.
        bits: u8,
    },
}

impl Rounding {
    /// The modes that need no random bits.
    pub const DETERMINISTIC: [Self; 8] = [
        Self::TiesToEven,
        Self::TiesToAway,
        Self::TiesToZero,
        Self::TowardZero,
        Self::TowardPositive,
        Self::TowardNegative,
        Self::AwayFromZero,
        Self::ToOdd,
    ];
}

/// What becomes of a result beyond the largest finite value, and of infinities.
///
/// Nonzero negative results of an unsigned format count as out of range too. They become zero by the
/// saturating policies, and by [`None`](Self::None) under the modes that point to zero from below,
/// [`TowardZero`](Rounding::TowardZero) and [`TowardPositive`](Rounding::TowardPositive); else NaN.
/// Negative infinity becomes zero by the saturating policies, else NaN. Where there is no zero either, as in
/// E8M0, the smallest value stands for it by the saturating policies, and all else is NaN. A format without
/// NaN saturates wherever NaN is due.
///
/// ```
/// use exmy::format::Format;
/// use exmy::round::{Overflow, Rounding};
///
/// let of = |mode, overflow| Format::UE4M3.encode_f32(-1.0, mode, overflow, 0).code;
/// assert_eq!(of(Rounding::TiesToEven, Overflow::Finite), 0x00);
/// assert_eq!(of(Rounding::TiesToEven, Overflow::None), 0x7F); // NaN
/// assert_eq!(of(Rounding::TowardZero, Overflow::None), 0x00); // toward zero
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Overflow {
    /// The format's natural behaviour (P3109 `SatNone`). Modes that point inward give the largest
    /// value; otherwise infinity if there is one, else NaN in [`Fn`](crate::format::Specials::Fn)
    /// and [`Fnuz`](crate::format::Specials::Fnuz) formats (as ml_dtypes does), else the largest
    /// value. An infinity stays one, or becomes that NaN or largest value. Rounding to odd gives
    /// the largest value, except in P3109 formats where its code is even. Two's complement clamps to its full
    /// range.
    #[default]
    None,
    /// The largest value, of infinities too (P3109 `SatFinite`, PTX `.satfinite`, OFP8 "SAT").
    /// Two's complement clamps symmetrically, so that MX INT8 never holds -2.
    Finite,
    /// As [`Finite`](Self::Finite), but infinities stay where the format has them
    /// (P3109 `SatPropagate`).
    Propagate,
    /// NaN, of infinities too (OFP8 E4M3 without saturation). As wherever a NaN stands for a number,
    /// that is [`Flags::INVALID`] besides what else it is.
    Nan,
    /// Infinity under every mode, as of ml_dtypes' truncating conversions; without infinities as
    /// [`None`](Self::None) under [`Rounding::TiesToEven`].
    Infinity,
    /// ONNX Cast with `saturate=1`: as [`Finite`](Self::Finite), but infinities become NaN in FNUZ
    /// formats.
    Onnx,
}

impl Overflow {
    /// All policies.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Finite, Self::Propagate, Self::Nan, Self::Infinity, Self::Onnx];

    /// Whether finite results are clamped to the format's range under every mode.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::round::{Overflow, Rounding};
    ///
    /// let up = |overflow| Format::E5M2.encode_f32(1e6, Rounding::TowardPositive, overflow, 0).code;
    /// let down = |overflow| Format::E5M2.encode_f32(1e6, Rounding::TowardNegative, overflow, 0).code;
    /// assert!(Overflow::Finite.saturates() && up(Overflow::Finite) == 0x7B);
    /// assert!(!Overflow::None.saturates() && up(Overflow::None) == 0x7C); // infinity; but
    /// assert_eq!(down(Overflow::None), 0x7B); // a mode that points inward stops at the largest value
    /// ```
    pub const fn saturates(self) -> bool {
        matches!(self, Self::Finite | Self::Propagate | Self::Onnx)
    }
}

/// An exact real number: `(-1)^negative * significand * 2^exponent`, plus, if `sticky`, an unknown
/// part above 0 and below one unit of `2^exponent`, away from zero.
///
/// A result with a sticky part is right if the units are fine enough: `2^exponent` at most half the
/// spacing of the target's values there, or `2^-(N+1)` of it for N random bits. Keeping two bits
/// more than the target's precision (`N + 1` more) guarantees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exact {
    /// Whether the sign is minus.
    pub negative: bool,
    /// The integer factor; 0 without `sticky` is zero.
    pub significand: u128,
    /// The power of two.
    pub exponent: i32,
    /// Whether something less than one unit is left.
    pub sticky: bool,
}

/// A code and what happened on the way to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rounded {
    /// The code.
    pub code: u64,
    /// What happened.
    pub flags: Flags,
}

/// A set of events, as IEEE 754's exception flags, and saturation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(u8);

impl Flags {
    /// Nothing happened.
    pub const NONE: Self = Self(0);
    /// The result is not the exact number.
    pub const INEXACT: Self = Self(1);
    /// The number was below the smallest normal value, before or after rounding as [`Tininess`]
    /// says, and the result is inexact. A format without normal values, which
    /// has no exponent field or an IEEE-like one of a single bit, never sets it.
    pub const UNDERFLOW: Self = Self(2);
    /// The rounded number was above the largest finite value.
    pub const OVERFLOW: Self = Self(4);
    /// An infinite result of finite operands was exact: division by zero, logarithm of zero.
    pub const DIVIDE_BY_ZERO: Self = Self(8);
    /// There is no such value. An infinity or a negative number became NaN, a NaN had to become a
    /// number, an operation has no result, or an operand is a signaling NaN.
    pub const INVALID: Self = Self(16);
    /// The result is the end of the range in place of something beyond it. Not one of IEEE 754's.
    pub const SATURATED: Self = Self(32);

    /// Whether all flags of `other` are set.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::round::{Flags, Overflow, Rounding};
    ///
    /// let flags = Format::E4M3FN.encode_f32(1e6, Rounding::TiesToEven, Overflow::Finite, 0).flags;
    /// assert!(flags.contains(Flags::OVERFLOW.union(Flags::INEXACT)) && !flags.is_empty());
    /// assert_eq!((flags.bits(), flags.ieee().bits()), (1 | 4 | 32, 1 | 4)); // IEEE 754 has no "saturated"
    /// assert!(flags.contains(Flags::NONE)); // as every set contains the empty one
    /// ```
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether no flag is set.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The flags of either.
    #[inline]
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The five flags of IEEE 754, without [`SATURATED`](Self::SATURATED).
    #[inline]
    #[must_use]
    pub const fn ieee(self) -> Self {
        Self(self.0 & 31)
    }

    /// The flags as bits: inexact 1, underflow 2, overflow 4, divide by zero 8, invalid 16 (these
    /// five as in Berkeley TestFloat), saturated 32.
    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl core::ops::BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl core::ops::BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.union(other);
    }
}
