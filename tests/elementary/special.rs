//! The tables of special values, as literals: IEEE 754-2019, 9.2.1 with the signs of C23, F.10, and
//! P3109 Interim Report 4.0 where it differs.

use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, PI};

use exmy::format::{Format, Sign};
use exmy::math::elementary::Function;
use exmy::math::{Context, Operand};
use exmy::round::{Flags, Profile, Rounded, Rounding, Rules};

use crate::common::Num;

/// Whether the result is rational or there is none: the cases of the standards' tables, found
/// here by other means than in the crate, from the reduced fraction.
pub(crate) fn is_rational(function: Function, negative: bool, x: Num) -> bool {
    use Function as F;
    let zeros = x.integer.trailing_zeros();
    let (odd, power) = (x.integer >> zeros, x.exponent + zeros as i32);
    let one = odd == 1 && power == 0;
    let above_one = !one && power + 127 - odd.leading_zeros() as i32 >= 0;
    match function {
        F::Exp2 => power >= 0,
        F::Log => negative || one,
        F::Log2 => negative || odd == 1,
        F::Log1p => negative && (one || above_one),
        F::Asin | F::AsinPi | F::Acos | F::AcosPi | F::Atanh => one || above_one,
        F::Atan | F::AtanPi => one,
        F::Acosh => negative || !above_one,
        F::SinPi | F::CosPi => power >= -1,
        F::TanPi => power >= -2,
        _ => false,
    }
}

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;
/// `2^-60`.
const POWER: f32 = 8.673_617_4e-19;
const NONE: Flags = Flags::NONE;
const POLE: Flags = Flags::DIVIDE_BY_ZERO;
const INVALID: Flags = Flags::INVALID;
const INEXACT: Flags = Flags::INEXACT;

fn show(function: &str, operands: &[f32], rules: Rules) -> (f32, Flags) {
    let function: Function = function.parse().unwrap();
    let ctx = Context::new(Format::F32, rules);
    let Rounded { code, flags } = match *operands {
        [x] => ctx.apply(function, Operand::f32(x)),
        [y, x] => ctx.apply2(function, Operand::f32(y), Operand::f32(x)),
        _ => unreachable!(),
    }
    .unwrap();
    (f32::from_bits(code as u32), flags)
}

fn expect(function: &str, operands: &[f32], rules: Rules, expected: f32, flags: Flags) {
    let (result, raised) = show(function, operands, rules);
    let same = result.to_bits() == expected.to_bits() || result.is_nan() && expected.is_nan();
    assert!(same, "{function} of {operands:?} is {result}, not {expected}");
    assert_eq!(raised, flags, "{function} of {operands:?}");
}

