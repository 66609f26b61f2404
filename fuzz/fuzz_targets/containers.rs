//! Containers of codes and scales: what is packed comes back, any bytes give an answer, and an error
//! leaves what is documented.
//!
//! `cargo +nightly fuzz run containers` in the repository's root.

#![no_main]

use exmy::pack::{Layout, PackError, ScaleLayout, ggml, gpt_oss, scales};
use libfuzzer_sys::fuzz_target;

fn layouts(data: &[u8], width: u32, count: usize) {
    for layout in Layout::ALL {
        let mut codes = vec![0xA5_u8; count.min(4096)];
        let result = layout.unpack_into(data, width, &mut codes);
        match layout.len(codes.len(), width) {
            Ok(len) if len == data.len() && width <= 8 => match result {
                Ok(()) => {
                    assert!(codes.iter().all(|code| u32::from(*code) >> width == 0));
                    let bytes = layout.pack(&codes, width).expect("codes that came out");
                    assert_eq!(layout.unpack::<u8>(&bytes, width, codes.len()), Ok(codes));
                }
                Err(error) => {
                    let wide = matches!(error, PackError::CodeTooWide { .. });
                    assert!(wide && layout == Layout::Byte && codes.iter().all(|code| *code == 0));
                }
            },
            _ => assert!(result.is_err() && codes.iter().all(|code| *code == 0xA5)),
        }
        if let Ok(bytes) = layout.pack(data, width) {
            let codes = layout.unpack::<u16>(&bytes, width, data.len());
            assert_eq!(codes.as_ref().map(Vec::len), Ok(data.len()));
        }
        let fit: Vec<u8> = data.iter().map(|code| code & 0x3F).collect();
        let bytes = layout.pack(&fit, 6).expect("codes of 6 bits");
        assert_eq!(layout.unpack::<u8>(&bytes, 6, fit.len()), Ok(fit));
    }
}

fn blocks(data: &[u8], count: usize) {
    let (mut codes, mut block_scales) = (vec![0_u8; count], vec![0; count / 32]);
    let right = count % 32 == 0 && data.len() == count / 32 * 17;
    assert_eq!(ggml::unpack_into(data, &mut codes, &mut block_scales).is_ok(), right);
    let count = data.len() / 17 * 32;
    let (mut codes, mut block_scales) = (vec![0_u16; count], vec![0; count / 32]);
    let whole = &data[..data.len() / 17 * 17];
    ggml::unpack_into(whole, &mut codes, &mut block_scales).expect("whole blocks");
    assert_eq!(ggml::pack(&codes, &block_scales).as_deref(), Ok(whole));
}

fn matrices(data: &[u8], rows: usize, cols: usize) {
    for layout in ScaleLayout::ALL {
        let fits = layout.len(rows, cols) == Some(data.len());
        assert_eq!(layout.unpack(data, rows, cols).is_ok(), fits);
        let whole = rows.checked_mul(cols) == Some(data.len()) && layout.len(rows, cols).is_some();
        assert_eq!(layout.pack(data, rows, cols).is_ok(), whole);
    }
    let cols = cols % 40 + 1;
    let rows = data.len() / cols;
    let matrix = &data[..rows * cols];
    let tiles = ScaleLayout::Tiled.pack(matrix, rows, cols).expect("a matrix");
    for (i, scale) in matrix.iter().enumerate() {
        assert_eq!(tiles[scales::offset(i / cols, i % cols, cols)], *scale);
    }
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    assert_eq!(sum(&tiles), sum(matrix), "padding is zero");
    assert_eq!(ScaleLayout::Tiled.unpack(&tiles, rows, cols).as_deref(), Ok(matrix));
}

fuzz_target!(|data: &[u8]| {
    let [width, a @ .., b, c, d] = data else { return };
    let (width, data) = (u32::from(width % 18), a);
    let count = usize::from(u16::from_le_bytes([*b, *c]));
    layouts(data, width, count);
    blocks(data, count);
    // Shapes near the limit of an index too.
    let rows = if d % 2 == 0 { count } else { usize::MAX - count };
    matrices(data, rows, usize::from(*d / 2));
    let axes: Vec<usize> = data.iter().map(|axis| usize::from(*axis)).chain([rows]).collect();
    if let Ok(shapes) = gpt_oss::shapes(&axes) {
        assert_eq!(gpt_oss::tensor(&shapes.blocks), Some(axes));
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = (text.parse::<Layout>(), text.parse::<ScaleLayout>());
    }
});
