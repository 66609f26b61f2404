//! NVFP4 products as Transformer Engine's reference forms them (`quantization_nvfp4.py`, `qgemm`).
//!
//! ```text
//! y = 0
//! for each block of 16 along K, ascending:   y = y + (s_a * s_b) * dot16        binary32
//! y = alpha * y                              alpha = (amax_a * amax_b) / 7225344
//! ```
//!
//! A sum of 16 products of E2M1 numbers is a multiple of 1/4 of at most 576. The product of two E4M3
//! scales has at most 8 significant bits. So each block's term is exact in binary32, whatever the
//! order inside it. Only the additions of blocks and the multiplication by alpha round. The reference
//! takes K in multiples of 32 and N in multiples of 8, for the layouts of its buffers. Here K is any
//! multiple of 16, and N is free.

use alloc::vec;
use alloc::vec::Vec;

use super::accumulation::TeAlpha;
use super::operand::{Operand, Store};
use crate::format::Format;
use crate::slice::decode_into;

/// Elements of a block along the sum.
pub(super) const BLOCK: usize = 16;

/// (6 x 448)^2, the product of what the two tensor scales map the largest magnitudes to.
const FACTOR: f32 = 7_225_344.0;

/// Whether the rows of an operand are what the reference multiplies: E2M1 in blocks of 16, scales in
/// E4M3.
pub(super) fn takes(rows: &Operand<'_>) -> bool {
    rows.block_format().is_some_and(|format| {
        format.element == Format::E2M1 && [Format::UE4M3, Format::E4M3FN].contains(&format.scale)
    }) && rows.block().is_some_and(|(_, along)| along == BLOCK)
}

/// The factor of the whole product, from the caller's own and the tensors' largest magnitudes.
pub(super) fn alpha(way: TeAlpha, alpha: f32, [a, b]: [f32; 2]) -> f32 {
    match way {
        TeAlpha::Divided => alpha * ((a * b) / FACTOR),
        TeAlpha::Multiplied => ((alpha * a) * b) * (1.0 / FACTOR),
    }
}

/// Rows of A or columns of B: twice the elements, which are integers, and one scale for 16.
pub(super) struct TeOperand {
    k: usize,
    elements: Vec<i8>,
    scales: Vec<f32>,
}

impl TeOperand {
    /// The rows of an operand that [`takes`] has passed.
    pub(super) fn rows(operand: &Operand<'_>) -> Self {
        let (count, k) = operand.shape();
        let mut side = Self { k, elements: vec![0; count * k], scales: Vec::new() };
        let Store::Blocks(tensor) = operand.store() else { return side };
        let (down, across) = tensor.block();
        let (codes, scales) = (tensor.codes(), tensor.scales());
        let mut values = vec![0.0_f32; scales.len()];
        decode_into(tensor.format().scale, &scales, &mut values);
        let right = tensor.blocks().1;
        side.scales.reserve(count * k.div_ceil(BLOCK));
        for i in 0..count {
            for kk in 0..k {
                let (row, col) = if operand.is_transposed() { (kk, i) } else { (i, kk) };
                let code = codes[row * tensor.cols() + col];
                side.elements[i * k + kk] = (2.0 * Format::E2M1.to_f32(u64::from(code))) as i8;
                if kk % BLOCK == 0 {
                    side.scales.push(values[row / down * right + col / across]);
                }
            }
        }
        side
    }
}

/// The sum of one row and one column before alpha.
pub(super) fn sum(a: &TeOperand, b: &TeOperand, i: usize, j: usize) -> f32 {
    let (blocks, k) = (a.k.div_ceil(BLOCK), a.k);
    let (x, y) = (&a.elements[i * k..(i + 1) * k], &b.elements[j * k..(j + 1) * k]);
    let (s, t) = (&a.scales[i * blocks..(i + 1) * blocks], &b.scales[j * blocks..(j + 1) * blocks]);
    let mut sum = 0.0;
    for (block, (x, y)) in x.chunks(BLOCK).zip(y.chunks(BLOCK)).enumerate() {
        // At most 16 x 144.
        let quarters: i32 = x.iter().zip(y).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum();
        sum += (s[block] * t[block]) * (quarters as f32 * 0.25);
    }
    sum
}
