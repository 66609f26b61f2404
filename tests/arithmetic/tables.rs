//! The special cases of both standards as literals, row by row, and the families of minima and
//! maxima against their definitions.
//!
//! IEEE 754-2019 is restated in E5M2 (1 is 0x3C, infinity 0x7C, quiet NaN 0x7E, signaling 0x7D), P3109
//! Interim Report 4.0 in Binary8p3se (1 is 0x40, infinity 0x7F, NaN 0x80) and Binary8p3sf.

use std::cmp::Ordering;

use exmy::format::{Format, Sign, Specials, Value};
use exmy::math::{Context, Operand};
use exmy::round::{Flags, Overflow, Profile, Rounded, Rounding, Rules, Standard};

use crate::oracle::Random;

const NONE: Flags = Flags::NONE;
const INVALID: Flags = Flags::INVALID;
const POLE: Flags = Flags::DIVIDE_BY_ZERO;

const NAN: u64 = 0x7E;
const SNAN: u64 = 0x7D;
const MINUS_NAN: u64 = 0xFE;
const INF: u64 = 0x7C;
const MINUS_INF: u64 = 0xFC;
const MAX: u64 = 0x7B;
const ONE: u64 = 0x3C;
const MINUS_ONE: u64 = 0xBC;
const ZERO: u64 = 0;
const MINUS_ZERO: u64 = 0x80;

/// E5M2 by IEEE 754's rules.
const IEEE: Context = Context::new(Format::E5M2, Rules::DEFAULT);

const fn binary8p3(infinite: bool) -> Format {
    match Format::p3109(8, 3, true, infinite) {
        Ok(format) => format,
        Err(_) => panic!("Binary8p3 exists"),
    }
}

/// Binary8p3se by P3109's rules.
const P3109: Context = Context::new(binary8p3(true), Profile::P3109.rules(binary8p3(true)));

fn e5m2(code: u64) -> Operand {
    Operand::new(Format::E5M2, code)
}

fn p3(code: u64) -> Operand {
    Operand::new(binary8p3(true), code)
}

#[track_caller]
fn is(ours: Rounded, code: u64, flags: Flags) {
    assert_eq!((ours.code, ours.flags), (code, flags), "{:#x} is not {code:#x}", ours.code);
}

#[test]
fn divisions_by_zero() {
    is(IEEE.div(e5m2(ONE), e5m2(ZERO)), INF, POLE);
    is(IEEE.div(e5m2(ONE), e5m2(MINUS_ZERO)), MINUS_INF, POLE);
    is(IEEE.div(e5m2(MINUS_ONE), e5m2(ZERO)), MINUS_INF, POLE);
    is(IEEE.div(e5m2(INF), e5m2(ZERO)), INF, NONE);
    is(IEEE.div(e5m2(INF), e5m2(MINUS_ZERO)), MINUS_INF, NONE);
    is(IEEE.recip(e5m2(ZERO)), INF, POLE);
    is(IEEE.recip(e5m2(MINUS_ZERO)), MINUS_INF, POLE);
    is(IEEE.rsqrt(e5m2(ZERO)), INF, POLE);
    is(IEEE.rsqrt(e5m2(MINUS_ZERO)), MINUS_INF, POLE);
    is(IEEE.logb(e5m2(ZERO)), MINUS_INF, POLE);
    for (a, b) in [(0x40, 0), (0xC0, 0), (0x7F, 0), (0xFF, 0), (0, 0)] {
        is(P3109.div(p3(a), p3(b)), 0x80, INVALID);
    }
    is(P3109.recip(p3(0)), 0x80, INVALID);
    is(P3109.rsqrt(p3(0)), 0x80, INVALID);
    is(P3109.logb(p3(0)), 0xFF, POLE);
}

