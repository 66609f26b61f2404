//! Padded containers, ggml's blocks and gpt-oss's shapes, against the sentences that define them.

use exmy::pack::{self, Layout, ggml, gpt_oss};
use proptest::prelude::*;

use crate::reference::{codes, narrow, packed};

/// Groups of `group` codes as a stream, each filled with zero bytes to `whole`.
fn padded(codes: &[u16], group: usize, whole: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for codes in codes.chunks(group) {
        let mut codes = codes.to_vec();
        codes.resize(group, 0);
        let start = bytes.len();
        bytes.extend(packed(&codes, 6));
        bytes.resize(start + whole, 0);
    }
    bytes
}

fn expected(layout: Layout, codes: &[u16], width: u32) -> Vec<u8> {
    match layout {
        Layout::Stream => packed(codes, width),
        Layout::Byte if width <= 8 => narrow(codes),
        Layout::Byte => codes.iter().flat_map(|code| code.to_le_bytes()).collect(),
        Layout::Fp6Padded4 => padded(codes, 4, 4),
        Layout::Fp6Padded32 => padded(codes, 32, 32),
        Layout::Tma16 => padded(codes, 16, 16),
        _ => unreachable!("not of this test"),
    }
}

fn both_ways(layout: Layout, codes: &[u16], width: u32, offset: usize) {
    let expected = expected(layout, codes, width);
    assert_eq!(layout.len(codes.len(), width), Ok(expected.len()));
    assert_eq!(layout.pack(codes, width).unwrap(), expected, "{layout} {width}");
    let mut shifted = vec![0_u8; offset];
    shifted.extend_from_slice(&expected);
    let back = layout.unpack::<u16>(&shifted[offset..], width, codes.len());
    assert_eq!(back.unwrap(), codes, "{layout} {width}");
    if width <= 8 {
        let mut input = vec![0_u8; offset];
        input.extend_from_slice(&narrow(codes));
        let mut bytes = vec![0xA5; offset + expected.len()];
        layout.pack_into(&input[offset..], width, &mut bytes[offset..]).unwrap();
        assert_eq!(bytes[offset..], expected);
        let mut out = vec![0xA5; offset + codes.len()];
        layout.unpack_into(&bytes[offset..], width, &mut out[offset..]).unwrap();
        assert_eq!(out[offset..], input[offset..]);
    }
}

#[test]
fn every_layout_width_and_length_up_to_130() {
    for layout in Layout::ALL {
        for width in (1..=16).filter(|width| layout.len(0, *width).is_ok()) {
            for count in 0..=130 {
                both_ways(layout, &codes(width, count), width, count % 3);
            }
        }
    }
}

