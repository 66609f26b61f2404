//! Every format of up to 8 bits rounds as the model says, under every deterministic mode.

use crate::common::{Meaning, Model, Num, power};
use crate::decoding::check_decoding;
use crate::{inputs, pairs, small};
use exmy::format::{Format, Value};
use exmy::round::{Flags, Overflow, Rounding, Rules, Tininess};

/// One input under all deterministic modes and the given policies.
fn check(format: Format, model: &Model, x: f64, policies: &[Overflow]) {
    let input = Meaning::of_f64(x);
    for mode in Rounding::DETERMINISTIC {
        for &overflow in policies {
            let expected = model.encode(input, mode, overflow, 0);
            let rules = Rules::DEFAULT.with_tininess(Tininess::Before);
            let rules = rules.with_rounding(mode).with_overflow(overflow);
            let rounded = format.encode_by(Value::from_f64(x), &rules, 0);
            assert_eq!(
                rounded.code, expected,
                "{format} {x:e} {mode} {overflow}: {:#x}, expected {expected:#x}",
                rounded.code
            );
            if f64::from(x as f32) == x || x.is_nan() {
                let narrow = format.encode_f32(x as f32, mode, overflow, 0);
                assert_eq!(narrow, format.encode_f64(x, mode, overflow, 0), "{format} {x:e}");
                assert_eq!(narrow.code, expected, "{format} {x:e}");
            }
            let Meaning::Finite(negative, n) = input else { continue };
            let result = format.decode(expected);
            if !result.is_nan() {
                let inexact = result != Value::from_f64(x);
                let flags = rounded.flags;
                assert_eq!(
                    flags.contains(Flags::INEXACT),
                    inexact,
                    "{format} {x:e} {mode} {flags:?}"
                );
            }
            if !negative || model.signed && !model.twos_complement {
                let beyond = model.round(negative, n, mode, 0) > model.max_code();
                assert_eq!(
                    rounded.flags.contains(Flags::OVERFLOW),
                    beyond,
                    "{format} {x:e} {mode}"
                );
            }
            let Some(Value::Finite { significand, exponent, .. }) = format.min_normal() else {
                continue;
            };
            if n.integer != 0 && (!negative || model.signed) {
                let tiny = n < Num::new(significand.into(), exponent);
                let between = model.magnitudes().binary_search(&n).is_err();
                let underflow = rounded.flags.contains(Flags::UNDERFLOW);
                assert_eq!(underflow, tiny && between, "{format} {x:e}");
            }
        }
    }
}

fn check_rounding(format: Format, model: &Model) {
    let max = model.magnitudes()[model.max_code() as usize].to_f64();
    let least = 2.0 * model.magnitudes()[1].to_f64();
    for (i, x) in inputs(model).into_iter().enumerate() {
        // Policies differ beyond the range only.
        let policies: &[_] =
            if x > max { &Overflow::ALL } else { &[Overflow::None, Overflow::Finite] };
        check(format, model, x, policies);
        // Below an unsigned format all that counts is whether a number rounds to zero.
        let below = model.twos_complement || !model.signed && (x <= least || i % 16 == 0);
        check(format, model, -x, if below { &Overflow::ALL } else { policies });
    }
    for x in [f64::INFINITY, f64::NAN, 0.0] {
        check(format, model, x, &Overflow::ALL);
        check(format, model, -x, &Overflow::ALL);
    }
}

#[test]
fn signed_formats_round_as_the_model() {
    for (format, model) in small(true) {
        check_rounding(format, &model);
    }
}

#[test]
fn unsigned_formats_round_as_the_model() {
    for (format, model) in small(false) {
        check_rounding(format, &model);
    }
}

#[test]
fn unusual_biases_round_as_the_model() {
    for bias in [-3, 5, 200] {
        for (exp_bits, man_bits) in [(4, 3), (1, 2), (0, 4), (3, 0), (2, 1)] {
            for signed in [false, true] {
                for (format, model) in pairs(signed, exp_bits, man_bits, Some(bias)) {
                    check_decoding(format, &model);
                    check_rounding(format, &model);
                }
            }
        }
    }
}

