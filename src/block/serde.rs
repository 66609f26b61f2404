//! Block formats as their text, and quantized matrices as their parts.
//!
//! What is read is checked as [`BlockTensor::from_parts`] checks it: sizes, the bits of codes and
//! scales, the scale of the tensor. So a damaged or hostile file is an error, and never a tensor that
//! fails later. A tensor whose own scale is NaN or infinite, quantized from such numbers, is no such
//! tensor and is not written.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::scale::is_largest;
use super::{Axis, BlockFormat, BlockTensor, PartsError, PlainBlocks};

crate::text::as_text!(BlockFormat: "a block format");

/// A matrix with packed codes.
#[derive(Serialize, Deserialize)]
#[serde(rename = "BlockTensor", deny_unknown_fields)]
struct Packed<'a> {
    format: BlockFormat,
    axis: Sum,
    shape: (usize, usize),
    codes: Cow<'a, [u8]>,
    scales: Cow<'a, [u8]>,
    tensor_scale: Option<f32>,
}

/// A matrix with a number a code.
#[derive(Serialize, Deserialize)]
#[serde(rename = "PlainBlocks", deny_unknown_fields)]
struct Plain<'a> {
    format: BlockFormat,
    shape: (usize, usize),
    block: (usize, usize),
    codes: Cow<'a, [u16]>,
    scales: Cow<'a, [u32]>,
    tensor_scale: Option<f32>,
}

/// The axis that a product sums along.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sum {
    Rows,
    Cols,
}

impl Serialize for BlockTensor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        check_scale(self.format(), self.tensor_scale()).map_err(S::Error::custom)?;
        let packed = Packed {
            format: self.format(),
            axis: if self.axis() == Axis::Rows { Sum::Rows } else { Sum::Cols },
            shape: (self.rows(), self.cols()),
            codes: self.packed_codes().into(),
            scales: self.packed_scales().into(),
            tensor_scale: self.tensor_scale(),
        };
        packed.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for BlockTensor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Packed { format, axis, shape, codes, scales, tensor_scale } =
            Packed::deserialize(deserializer)?;
        let axis = if matches!(axis, Sum::Rows) { Axis::Rows } else { Axis::Cols };
        let (codes, scales) = (codes.into_owned(), scales.into_owned());
        Self::from_parts(format, axis, shape, codes, scales, tensor_scale).map_err(D::Error::custom)
    }
}

impl Serialize for PlainBlocks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        check(self).map_err(S::Error::custom)?;
        let plain = Plain {
            format: self.format,
            shape: self.shape,
            block: self.block,
            codes: self.codes.as_slice().into(),
            scales: self.scales.as_slice().into(),
            tensor_scale: self.tensor_scale,
        };
        plain.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PlainBlocks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Plain { format, shape, block, codes, scales, tensor_scale } =
            Plain::deserialize(deserializer)?;
        let (codes, scales): (Vec<u16>, Vec<u32>) = (codes.into_owned(), scales.into_owned());
        let blocks = Self { format, shape, block, codes, scales, tensor_scale };
        check(&blocks).map_err(D::Error::custom)?;
        Ok(blocks)
    }
}

/// Why parts are no matrix of blocks.
enum Wrong {
    Parts(PartsError),
    /// Sides of blocks that the format does not have along either axis.
    Block {
        format: BlockFormat,
        block: (usize, usize),
    },
    /// More or fewer codes or scales than elements or blocks.
    Count {
        what: &'static str,
        needed: Option<usize>,
        found: usize,
    },
    /// A code or scale with bits beyond its format's width.
    Bits {
        what: &'static str,
        at: usize,
        code: u32,
        width: u32,
    },
}

impl From<PartsError> for Wrong {
    fn from(error: PartsError) -> Self {
        Self::Parts(error)
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parts(error) => error.fmt(f),
            Self::Block { format, block: (down, across) } => {
                write!(f, "{format} has no blocks of {down} x {across} in a matrix of this shape")
            }
            Self::Count { what, needed: Some(needed), found } => {
                write!(f, "{needed} {what} are needed, found {found}")
            }
            Self::Count { what, needed: None, found } => {
                write!(f, "the shape needs more {what} than memory can hold, found {found}")
            }
            Self::Bits { what, at, code, width } => {
                write!(f, "{what} {at} is {code:#x}, more than {width} bits")
            }
        }
    }
}

fn check_scale(format: BlockFormat, tensor_scale: Option<f32>) -> Result<(), PartsError> {
    match tensor_scale {
        found if found.is_some() != format.tensor_scale => Err(PartsError::TensorScale { format }),
        Some(scale) if !is_largest(scale) || scale.is_sign_negative() => {
            Err(PartsError::TensorScaleValue { format, scale })
        }
        _ => Ok(()),
    }
}

/// The public fields of a plain matrix may hold anything.
fn check(blocks: &PlainBlocks) -> Result<(), Wrong> {
    let PlainBlocks { format, shape: (rows, cols), block, .. } = *blocks;
    let format = format.check().map_err(PartsError::from)?;
    check_scale(format, blocks.tensor_scale)?;
    if ![Axis::Rows, Axis::Cols].iter().any(|axis| axis.block(format.shape, rows, cols) == block) {
        return Err(Wrong::Block { format, block });
    }
    let empty = rows == 0 || cols == 0;
    let (down, right) =
        if empty { (0, 0) } else { (rows.div_ceil(block.0), cols.div_ceil(block.1)) };
    for (what, needed, found) in [
        ("codes", rows.checked_mul(cols), blocks.codes.len()),
        ("scales", down.checked_mul(right), blocks.scales.len()),
    ] {
        if needed != Some(found) {
            return Err(Wrong::Count { what, needed, found });
        }
    }
    let stray = |what, width: u32, codes: &mut dyn Iterator<Item = u32>| {
        let found = codes.enumerate().find(|(_, code)| u64::from(*code) >> width != 0);
        found.map_or(Ok(()), |(at, code)| Err(Wrong::Bits { what, at, code, width }))
    };
    stray("code", format.element.bits(), &mut blocks.codes.iter().map(|code| u32::from(*code)))?;
    stray("scale", format.scale.bits(), &mut blocks.scales.iter().copied())
}
