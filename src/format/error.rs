//! Why a described format cannot exist, in words for the person who described it.

use core::fmt;

/// Why [`FormatBuilder::build`](super::FormatBuilder::build) refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FormatError {
    /// An exponent or significand field beyond what the crate carries.
    FieldTooWide {
        /// Exponent bits asked for.
        exp_bits: u32,
        /// Trailing significand bits asked for.
        man_bits: u32,
    },
    /// A code of more than 64 bits.
    TooManyBits {
        /// Bits of a code.
        bits: u32,
    },
    /// IEEE conventions need an exponent to mark the specials and a bit in which NaN differs from infinity.
    NoRoomForNan {
        /// Exponent bits asked for.
        exp_bits: u32,
        /// Trailing significand bits asked for.
        man_bits: u32,
    },
    /// FNUZ puts its NaN on the sign bit.
    FnuzNeedsSign,
    /// A format whose NaN takes the place of negative zero was asked to have no zero.
    NanNeedsZero,
    /// A negative zero where the format has no code for it.
    NoRoomForNegativeZero,
    /// Subnormals without a zero.
    SubnormalsNeedZero,
    /// Two's complement with an exponent, special values or without zero.
    TwosComplementIsFixedPoint,
    /// A bias beyond [`Format::BIAS_LIMIT`](super::Format::BIAS_LIMIT).
    BiasOutOfRange {
        /// The bias asked for.
        bias: i32,
    },
    /// The special values leave no finite value other than zero.
    NothingButZero {
        /// Exponent bits asked for.
        exp_bits: u32,
        /// Trailing significand bits asked for.
        man_bits: u32,
    },
    /// Width and precision outside the P3109 family.
    NotP3109 {
        /// Width asked for.
        k: u32,
        /// Precision asked for.
        p: u32,
        /// Whether a signed format was asked for.
        signed: bool,
    },
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::FieldTooWide { exp_bits, man_bits } => write!(
                f,
                "{exp_bits} exponent and {man_bits} significand bits: at most 16 and 52 are possible, \
                 and a code of 64 bits"
            ),
            Self::TooManyBits { bits } => {
                write!(
                    f,
                    "a code of {bits} bits: at most 64 are possible, of sign, exponent and \
                     significand together"
                )
            }
            Self::NoRoomForNan { exp_bits, man_bits } => write!(
                f,
                "{exp_bits} exponent and {man_bits} significand bits leave no room for IEEE's \
                 infinity and NaN: each must be at least 1, or the specials fn, fnuz or finite"
            ),
            Self::FnuzNeedsSign => f.write_str(
                "fnuz keeps its NaN on the sign bit: an unsigned format can be fn or finite",
            ),
            Self::NanNeedsZero => f.write_str(
                "in fnuz and signed P3109 formats NaN takes the place of negative zero: \
                 a format without zero can be ieee, fn or finite",
            ),
            Self::NoRoomForNegativeZero => f.write_str(
                "a negative zero needs a sign bit, a zero, and a code that is not NaN's: signed \
                 ieee, fn and finite formats with a zero can have one",
            ),
            Self::SubnormalsNeedZero => f.write_str(
                "subnormals without a zero: a format without zero has no subnormals either",
            ),
            Self::TwosComplementIsFixedPoint => f.write_str(
                "two's complement has no exponent field, a zero and no special values: \
                 0 exponent bits, finite, with zero and subnormals are possible",
            ),
            Self::BiasOutOfRange { bias } => write!(
                f,
                "bias {bias}: from -{limit} to {limit} is possible",
                limit = super::Format::BIAS_LIMIT
            ),
            Self::NothingButZero { exp_bits: 0, man_bits: 0 } => f.write_str(
                "no exponent and no significand bits hold nothing but zero: one bit would do",
            ),
            Self::NothingButZero { exp_bits, man_bits } => write!(
                f,
                "{exp_bits} exponent and {man_bits} significand bits hold nothing but zero and \
                 the special values: one more bit, or the specials finite, would do"
            ),
            Self::NotP3109 { k, p, signed } => write!(
                f,
                "P3109 has no {} format of {k} bits with precision {p}: the width is 3 to 64 here, the \
                 precision 1 to the width{}",
                if signed { "signed" } else { "unsigned" },
                if signed { " less 1" } else { "" }
            ),
        }
    }
}

impl core::error::Error for FormatError {}
