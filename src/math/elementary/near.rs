//! Results next to a number known beforehand: `sin x` just below a small `x`, `e^x` just above 1,
//! `tanh x` just below 1. There a result is that number and a sticky part, whatever the width of
//! an enclosure; the rule of each function is a bound of the relative distance, below `2^-B`.
//!
//! The result is `c (1 +- d)` with `0 < d < 2^-B`, and `c = u 2^k` with an integer `u` of exactly
//! `B` bits. It lies within a unit of `c`, so it is `u` or `u - 1` and a part of a unit. `B`
//! exceeds both the number of bits that the target decides by and that of `c`. So `u - 1`, which
//! may be a bit shorter, has enough bits too.

use super::Function;
use super::ball::Ball;
use super::exponential::HUGE;
use super::number::Number;
use crate::round::Exact;

/// `c` and a sticky part: away from zero if `outward`, else toward it.
pub(super) fn beside(c: Number, outward: bool, bits: u32) -> Exact {
    let places = bits - c.width();
    let unit = u128::from(c.significand) << places;
    Exact {
        negative: c.negative,
        significand: if outward { unit } else { unit - 1 },
        exponent: c.exponent - places as i32,
        sticky: true,
    }
}

/// A positive result above or below the numbers of every format.
pub(super) fn extreme(large: bool) -> Exact {
    let exponent = HUGE as i32;
    let exponent = if large { exponent } else { -exponent };
    Exact { negative: false, significand: 1, exponent, sticky: true }
}

/// The result of a nonzero operand (or a zero of softplus) if it is next to a known number or out
/// of every range; `bits` are what the target decides by.
pub(super) fn unary(function: Function, x: Number, bits: u32) -> Option<Exact> {
    use Function as F;
    let bits = bits.max(x.width()) + 1;
    // x is below 2^top, and small if x^2 is below 2^-bits.
    let (top, needed) = (x.top(), -(bits as i32));
    let small = 2 * top <= needed;
    let large = x.at_least(bits);
    let huge = x.at_least(HUGE);
    let one = Number { negative: x.negative, significand: 1, exponent: 0 };
    let half = Number { exponent: -1, ..one };
    let beside_one = |outward| Some(beside(one.abs(), outward, bits));
    match function {
        F::Exp | F::Exp2 if huge => Some(extreme(!x.negative)),
        F::Expm1 | F::Cosh if huge && !x.negative => Some(extreme(true)),
        F::Cosh if huge => Some(extreme(true)),
        F::Softplus if huge && x.negative => Some(extreme(false)),
        F::Sinh if huge => Some(Exact { negative: x.negative, ..extreme(true) }),
        // |e^x - 1| < 2 |x| and |2^x - 1| <= |x| for |x| <= 1.
        F::Exp | F::Exp2 if top < needed => beside_one(!x.negative),
        // |e^x - 1 - x| <= 0.72 x^2 for |x| <= 1.
        F::Expm1 if top <= needed => Some(beside(x, !x.negative, bits)),
        // The distance from -1 is e^x.
        F::Expm1 if large && x.negative => Some(beside(one, false, bits)),
        // |log(1 + x) - x| <= 0.78 x^2 for |x| <= 1/2.
        F::Log1p if top <= needed => Some(beside(x, x.negative, bits)),
        // The distance from x is log(1 + e^-x) < e^-x, and x > 1.
        F::Softplus if large && !x.negative => Some(beside(x, true, bits)),
        // Odd functions, |f(x) / x - 1| <= x^2 for |x| <= 1/2.
        F::Sin | F::Asinh | F::Tanh | F::Atan if small => Some(beside(x, false, bits)),
        F::Tan | F::Sinh | F::Asin | F::Atanh if small => Some(beside(x, true, bits)),
        // The distance from 1 is 2 / (e^2x + 1) < 2 e^-2x < 4^-x for x >= 2.
        F::Tanh if x.at_least(bits.div_ceil(2)) => Some(beside(one, false, bits)),
        // |cos x - 1| <= x^2 / 2 and, for |x| <= 1, cosh x - 1 <= x^2.
        F::Cos if small => beside_one(false),
        F::Cosh if small => beside_one(true),
        // |cos(pi x) - 1| <= pi^2 / 2 x^2 < 8 x^2.
        F::CosPi if 2 * top + 3 <= needed => beside_one(false),
        // |acos(x) / pi - 1/2| = |asin(x)| / pi <= |x| / 2.
        F::AcosPi if top <= needed => Some(beside(half.abs(), x.negative, bits)),
        // 1/2 - atan(x) / pi = atan(1 / x) / pi < 1 / (2 x), x >= 2^(top - 1).
        F::AtanPi if 1 - top <= needed => Some(beside(half, false, bits)),
        _ => None,
    }
}

/// The same of the angle of `(x, y)`.
pub(super) fn binary(function: Function, y: Number, x: Number, bits: u32) -> Option<Exact> {
    let bits = bits.max(y.width()) + 1;
    let needed = -(bits as i32);
    // |y / x| is below 2^top and above 2^(top - 2).
    let top = y.top() - x.top() + 1;
    let constant = |exponent| Number { negative: y.negative, significand: 1, exponent };
    match (function, x.negative) {
        (Function::Atan2, false) => beside_quotient(y, x, top, bits),
        // 1 - atan(|y / x|) / pi, and |1/2 - atan(|y / x|) / pi| < |x / y| / 2.
        (Function::Atan2Pi, true) if top <= needed => Some(beside(constant(0), false, bits)),
        (Function::Atan2Pi, _) if 2 - top <= needed => Some(beside(constant(-1), x.negative, bits)),
        _ => None,
    }
}

/// `atan(y / x)` next to a small quotient, `|y / x| < 2^top`: below it by less than its cube.
///
/// The quotient of the significands has at most `bits` bits before the point. Cut to `bits` bits,
/// it leaves nothing, or at least `2^-w` of a unit, where `w` is the width of `x`'s significand. So
/// its atan has the same bits if the difference is smaller than that, and one unit less if nothing
/// is left and the difference is below a unit.
fn beside_quotient(y: Number, x: Number, top: i32, bits: u32) -> Option<Exact> {
    let width = x.width();
    if 2 * top + bits as i32 + width as i32 > 0 {
        return None;
    }
    let quotient = Ball::<2>::from(y.abs()) / Ball::from(x);
    let (significand, exponent, rest) = quotient.cut(bits);
    Some(Exact {
        negative: y.negative,
        significand: if rest { significand } else { significand - 1 },
        exponent,
        sticky: true,
    })
}
