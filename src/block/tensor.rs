//! A matrix in a block format as it is stored: packed codes, scales, and their shape.
//!
//! *Codes* are the stream of [`pack`](mod@crate::pack): code `i * cols + j` of element (i, j) takes
//! [`element.bits()`](Format::bits) bits, little-endian, without gaps between rows. *Scales* take
//! [`scale.storage_bits()`](Format::storage_bits) bits each, little-endian, row-major over blocks:
//! an E8M0 or E4M3 scale is a byte. So the bytes of NVFP4 and of the MX formats are those that
//! torchao, Transformer Engine and gpt-oss checkpoints hold ("linear" scales).
//!
//! A ragged edge makes smaller blocks: 33 columns in blocks of 32 are two blocks a row, of which the
//! second has one element. Nothing is padded.

mod axis;
mod error;
mod read;

pub use error::PartsError;

use alloc::vec;
use alloc::vec::Vec;

use super::Statistics;
use super::fast::{self, Blocks, Encoded, Own};
use super::scale::is_largest;
use super::{Axis, BlockFormat, Elements, PlainBlocks};
use crate::format::Format;
use crate::pack;
use crate::slice::{Real, View, ViewMut};

/// A matrix of packed element codes, its blocks' scales and, if the format has one, its own scale.
///
/// ```
/// use exmy::block::{Axis, BlockFormat, BlockTensor};
/// use exmy::round::Rounding;
/// use exmy::slice::View;
///
/// let x = View::new(&[0.1_f32, 0.5, -3.0, 1.25], 1, 4);
/// let tensor =
///     BlockTensor::quantize(x, Axis::Cols, BlockFormat::MXFP4, Rounding::TiesToEven);
/// assert_eq!(tensor.packed_codes(), [0x20, 0x4F]); // codes 0, 2, F, 4: 0, 1, -6, 2
/// assert_eq!(tensor.packed_scales(), [126]); // times 2^-1; 1.25 is a tie and went to even
/// assert_eq!(tensor.dequantize(), [0.0, 0.5, -3.0, 1.0]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BlockTensor {
    format: BlockFormat,
    axis: Axis,
    rows: usize,
    cols: usize,
    block: (usize, usize),
    codes: Vec<u8>,
    scales: Vec<u8>,
    tensor_scale: Option<f32>,
}

/// Bytes of a scale.
fn scale_size(scale: Format) -> usize {
    scale.storage_bits() as usize / 8
}