#[test]
fn operations_without_a_result() {
    for (zero, other) in [(ZERO, MINUS_ZERO), (MINUS_ZERO, ZERO)] {
        is(IEEE.div(e5m2(zero), e5m2(other)), NAN, INVALID);
        is(IEEE.mul(e5m2(zero), e5m2(INF)), NAN, INVALID);
        is(IEEE.mul(e5m2(MINUS_INF), e5m2(other)), NAN, INVALID);
    }
    is(IEEE.div(e5m2(INF), e5m2(MINUS_INF)), NAN, INVALID);
    is(IEEE.add(e5m2(INF), e5m2(MINUS_INF)), NAN, INVALID);
    is(IEEE.sub(e5m2(INF), e5m2(INF)), NAN, INVALID);
    is(IEEE.faa(e5m2(INF), e5m2(ONE), e5m2(MINUS_INF)), NAN, INVALID);
    is(IEEE.fma(e5m2(INF), e5m2(ONE), e5m2(MINUS_INF)), NAN, INVALID);
    is(IEEE.fma(e5m2(INF), e5m2(ZERO), e5m2(ONE)), NAN, INVALID);
    is(IEEE.sqrt(e5m2(MINUS_ONE)), NAN, INVALID);
    is(IEEE.sqrt(e5m2(MINUS_INF)), NAN, INVALID);
    is(IEEE.rsqrt(e5m2(MINUS_ONE)), NAN, INVALID);
    is(IEEE.rem(e5m2(INF), e5m2(ONE)), NAN, INVALID);
    is(IEEE.rem(e5m2(ONE), e5m2(ZERO)), NAN, INVALID);
    is(IEEE.fmod(e5m2(ONE), e5m2(MINUS_ZERO)), NAN, INVALID);
    is(P3109.mul(p3(0), p3(0x7F)), 0x80, INVALID);
    is(P3109.div(p3(0x7F), p3(0xFF)), 0x80, INVALID);
    is(P3109.sub(p3(0x7F), p3(0x7F)), 0x80, INVALID);
    is(P3109.faa(p3(0x7F), p3(0xFF), p3(0)), 0x80, INVALID);
    is(P3109.sqrt(p3(0xC0)), 0x80, INVALID);
    is(P3109.rsqrt(p3(0xFF)), 0x80, INVALID);
}

#[test]
fn infinite_operands() {
    is(IEEE.div(e5m2(ONE), e5m2(INF)), ZERO, NONE);
    is(IEEE.div(e5m2(ONE), e5m2(MINUS_INF)), MINUS_ZERO, NONE);
    is(IEEE.recip(e5m2(MINUS_INF)), MINUS_ZERO, NONE);
    is(IEEE.rsqrt(e5m2(INF)), ZERO, NONE);
    is(IEEE.sqrt(e5m2(INF)), INF, NONE);
    is(IEEE.rem(e5m2(ONE), e5m2(INF)), ONE, NONE);
    is(IEEE.fmod(e5m2(MINUS_ZERO), e5m2(INF)), MINUS_ZERO, NONE);
    is(IEEE.add(e5m2(INF), e5m2(MINUS_ONE)), INF, NONE);
    is(IEEE.mul(e5m2(MINUS_INF), e5m2(MINUS_ONE)), INF, NONE);
    is(IEEE.scalb(e5m2(MINUS_INF), -100), MINUS_INF, NONE);
    is(IEEE.logb(e5m2(MINUS_INF)), INF, NONE);
    is(IEEE.hypot(e5m2(MINUS_INF), e5m2(ONE)), INF, NONE);
    is(IEEE.round_to_integral(e5m2(MINUS_INF), true), MINUS_INF, NONE);
    is(P3109.div(p3(0x40), p3(0xFF)), 0, NONE);
    is(P3109.recip(p3(0xFF)), 0, NONE);
    is(P3109.rsqrt(p3(0x7F)), 0, NONE);
    is(P3109.fma(p3(0x7F), p3(0xC0), p3(0x40)), 0xFF, NONE);
}

