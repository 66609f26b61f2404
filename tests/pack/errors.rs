//! What does not fit is refused, and the state that is left is the documented one.

use exmy::pack::{self, Layout, PackError, ggml, gpt_oss};
use exmy::simd::{Level, with_level};
use proptest::prelude::*;

#[test]
fn widths() {
    for width in [0, 17, 32, u32::MAX] {
        let error = PackError::Width { width, most: 16 };
        assert_eq!(pack::pack(&[0_u16], width), Err(error));
        assert_eq!(pack::pack::<u8>(&[], width), Err(error));
        assert_eq!(pack::unpack::<u16>(&[0], width, 0), Err(error));
        assert_eq!(Layout::Byte.len(1, width), Err(error));
    }
    let error = PackError::Width { width: 9, most: 8 };
    assert_eq!(pack::unpack::<u8>(&[0, 0], 9, 1), Err(error));
    assert_eq!(pack::unpack_into(&[0, 0], 9, &mut [0_u8]), Err(error));
    assert_eq!(error.to_string(), "codes of 9 bits in integers of 8: widths from 1 to 8 fit");
}

#[test]
fn lengths() {
    for found in [0, 2, 4] {
        let (needed, codes, width) = (3, 4, 6);
        let error = PackError::Length { container: "stream", needed, found, codes, width };
        let mut bytes = vec![0xA5; found];
        assert_eq!(pack::unpack::<u8>(&bytes, 6, 4), Err(error));
        assert_eq!(pack::pack_into(&[0_u8; 4], 6, &mut bytes), Err(error));
        assert!(bytes.iter().all(|byte| *byte == 0xA5), "nothing is written");
    }
    assert_eq!(
        pack::unpack::<u8>(&[0; 2], 6, 4).unwrap_err().to_string(),
        "4 codes of 6 bits take 3 bytes as stream, found 2"
    );
    // More than memory can hold is an error like any other, and nothing is allocated for it.
    for count in [usize::MAX, usize::MAX / 2, usize::MAX / 16 * 8 + 8] {
        assert!(pack::unpack::<u16>(&[], 16, count).is_err());
        for layout in Layout::ALL {
            assert!(layout.unpack::<u16>(&[], 6, count).is_err());
        }
    }
    let error = Layout::Stream.len(usize::MAX, 16).unwrap_err().to_string();
    assert!(error.ends_with("codes of 16 bits as stream are larger than any memory"), "{error}");
    assert_eq!(pack::packed_len(usize::MAX, 16), None);
    assert_eq!(pack::packed_len(usize::MAX, 1), Some(usize::MAX / 8 + 1));
}

/// The first of several wide codes is named, wherever it is, at every level; what is left is zeros.
#[test]
fn codes_too_wide() {
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        with_level(level, || {
            for width in 1..=15_u32 {
                // Every place of whole groups, of those that a wider kernel leaves, and of the rest.
                for (count, step) in [(1, 1), (64, 1), (130, 1), (9000, 1499)] {
                    for index in (0..count).step_by(step).chain([count - 1]) {
                        let mut codes = vec![0_u16; count];
                        // Alone, or with another behind it.
                        codes[count - 1] = if index % 2 == 0 { 0xFFFF } else { 0 };
                        codes[index] = 1 << width;
                        let code = codes[index];
                        let error = PackError::CodeTooWide { index, code, width };
                        let mut bytes = vec![0xA5; pack::packed_len(count, width).unwrap()];
                        assert_eq!(pack::pack_into(&codes, width, &mut bytes), Err(error));
                        assert!(bytes.iter().all(|byte| *byte == 0));
                        if width < 8 {
                            let codes: Vec<u8> = codes.iter().map(|&code| code as u8).collect();
                            bytes.fill(0xA5);
                            let code = codes[index].into();
                            let error = PackError::CodeTooWide { index, code, width };
                            assert_eq!(pack::pack_into(&codes, width, &mut bytes), Err(error));
                            assert!(bytes.iter().all(|byte| *byte == 0));
                        }
                    }
                }
            }
        });
    }
}