/// 0x21 | 0x3F << 6 | 0 << 12 | 0x15 << 18 is 0x540FE1 in 3 bytes; the padding begins behind it.
#[test]
fn padded_groups_by_hand() {
    let codes = [0x21_u8, 0x3F, 0x00, 0x15, 0x01];
    assert_eq!(Layout::Fp6Padded4.pack(&codes, 6).unwrap(), [0xE1, 0x0F, 0x54, 0, 1, 0, 0, 0]);
    let bytes = Layout::Fp6Padded32.pack(&codes, 6).unwrap();
    assert_eq!((bytes.len(), &bytes[..5]), (32, &[0xE1, 0x0F, 0x54, 1, 0][..]));
    let mut seventeen = [0x3F_u8; 17];
    seventeen[16] = 0x2A;
    let bytes = Layout::Tma16.pack(&seventeen, 6).unwrap();
    assert_eq!(bytes[..12], [0xFF; 12]);
    assert_eq!(bytes[12..16], [0; 4]);
    assert_eq!(bytes[16..], [0x2A, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(Layout::Byte.pack(&[0x2A_u16, 0x1FF], 9).unwrap(), [0x2A, 0, 0xFF, 1]);
}

#[test]
fn padding_is_not_looked_at() {
    let codes = narrow(&codes(6, 37));
    for (layout, group, data, whole) in [
        (Layout::Fp6Padded4, 4, 3, 4),
        (Layout::Fp6Padded32, 32, 24, 32),
        (Layout::Tma16, 16, 12, 16),
    ] {
        let mut bytes = layout.pack(&codes, 6).unwrap();
        assert_eq!(bytes.len(), 37_usize.div_ceil(group) * whole);
        for (i, byte) in bytes.iter_mut().enumerate() {
            if i % whole >= data {
                assert_eq!(*byte, 0);
                *byte = 0xA5;
            }
        }
        assert_eq!(layout.unpack::<u8>(&bytes, 6, 37).unwrap(), codes);
    }
}

#[test]
fn names() {
    for layout in Layout::ALL {
        assert_eq!(layout.to_string().parse(), Ok(layout));
        assert_eq!(layout.name().to_uppercase().parse(), Ok(layout));
    }
    let error = "fp6-padded3".parse::<Layout>().unwrap_err();
    assert_eq!(error.nearest(), ["fp6-padded4", "fp6-padded32"]);
    assert!(error.to_string().contains("stream, byte, fp6-padded4, fp6-padded32, tma16"));
    assert!("".parse::<Layout>().is_err());
}

/// PTX's `cvt.e2m1x2 d, a, b` puts b into the low nibble: elements 0, 1 of memory are b, a.
#[test]
fn two_codes_of_a_byte() {
    let (a, b) = (0xC_u8, 0x3);
    assert_eq!(pack::pack(&[b, a], 4).unwrap(), [a << 4 | b]);
}

/// The layout by its sentence: byte j of 16 holds element j low and element j + 16 high.
fn ggml_blocks(codes: &[u16], scales: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (block, scale) in scales.iter().enumerate() {
        bytes.push(*scale);
        let at = |j: usize| codes[32 * block + j] as u8;
        bytes.extend((0..16).map(|j| at(j) | at(j + 16) << 4));
    }
    bytes
}

#[test]
fn blocks_of_ggml() {
    for blocks in 0..=9 {
        let codes = codes(4, blocks * 32);
        let scales: Vec<u8> = (0..blocks).map(|i| (i * 83 + 5) as u8).collect();
        let expected = ggml_blocks(&codes, &scales);
        assert_eq!(ggml::len(codes.len()), Ok(expected.len()));
        assert_eq!(ggml::pack(&codes, &scales).unwrap(), expected);
        assert_eq!(ggml::pack(&narrow(&codes), &scales).unwrap(), expected);
        let (mut out, mut wide) = (vec![0xA5_u8; codes.len()], vec![0xA5A5_u16; codes.len()]);
        let mut back = vec![0xA5; blocks];
        ggml::unpack_into(&expected, &mut out, &mut back).unwrap();
        assert_eq!((out, &back), (narrow(&codes), &scales));
        ggml::unpack_into(&expected, &mut wide, &mut back).unwrap();
        assert_eq!((wide, &back), (codes, &scales));
    }
    // By hand: codes 0..16 are their index, 16..32 the complement.
    let codes: Vec<u8> = (0..32).map(|j| if j < 16 { j } else { 31 - j }).collect();
    let bytes = ggml::pack(&codes, &[0xFF]).unwrap();
    assert_eq!(bytes[..4], [0xFF, 0xF0, 0xE1, 0xD2]);
    assert_eq!(bytes[16], 0x0F);
}

#[test]
fn shapes_of_gpt_oss() {
    // The checkpoint of gpt-oss-20b: 32 experts of 5760 rows, 2880 = 90 blocks of 32.
    let shapes = gpt_oss::shapes(&[32, 5760, 2880]).unwrap();
    assert_eq!(shapes.blocks, [32, 5760, 90, 16]);
    assert_eq!(shapes.scales, [32, 5760, 90]);
    assert_eq!(gpt_oss::tensor(&shapes.blocks), Some(vec![32, 5760, 2880]));
    assert_eq!(gpt_oss::shapes(&[0]).unwrap().blocks, [0, 16]);
    for blocks in [&[][..], &[16], &[2, 15], &[usize::MAX, 16]] {
        assert_eq!(gpt_oss::tensor(blocks), None);
    }
    // The bytes are those of the stream.
    let codes = narrow(&codes(4, 3 * 64));
    let bytes = pack::pack(&codes, 4).unwrap();
    let blocks = gpt_oss::shapes(&[3, 64]).unwrap().blocks;
    assert_eq!(bytes.len(), blocks.iter().product::<usize>());
    assert_eq!(bytes[16], codes[32] | codes[33] << 4, "block 1 begins at byte 16");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn any_codes_any_offset(
        width in 1_u32..=16,
        raw in prop::collection::vec(any::<u16>(), 0..=300),
        offset in 0_usize..67,
    ) {
        for layout in Layout::ALL {
            let width = if layout.len(0, width).is_ok() { width } else { 6 };
            let codes: Vec<u16> = raw.iter().map(|code| code >> (16 - width)).collect();
            both_ways(layout, &codes, width, offset);
        }
    }

    #[test]
    fn any_blocks_of_ggml(raw in prop::collection::vec(any::<(u8, [u8; 32])>(), 0..=9)) {
        let scales: Vec<u8> = raw.iter().map(|(scale, _)| *scale).collect();
        let codes: Vec<u8> = raw.iter().flat_map(|(_, codes)| codes.map(|code| code & 0xF)).collect();
        let bytes = ggml::pack(&codes, &scales).unwrap();
        let (mut out, mut back) = (vec![0_u8; codes.len()], vec![0; scales.len()]);
        ggml::unpack_into(&bytes, &mut out, &mut back).unwrap();
        prop_assert_eq!((out, back), (codes, scales));
    }
}
