//! A real number known within a bound: a midpoint of `64 N` bits and an error in units of its last
//! place. The enclosures of the elementary functions are written with these operations alone, so
//! that every rounding is counted where it happens. This is midpoint-radius arithmetic, as in
//! Johansson, "Arb", IEEE TC 2017, on integers of fixed width.
//!
//! What each operation promises: if the operands' real numbers lie within their balls, the result's
//! real number lies within the result. Quotients and roots of numbers that may be zero are
//! [`Ball::UNKNOWN`], which nothing decides and no operation makes known again.

use core::cmp::Ordering;
use core::ops::{Add, Div, Mul, Neg, Sub};

use super::number::Number;
use crate::math::wide::Wide;
use crate::round::Exact;

/// A mathematical constant: `fraction / 2^512 * 2^exponent`, rounded down, `fraction` at least half.
pub(super) struct Constant {
    pub(super) fraction: Wide<8>,
    pub(super) exponent: i32,
}

/// A real number `x` with `|x - (-1)^negative * mantissa * 2^exponent| <= error * 2^exponent`.
///
/// Usually the mantissa's top bit is set. Else the ball is exactly zero, or a longer mantissa would
/// have an error above `2^40`: after cancellation a bound may be all that is known of a difference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ball<const N: usize> {
    pub(super) negative: bool,
    mantissa: Wide<N>,
    exponent: i32,
    error: u64,
}

impl<const N: usize> Ball<N> {
    /// Largest error carried, in units of the last place.
    const LIMIT: u64 = 1 << 50;
    /// Bits of the error to which a mantissa is moved up, or moved down where it exceeds the limit.
    const SHORT: u32 = 40;
    const BITS: i32 = Wide::<N>::BITS as i32;
    const ZERO: Self = Self { negative: false, mantissa: Wide::ZERO, exponent: 0, error: 0 };
    /// A number of which nothing is known.
    pub(super) const UNKNOWN: Self = Self { error: u64::MAX, ..Self::ZERO };

    /// An integer times a power of two, exactly.
    #[inline]
    pub(super) fn new(integer: u64, exponent: i32) -> Self {
        if integer == 0 {
            return Self::ZERO;
        }
        let places = integer.leading_zeros();
        let exponent = exponent - places as i32 - (Self::BITS - 64);
        Self { negative: false, mantissa: Wide::from_top(integer << places), exponent, error: 0 }
    }

    #[inline]
    pub(super) fn one() -> Self {
        Self::new(1, 0)
    }

    #[inline]
    pub(super) fn constant(constant: &Constant) -> Self {
        // Cut after 64 N of its bits: what is missing is less than a unit.
        let mantissa = Wide::leading(&constant.fraction);
        Self { negative: false, mantissa, exponent: constant.exponent - Self::BITS, error: 1 }
    }

    /// The ball around `fraction / 2^(64 N)`, `error` in the same units.
    #[inline]
    pub(super) fn from_fraction(fraction: Wide<N>, error: u64) -> Self {
        Self { negative: false, mantissa: fraction, exponent: -Self::BITS, error }.normalized()
    }

    /// `|x|` in units of `2^-(64 N)`, and the error in them, within the limit; `None` if that
    /// cannot be.
    #[inline]
    pub(super) fn to_fraction(self) -> Option<(Wide<N>, u64)> {
        if self.is_zero() {
            return Some((Wide::ZERO, 0));
        }
        let places = -Self::BITS - self.exponent;
        if !self.is_known() || places < -(self.mantissa.leading_zeros().min(10) as i32) {
            return None;
        }
        let (fraction, error) = if places < 0 {
            (self.mantissa.shl(places.unsigned_abs()), self.error << -places)
        } else {
            let (fraction, lost) = self.mantissa.shr(places as u32);
            (fraction, shifted(self.error, places as u32) + u64::from(lost))
        };
        (error <= Self::LIMIT).then_some((fraction, error))
    }

    /// Whether this is zero exactly.
    #[inline]
    const fn is_zero(&self) -> bool {
        self.mantissa.is_zero() && self.error == 0
    }

    #[inline]
    const fn is_known(&self) -> bool {
        self.error <= Self::LIMIT
    }

    /// `|x|` in units of `2^scale`, roughly: rounded down from the first 64 bits of the midpoint.
    /// At least `2^64` units count as unknown and give 0.
    #[inline]
    pub(super) fn estimate(self, scale: i32) -> u64 {
        match scale - (self.exponent + Self::BITS - 64) {
            places @ 0..64 => self.mantissa.top() >> places,
            _ => 0,
        }
    }

