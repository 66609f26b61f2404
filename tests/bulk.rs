//! Slice conversions: the fast body against the rounding core, for every format, mode and policy.

#![cfg(feature = "std")]

use exmy::bulk::{self, Cast, Converter};
use exmy::format::Format;
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Rounding};
use exmy::simd::{Level, with_level};

const RANDOM: Philox = Philox::new(3, Stream::new("bulk"));

fn formats() -> Vec<Format> {
    let named = exmy::format::NAMED.iter().map(|(_, format)| *format);
    let texts = [
        "e8m3",
        "e8m4",
        "e8m5",
        "e8m6",
        "e8m13",
        "e5m23",
        "e1m6",
        "e0m5",
        "e7m0",
        "e4m3b20",
        "e2m1b-100",
        "e8m3b135",
        "e6m9-nosub",
        "binary8p3se",
        "binary8p4sf",
        "binary8p1se",
        "binary8p4uf",
        "binary8p1uf",
        "ue5m3",
        "int4",
        "int12",
    ];
    named
        .chain(texts.iter().map(|text| text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))))
        .collect()
}

/// Every exponent with interesting significands, values around every edge of the format, specials.
fn inputs(format: Format) -> Vec<f32> {
    let mut bits: Vec<u32> = vec![];
    for exponent in 0..=255_u32 {
        for significand in
            [0, 1, 2, 0x20_0000, 0x3F_FFFF, 0x40_0000, 0x40_0001, 0x60_0000, 0x7F_FFFF, 0x12_3456]
        {
            bits.push(exponent << 23 | significand);
        }
    }
    let mut around = |x: f32| {
        let x = x.to_bits() & 0x7FFF_FFFF;
        bits.extend((x.saturating_sub(2)..=(x + 2).min(0x7FFF_FFFF)).collect::<Vec<_>>());
    };
    let (max, min) = (format.max().to_f32(), format.min_positive().to_f32());
    for k in 0..64 {
        around(max * (1.0 + k as f32 / 128.0));
        around(min * (k as f32 / 8.0));
        around(max * (k as f32 / 64.0));
    }
    let random = Philox::new(2, Stream::new("inputs"));
    bits.extend((0..2000).map(|i| random.word(i) & 0x7FFF_FFFF));
    bits.iter().flat_map(|b| [f32::from_bits(*b), f32::from_bits(*b | 1 << 31)]).collect()
}

#[test]
fn fast_is_plain() {
    let mut modes = Rounding::DETERMINISTIC.to_vec();
    modes.extend(
        ["sr1", "sr8", "sr17", "sr32", "sr4b", "sr4c"].map(|m| m.parse::<Rounding>().unwrap()),
    );
    for format in formats() {
        let x = inputs(format);
        for rounding in &modes {
            for overflow in Overflow::ALL {
                let mut plain = vec![0.0; x.len()];
                let cast = Cast { format, rounding: *rounding, overflow };
                let converter = Converter::from(cast).with_random(RANDOM);
                converter.fake_quantize_plain(&x, &mut plain);
                for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
                    let mut fast = vec![0.0; x.len()];
                    with_level(level, || {
                        converter.fake_quantize_into(&x, &mut fast);
                    });
                    for ((x, a), b) in x.iter().zip(&plain).zip(&fast) {
                        assert_eq!(
                            a.to_bits(),
                            b.to_bits(),
                            "{format} {rounding} {overflow} {level}: {x:e} ({:#x}) plain {a:e} fast {b:e}",
                            x.to_bits()
                        );
                    }
                }
            }
        }
    }
}

