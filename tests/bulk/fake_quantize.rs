//! To values: thresholds worked out by hand, in place and not, with any number of threads.

use exmy::format::Format;
use exmy::quantizer::Cast;
use exmy::round::{Overflow, Rounding, Rules};
use exmy::slice::Converter;

use super::{RANDOM, format, inputs, levels, with_level};

/// Where overflow starts under nearest-even: the largest value, the midpoint above it (exact
/// numbers of the formats' definitions) and what each policy makes of it.
#[test]
fn overflow_thresholds() {
    let nan = f32::NAN;
    let infinity = f32::INFINITY;
    let cases = [
        // format, largest, midpoint, whether the midpoint stays, beyond under sat-none
        ("e4m3", 448.0, 464.0, true, nan),
        ("e5m2", 57344.0, 61440.0, false, infinity),
        ("e4m3fnuz", 240.0, 248.0, false, nan),
        ("e4m3-ieee", 240.0, 248.0, false, infinity),
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
        let format = format(text);
        let quantize = |overflow, x: f32| {
            let mut data = [x];
            Converter::new(format, Rules::DEFAULT.with_overflow(overflow)).fake_quantize(&mut data);
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

/// Lengths next to the copy's span and the threads' chunk, in place and out of place, parts of a
/// slice by their own converters, one thread and several: one result.
#[test]
fn in_place_in_parts_and_in_threads() {
    let edges = inputs(Format::E5M2, 0);
    for len in [0, 1, 2047, 2048, 2049, 65_535, 65_537, (1 << 18) + 17] {
        let x: Vec<f32> = edges.iter().cycle().take(len).copied().collect();
        for (text, mode) in [
            ("e5m2", Rounding::TiesToEven),
            ("e8m3", Rounding::TowardZero),
            ("e4m3fnuz", Rounding::ToOdd),
            ("e8m3b135", Rounding::TiesToEven),
            ("e4m3", Rounding::stochastic(8)),
            ("bf16", Rounding::stochastic(32)),
        ] {
            let converter = Converter::from(Cast::new(format(text)).with_rounding(mode));
            let converter = converter.with_random(RANDOM);
            let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            let mut whole = vec![0.0; len];
            converter.fake_quantize_into(&x, &mut whole);
            let whole = bits(&whole);
            let mut in_place = x.clone();
            converter.fake_quantize(&mut in_place);
            assert_eq!(bits(&in_place), whole, "{text} {mode} {len}");
            let at = len / 3;
            let mut parts = vec![0.0; len];
            let (head, tail) = parts.split_at_mut(at);
            converter.fake_quantize_into(&x[..at], head);
            converter.starting_at(at as u64).fake_quantize_into(&x[at..], tail);
            assert_eq!(bits(&parts), whole, "{text} {mode} {len}");
            for threads in [1, 3] {
                let work = || {
                    let mut out = vec![0.0; len];
                    converter.fake_quantize_into(&x, &mut out);
                    out
                };
                let out = exmy::parallel::with_threads(threads, work).unwrap();
                assert_eq!(bits(&out), whole, "{text} {mode} {len} {threads}");
            }
        }
    }
}

#[test]
fn every_length() {
    let x = inputs(Format::BF16, 0);
    for level in levels() {
        with_level(level, || {
            for text in ["e8m3", "e4m3", "e5m10", "ue4m3"] {
                for mode in [Rounding::TiesToEven, Rounding::TowardZero, Rounding::stochastic(8)] {
                    let converter = Converter::from(Cast::new(format(text)).with_rounding(mode));
                    let converter = converter.with_random(RANDOM);
                    let mut whole = vec![0.0; 200];
                    converter.fake_quantize_plain(&x[..200], &mut whole);
                    for len in 0..=130 {
                        let start = len % 17;
                        let mut out = [7.0; 160];
                        let part = converter.starting_at(start as u64);
                        part.fake_quantize_into(&x[start..start + len], &mut out[3..3 + len]);
                        for (i, out) in out.iter().enumerate() {
                            let inside = (3..3 + len).contains(&i);
                            let want = if inside { whole[start + i - 3] } else { 7.0 };
                            assert_eq!(out.to_bits(), want.to_bits(), "{text} {mode} {len} {i}");
                        }
                    }
                }
            }
        });
    }
}
