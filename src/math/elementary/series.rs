//! The power series behind every function: `c_0 +- c_1 u + c_2 u^2 +- ...` by Horner's rule in
//! fixed point, with one proof for all of them.

use super::ball::Ball;
use crate::math::wide::Wide;

/// Coefficients `0 < c_k <= 1/2`, descending: `floor(2^512 c_k)`, and the zero bits above each.
pub(super) struct Coefficients<const K: usize> {
    values: [Wide<8>; K],
    zeros: [u16; K],
}

const HALF: Wide<8> = Wide::from_top(1 << 63);

impl<const K: usize> Coefficients<K> {
    const fn with_zeros(values: [Wide<8>; K]) -> Self {
        let mut zeros = [0; K];
        let mut k = 0;
        while k < K {
            zeros[k] = values[k].leading_zeros() as u16;
            k += 1;
        }
        Self { values, zeros }
    }

    /// `1 / (first + step k)!`. Rounding down after each division is rounding down once:
    /// `floor(floor(x / a) / b) = floor(x / (a b))`.
    const fn inverse_factorials(first: u64, step: u64) -> Self {
        let mut values = [HALF; K];
        let (mut k, mut factor, mut value) = (0, 2, HALF);
        while k < K {
            while factor < first + step * k as u64 {
                factor += 1;
                value = value.div_small(factor);
            }
            values[k] = value;
            k += 1;
        }
        Self::with_zeros(values)
    }

    /// `1 / (2 k + 3)`. An odd number does not divide `2^512`, so the quotient of `2^512 - 1` is
    /// the same.
    const fn inverse_odd() -> Self {
        let mut values = [HALF; K];
        let mut k = 0;
        while k < K {
            values[k] = Wide::MAX.div_small(2 * k as u64 + 3);
            k += 1;
        }
        Self::with_zeros(values)
    }
}

/// `(e^u - 1 - u) / u^2 = 1/2! + u/3! + ...`
pub(super) static EXP: Coefficients<90> = Coefficients::inverse_factorials(2, 1);
/// `(1 - cos sqrt(u)) / u = 1/2! - u/4! + ...`
pub(super) static COS: Coefficients<52> = Coefficients::inverse_factorials(2, 2);
/// `(1 - sin sqrt(u) / sqrt(u)) / u = 1/3! - u/5! + ...`
pub(super) static SIN: Coefficients<52> = Coefficients::inverse_factorials(3, 2);
/// `(atanh(s) / s - 1) / u = 1/3 + u/5 + ...` with `u = s^2`; alternating, the same of
/// `1 - atan(s) / s`.
pub(super) static ODD: Coefficients<108> = Coefficients::inverse_odd();

/// `c_0 + c_1 u + c_2 u^2 + ...` for `0 <= u`, the signs alternating if `alternating`.
///
/// For `u <= 0.617` alternating and `u <= 0.347` otherwise, the most that any function needs. In
/// units of `2^-W`, `W = 64 N`, with `t` the fixed-point `u`, off by at most `e <= 2^50`, so that
/// `t <= 0.62` and `t <= 0.35`:
///
/// * The first omitted term, of index `n`, is below a unit, for `t < 2^-z` and `c_n < 2^-zeros`
///   with `z n + zeros >= W`. Each further one is at most 0.62 of the one before, so all omitted
///   ones together are below `1 / (1 - 0.62) < 3` units.
/// * A step of Horner's rule cuts `c_k` and the product, 2 units. It passes on at most 0.62 of the
///   error before it, and adds `e` times a value below 1. Altogether that is at most
///   `(2 + e) / (1 - 0.62) < 6 + 3 e`.
/// * If the signs alternate, every value lies between 0 and the cut `c_k`. For the product is at
///   most the value before it, which is at most the cut `c_(k+1) <= c_k`; so no difference is
///   negative. Otherwise every value is at most `c_0 + c_1 0.35 / (1 - 0.35) < 0.7`, so none
///   overflows.
pub(super) fn sum<const N: usize, const K: usize>(
    u: Ball<N>,
    coefficients: &Coefficients<K>,
    alternating: bool,
) -> Ball<N> {
    let Some((t, error)) = u.to_fraction() else { return Ball::UNKNOWN };
    let zeros = t.leading_zeros();
    let mut terms = 1;
    while terms < K && zeros * terms as u32 + u32::from(coefficients.zeros[terms]) < Wide::<N>::BITS
    {
        terms += 1;
    }
    if terms == K {
        return Ball::UNKNOWN;
    }
    let mut value = Wide::leading(&coefficients.values[terms - 1]);
    for coefficient in coefficients.values[..terms - 1].iter().rev() {
        let (product, _) = value.mul(t);
        let coefficient = Wide::leading(coefficient);
        value = if alternating { coefficient.sub(product).0 } else { coefficient.add(product).0 };
    }
    Ball::from_fraction(value, 9 + 3 * error)
}
