//! To codes, deterministically: modes, policies, profiles, flushes, slices of every length.

use exmy::format::Format;
use exmy::minifloat::Bits;
use exmy::quantizer::Cast;
use exmy::round::{
    AbsentNan, Flush, NanCode, NanRules, Operands, Overflow, Payload, Profile, Rounding, Rules,
    SignRule,
};
use exmy::slice::{Converter, decode_into};

use super::{check, expected, format, formats, inputs, levels, spread, with_level};

#[test]
fn every_format_mode_and_policy() {
    spread(&formats(), |format| {
        let x = inputs(*format, 300);
        for rounding in Rounding::DETERMINISTIC {
            for overflow in Overflow::ALL {
                check(Cast { format: *format, rounding, overflow }.into(), &x);
            }
        }
    });
}

#[test]
fn every_profile() {
    spread(&formats(), |to| {
        let x = inputs(*to, 0);
        for profile in Profile::ALL {
            check(Converter::new(*to, profile.rules(*to)), &x);
            check(Converter::new(*to, profile.conversion(Format::F32, *to)), &x);
        }
    });
}

/// The rules besides rounding and overflow, one at a time and with every mode.
#[test]
fn every_rule() {
    let nan = NanRules::CANONICAL;
    let plain = Rules::DEFAULT;
    let mut rules = vec![
        plain.with_operands(Operands::Zero),
        plain.with_operands(Operands::PositiveZero),
        plain.with_operands(Operands::Away),
        plain.with_sign(SignRule::Magnitude),
        plain.with_sign(SignRule::Relu),
        plain.with_sign(SignRule::Relu).with_flush(Flush::Output).with_overflow(Overflow::Finite),
        plain.with_operands(Operands::Zero).with_flush(Flush::Input),
    ];
    for flush in [Flush::Input, Flush::Candidates, Flush::Output] {
        rules.push(plain.with_flush(flush));
        rules.push(plain.with_flush(flush).with_overflow(Overflow::Finite));
    }
    for nan in [
        nan.with_code(NanCode::AllOnes).with_keep_sign(false),
        nan.with_absent(AbsentNan::SignedMax),
        nan.with_absent(AbsentNan::OppositeZero).with_payload(Payload::Keep),
        nan.with_payload(Payload::Truncate),
    ] {
        rules.push(plain.with_nan(nan));
    }
    let texts = [
        "e4m3",
        "e5m2",
        "e2m1",
        "e3m2",
        "e4m3fnuz",
        "int8",
        "ue4m3",
        "e8m0",
        "bf16",
        "f16",
        "e8m3",
        "e5m0",
        "binary8p3se",
        "e1m6",
        "e6m9-nosub",
        "tf32",
    ];
    spread(&texts, |text| {
        let format = format(text);
        let x = inputs(format, 0);
        for rules in &rules {
            for rounding in Rounding::DETERMINISTIC {
                check(Converter::new(format, rules.with_rounding(rounding)), &x);
            }
        }
    });
}

/// Every length and every offset modulo a vector; nothing outside of the slice is written.
#[test]
fn every_length_and_offset() {
    let x = inputs(Format::E4M3FN, 0);
    fn encode<C: Bits>(cast: Cast, x: &[f32], start: usize, len: usize) {
        let converter = Converter::from(cast).with_random(super::RANDOM).starting_at(5);
        let part = &x[start..start + len];
        let guard = C::from_u64(0x5A);
        let mut codes = vec![guard; start % 7 + len + 9];
        converter.encode_into(part, &mut codes[start % 7..][..len]);
        let (before, rest) = codes.split_at(start % 7);
        let (found, after) = rest.split_at(len);
        assert!(before.iter().chain(after).all(|code| *code == guard), "{cast} {start} {len}");
        let found: Vec<u64> = found.iter().map(|code| code.to_u64()).collect();
        assert_eq!(found, expected(&converter, part, 5), "{cast} {start} {len}");
    }
    for level in levels() {
        with_level(level, || {
            for len in 0..=130 {
                let start = len * 37 % 67;
                for text in ["e4m3", "e4m3fnuz", "e2m1"] {
                    for mode in
                        [Rounding::TiesToEven, Rounding::TowardPositive, Rounding::stochastic(8)]
                    {
                        encode::<u8>(Cast::new(format(text)).with_rounding(mode), &x, start, len);
                    }
                }
                for text in ["bf16", "f16"] {
                    encode::<u16>(Cast::new(format(text)), &x, start, len);
                    encode::<u32>(Cast::new(format(text)), &x, start, len);
                    encode::<u64>(Cast::new(format(text)), &x, start, len);
                }
            }
        });
    }
}

