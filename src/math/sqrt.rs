//! Roots: [`sqrt`](Context::sqrt), [`rsqrt`](Context::rsqrt) and [`hypot`](Context::hypot).
//!
//! IEEE 754-2019, 5.4.1 and 9.2.1; P3109 (Interim Report 4.0) gives NaN for the reciprocal root
//! of zero. The root of an integer of 252 bits comes from that of its upper half and one division
//! (Zimmermann, "Karatsuba Square Root", INRIA RR-3805).

use super::align::signed_zero;
use super::{Context, Operand};
use crate::format::Value;
use crate::round::{Exact, Rounded, Standard};

/// Bits of one half of a radicand, and of the root of both halves.
const HALF: u32 = 126;

impl Context {
    /// The square root, rounded once. That of -0 is -0; a negative number gives NaN
    /// ([`Flags::INVALID`](crate::round::Flags::INVALID)).
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::{Flags, Rules};
    ///
    /// let context = Context::new(Format::E5M2, Rules::DEFAULT);
    /// let [four, minus_zero, minus] = [4.0, -0.0, -1.0].map(Operand::f32);
    /// assert_eq!((context.sqrt(four).code, context.rsqrt(four).code), (0x40, 0x38));
    /// assert_eq!((context.sqrt(minus_zero).code, context.rsqrt(minus_zero).code), (0x80, 0xFC)); // -0, -inf
    /// assert_eq!(context.sqrt(minus).flags, Flags::INVALID);
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add).
    #[inline]
    pub const fn sqrt(&self, x: Operand) -> Rounded {
        match self.read(x) {
            Value::Nan { .. } => self.pass_first_nan(&[x]),
            Value::Finite { negative, significand: 0, .. } => self.finish(signed_zero(negative)),
            Value::Infinite { negative: true } | Value::Finite { negative: true, .. } => {
                self.to.made_nan(&self.rules)
            }
            Value::Infinite { .. } => self.to.round_infinity(false, &self.rules),
            Value::Finite { significand, exponent, .. } => {
                let radicand = Radicand::of(significand as u128, exponent);
                self.finish(radicand.root(self.bits_needed()))
            }
        }
    }

    /// The reciprocal of the square root, rounded once. Of ±0 it is ±infinity with
    /// [`Flags::DIVIDE_BY_ZERO`](crate::round::Flags::DIVIDE_BY_ZERO), or NaN under [`Standard::P3109`]; a
    /// negative number gives NaN.
    ///
    /// # Panics
    /// As [`add`](Self::add).
    pub const fn rsqrt(&self, x: Operand) -> Rounded {
        match self.read(x) {
            Value::Nan { .. } => self.pass_first_nan(&[x]),
            Value::Finite { negative, significand: 0, .. } => match self.rules.standard {
                Standard::Ieee754 => self.pole(negative),
                Standard::P3109 => self.to.made_nan(&self.rules),
            },
            Value::Infinite { negative: true } | Value::Finite { negative: true, .. } => {
                self.to.made_nan(&self.rules)
            }
            Value::Infinite { .. } => self.finish(signed_zero(false)),
            Value::Finite { significand, exponent, .. } => {
                let radicand = if significand.is_power_of_two() {
                    Radicand::of(1, -(exponent + significand.trailing_zeros() as i32))
                } else {
                    Radicand::reciprocal(significand, exponent)
                };
                self.finish(radicand.root(self.bits_needed()))
            }
        }
    }

    /// `sqrt(a^2 + b^2)`, rounded once. An infinite operand gives infinity even if the other is a
    /// quiet NaN; under [`Standard::P3109`] NaN goes first.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::Rules;
    ///
    /// let context = Context::new(Format::E4M3FN, Rules::DEFAULT);
    /// let length = context.hypot(Operand::f32(3.0), Operand::f32(-4.0));
    /// assert_eq!(Format::E4M3FN.to_f32(length.code), 5.0);
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add).
    pub const fn hypot(&self, a: Operand, b: Operand) -> Rounded {
        let (x, y) = (self.read(a), self.read(b));
        let infinite = x.is_infinite() || y.is_infinite();
        if x.is_nan() || y.is_nan() {
            let quiet = !a.is_signaling() && !b.is_signaling();
            return if infinite && quiet && matches!(self.rules.standard, Standard::Ieee754) {
                self.to.round_infinity(false, &self.rules)
            } else {
                self.pass_first_nan(&[a, b])
            };
        }
        match (x, y) {
            (
                Value::Finite { significand: x, exponent: i, .. },
                Value::Finite { significand: y, exponent: j, .. },
            ) => self.finish(hypotenuse(x, i, y, j, self.bits_needed())),
            _ => self.to.round_infinity(false, &self.rules),
        }
    }
}

const fn hypotenuse(x: u64, i: i32, y: u64, j: i32, bits: u32) -> Exact {
    if x == 0 || y == 0 {
        let (significand, exponent) = if y == 0 { (x, i) } else { (y, j) };
        return Exact {
            negative: false,
            significand: significand as u128,
            exponent,
            sticky: false,
        };
    }
    let (x, i, y, j) = if i >= j { (x, i, y, j) } else { (y, j, x, i) };
    let square = x as u128 * x as u128;
    let gap = 2 * (i - j) as u32;
    if gap > 250 - (128 - square.leading_zeros()) {
        // More than 2^140 times the other's square: the result is just above `x`.
        let shift = x.leading_zeros() + 62;
        let significand = (x as u128) << shift;
        return Exact { negative: false, significand, exponent: i - shift as i32, sticky: true };
    }
    let (high, low) = shifted_left(square, gap);
    let other = y as u128 * y as u128;
    let (low, carry) = low.overflowing_add(other);
    Radicand::normalized(high + carry as u128, low, 2 * j).root(bits)
}

