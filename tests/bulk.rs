//! Slice conversions: the fast body against the rounding core, for every format, mode and policy.

use exmy::bulk;
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
                bulk::fake_quantize_plain(format, *rounding, overflow, RANDOM, &x, &mut plain);
                for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
                    let mut fast = vec![0.0; x.len()];
                    with_level(level, || {
                        bulk::fake_quantize_into(
                            format, *rounding, overflow, RANDOM, &x, &mut fast,
                        );
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
