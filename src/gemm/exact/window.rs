//! Fixed-point sums: integers in units of a power of two that no product goes below.

use alloc::vec::Vec;

use crate::block::big::Big;

/// Something that integers times powers of two are added to.
pub(super) trait Window {
    /// Adds `value * 2^place`; `place` is counted from the window's lowest bit, and the caller has
    /// made the window wide enough for every sum.
    fn add(&mut self, value: i128, place: u32);
}

/// At most 127 bits.
pub(super) struct Narrow(pub(super) i128);

impl Window for Narrow {
    #[inline(always)]
    fn add(&mut self, value: i128, place: u32) {
        self.0 += value << place;
    }
}

/// Any number of bits, as words of a two's complement integer.
pub(super) struct Wide {
    words: Vec<u64>,
}

impl Wide {
    /// Space for sums below `2^bits` in magnitude.
    pub(super) fn new(bits: usize) -> Self {
        // A sign, and the two words that a shifted 128-bit integer may reach beyond its highest bit.
        Self { words: super::words(bits + 1 + 128) }
    }

    /// The sum in units of `2^exponent`.
    pub(super) fn into_big(self, exponent: i32) -> Big {
        let mut words = self.words;
        let negative = words.last().is_some_and(|top| top >> 63 == 1);
        if negative {
            let mut carry = true;
            for word in &mut words {
                (*word, carry) = (!*word).overflowing_add(u64::from(carry));
            }
        }
        Big::new(negative, words, exponent)
    }
}

impl Window for Wide {
    #[inline(always)]
    fn add(&mut self, value: i128, place: u32) {
        let (first, bits) = ((place / 64) as usize, place % 64);
        let low = (value as u128) << bits;
        // The sign and what left the 128 bits.
        let high = if bits == 0 { value >> 127 } else { value >> (128 - bits) } as u64;
        let sign = (value >> 127) as u64;
        let words = &mut self.words[first..];
        let mut carry = false;
        for (word, part) in words.iter_mut().zip([low as u64, (low >> 64) as u64, high]) {
            let (sum, one) = word.overflowing_add(part);
            let (sum, other) = sum.overflowing_add(u64::from(carry));
            (*word, carry) = (sum, one | other);
        }
        // Above stands the sign in every word: with a carry it changes nothing if it is all ones.
        for word in words.iter_mut().skip(3) {
            if carry == (sign != 0) {
                break;
            }
            let (sum, one) = word.overflowing_add(sign);
            let (sum, other) = sum.overflowing_add(u64::from(carry));
            (*word, carry) = (sum, one | other);
        }
    }
}
