//! Natural numbers of a fixed capacity: just what exact decimal text needs.
//!
//! No allocation, so the capacity is part of the type: a small one for every format within the
//! range of binary64 and a large one for the widest exponents. What exceeds it is a programmer's
//! error; the callers bound their numbers.

use core::cmp::Ordering;

/// A natural number of up to `32 * N` bits.
#[derive(Clone)]
pub(super) struct Big<const N: usize> {
    /// Least significant first; zero from `len` on.
    limbs: [u32; N],
    /// Limbs in use; the highest of them is not zero.
    len: usize,
}

impl<const N: usize> Big<N> {
    pub(super) fn new(value: u64) -> Self {
        let mut big = Self { limbs: [0; N], len: 0 };
        big.push(value as u32);
        big.push((value >> 32) as u32);
        big.trim();
        big
    }

    pub(super) fn is_zero(&self) -> bool {
        self.len == 0
    }

    fn push(&mut self, limb: u32) {
        self.limbs[self.len] = limb;
        self.len += 1;
    }

    fn trim(&mut self) {
        while self.len > 0 && self.limbs[self.len - 1] == 0 {
            self.len -= 1;
        }
    }

    /// Position above the highest one bit; 0 for zero.
    pub(super) fn bits(&self) -> u32 {
        match self.len {
            0 => 0,
            len => len as u32 * 32 - self.limbs[len - 1].leading_zeros(),
        }
    }

    /// `self * factor + addend`.
    pub(super) fn multiply_add(&mut self, factor: u64, addend: u32) {
        let mut carry = u128::from(addend);
        for limb in &mut self.limbs[..self.len] {
            carry += u128::from(*limb) * u128::from(factor);
            *limb = carry as u32;
            carry >>= 32;
        }
        while carry != 0 {
            self.push(carry as u32);
            carry >>= 32;
        }
        self.trim();
    }

    /// `self * 5^power`.
    pub(super) fn multiply_by_power_of_five(&mut self, power: u32) {
        const MOST: u32 = 27; // 5^27 is the largest that fits a u64
        for _ in 0..power / MOST {
            self.multiply_add(5_u64.pow(MOST), 0);
        }
        self.multiply_add(5_u64.pow(power % MOST), 0);
    }

    /// `self * 2^places`.
    pub(super) fn shift_left(&mut self, places: u32) {
        if self.len == 0 {
            return;
        }
        let (whole, part) = ((places / 32) as usize, places % 32);
        self.multiply_add(1 << part, 0);
        self.limbs.copy_within(0..self.len, whole);
        self.limbs[..whole].fill(0);
        self.len += whole;
    }

    /// `self - other`, which must not be negative.
    pub(super) fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        for (i, limb) in self.limbs[..self.len].iter_mut().enumerate() {
            let (less, first) = limb.overflowing_sub(other.limbs[i]);
            let (less, second) = less.overflowing_sub(u32::from(borrow));
            (*limb, borrow) = (less, first || second);
        }
        debug_assert!(!borrow, "a difference below zero");
        self.trim();
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let (a, b) = (&self.limbs[..self.len], &other.limbs[..other.len]);
        a.len().cmp(&b.len()).then_with(|| a.iter().rev().cmp(b.iter().rev()))
    }

    /// `self / divisor` for a quotient that is known to be a digit; the remainder is left.
    pub(super) fn digit(&mut self, divisor: &Self) -> u8 {
        let mut digit = 0;
        while self.compare(divisor).is_ge() {
            self.subtract(divisor);
            digit += 1;
        }
        digit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(big: &Big<8>) -> u128 {
        big.limbs[..4].iter().rev().fold(0, |sum, limb| sum << 32 | u128::from(*limb))
    }

    #[test]
    fn arithmetic_agrees_with_u128() {
        let (mut a, mut wide) = (1_u64, 3_u128);
        for step in 1..2000_u32 {
            a = a.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(u64::from(step));
            let factor = a >> (step % 60);
            let mut big = Big::<8>::new(factor);
            assert_eq!((value(&big), big.bits()), (factor.into(), 64 - factor.leading_zeros()));
            big.multiply_add(factor, step);
            let product = u128::from(factor) * u128::from(factor) + u128::from(step);
            assert_eq!(value(&big), product);
            big.shift_left(step % 128);
            let shift = step % 128;
            assert_eq!(value(&big), product << shift);
            let other = Big::<8>::new(factor | 1);
            if shift == 0 {
                assert_eq!(big.compare(&other), product.cmp(&u128::from(factor | 1)));
            }
            let mut sum = other.clone();
            sum.multiply_add(9, (factor % 5) as u32);
            if factor > 4 {
                assert_eq!(sum.digit(&other), 9);
                assert_eq!(value(&sum), u128::from(factor % 5));
            }
            wide = wide.wrapping_add(product);
        }
        let mut five = Big::<8>::new(7);
        five.multiply_by_power_of_five(50);
        assert_eq!(value(&five), 7 * 5_u128.pow(50));
        five.subtract(&five.clone());
        assert!(five.is_zero() && five.bits() == 0);
    }
}
