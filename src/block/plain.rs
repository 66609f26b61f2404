//! The plain definition of block quantization: element by element through the rounding core, block
//! by block from the formulas of [`scale`](crate::scale). The fast kernels are tested against it.

use alloc::vec;
use alloc::vec::Vec;

use super::{Axis, BlockFormat};
use crate::format::Value;
use crate::random::Philox;
use crate::round::{Overflow, Rounding};
use crate::scale::{ScaleRule, TensorFactors, floor_code};
use crate::view::View;

/// A matrix in a block format, a number a code.
#[derive(Clone, Debug, PartialEq)]
pub struct PlainBlocks {
    /// The format.
    pub format: BlockFormat,
    /// Rows and columns of the matrix.
    pub shape: (usize, usize),
    /// Rows and columns of a block; blocks at the lower and right edge may be smaller.
    pub block: (usize, usize),
    /// The elements' codes, row-major.
    pub codes: Vec<u16>,
    /// The blocks' scale codes, row-major over blocks.
    pub scales: Vec<u32>,
    /// The tensor's scale, if the format has one: what decoded values are multiplied by last.
    pub tensor_scale: Option<f32>,
}

impl PlainBlocks {
    /// Quantizes a matrix that a product sums along `axis`; the definition of
    /// [`BlockTensor::quantize`](super::BlockTensor::quantize).
    ///
    /// # Panics
    /// As there.
    pub fn quantize(
        x: View<'_, f32>,
        axis: Axis,
        format: BlockFormat,
        rounding: Rounding,
        overflow: Overflow,
        random: Philox,
    ) -> Self {
        let format = format.checked();
        let (rows, cols) = (x.rows(), x.cols());
        let block = axis.block(format.shape, rows, cols);
        let grid = (rows.div_ceil(block.0), cols.div_ceil(block.1));
        let amax = |rows: core::ops::Range<usize>, cols: core::ops::Range<usize>| {
            // As integers, magnitudes order with their bits, infinity above and NaN above that.
            let bits = rows.flat_map(|i| cols.clone().map(move |j| (i, j)));
            let bits = bits.map(|(i, j)| x.at(i, j).to_bits() & 0x7FFF_FFFF).max();
            f32::from_bits(bits.unwrap_or(0))
        };
        let whole = format.tensor_scale.then(|| amax(0..rows, 0..cols));
        let factors = TensorFactors::new(whole, format.element, format.scale);

        let mut codes = vec![0; rows * cols];
        let mut scales = Vec::with_capacity(grid.0 * grid.1);
        for (bi, bj) in (0..grid.0).flat_map(|bi| (0..grid.1).map(move |bj| (bi, bj))) {
            let block_rows = bi * block.0..((bi + 1) * block.0).min(rows);
            let block_cols = bj * block.1..((bj + 1) * block.1).min(cols);
            let amax = amax(block_rows.clone(), block_cols.clone());
            let scale = match format.rule {
                ScaleRule::Floor => floor_code(amax, format.element, format.scale),
                ScaleRule::Nearest => {
                    let d = factors.unrounded(amax);
                    format.scale.encode_f32(d, Rounding::Rne, Overflow::Finite, 0).code
                }
            };
            let value = format.scale.decode(scale);
            for (i, j) in block_rows.flat_map(|i| block_cols.clone().map(move |j| (i, j))) {
                let x = x.at(i, j);
                let at = i * cols + j;
                let word = if rounding.is_stochastic() { random.word(at as u64) } else { 0 };
                let code = encode_element(format, rounding, overflow, x, value, &factors, word);
                codes[at] = code as u16;
            }
            scales.push(scale as u32);
        }
        let tensor_scale = format.tensor_scale.then_some(factors.decode);
        Self { format, shape: (rows, cols), block, codes, scales, tensor_scale }
    }

    /// The values, row-major; the definition of
    /// [`BlockTensor::dequantize`](super::BlockTensor::dequantize).
    pub fn dequantize(&self) -> Vec<f32> {
        let (cols, across) = (self.shape.1, self.shape.1.div_ceil(self.block.1.max(1)));
        let values = self.codes.iter().enumerate().map(|(at, code)| {
            let (i, j) = (at / cols, at % cols);
            let scale = self.scales[i / self.block.0 * across + j / self.block.1];
            let scale = self.format.scale.decode(u64::from(scale));
            let tensor = self.tensor_scale.unwrap_or(1.0);
            decode_element(self.format, u64::from(*code), scale, tensor)
        });
        values.collect()
    }
}

/// The code of an element in a block of the given scale.
pub(crate) fn encode_element(
    format: BlockFormat,
    rounding: Rounding,
    overflow: Overflow,
    x: f32,
    scale: Value,
    factors: &TensorFactors,
    word: u32,
) -> u64 {
    let quotient = match format.rule {
        ScaleRule::Floor => over_power(Value::from_f32(x), scale),
        ScaleRule::Nearest => {
            let y = x * factors.factor(scale.to_f32());
            let largest = factors.largest;
            // A comparison chain that lets NaN through.
            let y = if y > largest { largest } else { y };
            let y = if y < -largest { -largest } else { y };
            Value::from_f32(y + 0.0)
        }
    };
    format.element.encode(quotient, rounding, overflow, word).code
}

/// The image of an element's code in a block of the given scale; `tensor` is the last factor.
pub(crate) fn decode_element(format: BlockFormat, code: u64, scale: Value, tensor: f32) -> f32 {
    if scale.is_nan() || tensor.is_nan() {
        return f32::from_bits(0x7FC0_0000);
    }
    format.element.to_f32(code) * scale.to_f32() * tensor
}

/// `x / scale` exactly, for a scale that is a power of two; NaN if it is NaN.
fn over_power(x: Value, scale: Value) -> Value {
    match (x, scale) {
        (
            Value::Finite { negative, significand, exponent },
            Value::Finite { significand: one, exponent: power, .. },
        ) => {
            let power = power + one.trailing_zeros() as i32;
            Value::Finite { negative, significand, exponent: exponent - power }
        }
        (_, Value::Finite { .. }) => x,
        _ => Value::Nan { negative: false },
    }
}
