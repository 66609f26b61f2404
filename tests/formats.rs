//! Every format of up to 8 bits against an independent model: what its codes mean, and what
//! becomes of every value, midpoint, neighbour and special value under every mode and policy.

#![cfg(feature = "std")]

mod common;

use common::{Meaning, Model, Num, power};
use exmy::format::{Format, NAMED, Sign, Specials, Value};
use exmy::round::{Exact, Flags, Overflow, Rounding, Rules, StochasticVariant, Tininess};

/// A shape's parameters with all classes and options, as format and model. What the builder
/// refuses is checked against the reasons for refusing.
fn pairs(signed: bool, exp_bits: u32, man_bits: u32, bias: Option<i32>) -> Vec<(Format, Model)> {
    let classes = [
        Specials::Ieee,
        Specials::Fn,
        Specials::Fnuz,
        Specials::P3109 { infinite: true },
        Specials::P3109 { infinite: false },
        Specials::Finite,
    ];
    let sign = if signed { Sign::Magnitude } else { Sign::Unsigned };
    let mut pairs = Vec::new();
    for specials in classes {
        for (zero, subnormals) in [(true, true), (true, false), (false, false)] {
            let builder = Format::builder(sign, exp_bits, man_bits)
                .specials(specials)
                .zero(zero)
                .subnormals(subnormals);
            let builder = bias.map_or(builder, |bias| builder.bias(bias));
            let codes = 1_i64 << (exp_bits + man_bits);
            let reserved = match specials {
                Specials::Ieee => 1 << man_bits,
                Specials::Fn => 1,
                Specials::P3109 { infinite } => i64::from(infinite) + i64::from(!signed),
                _ => 0,
            };
            let single_nan = matches!(specials, Specials::Fnuz | Specials::P3109 { .. });
            let no_nan_beside_infinity = specials == Specials::Ieee && exp_bits.min(man_bits) == 0;
            let no_sign_for_nan = specials == Specials::Fnuz && !signed;
            let no_zero_for_nan = single_nan && signed && !zero;
            let possible = !no_nan_beside_infinity
                && !no_sign_for_nan
                && !no_zero_for_nan
                && codes - reserved > i64::from(zero);
            let name = format!("{exp_bits} {man_bits} {specials:?} {zero} {subnormals}");
            assert_eq!(builder.build().is_ok(), possible, "{name}: {:?}", builder.build());
            let Ok(format) = builder.build() else { continue };
            let usual = match specials {
                _ if exp_bits == 0 => 0,
                Specials::Fnuz | Specials::P3109 { .. } => 1 << (exp_bits - 1),
                _ => (1 << (exp_bits - 1)) - 1,
            };
            let bias = bias.unwrap_or(usual);
            let model = Model::new(signed, exp_bits, man_bits, bias, specials, zero, subnormals);
            pairs.push((format, model));
        }
    }
    pairs
}

/// All shapes of up to 8 bits.
fn small(signed: bool) -> Vec<(Format, Model)> {
    let mut all = Vec::new();
    for exp_bits in 0..=8 {
        for man_bits in 0..=8 {
            let bits = exp_bits + man_bits + u32::from(signed);
            if (2..=8).contains(&bits) && exp_bits + man_bits > 0 {
                all.extend(pairs(signed, exp_bits, man_bits, None));
            }
        }
    }
    all.push((Format::INT8, Model::int8()));
    all
}

fn meaning(value: Value) -> Meaning {
    match value {
        Value::Nan { negative } => Meaning::Nan(negative),
        Value::Infinite { negative } => Meaning::Infinite(negative),
        Value::Finite { negative, significand, exponent } => {
            Meaning::Finite(negative, Num::new(significand.into(), exponent))
        }
    }
}

