//! The same matrix for a product that sums along its other axis.
//!
//! A sum needs blocks along its own axis. Blocks that are the same both ways - square tiles, the
//! whole tensor - serve both: that is why NVFP4 stores weights in tiles of 16 x 16 (arXiv 2509.25149).
//! Others have to be quantized anew, from the original where it is at hand, else from the decoded
//! values.

use alloc::vec::Vec;

use super::BlockTensor;
use crate::block::{Axis, BlockFormat, Elements};
use crate::pack;
use crate::slice::View;

impl BlockTensor {
    /// The same codes and scales for a sum along `axis`, where blocks are the same for both.
    ///
    /// # Errors
    /// The tensor itself, if its blocks would be others: it has to be
    /// [quantized anew](Self::requantize).
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor};
    /// use exmy::round::Rounding;
    /// use exmy::slice::View;
    ///
    /// let x = [1.0_f32; 64];
    /// let x = View::new(&x, 8, 8);
    /// let along = |format| {
    ///     BlockTensor::quantize(x, Axis::Cols, format, Rounding::TiesToEven)
    ///         .along(Axis::Rows)
    /// };
    /// assert!(along(BlockFormat::NVFP4_16X16).is_ok()); // ragged, but the same both ways
    /// assert!(along(BlockFormat::NVFP4).is_err());
    /// ```
    pub fn along(self, axis: Axis) -> Result<Self, Self> {
        if axis.block(self.format.shape, self.rows, self.cols) == self.block {
            Ok(Self { axis, ..self })
        } else {
            Err(self)
        }
    }

    /// The decoded values quantized anew, in blocks along `axis`. What the first quantization lost
    /// stays lost, and the second one rounds again where its scales differ.
    ///
    /// # Panics
    /// As [`quantize`](Self::quantize).
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor};
    /// use exmy::round::Rounding;
    /// use exmy::slice::View;
    ///
    /// let x = View::new(&[1.0_f32, 0.3, 8.0, 0.3], 2, 2);
    /// let along =
    ///     BlockTensor::quantize(x, Axis::Cols, BlockFormat::MXFP4, Rounding::TiesToEven);
    /// assert_eq!(along.dequantize(), [1.0, 0.25, 8.0, 0.0]);
    /// // In one block with 8, the 1 of the first row still is a multiple of 1.
    /// let down = along.requantize(Axis::Rows, BlockFormat::MXFP4, Rounding::TiesToEven);
    /// assert_eq!(down.dequantize(), [1.0, 0.25, 8.0, 0.0]);
    /// ```
    pub fn requantize(&self, axis: Axis, format: BlockFormat, by: impl Into<Elements>) -> Self {
        let values = self.dequantize();
        let x = View::new(&values, self.rows, self.cols);
        Self::quantize(x, axis, format, by)
    }

    /// The transposed matrix, whose sums run along the other axis: every code moves, every value
    /// stays.
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor};
    ///
    /// let (format, axis) = (BlockFormat::MXFP4, Axis::Cols);
    /// let parts = (vec![0x21, 0x43, 0x65], vec![127, 128]); // two rows of three codes, a scale each
    /// let tensor = BlockTensor::from_parts(format, axis, (2, 3), parts.0, parts.1, None).unwrap();
    /// let transposed = tensor.t();
    /// assert_eq!(transposed.dequantize(), [0.5, 4.0, 1.0, 6.0, 1.5, 8.0]);
    /// assert_eq!((transposed.axis(), transposed.block()), (Axis::Rows, (32, 1)));
    /// assert_eq!(transposed.t(), tensor);
    /// ```
    pub fn t(&self) -> Self {
        let Self { format, rows, cols, block, tensor_scale, .. } = *self;
        let axis = match self.axis {
            Axis::Cols => Axis::Rows,
            Axis::Rows => Axis::Cols,
        };
        let codes = match pack::pack(&transposed(&self.codes(), cols), format.element.bits()) {
            Ok(codes) => codes,
            Err(error) => unreachable!("codes of {format}: {error}"),
        };
        let size = super::scale_size(format.scale);
        let stored = self.scales.chunks_exact(size).collect::<Vec<_>>();
        let scales = transposed(&stored, self.blocks().1).concat();
        let block = (block.1, block.0);
        Self { format, axis, rows: cols, cols: rows, block, codes, scales, tensor_scale }
    }
}

/// A row-major matrix of `cols` columns with rows and columns exchanged.
fn transposed<T: Copy>(x: &[T], cols: usize) -> Vec<T> {
    let rows = x.len().checked_div(cols).unwrap_or(0);
    let mut out = Vec::from(x);
    // In tiles, so that both sides stay in cache.
    const TILE: usize = 32;
    for (i0, j0) in
        (0..rows).step_by(TILE).flat_map(|i| (0..cols).step_by(TILE).map(move |j| (i, j)))
    {
        for i in i0..(i0 + TILE).min(rows) {
            for j in j0..(j0 + TILE).min(cols) {
                out[j * rows + i] = x[i * cols + j];
            }
        }
    }
    out
}
