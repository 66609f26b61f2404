//! Everything a standard or a device decides about a result besides its format: [`Rules`].
//!
//! [`Rounding`] and [`Overflow`] are the two choices everybody makes. The others are tininess,
//! flushing of small numbers, and what a NaN, a sign or a zero becomes where the target has none.
//! Another says which table of special cases arithmetic follows. Their defaults are IEEE 754's. A
//! [`Profile`](super::Profile) sets them as a standard, library or device does.

use super::{Overflow, Rounding};

/// When a result counts as tiny, for the underflow flag (IEEE 754-2019, 7.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Tininess {
    /// Below the smallest normal value even after rounding to the format's precision with an
    /// unbounded exponent range (x86, RISC-V).
    #[default]
    After,
    /// The exact number is below the smallest normal value (Arm).
    Before,
}

/// What becomes of results below the smallest normal value, `minN`.
///
/// The three flushing policies differ just below `minN`. A flushed number keeps its sign where
/// negative zero exists, and sets [`Flags::UNDERFLOW`](super::Flags::UNDERFLOW) and
/// [`Flags::INEXACT`](super::Flags::INEXACT). Formats without a zero or without normal numbers are
/// not flushed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Flush {
    /// They become subnormal numbers, if the format has them.
    #[default]
    None,
    /// Zero if the exact number is below `minN` in magnitude (microxcaling
    /// `allow_denorm=False`).
    Input,
    /// Rounded to zero or `minN` as if nothing lay between (CPFloat's rounding without
    /// subnormals).
    Candidates,
    /// Rounded as usual, then zero if below `minN`: a number just below may round up to `minN`
    /// and survive.
    Output,
}

/// How an operation reads subnormal operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Operands {
    /// As the numbers they are.
    #[default]
    Exact,
    /// As zero of the same sign ("denormals are zero").
    Zero,
    /// As positive zero (the input flush of AMD CDNA2 in MMA-Sim).
    PositiveZero,
    /// Exactly, but numbers below binary32's smallest normal one, of whatever format, are rounded
    /// away from zero under every mode: what ml_dtypes and PyTorch do on the way to E8M0.
    Away,
}

/// What a conversion does with the sign of its operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SignRule {
    /// Keeps it.
    #[default]
    Keep,
    /// Drops it: the conversions of CUDA and PyTorch to E8M0.
    Magnitude,
    /// Negative numbers and negative zero become positive zero; NaN stays NaN (PTX `.relu`).
    Relu,
}

/// Which NaN code a format's NaN results have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum NanCode {
    /// [`Format::nan_code`](crate::format::Format::nan_code): of several, the one with only the
    /// quiet bit set (ml_dtypes, IEEE 754, RISC-V for binary formats).
    #[default]
    Quiet,
    /// The one with all bits of the magnitude set (NVIDIA; RISC-V for E5M2).
    AllOnes,
    /// The one of this magnitude, sign bit not counted; [`Quiet`](Self::Quiet) if that is no NaN
    /// of the format.
    Magnitude(u64),
}

/// What becomes of a NaN operand's payload between formats that have one (the IEEE-like ones).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Payload {
    /// Forgotten: the result is the canonical NaN.
    #[default]
    Drop,
    /// Its top bits are kept and the quiet bit is set.
    Keep,
    /// Its top bits are kept and nothing else is done, so that a NaN may become an infinity: PTX
    /// `cvt.rna.tf32.f32` as assembled for Hopper.
    Truncate,
}

/// What a NaN becomes where the target has none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AbsentNan {
    /// The largest positive value (`cuda_fp4.hpp`, `cuda_fp6.hpp`).
    #[default]
    Max,
    /// The largest value, with the NaN's sign (crate `minifloat`).
    SignedMax,
    /// Zero of the *other* sign (ml_dtypes).
    OppositeZero,
}

/// What zero becomes where the target has none (E8M0).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AbsentZero {
    /// The smallest value under saturating policies, else NaN.
    #[default]
    ByOverflow,
    /// The smallest value.
    Smallest,
}

/// The rules of NaN: [`CANONICAL`](Self::CANONICAL), changed by its methods.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct NanRules {
    /// The code of a NaN result without a payload.
    pub code: NanCode,
    /// Whether a NaN operand's sign goes to the result, where NaN has a sign.
    pub keep_sign: bool,
    /// Whether the top bit of a NaN operand's code is its sign even in formats whose NaN has none:
    /// 0x80 of the FNUZ formats is then negative (ml_dtypes).
    pub top_bit_is_sign: bool,
    /// What becomes of a NaN operand's payload.
    pub payload: Payload,
    /// Whether a NaN made by an invalid operation is negative, where NaN has a sign (x86).
    pub made_negative: bool,
    /// What a NaN becomes where the target has none.
    pub absent: AbsentNan,
}

impl NanRules {
    /// Canonical NaN, its sign kept: what the simple conversions of this crate do.
    pub const CANONICAL: Self = Self {
        code: NanCode::Quiet,
        keep_sign: true,
        top_bit_is_sign: false,
        payload: Payload::Drop,
        made_negative: false,
        absent: AbsentNan::Max,
    };

    /// The same with another code of NaN results.
    #[must_use]
    pub const fn with_code(self, code: NanCode) -> Self {
        Self { code, ..self }
    }

