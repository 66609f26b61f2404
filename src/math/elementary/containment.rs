//! The promise of balls and constants, checked with an arbitrary-precision crate: the real number
//! lies within.

extern crate std;

use dashu_float::FBig;
use dashu_float::round::mode::Zero;
use dashu_int::{IBig, UBig};

use super::ball::{Ball, Constant};
use super::number::Number;
use super::{Function, constants, enclose, near, special};
use crate::format::Value;
use crate::math::wide::Wide;
use crate::random::{Philox, Stream};
use crate::round::Standard;

type Real = FBig<Zero, 2>;

const BITS: usize = 1800;

fn integer<const N: usize>(wide: Wide<N>) -> UBig {
    wide.0.iter().rev().fold(UBig::ZERO, |sum, word| (sum << 64) + UBig::from(*word))
}

fn real(negative: bool, integer: UBig, exponent: i32) -> Real {
    let integer = IBig::from(integer);
    let integer = if negative { -integer } else { integer };
    Real::from_parts(integer, exponent as isize).with_precision(BITS).value()
}

fn magnitude(x: Real) -> Real {
    if x < Real::ZERO { -x } else { x }
}

/// Midpoint and error.
fn bounds<const N: usize>(ball: &Ball<N>) -> (Real, Real) {
    let (mantissa, exponent, error) = ball.parts();
    (real(ball.negative, integer(mantissa), exponent), real(false, error.into(), exponent))
}

fn contains<const N: usize>(ball: &Ball<N>, x: &Real) -> bool {
    let (middle, error) = bounds(ball);
    magnitude(middle - x) <= error
}

#[test]
fn constants_are_rounded_down() {
    let one = real(false, UBig::ONE, 0);
    let quarter = real(false, UBig::ONE, -2);
    let three = real(false, 3_u64.into(), 0);
    let check = |constant: &Constant, value: Real| {
        let scaled = value << (512 - constant.exponent as isize);
        let floor = UBig::try_from(scaled.trunc().to_int().value()).unwrap();
        assert_eq!(integer(constant.fraction), floor);
        assert_eq!(constant.fraction.top() >> 63, 1);
    };
    let ln_2 = (&one + &one).ln();
    let pi = Real::pi(BITS);
    check(&constants::LN_2, ln_2.clone());
    check(&constants::LOG2_E, &one / ln_2);
    check(&constants::PI, pi.clone());
    check(&constants::INVERSE_PI, &one / &pi);
    check(&constants::ATAN_QUARTER, quarter.atan());
    check(&constants::ATAN_HALF, (&quarter + &quarter).atan());
    check(&constants::ATAN_THREE_QUARTERS, (&quarter * three).atan());
    let words = constants::TWO_OVER_PI.iter();
    let table = words.fold(UBig::ZERO, |sum, word| (sum << 64) + UBig::from(*word));
    let scaled = ((&one + &one) / pi) << 1664;
    assert_eq!(table, UBig::try_from(scaled.trunc().to_int().value()).unwrap());
}

struct Source(Philox, u64);

impl Source {
    fn below(&mut self, bound: u64) -> u64 {
        self.1 += 1;
        self.0.below(self.1, bound)
    }

    fn number(&mut self) -> Number {
        let significand = (self.below(1 << 20) + 1) << self.below(30) | self.below(2);
        let exponent = self.below(60) as i32 - 50;
        Number { negative: self.below(2) == 1, significand, exponent }
    }
}

/// Sums, products, quotients and roots of the results of others, cancelling ones among them.
fn operations<const N: usize>(seed: u64) {
    let mut source = Source(Philox::new(seed, Stream::new("balls")), 0);
    let exact = |x: Number| real(x.negative, x.significand.into(), x.exponent);
    let mut known = 0;
    for _ in 0..2000 {
        let (x, y, z) = (source.number(), source.number(), source.number());
        let (a, b, c) = (Ball::<N>::from(x), Ball::from(y), Ball::from(z));
        let (r, s, t) = (exact(x), exact(y), exact(z));
        let (quotient, ratio) = (a / c, &r / &t);
        let nearly = quotient + a / (c + Ball::new(1, z.exponent - 30));
        let near_ratio = &ratio + &r / (&t + real(false, UBig::ONE, z.exponent - 30));
        let difference = nearly - quotient.scale(1);
        let gap = near_ratio - &ratio - &ratio;
        let pairs = [
            (a + b, &r + &s),
            (a * b, &r * &s),
            (quotient, ratio.clone()),
            (quotient * b - c, &ratio * &s - &t),
            (difference, gap.clone()),
            (difference * difference, &gap * &gap),
            (a + difference, &r + &gap),
            ((quotient * quotient + b * b).sqrt(), (&ratio * &ratio + &s * &s).sqrt()),
            ((quotient * quotient).sqrt(), magnitude(ratio.clone())),
            (quotient / (b + quotient), &ratio / (&s + &ratio)),
        ];
        for (i, (ball, value)) in pairs.iter().enumerate() {
            if ball.is_normal() {
                known += 1;
            }
            let unknown = ball.parts().2 == u64::MAX;
            assert!(unknown || contains(ball, value), "{i} of {x:?} {y:?} {z:?}: {ball:?}");
        }
    }
    assert!(known > 15_000, "{known}");
}

#[test]
fn operations_contain_the_real_number() {
    operations::<1>(1);
    operations::<2>(2);
    operations::<8>(3);
}

/// The narrow enclosures of every function contain the widest one's midpoint, whose own error is
/// far below theirs. The widest is compared with an arbitrary-precision crate in tests/elementary.
#[test]
fn narrow_enclosures_contain_wide_ones() {
    let mut source = Source(Philox::new(4, Stream::new("enclosures")), 0);
    let mut compared = 0;
    for function in Function::ALL {
        for _ in 0..600 {
            let (mut x, y) = (source.number(), source.number());
            if function != Function::Atan2 {
                x.significand &= 0xFFFF;
                x.significand |= 1;
                x.exponent += 10;
            }
            let value = |x: Number| Value::Finite {
                negative: x.negative,
                significand: x.significand,
                exponent: x.exponent,
            };
            let (case, near) = if function.operands() == 1 {
                let case = special::unary(function, value(x), Standard::Ieee754);
                (case, near::unary(function, x, 87))
            } else {
                let case = special::binary(value(x), value(y), Standard::Ieee754);
                (case, near::binary(function, x, y, 87))
            };
            if !matches!(case, special::Case::Open) || near.is_some() {
                continue;
            }
            let wide = bounds(&enclose::<8>(function, x, y)).0;
            let narrow = enclose::<1>(function, x, y);
            assert!(contains(&narrow, &wide), "{function} of {x:?} {y:?}: {narrow:?}");
            let middle = enclose::<2>(function, x, y);
            assert!(contains(&middle, &wide), "{function} of {x:?} {y:?}: {middle:?}");
            compared += 1;
        }
    }
    assert!(compared > 5000, "{compared}");
}
