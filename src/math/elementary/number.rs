//! A finite operand as the elementary functions take it apart: its size, and its integer part and
//! fraction, exactly.

use core::cmp::Ordering;

use crate::format::Value;

/// A nonzero finite number: `(-1)^negative * significand * 2^exponent`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub(super) negative: bool,
    pub(super) significand: u64,
    pub(super) exponent: i32,
}

impl Number {
    /// The `t` with `2^(t-1) <= |self| < 2^t`.
    pub(super) const fn top(self) -> i32 {
        self.exponent + self.width() as i32
    }

    /// Bits of the significand.
    pub(super) const fn width(self) -> u32 {
        64 - self.significand.leading_zeros()
    }

    pub(super) const fn abs(self) -> Self {
        Self { negative: false, ..self }
    }

    /// Whether `|self| >= bound`.
    pub(super) const fn at_least(self, bound: u32) -> bool {
        match self.exponent {
            0.. => self.top() > 32 || self.significand << self.exponent >= bound as u64,
            -63..0 => self.significand >> -self.exponent >= bound as u64,
            _ => bound == 0,
        }
    }

    /// `|self| * 2^k` as integer and fraction, the latter in units of the power of two that comes
    /// with it; the integer modulo `2^64`.
    pub(super) const fn split(self, k: i32) -> (u64, u64, i32) {
        let exponent = self.exponent + k;
        match exponent {
            64.. => (0, 0, 0),
            0..64 => (self.significand << exponent, 0, 0),
            -63..0 => {
                let whole = self.significand >> -exponent;
                (whole, self.significand & ((1 << -exponent) - 1), exponent)
            }
            _ => (0, self.significand, exponent),
        }
    }
    /// The order of `|self|` and 1.
    pub(super) const fn compare_with_one(self) -> Ordering {
        match self.top() {
            1 if self.significand.is_power_of_two() => Ordering::Equal,
            1.. => Ordering::Greater,
            _ => Ordering::Less,
        }
    }

    /// The number of a finite value; softplus alone asks for that of a zero.
    pub(super) const fn of(value: Value) -> Self {
        match value {
            Value::Finite { negative, significand, exponent } if significand != 0 => {
                Self { negative, significand, exponent }
            }
            _ => Self { negative: false, significand: 0, exponent: 0 },
        }
    }
}
