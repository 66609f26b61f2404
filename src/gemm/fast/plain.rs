//! The definition of the [fast](super) product, to be read.

use alloc::vec;
use alloc::vec::Vec;

use super::Scaling;
use super::panel::BLOCK;
use crate::format::Format;
use crate::gemm::f32::fused;
use crate::gemm::{Operand, Store};
use crate::slice::{View, ViewMut};

/// The binary32 images of an operand, row-major: value of the code times block scale, rounded once;
/// infinity from 2^128 on. The tensor scale stays out. How many products became infinite so comes with
/// them. Numbers beyond binary32, which [`Packed`](super::Packed) does not take, are rounded as well.
pub fn images_plain(operand: &Operand<'_>) -> (Vec<f32>, u64) {
    let (rows, cols) = operand.shape();
    let codes = match operand.store() {
        Store::Blocks(tensor) => tensor.codes(),
        _ => Vec::new(),
    };
    let mut overflows = 0;
    let value =
        |format: Format, code: u64| format.to_f32(code & (u64::MAX >> (64 - format.bits())));
    let mut image = |i: usize, j: usize| match operand.store() {
        Store::F32(x) => x.at(i, j),
        Store::F64(x) => x.at(i, j) as f32,
        Store::U8(format, x) => value(format, x.at(i, j).into()),
        Store::U16(format, x) => value(format, x.at(i, j).into()),
        Store::U32(format, x) => value(format, x.at(i, j).into()),
        Store::U64(format, x) => value(format, x.at(i, j)),
        Store::Blocks(tensor) => {
            let (i, j) = if operand.is_transposed() { (j, i) } else { (i, j) };
            let code = codes[i * tensor.cols() + j];
            let value = value(tensor.format().element, code.into());
            let scale = tensor.scale(i, j).to_f32();
            overflows +=
                u64::from((value * scale).is_infinite() && value.is_finite() && scale.is_finite());
            value * scale
        }
    };
    let mut images = vec![0.0; rows * cols];
    for i in 0..rows {
        for j in 0..cols {
            images[i * cols + j] = image(i, j);
        }
    }
    (images, overflows)
}

/// A sum of `depth` products. Each block of 32 has one chain over the even positions and one over
/// the odd ones; their sum is added to that of the blocks before.
///
/// Positions behind the last one would add products of zeros, which change no sum: it is never -0.
pub fn sum_plain(depth: usize, a: impl Fn(usize) -> f32, b: impl Fn(usize) -> f32) -> f32 {
    let mut sum = 0.0;
    for first in (0..depth).step_by(BLOCK) {
        let (mut even, mut odd) = (0.0, 0.0);
        for k in first..depth.min(first + BLOCK) {
            let chain = if k % 2 == 0 { &mut even } else { &mut odd };
            *chain = fused(a(k), b(k), *chain);
        }
        sum += even + odd;
    }
    sum
}

/// `c = alpha a b + beta c`, as the definition of the [module](super) reads; bit-equal to
/// [`multiply`](super::multiply).
///
/// # Panics
/// If the shapes do not fit each other.
#[track_caller]
pub fn multiply_plain(a: &Operand<'_>, b: &Operand<'_>, mut c: ViewMut<'_, f32>, with: Scaling) {
    let ((m, k), n) = (a.shape(), b.cols());
    assert!((k, m, n) == (b.rows(), c.rows(), c.cols()), "shapes do not fit");
    let ((left, _), (right, _)) = (images_plain(a), images_plain(b));
    let (left, right) = (View::new(&left, m, k), View::new(&right, k, n));
    let factor = with.factor(a.tensor_scale(), b.tensor_scale());
    let stride = c.row_stride();
    for i in 0..m {
        for j in 0..n {
            let sum = sum_plain(k, |k| left.at(i, k), |k| right.at(k, j));
            let out = &mut c.data_mut()[i * stride + j];
            *out = with.finish(sum, factor, *out);
        }
    }
}
