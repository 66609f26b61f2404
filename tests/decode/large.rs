//! Slices long enough for several threads and for stores past the caches.

use super::{RANDOM, at_every_level};
use exmy::format::Format;
use exmy::minifloat::Bits;
use exmy::quantizer::Cast;
use exmy::round::{Rounding, Rules};
use exmy::slice::{Converter, decode_into, decode_plain};

/// More than 32 MiB of codes and results, which begin at no multiple of a cache line, by a table
/// of the definition's results; what lies around the results stays.
fn past<C: Bits, T: Copy + PartialEq>(
    codes: &[C],
    table: &[T],
    guard: T,
    work: impl Fn(&[C], &mut [T]),
) {
    let len = codes.len();
    assert!(size_of_val(codes) + len * size_of::<T>() >= 32 << 20);
    let mut out = vec![guard; len + 5];
    at_every_level(|level| {
        out.fill(guard);
        work(codes, &mut out[3..len + 3]);
        let wrong =
            codes.iter().zip(&out[3..]).position(|(code, x)| table[code.to_u64() as usize] != *x);
        assert_eq!(wrong, None, "{level}");
        assert!(out[..3].iter().chain(&out[len + 3..]).all(|x| *x == guard), "{level}");
    });
}

fn codes(len: usize, top: u32) -> impl Iterator<Item = u32> {
    (0..len as u32).map(move |i| i.wrapping_mul(0x9E37_79B1) >> (32 - top))
}

#[test]
fn past_the_caches() {
    let bytes: Vec<u8> = codes((17 << 20) + 77, 8).map(|code| code as u8).collect();
    let all: Vec<u8> = (0..=255).collect();
    // Every NaN becomes the same, so that results compare.
    let nan_free = |x: &mut [f32]| x.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = 500.0);
    let mut singles = vec![0.0_f32; 256];
    decode_plain(Format::E2M1, &all, &mut singles);
    past(&bytes[..8 << 20], &singles, -77.0, |codes, out| decode_into(Format::E2M1, codes, out));
    decode_plain(Format::E4M3FN, &all, &mut singles);
    nan_free(&mut singles);
    past(&bytes[..(8 << 20) + 77], &singles, -77.0, |codes, out| {
        decode_into(Format::E4M3FN, codes, out);
        nan_free(out);
    });
    let mut doubles = vec![0.0_f64; 256];
    decode_plain(Format::E3M2, &all, &mut doubles);
    past(&bytes[..4 << 20], &doubles, -77.0, |codes, out| decode_into(Format::E3M2, codes, out));

    let to_e5m2 = Converter::new(Format::E5M2, Rules::DEFAULT);
    let mut table = vec![0_u8; 256];
    to_e5m2.recode_plain(Format::E4M3FN, &all, &mut table);
    past(&bytes, &table, 0xA5, |codes, out| to_e5m2.recode_into(Format::E4M3FN, codes, out));
    let to_bf16 = Converter::new(Format::BF16, Rules::DEFAULT);
    let mut table = vec![0_u16; 256];
    to_bf16.recode_plain(Format::E4M3FN, &all, &mut table);
    past(&bytes, &table, 0xA5A5, |codes, out| to_bf16.recode_into(Format::E4M3FN, codes, out));

    let halves: Vec<u16> = codes((6 << 20) + 77, 16).map(|code| code as u16).collect();
    let all: Vec<u16> = (0..=u16::MAX).collect();
    for format in [Format::BF16, Format::F16] {
        let mut values = vec![0.0_f32; 65536];
        decode_plain(format, &all, &mut values);
        nan_free(&mut values);
        past(&halves, &values, -77.0, |codes, out| {
            decode_into(format, codes, out);
            nan_free(out);
        });
    }
}

/// A long slice is its parts, each from its first element's random word on.
#[test]
fn parts_of_a_whole() {
    let len = (1 << 18) + 4321;
    let x: Vec<f64> = (0..len).map(|i| f64::from(i % 1009) / 333.0 - 1.5).collect();
    let codes: Vec<u16> = (0..len).map(|i| (i * 7919 % 65536) as u16).collect();
    let cast = Cast::new(Format::E4M3FN).with_rounding(Rounding::stochastic(8));
    let converter = Converter::from(cast).with_random(RANDOM);
    let (mut whole, mut parts) = (vec![0_u8; len as usize], vec![0_u8; len as usize]);
    let mut rounded = x.clone();
    converter.encode_into(&x, &mut whole);
    converter.fake_quantize(&mut rounded);
    for (i, (x, part)) in x.chunks(30_011).zip(parts.chunks_mut(30_011)).enumerate() {
        converter.starting_at(i as u64 * 30_011).encode_into(x, part);
    }
    assert!(whole == parts);
    let mut values = vec![0.0_f64; len as usize];
    decode_into(Format::E4M3FN, &whole, &mut values);
    assert!(values == rounded);
    converter.recode_into(Format::BF16, &codes, &mut whole);
    for (i, (codes, part)) in codes.chunks(30_011).zip(parts.chunks_mut(30_011)).enumerate() {
        converter.starting_at(i as u64 * 30_011).recode_into(Format::BF16, codes, part);
    }
    assert!(whole == parts);
}
