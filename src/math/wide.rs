//! Unsigned integers of a fixed number of 64-bit words, read as fractions by the elementary
//! functions: the arithmetic behind [`Ball`](super::elementary) without allocation.
//!
//! Schoolbook multiplication, division by Knuth's Algorithm D (The Art of Computer Programming,
//! volume 2, 4.3.1), square root by Heron's iteration from above. Every operation is exact or
//! says what it dropped; the tests compare each with an arbitrary-precision crate.

use core::cmp::Ordering;

/// An integer of `64 N` bits, least significant word first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wide<const N: usize>(pub(crate) [u64; N]);

impl<const N: usize> Wide<N> {
    /// Bits of the integer.
    pub(crate) const BITS: u32 = 64 * N as u32;
    pub(crate) const ZERO: Self = Self([0; N]);
    pub(crate) const MAX: Self = Self([u64::MAX; N]);

    /// `word * 2^(64 (N - 1))`.
    #[inline]
    pub(crate) const fn from_top(word: u64) -> Self {
        let mut words = [0; N];
        words[N - 1] = word;
        Self(words)
    }

    /// The most significant words of a wider integer, that is `wide / 2^(64 (M - N))` rounded down.
    #[inline]
    pub(crate) const fn leading<const M: usize>(wide: &Wide<M>) -> Self {
        let mut words = [0; N];
        let mut i = 0;
        while i < N {
            words[i] = wide.0[M - N + i];
            i += 1;
        }
        Self(words)
    }

    /// The most significant word.
    #[inline]
    pub(crate) const fn top(self) -> u64 {
        self.0[N - 1]
    }

    /// The two most significant words; the lower is 0 if there is only one.
    #[inline]
    pub(crate) const fn top_128(self) -> u128 {
        let next = if N > 1 { self.0[N - 2] } else { 0 };
        (self.0[N - 1] as u128) << 64 | next as u128
    }

    #[inline]
    pub(crate) const fn is_zero(self) -> bool {
        let mut i = 0;
        while i < N {
            if self.0[i] != 0 {
                return false;
            }
            i += 1;
        }
        true
    }

    /// Zero bits above the highest one; all of them for zero.
    #[inline]
    pub(crate) const fn leading_zeros(self) -> u32 {
        let mut i = N;
        while i > 0 {
            i -= 1;
            if self.0[i] != 0 {
                return (N - 1 - i) as u32 * 64 + self.0[i].leading_zeros();
            }
        }
        Self::BITS
    }

    /// `self * 2^places`; bits that leave at the top are lost.
    #[inline]
    pub(crate) fn shl(self, places: u32) -> Self {
        let (words, bits) = ((places / 64) as usize, places % 64);
        let mut result = [0; N];
        for (i, word) in result.iter_mut().enumerate().skip(words) {
            let high = self.0[i - words] << bits;
            let low = if bits > 0 && i > words { self.0[i - words - 1] >> (64 - bits) } else { 0 };
            *word = high | low;
        }
        Self(result)
    }

    /// `self / 2^places`, and whether a one was dropped.
    #[inline]
    pub(crate) fn shr(self, places: u32) -> (Self, bool) {
        if places >= Self::BITS {
            return (Self::ZERO, !self.is_zero());
        }
        let (words, bits) = ((places / 64) as usize, places % 64);
        let mut result = [0; N];
        for (i, word) in result[..N - words].iter_mut().enumerate() {
            let low = self.0[i + words] >> bits;
            let above = i + words + 1;
            let high = if bits > 0 && above < N { self.0[above] << (64 - bits) } else { 0 };
            *word = low | high;
        }
        let mut lost = self.0[words] & ((1 << bits) - 1) != 0;
        for word in &self.0[..words] {
            lost |= *word != 0;
        }
        (Self(result), lost)
    }

