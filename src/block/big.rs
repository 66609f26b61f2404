//! Exact numbers of any size: a sign, an integer of any length, and a power of two.

use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::format::Value;
use crate::round::Exact;

/// `(-1)^negative * words * 2^exponent`; words least significant first, without zeros at the top.
/// Zero has no words.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Big {
    pub(crate) negative: bool,
    words: Vec<u64>,
    exponent: i32,
}

impl From<Value> for Big {
    /// A finite value; zero for others, which callers have taken out.
    fn from(value: Value) -> Self {
        let Value::Finite { negative, significand, exponent } = value else { return Self::ZERO };
        Self::new(negative, [significand].into(), exponent)
    }
}

impl Big {
    pub(crate) const ZERO: Self = Self { negative: false, words: Vec::new(), exponent: 0 };

    pub(crate) fn new(negative: bool, mut words: Vec<u64>, exponent: i32) -> Self {
        while words.last() == Some(&0) {
            words.pop();
        }
        if words.is_empty() { Self::ZERO } else { Self { negative, words, exponent } }
    }

    pub(crate) fn from_i128(value: i128, exponent: i32) -> Self {
        let size = value.unsigned_abs();
        Self::new(value < 0, [size as u64, (size >> 64) as u64].into(), exponent)
    }

    /// Without its sign.
    pub(crate) fn magnitude(self) -> Self {
        Self { negative: false, ..self }
    }

    /// Whether this number is larger than another one.
    pub(crate) fn exceeds(&self, other: &Self) -> bool {
        let minus = Self { negative: !other.negative, ..other.clone() };
        let difference = self.plus(&minus);
        !difference.is_zero() && !difference.negative
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.words.is_empty()
    }

    /// Times a finite value.
    pub(crate) fn multiply(&mut self, by: Value) {
        let Value::Finite { negative, significand, exponent } = by else { return };
        let mut carry = 0;
        for word in &mut self.words {
            let product = u128::from(*word) * u128::from(significand) + carry;
            *word = product as u64;
            carry = product >> 64;
        }
        let mut words = core::mem::take(&mut self.words);
        words.push(carry as u64);
        *self = Self::new(self.negative != negative, words, self.exponent + exponent);
    }

    /// The words of this number in units of `2^exponent`, which is not above its own.
    fn in_units_of(&self, exponent: i32) -> Vec<u64> {
        let shift = (self.exponent - exponent) as usize;
        let (whole, bits) = (shift / 64, shift % 64);
        let mut words = Vec::with_capacity(self.words.len() + whole + 1);
        words.resize(whole, 0);
        let mut below = 0;
        for word in &self.words {
            words.push(if bits == 0 { *word } else { word << bits | below >> (64 - bits) });
            below = *word;
        }
        words.push(if bits == 0 { 0 } else { below >> (64 - bits) });
        words
    }

    /// The exact sum; +0 if it is zero.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        if self.is_zero() || other.is_zero() {
            return if self.is_zero() { other.clone() } else { self.clone() };
        }
        let exponent = self.exponent.min(other.exponent);
        let (mut a, mut b) = (self.in_units_of(exponent), other.in_units_of(exponent));
        let len = a.len().max(b.len()) + 1;
        a.resize(len, 0);
        b.resize(len, 0);
        if self.negative == other.negative {
            let mut carry = false;
            for (a, b) in a.iter_mut().zip(&b) {
                let (sum, first) = a.overflowing_add(*b);
                let (sum, second) = sum.overflowing_add(u64::from(carry));
                (*a, carry) = (sum, first | second);
            }
            return Self::new(self.negative, a, exponent);
        }
        let larger = a.iter().rev().cmp(b.iter().rev()) == Ordering::Greater;
        let (negative, mut high, low) =
            if larger { (self.negative, a, b) } else { (other.negative, b, a) };
        let mut borrow = false;
        for (a, b) in high.iter_mut().zip(&low) {
            let (rest, first) = a.overflowing_sub(*b);
            let (rest, second) = rest.overflowing_sub(u64::from(borrow));
            (*a, borrow) = (rest, first | second);
        }
        Self::new(negative, high, exponent)
    }

    /// The first 128 bits, and whether there are others: more than twice what any format keeps.
    pub(crate) fn exact(&self) -> Exact {
        let Self { negative, words, exponent } = self;
        let Some((&top, rest)) = words.split_last() else {
            return Exact { negative: false, significand: 0, exponent: 0, sticky: false };
        };
        let (second, rest) = rest.split_last().map_or((0, rest), |(word, rest)| (*word, rest));
        let (third, rest) = rest.split_last().map_or((0, rest), |(word, rest)| (*word, rest));
        let shift = top.leading_zeros();
        let mut significand = u128::from(top) << 64 | u128::from(second);
        let mut sticky = rest.iter().any(|word| *word != 0);
        if shift > 0 {
            significand = significand << shift | u128::from(third >> (64 - shift));
        }
        sticky |= third << shift != 0;
        let below = words.len() as i32 - 2;
        Exact {
            negative: *negative,
            significand,
            exponent: exponent + 64 * below - shift as i32,
            sticky,
        }
    }
}
