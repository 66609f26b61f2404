//! Four over six: a block of E2M1 elements takes the better of two scales (arXiv 2512.02010).
//!
//! E2M1 has nothing between 4 and 6, so numbers near five sixths of `amax` are badly off when `amax`
//! becomes 6. Where it becomes 4, by a scale 3/2 as large, they are not, but everything else is
//! coarser. Both are tried and the smaller error wins; 6 wins ties.
//!
//! The order of operations is that of Transformer Engine (`quantize_4over6_nvfp4.cuh`); each line is
//! one binary32 operation a factor, left to right:
//!
//! ```text
//! base   = (amax of the block / 6) * s_enc            s_enc = (6 * bound) / amax of the tensor
//! scale6 = min(base, scale_max)                       to nearest even
//! scale4 = min(base * 1.5, scale_max)                 to nearest even
//! value  = ((code * scale) * amax of the tensor) / (6 * bound)
//! error  = sum of |value - x|, or of their squares, element by element; of tiles by 16 rows, each
//!          row first, then rows 0 and 8, 1 and 9 and so on, then halves of these
//! ```
//!
//! `bound` is 256 (so that 3/2 of it is still a scale) or 448. Without tensor scale `s_enc` is 1 and
//! `value = code * scale`. Tiles of fewer rows are summed as if rows of zeros followed, tiles of more
//! than 16 row after row. Rows run along the reduction axis.

use alloc::vec::Vec;
use core::array;

use super::nvfp4::{TensorFactors, at_most_max};

/// The sum that decides between the two scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockError {
    /// Of absolute errors ("MAE").
    Absolute,
    /// Of squared errors ("MSE").
    Squared,
}

/// The scale that the block with the tensor's largest element gets, if `amax` becomes 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// 256.
    B256,
    /// 448.
    B448,
}

impl Bound {
    /// The number.
    ///
    /// ```
    /// use exmy::block::scale::Bound;
    ///
    /// assert_eq!(1.5 * Bound::B256.value(), 384.0); // still an E4M3 scale
    /// assert_eq!(1.5 * Bound::B448.value(), 672.0); // cut to 448
    /// ```
    pub const fn value(self) -> f32 {
        match self {
            Self::B256 => 256.0,
            Self::B448 => 448.0,
        }
    }
}

/// A variant of four over six. Text: `4over6[-mse][-448]`; `4over6-mae` and `4over6-256` read too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FourOverSix {
    /// What is compared.
    pub error: BlockError,
    /// The bound of the scales.
    pub bound: Bound,
}

impl FourOverSix {
    /// Absolute errors, bound 256.
    pub const DEFAULT: Self = Self { error: BlockError::Absolute, bound: Bound::B256 };
}

impl TensorFactors {
    /// The two scales of a block, not yet rounded: for 6 and for 4.
    #[inline(always)]
    pub(crate) fn candidates(&self, amax: f32) -> [f32; 2] {
        let base = amax / self.largest * self.encode;
        [at_most_max(base), at_most_max(base * 1.5)]
    }
}

impl FourOverSix {
    /// What the values of codes times their scale are multiplied and divided by, and whether errors
    /// are squared. Without tensor scale that is 1, which changes nothing.
    pub(crate) fn terms(self, factors: &TensorFactors) -> (f32, f32, bool) {
        let squared = self.error == BlockError::Squared;
        match factors.amax {
            Some(amax) => (amax, 6.0 * self.bound.value(), squared),
            None => (1.0, 1.0, squared),
        }
    }

    /// The error of a block whose elements `x`, in rows of `width`, have the given values of codes.
    pub(crate) fn error(
        self,
        x: &[f32],
        codes: &[f32],
        width: usize,
        scale: f32,
        factors: &TensorFactors,
    ) -> f32 {
        let one = |x: &f32, code: &f32| {
            let value = match factors.amax {
                Some(amax) => code * scale * amax / (6.0 * self.bound.value()),
                None => code * scale,
            };
            let difference = value - x;
            match self.error {
                BlockError::Absolute => difference.abs(),
                BlockError::Squared => difference * difference,
            }
        };
        let rows = x.chunks(width).zip(codes.chunks(width));
        let rows: Vec<f32> = rows
            .map(|(x, codes)| x.iter().zip(codes).fold(0.0, |sum, (x, code)| sum + one(x, code)))
            .collect();
        Self::sum(&rows)
    }

    /// The sum of a block from those of its rows.
    #[inline]
    pub(crate) fn sum(of_rows: &[f32]) -> f32 {
        let mut rows = [0.0; 16];
        match *of_rows {
            // What is added to the row of a flat block is fifteen zeros.
            [row] => return row + 0.0,
            _ if of_rows.len() > 16 => return of_rows.iter().fold(0.0, |sum, row| sum + row),
            _ => rows[..of_rows.len()].copy_from_slice(of_rows),
        }
        let [a, b, c, d, e, f, g, h] = array::from_fn(|i| rows[i] + rows[i + 8]);
        let [a, b, c, d] = [a + e, b + f, c + g, d + h];
        (a + c) + (b + d)
    }
}