    /// With the mantissa moved up to the top, or as far as the error stays below
    /// [`SHORT`](Self::SHORT), and down if the error exceeds the limit.
    #[inline]
    fn normalized(self) -> Self {
        let width = 64 - self.error.leading_zeros();
        if self.error > Self::LIMIT {
            if self.error == u64::MAX {
                return Self::UNKNOWN;
            }
            let places = width - Self::SHORT;
            let (mantissa, lost) = self.mantissa.shr(places);
            let error = shifted(self.error, places) + u64::from(lost);
            return Self { mantissa, exponent: self.exponent + places as i32, error, ..self };
        }
        let zeros = self.mantissa.leading_zeros();
        if zeros == 0 {
            return self;
        }
        if self.is_zero() {
            return Self::ZERO;
        }
        let spare = if width == 0 { u32::MAX } else { Self::SHORT.saturating_sub(width) };
        let places = zeros.min(spare);
        Self {
            mantissa: self.mantissa.shl(places),
            exponent: self.exponent - places as i32,
            error: self.error << places.min(63),
            ..self
        }
    }

    /// Whether the mantissa's top bit is set.
    #[inline]
    pub(super) const fn is_normal(&self) -> bool {
        self.is_known() && self.mantissa.top() >> 63 == 1
    }

    /// `x * 2^k`.
    #[inline]
    pub(super) fn scale(self, k: i32) -> Self {
        Self { exponent: self.exponent + k, ..self }
    }

    #[inline]
    pub(super) fn abs(self) -> Self {
        Self { negative: false, ..self }
    }

    /// `x`, negated if `negative`.
    #[inline]
    pub(super) fn negate_if(self, negative: bool) -> Self {
        Self { negative: self.negative != negative, ..self }
    }

    /// The `t` with `2^(t-1) <= |midpoint| < 2^t`.
    #[inline]
    pub(super) const fn top(&self) -> i32 {
        self.exponent + Self::BITS
    }

    /// The mantissa's first 64 bits: `|midpoint| / 2^top` in units of `2^-64`, rounded down.
    #[inline]
    pub(super) const fn leading(&self) -> u64 {
        self.mantissa.top()
    }

    /// The order of the magnitudes of the midpoints; that of short mantissas is rough.
    #[inline]
    pub(super) fn compare_magnitude(&self, other: &Self) -> Ordering {
        match (self.mantissa.is_zero(), other.mantissa.is_zero()) {
            (false, false) => {
                self.exponent.cmp(&other.exponent).then(self.mantissa.cmp(&other.mantissa))
            }
            (zero, other) => other.cmp(&zero),
        }
    }

    /// The square root of a number that is not negative.
    ///
    /// A relative error `a <= 2^-13` of the radicand is one of at most `a` of the root. The root's
    /// mantissa is below `2^(64 N)` and the radicand's at least half that, so `error` units become
    /// at most `2 error`. The root itself is cut.
    pub(super) fn sqrt(self) -> Self {
        if !self.is_normal() {
            return Self::UNKNOWN;
        }
        let exponent = self.exponent - Self::BITS;
        let (high, low, exponent) = if exponent % 2 == 0 {
            (self.mantissa, Wide::ZERO, exponent)
        } else {
            let (half, odd) = self.mantissa.shr(1);
            (half, Wide::from_top(u64::from(odd) << 63), exponent + 1)
        };
        let mantissa = Wide::sqrt(high, low);
        let error = 2 * self.error + 1;
        Self { negative: false, mantissa, exponent: exponent / 2, error }.normalized()
    }

    /// The first `bits` (at most 64 for `N = 1`, else 128) of a number that is not a multiple of
    /// their unit, with a sticky rest; `None` if the error leaves them open.
    pub(super) fn decide(&self, bits: u32) -> Option<Exact> {
        if !self.is_normal() {
            return None;
        }
        let (low, below) = self.mantissa.sub_small(self.error);
        let (high, above) = self.mantissa.add_small(self.error);
        let significand = low.top_128() >> (128 - bits);
        (!below && !above && significand == high.top_128() >> (128 - bits)).then(|| Exact {
            negative: self.negative,
            significand,
            exponent: self.top() - bits as i32,
            sticky: true,
        })
    }

    /// The first `bits` bits of a midpoint that errs downward only, if at all: an integer, its power
    /// of two, and whether something is left.
    pub(super) fn cut(&self, bits: u32) -> (u128, i32, bool) {
        let significand = self.mantissa.top_128() >> (128 - bits);
        let rest = self.error != 0 || !self.mantissa.shl(bits).is_zero();
        (significand, self.top() - bits as i32, rest)
    }

    /// Mantissa, exponent and error.
    #[cfg(test)]
    pub(super) fn parts(&self) -> (Wide<N>, i32, u64) {
        (self.mantissa, self.exponent, self.error)
    }

    /// Bits after the first `skip` that are all zeros or all ones, as far as the ball knows them:
    /// how close the number is to one of `skip` bits.
    #[cfg(test)]
    pub(super) fn run(&self, skip: u32) -> Option<u32> {
        let error = 64 - self.error.leading_zeros();
        let rest = self.mantissa.shl(skip);
        let inverse = Wide::MAX.sub(rest).0;
        let run = rest.leading_zeros().max(inverse.leading_zeros());
        (self.is_known() && skip + run + error + 1 < Wide::<N>::BITS).then_some(run)
    }
}

