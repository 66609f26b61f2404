//! Enclosures of the logarithms and the inverse hyperbolic functions.
//!
//! `log x = k ln 2 + log m` with `m` between `sqrt(1/2)` and `sqrt(2)`, and with `d = m - 1`,
//! `s = d / (2 + d)`: `log(1 + d) = 2 atanh(s) = 2 s (1 + s^2 (1/3 + s^2/5 + ...))`. There
//! `|s| <= 0.1716` and `s^2 <= 0.0295`. Near 1, where `k = 0`, nothing cancels: `d` is exact if `x`
//! is, and the result relatively as exact.

use super::ball::Ball;
use super::constants::{LN_2, LOG2_E};
use super::number::Number;
use super::series;

/// `floor(2^64 / sqrt(2))`.
const ROOT: u64 = 0xB504_F333_F9DE_6484;

/// `log(1 + d)` for `-0.2929 <= d <= 0.4143`.
fn small_log1p<const N: usize>(d: Ball<N>) -> Ball<N> {
    let s = d / (d + Ball::new(2, 0));
    let u = s * s;
    let s = s.scale(1);
    s + s * u * series::sum(u, &series::ODD, false)
}

/// `k` and `log m` of a positive `x = 2^k m`.
fn reduced<const N: usize>(x: Ball<N>) -> (i32, Ball<N>) {
    if !x.is_normal() {
        return (0, Ball::UNKNOWN);
    }
    // The mantissa as a fraction is in [1/2, 1): doubled where it is below sqrt(1/2).
    let k = if x.leading() < ROOT { x.top() - 1 } else { x.top() };
    (k, small_log1p(x.scale(-k) - Ball::one()))
}

fn integer<const N: usize>(k: i32) -> Ball<N> {
    Ball::new(k.unsigned_abs().into(), 0).negate_if(k < 0)
}

pub(super) fn log<const N: usize>(x: Ball<N>) -> Ball<N> {
    let (k, rest) = reduced(x);
    integer(k) * Ball::constant(&LN_2) + rest
}

pub(super) fn log2<const N: usize>(x: Ball<N>) -> Ball<N> {
    let (k, rest) = reduced(x);
    integer(k) + rest * Ball::constant(&LOG2_E)
}

/// `log(1 + x)` for `x > -1`.
pub(super) fn log1p<const N: usize>(x: Ball<N>) -> Ball<N> {
    // Below 1/4 in magnitude.
    if x.top() <= -2 { small_log1p(x) } else { log(x + Ball::one()) }
}

/// `log(x + sqrt(x^2 + 1)) = log1p(x + x^2 / (1 + sqrt(1 + x^2)))` of `|x|`.
pub(super) fn asinh<const N: usize>(x: Number) -> Ball<N> {
    let (a, one) = (Ball::<N>::from(x.abs()), Ball::one());
    let square = a * a;
    let root = (square + one).sqrt();
    log1p(a + square / (root + one)).negate_if(x.negative)
}

/// `log(x + sqrt(x^2 - 1)) = log1p(y + sqrt(y (x + 1)))` with `y = x - 1`, `x > 1`.
pub(super) fn acosh<const N: usize>(x: Number) -> Ball<N> {
    let (x, one) = (Ball::<N>::from(x), Ball::one());
    let y = x - one;
    log1p(y + (y * (x + one)).sqrt())
}

/// `log((1 + x) / (1 - x)) / 2 = log1p(2 x / (1 - x)) / 2` of `|x| < 1`.
pub(super) fn atanh<const N: usize>(x: Number) -> Ball<N> {
    let a = Ball::<N>::from(x.abs());
    log1p(a.scale(1) / (Ball::one() - a)).scale(-1).negate_if(x.negative)
}
