//! Slices long enough for several threads and for stores past the caches.

use super::{RANDOM, at_every_level};
use exmy::bulk::{Cast, Converter, decode_into, decode_plain};
use exmy::format::Format;
use exmy::round::Rounding;

/// More than 32 MiB of results, which begin at no multiple of a cache line.
#[test]
fn past_the_caches() {
    let len = (8 << 20) + 77;
    let codes: Vec<u8> =
        (0..len as u32).map(|i| (i.wrapping_mul(0x9E37_79B1) >> 24) as u8).collect();
    let mut values = [0.0_f32; 256];
    let bytes: [u8; 256] = std::array::from_fn(|i| i as u8);
    decode_plain(Format::E4M3FN, &bytes, &mut values);
    let mut out = vec![0.0_f32; len + 5];
    at_every_level(|level| {
        out.fill(-77.0);
        decode_into(Format::E4M3FN, &codes, &mut out[3..len + 3]);
        let right = |(code, x): (&u8, &f32)| values[usize::from(*code)].to_bits() == x.to_bits();
        let wrong = codes.iter().zip(&out[3..]).position(|pair| !right(pair));
        assert_eq!(wrong, None, "{level}");
        assert!(out[..3].iter().chain(&out[len + 3..]).all(|x| *x == -77.0), "{level}");
    });
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