#[test]
fn zeros() {
    is(IEEE.sqrt(e5m2(MINUS_ZERO)), MINUS_ZERO, NONE);
    is(P3109.sqrt(p3(0)), 0, NONE);
    let down = Context::new(Format::E5M2, Rules::DEFAULT.with_rounding(Rounding::TowardNegative));
    is(IEEE.sub(e5m2(ONE), e5m2(ONE)), ZERO, NONE);
    is(down.sub(e5m2(ONE), e5m2(ONE)), MINUS_ZERO, NONE);
    is(IEEE.add(e5m2(ZERO), e5m2(MINUS_ZERO)), ZERO, NONE);
    is(down.add(e5m2(ZERO), e5m2(MINUS_ZERO)), MINUS_ZERO, NONE);
    is(IEEE.add(e5m2(MINUS_ZERO), e5m2(MINUS_ZERO)), MINUS_ZERO, NONE);
    is(down.add(e5m2(ZERO), e5m2(ZERO)), ZERO, NONE);
    is(IEEE.fma(e5m2(ONE), e5m2(MINUS_ONE), e5m2(ONE)), ZERO, NONE);
    is(down.fma(e5m2(ONE), e5m2(MINUS_ONE), e5m2(ONE)), MINUS_ZERO, NONE);
    is(IEEE.fma(e5m2(ZERO), e5m2(MINUS_ONE), e5m2(MINUS_ZERO)), MINUS_ZERO, NONE);
    is(IEEE.faa(e5m2(MINUS_ZERO), e5m2(MINUS_ZERO), e5m2(MINUS_ZERO)), MINUS_ZERO, NONE);
    is(IEEE.faa(e5m2(MINUS_ZERO), e5m2(ZERO), e5m2(MINUS_ZERO)), ZERO, NONE);
    is(IEEE.mul(e5m2(ZERO), e5m2(MINUS_ONE)), MINUS_ZERO, NONE);
    is(IEEE.rem(e5m2(MINUS_ONE), e5m2(ONE)), MINUS_ZERO, NONE);
    is(IEEE.fmod(e5m2(MINUS_ONE), e5m2(ONE)), MINUS_ZERO, NONE);
    is(IEEE.hypot(e5m2(MINUS_ZERO), e5m2(MINUS_ZERO)), ZERO, NONE);
    is(IEEE.round_to_integral(e5m2(0xB4), true), MINUS_ZERO, Flags::INEXACT); // -0.25
    is(IEEE.from_i32(0), ZERO, NONE);
    is(P3109.add(p3(0x40), p3(0xC0)), 0, NONE);
    // Without a negative zero there is none, not even a NaN in its place.
    let fnuz =
        Context::new(Format::E4M3FNUZ, Rules::DEFAULT.with_rounding(Rounding::TowardNegative));
    let one = Operand::new(Format::E4M3FNUZ, 0x40);
    is(fnuz.sub(one, one), 0, NONE);
    is(fnuz.mul(e5m2(MINUS_ZERO), one), 0, NONE);
    is(fnuz.neg(Operand::new(Format::E4M3FNUZ, 0)), 0, NONE);
    is(fnuz.neg(Operand::new(Format::E4M3FNUZ, 0x80)), 0x80, NONE);
}

#[test]
fn nan_operands() {
    // The first NaN is the result; one that signals is invalid, wherever it stands.
    is(IEEE.add(e5m2(MINUS_NAN), e5m2(NAN)), MINUS_NAN, NONE);
    is(IEEE.add(e5m2(NAN), e5m2(MINUS_NAN)), NAN, NONE);
    is(IEEE.add(e5m2(MINUS_NAN), e5m2(SNAN)), MINUS_NAN, INVALID);
    is(IEEE.sub(e5m2(ONE), e5m2(MINUS_NAN)), MINUS_NAN, NONE);
    is(IEEE.mul(e5m2(SNAN), e5m2(ONE)), NAN, INVALID);
    is(IEEE.faa(e5m2(ONE), e5m2(NAN), e5m2(SNAN)), NAN, INVALID);
    is(IEEE.fma(e5m2(ONE), e5m2(MINUS_NAN), e5m2(NAN)), MINUS_NAN, NONE);
    is(IEEE.fma(e5m2(ONE), e5m2(ONE), e5m2(MINUS_NAN)), MINUS_NAN, NONE);
    is(IEEE.fma(e5m2(INF), e5m2(ZERO), e5m2(MINUS_NAN)), MINUS_NAN, INVALID);
    is(IEEE.fma(e5m2(NAN), e5m2(ONE), e5m2(SNAN)), NAN, INVALID);
    is(P3109.fma(p3(0x7F), p3(0), p3(0x80)), 0x80, INVALID);
    for rounded in [
        IEEE.sqrt(e5m2(SNAN)),
        IEEE.recip(e5m2(SNAN)),
        IEEE.rsqrt(e5m2(SNAN)),
        IEEE.scalb(e5m2(SNAN), 1),
        IEEE.logb(e5m2(SNAN)),
        IEEE.next_up(e5m2(SNAN)),
        IEEE.next_down(e5m2(SNAN)),
        IEEE.round_to_integral(e5m2(SNAN), false),
        IEEE.rem(e5m2(ONE), e5m2(SNAN)),
        IEEE.hypot(e5m2(INF), e5m2(SNAN)),
        IEEE.minimum(e5m2(ONE), e5m2(SNAN)),
        IEEE.clamp(e5m2(ONE), e5m2(SNAN), e5m2(ONE)),
        IEEE.convert(e5m2(SNAN)),
    ] {
        is(rounded, NAN, INVALID);
    }
    is(IEEE.hypot(e5m2(INF), e5m2(NAN)), INF, NONE);
    is(IEEE.hypot(e5m2(MINUS_NAN), e5m2(MINUS_INF)), INF, NONE);
    is(IEEE.hypot(e5m2(ONE), e5m2(NAN)), NAN, NONE);
    is(P3109.hypot(p3(0x7F), p3(0x80)), 0x80, NONE);
}