/// Where each format starts to overflow under nearest-even: the midpoint above the largest value.
#[test]
fn thresholds_of_overflow() {
    // format, largest value, midpoint, code of the midpoint, code above it, saturated code
    #[rustfmt::skip]
    let rows = [
        ("e4m3",      448.0,    464.0,    0x7E, 0x7F, 0x7E),
        ("e5m2",        57344.0,  61440.0,  0x7C, 0x7C, 0x7B),
        ("e4m3fnuz",    240.0,    248.0,    0x80, 0x80, 0x7F),
        ("e5m2fnuz",    57344.0,  61440.0,  0x80, 0x80, 0x7F),
        ("e4m3b11fnuz", 30.0,     31.0,     0x80, 0x80, 0x7F),
        ("e4m3-ieee",   240.0,    248.0,    0x78, 0x78, 0x77),
        ("e3m4",        15.5,     15.75,    0x70, 0x70, 0x6F),
        ("ue5m3",       114688.0, 118784.0, 0xFE, 0xFF, 0xFE),
        ("e3m2",        28.0,     30.0,     0x1F, 0x1F, 0x1F),
        ("e2m3",        7.5,      7.75,     0x1F, 0x1F, 0x1F),
        ("e2m1",        6.0,      7.0,      0x7,  0x7,  0x7),
        ("binary8p4se", 224.0,    232.0,    0x7E, 0x7F, 0x7E),
        ("binary8p4sf", 240.0,    248.0,    0x7F, 0x7F, 0x7F),
        ("f16",         65504.0,  65520.0,  0x7C00, 0x7C00, 0x7BFF),
    ];
    for (name, max, midpoint, at, above, saturated) in rows {
        let (max, midpoint): (f32, f32) = (max, midpoint);
        let format: Format = name.parse().unwrap();
        let code = |x: f32, overflow| format.encode_f32(x, Rounding::TiesToEven, overflow, 0).code;
        assert_eq!(code(max, Overflow::None), format.max_code(), "{name}");
        assert_eq!(code(midpoint.next_down(), Overflow::None), format.max_code(), "{name}");
        assert_eq!(code(midpoint, Overflow::None), at, "{name}");
        assert_eq!(code(midpoint.next_up(), Overflow::None), above, "{name}");
        assert_eq!(code(midpoint.next_up(), Overflow::Finite), saturated, "{name}");
    }
    let bf16 = |x: f64| Format::BF16.encode_f64(x, Rounding::TiesToEven, Overflow::None, 0).code;
    let midpoint = power(128) - power(119);
    assert_eq!((bf16(midpoint), bf16(midpoint.next_down())), (0x7F80, 0x7F7F));
}

/// Binary64 inputs that come out one code lower when they pass through binary32 first.
#[test]
fn nothing_is_rounded_twice() {
    let dust = power(-40);
    let cases = [
        (Format::E4M3FN, 1.0625 + dust, 0x39),
        (Format::BF16, 1.0 + power(-8) + dust, 0x3F81),
        (Format::E2M1, 0.25 + dust, 0x1),
        (Format::BF16, 16_842_753.0, 0x4B81),
    ];
    for (format, x, code) in cases {
        assert_eq!(
            format.encode_f64(x, Rounding::TiesToEven, Overflow::None, 0).code,
            code,
            "{format}"
        );
        let twice = format.encode_f32(x as f32, Rounding::TiesToEven, Overflow::None, 0).code;
        assert_eq!(twice, code - 1, "{format}: a case that rounding twice would pass");
    }
}

/// E8M0 has neither zero nor a sign: what the model assumes of it, spelled out.
#[test]
fn scales_without_zero() {
    let code = |x: f32, mode, overflow| Format::E8M0.encode_f32(x, mode, overflow, 0).code;
    for x in [0.0, -0.0, -1.0, f32::NEG_INFINITY, f32::INFINITY, f32::NAN] {
        assert_eq!(code(x, Rounding::TiesToEven, Overflow::None), 0xFF, "{x}");
    }
    for x in [0.0, -0.0, -1.0, f32::NEG_INFINITY] {
        assert_eq!(code(x, Rounding::TiesToEven, Overflow::Finite), 0x00, "{x}");
    }
    assert_eq!(code(f32::INFINITY, Rounding::TiesToEven, Overflow::Finite), 0xFE);
    assert_eq!(code(f32::from_bits(1), Rounding::TowardZero, Overflow::None), 0x00);
    // Ties go to the even code; away from zero is what ml_dtypes and PyTorch do.
    for (x, even, away) in [(1.5, 128, 128), (3.0, 128, 129), (6.0, 130, 130), (0.75, 126, 127)] {
        assert_eq!(code(x, Rounding::TiesToEven, Overflow::None), even, "{x}");
        assert_eq!(code(x, Rounding::TiesToAway, Overflow::None), away, "{x}");
    }
}
