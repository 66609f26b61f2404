//! Operations on signs: [`neg`](Context::neg), [`abs`](Context::abs) and
//! [`copysign`](Context::copysign).
//!
//! IEEE 754-2019 (5.5.1) wants them to touch nothing but the sign bit, of NaN too, and to raise no
//! flags; P3109 (Interim Report 4.0) defines them by values, as everything else.

use super::{Context, Operand};
use crate::format::{Format, Sign, Specials, Value, low_bits};
use crate::round::{Flags, Rounded, Standard};

impl Context {
    /// `-x`.
    ///
    /// Under IEEE 754's rules and within one format the sign bit is flipped and no flag is raised.
    /// Formats without negative zero keep their zero and their NaN. Otherwise the value is
    /// converted; an unsigned format makes of a negative one what its overflow policy says.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::Rules;
    ///
    /// let neg = |format: Format, code| {
    ///     Context::new(format, Rules::DEFAULT).neg(Operand::new(format, code)).code
    /// };
    /// assert_eq!(neg(Format::E4M3FN, 0x7F), 0xFF); // NaN has a sign
    /// assert_eq!([0x00, 0x80].map(|code| neg(Format::E4M3FNUZ, code)), [0x00, 0x80]); // 0 and NaN have none
    /// assert_eq!(neg(Format::INT8, 0x80), 0x7F); // 2 is beyond the largest, 127/64
    /// let context = Context::new(Format::E4M3FN, Rules::DEFAULT);
    /// let minus_zero = Operand::new(Format::E4M3FN, 0x80);
    /// assert_eq!(context.abs(minus_zero).code, 0);
    /// assert_eq!(context.copysign(Operand::f32(2.0), minus_zero).code, 0xC0);
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add).
    pub const fn neg(&self, x: Operand) -> Rounded {
        self.with_sign(x, !x.value().is_sign_negative())
    }

    /// `|x|`; as [`neg`](Self::neg).
    ///
    /// # Panics
    /// As [`add`](Self::add).
    pub const fn abs(&self, x: Operand) -> Rounded {
        self.with_sign(x, false)
    }

    /// `x` with the sign of `sign`; as [`neg`](Self::neg). Under [`Standard::P3109`] the result is
    /// NaN if either is, for its NaN has no sign.
    ///
    /// # Panics
    /// As [`add`](Self::add).
    pub const fn copysign(&self, x: Operand, sign: Operand) -> Rounded {
        if matches!(self.rules.standard, Standard::P3109)
            && (x.value().is_nan() || sign.value().is_nan())
        {
            return self.pass_first_nan(&[x, sign]);
        }
        self.with_sign(x, sign.value().is_sign_negative())
    }

    const fn with_sign(&self, x: Operand, negative: bool) -> Rounded {
        if matches!(self.rules.standard, Standard::Ieee754)
            && same(self.to, x.format)
            && let Some(code) = sign_bit(x, negative)
        {
            return Rounded { code, flags: Flags::NONE };
        }
        let value = match self.read(x) {
            Value::Nan { .. } => return self.pass_nan(x, negative),
            Value::Infinite { .. } => Value::Infinite { negative },
            Value::Finite { significand, exponent, .. } => {
                Value::Finite { negative, significand, exponent }
            }
        };
        self.to.encode_by(value, &self.rules, self.word())
    }
}

/// The code with the given sign bit, where there is one; unchanged where a zero or a NaN has
/// none.
const fn sign_bit(x: Operand, negative: bool) -> Option<u64> {
    let Operand { format, code } = x;
    let bit = match format.sign() {
        Sign::Magnitude => 1 << (format.bits() - 1),
        Sign::Unsigned if !negative => 0,
        Sign::Unsigned | Sign::TwosComplement => return None,
    };
    let code = code & low_bits(format.bits());
    match x.value() {
        Value::Nan { .. } if !format.nan_has_sign() => Some(code),
        value if value.is_zero() && !format.has_negative_zero() => Some(code & !bit),
        _ if negative => Some(code | bit),
        _ => Some(code & !bit),
    }
}

/// Whether two formats are the same.
pub(super) const fn same(a: Format, b: Format) -> bool {
    let specials = match (a.specials(), b.specials()) {
        (Specials::P3109 { infinite: x }, Specials::P3109 { infinite: y }) => x == y,
        (x, y) => {
            matches!(x, Specials::Ieee) == matches!(y, Specials::Ieee)
                && matches!(x, Specials::Fn) == matches!(y, Specials::Fn)
                && matches!(x, Specials::Fnuz) == matches!(y, Specials::Fnuz)
                && matches!(x, Specials::Finite) == matches!(y, Specials::Finite)
        }
    };
    specials
        && a.exp_bits() == b.exp_bits()
        && a.man_bits() == b.man_bits()
        && a.bias() == b.bias()
        && a.is_signed() == b.is_signed()
        && matches!(a.sign(), Sign::TwosComplement) == matches!(b.sign(), Sign::TwosComplement)
        && a.has_zero() == b.has_zero()
        && a.has_subnormals() == b.has_subnormals()
        && a.has_negative_zero() == b.has_negative_zero()
}