/// Where overflow starts under nearest-even: the largest value, the midpoint above it (exact
/// numbers of the formats' definitions) and what each policy makes of it.
#[test]
fn overflow_thresholds() {
    let nan = f32::NAN;
    let infinity = f32::INFINITY;
    let cases = [
        // format, largest, midpoint, whether the midpoint stays, beyond under sat-none
        ("e4m3fn", 448.0, 464.0, true, nan),
        ("e5m2", 57344.0, 61440.0, false, infinity),
        ("e4m3fnuz", 240.0, 248.0, false, nan),
        ("e4m3", 240.0, 248.0, false, infinity),
        ("e3m4", 15.5, 15.75, false, infinity),
        ("ue5m3", 114_688.0, 118_784.0, true, nan),
        ("e3m2", 28.0, 30.0, false, 28.0),
        ("e2m3", 7.5, 7.75, false, 7.5),
        ("e2m1", 6.0, 7.0, false, 6.0),
        ("binary8p4se", 224.0, 232.0, true, infinity),
        ("binary8p4sf", 240.0, 248.0, false, 240.0),
        ("f16", 65504.0, 65520.0, false, infinity),
    ];
    let up = |x: f32| f32::from_bits(x.to_bits() + 1);
    let down = |x: f32| f32::from_bits(x.to_bits() - 1);
    for (text, max, mid, stays, beyond) in cases {
        let format: Format = text.parse().unwrap();
        let quantize = |overflow, x: f32| {
            let mut data = [x];
            Converter::from(Cast::new(format).with_overflow(overflow)).fake_quantize(&mut data);
            data[0]
        };
        let same = |a: f32, b: f32| a == b || (a.is_nan() && b.is_nan());
        for (x, want) in [
            (max, max),
            (down(mid), max),
            (mid, if stays { max } else { beyond }),
            (up(mid), beyond),
            (f32::MAX, beyond),
        ] {
            let found = quantize(Overflow::None, x);
            assert!(same(found, want), "{text} {x}: {found}, expected {want}");
            assert_eq!(quantize(Overflow::Finite, x), max, "{text} {x}");
            if format.is_signed() {
                assert!(same(quantize(Overflow::None, -x), -want), "{text} -{x}");
            }
        }
    }
}

/// Codes and values are inverse to each other, and the codes of a few numbers are known.
#[test]
fn codes() {
    let texts =
        ["e4m3fn", "e5m2", "e2m1", "int8", "e8m0", "e4m3fnuz", "bf16", "f16", "binary8p3se"];
    for text in texts {
        let format: Format = text.parse().unwrap();
        let codes: Vec<u16> = format.codes().map(|code| code as u16).collect();
        let mut values = vec![0.0_f32; codes.len()];
        bulk::decode_into(format, &codes, &mut values);
        let mut back = vec![0_u16; codes.len()];
        Converter::from(Cast::new(format).with_overflow(Overflow::None))
            .encode_into(&values, &mut back);
        for ((code, value), back) in codes.iter().zip(&values).zip(&back) {
            assert!(
                value.is_nan() || code == back,
                "{text}: {code:#x} is {value}, that is {back:#x}"
            );
        }
    }
    let mut found = [0_u8; 6];
    let x = [1.0_f32, -1.0, 0.3, 500.0, -0.0, 0.001];
    Converter::from(Cast::new(Format::E4M3FN)).encode_into(&x, &mut found);
    // 0.3 = 1.2 * 2^-2: field 5, trailing 0.2 * 8 = 1.6 to 2; 0.001 is half of 2^-9, and a bit.
    assert_eq!(found, [0x38, 0xB8, 5 << 3 | 2, 0x7E, 0x80, 0x01]);
}

/// Element i takes word i, whatever the slice's length or the kernel's stride.
#[test]
fn stochastic_words_by_index() {
    let x = vec![0.3_f32; 5000];
    let mut all = x.clone();
    let mode = Rounding::stochastic(8);
    Converter::from(Cast::new(Format::E2M1).with_rounding(mode))
        .with_random(RANDOM)
        .fake_quantize(&mut all);
    // 0.3 is 0.6 of the way from 0 to 0.5: up iff floor(0.6 * 256) + R >= 256 with R the top byte.
    for (i, y) in all.iter().enumerate() {
        let up = 153 + (RANDOM.word(i as u64) >> 24) >= 256;
        assert_eq!(*y, if up { 0.5 } else { 0.0 }, "{i}");
    }
}
