//! Sums of exact numbers whatever the distance of their exponents: the integers behind `add`,
//! `fma` and `faa`.
//!
//! Within 123 bits the sum is exact. Farther apart the larger number fills the word, and what the
//! smaller one has below it becomes the sticky part. Where the signs differ, one unit is borrowed
//! first, since the sticky part points away from zero.

use crate::round::Exact;

/// Bits that the terms of an exact sum may span; with a carry it has one more.
const SPAN: u32 = 123;

/// Whether the sum of two numbers is exact, if the one with the lower exponent has at most
/// [`SPAN`] bits.
pub(super) const fn is_exact(a: Exact, b: Exact) -> bool {
    let (high, gap) = if a.exponent >= b.exponent {
        (a.significand, a.exponent - b.exponent)
    } else {
        (b.significand, b.exponent - a.exponent)
    };
    high == 0 || (128 - high.leading_zeros()) as i64 + gap as i64 <= SPAN as i64
}

/// `a + b`, to at least 123 significant bits. Zeros of different sign, and numbers that cancel,
/// give zero with the sign `zero`.
///
/// The number with the higher exponent has at most 124 bits; where the sum is not exact, it is far
/// the larger one and has no sticky part.
#[inline]
pub(super) const fn sum(a: Exact, b: Exact, zero: bool) -> Exact {
    let exponent = if a.exponent < b.exponent { a.exponent } else { b.exponent };
    let (i, j) = ((a.exponent - exponent) as u32, (b.exponent - exponent) as u32);
    // A sum that was exact may be a term of the next, and has one bit more.
    let zeros = 128 - (SPAN + 2);
    if i + zeros <= a.significand.leading_zeros() && j + zeros <= b.significand.leading_zeros() {
        // Without branches on signs or order, which are as good as random to the processor.
        let total = signed(a.negative, a.significand << i) + signed(b.negative, b.significand << j);
        let none = if a.negative == b.negative { a.negative } else { zero };
        let negative = if total == 0 { none } else { total < 0 };
        let sticky = a.sticky | b.sticky;
        return Exact { negative, significand: total.unsigned_abs(), exponent, sticky };
    }
    far_sum(a, b, zero)
}

/// A significand of at most 127 bits with its sign.
const fn signed(negative: bool, significand: u128) -> i128 {
    let mask = -(negative as i128);
    (significand as i128 ^ mask) - mask
}

/// The sum of numbers that are too far apart for an exact one, or of which one is zero.
#[cold]
const fn far_sum(a: Exact, b: Exact, zero: bool) -> Exact {
    match (a.significand, b.significand) {
        (0, 0) => return signed_zero(if a.negative == b.negative { a.negative } else { zero }),
        (0, _) => return b,
        (_, 0) => return a,
        _ => {}
    }
    let (high, low) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
    let gap = (high.exponent - low.exponent) as u32;
    // To 124 bits.
    let shift = high.significand.leading_zeros() - 4;
    let rest = gap - shift;
    let part = if rest < 128 { low.significand >> rest } else { 0 };
    let lost = low.sticky || rest >= 128 || part << rest != low.significand;
    let significand = high.significand << shift;
    let exponent = high.exponent - shift as i32;
    let significand = if high.negative == low.negative {
        significand + part
    } else {
        significand - part - lost as u128
    };
    Exact { negative: high.negative, significand, exponent, sticky: lost }
}

/// Zero of a sign.
pub(super) const fn signed_zero(negative: bool) -> Exact {
    Exact { negative, significand: 0, exponent: 0, sticky: false }
}

/// A number as the sums take it.
#[inline]
pub(super) const fn exact(negative: bool, significand: u64, exponent: i32) -> Exact {
    Exact { negative, significand: significand as u128, exponent, sticky: false }
}

/// Which of two numbers is farther from zero, by the place of the leading bit: `(larger,
/// smaller)`.
pub(super) const fn by_size(a: Exact, b: Exact) -> (Exact, Exact) {
    const fn top(x: Exact) -> i64 {
        match x.significand {
            0 => i64::MIN,
            _ => x.exponent as i64 + x.significand.ilog2() as i64,
        }
    }
    if top(a) >= top(b) { (a, b) } else { (b, a) }
}