#[test]
fn ieee_754_of_one_operand() {
    let table: &[(&str, f32, f32, Flags)] = &[
        ("exp", 0.0, 1.0, NONE),
        ("exp", -0.0, 1.0, NONE),
        ("exp", INF, INF, NONE),
        ("exp", -INF, 0.0, NONE),
        ("exp2", 0.0, 1.0, NONE),
        ("exp2", INF, INF, NONE),
        ("exp2", -INF, 0.0, NONE),
        ("exp2", 10.0, 1024.0, NONE),
        ("exp2", -149.0, 1e-45, NONE),
        ("exp2", 127.0, 1.701_411_8e38, NONE),
        ("expm1", 0.0, 0.0, NONE),
        ("expm1", -0.0, -0.0, NONE),
        ("expm1", INF, INF, NONE),
        ("expm1", -INF, -1.0, NONE),
        ("log", 0.0, -INF, POLE),
        ("log", -0.0, -INF, POLE),
        ("log", 1.0, 0.0, NONE),
        ("log", INF, INF, NONE),
        ("log", -1.0, NAN, INVALID),
        ("log", -INF, NAN, INVALID),
        ("log2", 0.0, -INF, POLE),
        ("log2", -0.0, -INF, POLE),
        ("log2", 1.0, 0.0, NONE),
        ("log2", 8.0, 3.0, NONE),
        ("log2", 0.125, -3.0, NONE),
        ("log2", 1e-45, -149.0, NONE),
        ("log2", -2.0, NAN, INVALID),
        ("log1p", 0.0, 0.0, NONE),
        ("log1p", -0.0, -0.0, NONE),
        ("log1p", -1.0, -INF, POLE),
        ("log1p", -1.5, NAN, INVALID),
        ("log1p", -INF, NAN, INVALID),
        ("log1p", INF, INF, NONE),
        ("softplus", INF, INF, NONE),
        ("softplus", -INF, 0.0, NONE),
        ("softplus", 0.0, LN_2, INEXACT),
        ("softplus", -0.0, LN_2, INEXACT),
        ("sin", 0.0, 0.0, NONE),
        ("sin", -0.0, -0.0, NONE),
        ("sin", INF, NAN, INVALID),
        ("cos", 0.0, 1.0, NONE),
        ("cos", -0.0, 1.0, NONE),
        ("cos", -INF, NAN, INVALID),
        ("tan", -0.0, -0.0, NONE),
        ("tan", INF, NAN, INVALID),
        ("asin", -0.0, -0.0, NONE),
        ("asin", 1.0, FRAC_PI_2, INEXACT),
        ("asin", -1.0, -FRAC_PI_2, INEXACT),
        ("asin", 1.000_000_1, NAN, INVALID),
        ("asin", INF, NAN, INVALID),
        ("acos", 1.0, 0.0, NONE),
        ("acos", -1.0, PI, INEXACT),
        ("acos", 0.0, FRAC_PI_2, INEXACT),
        ("acos", -0.0, FRAC_PI_2, INEXACT),
        ("acos", -2.0, NAN, INVALID),
        ("acos", -INF, NAN, INVALID),
        ("atan", -0.0, -0.0, NONE),
        ("atan", INF, FRAC_PI_2, INEXACT),
        ("atan", -INF, -FRAC_PI_2, INEXACT),
        ("atan", 1.0, FRAC_PI_4, INEXACT),
        ("sinh", -0.0, -0.0, NONE),
        ("sinh", INF, INF, NONE),
        ("sinh", -INF, -INF, NONE),
        ("cosh", 0.0, 1.0, NONE),
        ("cosh", -0.0, 1.0, NONE),
        ("cosh", -INF, INF, NONE),
        ("tanh", -0.0, -0.0, NONE),
        ("tanh", INF, 1.0, NONE),
        ("tanh", -INF, -1.0, NONE),
        ("asinh", -0.0, -0.0, NONE),
        ("asinh", -INF, -INF, NONE),
        ("acosh", 1.0, 0.0, NONE),
        ("acosh", INF, INF, NONE),
        ("acosh", 0.999_999_94, NAN, INVALID),
        ("acosh", 0.0, NAN, INVALID),
        ("acosh", -1.0, NAN, INVALID),
        ("acosh", -INF, NAN, INVALID),
        ("atanh", -0.0, -0.0, NONE),
        ("atanh", 1.0, INF, POLE),
        ("atanh", -1.0, -INF, POLE),
        ("atanh", 1.5, NAN, INVALID),
        ("atanh", INF, NAN, INVALID),
        ("sin_pi", 0.0, 0.0, NONE),
        ("sin_pi", -0.0, -0.0, NONE),
        ("sin_pi", 1.0, 0.0, NONE),
        ("sin_pi", -1.0, -0.0, NONE),
        ("sin_pi", 2.0, 0.0, NONE),
        ("sin_pi", -3e38, -0.0, NONE),
        ("sin_pi", 0.5, 1.0, NONE),
        ("sin_pi", 1.5, -1.0, NONE),
        ("sin_pi", -0.5, -1.0, NONE),
        ("sin_pi", -1.5, 1.0, NONE),
        ("sin_pi", 0.25, 0.707_106_77, INEXACT),
        ("sin_pi", INF, NAN, INVALID),
        ("cos_pi", -0.0, 1.0, NONE),
        ("cos_pi", 1.0, -1.0, NONE),
        ("cos_pi", -2.0, 1.0, NONE),
        ("cos_pi", 3e38, 1.0, NONE),
        ("cos_pi", 0.5, 0.0, NONE),
        ("cos_pi", -0.5, 0.0, NONE),
        ("cos_pi", 1.5, 0.0, NONE),
        ("cos_pi", INF, NAN, INVALID),
        // C23: +0 at even positive and odd negative integers, -0 at the others.
        ("tan_pi", 0.0, 0.0, NONE),
        ("tan_pi", -0.0, -0.0, NONE),
        ("tan_pi", 1.0, -0.0, NONE),
        ("tan_pi", 2.0, 0.0, NONE),
        ("tan_pi", -1.0, 0.0, NONE),
        ("tan_pi", -2.0, -0.0, NONE),
        // C23: n + 1/2 is +Inf for even n, -Inf for odd n.
        ("tan_pi", 0.5, INF, POLE),
        ("tan_pi", 1.5, -INF, POLE),
        ("tan_pi", 2.5, INF, POLE),
        ("tan_pi", -0.5, -INF, POLE),
        ("tan_pi", -1.5, INF, POLE),
        ("tan_pi", 0.25, 1.0, NONE),
        ("tan_pi", 0.75, -1.0, NONE),
        ("tan_pi", 1.25, 1.0, NONE),
        ("tan_pi", -0.25, -1.0, NONE),
        ("tan_pi", -0.75, 1.0, NONE),
        ("tan_pi", INF, NAN, INVALID),
        ("asin_pi", -0.0, -0.0, NONE),
        ("asin_pi", 1.0, 0.5, NONE),
        ("asin_pi", -1.0, -0.5, NONE),
        ("asin_pi", 0.5, 0.166_666_67, INEXACT),
        ("asin_pi", 2.0, NAN, INVALID),
        ("acos_pi", 1.0, 0.0, NONE),
        ("acos_pi", -1.0, 1.0, NONE),
        ("acos_pi", 0.0, 0.5, NONE),
        ("acos_pi", 0.5, 0.333_333_34, INEXACT),
        ("acos_pi", -0.5, 0.666_666_7, INEXACT),
        ("acos_pi", 2.0, NAN, INVALID),
        ("atan_pi", -0.0, -0.0, NONE),
        ("atan_pi", 1.0, 0.25, NONE),
        ("atan_pi", -1.0, -0.25, NONE),
        ("atan_pi", INF, 0.5, NONE),
        ("atan_pi", -INF, -0.5, NONE),
        ("atan_pi", 3e38, 0.5, INEXACT),
    ];
    for &(function, x, expected, flags) in table {
        expect(function, &[x], Rules::DEFAULT, expected, flags);
    }
    for function in Function::ALL.into_iter().filter(|function| function.operands() == 1) {
        expect(&function.to_string(), &[NAN], Rules::DEFAULT, NAN, NONE);
        let signaling = f32::from_bits(0x7F80_0001);
        expect(&function.to_string(), &[signaling], Rules::DEFAULT, NAN, INVALID);
    }
}

