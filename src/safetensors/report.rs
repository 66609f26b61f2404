//! How far the work on a file is, and what became of its tensors.

use std::fmt;
use std::ops::ControlFlow;

use super::Dtype;
use crate::block::Statistics;
use crate::quantizer::Quantizer;

/// How far the work on a file is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The tensor that is being read, or was done last.
    pub tensor: &'a str,
    /// Bytes of the input's tensors that were read.
    pub done: u64,
    /// Bytes of all of them.
    pub total: u64,
}

/// Called after every piece that was read; [`ControlFlow::Break`] ends the work, and no file appears.
pub type Watch<'a> = dyn FnMut(&Progress<'_>) -> ControlFlow<()> + 'a;

/// What became of one tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorReport {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// The type of its elements in the input.
    pub dtype: Dtype,
    /// What was done with it.
    pub outcome: TensorOutcome,
}

/// What was done with a tensor.
#[derive(Clone, Debug, PartialEq)]
pub enum TensorOutcome {
    /// It was copied, byte for byte.
    Copied(CopyReason),
    /// It was quantized.
    Quantized {
        /// What that did to its numbers.
        statistics: Statistics,
        /// Bits of its codes and scales; where values were written, those that they would take.
        bits: u64,
        /// Values that are finite in the format and infinite in the type that was written, as
        /// those beyond 65 504 are in `F16`. They are among [`lost`](Statistics::lost); the
        /// other figures are those of the format.
        overflowed: u64,
    },
    /// Its values were written.
    Decoded {
        /// How the codes that were read were made. After a rotation the values are those of the
        /// rotated tensor.
        quantizer: Quantizer,
        /// Values that are finite and became infinite in the type that was written.
        overflowed: u64,
    },
}

/// Why a tensor is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CopyReason {
    /// It was quantized before, or is part of one that was.
    Quantized,
    /// Its elements are no floating-point numbers of 16 bits or more.
    Type(Dtype),
    /// It has fewer than two axes, and no pattern names it.
    FewAxes,
    /// No pattern names it.
    NotIncluded,
    /// A pattern excludes it.
    Excluded,
    /// It has no elements.
    Empty,
    /// It is no quantized tensor whose values could be written.
    Values,
}

impl fmt::Display for CopyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantized => f.write_str("quantized before"),
            Self::Type(dtype) => write!(f, "{dtype}"),
            Self::FewAxes => f.write_str("fewer than two axes"),
            Self::NotIncluded => f.write_str("not included"),
            Self::Excluded => f.write_str("excluded"),
            Self::Empty => f.write_str("without elements"),
            Self::Values => f.write_str("not quantized"),
        }
    }
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileReport {
    /// Its tensors, in the order of their bytes.
    pub rows: Vec<TensorReport>,
    /// Bytes of the input's tensors.
    pub bytes_before: u64,
    /// Bytes of the output's tensors.
    pub bytes_after: u64,
}

impl FileReport {
    /// The figures of all quantized tensors together, and their bits.
    ///
    /// ```
    /// use exmy::safetensors::FileReport;
    ///
    /// let report = FileReport { rows: vec![], bytes_before: 0, bytes_after: 0 };
    /// let (total, bits) = report.total(); // a file without quantized tensors
    /// assert_eq!((total.count, bits), (0, 0));
    /// ```
    pub fn total(&self) -> (Statistics, u64) {
        let mut total = (Statistics::default(), 0);
        for row in &self.rows {
            if let TensorOutcome::Quantized { statistics, bits, .. } = &row.outcome {
                total = (total.0.and(statistics), total.1 + bits);
            }
        }
        total
    }
}
