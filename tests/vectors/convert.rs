//! Streams of codes.

use exmy::format::Format;
use exmy::math::{Context, Operand};
use exmy::random::Philox;
use exmy::round::{Profile, Rounding};
use exmy::vectors::convert::{ConvertOptions, RandomSource, STREAM, convert};

fn options(from: Format, to: Format, profile: Profile) -> ConvertOptions {
    ConvertOptions {
        from,
        to,
        rules: profile.rules(to),
        flags: false,
        strict: false,
        random: RandomSource::Seed(1),
    }
}

/// What is printed, and the complaints.
fn stream(options: &ConvertOptions, text: &[u8]) -> (String, Vec<String>) {
    let (mut out, mut complaints) = (Vec::new(), Vec::new());
    let summary =
        convert(text, &mut out, options, |malformed| complaints.push(malformed.to_string()));
    assert_eq!(summary.unwrap().malformed, complaints.len() as u64);
    (String::from_utf8(out).unwrap(), complaints)
}

#[test]
fn known_codes_by_every_kind_of_line() {
    let narrow = options(Format::F64, Format::E4M3FN, Profile::Ieee);
    // 1.0625 + 2^-40 (by way of binary32 it would be 38), 1, -0, NaN, 500.
    let text =
        b"3FF1000000001000\r\n0x3ff0000000000000  \n\n\t8000000000000000\n7ff8000000000000\n\
        0X407F400000000000";
    assert_eq!(stream(&narrow, text).0, "39\n38\n\n80\n7f\n7f\n");
    let flags =
        ConvertOptions { flags: true, ..options(Format::F32, Format::E2M1, Profile::OcpSat) };
    // 1, 6.5, 100, the smallest subnormal, NaN.
    let text = b"3f800000\n40d00000\n42c80000\n00000001\n7fc00000\n";
    assert_eq!(stream(&flags, text).0, "2 00\n7 01\n7 25\n0 03\n7 10\n");
    assert_eq!(stream(&flags, b"").0, "");
    // 19 bits are five digits, 6 bits two.
    let tf32 = options(Format::E3M2, Format::TF32, Profile::Ieee);
    assert_eq!(stream(&tf32, b"0C\n3f\n").0, "1fc00\n60f00\n");
}

#[test]
fn malformed_lines_keep_the_step() {
    let narrow = options(Format::E4M3FN, Format::F16, Profile::Ieee);
    let (out, complaints) = stream(&narrow, b"38\nxyz\n138\n38 40\n\xff\n0x\n40");
    assert_eq!(out, "3c00\n\n\n\n\n\n4000\n");
    assert_eq!(complaints.len(), 5);
    assert!(complaints[1].starts_with("line 3: \"138\" has bits"), "{complaints:?}");
    assert!(complaints[2].starts_with("line 4: 2 words instead of 1"), "{complaints:?}");
    let strict = ConvertOptions { strict: true, ..narrow };
    let (out, complaints) = stream(&strict, b"38\nxyz\n40\n");
    assert_eq!((out.as_str(), complaints.len()), ("3c00\n", 1));
}

/// The table for narrow sources and the direct way for wide ones are the conversion.
#[test]
fn streams_are_the_conversion() {
    let pairs = [
        (Format::F16, Format::E5M2),
        (Format::E4M3FN, Format::F64),
        (Format::F32, Format::BF16),
        (Format::F64, Format::F32),
        (Format::E8M0, Format::E4M3FNUZ),
    ];
    for (from, to) in pairs {
        for profile in [Profile::Ieee, Profile::MlDtypes, Profile::CudaSatfinite] {
            let philox = Philox::new(7, exmy::random::Stream::new("test"));
            let mask = u64::MAX >> (64 - from.bits());
            let codes: Vec<u64> = (0..3000).map(|i| philox.word64(i) & mask).collect();
            let text: String = codes.iter().map(|code| format!("{code:x}\n")).collect();
            let options = ConvertOptions { flags: true, ..options(from, to, profile) };
            let context = Context::new(to, options.rules);
            let digits = to.bits().div_ceil(4) as usize;
            let expected: String = codes
                .iter()
                .map(|code| {
                    let rounded = context.convert(Operand::new(from, *code));
                    format!("{:0digits$x} {:02x}\n", rounded.code, rounded.flags.bits())
                })
                .collect();
            assert!(stream(&options, text.as_bytes()).0 == expected, "{from} {to} {profile}");
        }
    }
}

#[test]
fn random_bits_are_those_of_the_stream_or_the_column() {
    // 1.0625 is half-way between 1 and 1.125: up if the top bit of the random word is set.
    let rules = Profile::Ieee.rules(Format::E4M3FN).with_rounding(Rounding::stochastic(1));
    let seeded = ConvertOptions {
        rules,
        random: RandomSource::Seed(5),
        ..options(Format::F32, Format::E4M3FN, Profile::Ieee)
    };
    let philox = Philox::new(5, STREAM);
    // As docs/verification.md says how to compute them; these four by a program of their own.
    assert_eq!(STREAM.id(), 0xD8F7_1B25_ED52_5287);
    assert_eq!(philox.block(0), [0xBC03_0110, 0xF098_787F, 0xDF25_FF45, 0xE939_EF70]);
    let expected: String =
        (0..64).map(|i| if philox.word(i) >> 31 == 1 { "39\n" } else { "38\n" }).collect();
    assert_eq!(stream(&seeded, "3f880000\n".repeat(64).as_bytes()).0, expected);
    assert!(expected.contains("38") && expected.contains("39"));
    let column = ConvertOptions { random: RandomSource::Column, ..seeded };
    assert_eq!(stream(&column, b"3f880000 0\n3f880000 1\n").0, "38\n39\n");
    let (_, complaints) = stream(&column, b"3f880000\n3f880000 2\n3f880000 1 1\n");
    assert!(complaints[0].contains("1 word instead of 2"), "{complaints:?}");
    assert!(complaints[1].contains("beyond the width"), "{complaints:?}");
    assert!(complaints[2].contains("3 words instead of 2"), "{complaints:?}");
}
