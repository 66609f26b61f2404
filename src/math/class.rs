//! What kind of thing a code is (IEEE 754-2019, 5.7.2; P3109 Interim Report 4.0, Class).

use core::fmt;

use super::Operand;
use crate::format::Value;

/// The ten classes of IEEE 754.
///
/// P3109 has eight: its NaN is [`QuietNan`](Self::QuietNan) and its zero
/// [`PositiveZero`](Self::PositiveZero).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// A NaN that is an error to compute with; only IEEE-like formats have it.
    SignalingNan,
    /// A NaN.
    QuietNan,
    /// Negative infinity.
    NegativeInfinity,
    /// A negative number of full precision.
    NegativeNormal,
    /// A negative number below the smallest normal magnitude.
    NegativeSubnormal,
    /// -0.
    NegativeZero,
    /// Zero.
    PositiveZero,
    /// A positive number below the smallest normal one.
    PositiveSubnormal,
    /// A positive number of full precision.
    PositiveNormal,
    /// Infinity.
    PositiveInfinity,
}

impl Class {
    /// All classes, as IEEE 754 lists them.
    pub const ALL: [Self; 10] = [
        Self::SignalingNan,
        Self::QuietNan,
        Self::NegativeInfinity,
        Self::NegativeNormal,
        Self::NegativeSubnormal,
        Self::NegativeZero,
        Self::PositiveZero,
        Self::PositiveSubnormal,
        Self::PositiveNormal,
        Self::PositiveInfinity,
    ];

    /// IEEE 754's name of the class, such as `negativeSubnormal`.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::Operand;
    ///
    /// assert_eq!(Operand::new(Format::E5M2, 0xFD).class().name(), "signalingNaN"); // without its sign
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::SignalingNan => "signalingNaN",
            Self::QuietNan => "quietNaN",
            Self::NegativeInfinity => "negativeInfinity",
            Self::NegativeNormal => "negativeNormal",
            Self::NegativeSubnormal => "negativeSubnormal",
            Self::NegativeZero => "negativeZero",
            Self::PositiveZero => "positiveZero",
            Self::PositiveSubnormal => "positiveSubnormal",
            Self::PositiveNormal => "positiveNormal",
            Self::PositiveInfinity => "positiveInfinity",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Operand {
    /// The class of the code. Two's complement formats have normal numbers only; without an
    /// exponent field all others are subnormal.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Class, Operand};
    ///
    /// let e2m1 = Operand::new(Format::E2M1, 0x9);
    /// assert_eq!(e2m1.class(), Class::NegativeSubnormal); // -0.5
    /// assert_eq!(Operand::new(Format::INT8, 0xFF).class(), Class::NegativeNormal); // -1/64, an integer
    /// let zero = Operand::new(Format::E4M3FNUZ, 0x00);
    /// assert!(zero.is_zero() && zero.is_finite() && !zero.is_normal() && !zero.is_sign_minus());
    /// let nan = Operand::new(Format::E4M3FNUZ, 0x80); // where -0 would be
    /// assert!(nan.is_nan() && !nan.is_sign_minus() && !nan.is_infinite());
    /// assert!(Operand::new(Format::E8M0, 0x7F).is_one() && !Operand::f32(-1.0).is_one());
    /// ```
    pub const fn class(self) -> Class {
        match self.value() {
            Value::Nan { .. } if self.is_signaling() => Class::SignalingNan,
            Value::Nan { .. } => Class::QuietNan,
            Value::Infinite { negative: true } => Class::NegativeInfinity,
            Value::Infinite { negative: false } => Class::PositiveInfinity,
            Value::Finite { negative: true, significand: 0, .. } => Class::NegativeZero,
            Value::Finite { negative: false, significand: 0, .. } => Class::PositiveZero,
            Value::Finite { negative, .. } => match (negative, self.is_subnormal()) {
                (true, true) => Class::NegativeSubnormal,
                (true, false) => Class::NegativeNormal,
                (false, true) => Class::PositiveSubnormal,
                (false, false) => Class::PositiveNormal,
            },
        }
    }

    /// Whether this is NaN.
    #[inline]
    pub const fn is_nan(self) -> bool {
        self.value().is_nan()
    }

    /// Whether this is an infinity.
    #[inline]
    pub const fn is_infinite(self) -> bool {
        self.value().is_infinite()
    }

    /// Whether this is a number.
    #[inline]
    pub const fn is_finite(self) -> bool {
        self.value().is_finite()
    }

    /// Whether this is a zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.value().is_zero()
    }

    /// Whether this is 1.
    #[inline]
    pub const fn is_one(self) -> bool {
        match self.value() {
            Value::Finite { negative: false, significand, exponent } => {
                exponent <= 0 && exponent > -64 && significand == 1 << -exponent
            }
            _ => false,
        }
    }

    /// Whether this is a number of full precision, neither zero nor subnormal.
    #[inline]
    pub const fn is_normal(self) -> bool {
        matches!(self.class(), Class::NegativeNormal | Class::PositiveNormal)
    }

    /// Whether the sign is minus, also of zero and of a NaN that has one.
    #[inline]
    pub const fn is_sign_minus(self) -> bool {
        self.value().is_sign_negative()
    }
}
