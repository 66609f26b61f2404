//! The dense stream: every width, length, offset and level against bitvec; parts and threads.

use exmy::pack;
use exmy::simd::{Level, with_level};
use proptest::prelude::*;

use crate::reference::{codes, narrow, packed, unpacked};

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

/// Packs and unpacks `codes` from buffers that begin `offset` elements in, with a guard behind.
fn both_ways(codes: &[u16], width: u32, offset: usize) {
    let expected = packed(codes, width);
    let (count, bytes) = (codes.len(), expected.len());
    assert_eq!(pack::packed_len(count, width), Some(bytes));
    assert_eq!(unpacked(&expected, width, count), codes, "the reference itself");

    let mut buffer = vec![0xA5_u8; offset + bytes + 64];
    let mut input = vec![0_u16; offset];
    input.extend_from_slice(codes);
    pack::pack_into(&input[offset..], width, &mut buffer[offset..offset + bytes]).unwrap();
    assert_eq!(buffer[offset..offset + bytes], expected, "width {width}, {count} codes");
    assert!(buffer[..offset].iter().chain(&buffer[offset + bytes..]).all(|b| *b == 0xA5));

    let mut out = vec![0xA5A5_u16; offset + count + 64];
    pack::unpack_into(&buffer[offset..offset + bytes], width, &mut out[offset..offset + count])
        .unwrap();
    assert_eq!(out[offset..offset + count], *codes, "width {width}, {count} codes");
    assert!(out[..offset].iter().chain(&out[offset + count..]).all(|c| *c == 0xA5A5));

    if width <= 8 {
        let mut input = vec![0_u8; offset];
        input.extend_from_slice(&narrow(codes));
        buffer.fill(0xA5);
        pack::pack_into(&input[offset..], width, &mut buffer[offset..offset + bytes]).unwrap();
        assert_eq!(buffer[offset..offset + bytes], expected, "width {width}, {count} bytes");
        assert!(buffer[..offset].iter().chain(&buffer[offset + bytes..]).all(|b| *b == 0xA5));
        let mut out = vec![0xA5_u8; offset + count + 64];
        pack::unpack_into(&buffer[offset..offset + bytes], width, &mut out[offset..offset + count])
            .unwrap();
        assert_eq!(out[offset..offset + count], input[offset..], "width {width}, {count} bytes");
        assert!(out[..offset].iter().chain(&out[offset + count..]).all(|c| *c == 0xA5));
    }
}

#[test]
fn every_width_and_length_up_to_130() {
    for level in levels() {
        with_level(level, || {
            for width in 1..=16 {
                for count in 0..=130 {
                    both_ways(&codes(width, count), width, count % 5);
                }
            }
        });
    }
}

/// The kernels work in batches of 256 codes, spans of 8192 and parts of 2^18: lengths around them.
#[test]
fn lengths_around_the_inner_boundaries() {
    for level in levels() {
        with_level(level, || {
            for width in 1..=16 {
                for count in [255, 256, 257, 511, 513, 8191, 8192, 8193, 8203, 16_390] {
                    both_ways(&codes(width, count), width, 1);
                }
            }
            for width in [1, 4, 6, 9, 16] {
                both_ways(&codes(width, (1 << 18) + 77), width, 3);
            }
        });
    }
}

/// Every code of every width in every place of a group.
#[test]
fn every_code_in_every_place() {
    for level in levels() {
        with_level(level, || {
            for width in 1..=12_u32 {
                let all = 0..1_u16 << width;
                // An odd number of codes before them shifts the places at every repetition.
                let codes: Vec<u16> =
                    (0..8).flat_map(|_| all.clone().chain([(1 << width) - 1])).collect();
                both_ways(&codes, width, 0);
            }
        });
    }
}

#[test]
fn the_definition_is_that_of_bitvec() {
    for width in 1..=16 {
        for count in [0, 1, 7, 8, 9, 40] {
            let codes = codes(width, count);
            let expected = packed(&codes, width);
            let mut bytes = vec![0xFF; expected.len()];
            pack::pack_plain(&codes, width, &mut bytes);
            assert_eq!(bytes, expected);
            let mut out = vec![0xFFFF_u16; count];
            pack::unpack_plain(&expected, width, &mut out);
            assert_eq!(out, codes);
        }
    }
}

/// Streams written down by hand.
#[test]
fn streams_by_hand() {
    assert_eq!(pack::pack(&[1_u8, 0, 1, 1, 0, 0, 0, 0, 1], 1).unwrap(), [0x0D, 0x01]);
    assert_eq!(pack::pack(&[0xA_u8, 0x5, 0x3, 0xC], 4).unwrap(), [0x5A, 0xC3]);
    // 0x21 | 0x3F << 6 | 0 << 12 | 0x15 << 18 = 0x540FE1
    assert_eq!(pack::pack(&[0x21_u8, 0x3F, 0x00, 0x15], 6).unwrap(), [0xE1, 0x0F, 0x54]);
    // 0x1FF, then 0x001 from bit 9 on
    assert_eq!(pack::pack(&[0x1FF_u16, 0x001], 9).unwrap(), [0xFF, 0x03, 0x00]);
    assert_eq!(pack::pack(&[0x1234_u16], 16).unwrap(), [0x34, 0x12]);
    // Bytes of codes may be packed wider than they are.
    assert_eq!(pack::pack(&[0xFF_u8, 0xAB], 12).unwrap(), [0xFF, 0xB0, 0x0A]);
}

#[test]
fn bytes_packed_wider_than_a_byte() {
    for width in 9..=16 {
        for count in [0, 1, 8, 255, 256, 300, 8192 + 5] {
            let codes: Vec<u16> = codes(8, count);
            let bytes = pack::pack(&narrow(&codes), width).unwrap();
            assert_eq!(bytes, packed(&codes, width), "width {width}, {count} codes");
        }
    }
}

/// A part is 2^18 codes: with several threads and one the same bytes.
#[test]
fn threads_change_nothing() {
    for width in [3, 4, 6, 11] {
        let codes = codes(width, (1 << 20) + 13);
        let run = || {
            let bytes = pack::pack(&codes, width).unwrap();
            let back = pack::unpack::<u16>(&bytes, width, codes.len()).unwrap();
            assert_eq!(back, codes);
            bytes
        };
        let one = exmy::parallel::with_threads(1, run).unwrap();
        let four = exmy::parallel::with_threads(4, run).unwrap();
        assert_eq!(one, four);
    }
}

#[test]
fn bits_behind_the_last_code_are_not_looked_at() {
    for width in 1..=16 {
        for count in 0..=33 {
            let codes = codes(width, count);
            let mut bytes = packed(&codes, width);
            let used = count * width as usize % 8;
            if used != 0 {
                *bytes.last_mut().unwrap() |= 0xFF << used;
            }
            assert_eq!(pack::unpack::<u16>(&bytes, width, count).unwrap(), codes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn any_codes_any_offset(
        width in 1_u32..=16,
        raw in prop::collection::vec(any::<u16>(), 0..=700),
        offset in 0_usize..67,
    ) {
        let codes: Vec<u16> = raw.iter().map(|code| code >> (16 - width)).collect();
        both_ways(&codes, width, offset);
    }
}
