//! What a function is at a dyadic number, from an arbitrary-precision crate: the first 80 bits and
//! the knowledge that more follow.
//!
//! 450 bits are computed and only 380 of them believed; the 300 after the first 80 must not be all
//! zeros or all ones. Huge and tiny arguments never reach the crate where the answer is plain.

use dashu_float::FBig;
use dashu_float::round::mode::Zero;
use dashu_int::{IBig, UBig};
use exmy::math::elementary::Function;

use crate::common::Num;

type Real = FBig<Zero, 2>;

const BITS: usize = 450;
/// Bits kept, one more to come for the sticky rest.
const KEPT: usize = 80;
const BELIEVED: usize = 380;

fn real(negative: bool, x: Num) -> Real {
    let integer = IBig::from(x.integer);
    let integer = if negative { -integer } else { integer };
    Real::from_parts(integer, x.exponent as isize).with_precision(BITS).value()
}

fn pi() -> Real {
    Real::pi(BITS)
}

fn power_of_two(k: isize) -> Real {
    Real::from_parts(IBig::ONE, k).with_precision(BITS).value()
}

/// `x` modulo 2, exactly, as a number of half turns.
fn turns(x: &Real) -> Real {
    let repr = x.repr();
    let (integer, exponent) = (repr.significand().clone(), repr.exponent());
    if exponent > 0 {
        return Real::ZERO.with_precision(BITS).value();
    }
    let modulus = IBig::ONE << (1 - exponent) as usize;
    Real::from_parts(integer % modulus, exponent).with_precision(BITS).value()
}

/// A function at a finite number in its domain at which it is irrational.
fn value(function: Function, x: &Real) -> Real {
    use Function as F;
    let one = power_of_two(0);
    let two = power_of_two(1);
    match function {
        F::Exp => x.exp(),
        F::Exp2 => (x * two.ln()).exp(),
        F::Expm1 => x.exp_m1(),
        F::Log => x.ln(),
        F::Log2 => x.ln() / two.ln(),
        F::Log1p => x.ln_1p(),
        F::Softplus if *x > Real::ZERO => x + (-x).exp().ln_1p(),
        F::Softplus => x.exp().ln_1p(),
        F::Sin => x.sin(),
        F::Cos => x.cos(),
        F::Tan => x.tan(),
        F::Asin => x.asin(),
        F::Acos => x.acos(),
        F::Atan => x.atan(),
        F::Sinh => x.sinh(),
        F::Cosh => x.cosh(),
        F::Tanh => x.tanh(),
        F::Asinh => x.asinh(),
        F::Acosh => x.acosh(),
        F::Atanh => x.atanh(),
        F::SinPi => (turns(x) * pi()).sin(),
        F::CosPi => (turns(x) * pi()).cos(),
        F::TanPi => (turns(x) * pi()).tan(),
        F::AsinPi => x.asin() / pi(),
        F::AcosPi => {
            // asin is the one that is exact near 0.
            (one / two - x.asin() / pi()).with_precision(BITS).value()
        }
        F::AtanPi => x.atan() / pi(),
        F::Atan2 | F::Atan2Pi | F::Pow => unreachable!("two operands"),
    }
}

/// Sign and first bits of a result, with a last bit set for the rest that follows.
pub(crate) fn unary(function: Function, negative: bool, x: Num) -> (bool, Num) {
    use Function as F;
    let top = x.exponent + 128 - x.integer.leading_zeros() as i32;
    let vast = (false, Num::new(1, 1 << 24));
    let minute = (false, Num::new(1, -(1 << 24)));
    // |x| >= 128: e^-x is below 2^-184, which no format under test sees beside x or 1.
    if top > 7 {
        match (function, negative) {
            (F::Expm1, true) | (F::Tanh, _) => {
                return (negative, Num::new(u128::MAX >> 16, -112));
            }
            (F::Softplus, false) => return (false, Num::new(x.integer << 60 | 1, x.exponent - 60)),
            _ => {}
        }
    }
    // |x| >= 2^20: beyond e^(2^20) lies no format under test.
    if top > 20 {
        match (function, negative) {
            (F::Exp | F::Exp2 | F::Softplus, true) => return minute,
            (F::Exp | F::Exp2 | F::Expm1 | F::Cosh, false) | (F::Cosh, true) => return vast,
            (F::Sinh, _) => return (negative, vast.1),
            _ => {}
        }
    }
    first_bits(&value(function, &real(negative, x)))
}

/// The same of the angle of a point.
pub(crate) fn binary(function: Function, y: (bool, Num), x: (bool, Num)) -> (bool, Num) {
    let angle = real(y.0, y.1).atan2(&real(x.0, x.1));
    first_bits(&if function == Function::Atan2 { angle } else { angle / pi() })
}

/// The same of a power of a positive number, which is no number of 80 bits.
pub(crate) fn power(x: Num, y: (bool, Num)) -> (bool, Num) {
    let exponent = real(y.0, y.1) * real(false, x).ln();
    let rough = exponent.to_f64().value();
    if rough.abs() > 1e6 {
        return (false, Num::new(1, if rough > 0.0 { 1 << 24 } else { -(1 << 24) }));
    }
    first_bits(&exponent.exp())
}

fn first_bits(value: &Real) -> (bool, Num) {
    let repr = value.repr();
    let (significand, exponent) = (repr.significand(), repr.exponent());
    let negative = *significand < IBig::ZERO;
    let magnitude =
        UBig::try_from(if negative { -significand } else { significand.clone() }).unwrap();
    use dashu_int::ops::BitTest;
    let places = BITS as isize - magnitude.bit_len() as isize;
    let (magnitude, exponent) = if places >= 0 {
        (magnitude << places as usize, exponent - places)
    } else {
        (magnitude >> (-places) as usize, exponent - places)
    };
    let believed = magnitude.clone() >> (BITS - BELIEVED);
    let rest = believed.clone() & ((UBig::ONE << (BELIEVED - KEPT)) - UBig::ONE);
    let ones = (UBig::ONE << (BELIEVED - KEPT)) - UBig::ONE;
    assert!(rest != UBig::ZERO && rest != ones, "the oracle cannot decide {value:?}");
    let kept = u128::try_from(magnitude >> (BITS - KEPT)).unwrap();
    let exponent = exponent as i32 + (BITS - KEPT) as i32;
    (negative, Num::new(kept << 1 | 1, exponent - 1))
}

/// A bound for the constants of the crate: `floor(constant * 2^bits)` from another derivation is
/// compared in the library's own tests.
#[test]
fn the_oracle_knows_literals() {
    // The first 80 bits of e, pi and ln 2 from their published hexadecimal expansions.
    let hex = |text: &str| u128::from_str_radix(text, 16).unwrap();
    let check = |value: Real, digits: &str, exponent: i32| {
        let (_, num) = first_bits(&value);
        assert_eq!((num.integer >> 1, num.exponent + 1), (hex(digits), exponent));
    };
    check(power_of_two(0).exp(), "ADF85458A2BB4A9AAFDC", -78);
    check(pi(), "C90FDAA22168C234C4C6", -78);
    check(power_of_two(1).ln(), "B17217F7D1CF79ABC9E3", -80);
    check(power_of_two(0).atan() * power_of_two(2), "C90FDAA22168C234C4C6", -78);
    check(power_of_two(0).sin(), "D76AA47848677020C6E9", -80);
}
