//! Enclosures of exp, exp2, expm1, softplus and the hyperbolic functions: `e^x = 2^k (1 + q)`.
//!
//! With `k` the integer nearest to `x / ln 2`, `r = x - k ln 2` is at most `ln 2 / 2 + 2^-32` in
//! magnitude, and `q = e^r - 1 = r + r^2 (1/2! + r/3! + ...)` is relatively as exact as `r`, which
//! is `x` itself if `k = 0`.

use super::ball::Ball;
use super::constants::{LN_2, LOG2_E};
use super::number::Number;
use super::{logarithm, series};

/// Magnitudes from here on give results beyond every format: `2^22 / ln 2` is above `2^22`, and the
/// largest bias, field and precision together are below `2^21`.
pub(super) const HUGE: u32 = 1 << 22;

/// `e^r - 1` for `|r| <= 0.35`.
fn small_expm1<const N: usize>(r: Ball<N>) -> Ball<N> {
    r + r * r * series::sum(r.abs(), &series::EXP, r.negative)
}

/// `k` and `q`, `|x| < HUGE`.
fn reduced<const N: usize>(x: Ball<N>) -> (i32, Ball<N>) {
    // |x| in units of 2^-40, below 2^62, times 1 / ln 2 in units of 2^-63: k is off by less than
    // 2^-38 from the nearest integer's half.
    let product = u128::from(x.estimate(-40)) * u128::from(LOG2_E.fraction.top());
    let k = ((product >> 102) as u32).div_ceil(2) as i32;
    if k == 0 {
        return (0, small_expm1(x));
    }
    let multiple = Ball::new(k as u64, 0) * Ball::constant(&LN_2);
    let r = (x.abs() - multiple).negate_if(x.negative);
    (if x.negative { -k } else { k }, small_expm1(r))
}

pub(super) fn exp<const N: usize>(x: Ball<N>) -> Ball<N> {
    let (k, q) = reduced(x);
    (Ball::one() + q).scale(k)
}

pub(super) fn expm1<const N: usize>(x: Ball<N>) -> Ball<N> {
    match reduced(x) {
        (0, q) => q,
        (k, q) => (Ball::one() + q).scale(k) - Ball::one(),
    }
}

/// `x = k + f` exactly, and `2^f = e^(f ln 2)`.
pub(super) fn exp2<const N: usize>(x: Number) -> Ball<N> {
    let (whole, fraction, unit) = x.split(0);
    let fraction = Ball::<N>::new(fraction, unit);
    let (k, fraction) = if fraction.top() < 0 {
        (whole as i32, fraction)
    } else {
        (whole as i32 + 1, fraction - Ball::one())
    };
    let q = small_expm1((fraction * Ball::constant(&LN_2)).negate_if(x.negative));
    (Ball::one() + q).scale(if x.negative { -k } else { k })
}

/// `log(1 + e^x)`, for positive `x` as `x + log(1 + e^-x)`.
pub(super) fn softplus<const N: usize>(x: Ball<N>) -> Ball<N> {
    if x.negative { logarithm::log1p(exp(x)) } else { x + logarithm::log1p(exp(-x)) }
}

/// `(e^x - e^-x) / 2 = (E + E / (E + 1)) / 2` with `E = e^x - 1`.
pub(super) fn sinh<const N: usize>(x: Ball<N>) -> Ball<N> {
    let e = expm1(x.abs());
    (e + e / (e + Ball::one())).scale(-1).negate_if(x.negative)
}

pub(super) fn cosh<const N: usize>(x: Ball<N>) -> Ball<N> {
    let e = exp(x.abs());
    (e + Ball::one() / e).scale(-1)
}

/// `E / (E + 2)` with `E = e^2x - 1`.
pub(super) fn tanh<const N: usize>(x: Ball<N>) -> Ball<N> {
    let e = expm1(x.abs().scale(1));
    (e / (e + Ball::new(2, 0))).negate_if(x.negative)
}