#[test]
fn signs() {
    // IEEE 754: the sign bit and nothing else, even of a signaling NaN.
    is(IEEE.neg(e5m2(SNAN)), SNAN | 0x80, NONE);
    is(IEEE.abs(e5m2(0xFF)), 0x7F, NONE);
    is(IEEE.copysign(e5m2(ONE), e5m2(MINUS_NAN)), MINUS_ONE, NONE);
    is(IEEE.copysign(e5m2(SNAN), e5m2(MINUS_ZERO)), SNAN | 0x80, NONE);
    is(IEEE.copysign(e5m2(MINUS_INF), e5m2(ONE)), INF, NONE);
    is(P3109.copysign(p3(0x40), p3(0x80)), 0x80, NONE);
    is(P3109.copysign(p3(0x80), p3(0x40)), 0x80, NONE);
    is(P3109.copysign(p3(0x40), p3(0xFF)), 0xC0, NONE);
    is(P3109.neg(p3(0)), 0, NONE);
    is(P3109.neg(p3(0x80)), 0x80, NONE);
    is(P3109.neg(p3(0x7F)), 0xFF, NONE);
    is(P3109.abs(p3(0xFF)), 0x7F, NONE);
    // P3109 projects the result, so that saturation reaches it; IEEE 754 does not.
    let saturating = |rules: Rules| rules.with_overflow(Overflow::Finite);
    let context = Context::new(P3109.to, saturating(P3109.rules));
    is(context.neg(p3(0x7F)), 0xFE, Flags::SATURATED);
    let context = Context::new(IEEE.to, saturating(IEEE.rules));
    is(context.neg(e5m2(INF)), MINUS_INF, NONE);
    // From another format the value is converted.
    is(IEEE.neg(Operand::f32(1.0)), MINUS_ONE, NONE);
    is(IEEE.neg(Operand::f32(1.1)), MINUS_ONE, Flags::INEXACT);
    // An unsigned format has no negative numbers, but its zero.
    let scale = Context::new(Format::UE4M3, Rules::DEFAULT);
    let one = Operand::new(Format::UE4M3, 0x38);
    is(scale.neg(one), 0x7F, INVALID);
    is(scale.abs(one), 0x38, NONE);
    is(scale.neg(Operand::new(Format::UE4M3, 0)), 0, NONE);
    // A format that declines negative zero never has it as a result.
    let declined = Format::builder(Sign::Magnitude, 2, 1).specials(Specials::Finite);
    let declined = declined.negative_zero(false).build().unwrap();
    let context = Context::new(declined, Rules::DEFAULT);
    is(context.neg(Operand::new(declined, 0)), 0, NONE);
    is(context.neg(Operand::new(declined, 8)), 0, NONE);
    is(context.neg(Operand::new(declined, 1)), 9, NONE);
    is(context.next_up(Operand::new(declined, 9)), 0, NONE);
    // Two's complement: the lowest number has no opposite.
    let int8 = Context::new(Format::INT8, Rules::DEFAULT);
    is(int8.neg(Operand::new(Format::INT8, 1)), 0xFF, NONE);
    let beyond = Flags::OVERFLOW | Flags::INEXACT | Flags::SATURATED;
    is(int8.neg(Operand::new(Format::INT8, 0x80)), 0x7F, beyond);
}