fn check_decoding(format: Format, model: &Model) {
    assert_eq!(format.bits(), model.bits(), "{format}");
    for code in 0..1_u64 << model.bits() {
        let (ours, theirs) = (format.decode(code), model.decode(code));
        assert_eq!(meaning(ours), theirs, "{format} {code:#x}");
        let expected = match theirs {
            Meaning::Nan(_) => f64::NAN,
            Meaning::Infinite(negative) => {
                if negative {
                    -f64::INFINITY
                } else {
                    f64::INFINITY
                }
            }
            Meaning::Finite(negative, n) => {
                if negative {
                    -n.to_f64()
                } else {
                    n.to_f64()
                }
            }
        };
        let x = format.to_f64(code);
        assert!(x.to_bits() == expected.to_bits() || x.is_nan() && expected.is_nan(), "{format}");
        if format.is_exact_in_f32() && !x.is_nan() {
            assert_eq!(f64::from(format.to_f32(code)).to_bits(), x.to_bits(), "{format} {code:#x}");
        }
        let back = format.encode(ours, Rounding::Rne, Overflow::None, 0);
        if theirs != Meaning::Nan(true) && theirs != Meaning::Nan(false) {
            assert_eq!((back.code, back.flags), (code, Flags::NONE), "{format} {code:#x}");
        }
    }
    let finite = |code: Option<u64>| code.map(|code| meaning(format.decode(code)));
    assert_eq!(
        finite(Some(format.max_code())),
        Some(Meaning::Finite(false, model.magnitudes()[model.max_code() as usize]))
    );
    let one =
        model.magnitudes()[..=model.max_code() as usize].iter().position(|n| *n == Num::new(1, 0));
    assert_eq!(format.one_code(), one.map(|code| code as u64), "{format}");
    assert_eq!(format.nan_code(), model.nan(false), "{format}");
    for negative in [false, true] {
        assert_eq!(format.infinity_code(negative), model.infinity(negative), "{format}");
    }
    // The smallest value is normal if its successor is not twice it, or it is alone in its binade.
    let normal = model.magnitudes()[..=model.max_code() as usize]
        .iter()
        .position(|n| n.integer >> model.man_bits != 0);
    let normal = if model.twos_complement { None } else { normal };
    assert_eq!(format.min_normal_code(), normal.map(|code| code as u64), "{format}");
    let exact = |code| {
        let x = format.to_f64(code);
        x.is_nan() || f64::from(x as f32) == x
    };
    assert_eq!(format.is_exact_in_f32(), format.codes().all(exact), "{format}");
}

#[test]
fn codes_mean_what_the_definitions_say() {
    for (format, model) in small(true).into_iter().chain(small(false)) {
        check_decoding(format, &model);
    }
}