    /// The same, a NaN operand's sign going to the result or not.
    #[must_use]
    pub const fn with_keep_sign(self, keep_sign: bool) -> Self {
        Self { keep_sign, ..self }
    }

    /// The same, the top bit of NaN codes being a sign in every format or not.
    #[must_use]
    pub const fn with_top_bit_is_sign(self, top_bit_is_sign: bool) -> Self {
        Self { top_bit_is_sign, ..self }
    }

    /// The same with another fate of payloads.
    #[must_use]
    pub const fn with_payload(self, payload: Payload) -> Self {
        Self { payload, ..self }
    }

    /// The same, NaN of invalid operations being negative or not.
    #[must_use]
    pub const fn with_made_negative(self, made_negative: bool) -> Self {
        Self { made_negative, ..self }
    }

    /// The same with another stand-in where the target has no NaN.
    #[must_use]
    pub const fn with_absent(self, absent: AbsentNan) -> Self {
        Self { absent, ..self }
    }
}

/// Which table of special cases arithmetic follows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Standard {
    /// IEEE 754-2019: `x / 0` is infinite, `-0` exists.
    #[default]
    Ieee754,
    /// IEEE P3109 Interim Report 4.0: `x / 0` is NaN, there is one zero.
    P3109,
}

/// How an exact result becomes a code: one value for every choice besides the format.
///
/// Rules may be added, so values are made of others by methods:
///
/// ```
/// use exmy::format::Format;
/// use exmy::round::{Flush, Profile, Rounding, Rules};
///
/// let rules = Profile::OcpSat.rules(Format::E4M3FN).with_rounding(Rounding::TowardZero);
/// let flushed = rules.with_flush(Flush::Output);
/// assert_ne!(rules, flushed);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Rules {
    /// Which of two neighbours a result is.
    pub rounding: Rounding,
    /// What becomes of results out of range.
    pub overflow: Overflow,
    /// When a result counts as tiny.
    pub tininess: Tininess,
    /// What becomes of results below the smallest normal value.
    pub flush: Flush,
    /// How subnormal operands are read.
    pub operands: Operands,
    /// What conversions do with the sign.
    pub sign: SignRule,
    /// What becomes of NaN.
    pub nan: NanRules,
    /// What zero becomes where the target has none.
    pub absent_zero: AbsentZero,
    /// Which table of special cases arithmetic follows.
    pub standard: Standard,
}

impl Rules {
    /// To nearest even, natural overflow, subnormals kept, canonical NaN, IEEE 754's tables.
    pub const DEFAULT: Self = Self {
        rounding: Rounding::TiesToEven,
        overflow: Overflow::None,
        tininess: Tininess::After,
        flush: Flush::None,
        operands: Operands::Exact,
        sign: SignRule::Keep,
        nan: NanRules::CANONICAL,
        absent_zero: AbsentZero::ByOverflow,
        standard: Standard::Ieee754,
    };

    /// As [`DEFAULT`](Self::DEFAULT), and what is too large becomes the largest value: 448 in E4M3, which
    /// has no infinity, and 57344 in E5M2, which has one.
    pub const SATURATING: Self = Self::DEFAULT.with_overflow(Overflow::Finite);

    /// The same with another rounding mode.
    ///
    /// ```
    /// use exmy::round::{Overflow, Rounding, Rules, Tininess};
    ///
    /// let rules = Rules::DEFAULT.with_rounding(Rounding::TowardZero).with_overflow(Overflow::Nan);
    /// assert_eq!((rules.rounding, rules.overflow), (Rounding::TowardZero, Overflow::Nan));
    /// assert_eq!(rules.tininess, Tininess::After);
    /// assert_ne!(rules.with_tininess(Tininess::Before), rules);
    /// ```
    #[must_use]
    pub const fn with_rounding(self, rounding: Rounding) -> Self {
        Self { rounding, ..self }
    }

    /// The same with another overflow policy.
    #[must_use]
    pub const fn with_overflow(self, overflow: Overflow) -> Self {
        Self { overflow, ..self }
    }

    /// The same with another notion of tininess.
    #[must_use]
    pub const fn with_tininess(self, tininess: Tininess) -> Self {
        Self { tininess, ..self }
    }

    /// The same with other flushing of small results.
    #[must_use]
    pub const fn with_flush(self, flush: Flush) -> Self {
        Self { flush, ..self }
    }

    /// The same with another reading of subnormal operands.
    #[must_use]
    pub const fn with_operands(self, operands: Operands) -> Self {
        Self { operands, ..self }
    }

    /// The same with another rule of signs.
    #[must_use]
    pub const fn with_sign(self, sign: SignRule) -> Self {
        Self { sign, ..self }
    }

    /// The same with other rules of NaN.
    #[must_use]
    pub const fn with_nan(self, nan: NanRules) -> Self {
        Self { nan, ..self }
    }

    /// The same with another stand-in where the target has no zero.
    #[must_use]
    pub const fn with_absent_zero(self, absent_zero: AbsentZero) -> Self {
        Self { absent_zero, ..self }
    }

    /// The same with the special cases of another standard.
    #[must_use]
    pub const fn with_standard(self, standard: Standard) -> Self {
        Self { standard, ..self }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::DEFAULT
    }
}