/// Codes and values are inverse to each other, and the codes of a few numbers are known.
#[test]
fn codes() {
    let texts = ["e4m3", "e5m2", "e2m1", "int8", "e8m0", "e4m3fnuz", "bf16", "f16", "binary8p3se"];
    for text in texts {
        let format = format(text);
        let codes: Vec<u16> = format.codes().map(|code| code as u16).collect();
        let mut values = vec![0.0_f32; codes.len()];
        decode_into(format, &codes, &mut values);
        let mut back = vec![0_u16; codes.len()];
        Converter::new(format, Rules::DEFAULT).encode_into(&values, &mut back);
        for ((code, value), back) in codes.iter().zip(&values).zip(&back) {
            assert!(
                value.is_nan() || code == back,
                "{text}: {code:#x} is {value}, that is {back:#x}"
            );
        }
    }
    let mut found = [0_u8; 6];
    let x = [1.0_f32, -1.0, 0.3, 500.0, -0.0, 0.001];
    Converter::new(Format::E4M3FN, Rules::SATURATING).encode_into(&x, &mut found);
    // 0.3 = 1.2 * 2^-2: field 5, trailing 0.2 * 8 = 1.6 to 2; 0.001 is half of 2^-9, and a bit.
    assert_eq!(found, [0x38, 0xB8, 5 << 3 | 2, 0x7E, 0x80, 0x01]);
}

/// Known codes of numbers that flush: the smallest normal number of E4M3FN is 2^-6, the place below
/// it 2^-9; and of NaN with a payload.
#[test]
fn flushed_and_payload_codes() {
    let encode = |rules: Rules, x: f32| {
        let mut code = [0_u8];
        Converter::new(Format::E4M3FN, rules).encode_into(&[x], &mut code);
        code[0]
    };
    let flush = |flush| Rules::DEFAULT.with_flush(flush);
    let (half_up, below) = (0.015625 - 0.0001, 0.01);
    assert_eq!([half_up, below].map(|x| encode(flush(Flush::None), x)), [0x08_u8, 0x05]);
    assert_eq!([half_up, below].map(|x| encode(flush(Flush::Input), x)), [0x00_u8, 0x00]);
    assert_eq!([half_up, below].map(|x| encode(flush(Flush::Output), x)), [0x08_u8, 0x00]);
    assert_eq!([half_up, below].map(|x| encode(flush(Flush::Candidates), x)), [0x08_u8, 0x08]);
    assert_eq!(encode(flush(Flush::Candidates), -0.0078125), 0x80_u8, "a tie goes to zero");
    let ieee = Converter::new(Format::BF16, Profile::Ieee.rules(Format::BF16));
    let x = [0x7FA1_2345, 0xFF80_0001].map(f32::from_bits);
    assert_eq!(ieee.encode::<f32, u16>(&x), [0x7FE1, 0xFFC0]);
}

#[test]
#[should_panic(expected = "different lengths")]
fn lengths_must_agree() {
    Converter::new(Format::E4M3FN, Rules::SATURATING).encode_into(&[1.0_f32; 3], &mut [0_u8; 2]);
}

#[test]
#[should_panic(expected = "do not fit 8")]
fn codes_must_fit() {
    Converter::new(Format::BF16, Rules::DEFAULT).encode_into(&[1.0_f32; 2], &mut [0_u8; 2]);
}
