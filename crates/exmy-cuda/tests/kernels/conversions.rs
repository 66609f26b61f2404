//! Conversions of every class of format by every mode and policy: the bits of the library.

use exmy::format::Format;
use exmy::math::{Context, Operand};
use exmy::minifloat::Bf16;
use exmy::random::{Philox, Stream};
use exmy::round::{
    AbsentNan, Flush, NanCode, Operands, Overflow, Rounding, Rules, SignRule, StochasticVariant,
};
use exmy_cuda::{Converter, decode_into, words_into};

use super::device;
use exmy_cuda::verify::inputs;

/// One of each class: specials, sign, zero, subnormals, exponents below and beyond those of binary32.
const FORMATS: [&str; 24] = [
    "e4m3fn",
    "e5m2",
    "e2m1",
    "e3m2",
    "e2m3",
    "int8",
    "e8m0",
    "e8m7",
    "e8m3",
    "e5m10",
    "e4m3fnuz",
    "e5m2fnuz",
    "ue4m3",
    "ue5m3",
    "e8m23",
    "e3m4",
    "binary8p3se",
    "binary8p4uf",
    "binary8p1se",
    "e8m2",
    "e0m4",
    "e1m2",
    "e10m5",
    "e9m0",
];

fn modes() -> Vec<Rounding> {
    let stochastic = |variant, bits| Rounding::Stochastic { variant, bits };
    let mut modes = Rounding::DETERMINISTIC.to_vec();
    modes.extend([1, 4, 8, 16, 20, 31, 32].map(|bits| stochastic(StochasticVariant::A, bits)));
    modes.extend([1, 8, 30, 31, 32].map(|bits| stochastic(StochasticVariant::B, bits)));
    modes.extend([1, 8, 31, 32].map(|bits| stochastic(StochasticVariant::C, bits)));
    modes
}

fn check(format: Format, rules: Rules, x: &[f32], failures: &mut Vec<String>) {
    let Some(device) = device() else { return };
    let random = Philox::new(5, Stream::new("conversions"));
    let on_device = Converter::new(format, rules).with_random(random).starting_at(3);
    let here = exmy::Converter::new(format, rules).with_random(random).starting_at(3);
    let input = device.upload(x).unwrap();
    let codes = on_device.encode::<u32>(&input).unwrap().to_vec().unwrap();
    let mut expected = vec![0_u32; x.len()];
    here.encode_into(x, &mut expected);
    let mut report = |what: &str, i: usize, found: u32, expected: u32| {
        let x = x[i].to_bits();
        failures
            .push(format!("{format} {rules:?} {what} of {x:#010x}: {found:#x}, not {expected:#x}"));
    };
    if let Some(i) = (0..x.len()).find(|i| codes[*i] != expected[*i]) {
        report("code", i, codes[i], expected[i]);
    }
    if !format.is_exact_in_f32() {
        return;
    }
    let mut values = device.zeros::<f32>(x.len()).unwrap();
    on_device.fake_quantize_into(&input, &mut values).unwrap();
    let values = values.to_vec().unwrap();
    let mut expected = vec![0.0; x.len()];
    here.fake_quantize_into(x, &mut expected);
    if let Some(i) = (0..x.len()).find(|i| values[*i].to_bits() != expected[*i].to_bits()) {
        report("value", i, values[i].to_bits(), expected[i].to_bits());
    }
    let mut narrow = device.zeros::<Bf16>(x.len()).unwrap();
    on_device.fake_quantize_bf16(&input, &mut narrow).unwrap();
    for (i, (narrow, wide)) in narrow.to_vec().unwrap().into_iter().zip(&expected).enumerate() {
        let expected = Context::new(Format::BF16, Rules::DEFAULT).convert(Operand::f32(*wide)).code;
        if narrow.to_bits() != expected as u16 {
            report("bfloat16", i, narrow.to_bits().into(), expected as u32);
            break;
        }
    }
}

#[test]
fn codes_and_values_of_every_format_and_mode() {
    let x = inputs(1500);
    let mut failures = Vec::new();
    for format in FORMATS.map(|name| name.parse::<Format>().unwrap()) {
        for rounding in modes() {
            for overflow in [Overflow::None, Overflow::Finite] {
                check(format, Rules { rounding, overflow, ..Rules::DEFAULT }, &x, &mut failures);
            }
        }
        for overflow in Overflow::ALL {
            check(format, Rules::DEFAULT.with_overflow(overflow), &x, &mut failures);
        }
    }
    assert!(
        failures.is_empty(),
        "{} failures, of them\n{}",
        failures.len(),
        failures[..failures.len().min(20)].join("\n")
    );
}

