//! From one format to another: the operation behind every other, for it reads an operand and
//! rounds a result by all [`Rules`](crate::round::Rules).

use super::{Context, Operand};
use crate::format::{Sign, Value};
use crate::round::{Flags, Operands, Rounded, Rounding, SignRule};

impl Operand {
    /// Whether this is a nonzero number below its format's smallest normal one.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::Operand;
    ///
    /// assert!(Operand::new(Format::E2M1, 0x1).is_subnormal()); // 0.5
    /// assert!(!Operand::new(Format::E2M1, 0x8).is_subnormal()); // -0
    /// assert!(!Operand::new(Format::INT8, 0x1).is_subnormal());
    /// ```
    #[inline]
    pub const fn is_subnormal(self) -> bool {
        let Value::Finite { significand, .. } = self.value() else { return false };
        let magnitude = self.code & self.format.magnitude_mask();
        match self.format.min_normal_code() {
            _ if matches!(self.format.sign(), Sign::TwosComplement) => false,
            Some(normal) => significand != 0 && magnitude < normal,
            None => significand != 0,
        }
    }
}

impl Context {
    /// The operand in this context's format.
    ///
    /// A signaling NaN sets [`Flags::INVALID`]; what becomes of NaN, of the sign and of subnormal
    /// operands, the rules say.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::{Flags, Profile, Rules};
    ///
    /// let x = Operand::f32(-1.5);
    /// assert_eq!(Context::new(Format::E2M1, Rules::DEFAULT).convert(x).code, 0xB);
    /// let relu = Profile::CudaSatfiniteRelu.rules(Format::E2M1);
    /// assert_eq!(Context::new(Format::E2M1, relu).convert(x).code, 0x0);
    /// let signaling = Operand::new(Format::F32, 0x7F80_0001);
    /// assert_eq!(Context::new(Format::F16, Rules::DEFAULT).convert(signaling).flags, Flags::INVALID);
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add).
    #[inline]
    pub const fn convert(&self, x: Operand) -> Rounded {
        let value = self.read(x);
        if let Value::Nan { negative } = value {
            return self.pass_nan(x, negative);
        }
        let value = match self.rules.sign {
            SignRule::Keep => value,
            SignRule::Magnitude => magnitude(value),
            SignRule::Relu => {
                if value.is_sign_negative() {
                    Value::ZERO
                } else {
                    value
                }
            }
        };
        let away = matches!(self.rules.operands, Operands::Away) && is_subnormal_in_f32(value);
        let rules =
            if away { self.rules.with_rounding(Rounding::AwayFromZero) } else { self.rules };
        self.to.encode_by(value, &rules, self.word())
    }

    /// The value of an operand by the rule for subnormal ones.
    #[inline]
    pub(super) const fn read(&self, x: Operand) -> Value {
        let value = x.value();
        match self.rules.operands {
            Operands::Zero if x.is_subnormal() => zero(value.is_sign_negative()),
            Operands::PositiveZero if x.is_subnormal() => Value::ZERO,
            _ => value,
        }
    }

    /// The result of a NaN operand.
    pub(super) const fn pass_nan(&self, x: Operand, negative: bool) -> Rounded {
        let payload = x.format.nan_payload(x.code);
        let top = x.code >> (x.format.bits() - 1) & 1 == 1;
        let negative = negative || (top && self.rules.nan.top_bit_is_sign && x.format.is_signed());
        let Rounded { code, flags } = self.to.round_nan(negative, payload, &self.rules);
        let flags = if x.is_signaling() { flags.union(Flags::INVALID) } else { flags };
        Rounded { code, flags }
    }
}

/// Whether a number is not zero and below binary32's smallest normal one.
const fn is_subnormal_in_f32(value: Value) -> bool {
    match value {
        Value::Finite { significand, exponent, .. } => {
            significand != 0 && (exponent as i64 + significand.ilog2() as i64) < -126
        }
        _ => false,
    }
}

pub(super) const fn zero(negative: bool) -> Value {
    Value::Finite { negative, significand: 0, exponent: 0 }
}

pub(super) const fn magnitude(value: Value) -> Value {
    match value {
        Value::Nan { .. } => Value::Nan { negative: false },
        Value::Infinite { .. } => Value::Infinite { negative: false },
        Value::Finite { significand, exponent, .. } => {
            Value::Finite { negative: false, significand, exponent }
        }
    }
}
