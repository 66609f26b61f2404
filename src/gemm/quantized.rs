//! The product of two quantized matrices: their exact f32 images, multiplied by the f32 GEMM.
//!
//! Decoding loses nothing but what [`BlockTensor::dequantize`] states (a tensor scale costs one
//! rounding an element); the sum follows the written order of [`gemm::f32`](super::f32). The
//! blocks of both operands must run along the reduction, as hardware has it: a scale that changes
//! within a row of the sum cannot be taken out of it.

use core::fmt;

use super::f32::{Output, matmul};
use crate::block::{Axis, BlockTensor};
use crate::view::{View, ViewMut};

/// Two operands that cannot be multiplied as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductError {
    /// The reductions have other lengths: (rows, columns) of both and of the output.
    Shapes {
        /// The left operand.
        a: (usize, usize),
        /// The right operand.
        b: (usize, usize),
        /// The output.
        c: (usize, usize),
    },
    /// An operand was quantized for a sum along the other axis.
    Axis {
        /// Which operand.
        operand: &'static str,
        /// The axis its blocks run along.
        found: Axis,
        /// The one the product sums along.
        needed: Axis,
    },
}

impl fmt::Display for ProductError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shapes { a, b, c } => write!(
                f,
                "({} x {}) times ({} x {}) into ({} x {}): the inner sizes must be equal and the \
                 outer ones those of the output",
                a.0, a.1, b.0, b.1, c.0, c.1
            ),
            Self::Axis { operand, found, needed } => write!(
                f,
                "the {operand} operand was quantized for a sum along {found:?}, the product sums \
                 along its {needed:?}: quantize the matrix anew along that axis"
            ),
        }
    }
}

impl core::error::Error for ProductError {}

/// `c = a b` or `c += a b` for `a` (M x K) blocked along its columns and `b` (K x N) blocked along
/// its rows.
///
/// ```
/// use exmy::block::{Axis, BlockFormat, BlockTensor};
/// use exmy::gemm::f32::Output;
/// use exmy::gemm::quantized::multiply;
/// use exmy::random::{Philox, Stream};
/// use exmy::round::{Overflow, Rounding};
/// use exmy::view::{View, ViewMut};
///
/// let quantize = |x: &[f32], rows, cols, axis| {
///     let random = Philox::new(0, Stream::new("unused"));
///     let x = View::new(x, rows, cols);
///     BlockTensor::quantize(x, axis, BlockFormat::MXFP4, Rounding::Rne, Overflow::Finite, random)
/// };
/// let a = quantize(&[1.0, 2.6], 1, 2, Axis::Cols); // 2.6 becomes 3
/// let b = quantize(&[4.0, -0.5], 2, 1, Axis::Rows);
/// let mut c = [0.0];
/// multiply(&a, &b, ViewMut::new(&mut c, 1, 1), Output::Overwrite)?;
/// assert_eq!(c, [2.5]);
/// # Ok::<(), exmy::gemm::quantized::ProductError>(())
/// ```
///
/// # Errors
/// If the shapes do not fit each other, or an operand's blocks do not run along the reduction;
/// nothing is written then.
pub fn multiply(
    a: &BlockTensor,
    b: &BlockTensor,
    c: ViewMut<'_, f32>,
    output: Output,
) -> Result<(), ProductError> {
    if a.cols() != b.rows() || a.rows() != c.rows() || b.cols() != c.cols() {
        let shape = |x: &BlockTensor| (x.rows(), x.cols());
        return Err(ProductError::Shapes { a: shape(a), b: shape(b), c: (c.rows(), c.cols()) });
    }
    for (operand, found, needed) in
        [("left", a.axis(), Axis::Cols), ("right", b.axis(), Axis::Rows)]
    {
        if found != needed {
            return Err(ProductError::Axis { operand, found, needed });
        }
    }
    let (left, right) = (a.dequantize(), b.dequantize());
    let (left, right) =
        (View::new(&left, a.rows(), a.cols()), View::new(&right, b.rows(), b.cols()));
    matmul(left, right, c, output);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockFormat;
    use crate::random::{Philox, Stream};
    use crate::round::{Overflow, Rounding};
    use alloc::vec::Vec;

    const RANDOM: Philox = Philox::new(1, Stream::new("quantized test"));

    fn quantize(format: BlockFormat, x: &[f32], shape: (usize, usize), axis: Axis) -> BlockTensor {
        let x = View::new(x, shape.0, shape.1);
        BlockTensor::quantize(x, axis, format, Rounding::Rne, Overflow::Finite, RANDOM)
    }

    fn values(len: usize, of: u64) -> Vec<f32> {
        let start = of << 32;
        (0..len as u64).map(|i| RANDOM.uniform(start + i) as f32 - 0.5).collect()
    }

    /// Products of 4- and 8-bit values with power-of-two scales of similar size are exact in f64,
    /// and so, up to 40 terms, is their sum.
    #[test]
    fn equals_the_sum_of_decoded_products() {
        let (m, n, k) = (3, 5, 40);
        for format in [BlockFormat::MXFP4, BlockFormat::MXFP8_E4M3, BlockFormat::MXINT8] {
            let a = quantize(format, &values(m * k, 0), (m, k), Axis::Cols);
            let b = quantize(format, &values(k * n, 1), (k, n), Axis::Rows);
            let mut c = [f32::NAN; 15];
            multiply(&a, &b, ViewMut::new(&mut c, m, n), Output::Overwrite).unwrap();
            let (a, b) = (a.dequantize(), b.dequantize());
            for i in 0..m {
                for j in 0..n {
                    let term = |l| f64::from(a[i * k + l]) * f64::from(b[l * n + j]);
                    let (sum, size) = (0..k)
                        .map(term)
                        .fold((0.0, 0.0), |(sum, size), x: f64| (sum + x, size + x.abs()));
                    // 40 roundings of partial sums below `size`.
                    let tolerance = 40.0 * size * f64::from(f32::EPSILON) / 2.0;
                    assert!((f64::from(c[i * n + j]) - sum).abs() <= tolerance);
                }
            }
        }
    }

    #[test]
    fn misfits_are_named_and_write_nothing() {
        let tensor = |shape, axis| quantize(BlockFormat::NVFP4, &values(6, 2), shape, axis);
        let (a, b) = (tensor((2, 3), Axis::Cols), tensor((3, 2), Axis::Rows));
        let mut c = [7.0; 4];
        let mut fail = |a: &BlockTensor, b: &BlockTensor| {
            let error = multiply(a, b, ViewMut::new(&mut c, 2, 2), Output::Overwrite).unwrap_err();
            assert_eq!(c, [7.0; 4]);
            alloc::string::ToString::to_string(&error)
        };
        assert!(fail(&a, &a).starts_with("(2 x 3) times (2 x 3) into (2 x 2)"));
        assert!(fail(&a, &tensor((3, 2), Axis::Cols)).starts_with("the right operand"));
        assert!(fail(&tensor((2, 3), Axis::Rows), &b).contains("quantize the matrix anew"));
        assert!(multiply(&a, &b, ViewMut::new(&mut c, 2, 2), Output::Overwrite).is_ok());
    }
}
