//! Products of matrices that are not rounded, and of images: calls of `kernels/layers/products.cu`.

#![allow(unsafe_code)]

use exmy::gemm::f32::Output;
use exmy_train::nn::device::{Matrix, MatrixMut};
use exmy_train::nn::site::Product;

use super::Cuda;
use super::memory::Parts;
use crate::Buffer;
use crate::backend::Grid;
use crate::launch::{Launch, Plain};
use crate::module::PRODUCTS;

/// `Product` of the kernels.
#[repr(C)]
#[derive(Clone, Copy)]
struct Sizes {
    strides: [u64; 3],
    rows: u32,
    cols: u32,
    depth: u32,
    add: u32,
}

// SAFETY: three fields of 64 bits and four of 32, without a gap.
unsafe impl Plain for Sizes {}

/// The factors of whole tensors that multiply the sums, if the order is `fast`; else it is that of gemm::f32.
pub(super) type Factors<'a> = Option<[Option<&'a Buffer<f32>>; 2]>;

impl Cuda {
    pub(super) fn product(
        &self,
        product: Product,
        left: Matrix<'_, Self>,
        right: Matrix<'_, Self>,
        out: MatrixMut<'_, Self>,
        mode: Output,
        fast: Factors<'_>,
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
        if rows == 0 || cols == 0 {
            return;
        }
        // Large tiles are faster where they are enough for all processors.
        let tiles = |side: usize| (rows.div_ceil(side), cols.div_ceil(side));
        let (down, across) = tiles(128);
        let wide = down * across >= self.device().properties().processors as usize;
        let name = match (product, fast.is_some(), wide) {
            (Product::Forward, false, false) => "f32_forward_small",
            (Product::Forward, false, true) => "f32_forward_wide",
            (Product::Forward, true, false) => "fast_forward_small",
            (Product::Forward, true, true) => "fast_forward_wide",
            (Product::GradInput, false, false) => "f32_grad_input_small",
            (Product::GradInput, false, true) => "f32_grad_input_wide",
            (Product::GradInput, true, false) => "fast_grad_input_small",
            (Product::GradInput, true, true) => "fast_grad_input_wide",
            (Product::GradWeight, false, false) => "f32_grad_weight_small",
            (Product::GradWeight, false, true) => "f32_grad_weight_wide",
            (Product::GradWeight, true, false) => "fast_grad_weight_small",
            (Product::GradWeight, true, true) => "fast_grad_weight_wide",
        };
        let strides = [left.stride(), right.stride(), out.stride()].map(|stride| stride as u64);
        let [rows, cols, depth] = [rows, cols, depth].map(|size| size as u32);
        let add = u32::from(mode == Output::Accumulate);
        let out = out.into_data();
        let (down, across) = if wide { (down, across) } else { tiles(64) };
        self.attempt(|| {
            let launch = Launch::new(self.device(), &PRODUCTS, name);
            let launch = launch.slice(left.data()).slice(right.data()).slice(out.read());
            let launch = match fast {
                Some([left, right]) => launch.read_if(left).read_if(right),
                None => launch,
            };
            let launch = launch.value(Sizes { strides, rows, cols, depth, add });
            // SAFETY: a matrix lies in its data, and the shapes fit each other.
            unsafe { launch.run(Grid::planar(down as u32, across as u32, 256)) }
        });
    }
}
