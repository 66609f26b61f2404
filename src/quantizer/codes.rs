//! What a quantizer stores: packed codes and scales, in one type for blocks and plain formats.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use super::Cast;
use super::{Axis, Quantizer, Target, image};
use crate::block::fast::{CHUNK, Own, for_each};
use crate::block::hadamard::HadamardError;
use crate::block::scale::is_largest;
use crate::block::{BlockFormat, BlockFormatError, BlockTensor, Shape, Statistics};
use crate::format::Format;
use crate::minifloat::Bits;
use crate::pack;
use crate::random::Philox;
use crate::slice::{Converter, View, ViewMut, view};

/// The E8M0 code of 1.
const ONE: u8 = 127;

/// Why a [`Quantizer`] has no codes for a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum QuantizeError {
    /// The target is `none`: values pass, and have no codes.
    NoCodes,
    /// A plain format cannot be the elements of blocks, or the parts of a block format do not go
    /// together.
    Format(BlockFormatError),
    /// Groups of the rotation do not fill the axis.
    Size(HadamardError),
    /// Block scales of the caller's own for a plain format, which has none, or for one with a scale
    /// of the tensor as well.
    NoOwnScales(Target),
    /// A largest magnitude of the caller's own for a format without a scale of the tensor.
    NoTensorScale(Target),
    /// A largest magnitude that is NaN, negative or infinite.
    Amax(f32),
    /// A stochastic mode without random words.
    NoRandom,
    /// A matrix larger than any memory.
    Memory {
        /// Its rows and columns.
        shape: (usize, usize),
    },
}

impl fmt::Display for QuantizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCodes => f.write_str(
                "the target `none` has no codes: a format such as e4m3 has, or a block format such \
                 as mxfp4",
            ),
            Self::Format(error) => error.fmt(f),
            Self::Size(error) => error.fmt(f),
            Self::NoOwnScales(target) => write!(
                f,
                "block scales of the caller's own for {target}: only block formats without tensor \
                 scale take them, such as e2m1/16:e4m3"
            ),
            Self::NoTensorScale(target) => write!(
                f,
                "a largest magnitude of the caller's own for {target}: only block formats with a scale \
                 of the tensor take one, such as nvfp4"
            ),
            Self::Amax(amax) => {
                write!(f, "a largest magnitude is finite and not negative, found {amax}")
            }
            Self::NoRandom => f.write_str("stochastic rounding needs random words"),
            Self::Memory { shape: (rows, cols) } => {
                write!(f, "a matrix of {rows} x {cols} numbers is larger than any memory")
            }
        }
    }
}

impl core::error::Error for QuantizeError {}

impl From<BlockFormatError> for QuantizeError {
    fn from(error: BlockFormatError) -> Self {
        Self::Format(error)
    }
}

impl From<HadamardError> for QuantizeError {
    fn from(error: HadamardError) -> Self {
        Self::Size(error)
    }
}

impl Quantizer {
    /// The codes and scales whose values [`image_into`](Self::image_into) writes.
    ///
    /// A plain format gives a tensor of one block with the scale 1, `e4m3/tensor:e8m0`, whatever
    /// the rule of that format would find: its codes are those of a [`Converter`]. Cast and rotation
    /// come first, as for the image, and are not undone by
    /// [`dequantize`](BlockTensor::dequantize).
    ///
    /// # Errors
    /// If the target is `none`, a mode is stochastic and `random` is `None`, or a plain format is wider than
    /// 16 bits or has no zero. If the parts of a block format do not go together, or groups of the rotation
    /// do not fill the axis. If the matrix is larger than any memory (a view whose strides are 0 can be).
    ///
    /// # Panics
    /// If a mode is stochastic with a bit count outside 1..=32.
    ///
    /// ```
    /// use exmy::quantizer::{Axis, QuantizeError, Quantizer};
    /// use exmy::slice::View;
    ///
    /// let x = View::new(&[0.1_f32, 0.3, -3.0, 500.0], 1, 4);
    /// let quantize = |text: &str| {
    ///     text.parse::<Quantizer>().unwrap().quantize(x, Axis::Cols, None)
    /// };
    /// let blocks = quantize("mxfp4").unwrap();
    /// assert_eq!(blocks.packed_scales(), [133]); // 64: all but 500 are less than half a unit
    /// assert_eq!(blocks.dequantize(), [0.0, 0.0, -0.0, 384.0]);
    ///
    /// let plain = quantize("e2m1").unwrap();
    /// assert_eq!(plain.packed_codes(), [0x10, 0x7D]); // 0, 1, D, 7: 0, 0.5, -3, 6
    /// assert_eq!((plain.packed_scales(), plain.dequantize()[3]), (&[127][..], 6.0));
    /// assert!(quantize("f32").unwrap_err().to_string().contains("at most 16 bits"));
    /// assert_eq!(quantize("mxfp4@sr8"), Err(QuantizeError::NoRandom));
    /// ```
    pub fn quantize(
        &self,
        x: View<'_, f32>,
        axis: Axis,
        random: impl Into<Option<Philox>>,
    ) -> Result<BlockTensor, QuantizeError> {
        self.stored(x, axis, random.into(), Own::Nothing, false).map(|(tensor, _)| tensor)
    }

