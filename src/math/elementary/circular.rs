//! Enclosures of sin, cos, tan and their Pi variants: `|x| = (j + f) pi/2` with an integer `j` and
//! `|f| <= 1/2`, and with `r = f pi/2` and `u = r^2 <= 0.617`:
//! `sin r = r - r u (1/3! - u/5! + ...)`, `cos r = 1 - u (1/2! - u/4! + ...)`.

use super::ball::Ball;
use super::constants::{PI, TWO_OVER_PI};
use super::number::Number;
use super::series;
use crate::math::wide::Wide;

/// An angle `quadrant pi/2 + r`; the quadrant counts modulo 4.
#[derive(Clone, Copy)]
pub(super) struct Reduced<const N: usize> {
    quadrant: u64,
    r: Ball<N>,
}

/// The largest power of two that an argument's unit may have: the widest window into `2 / pi` then
/// ends with the table.
pub(super) const LARGEST_UNIT: i32 = 64 * (TWO_OVER_PI.len() as i32 - 8 - 2) + 2;

/// `|x|` modulo `pi/2`, after Payne and Hanek (SIGNUM Newsletter 18, 1983).
///
/// Below 1/2 it is `r` itself. Else `m 2^e * 2/pi` is wanted modulo 4: the bits of `2/pi` above
/// `2^(2-e)` contribute multiples of 4, and of the others `64 (N + 2)` are multiplied with `m`. The
/// bits after them would add less than `m < 2^64` units of the product's last place, and so does
/// taking the complement of the fraction for its difference from 1. The mantissa is the `N` words
/// of the product from bit `offset`, behind the quadrant and zeros. Its unit is `2^(128 - offset)`
/// of the product's, so these errors are at most `2^(offset - 64)` of its units. Cutting is one
/// more.
pub(super) fn reduce<const N: usize>(x: Number) -> Reduced<N> {
    if x.top() < 0 {
        return Reduced { quadrant: 0, r: x.abs().into() };
    }
    let mut product = [0; 10];
    let product = &mut product[..N + 2];
    let mut carry = 0;
    for (i, place) in product.iter_mut().enumerate().rev() {
        let word = word_from(&TWO_OVER_PI, x.exponent - 2 + 64 * i as i32);
        let sum = u128::from(word) * u128::from(x.significand) + carry;
        (*place, carry) = (sum as u64, sum >> 64);
    }
    // The most significant two bits are the quadrant; a fraction above 1/2 belongs to the next.
    let (quadrant, half) = (product[0] >> 62, product[0] >> 61 & 1);
    let negative = half == 1;
    if negative {
        product.iter_mut().for_each(|word| *word = !*word);
    }
    product[0] &= u64::MAX >> 2;
    let zero_words = product.iter().take_while(|word| **word == 0).count();
    let next = product.get(zero_words).map_or(0, |word| word.leading_zeros());
    let offset = 64 * zero_words as u32 + next;
    let r = if offset > 90 {
        Ball::UNKNOWN
    } else {
        let mantissa = core::array::from_fn(|i| {
            word_from(product, (offset as usize + 64 * (N - 1 - i)) as i32)
        });
        let error = 1 + (1 << offset.saturating_sub(64));
        let fraction = Ball::from_fraction(Wide(mantissa), error).scale(2 - offset as i32);
        (fraction * half_pi()).negate_if(negative)
    };
    Reduced { quadrant: quadrant + half, r }
}

/// Bits `start..start + 64` of a fraction, its most significant word first; outside there are
/// zeros.
fn word_from(words: &[u64], start: i32) -> u64 {
    let word = |i: i32| usize::try_from(i).ok().and_then(|i| words.get(i)).copied().unwrap_or(0);
    let (first, places) = (start.div_euclid(64), start.rem_euclid(64));
    if places == 0 { word(first) } else { word(first) << places | word(first + 1) >> (64 - places) }
}

/// `pi |x|` modulo `pi/2`: the fraction is exact.
pub(super) fn reduce_pi<const N: usize>(x: Number) -> Reduced<N> {
    let (whole, fraction, unit) = x.split(1);
    let fraction = Ball::<N>::new(fraction, unit);
    let (quadrant, fraction) = if fraction.top() < 0 {
        (whole, fraction)
    } else {
        (whole.wrapping_add(1), fraction - Ball::one())
    };
    Reduced { quadrant, r: fraction * half_pi() }
}

fn half_pi<const N: usize>() -> Ball<N> {
    Ball::constant(&PI).scale(-1)
}

impl<const N: usize> Reduced<N> {
    fn sin_r(self) -> Ball<N> {
        let u = self.r * self.r;
        self.r - self.r * u * series::sum(u, &series::SIN, true)
    }

    fn cos_r(self) -> Ball<N> {
        let u = self.r * self.r;
        Ball::one() - u * series::sum(u, &series::COS, true)
    }

    pub(super) fn sin(self) -> Ball<N> {
        let value = if self.quadrant.is_multiple_of(2) { self.sin_r() } else { self.cos_r() };
        value.negate_if(self.quadrant & 2 != 0)
    }

    pub(super) fn cos(self) -> Ball<N> {
        Self { quadrant: self.quadrant.wrapping_add(1), ..self }.sin()
    }

    pub(super) fn tan(self) -> Ball<N> {
        let (sin, cos) = (self.sin_r(), self.cos_r());
        if self.quadrant.is_multiple_of(2) { sin / cos } else { -(cos / sin) }
    }
}
