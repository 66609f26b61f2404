//! Block formats: elements of one format in groups that share a scale of another.
//!
//! A [`BlockFormat`] is an element format, a scale format, the [`Shape`] of a block, the
//! [`ScaleRule`] and whether there is one more scale for the whole tensor. MX (OCP MX 1.0) and
//! NVFP4 (arXiv 2509.25149) are constants of it. [`PlainBlocks`] is the definition of a matrix in such
//! a format, element by element, with one number a code. A [`BlockTensor`] is the same matrix as it is
//! stored, packed codes and scales, and is made and read by fast passes whose bits are the
//! definition's. [`scale`] has the rules by which a block finds its scale, [`hadamard`] the rotations before.
//! [`operations`] has arithmetic on single blocks, as P3109 defines it.
//! [`Quantizer`](crate::quantizer::Quantizer) computes the values alone, without codes.
//!
//! A matrix that enters a product is summed along one of its axes, the *reduction axis*, and shapes
//! are relative to it: `32` is 32 elements that meet one another in a sum. At a ragged edge a
//! block is smaller; padding with zeros would give the same.

pub(crate) mod big;
mod catalog;
mod element;
mod elements;
pub(crate) mod fast;
pub mod hadamard;
mod kernel;
mod measure;
mod name;
pub mod operations;
mod plain;
pub mod scale;
#[cfg(feature = "serde")]
mod serde;
mod statistics;
mod tensor;

pub use catalog::NAMED;
pub use elements::Elements;
pub(crate) use elements::UNUSED;
pub use name::ParseBlockFormatError;
pub use plain::PlainBlocks;
pub use statistics::Statistics;
pub use tensor::{BlockTensor, PartsError};

pub use crate::block::scale::BlockProfile;

pub(crate) use element::{decode_element, encode_element};
pub(crate) use name::{Written, names, with_rule};

use core::fmt;

use crate::block::scale::ScaleRule;
use crate::format::{Format, Sign};

/// Which elements share a scale. The reduction axis is the one a product sums along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// That many consecutive elements along the reduction axis. Text: `32`.
    Along(u32),
    /// That many along the other axis. Text: `32x1`.
    Across(u32),
    /// First across, then along the reduction axis. Text: `16x16`.
    Tile(u32, u32),
    /// The whole reduction axis. Text: `row`.
    Row,
    /// The whole matrix. Text: `tensor`.
    Tensor,
}

impl Shape {
    /// Elements of a block (across, along) the reduction axis, of a matrix of the given size.
    fn sides(self, across: usize, along: usize) -> (usize, usize) {
        match self {
            Self::Along(n) => (1, n as usize),
            Self::Across(n) => (n as usize, 1),
            Self::Tile(m, n) => (m as usize, n as usize),
            Self::Row => (1, along.max(1)),
            Self::Tensor => (across.max(1), along.max(1)),
        }
    }
}

/// The axis a product sums along: a property of the product, not of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// The sum runs over the columns: along a row, whose elements are adjacent in row-major order.
    Cols,
    /// The sum runs over the rows: along a column.
    Rows,
}

impl Axis {
    /// Rows and columns of a block of `shape` in a matrix of `rows` x `cols`, none of them 0.
    pub(crate) fn block(self, shape: Shape, rows: usize, cols: usize) -> (usize, usize) {
        match self {
            Self::Cols => shape.sides(rows, cols),
            Self::Rows => {
                let (across, along) = shape.sides(cols, rows);
                (along, across)
            }
        }
    }
}

/// Element format, scale format, block shape, scale rule, and whether the tensor has a scale too.
///
/// ```
/// use exmy::block::BlockFormat;
///
/// let format: BlockFormat = "e4m3/32:e8m0".parse()?;
/// assert_eq!(format, BlockFormat::MXFP8_E4M3);
/// assert_eq!(format.to_string(), "mxfp8-e4m3");
/// assert_eq!(format.bits_per_element(), 8.25);
/// # Ok::<(), exmy::block::ParseBlockFormatError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockFormat {
    /// The format of the elements.
    pub element: Format,
    /// The format of the blocks' scales.
    pub scale: Format,
    /// Which elements share a scale.
    pub shape: Shape,
    /// How the scale is found.
    pub rule: ScaleRule,
    /// Whether there is an `f32` scale for the whole tensor.
    pub tensor_scale: bool,
    /// Whose special cases and orders of operations.
    pub profile: BlockProfile,
}

impl BlockFormat {
    /// Storage bits an element, its share of a block's scale included: packed elements, scales in
    /// whole bytes (E4M3 without sign has 7 bits and is stored in 8). The tensor scale and ragged
    /// edges do not count, nor do scales of blocks as large as the matrix or its rows.
    ///
    /// ```
    /// use exmy::block::BlockFormat;
    ///
    /// // A scale of 7 bits takes a byte; one scale for a whole row or tensor does not count.
    /// assert_eq!(BlockFormat::NVFP4.bits_per_element(), 4.5);
    /// assert_eq!("e4m3/row:f32".parse::<BlockFormat>()?.bits_per_element(), 8.0);
    /// # Ok::<(), exmy::block::ParseBlockFormatError>(())
    /// ```
    pub fn bits_per_element(self) -> f64 {
        let elements = match self.shape {
            Shape::Along(n) | Shape::Across(n) => f64::from(n),
            Shape::Tile(m, n) => f64::from(m) * f64::from(n),
            Shape::Row | Shape::Tensor => f64::INFINITY,
        };
        f64::from(self.element.bits()) + f64::from(self.scale.storage_bits()) / elements
    }

