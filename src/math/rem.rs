//! Remainders: [`rem`](Context::rem), IEEE 754-2019's (5.3.1), and [`fmod`](Context::fmod), C's.
//!
//! Both are exact: `x - n y` is a multiple of the finer of the two last places and smaller than
//! `y`. The quotient `n` may have two million bits; only its parity matters, so that the dividend
//! is reduced modulo `2 y`.

use super::align::exact;
use super::{Context, Operand};
use crate::format::Value;
use crate::round::{Exact, Rounded};

impl Context {
    /// `x - n y` with `n` the integer nearest to the exact `x / y`, the even one of two.
    ///
    /// A zero result has the sign of `x`. Infinite `x` or zero `y` give NaN
    /// ([`Flags::INVALID`](crate::round::Flags::INVALID)); `y` infinite gives `x`. The result is a
    /// value of the operands' format if they have the same; in another it is rounded once.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::{Flags, Rules};
    ///
    /// let context = Context::new(Format::F32, Rules::DEFAULT);
    /// let bits = |x: f32| u64::from(x.to_bits());
    /// let [x, y, zero] = [5.0, 3.0, 0.0].map(Operand::f32);
    /// assert_eq!((context.rem(x, y).code, context.fmod(x, y).code), (bits(-1.0), bits(2.0)));
    /// assert_eq!(context.rem(Operand::f32(-3.0), y).code, bits(-0.0));
    /// assert_eq!(context.fmod(x, zero).flags, Flags::INVALID);
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add).
    pub const fn rem(&self, x: Operand, y: Operand) -> Rounded {
        self.remainder(x, y, true)
    }

    /// `x - n y` with `n` the integer part of `x / y`: the `%` of floating-point numbers in Rust
    /// and C's `fmod`. Special cases are those of [`rem`](Self::rem).
    ///
    /// # Panics
    /// As [`add`](Self::add).
    pub const fn fmod(&self, x: Operand, y: Operand) -> Rounded {
        self.remainder(x, y, false)
    }

    const fn remainder(&self, x: Operand, y: Operand, nearest: bool) -> Rounded {
        let (a, b) = (self.read(x), self.read(y));
        match (a, b) {
            (Value::Nan { .. }, _) | (_, Value::Nan { .. }) => self.pass_first_nan(&[x, y]),
            (Value::Infinite { .. }, _) | (_, Value::Finite { significand: 0, .. }) => {
                self.to.made_nan(&self.rules)
            }
            (
                Value::Finite { negative, significand: x, exponent: i },
                Value::Finite { significand: y, exponent: j, .. },
            ) if x != 0 => self.finish(reduce(negative, x, i, y, j, nearest)),
            (Value::Finite { negative, significand, exponent }, _) => {
                self.finish(exact(negative, significand, exponent))
            }
        }
    }
}

const fn reduce(negative: bool, x: u64, i: i32, y: u64, j: i32, nearest: bool) -> Exact {
    let (dividend, divisor, exponent) = if i >= j {
        let modulus = 2 * y as u128;
        (x as u128 % modulus * power(i.abs_diff(j), modulus) % modulus, y as u128, j)
    } else {
        let gap = j.abs_diff(i);
        if gap > 64 {
            // At most 53 bits against at least 65: the quotient is below one half.
            return exact(negative, x, i);
        }
        (x as u128, (y as u128) << gap, i)
    };
    let odd = dividend / divisor % 2 == 1;
    let rest = dividend % divisor;
    let up = nearest && (2 * rest > divisor || (2 * rest == divisor && odd));
    // A zero keeps the sign of x.
    let significand = if up { divisor - rest } else { rest };
    Exact { negative: negative != up, significand, exponent, sticky: false }
}

/// `2^exponent` modulo a number of at most 64 bits.
const fn power(exponent: u32, modulus: u128) -> u128 {
    if exponent < 127 {
        return (1 << exponent) % modulus;
    }
    let half = power(exponent / 2, modulus);
    half * half % modulus * (1 << (exponent % 2)) % modulus
}
