//! Every layout, decoded by decoders written here from its definition, out of the file as the
//! reference implementation of safetensors reads it.

use crate::quantized::{assert_bits, image, options, random, values};
use crate::{convert, f32_bytes, numbers, places, power, write};
use exmy::quantizer::Axis;
use exmy::safetensors::{Dtype, FileLayout, QuantizeOptions};
use safetensors::tensor::SafeTensors;

/// The elements of E2M1, by code.
const E2M1: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

fn e2m1(code: u8) -> f32 {
    let size = E2M1[usize::from(code & 7)];
    if code & 8 == 0 { size } else { -size }
}

fn e8m0(code: u8) -> f32 {
    power(i32::from(code) - 127)
}

/// Two codes a byte, the first in the low nibble.
fn nibbles(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]).collect()
}

/// Quantizes a 130 x 64 matrix and hands the file, as the reference implementation reads it, and the
/// image to a decoder.
fn decoded(format: &str, layout: &str, decode: impl Fn(&SafeTensors<'_>) -> Vec<f32>) {
    let (_folder, input, output) = places();
    let (rows, cols) = (130, 64);
    let x = numbers(rows * cols, 6);
    write(&input, &[("w", Dtype::F32, &[rows, cols], f32_bytes(&x))]);
    let layout: FileLayout = layout.parse().unwrap();
    convert(&input, &output, &QuantizeOptions { layout, ..options(format) });
    let bytes = std::fs::read(&output).unwrap();
    let expected = image(format, &x, rows, Axis::Cols, random("w", 1));
    let found = decode(&SafeTensors::deserialize(&bytes).unwrap());
    assert_bits(&found, &expected, &format!("{format} {layout}"));
    assert_bits(&values(&output, "w"), &expected, &format!("{format} {layout}, read back"));
}

fn part<'a>(file: &SafeTensors<'a>, name: &str, dtype: &str, shape: &[usize]) -> &'a [u8] {
    let tensor = file.tensor(name).unwrap();
    assert_eq!((&*tensor.dtype().to_string(), tensor.shape()), (dtype, shape), "{name}");
    tensor.data()
}

fn with_scales(codes: &[u8], scales: &[u8], value: impl Fn(u8) -> f32) -> Vec<f32> {
    codes.iter().enumerate().map(|(i, code)| value(*code) * e8m0(scales[i / 32])).collect()
}

#[test]
fn fp4_in_every_layout() {
    for (layout, dtype, last) in [("safetensors", "F4", 64), ("torch", "U8", 32)] {
        decoded("mxfp4", layout, |file| {
            let codes = part(file, "w", dtype, &[130, last]);
            let scales = part(file, "w_scale", "F8_E8M0", &[130, 2]);
            assert_eq!(file.len(), 2);
            with_scales(&nibbles(codes), scales, e2m1)
        });
    }
    decoded("mxfp4", "byte", |file| {
        let scales = part(file, "w_scale", "F8_E8M0", &[130, 2]);
        with_scales(part(file, "w", "U8", &[130, 64]), scales, e2m1)
    });
    decoded("mxfp4", "gpt-oss", |file| {
        let codes = part(file, "w_blocks", "U8", &[130, 2, 16]);
        with_scales(&nibbles(codes), part(file, "w_scales", "U8", &[130, 2]), e2m1)
    });
    decoded("mxfp4", "ggml", |file| {
        let blocks = part(file, "w", "U8", &[130, 34]).chunks(17);
        let halves = blocks.flat_map(|block| {
            let low = block[1..].iter().map(|byte| byte & 15);
            let high = block[1..].iter().map(|byte| byte >> 4);
            low.chain(high).map(|code| e2m1(code) * e8m0(block[0])).collect::<Vec<_>>()
        });
        halves.collect()
    });
    decoded("mxfp4", "cublas", |file| {
        let codes = nibbles(part(file, "w", "F4", &[130, 64]));
        let tiles = part(file, "w_scale", "F8_E8M0", &[256, 4]);
        let place = |r: usize, c: usize| r / 128 * 512 + r % 32 * 16 + r % 128 / 32 * 4 + c;
        let scale = |i: usize| e8m0(tiles[place(i / 64, i % 64 / 32)]);
        // Padding is zero.
        assert!((130..256).all(|r| (0..4).all(|c| tiles[place(r, c)] == 0)));
        codes.iter().enumerate().map(|(i, code)| e2m1(*code) * scale(i)).collect()
    });
}

#[test]
fn nvfp4_by_hand() {
    for (layout, dtype, last) in [("safetensors", "F4", 64), ("torch", "U8", 32)] {
        decoded("nvfp4", layout, |file| {
            let codes = nibbles(part(file, "w", dtype, &[130, last]));
            let scales = part(file, "w_scale", "F8_E4M3", &[130, 4]);
            let tensor = part(file, "w_scale_2", "F32", &[]);
            let tensor = f32::from_le_bytes(tensor.try_into().unwrap());
            let e4m3 = |code: u8| {
                let (exponent, fraction) = (i32::from(code >> 3), f32::from(code & 7) / 8.0);
                match exponent {
                    0 => fraction * power(-6),
                    _ => (1.0 + fraction) * power(exponent - 7),
                }
            };
            let value = |(i, code): (usize, &u8)| e2m1(*code) * e4m3(scales[i / 16]) * tensor;
            codes.iter().enumerate().map(value).collect()
        });
    }
}

#[test]
fn fp6_in_every_layout() {
    let e2m3 = |code: u8| {
        let (exponent, fraction) = (i32::from(code >> 3 & 3), f32::from(code & 7) / 8.0);
        let size = match exponent {
            0 => fraction,
            _ => (1.0 + fraction) * power(exponent - 1),
        };
        if code & 32 == 0 { size } else { -size }
    };
    let fours = |bytes: &[u8]| -> [u8; 4] {
        let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
        [0, 6, 12, 18].map(|shift| (word >> shift & 63) as u8)
    };
    let scales = |file: &SafeTensors<'_>| part(file, "w_scale", "F8_E8M0", &[130, 2]).to_vec();
    decoded("mxfp6-e2m3", "safetensors", |file| {
        let codes: Vec<u8> =
            part(file, "w", "F6_E2M3", &[130, 64]).chunks(3).flat_map(fours).collect();
        with_scales(&codes, &scales(file), e2m3)
    });
    decoded("mxfp6-e2m3", "stream", |file| {
        let codes = part(file, "w", "U8", &[130, 48]).chunks(3).flat_map(fours).collect::<Vec<_>>();
        with_scales(&codes, &scales(file), e2m3)
    });
    for layout in ["torch", "byte"] {
        decoded("mxfp6-e2m3", layout, |file| {
            with_scales(part(file, "w", "U8", &[130, 64]), &scales(file), e2m3)
        });
    }
    decoded("mxfp6-e2m3", "fp6-padded4", |file| {
        let codes: Vec<u8> = part(file, "w", "U8", &[130, 64]).chunks(4).flat_map(fours).collect();
        with_scales(&codes, &scales(file), e2m3)
    });
    for (layout, data, whole, last) in [("fp6-padded32", 24, 32, 64), ("tma16", 12, 16, 64)] {
        decoded("mxfp6-e2m3", layout, |file| {
            let groups = part(file, "w", "U8", &[130, last]).chunks(whole);
            let codes: Vec<u8> =
                groups.flat_map(|group| group[..data].chunks(3).flat_map(fours)).collect();
            with_scales(&codes, &scales(file), e2m3)
        });
    }
}