#[test]
fn ieee_754_of_two_operands() {
    // y, x, the angle in quarters of a half turn; the axes keep the signs of zero.
    let table: &[(f32, f32, f32)] = &[
        (0.0, 0.0, 0.0),
        (-0.0, 0.0, -0.0),
        (0.0, -0.0, 4.0),
        (-0.0, -0.0, -4.0),
        (0.0, 5.0, 0.0),
        (-0.0, 5.0, -0.0),
        (0.0, -5.0, 4.0),
        (-0.0, -5.0, -4.0),
        (5.0, 0.0, 2.0),
        (5.0, -0.0, 2.0),
        (-5.0, 0.0, -2.0),
        (-5.0, -0.0, -2.0),
        (5.0, INF, 0.0),
        (-5.0, INF, -0.0),
        (5.0, -INF, 4.0),
        (-5.0, -INF, -4.0),
        (INF, 5.0, 2.0),
        (-INF, -5.0, -2.0),
        (INF, INF, 1.0),
        (-INF, INF, -1.0),
        (INF, -INF, 3.0),
        (-INF, -INF, -3.0),
        (3.0, 3.0, 1.0),
        (3.0, -3.0, 3.0),
        (-3.0, 3.0, -1.0),
        (-3.0, -3.0, -3.0),
    ];
    for &(y, x, quarters) in table {
        expect("atan2_pi", &[y, x], Rules::DEFAULT, quarters / 4.0, NONE);
        let flags = if quarters == 0.0 { NONE } else { INEXACT };
        // 2.3561945 is 3/4 pi to the nearest; the other multiples are exact ones of binary32's pi.
        let radians = match quarters.abs() {
            3.0 => 2.356_194_5_f32.copysign(quarters),
            _ => PI * (quarters / 4.0),
        };
        expect("atan2", &[y, x], Rules::DEFAULT, radians, flags);
    }
    for (y, x) in [(NAN, 1.0), (1.0, NAN), (NAN, NAN), (NAN, INF), (0.0, NAN)] {
        expect("atan2", &[y, x], Rules::DEFAULT, NAN, NONE);
    }
    let signaling = f32::from_bits(0x7F80_0001);
    expect("atan2", &[NAN, signaling], Rules::DEFAULT, NAN, INVALID);
    // A quotient beyond every format, and one that rounds to zero.
    expect("atan2", &[3e38, 1e-45], Rules::DEFAULT, FRAC_PI_2, INEXACT);
    expect("atan2", &[1e-45, 3e38], Rules::DEFAULT, 0.0, INEXACT | Flags::UNDERFLOW);
    let up = Rules::DEFAULT.with_rounding(Rounding::TowardPositive);
    expect("atan2", &[1e-45, 3e38], up, 1e-45, INEXACT | Flags::UNDERFLOW);
    // An exact quotient: its atan is just below.
    let down = Rules::DEFAULT.with_rounding(Rounding::TowardNegative);
    expect("atan2", &[3e-30, 3.0], down, 1e-30_f32.next_down(), INEXACT);
    expect("atan2", &[3.0 * POWER, 3.0], down, POWER.next_down(), INEXACT);
    expect("atan2", &[3.0 * POWER, 3.0], up, POWER, INEXACT);
    expect("atan2", &[3.0 * POWER, 3.0], Rules::DEFAULT, POWER, INEXACT);
}