    /// As [`quantize`](Self::quantize), with what became of the numbers that reach the target, if
    /// that is found on the way.
    pub(crate) fn quantize_with_statistics(
        &self,
        x: View<'_, f32>,
        axis: Axis,
        random: Philox,
    ) -> Result<(BlockTensor, Option<Statistics>), QuantizeError> {
        self.stored(x, axis, Some(random), Own::Nothing, true)
    }

    /// As [`quantize`](Self::quantize), with block scales of the caller's own, as
    /// [`BlockTensor::quantize_with`] finds them.
    ///
    /// # Errors
    /// As there, and if the target is a plain format or has a tensor scale.
    ///
    /// # Panics
    /// As there.
    ///
    /// ```
    /// use exmy::quantizer::{Axis, Quantizer};
    /// use exmy::slice::View;
    ///
    /// let x = View::new(&[1.0_f32, 2.0, 30.0], 1, 3);
    /// let quantize = |text: &str| {
    ///     let quantizer = text.parse::<Quantizer>().unwrap();
    ///     quantizer.quantize_with(x, Axis::Cols, None, |block| block[0])
    /// };
    /// let tensor = quantize("e2m1/2:bf16").unwrap();
    /// assert_eq!(tensor.dequantize(), [1.0, 2.0, 30.0]); // scales 1 and 30
    /// assert!(quantize("nvfp4").is_err() && quantize("e2m1").is_err());
    /// ```
    pub fn quantize_with(
        &self,
        x: View<'_, f32>,
        axis: Axis,
        random: impl Into<Option<Philox>>,
        scale: impl Fn(&[f32]) -> f32 + Sync,
    ) -> Result<BlockTensor, QuantizeError> {
        match self.target {
            Target::Block(format) if !format.tensor_scale => {}
            target => return Err(QuantizeError::NoOwnScales(target)),
        }
        self.stored(x, axis, random.into(), Own::Scales(&scale), false).map(|(tensor, _)| tensor)
    }

    /// As [`quantize`](Self::quantize), with a tensor scale for a largest magnitude of the caller's own,
    /// of what reaches the target; see [`BlockTensor::quantize_with_amax`].
    ///
    /// # Errors
    /// As there, and if the target has no tensor scale or `amax` is NaN, negative or infinite.
    ///
    /// # Panics
    /// As there.
    ///
    /// ```
    /// use exmy::quantizer::{Axis, Quantizer};
    /// use exmy::slice::View;
    ///
    /// let x = View::new(&[1.0_f32, 2.0, 30.0], 1, 3);
    /// let quantize = |text: &str, amax| {
    ///     text.parse::<Quantizer>().unwrap().quantize_with_amax(x, Axis::Cols, None, amax)
    /// };
    /// let tensor = quantize("bf16>nvfp4", 2688.0)?; // 6 x 448, more than these numbers need
    /// assert_eq!(tensor.tensor_scale(), Some(1.0));
    /// assert_eq!(tensor.scales(), [0x4A]); // 5, and 5 x 6 is 30
    /// assert!(quantize("nvfp4", f32::NAN).is_err());
    /// assert!(quantize("mxfp4", 1.0).unwrap_err().to_string().contains("such as nvfp4"));
    /// # Ok::<(), exmy::quantizer::QuantizeError>(())
    /// ```
    pub fn quantize_with_amax(
        &self,
        x: View<'_, f32>,
        axis: Axis,
        random: impl Into<Option<Philox>>,
        amax: f32,
    ) -> Result<BlockTensor, QuantizeError> {
        match self.target {
            Target::Block(format) if format.tensor_scale => {}
            target => return Err(QuantizeError::NoTensorScale(target)),
        }
        if !is_largest(amax) {
            return Err(QuantizeError::Amax(amax));
        }
        self.stored(x, axis, random.into(), Own::Largest(amax), false).map(|(tensor, _)| tensor)
    }