#[test]
fn rules_besides_mode_and_policy() {
    let x = inputs(400);
    let mut failures = Vec::new();
    let nan = |change: fn(&mut exmy::round::NanRules)| {
        let mut rules = Rules::DEFAULT;
        change(&mut rules.nan);
        rules
    };
    let mut all = vec![
        Rules { sign: SignRule::Magnitude, ..Rules::DEFAULT },
        Rules { sign: SignRule::Relu, ..Rules::SATURATING },
        nan(|nan| nan.code = NanCode::AllOnes),
        nan(|nan| nan.keep_sign = false),
        nan(|nan| nan.absent = AbsentNan::SignedMax),
        nan(|nan| nan.absent = AbsentNan::OppositeZero),
    ];
    for flush in [Flush::Input, Flush::Candidates, Flush::Output] {
        for rounding in [Rounding::TiesToEven, Rounding::AwayFromZero, Rounding::stochastic(8)] {
            all.push(Rules { flush, rounding, ..Rules::DEFAULT });
        }
    }
    for operands in [Operands::Zero, Operands::PositiveZero, Operands::Away] {
        all.push(Rules { operands, ..Rules::DEFAULT });
    }
    for format in FORMATS.map(|name| name.parse::<Format>().unwrap()) {
        all.iter().for_each(|rules| check(format, *rules, &x, &mut failures));
    }
    assert!(
        failures.is_empty(),
        "{} failures, of them\n{}",
        failures.len(),
        failures[..failures.len().min(20)].join("\n")
    );
}

#[test]
fn codes_have_their_values() {
    let Some(device) = device() else { return };
    for format in FORMATS.map(|name| name.parse::<Format>().unwrap()) {
        if !format.is_exact_in_f32() {
            continue;
        }
        let step = (format.code_count() / 5000).max(1) as usize;
        let codes: Vec<u32> = format.codes().step_by(step).map(|code| code as u32).collect();
        let mut out = device.zeros::<f32>(codes.len()).unwrap();
        decode_into(format, &device.upload(&codes).unwrap(), &mut out).unwrap();
        for (code, out) in codes.iter().zip(out.to_vec().unwrap()) {
            let expected = format.to_f32(u64::from(*code));
            assert_eq!(out.to_bits(), expected.to_bits(), "{format} {code:#x}");
        }
    }
}

#[test]
fn words_are_those_of_their_address() {
    let Some(device) = device() else { return };
    let random = Philox::new(11, Stream::new("words"));
    for first in [0, 3, (1 << 34) - 37, u64::MAX - 5] {
        let mut out = device.zeros::<u32>(70).unwrap();
        words_into(random, first, &mut out).unwrap();
        for (i, word) in (0_u64..).zip(out.to_vec().unwrap()) {
            assert_eq!(word, random.word(first.wrapping_add(i)), "{first} {i}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(device) = device() else { return };
    let x = device.upload(&[1.0_f32; 3]).unwrap();
    let said = |error: exmy_cuda::Error| error.to_string();
    let wide = Converter::new(Format::BF16, Rules::DEFAULT).encode::<u8>(&x).unwrap_err();
    assert_eq!(said(wide), "encode: codes of bf16 have 16 bits and do not fit 8");
    let mode = Rules::DEFAULT.with_rounding(Rounding::stochastic(8));
    let dry = Converter::new(Format::E2M1, mode).encode::<u8>(&x).unwrap_err();
    assert_eq!(said(dry), "encode: sr8 rounding needs random words: with_random");
    let mut short = device.zeros::<f32>(2).unwrap();
    let short = Converter::new(Format::E2M1, Rules::DEFAULT).fake_quantize_into(&x, &mut short);
    assert_eq!(said(short.unwrap_err()), "fake_quantize: 3 numbers and room for 2");
    let wide = Converter::new(Format::F64, Rules::DEFAULT).encode::<u32>(&x).unwrap_err();
    assert!(said(wide).contains("do not fit 32"));
}
