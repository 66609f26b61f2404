//! What a tensor of blocks holds: its format and shape, codes and scales, stored or as numbers.

use alloc::vec;
use alloc::vec::Vec;

use super::{BlockTensor, scale_code, scale_size};
use crate::block::{Axis, BlockFormat, PlainBlocks};
use crate::format::Value;
use crate::pack;
use crate::slice::decode_into;

impl BlockTensor {
    /// A number a code.
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor};
    ///
    /// let (format, codes, scales) = (BlockFormat::MXFP4, vec![0x21, 0x07], vec![128]);
    /// let tensor = BlockTensor::from_parts(format, Axis::Cols, (1, 3), codes, scales, None).unwrap();
    /// let plain = tensor.to_plain();
    /// assert_eq!((plain.codes, plain.scales), (vec![1, 2, 7], vec![128]));
    /// ```
    pub fn to_plain(&self) -> PlainBlocks {
        PlainBlocks {
            format: self.format,
            shape: (self.rows, self.cols),
            block: self.block,
            codes: self.codes(),
            scales: self.scales(),
            tensor_scale: self.tensor_scale,
        }
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

    /// Rows and columns of blocks.
    ///
    /// ```
    /// use exmy::quantizer::{Axis, Quantizer};
    /// use exmy::slice::View;
    ///
    /// let x = View::new(&[1.0_f32; 33 * 40], 33, 40);
    /// let quantize = |text: &str, axis| text.parse::<Quantizer>().unwrap().quantize(x, axis, None).unwrap();
    /// // 40 columns are two blocks of at most 32, 33 rows are two as well.
    /// assert_eq!(quantize("mxfp4", Axis::Cols).blocks(), (33, 2));
    /// assert_eq!(quantize("mxfp4", Axis::Rows).blocks(), (2, 40));
    /// ```
    pub fn blocks(&self) -> (usize, usize) {
        (self.rows.div_ceil(self.block.0), self.cols.div_ceil(self.block.1))
    }

    /// The tensor's scale, if the format has one: what decoded values are multiplied by last.
    pub fn tensor_scale(&self) -> Option<f32> {
        self.tensor_scale
    }

    /// The elements' codes as they are stored.
    pub fn packed_codes(&self) -> &[u8] {
        &self.codes
    }

    /// The bytes of row `i`'s codes, if the row starts and ends with a byte.
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor};
    ///
    /// let parts = |cols| {
    ///     let (format, codes) = (BlockFormat::MXFP4, vec![0x21, 0x43, 0x65]);
    ///     BlockTensor::from_parts(format, Axis::Cols, (2, cols), codes, vec![127; 2], None)
    /// };
    /// assert!(parts(2).is_err()); // four codes take two bytes
    /// let odd = parts(3).unwrap();
    /// assert_eq!(odd.packed_row(1), None); // it begins within a byte
    /// assert_eq!(odd.dequantize(), [0.5, 1.0, 1.5, 2.0, 3.0, 4.0]);
    /// ```
    ///
    /// # Panics
    /// If there is no such row.
    #[track_caller]
    pub fn packed_row(&self, i: usize) -> Option<&[u8]> {
        assert!(i < self.rows, "row {i} of a matrix of {} rows", self.rows);
        let width = self.format.element.bits() as usize;
        // In eighths of the row, so that nothing overflows: eight codes take `width` bytes.
        let bytes = match (self.cols.is_multiple_of(8), width.is_multiple_of(8)) {
            (true, _) => self.cols / 8 * width,
            (_, true) => self.cols * (width / 8),
            _ if (self.cols % 8 * width).is_multiple_of(8) => {
                self.cols / 8 * width + self.cols % 8 * width / 8
            }
            _ => return None,
        };
        Some(&self.codes[i * bytes..(i + 1) * bytes])
    }

    /// The blocks' scales as they are stored.
    pub fn packed_scales(&self) -> &[u8] {
        &self.scales
    }

    /// The elements' codes, row-major.
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor};
    ///
    /// let (format, codes, scales) = (BlockFormat::MXFP4, vec![0x21, 0x07], vec![128]);
    /// let tensor = BlockTensor::from_parts(format, Axis::Cols, (1, 3), codes, scales, None).unwrap();
    /// assert_eq!(tensor.codes(), [1, 2, 7]); // the free half byte is none
    /// ```
    pub fn codes(&self) -> Vec<u16> {
        match pack::unpack(&self.codes, self.format.element.bits(), self.rows * self.cols) {
            Ok(codes) => codes,
            Err(error) => unreachable!("codes of {}: {error}", self.format),
        }
    }

    /// The blocks' scales as numbers, row-major over blocks, without the tensor scale.
    pub(crate) fn scale_values(&self) -> Vec<f32> {
        let format = self.format.scale;
        let mut values = vec![0.0; self.scales.len() / scale_size(format)];
        match scale_size(format) {
            1 => decode_into(format, &self.scales, &mut values),
            _ => decode_into(format, &self.scales(), &mut values),
        }
        values
    }

    /// The blocks' scale codes, row-major over blocks.
    ///
    /// ```
    /// use exmy::quantizer::{Axis, Quantizer};
    /// use exmy::slice::View;
    ///
    /// let x = View::new(&[1.0_f32; 33 * 40], 33, 40);
    /// let quantize = |text: &str, axis| text.parse::<Quantizer>().unwrap().quantize(x, axis, None).unwrap();
    /// assert_eq!(quantize("e4m3/tensor:f32", Axis::Cols).scales(), [(1.0_f32 / 448.0).to_bits()]);
    /// assert_eq!(quantize("mxfp4", Axis::Cols).scales()[..2], [125; 2]); // 2^-2: 1 is 4 of it
    /// ```
    pub fn scales(&self) -> Vec<u32> {
        self.scales.chunks_exact(scale_size(self.format.scale)).map(scale_code).collect()
    }

    /// The scale code of block (bi, bj), counted in blocks.
    ///
    /// ```
    /// use exmy::quantizer::{Axis, Quantizer};
    /// use exmy::slice::View;
    ///
    /// let x = View::new(&[1.0_f32; 33 * 40], 33, 40);
    /// let quantize = |text: &str, axis| text.parse::<Quantizer>().unwrap().quantize(x, axis, None).unwrap();
    /// let tensor = quantize("nvfp4-16x16", Axis::Cols);
    /// assert_eq!(tensor.scale_code(2, 2), 0x7E); // the ragged corner, counted in blocks; 448
    /// ```
    ///
    /// # Panics
    /// If there is no such block.
    #[track_caller]
    pub fn scale_code(&self, bi: usize, bj: usize) -> u32 {
        let (down, right) = self.blocks();
        assert!(bi < down && bj < right, "block ({bi}, {bj}) of {down} x {right} blocks");
        let (size, at) = (scale_size(self.format.scale), bi * right + bj);
        scale_code(&self.scales[at * size..(at + 1) * size])
    }

    /// The scale of the block that holds element (i, j), without the tensor scale.
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor};
    ///
    /// // 33 columns are two blocks, the second of one element; E8M0 255 is NaN.
    /// let (format, codes) = (BlockFormat::MXFP4, vec![0x22; 17]);
    /// let scales = vec![128, 255];
    /// let tensor = BlockTensor::from_parts(format, Axis::Cols, (1, 33), codes, scales, None).unwrap();
    /// assert!(!tensor.scale(0, 31).is_nan()); // 2
    /// assert!(tensor.scale(0, 32).is_nan() && tensor.scale_code(0, 1) == 255);
    /// ```
    ///
    /// # Panics
    /// If there is no such element.
    #[track_caller]
    pub fn scale(&self, i: usize, j: usize) -> Value {
        let Self { rows, cols, .. } = *self;
        assert!(i < rows && j < cols, "element ({i}, {j}) of a {rows} x {cols} matrix");
        let code = self.scale_code(i / self.block.0, j / self.block.1);
        self.format.scale.decode(u64::from(code))
    }
}