#[test]
fn p3109_differs_at_poles_and_zeros() {
    let rules = Profile::P3109.rules(Format::F32);
    for (y, x) in [(0.0, 0.0), (-0.0, 0.0), (0.0, -0.0), (INF, INF), (-INF, INF), (INF, -INF)] {
        expect("atan2", &[y, x], rules, NAN, INVALID);
        expect("atan2_pi", &[y, x], rules, NAN, INVALID);
    }
    for x in [0.5, 1.5, -0.5, -1.5] {
        expect("tan_pi", &[x], rules, NAN, INVALID);
    }
    // One zero, without a sign.
    for (function, x) in [("sin_pi", -1.0), ("tan_pi", 1.0), ("sin", -0.0), ("log1p", -0.0)] {
        expect(function, &[x], rules, 0.0, NONE);
    }
    expect("atan2_pi", &[-0.0, -1.0], rules, 1.0, NONE);
    expect("atan2_pi", &[0.0, -INF], rules, 1.0, NONE);
    expect("log", &[0.0], rules, -INF, POLE);
    expect("atanh", &[-1.0], rules, -INF, POLE);
    expect("exp", &[-INF], rules, 0.0, NONE);
    expect("tanh", &[-INF], rules, -1.0, NONE);
    expect("softplus", &[-INF], rules, 0.0, NONE);
}

#[test]
fn targets_without_infinity_or_nan_follow_their_rules() {
    let log_of_zero =
        |to: Format, rules: Rules| Context::new(to, rules).log(Operand::f32(0.0)).unwrap();
    let fnuz = log_of_zero(Format::E4M3FNUZ, Rules::DEFAULT);
    assert_eq!((fnuz.code, fnuz.flags), (0x80, POLE | INVALID));
    let saturated = log_of_zero(Format::E4M3FN, Profile::OcpSat.rules(Format::E4M3FN));
    assert_eq!((saturated.code, saturated.flags), (0xFE, POLE | Flags::SATURATED));
    let extended = Format::p3109(8, 3, true, true).unwrap();
    assert_eq!(log_of_zero(extended, Profile::P3109.rules(extended)).code, 0xFF);
    let finite = Context::new(Format::E2M1, Rules::DEFAULT).log(Operand::f32(-1.0)).unwrap();
    assert_eq!((finite.code, finite.flags), (0x7, INVALID));
}

