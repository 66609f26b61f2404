//! Products that cannot be formed, and what would do.

use alloc::boxed::Box;
use core::fmt;

use super::accumulation::Accumulation;
use super::unit::UnitError;
use crate::block::{Axis, BlockFormat};
use crate::format::Format;

/// Rows and columns.
type Shape = (usize, usize);

/// One of the two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// A: sums run along its columns.
    Left,
    /// B: sums run along its rows.
    Right,
}

impl Side {
    /// The axis along which the sums of a product read this operand.
    pub const fn axis(self) -> Axis {
        match self {
            Self::Left => Axis::Cols,
            Self::Right => Axis::Rows,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Left => "left",
            Self::Right => "right",
        })
    }
}

/// Why there is no product. Every message names both shapes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GemmError {
    /// Rows and columns of A.
    pub a: (usize, usize),
    /// Rows and columns of B.
    pub b: (usize, usize),
    /// Which product of a batch.
    pub batch: Option<usize>,
    /// What is wrong.
    pub why: Why,
}

/// What is wrong about a product.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Why {
    /// A has not as many columns as B has rows.
    Inner,
    /// C has another shape than the product.
    Output(Shape),
    /// The product has more elements than memory can hold.
    Large,
    /// An operand's blocks do not run along the sum.
    Blocks {
        /// Which operand.
        side: Side,
        /// Its format.
        format: BlockFormat,
        /// Rows and columns of its blocks.
        block: Shape,
        /// The axis along which its tensor has to be quantized.
        needed: Axis,
    },
    /// The accumulation does not take an operand's format.
    Format {
        /// Which operand.
        side: Side,
        /// The accumulation.
        accumulation: Box<Accumulation>,
        /// What it takes.
        takes: &'static str,
    },
    /// The accumulation takes other lengths of the sum.
    Length {
        /// The accumulation.
        accumulation: Box<Accumulation>,
        /// What the length must be a multiple of.
        multiple: usize,
    },
    /// The matrix unit does not take the operands.
    Unit(Box<UnitError>),
    /// An operand of [`fast::multiply`](super::fast::multiply) was packed for the other side.
    Packed(Side),
    /// Stochastic rounding without random words.
    Random,
    /// A factor of C where there is no C.
    Beta(f32),
    /// Results of a format that is not within binary32, as binary32.
    Wide(Format),
    /// Results of a format as codes of too few bits.
    Codes {
        /// The format.
        format: Format,
        /// Bits of the integers.
        width: u32,
    },
    /// A result is infinite or NaN, and the policy is not to have any.
    NonFinite {
        /// Where.
        at: Shape,
        /// How many there are.
        count: u64,
    },
    /// Batches of different lengths; how many operands there are left and right. The shapes are those
    /// of the first ones.
    Batch(usize, usize),
}

impl GemmError {
    pub(super) fn of(a: Shape, b: Shape, why: Why) -> Self {
        Self { a, b, batch: None, why }
    }
}

impl fmt::Display for GemmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { a, b, batch, why } = self;
        if let Some(batch) = batch {
            write!(f, "product {batch} of the batch: ")?;
        }
        if let Why::Batch(left, right) = why {
            return write!(
                f,
                "{left} left operands, of {} x {}, and {right} right ones, of {} x {}: a batch has as \
                 many of both, or one of either for all",
                a.0, a.1, b.0, b.1
            );
        }
        write!(f, "({} x {}) times ({} x {}): ", a.0, a.1, b.0, b.1)?;
        match why {
            Why::Inner => {
                write!(
                    f,
                    "the left operand has {} columns and the right one {} rows, which must be as \
                     many",
                    a.1, b.0
                )?;
                match (a.1 == b.1, a.0 == b.0) {
                    (true, _) => f.write_str("; a right operand stored N x K enters transposed"),
                    (_, true) => f.write_str("; a left operand stored K x M enters transposed"),
                    _ => Ok(()),
                }
            }
            Why::Output(c) => write!(
                f,
                "the product has {} rows and {} columns, C has {} and {}",
                a.0, b.1, c.0, c.1
            ),
            Why::Large => write!(
                f,
                "the product would have {} x {} results, more than fit a memory: multiply some rows at \
                 a time",
                a.0, b.1
            ),
            Why::Blocks { side, format, block, needed } => {
                let along = if *side == Side::Left { "columns" } else { "rows" };
                write!(
                    f,
                    "the {side} operand is {format} in blocks of {} x {}, but the sum runs along \
                     its {along}, where a scale must not change within a block of the other axis: \
                     quantize it with Axis::{needed:?}, or anew with requantize(Axis::{needed:?}, ..)",
                    block.0, block.1
                )
            }
            Why::Format { side, accumulation, takes } => {
                write!(f, "{accumulation} does not take the {side} operand; it takes {takes}")
            }
            Why::Length { accumulation, multiple } => write!(
                f,
                "{accumulation} sums {multiple} products at a time, and {} are no multiple: pad both \
                 operands with zeros, or use `exact`",
                a.1
            ),
            Why::Unit(error) => error.fmt(f),
            Why::Packed(side) => write!(
                f,
                "the {side} operand is packed for the other side: pack it by Packed::{side}"
            ),
            Why::Random => f.write_str("stochastic rounding needs random words, or another mode"),
            Why::Beta(beta) => write!(
                f,
                "beta is {beta}, but there is no C to be multiplied by it: gemm_into reads the one \
                 it writes"
            ),
            Why::Wide(format) => write!(
                f,
                "results in {format} are not all binary32 numbers: gemm_codes returns them as codes"
            ),
            Why::Codes { format, width } => write!(
                f,
                "results in {format} have {} bits, their codes here {width}: take a wider integer",
                format.bits()
            ),
            Why::NonFinite { at, count } => write!(
                f,
                "{count} of the results are infinite or NaN, the first at ({}, {}): \
                 NonFinite::Keep keeps them, a smaller alpha or a saturating output avoids overflow",
                at.0, at.1
            ),
            Why::Batch(..) => Ok(()),
        }
    }
}

impl core::error::Error for GemmError {}
