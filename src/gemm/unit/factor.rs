//! Operands and terms as matrix units see them: a significand with its hidden bit, and an exponent
//! that is not renormalized.

use crate::format::{Format, Value};

/// What kind of number an operand is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum FactorClass {
    /// Zero or a number.
    #[default]
    Finite,
    /// Infinity.
    Infinite,
    /// Not a number.
    Nan,
}

/// `(-1)^negative * significand * 2^(exponent - digits)`.
///
/// The exponent is that of the code. A subnormal number has the lowest exponent of its format and a
/// significand below `2^digits`. A product has the sum of two exponents and a significand below
/// four units. It is this exponent, not the leading bit's, that aligns a term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Factor {
    /// What kind of number it is.
    pub class: FactorClass,
    /// Whether the sign is minus.
    pub negative: bool,
    /// The exponent of the place before the binary point.
    pub exponent: i32,
    /// Places behind the binary point.
    pub digits: u32,
    /// The digits as an integer; 0 is zero.
    pub significand: u64,
}

impl Factor {
    /// Positive zero.
    pub const ZERO: Self = Self {
        class: FactorClass::Finite,
        negative: false,
        exponent: 0,
        digits: 0,
        significand: 0,
    };

    /// Not a number.
    pub const NAN: Self = Self { class: FactorClass::Nan, ..Self::ZERO };

    /// The operand that a code stands for, with [`Format::man_bits`] digits.
    #[inline]
    pub const fn new(format: Format, code: u64) -> Self {
        let digits = format.man_bits();
        match format.decode(code) {
            Value::Nan { negative } => Self { negative, ..Self::NAN },
            Value::Infinite { negative } => {
                Self { class: FactorClass::Infinite, negative, ..Self::ZERO }
            }
            Value::Finite { negative, significand, exponent } => Self {
                class: FactorClass::Finite,
                negative,
                exponent: exponent + digits as i32,
                digits,
                significand,
            },
        }
    }

    /// The number itself.
    pub const fn value(self) -> Value {
        match self.class {
            FactorClass::Nan => Value::Nan { negative: self.negative },
            FactorClass::Infinite => Value::Infinite { negative: self.negative },
            FactorClass::Finite => Value::Finite {
                negative: self.negative,
                significand: self.significand,
                exponent: self.exponent - self.digits as i32,
            },
        }
    }

    /// Whether this is zero of either sign.
    #[inline]
    pub const fn is_zero(&self) -> bool {
        matches!(self.class, FactorClass::Finite) && self.significand == 0
    }

    /// Whether it is a number whose magnitude is `2^limit` or more.
    pub(super) const fn reaches(&self, limit: i32) -> bool {
        matches!(self.class, FactorClass::Finite)
            && self.significand != 0
            && self.significand.ilog2() as i32 + self.exponent - self.digits as i32 >= limit
    }

    /// The exact product; infinity times zero is NaN.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::gemm::unit::{FactorClass, Factor};
    ///
    /// // 1.5 * 1.5 is 2.25, but its exponent stays 0.
    /// let x = Factor::new(Format::E5M2, 0x3E);
    /// assert_eq!((x.times(x).exponent, x.times(x).significand), (0, 0b10_0100));
    /// let infinity = Factor::new(Format::E5M2, 0x7C);
    /// assert_eq!(infinity.times(Factor::ZERO).class, FactorClass::Nan);
    /// ```
    ///
    /// The significands must have at most 64 bits together: formats up to binary32, or one of 53
    /// bits with one of 11.
    #[inline]
    #[must_use]
    pub const fn times(self, other: Self) -> Self {
        let class = match (self.class, other.class) {
            (FactorClass::Finite, FactorClass::Finite) => FactorClass::Finite,
            (FactorClass::Nan, _) | (_, FactorClass::Nan) => FactorClass::Nan,
            _ if self.is_zero() || other.is_zero() => FactorClass::Nan,
            _ => FactorClass::Infinite,
        };
        Self {
            class,
            negative: self.negative != other.negative,
            exponent: self.exponent + other.exponent,
            digits: self.digits + other.digits,
            significand: self.significand * other.significand,
        }
    }

    /// The same number with a significand in `[1, 2)` where it was in `[2, 4)`.
    #[must_use]
    pub(super) const fn normalized(self) -> Self {
        let carry = self.significand >> self.digits >= 2;
        let by = carry as u32;
        Self { exponent: self.exponent + by as i32, digits: self.digits + by, ..self }
    }

    /// The number as binary16 has it, where subnormal numbers of the 8-bit formats are normal.
    #[must_use]
    pub(super) const fn in_binary16(self) -> Self {
        if self.significand == 0 {
            return self;
        }
        let below = self.digits as i32 - self.significand.ilog2() as i32;
        let spare = self.exponent - Format::F16.emin();
        let lift = if below < spare { below } else { spare };
        if lift <= 0 {
            return self;
        }
        Self { exponent: self.exponent - lift, significand: self.significand << lift, ..self }
    }

    /// The product with a power-of-two scale: only the exponent moves.
    #[must_use]
    pub(super) const fn shifted_by(self, scale: Self) -> Self {
        if matches!(scale.class, FactorClass::Nan) {
            return Self::NAN;
        }
        Self { exponent: self.exponent + scale.exponent, ..self }
    }
}