/// `error / 2^places`, rounded up.
#[inline]
const fn shifted(error: u64, places: u32) -> u64 {
    if error == 0 {
        0
    } else if places >= 64 {
        1
    } else {
        ((error - 1) >> places) + 1
    }
}

impl<const N: usize> From<Number> for Ball<N> {
    #[inline]
    fn from(x: Number) -> Self {
        Self::new(x.significand, x.exponent).negate_if(x.negative)
    }
}

impl<const N: usize> Neg for Ball<N> {
    type Output = Self;

    #[inline]
    fn neg(self) -> Self {
        self.negate_if(true)
    }
}

impl<const N: usize> Add for Ball<N> {
    type Output = Self;

    /// The one with the smaller unit is cut to the other's: its error in those units is rounded up,
    /// and a unit added if a one was cut off. A carry cuts once more.
    fn add(self, other: Self) -> Self {
        if !self.is_known() || !other.is_known() {
            return Self::UNKNOWN;
        }
        if self.is_zero() {
            return other;
        }
        if other.is_zero() {
            return self;
        }
        let (a, b) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let places = a.exponent.abs_diff(b.exponent);
        let (small, lost) = b.mantissa.shr(places);
        let error = a.error + shifted(b.error, places) + u64::from(lost);
        if a.negative != b.negative {
            let (mantissa, negative) = a.mantissa.sub(small);
            let mantissa = if negative { Wide::ZERO.sub(mantissa).0 } else { mantissa };
            return Self { negative: a.negative != negative, mantissa, error, ..a }.normalized();
        }
        let (mut mantissa, carry) = a.mantissa.add(small);
        let (mut exponent, mut error) = (a.exponent, error);
        if carry {
            let (half, lost) = mantissa.shr(1);
            mantissa = half;
            mantissa.0[N - 1] |= 1 << 63;
            exponent += 1;
            error = shifted(error, 1) + u64::from(lost);
        }
        Self { mantissa, exponent, error, ..a }.normalized()
    }
}

impl<const N: usize> Sub for Ball<N> {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl<const N: usize> Mul for Ball<N> {
    type Output = Self;

    /// `|xy - ab| <= |a| e_b + |b| e_a + e_a e_b`; with mantissas below `2^(64 N)` that is at most
    /// `e_a + e_b + e_a e_b / 2^64` units of the product's upper half.
    #[inline]
    fn mul(self, other: Self) -> Self {
        if !self.is_known() || !other.is_known() {
            return Self::UNKNOWN;
        }
        if self.is_zero() || other.is_zero() {
            return Self::ZERO;
        }
        let (mut mantissa, low) = self.mantissa.mul(other.mantissa);
        let mut exponent = self.exponent + other.exponent + Self::BITS;
        let both = u128::from(self.error) * u128::from(other.error);
        let mut error = self.error + other.error + (both >> 64) as u64 + u64::from(both != 0);
        let mut lost = low;
        // Two mantissas with their top bits set give one with the first or the second set; of
        // shorter ones the low half is not worth a place.
        if mantissa.top() >> 62 == 1 {
            mantissa = mantissa.shl(1);
            mantissa.0[0] |= low.top() >> 63;
            lost = low.shl(1);
            exponent -= 1;
            error *= 2;
        }
        error += u64::from(!lost.is_zero());
        Self { negative: self.negative != other.negative, mantissa, exponent, error }.normalized()
    }
}

impl<const N: usize> Div for Ball<N> {
    type Output = Self;

    /// `|x / y - a / b| <= (e_a + |a / b| e_b) / |y|`. The divisor's mantissa is at least half of
    /// `2^(64 N)`, its error at most `2^-13` of it and the quotient's mantissa below `2^(64 N)`, so
    /// that this is at most `2 (e_a + e_b) (1 + 2^-12)` units. A divisor with a shorter mantissa
    /// gives nothing.
    fn div(self, other: Self) -> Self {
        if !self.is_known() || !other.is_normal() {
            return Self::UNKNOWN;
        }
        if self.is_zero() {
            return Self::ZERO;
        }
        let mut exponent = self.exponent - other.exponent - Self::BITS;
        let (high, low) = if self.mantissa.cmp(&other.mantissa).is_lt() {
            (self.mantissa, Wide::ZERO)
        } else {
            exponent += 1;
            let (half, odd) = self.mantissa.shr(1);
            (half, Wide::from_top(u64::from(odd) << 63))
        };
        let (mantissa, lost) = Wide::div(high, low, other.mantissa);
        let errors = self.error + other.error;
        let error = 2 * errors + shifted(errors, 11) + u64::from(lost);
        Self { negative: self.negative != other.negative, mantissa, exponent, error }.normalized()
    }
}