impl BlockTensor {
    /// Quantizes a matrix that a product sums along `axis`.
    ///
    /// `by` says how elements are rounded: a [`Rounding`](crate::round::Rounding), which saturates, or
    /// [`Elements`]; scales follow their rule. Under stochastic rounding element (i, j) uses random word
    /// `i * cols + j`. The definition is [`PlainBlocks::quantize`].
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor};
    /// use exmy::round::Rounding;
    /// use exmy::slice::View;
    ///
    /// let x = View::new(&[3.5_f32, 0.4, f32::NAN], 3, 1);
    /// let quantize = |axis| {
    ///     BlockTensor::quantize(x, axis, BlockFormat::MXFP4, Rounding::TiesToEven)
    /// };
    /// // Along the rows, each row is a block; down the column all three are, and the NaN takes them along.
    /// assert_eq!(quantize(Axis::Cols).packed_scales(), [126, 123, 255]);
    /// assert_eq!(quantize(Axis::Cols).dequantize()[..2], [3.0, 0.375]); // 7 saturates; 6.4 goes to 6
    /// assert!(quantize(Axis::Rows).dequantize().iter().all(|x| x.is_nan()));
    /// ```
    ///
    /// # Panics
    /// If [`BlockFormat::check`] fails, or the rounding is stochastic without random words or with a bit
    /// count outside 1..=32. Also if the matrix is larger than any memory (a view whose strides are 0 can
    /// be). A [`Quantizer`](crate::quantizer::Quantizer) returns an error then.
    pub fn quantize(
        x: View<'_, f32>,
        axis: Axis,
        format: BlockFormat,
        by: impl Into<Elements>,
    ) -> Self {
        Self::build((x, axis), format, by.into(), Own::Nothing, false).0
    }

    /// Quantizes a matrix with scales of the caller's own: `scale` sees the elements of a block, the
    /// reduction axis running fastest, and its result is rounded to the nearest value of the scale
    /// format, ties to even, saturating. Elements are `x / scale`, exact and then rounded once, NaN
    /// if the scale is NaN and zero if it is zero. The format's rule and profile are not used.
    ///
    /// Blocks may be asked about in any order, by several threads, and more than once. The
    /// definition is [`PlainBlocks::quantize_with`].
    ///
    /// ```
    /// use exmy::block::{Axis, BlockTensor};
    /// use exmy::round::Rounding;
    /// use exmy::slice::View;
    ///
    /// let format = "e2m1/4:e4m3".parse()?;
    /// let x = View::new(&[0.5_f32, -100.0, 1.5, 3.0, 7.0], 1, 5);
    /// let fixed = |scale: f32| {
    ///     BlockTensor::quantize_with(x, Axis::Cols, format, Rounding::TiesToEven, |_| scale)
    /// };
    /// assert_eq!(fixed(0.5).dequantize(), [0.5, -3.0, 1.5, 3.0, 3.0]); // what is too large saturates
    /// assert_eq!(fixed(1e-9).dequantize(), [0.0; 5]); // the nearest E4M3 scale is 0
    /// assert_eq!(fixed(0.55).scales(), [0x31; 2]); // 0.5625, the nearest; the last block has one element
    /// # Ok::<(), exmy::block::ParseBlockFormatError>(())
    /// ```
    ///
    /// # Panics
    /// If [`BlockFormat::check`] fails, the format has a tensor scale, or `rounding` is stochastic
    /// with a bit count outside 1..=32.
    pub fn quantize_with(
        x: View<'_, f32>,
        axis: Axis,
        format: BlockFormat,
        by: impl Into<Elements>,
        scale: impl Fn(&[f32]) -> f32 + Sync,
    ) -> Self {
        Self::build((x, axis), format, by.into(), Own::Scales(&scale), false).0
    }

    /// Quantizes a matrix to a format with a tensor scale, found from a largest magnitude that the
    /// caller gives. It may be that of a calibration, of earlier steps, or of a matrix of which this
    /// is a part. Larger numbers saturate, by their block's scale and then by `overflow`.
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor};
    /// use exmy::round::Rounding;
    /// use exmy::slice::View;
    ///
    /// let x = View::new(&[0.5_f32, -3.0, 1.5, 1e4], 1, 4);
    /// let format = BlockFormat::NVFP4;
    /// let quantize = |amax| {
    ///     BlockTensor::quantize_with_amax(x, Axis::Cols, format, Rounding::TiesToEven, amax)
    /// };
    /// let found = BlockTensor::quantize(x, Axis::Cols, format, Rounding::TiesToEven);
    /// assert_eq!(quantize(1e4), found);
    /// let calibrated = quantize(2688.0); // 6 x 448: the tensor's scale is 1
    /// assert_eq!(calibrated.tensor_scale(), Some(1.0));
    /// assert_eq!(calibrated.dequantize()[3], 2688.0); // as large as it gets
    /// ```
    ///
    /// # Panics
    /// As [`quantize`](Self::quantize), and if the format has no tensor scale or `amax` is NaN, negative
    /// or infinite.
    pub fn quantize_with_amax(
        x: View<'_, f32>,
        axis: Axis,
        format: BlockFormat,
        by: impl Into<Elements>,
        amax: f32,
    ) -> Self {
        Self::build((x, axis), format, by.into(), Own::Largest(amax), false).0
    }

    /// With scales by the format's rule, or what the caller says; what [`statistics`](Self::statistics)
    /// says of the tensor, if that is asked (`with_statistics`) and found on the way.
    pub(crate) fn build(
        (x, axis): (View<'_, f32>, Axis),
        format: BlockFormat,
        by: Elements,
        own: Own<'_>,
        with_statistics: bool,
    ) -> (Self, Option<Statistics>) {
        let (rows, cols) = (x.rows(), x.cols());
        let Elements { rounding, overflow, .. } = by;
        let blocks = |own| Blocks::new(format, rounding, overflow, axis, (rows, cols), own);
        let blocks = match own {
            Own::Nothing => blocks(None),
            Own::Scales(scale) => blocks(Some(scale)),
            Own::Largest(amax) => blocks(None).with_largest(amax),
        };
        let block = blocks.side;
        let Encoded { codes, scales, decode, statistics } =
            fast::encode(blocks, x, by.words(), with_statistics);
        let tensor_scale = format.tensor_scale.then_some(decode);
        (Self { format, axis, rows, cols, block, codes, scales, tensor_scale }, statistics)
    }

    /// The stored form of plain blocks whose sums run along `axis`.
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor, PlainBlocks};
    ///
    /// let block = (1, 32); // a block's nominal size, though the row is shorter
    /// let plain = PlainBlocks::new(BlockFormat::MXFP4, (1, 3), block, vec![1, 2, 15], vec![128]);
    /// let tensor = BlockTensor::from_plain(&plain, Axis::Cols);
    /// assert_eq!((tensor.packed_codes(), tensor.dequantize()[2]), (&[0x21, 0x0F][..], -12.0));
    /// ```
    ///
    /// # Panics
    /// If the parts of `plain` do not fit each other, or its blocks are not those of `axis`.
    pub fn from_plain(plain: &PlainBlocks, axis: Axis) -> Self {
        let PlainBlocks { format, shape, tensor_scale, .. } = *plain;
        let codes = match pack::pack(&plain.codes, format.element.bits()) {
            Ok(codes) => codes,
            Err(error) => panic!("codes of {format}: {error}"),
        };
        let size = scale_size(format.scale);
        let scales = plain.scales.iter().flat_map(|code| code.to_le_bytes().into_iter().take(size));
        match Self::of_parts(format, axis, shape, codes, scales.collect(), tensor_scale) {
            Ok(tensor) => tensor,
            Err(error) => panic!("{error}"),
        }
    }

    /// A tensor from what was stored: packed codes, packed scales and the tensor's decode scale,
    /// laid out as the [`block`](crate::block) tensors of this crate are.
    ///
    /// Any code and any scale of a block is possible, NaN included; bits behind the last code are
    /// cleared. The tensor's scale is finite and not negative. It is 0 only for a matrix of zeros in the
    /// profile of torchao. [`quantize`](Self::quantize) may give a matrix with NaN or infinity another
    /// scale. Such a tensor decodes to nothing of use, and is refused here.
    ///
    /// # Errors
    /// If the format's parts do not go together, the bytes are more or fewer than the shape needs, or
    /// a scale has bits beyond its format. Also if the tensor scale is missing, is given where the
    /// format has none, or is not finite or negative.
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor, PartsError};
    ///
    /// let parts = |codes, scales| {
    ///     BlockTensor::from_parts(BlockFormat::MXFP4, Axis::Cols, (1, 3), codes, scales, None)
    /// };
    /// let tensor = parts(vec![0x21, 0xF7], vec![128])?; // three codes; the last half byte is free
    /// assert_eq!(tensor.dequantize(), [1.0, 2.0, 12.0]);
    /// assert_eq!(tensor.packed_codes(), [0x21, 0x07]);
    /// let error = parts(vec![0x21], vec![128]).unwrap_err();
    /// assert_eq!(error.to_string(), "a 1 x 3 matrix of 4-bit codes takes 2 bytes, found 1");
    /// # Ok::<(), PartsError>(())
    /// ```
    pub fn from_parts(
        format: BlockFormat,
        axis: Axis,
        shape: (usize, usize),
        codes: Vec<u8>,
        scales: Vec<u8>,
        tensor_scale: Option<f32>,
    ) -> Result<Self, PartsError> {
        let tensor = Self::of_parts(format, axis, shape, codes, scales, tensor_scale)?;
        match tensor_scale {
            Some(scale) if !is_largest(scale) || scale.is_sign_negative() => {
                Err(PartsError::TensorScaleValue { format, scale })
            }
            _ => Ok(tensor),
        }
    }

    /// As [`from_parts`](Self::from_parts), with any tensor scale that `quantize` gives.
    fn of_parts(
        format: BlockFormat,
        axis: Axis,
        shape: (usize, usize),
        mut codes: Vec<u8>,
        scales: Vec<u8>,
        tensor_scale: Option<f32>,
    ) -> Result<Self, PartsError> {
        let format = format.check()?;
        let (rows, cols) = shape;
        let width = format.element.bits();
        let count = rows.checked_mul(cols);
        let needed = count.and_then(|count| pack::packed_len(count, width));
        if needed != Some(codes.len()) {
            let (needed, found) = (needed.unwrap_or(usize::MAX), codes.len());
            return Err(PartsError::Codes { shape, width, needed, found });
        }
        let block = axis.block(format.shape, rows, cols);
        let blocks = (rows.div_ceil(block.0), cols.div_ceil(block.1));
        let size = scale_size(format.scale);
        let needed = blocks.0.checked_mul(blocks.1).and_then(|count| count.checked_mul(size));
        if needed != Some(scales.len()) {
            let (needed, found) = (needed.unwrap_or(usize::MAX), scales.len());
            return Err(PartsError::Scales { blocks, size, needed, found });
        }
        let stray = !low_bits(format.scale.bits());
        if stray != 0 {
            for (block, bytes) in scales.chunks_exact(size).enumerate() {
                let bits = scale_code(bytes);
                if bits & stray != 0 {
                    return Err(PartsError::StrayBits { block, bits, format });
                }
            }
        }
        if tensor_scale.is_some() != format.tensor_scale {
            return Err(PartsError::TensorScale { format });
        }
        // The packed length is that of the count, so the product of count and width fits the bits of
        // the last byte whatever wraps above them.
        let used = count.unwrap_or(0).wrapping_mul(width as usize) % 8;
        if let Some(last) = codes.last_mut().filter(|_| used != 0) {
            *last &= low_bits(used as u32) as u8;
        }
        Ok(Self { format, axis, rows, cols, block, codes, scales, tensor_scale })
    }

    /// The packed codes, the packed scales and the tensor's scale.
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor};
    ///
    /// let (format, codes, scales) = (BlockFormat::MXFP4, vec![0x21, 0x07], vec![128]);
    /// let tensor = BlockTensor::from_parts(format, Axis::Cols, (1, 3), codes, scales, None).unwrap();
    /// // What from_parts takes; axis and shape are not among them.
    /// assert_eq!(tensor.into_parts(), (vec![0x21, 0x07], vec![128], None));
    /// ```
    pub fn into_parts(self) -> (Vec<u8>, Vec<u8>, Option<f32>) {
        (self.codes, self.scales, self.tensor_scale)
    }

    /// The values, row-major: element times block scale, and that times the tensor scale, each
    /// product rounded to `f32`. The first is exact for scales that are powers of two and for E2M1
    /// with E4M3 scales, but infinity from 2^128 on. NaN scales give the canonical NaN.
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor};
    ///
    /// let (format, codes, scales) = (BlockFormat::MXFP4, vec![0x21, 0x07], vec![128]);
    /// let tensor = BlockTensor::from_parts(format, Axis::Cols, (1, 3), codes, scales, None).unwrap();
    /// assert_eq!(tensor.dequantize(), [1.0, 2.0, 12.0]);
    /// let parts = (vec![0x21, 0x00], vec![255]);
    /// let nan = BlockTensor::from_parts(format, Axis::Cols, (1, 3), parts.0, parts.1, None).unwrap();
    /// assert!(nan.dequantize().iter().all(|x| x.to_bits() == 0x7FC0_0000)); // zeros too
    /// ```
    pub fn dequantize(&self) -> Vec<f32> {
        let mut out = vec![0.0; self.rows * self.cols];
        self.dequantize_into(ViewMut::new(&mut out, self.rows, self.cols));
        out
    }

    /// Writes the values to `out`, as `f32`, `f64` or, with the feature `half`, `f16` or `bf16`: those
    /// of [`dequantize`](Self::dequantize), rounded to nearest even where the type is narrower.
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor};
    /// use exmy::slice::ViewMut;
    ///
    /// // 3 and 0.5, times 2^127.
    /// let parts = (vec![0x15], vec![254]);
    /// let (format, axis) = (BlockFormat::MXFP4, Axis::Cols);
    /// let tensor = BlockTensor::from_parts(format, axis, (1, 2), parts.0, parts.1, None).unwrap();
    /// let mut out = [0.0_f64; 2];
    /// tensor.dequantize_into(ViewMut::new(&mut out, 1, 2));
    /// // Products are those of f32, in which 3 * 2^127 is too large, whatever the type of the result.
    /// assert_eq!(out, [f64::INFINITY, 2.0_f64.powi(126)]);
    /// ```
    ///
    /// # Panics
    /// If `out` has another shape.
    #[track_caller]
    pub fn dequantize_into<T: Real>(&self, out: ViewMut<'_, T>) {
        let (shape, place) = ((self.rows, self.cols), (out.rows(), out.cols()));
        assert_eq!(shape, place, "a tensor and the place for its values have different shapes");
        fast::dequantize(self, out);
    }
}

/// The lowest `count` bits, `count` at most 32.
fn low_bits(count: u32) -> u32 {
    u32::MAX.checked_shr(32 - count).unwrap_or(0)
}

/// A stored scale: up to four bytes, low ones first.
fn scale_code(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |code, byte| code << 8 | u32::from(*byte))
}
