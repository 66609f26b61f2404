//! Codes to numbers.

#[cfg(feature = "half")]
use super::named;
use super::{at_every_level, format, of_up_to_8_bits};
use exmy::format::Format;
use exmy::minifloat::Bits;
use exmy::slice::{Real, decode_into, decode_plain};

/// Every code of every format of up to 8 bits, in a slice long enough for tables and short enough
/// for none, as every type.
#[test]
fn all_short_codes() {
    let formats = of_up_to_8_bits();
    assert!(formats.len() > 2000, "only {}", formats.len());
    // 3 * 256 + 13: no multiple of any number of lanes.
    let codes: Vec<u8> = (0..781).map(|i| (i % 256) as u8).collect();
    for format in formats {
        exhausts::<u8, f32>(format, &codes);
        exhausts::<u8, f64>(format, &codes);
    }
}

#[cfg(feature = "half")]
#[test]
fn all_short_codes_as_half() {
    let codes: Vec<u8> = (0..781).map(|i| (i % 256) as u8).collect();
    let formats = of_up_to_8_bits().into_iter().step_by(7);
    for format in formats.chain(named().into_iter().filter(|format| format.bits() <= 8)) {
        exhausts::<u8, half::f16>(format, &codes);
        exhausts::<u8, half::bf16>(format, &codes);
    }
}

/// Decodes all of `codes` and a short part of them. The first 256 (or all) results of the
/// definition serve for all.
fn exhausts<C: Bits, T: Real + Default>(format: Format, codes: &[C]) {
    let different = codes.len().min(1 << C::WIDTH.min(16));
    let mut plain = vec![T::default(); different];
    decode_plain(format, &codes[..different], &mut plain);
    let mut out = vec![T::default(); codes.len()];
    at_every_level(|level| {
        for len in [codes.len(), 300.min(codes.len())] {
            let out = &mut out[..len];
            out.fill(T::from_code(0x55));
            decode_into(format, &codes[..len], out);
            for (i, found) in out.iter().enumerate() {
                let (found, plain) = (found.to_code(), plain[i % different].to_code());
                let code = codes[i];
                assert_eq!(found, plain, "{format} {level}, {len} codes, code {code:#x} at {i}");
            }
        }
    });
}

/// Every code of formats of 9 to 16 bits, of all classes, those outside of binary32 too; and short
/// codes in wide integers.
#[test]
fn all_long_codes() {
    let codes: Vec<u16> = (0..=u16::MAX).collect();
    let texts = [
        "bf16",
        "f16",
        "dlfloat16",
        "e8m4",
        "e8m7b135",
        "e5m10-nosub",
        "e9m6",
        "e6m9-nosub",
        "e1m12",
        "e0m15",
        "int12",
        "int16",
        "binary16p8se",
        "binary12p4uf",
        "binary15p7ue",
        "binary11p3sf",
        "e5m7b-100",
        "e2m1",
        "e4m3fnuz",
        "int8",
        "e8m0",
        "ue5m3",
    ];
    for text in texts {
        exhausts::<u16, f32>(format(text), &codes);
        exhausts::<u16, f64>(format(text), &codes);
        #[cfg(feature = "half")]
        exhausts::<u16, half::f16>(format(text), &codes);
        #[cfg(feature = "half")]
        exhausts::<u16, half::bf16>(format(text), &codes);
    }
}

/// Wider codes: their edges.
#[test]
fn wide_codes() {
    let words: Vec<u32> = super::f32s().iter().map(|x| x.to_bits()).collect();
    for text in ["f32", "tf32", "e8m13", "e5m23", "e8m20", "int20", "int32"] {
        let format = format(text);
        let codes: Vec<u32> = words.iter().map(|word| word >> (32 - format.bits())).collect();
        exhausts::<u32, f32>(format, &codes);
        exhausts::<u32, f64>(format, &codes);
        let codes: Vec<u64> = codes.iter().map(|code| u64::from(*code) | 7 << 40).collect();
        exhausts::<u64, f32>(format, &codes);
    }
    let codes: Vec<u64> = super::sources::f64s().iter().map(|x| x.to_bits()).collect();
    exhausts::<u64, f64>(Format::F64, &codes);
    exhausts::<u64, f32>(Format::F64, &codes);
}

/// Every length up to two vectors of bytes, beginning at every kind of address.
#[test]
fn lengths_and_addresses() {
    let codes: Vec<u8> = (0..2000_u32).map(|i| (i * 37 % 256) as u8).collect();
    let mut out = vec![0.0_f32; 2000];
    let mut plain = vec![0.0_f32; 2000];
    for format in [Format::E4M3FN, Format::E2M1, Format::E8M0, Format::INT8] {
        decode_plain(format, &codes, &mut plain);
        at_every_level(|level| {
            for start in [0, 1, 3, 17] {
                for len in (0..=130).chain([511, 512, 513, 575, 1023, 1025, 1983]) {
                    out.fill(-77.0);
                    let (codes, plain) = (&codes[start..start + len], &plain[start..start + len]);
                    decode_into(format, codes, &mut out[1..1 + len]);
                    let same = out[1..].iter().zip(plain).all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same, "{format} {level}: {len} from {start}");
                    assert!(out[0] == -77.0 && out[1 + len..].iter().all(|x| *x == -77.0));
                }
            }
        });
    }
}

#[test]
#[should_panic(expected = "different lengths")]
fn different_lengths() {
    decode_into(Format::E4M3FN, &[0_u8; 3], &mut [0.0_f32; 4]);
}
