//! Enclosures of the inverse circular functions, all of them the angle of a point.
//!
//! In the first octant, `y <= x`: `atan(y/x) = atan(c) + atan(w)` with `c = i/4` nearest to `y/x`
//! and `w = (y/x - c) / (1 + c y/x) = (4 y - i x) / (4 x + i y)`, `|w| <= 1/8 + 2^-60`. Then
//! `atan(w) = w - w u (1/3 - u/5 + ...)` with `u = w^2`.

use super::ball::Ball;
use super::constants::{ATAN_HALF, ATAN_QUARTER, ATAN_THREE_QUARTERS, INVERSE_PI, PI};
use super::number::Number;
use super::series;

/// The angle of `(x, y)` in radians, both positive.
fn first_quadrant<const N: usize>(y: Ball<N>, x: Ball<N>) -> Ball<N> {
    if y.compare_magnitude(&x).is_gt() {
        return Ball::constant(&PI).scale(-1) - octant(x, y);
    }
    octant(y, x)
}

fn octant<const N: usize>(y: Ball<N>, x: Ball<N>) -> Ball<N> {
    let (i, center) = match nearest_quarter(&y, &x) {
        0 => return small_atan(y / x),
        1 => (1, &ATAN_QUARTER),
        2 => (2, &ATAN_HALF),
        3 => (3, &ATAN_THREE_QUARTERS),
        _ => (4, &PI),
    };
    let center = Ball::constant(center);
    let factor = Ball::new(i, -2);
    let w = (y - factor * x) / (x + factor * y);
    if i == 4 { center.scale(-2) + small_atan(w) } else { center + small_atan(w) }
}

/// The integer nearest to `4 y / x`, up to an error of `2^-60`; `y <= x`.
fn nearest_quarter<const N: usize>(y: &Ball<N>, x: &Ball<N>) -> u64 {
    match x.top() - y.top() {
        places @ 0..4 => {
            let eighths =
                ((u128::from(y.leading()) << 3 >> places) / u128::from(x.leading())) as u64;
            eighths.div_ceil(2)
        }
        _ => 0,
    }
}

fn small_atan<const N: usize>(w: Ball<N>) -> Ball<N> {
    let u = w * w;
    w - w * u * series::sum(u, &series::ODD, true)
}

/// The angle of `(x, y)` in radians, neither zero.
pub(super) fn angle<const N: usize>(y: Ball<N>, x: Ball<N>) -> Ball<N> {
    if !y.is_normal() || !x.is_normal() {
        return Ball::UNKNOWN;
    }
    let first = first_quadrant(y.abs(), x.abs());
    let angle = if x.negative { Ball::constant(&PI) - first } else { first };
    angle.negate_if(y.negative)
}

/// In units of half turns, as the Pi variants count.
pub(super) fn half_turns<const N: usize>(radians: Ball<N>) -> Ball<N> {
    radians * Ball::constant(&INVERSE_PI)
}

pub(super) fn atan<const N: usize>(x: Number) -> Ball<N> {
    angle(x.into(), Ball::one())
}

/// `sqrt(1 - x^2)` for `|x| < 1`.
fn complement<const N: usize>(x: Number) -> Ball<N> {
    let (a, one) = (Ball::<N>::from(x), Ball::one());
    ((one - a) * (one + a)).sqrt()
}

pub(super) fn asin<const N: usize>(x: Number) -> Ball<N> {
    angle(x.into(), complement(x))
}

pub(super) fn acos<const N: usize>(x: Number) -> Ball<N> {
    angle(complement(x), x.into())
}
