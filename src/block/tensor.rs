//! A matrix in a block format as it is stored: packed codes, scales, and their shape.

use alloc::vec::Vec;

use super::{Axis, BlockFormat, PlainBlocks};
use crate::format::Value;
use crate::random::Philox;
use crate::round::{Overflow, Rounding};
use crate::view::View;

/// A matrix of element codes, its blocks' scale codes and, if the format has one, its scale.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockTensor {
    format: BlockFormat,
    axis: Axis,
    rows: usize,
    cols: usize,
    block: (usize, usize),
    codes: Vec<u16>,
    scales: Vec<u32>,
    tensor_scale: Option<f32>,
}

impl BlockTensor {
    /// Quantizes a matrix that a product sums along `axis`.
    ///
    /// `rounding` and `overflow` are those of the elements; scales follow their rule. Under
    /// stochastic rounding element (i, j) uses random word `i * cols + j`.
    ///
    /// # Panics
    /// If [`BlockFormat::check`] fails, or `rounding` is stochastic with a bit count outside
    /// 1..=32.
    pub fn quantize(
        x: View<'_, f32>,
        axis: Axis,
        format: BlockFormat,
        rounding: Rounding,
        overflow: Overflow,
        random: Philox,
    ) -> Self {
        let plain = PlainBlocks::quantize(x, axis, format, rounding, overflow, random);
        let PlainBlocks { format, shape: (rows, cols), block, codes, scales, tensor_scale } = plain;
        Self { format, axis, rows, cols, block, codes, scales, tensor_scale }
    }

    /// The values, row-major: element times block scale, and that times the tensor scale, each
    /// product rounded to `f32` (of powers of two, and of E2M1 with E4M3 scales, the first is
    /// exact; at or above 2^128 it is infinity). NaN scales give the canonical NaN.
    pub fn dequantize(&self) -> Vec<f32> {
        let plain = PlainBlocks {
            format: self.format,
            shape: (self.rows, self.cols),
            block: self.block,
            codes: self.codes.clone(),
            scales: self.scales.clone(),
            tensor_scale: self.tensor_scale,
        };
        plain.dequantize()
    }

    /// The scale of the block that holds element (i, j), without the tensor scale.
    ///
    /// # Panics
    /// If there is no such element.
    pub fn scale(&self, i: usize, j: usize) -> Value {
        assert!(i < self.rows && j < self.cols, "element ({i}, {j}) of {self:?}");
        let across = self.cols.div_ceil(self.block.1);
        let code = self.scales[i / self.block.0 * across + j / self.block.1];
        self.format.scale.decode(u64::from(code))
    }

    /// The format.
    pub fn format(&self) -> BlockFormat {
        self.format
    }

    /// The axis a product sums along.
    pub fn axis(&self) -> Axis {
        self.axis
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Rows and columns of a block; blocks at the lower and right edge may be smaller.
    pub fn block(&self) -> (usize, usize) {
        self.block
    }

    /// The elements' codes, row-major.
    pub fn codes(&self) -> &[u16] {
        &self.codes
    }

    /// The blocks' scale codes, row-major over blocks.
    pub fn scales(&self) -> &[u32] {
        &self.scales
    }

    /// The tensor's scale, if the format has one: what decoded values are multiplied by last.
    pub fn tensor_scale(&self) -> Option<f32> {
        self.tensor_scale
    }
}
