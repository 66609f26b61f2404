//! Blocks of P3109 (Interim Report 4.0): ConvertToBlockMaxAbsFinite and the projection to a block,
//! against its sentences in exact integers.

use exmy::block::{Axis, BlockFormat, PlainBlocks};
use exmy::format::{Format, Value};
use exmy::round::{Overflow, Rounding};
use exmy::slice::View;
use num_bigint::BigInt;

use super::rules::{power, quantize};
use super::{RANDOM, uniform};

/// The nearest of all values of a format to `n / d`, ties to the even code, the largest for what is
/// beyond: found by trying every code.
pub(super) fn nearest(format: Format, negative: bool, n: &BigInt, d: &BigInt) -> u64 {
    let distance = |code: u64| {
        let Value::Finite { significand, exponent, .. } = format.decode(code) else { return None };
        // |significand 2^exponent - n / d| * d * 2^400
        let value: BigInt = (BigInt::from(significand) << (exponent + 400)) * d;
        let (target, zero): (BigInt, BigInt) = (n << 400, BigInt::from(0));
        let difference: BigInt = value - target;
        Some(if difference < zero { -difference } else { difference })
    };
    // Codes of positive numbers ascend.
    let positive = 0..=format.max_code();
    let best = positive.filter_map(|code| Some((distance(code)?, code & 1, code))).min();
    let (_, _, code) = best.unwrap();
    let sign = u64::from(negative && code != 0) << (format.bits() - 1);
    code | sign
}

fn exact(x: f32) -> BigInt {
    let Value::Finite { significand, exponent, .. } = Value::from_f32(x) else { panic!("{x}") };
    BigInt::from(significand) << (exponent + 149)
}

#[test]
fn quotients_are_exact() {
    let x: Vec<f32> = (0..16 * 24)
        .map(|i| uniform(i) * power((i / 16) as i32 * 5 - 60) * if i % 3 == 0 { 0.01 } else { 1.0 })
        .collect();
    for (element, scale) in [
        ("binary8p3se", "binary8p1uf"),
        ("binary4p2sf", "binary8p4uf"),
        ("binary6p3sf", "f32"),
        ("binary8p4se", "bf16"),
    ] {
        let found = quantize(&format!("{element}/16:{scale}@max-abs"), &x, 16);
        let formats = [element, scale].map(|name| name.parse::<Format>().unwrap());
        for (b, x) in x.chunks(16).enumerate() {
            let amax = x.iter().fold(0.0_f32, |a, x| a.max(x.abs()));
            let scale = u64::from(found.scales[b]);
            if formats[1].bits() <= 8 {
                let one = BigInt::from(1) << 149;
                assert_eq!(scale, nearest(formats[1], false, &exact(amax), &one), "{amax:e}");
            }
            let s = formats[1].to_f32(scale);
            for (i, x) in x.iter().enumerate() {
                let want =
                    if s == 0.0 { 0 } else { nearest(formats[0], *x < 0.0, &exact(*x), &exact(s)) };
                let code = u64::from(found.codes[b * 16 + i]);
                assert_eq!(code, want, "{element} {x:e} / {s:e}");
            }
        }
    }
}

/// `amax` becomes about 1, not the largest value of the elements.
#[test]
fn the_largest_becomes_one() {
    let found = quantize("binary8p3se/4:binary8p1uf@max-abs", &[8.0, -4.0, 2.0, 0.0], 4);
    let one = Format::p3109(8, 3, true, true).unwrap().one_code().unwrap();
    assert_eq!(u64::from(found.codes[0]), one);
    assert_eq!(found.dequantize(), [8.0, -4.0, 2.0, 0.0]);
    // 12 is a tie of 8 and 16 in powers of two, whose even exponent field is that of 8: 131 or 132.
    let found = quantize("binary8p3se/1:binary8p1uf@max-abs", &[12.0], 1);
    assert_eq!(found.scales, [132]);
}

/// NaN if an element is NaN, 0 under a zero scale, infinite elements by the overflow policy; they
/// do not enter the scale.
#[test]
fn special_elements() {
    let inf = f32::INFINITY;
    let x = [4.0, f32::NAN, inf, -inf, -2.0];
    let bits = |text: &str, x: &[f32]| {
        let found = quantize(text, x, x.len());
        (found.scales[0], found.codes.clone(), found.dequantize())
    };
    // Binary8p3se: NaN is 0x80, infinities 0x7F and 0xFF, the largest 0x7E (49152), 1 is 0x40.
    let (scale, codes, image) = bits("binary8p3se/8:binary8p1uf@max-abs", &x);
    assert_eq!(scale, 128 + 2);
    assert_eq!(codes, [0x40, 0x80, 0x7E, 0xFE, 0xBC]);
    assert!(image[1].is_nan() && image[2] == 4.0 * 49152.0);
    let (_, codes, image) = bits("binary8p3se/8:binary8p1uf@max-abs@sat-none", &x);
    assert_eq!(codes[2..4], [0x7F, 0xFF]);
    assert_eq!(image[2..4], [inf, -inf]);
    // No finite element, or only zeros: the scale is 0 and so is everything but NaN.
    let (scale, codes, image) = bits("binary8p3se/8:binary8p1uf@max-abs", &[inf, f32::NAN]);
    assert_eq!((scale, codes), (0, vec![0, 0x80]));
    assert!(image[0] == 0.0 && image[1].is_nan());
    let (scale, codes, _) = bits("binary8p3se/8:binary8p1uf@max-abs", &[0.0, -0.0]);
    assert_eq!((scale, codes), (0, vec![0, 0]));
    // A scale format without zero: its smallest.
    let (scale, codes, _) = bits("binary8p3se/8:e8m0@max-abs", &[0.0, -0.0]);
    assert_eq!((scale, codes), (0, vec![0, 0]));
}

/// The projection when the scale is given: infinite scales leave signs, and decoding is the product,
/// NaN for 0 times infinity.
#[test]
fn infinite_scales() {
    let format: BlockFormat = "binary8p3se/8:e5m2@max-abs".parse().unwrap();
    let x = [3.0_f32, -5.0, 0.0, -0.0, f32::NEG_INFINITY, f32::NAN];
    let x = View::new(&x, 1, 6);
    // Scales saturate, so an infinite one can only be asked for with the code.
    let found = PlainBlocks::quantize_with(
        x,
        Axis::Cols,
        format,
        (Rounding::TiesToEven, Overflow::Finite, RANDOM),
        |_| f32::INFINITY,
    );
    assert_eq!(found.scales, [0x7B]);
    let mut infinite = found;
    infinite.scales = vec![0x7C];
    let image = infinite.dequantize();
    assert_eq!(image[1], f32::NEG_INFINITY);
    assert!(image[2].is_nan() && image[5].is_nan());
}
