//! Quotients: [`div`](Context::div) and [`recip`](Context::recip).
//!
//! IEEE 754-2019, 5.4.1 and 7.3; P3109 (Interim Report 4.0) has no infinite quotient of finite
//! numbers and gives NaN for any division by zero.

use super::align::signed_zero;
use super::{Context, Operand};
use crate::format::Value;
use crate::round::{Exact, Flags, Rounded, Rounding, Standard};

impl Context {
    /// `a / b`, rounded once.
    ///
    /// `0 / 0` and infinity by infinity give NaN ([`Flags::INVALID`]). A finite number by zero is
    /// infinite and says [`Flags::DIVIDE_BY_ZERO`]; under [`Standard::P3109`] it is NaN, and so is
    /// infinity by zero.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::{Flags, Profile, Rules};
    ///
    /// let [one, zero] = [1.0, 0.0].map(Operand::f32);
    /// let context = Context::new(Format::E5M2, Rules::DEFAULT);
    /// let by_zero = context.div(one, zero);
    /// assert_eq!((by_zero.code, by_zero.flags), (0x7C, Flags::DIVIDE_BY_ZERO));
    /// assert_eq!(context.div(zero, zero).flags, Flags::INVALID);
    /// assert_eq!(context.recip(Operand::f32(3.0)).code, 0x35); // 0.3125, nearer than 0.375
    /// let p3109 = Context::new(Format::E5M2, Profile::P3109.rules(Format::E5M2));
    /// assert_eq!(p3109.div(one, zero).flags, Flags::INVALID); // it divides nothing by zero
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add).
    #[inline]
    pub const fn div(&self, a: Operand, b: Operand) -> Rounded {
        let (x, y) = (self.read(a), self.read(b));
        if x.is_nan() || y.is_nan() {
            return self.pass_first_nan(&[a, b]);
        }
        self.quotient(x, y)
    }

    /// `1 / x`, rounded once; as [`div`](Self::div) of 1, which `x`'s format need not have.
    ///
    /// # Panics
    /// As [`add`](Self::add).
    #[inline]
    pub const fn recip(&self, x: Operand) -> Rounded {
        let value = self.read(x);
        if value.is_nan() {
            return self.pass_first_nan(&[x]);
        }
        self.quotient(Value::Finite { negative: false, significand: 1, exponent: 0 }, value)
    }

    /// The quotient of two values that are not NaN.
    #[inline]
    const fn quotient(&self, a: Value, b: Value) -> Rounded {
        let negative = a.is_sign_negative() != b.is_sign_negative();
        match (a, b) {
            (
                Value::Finite { significand: x, exponent: i, .. },
                Value::Finite { significand: y, exponent: j, .. },
            ) if y != 0 => {
                if x == 0 {
                    return self.finish(signed_zero(negative));
                }
                self.finish(divide(negative, x, y, i - j, self.bits_needed()))
            }
            (Value::Finite { .. }, Value::Infinite { .. }) => self.finish(signed_zero(negative)),
            (Value::Infinite { .. }, Value::Infinite { .. }) => self.to.made_nan(&self.rules),
            _ if matches!(self.rules.standard, Standard::P3109) && b.is_zero() => {
                self.to.made_nan(&self.rules)
            }
            (Value::Infinite { .. }, _) => self.to.round_infinity(negative, &self.rules),
            _ if a.is_zero() => self.to.made_nan(&self.rules),
            _ => self.pole(negative),
        }
    }

    /// An infinite result of finite operands.
    pub(super) const fn pole(&self, negative: bool) -> Rounded {
        let Rounded { code, flags } = self.to.round_infinity(negative, &self.rules);
        Rounded { code, flags: flags.union(Flags::DIVIDE_BY_ZERO) }
    }

    /// Significant bits that a result with a sticky part must have: the precision, the random bits,
    /// and three for the round bit, a subnormal's lost place and the rest.
    #[inline]
    pub(super) const fn bits_needed(&self) -> u32 {
        let random = match self.rules.rounding {
            Rounding::Stochastic { bits, .. } => bits as u32,
            _ => 0,
        };
        self.to.precision() + random + 3
    }
}

/// `x / y * 2^exponent` of nonzero integers, to at least `bits` (at most 126) significant bits.
#[inline]
const fn divide(negative: bool, x: u64, y: u64, exponent: i32, bits: u32) -> Exact {
    let (top, bottom) = (x.leading_zeros(), y.leading_zeros());
    if bits <= bottom {
        // 64 bits by 64 - `bottom` leave `bottom` bits and more.
        let dividend = x << top;
        let quotient = dividend / y;
        let sticky = quotient * y != dividend;
        let exponent = exponent - top as i32;
        return Exact { negative, significand: quotient as u128, exponent, sticky };
    }
    // Dividend in 2^62..2^63, divisor in 2^63..2^64: each step gives 64 bits, the first one at
    // least 63 significant ones.
    let (dividend, divisor) = ((x << top >> 1) as u128, (y << bottom) as u128);
    let (first, rest) = ((dividend << 64) / divisor, (dividend << 64) % divisor);
    let exponent = exponent - top as i32 + 1 + bottom as i32 - 64;
    if bits <= 63 || rest == 0 {
        return Exact { negative, significand: first, exponent, sticky: rest != 0 };
    }
    let (second, rest) = ((rest << 64) / divisor, (rest << 64) % divisor);
    let significand = first << 64 | second;
    Exact { negative, significand, exponent: exponent - 64, sticky: rest != 0 }
}