/// One input under all deterministic modes and the given policies.
fn check(format: Format, model: &Model, x: f64, policies: &[Overflow]) {
    let input = Meaning::of_f64(x);
    for mode in Rounding::DETERMINISTIC {
        for &overflow in policies {
            let expected = model.encode(input, mode, overflow, 0);
            let rules = Rules { tininess: Tininess::Before, ..Rules::DEFAULT };
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

/// Values, midpoints, and both with the nearest binary32 and binary64 numbers around them.
fn inputs(model: &Model) -> Vec<f64> {
    let values = model.magnitudes();
    let mut points: Vec<f64> = values.iter().map(|value| value.to_f64()).collect();
    points.extend(values.windows(2).map(|pair| pair[0].plus(pair[1]).to_f64() / 2.0));
    points.push(values[0].to_f64() / 2.0);
    points.push(values[values.len() - 1].to_f64() * 2.0);
    points.extend([
        f64::MAX,
        f32::MAX.into(),
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        f32::from_bits(1).into(),
        0.0,
    ]);
    let mut inputs = Vec::new();
    for x in points {
        inputs.extend([x.next_down(), x, x.next_up()]);
        let near = x as f32;
        if f64::from(near) == x {
            inputs.extend([near.next_down().into(), f64::from(near.next_up())]);
        }
    }
    inputs.retain(|x| *x >= 0.0 && x.is_finite());
    inputs
}

fn check_rounding(format: Format, model: &Model) {
    let max = model.magnitudes()[model.max_code() as usize].to_f64();
    for x in inputs(model) {
        // Policies differ beyond the range only.
        let policies: &[_] =
            if x > max { &Overflow::ALL } else { &[Overflow::None, Overflow::Finite] };
        check(format, model, x, policies);
        let below = !model.signed || model.twos_complement;
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

/// Every random integer of up to 4 bits, for every ordinary format of up to 6 and
/// every other of up to 4; the word's other bits must
/// not matter.
#[test]
fn stochastic_rounding_uses_every_random_integer_right() {
    let formats = small(true).into_iter().chain(small(false));
    for (format, model) in formats.filter(|(format, _)| {
        let ordinary = format.is_signed() && format.has_zero() && format.has_subnormals();
        format.bits() <= if ordinary { 6 } else { 4 }
    }) {
        let values = model.magnitudes();
        let mut points = Vec::new();
        for pair in values.windows(2) {
            // 32nds of the gap, so that all thresholds of 4 bits and the halves between are met.
            for part in 0..32 {
                let gap = pair[1].minus(pair[0]);
                let x = pair[0].times(32).plus(gap.times(part)).to_f64() / 32.0;
                points.extend([x.next_down(), x, x.next_up()]);
            }
        }
        for x in points {
            if x < 0.0 {
                continue;
            }
            for variant in [StochasticVariant::A, StochasticVariant::B, StochasticVariant::C] {
                for bits in 1..=4_u8 {
                    let mode = Rounding::Stochastic { variant, bits };
                    for r in 0..1_u32 << bits {
                        let random = r << (32 - bits) | (r.wrapping_mul(0x9E37_79B9) >> bits);
                        let expected =
                            model.encode(Meaning::of_f64(x), mode, Overflow::None, random);
                        let rounded = format.encode_f64(x, mode, Overflow::None, random);
                        assert_eq!(rounded.code, expected, "{format} {x:e} {mode} {r}");
                    }
                }
            }
        }
    }
}

/// Many bits, at thresholds around `1 - r / 2^N`: E2M1 between 1 and 1.5.
#[test]
fn stochastic_rounding_with_many_bits() {
    let model = Model::new(true, 2, 1, 1, Specials::Finite, true, true);
    for bits in [8_u8, 13, 16, 24, 31, 32] {
        for r in [0, 1, 2, 3, 0x55, (1_u64 << bits) - 2, (1_u64 << bits) - 1] {
            let r = r & ((1 << bits) - 1);
            for half_steps in -3_i64..=3 {
                let part = 2 * ((1_i64 << bits) - r as i64) + half_steps;
                let x = 1.0 + 0.5 * part as f64 / power(i32::from(bits) + 1);
                for x in [x.next_down(), x, x.next_up()] {
                    for variant in
                        [StochasticVariant::A, StochasticVariant::B, StochasticVariant::C]
                    {
                        let mode = Rounding::Stochastic { variant, bits };
                        let random = (r << (32 - bits)) as u32;
                        let expected =
                            model.encode(Meaning::of_f64(x), mode, Overflow::None, random);
                        let rounded = Format::E2M1.encode_f64(x, mode, Overflow::None, random);
                        assert_eq!(rounded.code, expected, "{x:e} {mode} {r}");
                    }
                }
            }
        }
    }
}

/// A sticky part is something above zero, wherever the integer's last bit lies.
#[test]
fn sticky_parts_count() {
    let model = Model::new(true, 4, 3, 7, Specials::Fn, true, true);
    for x in inputs(&model) {
        let Meaning::Finite(_, n) = Meaning::of_f64(x) else { unreachable!() };
        if n.integer == 0 {
            continue;
        }
        for widen in [0, 3, 40, n.integer.leading_zeros()] {
            let significand = n.integer << widen;
            let exponent = n.exponent - widen as i32;
            // The same number with a one appended far below is the number with a sticky part.
            let above = Num::new((n.integer << 70) + 1, n.exponent - 70);
            for negative in [false, true] {
                for mode in Rounding::DETERMINISTIC {
                    for (sticky, n) in [(false, n), (true, above)] {
                        let exact = Exact { negative, significand, exponent, sticky };
                        let expected =
                            model.encode(Meaning::Finite(negative, n), mode, Overflow::None, 0);
                        let rounded = Format::E4M3FN.round(exact, mode, 0, Overflow::None);
                        assert_eq!(rounded.code, expected, "{x:e} {mode} {sticky} {widen}");
                    }
                }
            }
        }
    }
    // Stochastic modes near the thresholds of 4 bits, between 1 and 1.125: 32nds of the gap.
    for part in 0..32 {
        let significand = 256 + part;
        let above = Num::new((significand << 60) + 1, -68);
        for variant in [StochasticVariant::A, StochasticVariant::B, StochasticVariant::C] {
            let mode = Rounding::Stochastic { variant, bits: 4 };
            for random in (0..16).map(|r| r << 28) {
                for (sticky, n) in [(false, Num::new(significand, -8)), (true, above)] {
                    let exact = Exact { negative: false, significand, exponent: -8, sticky };
                    let expected =
                        model.encode(Meaning::Finite(false, n), mode, Overflow::None, random);
                    let rounded = Format::E4M3FN.round(exact, mode, random, Overflow::None);
                    assert_eq!(rounded.code, expected, "{part} {mode} {sticky} {random:#x}");
                }
            }
        }
    }
    let dust = |exponent| Exact { negative: false, significand: 0, exponent, sticky: true };
    for exponent in [-2000, i32::MIN] {
        let up = Format::E4M3FN.round(dust(exponent), Rounding::Rup, 0, Overflow::None);
        assert_eq!((up.code, up.flags), (1, Flags::INEXACT | Flags::UNDERFLOW));
        assert_eq!(Format::E4M3FN.round(dust(exponent), Rounding::Rne, 0, Overflow::None).code, 0);
    }
    let huge = Exact { negative: true, significand: u128::MAX, exponent: i32::MAX, sticky: true };
    assert_eq!(Format::E5M2.round(huge, Rounding::Rne, 0, Overflow::None).code, 0xFC);
}

/// The master table of formats, as literals: name, bits, bias, largest value and its code, smallest normal
/// value, smallest value, numbers of NaN and infinity codes, negative zero.
#[test]
fn the_table_of_formats() {
    let p = power;
    #[rustfmt::skip]
    #[allow(clippy::type_complexity)]
    let rows: [(&str, u32, i32, f64, u64, Option<f64>, f64, usize, usize, bool); 33] = [
        ("e5m2",        8, 15, 57344.0,  0x7B, Some(p(-14)), p(-16), 6, 2, true),
        ("e4m3fn",      8,  7, 448.0,    0x7E, Some(p(-6)),  p(-9),  2, 0, true),
        ("e3m2",        6,  3, 28.0,     0x1F, Some(p(-2)),  p(-4),  0, 0, true),
        ("e2m3",        6,  1, 7.5,      0x1F, Some(1.0),    p(-3),  0, 0, true),
        ("e2m1",        4,  1, 6.0,      0x7,  Some(1.0),    0.5,    0, 0, true),
        ("e3m0",        4,  3, 16.0,     0x7,  Some(p(-2)),  p(-2),  0, 0, true),
        ("int8",        8,  0, 1.984375, 0x7F, None,         p(-6),  0, 0, false),
        ("e8m0",        8, 127, p(127),  0xFE, Some(p(-127)), p(-127), 1, 0, false),
        ("e4m3fnuz",    8,  8, 240.0,    0x7F, Some(p(-7)),  p(-10), 1, 0, false),
        ("e5m2fnuz",    8, 16, 57344.0,  0x7F, Some(p(-15)), p(-17), 1, 0, false),
        ("e4m3b11fnuz", 8, 11, 30.0,     0x7F, Some(p(-10)), p(-13), 1, 0, false),
        ("e4m3",        8,  7, 240.0,    0x77, Some(p(-6)),  p(-9), 14, 2, true),
        ("e3m4",        8,  3, 15.5,     0x6F, Some(p(-2)),  p(-6), 30, 2, true),
        ("ue4m3",       7,  7, 448.0,    0x7E, Some(p(-6)),  p(-9),  1, 0, false),
        ("ue5m3",       8, 15, 114688.0, 0xFE, Some(p(-14)), p(-17), 1, 0, false),
        ("f16",        16, 15, 65504.0, 0x7BFF, Some(p(-14)), p(-24), 2046, 2, true),
        ("bf16",       16, 127, p(127) * (2.0 - p(-7)), 0x7F7F, Some(p(-126)), p(-133), 254, 2, true),
        ("tf32",       19, 127, p(127) * (2.0 - p(-10)), 0x3_FBFF, Some(p(-126)), p(-136), 2046, 2, true),
        ("e8m3",       12, 127, p(127) * (2.0 - p(-3)), 0x7F7, Some(p(-126)), p(-129), 14, 2, true),
        ("e8m6",       15, 127, p(127) * (2.0 - p(-6)), 0x3FBF, Some(p(-126)), p(-132), 126, 2, true),
        ("binary8p3se", 8, 16, 49152.0, 0x7E, Some(p(-15)), p(-17), 1, 2, false),
        ("binary8p3sf", 8, 16, 57344.0, 0x7F, Some(p(-15)), p(-17), 1, 0, false),
        ("binary8p4se", 8,  8, 224.0,   0x7E, Some(p(-7)),  p(-10), 1, 2, false),
        ("binary8p5sf", 8,  4, 15.5,    0x7F, Some(p(-3)),  p(-7),  1, 0, false),
        ("binary8p1uf", 8, 128, p(126), 0xFE, Some(p(-127)), p(-127), 1, 0, false),
        ("binary8p1ue", 8, 128, p(125), 0xFD, Some(p(-127)), p(-127), 1, 1, false),
        ("binary8p1se", 8, 64, p(62),   0x7E, Some(p(-63)), p(-63), 1, 2, false),
        ("binary8p4uf", 8, 16, 57344.0, 0xFE, Some(p(-15)), p(-18), 1, 0, false),
        ("binary6p3sf", 6,  4, 14.0,    0x1F, Some(p(-3)),  p(-5),  1, 0, false),
        ("binary6p4sf", 6,  2, 3.75,    0x1F, Some(p(-1)),  p(-4),  1, 0, false),
        ("binary4p2se", 4,  2, 2.0,     0x6,  Some(p(-1)),  p(-2),  1, 2, false),
        ("binary4p3sf", 4,  1, 1.75,    0x7,  Some(1.0),    p(-2),  1, 0, false),
        ("binary8p8uf", 8,  1, 1.984375, 0xFE, Some(1.0),   p(-7),  1, 0, false),
    ];
    for (name, bits, bias, max, max_code, min_normal, min_positive, nans, infinities, zero) in rows
    {
        let format: Format = name.parse().unwrap();
        assert_eq!((format.bits(), format.bias()), (bits, bias), "{name}");
        assert_eq!((format.max().to_f64(), format.max_code()), (max, max_code), "{name}");
        assert_eq!(format.min_normal().map(Value::to_f64), min_normal, "{name}");
        assert_eq!(format.min_positive().to_f64(), min_positive, "{name}");
        let values: Vec<Value> = format.codes().map(|code| format.decode(code)).collect();
        assert_eq!(values.iter().filter(|value| value.is_nan()).count(), nans, "{name}");
        assert_eq!(values.iter().filter(|value| value.is_infinite()).count(), infinities, "{name}");
        let negative_zero = values.iter().any(|value| value.is_zero() && value.is_sign_negative());
        assert_eq!((negative_zero, format.has_negative_zero()), (zero, zero), "{name}");
    }
    assert_eq!(Format::E2M1.to_f32(0b0101), 3.0);
    assert_eq!(Format::INT8.to_f32(0x80), -2.0);
    assert_eq!((Format::E4M3FN.emax(), Format::E5M2.emax(), Format::E2M1.emax()), (8, 15, 2));
    assert_eq!((Format::E3M2.emax(), Format::E2M3.emax(), Format::INT8.emax()), (4, 2, 0));
    for (k, p, signed, infinite) in
        [(2, 1, true, true), (8, 8, true, true), (8, 9, false, true), (8, 0, true, true)]
    {
        assert!(Format::p3109(k, p, signed, infinite).is_err());
    }
}

/// Where each format starts to overflow under nearest-even: the midpoint above the largest value.
#[test]
fn thresholds_of_overflow() {
    // format, largest value, midpoint, code of the midpoint, code above it, saturated code
    #[rustfmt::skip]
    let rows = [
        ("e4m3fn",      448.0,    464.0,    0x7E, 0x7F, 0x7E),
        ("e5m2",        57344.0,  61440.0,  0x7C, 0x7C, 0x7B),
        ("e4m3fnuz",    240.0,    248.0,    0x80, 0x80, 0x7F),
        ("e5m2fnuz",    57344.0,  61440.0,  0x80, 0x80, 0x7F),
        ("e4m3b11fnuz", 30.0,     31.0,     0x80, 0x80, 0x7F),
        ("e4m3",        240.0,    248.0,    0x78, 0x78, 0x77),
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
        let code = |x: f32, overflow| format.encode_f32(x, Rounding::Rne, overflow, 0).code;
        assert_eq!(code(max, Overflow::None), format.max_code(), "{name}");
        assert_eq!(code(midpoint.next_down(), Overflow::None), format.max_code(), "{name}");
        assert_eq!(code(midpoint, Overflow::None), at, "{name}");
        assert_eq!(code(midpoint.next_up(), Overflow::None), above, "{name}");
        assert_eq!(code(midpoint.next_up(), Overflow::Finite), saturated, "{name}");
    }
    let bf16 = |x: f64| Format::BF16.encode_f64(x, Rounding::Rne, Overflow::None, 0).code;
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
        assert_eq!(format.encode_f64(x, Rounding::Rne, Overflow::None, 0).code, code, "{format}");
        let twice = format.encode_f32(x as f32, Rounding::Rne, Overflow::None, 0).code;
        assert_eq!(twice, code - 1, "{format}: a case that rounding twice would pass");
    }
}

/// E8M0 has neither zero nor a sign: what the model assumes of it, spelled out.
#[test]
fn scales_without_zero() {
    let code = |x: f32, mode, overflow| Format::E8M0.encode_f32(x, mode, overflow, 0).code;
    for x in [0.0, -0.0, -1.0, f32::NEG_INFINITY, f32::INFINITY, f32::NAN] {
        assert_eq!(code(x, Rounding::Rne, Overflow::None), 0xFF, "{x}");
    }
    for x in [0.0, -0.0, -1.0, f32::NEG_INFINITY] {
        assert_eq!(code(x, Rounding::Rne, Overflow::Finite), 0x00, "{x}");
    }
    assert_eq!(code(f32::INFINITY, Rounding::Rne, Overflow::Finite), 0xFE);
    assert_eq!(code(f32::from_bits(1), Rounding::Rtz, Overflow::None), 0x00);
    // Ties go to the even code; away from zero is what ml_dtypes and PyTorch do.
    for (x, even, away) in [(1.5, 128, 128), (3.0, 128, 129), (6.0, 130, 130), (0.75, 126, 127)] {
        assert_eq!(code(x, Rounding::Rne, Overflow::None), even, "{x}");
        assert_eq!(code(x, Rounding::Rna, Overflow::None), away, "{x}");
    }
}

/// Every code of the 16-bit formats survives, and P3109's widest exponents exceed binary64.
#[test]
fn wide_formats() {
    let mut formats: Vec<Format> = NAMED.map(|(_, format)| format).into();
    for name in ["e8m3", "e8m4", "e8m5", "e8m6", "binary16p1ue", "binary16p5sf", "e6m9b31fn-nosub"]
    {
        formats.push(name.parse().unwrap());
    }
    for format in formats.into_iter().filter(|format| format.bits() <= 16) {
        for code in format.codes() {
            let value = format.decode(code);
            if value.is_nan() {
                continue;
            }
            for mode in [Rounding::Rne, Rounding::Odd, Rounding::stochastic(8)] {
                let rounded = format.encode(value, mode, Overflow::None, u32::MAX);
                assert_eq!(
                    (rounded.code, rounded.flags),
                    (code, Flags::NONE),
                    "{format} {code:#x}"
                );
            }
        }
    }
    let widest: Format = "binary16p1ue".parse().unwrap();
    let two_to = |exponent| Value::Finite { negative: false, significand: 1, exponent };
    assert_eq!((widest.min_positive(), widest.max()), (two_to(-32767), two_to(32765)));
    assert_eq!((widest.to_f64(1), widest.to_f64(0xFFFD)), (0.0, f64::INFINITY));
    // DLFloat16: no subnormals, so the smallest value is 2^-31 (1 + 2^-9).
    let dlfloat: Format = "e6m9b31fn-nosub".parse().unwrap();
    assert_eq!(dlfloat.min_positive().to_f64(), power(-31) * (1.0 + power(-9)));
    assert_eq!((dlfloat.max().to_f64(), dlfloat.max_code()), (8_573_157_376.0, 0x7FFE));
}