/// Results beyond every range and next to a known number, at operands no wider number could hold.
#[test]
fn extreme_operands() {
    let by = |mode| Rules::DEFAULT.with_rounding(mode);
    let over = INEXACT | Flags::OVERFLOW;
    let under = INEXACT | Flags::UNDERFLOW;
    expect("exp", &[3e38], by(Rounding::TiesToEven), INF, over);
    expect("exp", &[3e38], by(Rounding::TowardZero), f32::MAX, over | Flags::SATURATED);
    expect("exp", &[-3e38], by(Rounding::TiesToEven), 0.0, under);
    expect("exp", &[-3e38], by(Rounding::TowardPositive), 1e-45, under);
    expect("exp2", &[3e38], by(Rounding::TiesToEven), INF, over);
    expect("exp2", &[4_194_304.0], by(Rounding::TiesToEven), INF, over);
    expect("exp2", &[128.0], by(Rounding::TiesToEven), INF, over);
    expect("exp2", &[-150.0], by(Rounding::TiesToEven), 0.0, under);
    expect("sinh", &[-3e38], by(Rounding::TiesToEven), -INF, over);
    expect("cosh", &[-3e38], by(Rounding::TiesToEven), INF, over);
    expect("expm1", &[-3e38], by(Rounding::TiesToEven), -1.0, INEXACT);
    expect("expm1", &[-3e38], by(Rounding::TowardZero), -1.0_f32.next_down(), INEXACT);
    expect("softplus", &[3e38], by(Rounding::TowardPositive), 3e38_f32.next_up(), INEXACT);
    expect("softplus", &[-3e38], by(Rounding::TiesToEven), 0.0, under);
    expect("tanh", &[3e38], by(Rounding::TiesToEven), 1.0, INEXACT);
    expect("tanh", &[3e38], by(Rounding::TowardNegative), 1.0_f32.next_down(), INEXACT);
    let tiny = 1e-38;
    expect("exp", &[tiny], by(Rounding::TowardPositive), 1.0_f32.next_up(), INEXACT);
    expect("exp", &[-tiny], by(Rounding::TiesToEven), 1.0, INEXACT);
    expect("exp", &[-tiny], by(Rounding::TowardNegative), 1.0_f32.next_down(), INEXACT);
    expect("cos", &[tiny], by(Rounding::TowardZero), 1.0_f32.next_down(), INEXACT);
    expect("sin", &[1e-20], by(Rounding::TowardZero), 1e-20_f32.next_down(), INEXACT);
    expect("tan", &[1e-20], by(Rounding::TowardPositive), 1e-20_f32.next_up(), INEXACT);
    expect("expm1", &[-1e-20], by(Rounding::TowardPositive), -1e-20_f32.next_down(), INEXACT);
    expect("log1p", &[-1e-20], by(Rounding::TowardNegative), -1e-20_f32.next_up(), INEXACT);
    expect("sin", &[1e-45], by(Rounding::TowardZero), 0.0, under);
    // binary64 reaches 2^1024: the largest number's sine, as C libraries have it.
    let ctx = Context::new(Format::F64, Rules::DEFAULT);
    let sine = ctx.sin(Operand::f64(f64::MAX)).unwrap();
    assert_eq!(sine.code, 0x3F74_52FC_98B3_4E97);
    let tangent = ctx.tan(Operand::f64(1e22)).unwrap();
    assert_eq!(f64::from_bits(tangent.code), -1.628_778_225_606_898_8);
}

#[test]
fn subnormal_operands_are_read_by_the_rules() {
    let rules = Rules::DEFAULT.with_operands(exmy::round::Operands::Zero);
    expect("log", &[1e-45], rules, -INF, POLE);
    expect("sin", &[-1e-45], rules, -0.0, NONE);
    expect("atan2_pi", &[1e-45, -1e-45], rules, 1.0, NONE);
}

#[test]
fn softplus_of_zero_does_not_depend_on_the_zero_s_format() {
    for bias in [-100, 0, 100] {
        let from = Format::builder(Sign::Magnitude, 3, 2).bias(bias).build().unwrap();
        let ctx = Context::new(Format::F32, Rules::DEFAULT);
        let rounded = ctx.softplus(Operand::new(from, 0)).unwrap();
        assert_eq!((rounded.code, rounded.flags), (0x3F31_7218, INEXACT));
    }
}