    /// The sum without its carry, and the carry.
    #[inline]
    pub(crate) fn add(self, other: Self) -> (Self, bool) {
        let (mut result, mut carry) = ([0; N], false);
        for (word, (a, b)) in result.iter_mut().zip(self.0.iter().zip(other.0)) {
            let (sum, first) = a.overflowing_add(b);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*word, carry) = (sum, first | second);
        }
        (Self(result), carry)
    }

    /// The difference modulo `2^(64 N)`, and whether it was negative.
    #[inline]
    pub(crate) fn sub(self, other: Self) -> (Self, bool) {
        let (mut result, mut borrow) = ([0; N], false);
        for (word, (a, b)) in result.iter_mut().zip(self.0.iter().zip(other.0)) {
            let (rest, first) = a.overflowing_sub(b);
            let (rest, second) = rest.overflowing_sub(u64::from(borrow));
            (*word, borrow) = (rest, first | second);
        }
        (Self(result), borrow)
    }

    /// The sum with a small integer, and the carry.
    #[inline]
    pub(crate) fn add_small(self, other: u64) -> (Self, bool) {
        let mut word = [0; N];
        word[0] = other;
        self.add(Self(word))
    }

    /// The difference from a small integer, and whether it was negative.
    #[inline]
    pub(crate) fn sub_small(self, other: u64) -> (Self, bool) {
        let mut word = [0; N];
        word[0] = other;
        self.sub(Self(word))
    }

    /// The upper and lower half of the product.
    #[inline]
    pub(crate) fn mul(self, other: Self) -> (Self, Self) {
        let (mut high, mut low) = ([0; N], [0; N]);
        for i in 0..N {
            let mut carry = 0;
            for j in 0..N {
                let place = if i + j < N { &mut low[i + j] } else { &mut high[i + j - N] };
                let sum =
                    u128::from(self.0[i]) * u128::from(other.0[j]) + u128::from(*place) + carry;
                *place = sum as u64;
                carry = sum >> 64;
            }
            high[i] = carry as u64;
        }
        (Self(high), Self(low))
    }

    /// `self / divisor`, rounded down.
    pub(crate) const fn div_small(self, divisor: u64) -> Self {
        let mut result = [0; N];
        let (mut i, mut rest) = (N, 0_u128);
        while i > 0 {
            i -= 1;
            let dividend = rest << 64 | self.0[i] as u128;
            result[i] = (dividend / divisor as u128) as u64;
            rest = dividend % divisor as u128;
        }
        Self(result)
    }

    /// `(high * 2^(64 N) + low) / divisor`, rounded down, and whether there is a remainder. The
    /// divisor's top bit is set and `high < divisor`, so the quotient fits.
    pub(crate) fn div(high: Self, low: Self, divisor: Self) -> (Self, bool) {
        debug_assert!(divisor.top() >> 63 == 1 && high.cmp(&divisor).is_lt());
        let (mut rest, mut quotient) = (high, [0; N]);
        let leading = u128::from(divisor.top());
        for digit in (0..N).rev() {
            // The remainder of N words and one more digit, `over` above `shifted`.
            let over = rest.top();
            let mut shifted = [0; N];
            shifted[1..].copy_from_slice(&rest.0[..N - 1]);
            shifted[0] = low.0[digit];
            let mut guess = match u128::from(over) {
                over if over == leading => u64::MAX,
                over => ((over << 64 | u128::from(shifted[N - 1])) / leading) as u64,
            };
            // The guess is right or at most 2 too large (Knuth, theorem B).
            let (mut borrow, mut carry) = (false, 0);
            for (word, &factor) in shifted.iter_mut().zip(&divisor.0) {
                let product = u128::from(factor) * u128::from(guess) + carry;
                carry = product >> 64;
                let (part, first) = word.overflowing_sub(product as u64);
                let (part, second) = part.overflowing_sub(u64::from(borrow));
                (*word, borrow) = (part, first | second);
            }
            let mut over = i128::from(over) - carry as i128 - i128::from(borrow);
            let mut left = Self(shifted);
            while over < 0 {
                guess -= 1;
                let (sum, carry) = left.add(divisor);
                (left, over) = (sum, over + i128::from(carry));
            }
            (rest, quotient[digit]) = (left, guess);
        }
        (Self(quotient), !rest.is_zero())
    }

    /// The square root of `high * 2^(64 N) + low`, rounded down; `high` is at least a quarter of
    /// `2^(64 N)`.
    pub(crate) fn sqrt(high: Self, low: Self) -> Self {
        debug_assert!(high.top() >> 62 != 0);
        if N == 1 {
            let root = (u128::from(high.0[0]) << 64 | u128::from(low.0[0])).isqrt();
            return Self::from_top(root as u64);
        }
        // Not below the root: the root of the top two words plus one, in place.
        let guess = high.top_128().isqrt() as u64;
        let mut root = guess.checked_add(1).map_or(Self::MAX, Self::from_top);
        // From above, Heron's iteration descends until it stands at the root rounded down.
        while high.cmp(&root).is_lt() {
            let (sum, carry) = root.add(Self::div(high, low, root).0);
            let mut next = sum.shr(1).0;
            next.0[N - 1] |= u64::from(carry) << 63;
            if next.cmp(&root).is_ge() {
                break;
            }
            root = next;
        }
        root
    }

    #[inline]
    pub(crate) fn cmp(&self, other: &Self) -> Ordering {
        for i in (0..N).rev() {
            if self.0[i] != other.0[i] {
                return self.0[i].cmp(&other.0[i]);
            }
        }
        Ordering::Equal
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::Wide;
    use crate::random::{Philox, Stream};
    use dashu_int::UBig;
    use dashu_int::ops::{BitTest, DivRem, SquareRoot};

    fn big<const N: usize>(x: Wide<N>) -> UBig {
        x.0.iter().rev().fold(UBig::ZERO, |sum, &word| (sum << 64) + UBig::from(word))
    }

    /// Random words, with runs of ones and zeros among them: the cases of Algorithm D that plain
    /// random digits meet once in 2^64.
    struct Source(Philox, u64);

    impl Source {
        fn word(&mut self) -> u64 {
            self.1 += 1;
            let [a, b, c, _] = self.0.block(self.1);
            match c % 5 {
                0 => u64::MAX,
                1 => 0,
                2 => 1 << 63,
                _ => u64::from(a) << 32 | u64::from(b),
            }
        }

        fn wide<const N: usize>(&mut self) -> Wide<N> {
            Wide(core::array::from_fn(|_| self.word()))
        }
    }

    fn agrees<const N: usize>(seed: u64) {
        let mut source = Source(Philox::new(seed, Stream::new("wide")), 0);
        let one = UBig::ONE << (64 * N);
        for _ in 0..5000 {
            let (a, b) = (source.wide::<N>(), source.wide::<N>());
            let (x, y) = (big(a), big(b));
            let (sum, carry) = a.add(b);
            assert_eq!(big(sum) + (UBig::from(carry) << (64 * N)), &x + &y);
            let (rest, negative) = a.sub(b);
            assert_eq!(negative, x < y);
            assert_eq!(big(rest) + &y, if negative { &x + &one } else { x.clone() });
            assert_eq!(a.cmp(&b), x.cmp(&y));
            let (high, low) = a.mul(b);
            assert_eq!((big(high) << (64 * N)) + big(low), &x * &y);
            let places = (source.word() % (64 * N as u64)) as u32;
            assert_eq!(big(a.shl(places)), (&x << places as usize) % &one);
            let (shifted, lost) = a.shr(places);
            assert_eq!(big(shifted), &x >> places as usize);
            assert_eq!(lost, (&x >> places as usize) << places as usize != x);
            assert_eq!(a.leading_zeros() as usize, 64 * N - x.bit_len());
            let small = source.word() | 1;
            assert_eq!(big(a.div_small(small)), &x / UBig::from(small));
            let mut divisor = b;
            divisor.0[N - 1] |= 1 << 63;
            if a.cmp(&divisor).is_lt() {
                let low = source.wide::<N>();
                let dividend = (&x << (64 * N)) + big(low);
                let (quotient, inexact) = Wide::div(a, low, divisor);
                let (q, r) = dividend.div_rem(big(divisor));
                assert_eq!((big(quotient), inexact), (q, r != UBig::ZERO));
            }
            let mut high = a;
            high.0[N - 1] |= 1 << 62;
            assert_eq!(big(Wide::sqrt(high, b)), ((big(high) << (64 * N)) + &y).sqrt());
        }
        for high in [Wide::<N>::MAX, Wide::MAX.sub_small(1).0, Wide::MAX.sub_small(2).0] {
            for low in [Wide::ZERO, Wide::MAX] {
                let square = (big(high) << (64 * N)) + big(low);
                assert_eq!(big(Wide::sqrt(high, low)), square.sqrt());
            }
        }
    }

    #[test]
    fn every_operation_agrees_with_arbitrary_precision() {
        agrees::<1>(1);
        agrees::<2>(2);
        agrees::<4>(3);
        agrees::<8>(4);
    }

    #[test]
    fn leading_words_are_the_truncated_fraction() {
        let wide = Wide([1, 2, 3, 4]);
        assert_eq!(Wide::<2>::leading(&wide), Wide([3, 4]));
        assert_eq!(wide.top_128(), 4 << 64 | 3);
        assert_eq!(Wide::<1>::from_top(7).top_128(), 7 << 64);
    }
}