#[test]
fn neighbours_at_the_ends() {
    is(IEEE.next_up(e5m2(INF)), INF, NONE);
    is(IEEE.next_up(e5m2(MAX)), INF, NONE);
    is(IEEE.next_up(e5m2(MINUS_INF)), MAX | 0x80, NONE);
    is(IEEE.next_up(e5m2(0x81)), MINUS_ZERO, NONE);
    is(IEEE.next_up(e5m2(ZERO)), 1, NONE);
    is(IEEE.next_up(e5m2(MINUS_ZERO)), 1, NONE);
    is(IEEE.next_down(e5m2(ZERO)), 0x81, NONE);
    is(IEEE.next_down(e5m2(1)), ZERO, NONE);
    is(IEEE.next_down(e5m2(MAX | 0x80)), MINUS_INF, NONE);
    is(IEEE.next_up(e5m2(MINUS_NAN)), MINUS_NAN, NONE);
    is(P3109.next_up(p3(0x7F)), 0x80, INVALID);
    is(P3109.next_down(p3(0xFF)), 0x80, INVALID);
    is(P3109.next_up(p3(0x7E)), 0x7F, NONE);
    is(P3109.next_down(p3(0xFE)), 0xFF, NONE);
    is(P3109.next_up(p3(0xFF)), 0xFE, NONE);
    // Zero and the smallest negative value skip the NaN between them.
    is(P3109.next_up(p3(0x81)), 0, NONE);
    is(P3109.next_down(p3(0)), 0x81, NONE);
    let finite = Context::new(binary8p3(false), Profile::P3109.rules(binary8p3(false)));
    let operand = |code| Operand::new(binary8p3(false), code);
    is(finite.next_up(operand(0x7F)), 0x80, INVALID);
    is(finite.next_down(operand(0xFF)), 0x80, INVALID);
    // Without infinity the overflow policy decides what lies beyond.
    let fp8 = |overflow| Context::new(Format::E4M3FN, Rules::DEFAULT.with_overflow(overflow));
    let max = Operand::new(Format::E4M3FN, 0x7E);
    is(fp8(Overflow::None).next_up(max), 0x7F, INVALID);
    is(fp8(Overflow::Finite).next_up(max), 0x7E, Flags::SATURATED);
    let e8m0 = Context::new(Format::E8M0, Rules::DEFAULT);
    is(e8m0.next_up(Operand::new(Format::E8M0, 0)), 1, NONE);
    is(e8m0.next_down(Operand::new(Format::E8M0, 1)), 0, NONE);
}

#[test]
fn exact_infinities_where_there_is_none() {
    let fp8 = |code| Operand::new(Format::E4M3FN, code);
    let context = Context::new(Format::E4M3FN, Rules::DEFAULT);
    let overflow = Flags::OVERFLOW | Flags::INEXACT | INVALID;
    is(context.add(fp8(0x7E), fp8(0x7E)), 0x7F, overflow); // 448 + 448
    is(context.div(fp8(0x38), fp8(0)), 0x7F, POLE | INVALID);
    is(context.div(fp8(0xB8), fp8(0)), 0xFF, POLE | INVALID);
    let saturating = Context::new(Format::E4M3FN, Rules::DEFAULT.with_overflow(Overflow::Finite));
    is(saturating.div(fp8(0xB8), fp8(0)), 0xFE, POLE | Flags::SATURATED);
    is(saturating.logb(fp8(0)), 0xFE, POLE | Flags::SATURATED);
    // Neither NaN nor infinity: ml_dtypes' 6 + 6 is 6 and its 0 / 0 is 0; CUDA's NaN is 6.
    let fp4 = |code| Operand::new(Format::E2M1, code);
    let cuda = Context::new(Format::E2M1, Rules::DEFAULT);
    let ml_dtypes = Context::new(Format::E2M1, Profile::MlDtypes.rules(Format::E2M1));
    for context in [cuda, ml_dtypes] {
        is(context.add(fp4(7), fp4(7)), 7, Flags::OVERFLOW | Flags::INEXACT | Flags::SATURATED);
        is(context.div(fp4(0xA), fp4(0)), 0xF, POLE | Flags::SATURATED);
    }
    is(cuda.div(fp4(0), fp4(0)), 7, INVALID);
    is(ml_dtypes.div(fp4(0), fp4(0)), 0, INVALID);
}

#[test]
fn comparisons() {
    let (less, equal) = (Some(Ordering::Less), Some(Ordering::Equal));
    let compare =
        |a: u64, b: u64| (e5m2(a).compare_quiet(e5m2(b)), e5m2(a).compare_signaling(e5m2(b)));
    assert_eq!(compare(MINUS_ONE, ONE), ((less, NONE), (less, NONE)));
    assert_eq!(compare(MINUS_ZERO, ZERO), ((equal, NONE), (equal, NONE)));
    assert_eq!(compare(INF, INF), ((equal, NONE), (equal, NONE)));
    assert_eq!(compare(ONE, NAN), ((None, NONE), (None, INVALID)));
    assert_eq!(compare(SNAN, ONE), ((None, INVALID), (None, INVALID)));
    assert_eq!(Operand::f64(0.25).compare(e5m2(0x34)), equal);
    assert_eq!(Operand::f64(1e300).compare(e5m2(INF)), less);
}

