//! Blocks of GGUF by hand, and many of each kind against the package gguf.

use super::data;
use exmy::format::Format;
use exmy::round::{Overflow, Rounding};
use exmy::safetensors::Reader;
use exmy_train::published::gguf::Gguf;
use exmy_train::published::gguf::blocks::Type;

/// The bytes of a binary16 number.
fn half(x: f32) -> [u8; 2] {
    (Format::F16.encode_f32(x, Rounding::TiesToEven, Overflow::None, 0).code as u16).to_le_bytes()
}

fn values(dtype: Type, block: &[u8]) -> Vec<f32> {
    let mut values = vec![f32::NAN; dtype.block().0];
    dtype.dequantize(block, &mut values);
    values
}

#[test]
fn small_blocks_by_hand() {
    let mut block = half(0.5).to_vec();
    block.extend([0x80, 1, 0xFF].into_iter().chain([0; 29]));
    assert_eq!(values(Type::Q8_0, &block)[..4], [-64.0, 0.5, -0.5, 0.0]);

    // Byte j holds elements j (low) and j + 16 (high).
    let mut block = half(0.25).to_vec();
    block.extend([0xF0, 0x19].into_iter().chain([0x88; 14]));
    let x = values(Type::Q4_0, &block);
    assert_eq!((x[0], x[16], x[1], x[17], x[2]), (-2.0, 1.75, 0.25, -1.75, 0.0));

    let mut block = [half(0.25), half(-3.0)].concat();
    block.extend([0xF0, 0x19].into_iter().chain([0; 14]));
    let x = values(Type::Q4_1, &block);
    assert_eq!((x[0], x[16], x[1], x[17], x[2]), (-3.0, 0.75, -0.75, -2.75, -3.0));

    // 2^(128 - 127) = 2 times 0.5 (code 1), -6 (code 15), 3 (code 5).
    let mut block = vec![128, 0xF1, 0x05];
    block.resize(17, 0);
    let x = values(Type::Mxfp4, &block);
    assert_eq!((x[0], x[16], x[1], x[17]), (1.0, -12.0, 6.0, 0.0));
    // The smallest scale: 0.5 x 2^-127 is a subnormal number.
    block[0] = 0;
    assert_eq!(values(Type::Mxfp4, &block)[0].to_bits(), 1 << 21);

    assert_eq!(values(Type::F16, &half(-1.5)), [-1.5]);
    assert_eq!(values(Type::Bf16, &[0xC0, 0x3F]), [1.5]);
    assert_eq!(values(Type::F32, &2.5_f32.to_le_bytes()), [2.5]);
}

/// Sub-block j of Q4_K has a 6-bit scale and offset: of j = 1 the scale is 5 and the offset 3; of j = 6 the
/// scale is 0x2A = 42 (low bits 0xA, high bits 2) and the offset 0x15 = 21 (low bits 5, high bits 1).
#[test]
fn q4_k_by_hand() {
    let mut block = [half(0.5), half(0.25)].concat();
    let mut scales = [0_u8; 12];
    (scales[1], scales[5]) = (5, 3);
    scales[10] = 0x5A;
    scales[2] |= 2 << 6;
    scales[6] |= 1 << 6;
    block.extend(scales);
    let mut codes = [0_u8; 128];
    codes[0] = 0x70; // element 32, the first of sub-block 1, is 7
    codes[3 * 32 + 4] = 0x09; // element 192 + 4, of sub-block 6, is 9
    block.extend(codes);
    let x = values(Type::Q4K, &block);
    assert_eq!((x[0], x[32], x[33]), (0.0, 0.5 * 5.0 * 7.0 - 0.75, -0.75));
    assert_eq!((x[196], x[192]), (0.5 * 42.0 * 9.0 - 5.25, -5.25));
}

/// Element 128 + 64 + 3 of Q6_K: low bits in the high nibble of byte 64 + 3, high bits 4 and 5 of byte 32 +
/// 3; its scale is that of sixteen number 12.
#[test]
fn q6_k_by_hand() {
    let mut block = vec![0_u8; 208];
    block.extend(half(0.5));
    block[64 + 3] = 0xB0;
    block[128 + 32 + 3] = 2 << 4;
    block[192 + 12] = (-3_i8) as u8;
    let x = values(Type::Q6K, &block);
    assert_eq!(x[195], 0.5 * -3.0 * (0x2B as f32 - 32.0));
    assert_eq!(x[194], 0.5 * -3.0 * -32.0);
    assert_eq!(x[0], 0.0);
}

#[test]
fn all_types_have_the_bits_of_the_package_gguf() {
    let file = std::fs::read(data("blocks.gguf")).unwrap();
    let gguf = Gguf::parse(&file).unwrap();
    let mut truth = Reader::open(data("blocks.safetensors")).unwrap();
    let mut seen = Vec::new();
    for (name, tensor) in gguf.tensors() {
        let expected = truth.read_f32(name).unwrap();
        let mut values = vec![0.0; tensor.shape.iter().product()];
        tensor.dtype.dequantize(&file[tensor.range.clone()], &mut values);
        let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&values[..expected.len()]), bits(&expected), "{name}, {:?}", tensor.dtype);
        if !seen.contains(&tensor.dtype) {
            seen.push(tensor.dtype);
        }
    }
    assert_eq!(seen.len(), 9, "{seen:?}");
}
