//! A sum of any number of terms without loss: an integer wide enough for every place that products
//! of the operand formats have, after Kulisch.

use super::factor::Factor;
use crate::round::Exact;

/// Words of the accumulator.
const WORDS: usize = 12;

/// The place of its last bit. Products of binary32 numbers end at 2^-298 and stay below 2^256.
const LAST: i32 = -320;

/// A two's complement number of 768 bits in units of `2^LAST`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accumulator([u64; WORDS]);

impl Accumulator {
    pub(super) const ZERO: Self = Self([0; WORDS]);

    /// Whether every product of two terms with these bounds has its place here: the last place of a
    /// term, and the power of two that it stays below.
    pub(super) const fn holds(last: i32, below: i32) -> bool {
        // 64 bits are left for carries.
        last >= LAST && below <= LAST + 64 * (WORDS as i32 - 2)
    }

    /// Adds a finite term.
    pub(super) fn add(&mut self, term: &Factor) {
        let at = (term.exponent - term.digits as i32 - LAST) as usize;
        let (word, bit) = (at / 64, at % 64);
        let wide = u128::from(term.significand) << bit;
        let halves = [wide as u64, (wide >> 64) as u64];
        let mut carry = false;
        for (i, place) in self.0.iter_mut().skip(word).enumerate() {
            let half = halves.get(i).copied().unwrap_or(0);
            let (sum, out) = if term.negative {
                let (sum, first) = place.overflowing_sub(half);
                let (sum, second) = sum.overflowing_sub(u64::from(carry));
                (sum, first || second)
            } else {
                let (sum, first) = place.overflowing_add(half);
                let (sum, second) = sum.overflowing_add(u64::from(carry));
                (sum, first || second)
            };
            (*place, carry) = (sum, out);
        }
    }

    /// The number: its first 64 to 128 bits, and whether anything follows.
    pub(super) fn exact(mut self) -> Exact {
        let negative = self.0[WORDS - 1] >> 63 == 1;
        if negative {
            let mut carry = true;
            for place in &mut self.0 {
                (*place, carry) = (!*place).overflowing_add(u64::from(carry));
            }
        }
        let first = self.0.iter().rposition(|word| *word != 0).unwrap_or(0).max(1);
        let significand = u128::from(self.0[first]) << 64 | u128::from(self.0[first - 1]);
        let sticky = self.0[..first - 1].iter().any(|word| *word != 0);
        Exact { negative, significand, exponent: LAST + 64 * (first as i32 - 1), sticky }
    }
}