#[test]
fn codes_too_wide_for_a_layout() {
    let error = PackError::CodeTooWide { index: 5, code: 0x40, width: 6 };
    let codes = [0_u8, 1, 2, 3, 4, 0x40, 6, 0xFF];
    for layout in Layout::ALL {
        let mut bytes = vec![0xA5; layout.len(8, 6).unwrap()];
        assert_eq!(layout.pack_into(&codes, 6, &mut bytes), Err(error), "{layout}");
        assert!(bytes.iter().all(|byte| *byte == 0), "{layout}");
    }
    let mut out = [0xA5_u8; 8];
    assert_eq!(Layout::Byte.unpack_into(&codes, 6, &mut out), Err(error));
    assert_eq!(out, [0; 8]);
    let mut codes = [0_u16; 32];
    codes[17] = 0x10;
    let error = PackError::CodeTooWide { index: 17, code: 0x10, width: 4 };
    let mut bytes = [0xA5; 17];
    assert_eq!(ggml::pack_into(&codes, &[0x7F], &mut bytes), Err(error));
    assert_eq!(bytes, [0; 17]);
}

#[test]
fn containers_of_one_width() {
    for layout in [Layout::Fp6Padded4, Layout::Fp6Padded32, Layout::Tma16] {
        for width in (1..=16).filter(|width| *width != 6) {
            let error = PackError::Container { container: layout.name(), holds: 6, width };
            assert_eq!(layout.pack(&[0_u16; 4], width), Err(error));
            assert_eq!(layout.unpack::<u16>(&[0; 4], width, 4), Err(error));
        }
    }
    let error = Layout::Tma16.len(16, 4).unwrap_err();
    assert_eq!(error.to_string(), "tma16 holds codes of 6 bits, not of 4");
}

#[test]
fn parts_of_blocks() {
    for count in (0..200).filter(|count| count % 32 != 0) {
        let error = PackError::Blocks { container: "ggml-mxfp4", block: 32, codes: count };
        assert_eq!(ggml::len(count), Err(error));
        assert_eq!(ggml::pack(&vec![0_u8; count], &vec![0; count.div_ceil(32)]), Err(error));
        assert!(gpt_oss::shapes(&[3, count]).is_err());
    }
    assert!(gpt_oss::shapes(&[]).is_err(), "a scalar is no block");
    let codes = [0_u8; 64];
    for scales in [0, 1, 3] {
        let (container, needed, found, rows, cols) = ("ggml-mxfp4", 2, scales, 1, 2);
        let error = PackError::Scales { container, needed, found, rows, cols };
        assert_eq!(ggml::pack(&codes, &vec![0; scales]), Err(error));
    }
    for bytes in [0, 33, 35] {
        let (container, needed, found, codes, width) = ("ggml-mxfp4", 34, bytes, 64, 4);
        let error = PackError::Length { container, needed, found, codes, width };
        let outcome = ggml::unpack_into(&vec![0; bytes], &mut [0_u8; 64], &mut [0; 2]);
        assert_eq!(outcome, Err(error));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// Whatever the lengths and bits: an answer, never a panic, and `Ok` only where the length is
    /// right.
    #[test]
    fn arbitrary_bytes(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        width in 0_u32..=18,
        count in 0_usize..300,
    ) {
        for layout in Layout::ALL {
            let result = layout.unpack::<u16>(&bytes, width, count);
            match layout.len(count, width) {
                Ok(len) if len == bytes.len() => match result {
                    Ok(codes) => prop_assert!(codes.iter().all(|code| u32::from(*code) >> width == 0)),
                    Err(error) => {
                        let wide = matches!(error, PackError::CodeTooWide { .. });
                        prop_assert!(wide && layout == Layout::Byte);
                    }
                },
                _ => prop_assert!(result.is_err()),
            }
        }
        let (mut codes, mut scales) = (vec![0_u8; count], vec![0; count / 32]);
        let right = count % 32 == 0 && bytes.len() == count / 32 * 17;
        prop_assert_eq!(ggml::unpack_into(&bytes, &mut codes, &mut scales).is_ok(), right);
    }
}
