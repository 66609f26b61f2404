//! Why parts that came from elsewhere are no tensor of blocks.

use core::fmt;

use crate::block::{BlockFormat, BlockFormatError};

/// Why codes, scales and a shape do not make a [`BlockTensor`](super::BlockTensor).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum PartsError {
    /// The parts of the format do not go together.
    Format(BlockFormatError),
    /// Codes of another size than the elements take.
    Codes {
        /// Rows and columns of the matrix.
        shape: (usize, usize),
        /// Bits of a code.
        width: u32,
        /// Bytes that the codes take; `usize::MAX` if that is more than memory can hold.
        needed: usize,
        /// Bytes there are.
        found: usize,
    },
    /// Scales of another size than the blocks need.
    Scales {
        /// Rows and columns of blocks.
        blocks: (usize, usize),
        /// Bytes of a scale.
        size: usize,
        /// Bytes that the scales take; `usize::MAX` if that is more than memory can hold.
        needed: usize,
        /// Bytes there are.
        found: usize,
    },
    /// A scale with bits that its format does not have.
    StrayBits {
        /// Which block's, row-major over blocks.
        block: usize,
        /// The stored scale.
        bits: u32,
        /// The block format.
        format: BlockFormat,
    },
    /// The format has a tensor scale and none was given, or the other way round.
    TensorScale {
        /// The block format.
        format: BlockFormat,
    },
    /// A tensor scale that is NaN, infinite or negative.
    TensorScaleValue {
        /// The block format.
        format: BlockFormat,
        /// The scale.
        scale: f32,
    },
}

impl fmt::Display for PartsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(error) => error.fmt(f),
            Self::Codes { shape: (rows, cols), width, needed, found } => write!(
                f,
                "a {rows} x {cols} matrix of {width}-bit codes takes {needed} bytes, found {found}"
            ),
            Self::Scales { blocks: (down, right), size, needed, found } => write!(
                f,
                "{down} x {right} blocks have as many scales of {size} bytes, {needed} bytes in all, \
                 found {found}"
            ),
            Self::StrayBits { block, bits, format } => write!(
                f,
                "the scale of block {block} is {bits:#x}, more than the {} bits of {}",
                format.scale.bits(),
                format.scale
            ),
            Self::TensorScale { format } if format.tensor_scale => {
                write!(f, "{format} has a scale of the tensor, and none was given")
            }
            Self::TensorScale { format } => {
                write!(f, "{format} has no scale of the tensor, but one was given")
            }
            Self::TensorScaleValue { format, scale } => write!(
                f,
                "the scale of the tensor in {format} is a finite number from 0 on, found {scale}"
            ),
        }
    }
}

impl core::error::Error for PartsError {}

impl From<BlockFormatError> for PartsError {
    fn from(error: BlockFormatError) -> Self {
        Self::Format(error)
    }
}