#[test]
fn total_order() {
    // IEEE 754's, within a format, is that of sign and magnitude.
    let format = Format::ieee(2, 2).unwrap();
    let key = |code: u64| if code < 16 { code as i64 } else { 15 - code as i64 };
    for a in format.codes() {
        for b in format.codes() {
            let (x, y) = (Operand::new(format, a), Operand::new(format, b));
            assert_eq!(x.total_cmp(y, Standard::Ieee754), key(a).cmp(&key(b)), "{a:#x} {b:#x}");
        }
    }
    // P3109's: NaN, then the numbers.
    let format = Format::p3109(5, 2, true, true).unwrap();
    let key = |code: u64| match format.to_f64(code) {
        x if x.is_nan() => (0, 0.0),
        x => (1, x),
    };
    for a in format.codes() {
        for b in format.codes() {
            let (x, y) = (Operand::new(format, a), Operand::new(format, b));
            let order = key(a).partial_cmp(&key(b)).unwrap();
            assert_eq!(x.total_cmp(y, Standard::P3109), order, "{a:#x} {b:#x}");
        }
    }
    let [minus, plus] = [-0.0, 0.0].map(Operand::f32);
    assert_eq!(minus.total_cmp(plus, Standard::Ieee754), Ordering::Less);
    assert_eq!(minus.total_cmp(plus, Standard::P3109), Ordering::Equal);
    assert_eq!(Operand::f64(1.0).total_cmp(e5m2(ONE), Standard::Ieee754), Ordering::Equal);
    assert_eq!(Operand::f32(f32::NAN).total_cmp(e5m2(NAN), Standard::Ieee754), Ordering::Equal);
}

/// The ten families by their definitions, on binary64 values; NaN results are NaN.
fn choice(name: &str, a: f64, b: f64) -> f64 {
    let below = |a: f64, b: f64| a < b || (a == b && a.is_sign_negative() && b.is_sign_positive());
    let min = |a, b| if below(b, a) { b } else { a };
    let max = |a, b| if below(a, b) { b } else { a };
    let (size, other) = (a.abs(), b.abs());
    let pick = |number: bool, f: &dyn Fn() -> f64| match (a.is_nan(), b.is_nan()) {
        (false, false) => f(),
        (true, false) if number => b,
        (false, true) if number => a,
        _ => f64::NAN,
    };
    let least = || {
        if size < other {
            a
        } else if other < size {
            b
        } else {
            min(a, b)
        }
    };
    let greatest = || {
        if size > other {
            a
        } else if other > size {
            b
        } else {
            max(a, b)
        }
    };
    let finite = |f: &dyn Fn() -> f64| match (a.is_finite(), b.is_finite()) {
        (true, false) => a,
        (false, true) => b,
        _ => pick(true, f),
    };
    match name {
        "minimum" => pick(false, &|| min(a, b)),
        "maximum" => pick(false, &|| max(a, b)),
        "minimum_number" => pick(true, &|| min(a, b)),
        "maximum_number" => pick(true, &|| max(a, b)),
        "minimum_magnitude" => pick(false, &least),
        "maximum_magnitude" => pick(false, &greatest),
        "minimum_magnitude_number" => pick(true, &least),
        "maximum_magnitude_number" => pick(true, &greatest),
        "minimum_finite" => finite(&|| min(a, b)),
        "maximum_finite" => finite(&|| max(a, b)),
        _ => unreachable!(),
    }
}

type Choice = fn(&Context, Operand, Operand) -> Rounded;

const CHOICES: [(&str, Choice); 10] = [
    ("minimum", |c, a, b| c.minimum(a, b)),
    ("maximum", |c, a, b| c.maximum(a, b)),
    ("minimum_number", |c, a, b| c.minimum_number(a, b)),
    ("maximum_number", |c, a, b| c.maximum_number(a, b)),
    ("minimum_magnitude", |c, a, b| c.minimum_magnitude(a, b)),
    ("maximum_magnitude", |c, a, b| c.maximum_magnitude(a, b)),
    ("minimum_magnitude_number", |c, a, b| c.minimum_magnitude_number(a, b)),
    ("maximum_magnitude_number", |c, a, b| c.maximum_magnitude_number(a, b)),
    ("minimum_finite", |c, a, b| c.minimum_finite(a, b)),
    ("maximum_finite", |c, a, b| c.maximum_finite(a, b)),
];