    fn stored(
        &self,
        x: View<'_, f32>,
        axis: Axis,
        random: Option<Philox>,
        own: Own<'_>,
        with_statistics: bool,
    ) -> Result<(BlockTensor, Option<Statistics>), QuantizeError> {
        let random = self.words(random).ok_or(QuantizeError::NoRandom)?;
        let (rows, cols) = (x.rows(), x.cols());
        let Self { target, rounding, overflow, .. } = *self;
        let format = match target {
            Target::None => return Err(QuantizeError::NoCodes),
            Target::Format(format) => {
                BlockFormat { shape: Shape::Tensor, ..BlockFormat::mx(format) }.check()?
            }
            Target::Block(format) => format.check()?,
        };
        self.check_size(rows, cols, axis)?;
        if view::count((rows, cols)).is_none() {
            return Err(QuantizeError::Memory { shape: (rows, cols) });
        }
        let first = Self { target: Target::None, ..*self };
        let dense = x.col_stride() == 1 && (x.row_stride() == cols || rows <= 1);
        let is_block = matches!(target, Target::Block(_));
        let mut buffer = Vec::new();
        let x = if first.is_none() && (is_block || dense) {
            x
        } else {
            buffer.resize(rows * cols, 0.0);
            image::write(&first, x, axis, random, None, ViewMut::new(&mut buffer, rows, cols));
            View::new(&buffer, rows, cols)
        };
        if is_block {
            let by = (rounding, overflow, random).into();
            return Ok(BlockTensor::build((x, axis), format, by, own, with_statistics));
        }
        let cast = Cast { format: format.element, rounding, overflow };
        let codes = packed(&Converter::from(cast).with_random(random), &x.data()[..rows * cols]);
        let scales = vec![ONE; usize::from(rows * cols > 0)];
        match BlockTensor::from_parts(format, axis, (rows, cols), codes, scales, None) {
            Ok(tensor) => Ok((tensor, None)),
            Err(error) => unreachable!("codes of {format} that were just made: {error}"),
        }
    }
}

/// The packed codes of numbers.
fn packed(cast: &Converter, x: &[f32]) -> Vec<u8> {
    fn piece<C: Bits + pack::Code>(cast: &Converter, x: &[f32], format: Format, out: &mut [u8]) {
        let codes: Vec<C> = cast.encode(x);
        if let Err(error) = pack::pack_into(&codes, format.bits(), out) {
            unreachable!("codes of a format have its width: {error}");
        }
    }
    let format = cast.format();
    let width = format.bits() as usize;
    let mut bytes = vec![0; pack::packed_len(x.len(), format.bits()).unwrap_or(usize::MAX)];
    // CHUNK codes are whole bytes, whatever their width.
    let pieces = x.chunks(CHUNK).zip(bytes.chunks_mut(CHUNK / 8 * width)).enumerate();
    for_each(pieces, |(i, (x, out)): (usize, (&[f32], &mut [u8]))| {
        let cast = cast.starting_at((i * CHUNK) as u64);
        match width {
            8 => cast.encode_into(x, out),
            0..8 => piece::<u8>(&cast, x, format, out),
            _ => piece::<u16>(&cast, x, format, out),
        }
    });
    bytes
}
