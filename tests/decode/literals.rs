//! Values and codes worked out by hand from the formats' definitions.

use super::at_every_level;
use exmy::format::Format;
use exmy::quantizer::Cast;
use exmy::round::{Overflow, Rounding, Rules};
use exmy::slice::{Converter, decode_into};

/// The values of a few codes, at the places of a slice that bodies and remainders share.
#[test]
fn values() {
    let infinity = f32::INFINITY;
    let cases: [(Format, u8, f32); 18] = [
        (Format::E4M3FN, 0x7E, 448.0),
        (Format::E4M3FN, 0x01, 0.001_953_125), // 2^-9
        (Format::E4M3FN, 0x80, -0.0),
        (Format::E5M2, 0x7C, infinity),
        (Format::E5M2, 0x03, 3.0 / 65536.0),
        (Format::E4M3FNUZ, 0x7F, 240.0),
        (Format::E4M3FNUZ, 0x81, -1.0 / 1024.0),
        (Format::E2M1, 0x0B, -1.5),
        (Format::E2M1, 0xF1, 0.5),
        (Format::E3M2, 0x1F, 28.0),
        (Format::E2M3, 0x3F, -7.5),
        (Format::INT8, 0x80, -2.0),
        (Format::INT8, 0x7F, 1.984_375),
        (Format::E8M0, 0x00, 5.877_472e-39),  // 2^-127
        (Format::E8M0, 0xFE, 1.701_411_8e38), // 2^127
        (Format::UE4M3, 0xB8, 1.0),
        (Format::UE5M3, 0xFE, 114_688.0),
        (Format::E3M0, 0x09, -0.25),
    ];
    at_every_level(|level| {
        for (format, code, value) in cases {
            let mut out = [0.0_f32; 600];
            decode_into(format, &[code; 600], &mut out);
            let same = out.iter().all(|x| x.to_bits() == value.to_bits());
            assert!(same, "{format} {code:#x} {level}: {}, not {value}", out[599]);
        }
        for (format, code) in
            [(Format::E4M3FN, 0xFF_u8), (Format::E4M3FNUZ, 0x80), (Format::E8M0, 0xFF)]
        {
            let mut out = [0.0_f32; 600];
            decode_into(format, &[code; 600], &mut out);
            assert!(out.iter().all(|x| x.is_nan()), "{format} {code:#x} {level}");
        }
    });
}

/// Numbers of binary64 next to a midpoint, which by way of a nearest binary32 number would be on it.
#[test]
fn one_rounding() {
    // 2^-40, 2^-11 and 2^-8.
    let (tiny, eleventh, eighth) = (1.0 / (1_u64 << 40) as f64, 1.0 / 2048.0, 1.0 / 256.0);
    let cases: [(Format, f64, u16); 9] = [
        (Format::E4M3FN, 1.0625 + tiny, 0x39),
        (Format::E4M3FN, 1.0625, 0x38),
        (Format::E4M3FN, 1.0625 - tiny, 0x38),
        (Format::BF16, 1.0 + eighth + tiny, 0x3F81),
        (Format::BF16, -1.0 - eighth - tiny, 0xBF81),
        (Format::BF16, 1.0 + eighth, 0x3F80),
        (Format::E2M1, 0.25 + tiny, 1),
        (Format::E2M1, 0.25, 0),
        (Format::F16, 1.0 + eleventh + tiny, 0x3C01),
    ];
    at_every_level(|level| {
        for (format, x, code) in cases {
            let codes: Vec<u16> = Converter::from(Cast::new(format)).encode(&[x; 40]);
            assert!(codes.iter().all(|found| *found == code), "{format} {x:e} {level}: {codes:x?}");
        }
    });
}

/// From 2^128 on a binary64 number is larger than every binary32 number, but not infinite: toward
/// zero the largest binary32 number becomes bfloat16's largest and is not out of range, 1e39 is.
#[test]
fn beyond_binary32() {
    let largest = f64::from(f32::MAX);
    let cases = [
        (Rounding::TowardZero, Overflow::Infinity, [0x7F7F_u16, 0x7F80, 0x7F80]),
        (Rounding::TowardZero, Overflow::Nan, [0x7F7F, 0x7FC0, 0x7FC0]),
        (Rounding::TowardZero, Overflow::None, [0x7F7F, 0x7F7F, 0x7F80]),
        (Rounding::TiesToEven, Overflow::Finite, [0x7F7F, 0x7F7F, 0x7F7F]),
        (Rounding::TiesToEven, Overflow::Propagate, [0x7F7F, 0x7F7F, 0x7F80]),
        (Rounding::TiesToEven, Overflow::None, [0x7F80, 0x7F80, 0x7F80]),
    ];
    at_every_level(|level| {
        for (rounding, overflow, want) in cases {
            let converter = Converter::new(
                Format::BF16,
                Rules::DEFAULT.with_rounding(rounding).with_overflow(overflow),
            );
            let codes: Vec<u16> = converter.encode(&[largest, 1e39, f64::INFINITY]);
            assert_eq!(codes, want, "{rounding} {overflow} {level}");
        }
    });
}