/// `value * 2^shift` as 256 bits, for `shift` below 256.
const fn shifted_left(value: u128, shift: u32) -> (u128, u128) {
    match shift {
        0 => (0, value),
        1..=127 => (value >> (128 - shift), value << shift),
        _ => (value << (shift - 128), 0),
    }
}

/// `(high * 2^126 + low) * 2^exponent`, of 251 or 252 bits, with an even exponent.
#[derive(Clone, Copy)]
struct Radicand {
    high: u128,
    low: u128,
    exponent: i32,
    sticky: bool,
}

impl Radicand {
    /// A nonzero integer of at most 125 bits times a power of two.
    #[inline]
    const fn of(significand: u128, exponent: i32) -> Self {
        let odd = exponent & 1;
        let (significand, exponent) = (significand << odd, exponent - odd);
        let shift = (significand.leading_zeros() - 2) & !1;
        let high = significand << shift;
        Self { high, low: 0, exponent: exponent - shift as i32 - HALF as i32, sticky: false }
    }

    /// A nonzero integer of at most 251 bits in two words of 128, times an even power of two.
    const fn normalized(high: u128, low: u128, exponent: i32) -> Self {
        let zeros = if high == 0 { 128 + low.leading_zeros() } else { high.leading_zeros() };
        let shift = (zeros - 4) & !1;
        let (carried, low) = if shift >= 128 { (low, 0) } else { shifted_left(low, shift) };
        let shift_high = if shift >= 128 { shift - 128 } else { shift };
        let high = if shift >= 128 { carried << shift_high } else { high << shift | carried };
        let mask = (1 << HALF) - 1;
        Self {
            high: high << 2 | low >> HALF,
            low: low & mask,
            exponent: exponent - shift as i32,
            sticky: false,
        }
    }

    /// `1 / (significand * 2^exponent)` of an integer that is no power of two: never exact.
    const fn reciprocal(significand: u64, exponent: i32) -> Self {
        // With the divisor in 2^62..2^63, four digits of 63 bits of 2^62 / divisor.
        let shift = significand.leading_zeros() - 1;
        let divisor = (significand << shift) as u128;
        let mut digits = [0_u128; 4];
        let mut rest = 1_u128 << 62;
        let mut i = 0;
        while i < 4 {
            digits[i] = (rest << 63) / divisor;
            rest = (rest << 63) % divisor;
            i += 1;
        }
        let (high, low) = (digits[0] << 63 | digits[1], digits[2] << 63 | digits[3]);
        let exponent = shift as i32 - 62 - 2 * HALF as i32 - exponent;
        if exponent & 1 == 0 {
            return Self { high, low, exponent, sticky: true };
        }
        let low = (high & 1) << (HALF - 1) | low >> 1;
        Self { high: high >> 1, low, exponent: exponent + 1, sticky: true }
    }

    /// The square root, to at least `bits` (at most 126) significant bits.
    #[inline]
    const fn root(self, bits: u32) -> Exact {
        let Self { high, low, exponent, sticky } = self;
        let root = high.isqrt();
        let rest = high - root * root;
        if bits <= HALF / 2 {
            let sticky = sticky || rest != 0 || low != 0;
            let exponent = exponent / 2 + HALF as i32 / 2;
            return Exact { negative: false, significand: root, exponent, sticky };
        }
        // The next 63 bits: those of (rest 2^63 + a) / (2 root), one too many at times.
        let digit = HALF / 2;
        let mask = (1_u128 << digit) - 1;
        let dividend = rest << digit | low >> digit;
        let (quotient, left) = (dividend / (2 * root), dividend % (2 * root));
        let mut significand = (root << digit) + quotient;
        let mut rest = (left << digit | (low & mask)) as i128 - (quotient * quotient) as i128;
        if rest < 0 {
            rest += 2 * significand as i128 - 1;
            significand -= 1;
        }
        Exact { negative: false, significand, exponent: exponent / 2, sticky: sticky || rest != 0 }
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;

    use super::{HALF, Radicand};

    /// No result needs the last of the 126 bits; they are right all the same.
    #[test]
    fn a_root_is_the_largest_integer_whose_square_fits() {
        let mask = (BigUint::from(1_u8) << HALF) - 1_u8;
        let mut word = 1_u128;
        for i in 0..20_000 {
            word = word.wrapping_mul(0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645).wrapping_add(1);
            // From 2^125 to 2^126, with many trailing zeros or ones now and then.
            let root = match i % 4 {
                0 => (word >> 3 | 1 << 125) >> 60 << 60,
                1 => word >> 3 | 1 << 125 | ((1 << 64) - 1),
                _ => word >> 3 | 1 << 125,
            };
            let root = root & (u128::MAX >> 2);
            let square = BigUint::from(root) * root;
            for (more, expected) in
                [(0, root), (1, root), (2 * root, root), (2 * root + 1, root + 1)]
            {
                let n = &square + more;
                if n.bits() > u64::from(2 * HALF) {
                    continue;
                }
                let halves = [&n >> HALF, &n & &mask].map(|half| u128::try_from(half).unwrap());
                let radicand =
                    Radicand { high: halves[0], low: halves[1], exponent: 0, sticky: false };
                let ours = radicand.root(HALF);
                let inexact = more != 0 && more != 2 * root + 1;
                assert_eq!((ours.significand, ours.sticky), (expected, inexact), "{n}");
            }
        }
    }
}
