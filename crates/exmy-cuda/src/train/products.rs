//! Products of matrices that are not rounded, and of images: the library's twins.

use exmy::gemm::f32::Output;
use exmy::gemm::fast::Scaling;
use exmy_train::nn::device::{Matrix, MatrixMut, Storage};
use exmy_train::nn::site::Product;

use super::Cuda;
use crate::product::multiply_to;
use crate::{Buffer, Order, Result, Scales, View, ViewMut};

/// The scales of whole tensors that multiply the sums, if the order is `fast`; else it is that of gemm::f32.
pub(super) type Factors<'a> = Option<[Option<&'a Buffer<f32>>; 2]>;

/// A matrix as the library's twins take it; `None` if there is nothing in it.
pub(super) fn view(of: Matrix<'_, Cuda>) -> Result<Option<View<'_, f32>>> {
    let data = of.data();
    let Some(buffer) = &data.memory().buffer else { return Ok(None) };
    View::with_stride(buffer, data.start(), of.rows(), of.cols(), of.stride()).map(Some)
}

/// The same to be written.
pub(super) fn view_mut(of: MatrixMut<'_, Cuda>) -> Result<Option<ViewMut<'_, f32>>> {
    let (rows, cols, stride) = (of.rows(), of.cols(), of.stride());
    let data = of.into_data();
    let first = data.start();
    let Some(buffer) = &mut data.into_memory().buffer else { return Ok(None) };
    ViewMut::with_stride(buffer, first, rows, cols, stride).map(Some)
}

impl Cuda {
    pub(super) fn product(
        &self,
        product: Product,
        left: Matrix<'_, Self>,
        right: Matrix<'_, Self>,
        mut out: MatrixMut<'_, Self>,
        mode: Output,
        fast: Factors<'_>,
        rounds: bool,
    ) {
        let (rows, depth, cols, inner) = match product {
            Product::Forward => (left.rows(), left.cols(), right.rows(), right.cols()),
            Product::GradInput => (left.rows(), left.cols(), right.cols(), right.rows()),
            Product::GradWeight => (left.cols(), left.rows(), right.cols(), right.rows()),
        };
        assert!(
            depth == inner && (rows, cols) == (out.rows(), out.cols()),
            "matmul: ({rows} x {depth}) times ({inner} x {cols}) into ({} x {}): the inner sizes must be \
             equal and the outer ones those of the output",
            out.rows(),
            out.cols()
        );
        let (order, scaling) = match (fast, mode) {
            (None, Output::Overwrite) => (Order::F32, Scaling::OVERWRITE),
            (None, Output::Accumulate) => (Order::F32, Scaling::ACCUMULATE),
            (Some(_), Output::Overwrite) => (Order::Fast, Scaling::OVERWRITE),
            (Some(_), Output::Accumulate) => (Order::Fast, Scaling::ACCUMULATE),
        };
        // The scale itself is the second of four numbers.
        let [left_scale, right_scale] =
            fast.unwrap_or_default().map(|factor| factor.map(|factor| (factor, 1)));
        let scales = Scales { left: left_scale, right: right_scale };
        if depth == 0 && mode == Output::Overwrite {
            return self.fill(out, 0.0);
        }
        self.attempt(|| {
            let (left, right, out) = (view(left)?, view(right)?, view_mut(out.again())?);
            let (Some(left), Some(right), Some(out)) = (left, right, out) else { return Ok(()) };
            let (left, right) = (crate::Matrix::from(left), crate::Matrix::from(right));
            let (left, right) = match product {
                Product::Forward => (left, right.t()),
                Product::GradInput => (left, right),
                Product::GradWeight => (left.t(), right),
            };
            multiply_to(order, left, right, out, scaling, scales, rounds)
        });
    }
}