#[test]
fn minima_and_maxima_by_their_definitions() {
    let formats = [
        (Format::E5M2, Standard::Ieee754),
        (Format::E4M3FN, Standard::Ieee754),
        (Format::E4M3FNUZ, Standard::Ieee754),
        (Format::ieee(2, 2).unwrap(), Standard::Ieee754),
        (Format::E2M1, Standard::Ieee754),
        (binary8p3(true), Standard::P3109),
        (Format::p3109(6, 4, false, true).unwrap(), Standard::P3109),
    ];
    for (format, standard) in formats {
        let context = Context::new(format, Rules::DEFAULT.with_standard(standard));
        for a in format.codes() {
            for b in format.codes() {
                let operands = [a, b].map(|code| Operand::new(format, code));
                let [x, y] = [a, b].map(|code| format.to_f64(code));
                let signaling = [a, b].into_iter().any(|code| {
                    format.specials() == Specials::Ieee
                        && format.to_f64(code).is_nan()
                        && code >> (format.man_bits() - 1) & 1 == 0
                });
                for (name, ours) in CHOICES {
                    let rounded = ours(&context, operands[0], operands[1]);
                    let (ours, theirs) = (format.to_f64(rounded.code), choice(name, x, y));
                    let same =
                        ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan();
                    assert!(same, "{format} {name} {x} {y}: {ours}, expected {theirs}");
                    assert_eq!(
                        rounded.flags == INVALID,
                        signaling,
                        "{format} {name} {a:#x} {b:#x}"
                    );
                    assert!(rounded.flags == INVALID || rounded.flags == NONE);
                }
            }
        }
    }
    // The operand chosen is rounded to the result's format.
    let rounded = IEEE.minimum(Operand::f32(1.1), Operand::f64(3.0));
    is(rounded, ONE, Flags::INEXACT);
}

#[test]
fn clamps_by_their_definition() {
    let format = Format::ieee(2, 2).unwrap();
    let p3109 = Format::p3109(5, 3, true, true).unwrap();
    for (format, standard) in [(format, Standard::Ieee754), (p3109, Standard::P3109)] {
        let context = Context::new(format, Rules::DEFAULT.with_standard(standard));
        let codes = || format.codes().map(|code| (Operand::new(format, code), format.to_f64(code)));
        for (a, x) in codes() {
            for (b, low) in codes() {
                for (c, high) in codes() {
                    let ours = format.to_f64(context.clamp(a, b, c).code);
                    let nan = x.is_nan() || low.is_nan() || high.is_nan() || low > high;
                    let inner = choice("maximum", x, low);
                    let theirs = if nan { f64::NAN } else { choice("minimum", inner, high) };
                    let same =
                        ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan();
                    assert!(same, "{format} {x} in {low}..{high}: {ours}, expected {theirs}");
                }
            }
        }
    }
    is(IEEE.clamp(e5m2(ZERO), e5m2(ONE), e5m2(MINUS_ONE)), NAN, INVALID);
}

/// Remainders across the widest gap of exponents there is, by repeated doubling.
#[test]
fn remainders_across_wide_gaps() {
    let wide = Format::ieee(16, 10).unwrap();
    let context = Context::new(wide, Rules::DEFAULT);
    let mut random = Random(3);
    for _ in 0..200 {
        let [a, b] =
            [random.next() >> 38, random.next() >> 38].map(|code| Operand::new(wide, code));
        let (
            Value::Finite { significand: x, exponent: i, .. },
            Value::Finite { significand: y, exponent: j, .. },
        ) = (a.value(), b.value())
        else {
            continue;
        };
        if y == 0 || i < j {
            continue;
        }
        let (x, y) = (u128::from(x), u128::from(y));
        let mut rest = x % y;
        for _ in j..i {
            rest = rest * 2 % y;
        }
        let expected = Value::Finite { negative: false, significand: rest as u64, exponent: j };
        let ours = context.fmod(a, b);
        assert_eq!(wide.decode(ours.code), expected, "{a:?} % {b:?}");
        assert!(ours.flags.is_empty());
    }
}