    /// Whether the parts go together. Parsing checks it; functions that quantize panic without.
    ///
    /// ```
    /// use exmy::block::{BlockFormat, BlockFormatError};
    /// use exmy::format::Format;
    ///
    /// // A power rule says NaN by its scale, which E2M1 cannot.
    /// let format = BlockFormat { scale: Format::E2M1, ..BlockFormat::MXFP4 };
    /// assert!(matches!(format.check(), Err(BlockFormatError::PowerNeedsNan { .. })));
    /// assert!(BlockFormat { tensor_scale: true, ..BlockFormat::MXFP4 }.check().is_err());
    /// ```
    ///
    /// # Errors
    /// If they do not; the error says which part and what would do.
    pub const fn check(self) -> Result<Self, BlockFormatError> {
        let Self { element, scale, shape, rule, tensor_scale, profile } = self;
        if element.bits() > 16 || !element.has_zero() || !element.is_exact_in_f32() {
            return Err(BlockFormatError::Element(element));
        }
        if !scale.is_exact_in_f32() || scale.bits() > 32 {
            return Err(BlockFormatError::Scale(scale));
        }
        if matches!(
            shape,
            Shape::Along(0) | Shape::Across(0) | Shape::Tile(0, _) | Shape::Tile(_, 0)
        ) {
            return Err(BlockFormatError::EmptyBlock);
        }
        if rule.is_power() && !scale.has_nan() {
            return Err(BlockFormatError::PowerNeedsNan { rule, scale });
        }
        if tensor_scale && (rule.is_power() || matches!(rule, ScaleRule::MaxAbs)) {
            return Err(BlockFormatError::NoTensorScale(rule));
        }
        let e2m1 = element.bits() == 4 && element.exp_bits() == 2 && element.max_code() == 7;
        if matches!(rule, ScaleRule::FourOverSix(_)) && !e2m1 {
            return Err(BlockFormatError::NotFourOverSix(element));
        }
        if !profile.has(rule) {
            return Err(BlockFormatError::NoSuchRule { profile, rule });
        }
        // The libraries have no other scales of powers of two than MX's, of 8 bits or fewer.
        let powers_alone =
            matches!(scale.sign(), Sign::Unsigned) && scale.man_bits() == 0 && !scale.has_zero();
        if rule.is_power() && !matches!(profile, BlockProfile::Ocp) && !powers_alone {
            return Err(BlockFormatError::NotItsScale { profile, rule, scale });
        }
        Ok(self)
    }

    #[track_caller]
    pub(crate) fn checked(self) -> Self {
        match self.check() {
            Ok(format) => format,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Why the parts of a block format do not go together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum BlockFormatError {
    /// An element format without zero, wider than 16 bits or beyond `f32`.
    Element(Format),
    /// A scale format that is not within `f32`.
    Scale(Format),
    /// A side of the block is 0.
    EmptyBlock,
    /// A rule of powers of two with a scale format without NaN.
    PowerNeedsNan {
        /// The rule.
        rule: ScaleRule,
        /// The scale format.
        scale: Format,
    },
    /// A tensor scale with a rule that has none.
    NoTensorScale(ScaleRule),
    /// The rule `4over6` with other elements than E2M1.
    NotFourOverSix(Format),
    /// A rule that the source of the profile does not have.
    NoSuchRule {
        /// The profile.
        profile: BlockProfile,
        /// The rule.
        rule: ScaleRule,
    },
    /// A scale format that the source of the profile does not have under this rule.
    NotItsScale {
        /// The profile.
        profile: BlockProfile,
        /// The rule.
        rule: ScaleRule,
        /// The scale format.
        scale: Format,
    },
}

impl fmt::Display for BlockFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Element(format) => write!(
                f,
                "{format} elements: a block's element format has a zero, at most 16 bits, and only \
                 values that f32 has"
            ),
            Self::Scale(format) => {
                write!(f, "{format} scales: a scale format has only values that f32 has")
            }
            Self::EmptyBlock => f.write_str("a block of 0 elements: each side is at least 1"),
            Self::PowerNeedsNan { rule, scale } => write!(
                f,
                "{scale} scales by the rule `{rule}`: a block with a NaN needs a scale that is NaN, \
                 such as e8m0 has; the rules `nearest` and `max-abs` do without"
            ),
            Self::NoTensorScale(rule) => write!(
                f,
                "a tensor scale with the rule `{rule}`: only `nearest` and `4over6` have one"
            ),
            Self::NotFourOverSix(element) => write!(
                f,
                "{element} elements by the rule `4over6`: it chooses between 4 and 6 of e2m1"
            ),
            Self::NoSuchRule { profile, rule } => {
                write!(f, "the rule `{rule}` in the profile `{profile}`: it has")?;
                for (i, rule) in profile.rules().iter().enumerate() {
                    write!(f, "{}`{rule}`", if i == 0 { " " } else { ", " })?;
                }
                Ok(())
            }
            Self::NotItsScale { profile, rule, scale } => write!(
                f,
                "{scale} scales by the rule `{rule}` in the profile `{profile}`: its powers of two \
                 are e8m0; other scale formats take the profile `ocp`"
            ),
        }
    }
}

impl core::error::Error for BlockFormatError {}
