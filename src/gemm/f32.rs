//! The f32 matrix product, with one written order of summation.
//!
//! `c[i][j]` is formed in blocks of [`K_BLOCK`] along K. Within a block there is one chain of fused
//! multiply-adds, ascending, from +0. The first block's sum is stored (or added to what `c` holds,
//! when accumulating), each further block's sum is added. [`matmul_reference`] is that as code.
//! [`matmul`] gives the same bits, on AVX-512 by a kernel of its own, else through the crate
//! `matrixmultiply`, whose AVX2 kernel follows this order. A self-test of three shapes at first use
//! decides; where it fails, or without the feature `fast-f32`, the reference runs. Rows or columns
//! of `c` are divided between threads in bands, which no sum crosses.

#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", feature = "fast-f32"))]
mod avx512;
#[cfg(feature = "parallel")]
mod deep;
#[cfg(all(target_arch = "x86_64", feature = "fast-f32"))]
#[doc(hidden)]
pub use avx512::{End, PackedColumns};

use crate::slice::{View, ViewMut};

/// Length of the blocks along K whose sums are formed apart.
pub const K_BLOCK: usize = 256;

/// What to do with the value an output element already holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Replace it.
    Overwrite,
    /// Add the product to it.
    Accumulate,
}

/// Shapes must agree before anything is written.
#[track_caller]
fn check(a: &View<'_, f32>, b: &View<'_, f32>, c: &ViewMut<'_, f32>) {
    assert!(
        a.cols() == b.rows() && a.rows() == c.rows() && b.cols() == c.cols(),
        "matmul: ({} x {}) times ({} x {}) into ({} x {}): the inner sizes must be equal and the \
         outer ones those of the output",
        a.rows(),
        a.cols(),
        b.rows(),
        b.cols(),
        c.rows(),
        c.cols()
    );
}

/// `c = a b` or `c += a b`, as the definition reads.
///
/// # Panics
/// If the shapes do not fit each other.
#[track_caller]
pub fn matmul_reference(
    a: View<'_, f32>,
    b: View<'_, f32>,
    mut c: ViewMut<'_, f32>,
    output: Output,
) {
    check(&a, &b, &c);
    let (rows, cols, depth, stride) = (c.rows(), c.cols(), a.cols(), c.row_stride());
    for i in 0..rows {
        for j in 0..cols {
            let out = &mut c.data_mut()[i * stride + j];
            let mut written = output == Output::Accumulate;
            let mut k = 0;
            // One pass even for K = 0, whose product is +0.
            loop {
                let end = depth.min(k + K_BLOCK);
                let mut sum = 0.0_f32;
                for k in k..end {
                    sum = fused(a.at(i, k), b.at(k, j), sum);
                }
                *out = if written { *out + sum } else { sum };
                written = true;
                k = end;
                if k == depth {
                    break;
                }
            }
        }
    }
}

/// `a * b + c` with one rounding. Without `std` there is no `mul_add`; f64 holds the product of two
/// f32 exactly, and rounding the sum to odd before narrowing makes the two roundings one.
#[inline(always)]
pub(super) fn fused(a: f32, b: f32, c: f32) -> f32 {
    #[cfg(feature = "std")]
    return a.mul_add(b, c);
    #[cfg(not(feature = "std"))]
    {
        let (product, addend) = (f64::from(a) * f64::from(b), f64::from(c));
        let sum = product + addend;
        // The error of the addition (Knuth's two-sum), to know on which side the exact value lies.
        let back = sum - product;
        let error = (product - (sum - back)) + (addend - back);
        if error == 0.0 || !sum.is_finite() || sum.to_bits() & 1 == 1 {
            return sum as f32;
        }
        let away = (error > 0.0) == (sum > 0.0);
        let bits = if away { sum.to_bits() + 1 } else { sum.to_bits() - 1 };
        f64::from_bits(bits) as f32
    }
}

/// Whether the kernel of vectors of sixteen is to be used: at the levels that have them.
#[cfg(all(target_arch = "x86_64", feature = "fast-f32"))]
#[doc(hidden)]
#[inline]
pub fn has_vectors() -> bool {
    crate::simd::level() >= crate::simd::Level::Avx512
}

/// `c = a b` or `c += a b` on the calling thread; bit-equal to [`matmul_reference`].
///
/// # Panics
/// If the shapes do not fit each other.
#[track_caller]
pub fn matmul_serial(a: View<'_, f32>, b: View<'_, f32>, c: ViewMut<'_, f32>, output: Output) {
    check(&a, &b, &c);
    #[cfg(all(target_arch = "x86_64", feature = "fast-f32"))]
    if has_vectors() {
        return in_vectors(a, b, c, output, false);
    }
    #[cfg(feature = "fast-f32")]
    if fast::follows_the_order() {
        return fast::matmul(a, b, c, output);
    }
    matmul_reference(a, b, c, output);
}

/// The product by the kernel of vectors of sixteen, which the caller knows to be there, by all threads or by
/// this one.
#[cfg(all(target_arch = "x86_64", feature = "fast-f32"))]
fn in_vectors(
    a: View<'_, f32>,
    b: View<'_, f32>,
    mut c: ViewMut<'_, f32>,
    output: Output,
    by_all: bool,
) {
    let (rows, cols, stride) = (c.rows(), c.cols(), c.row_stride());
    if rows == 0 || cols == 0 {
        return;
    }
    let whole = avx512::Place { first: c.data_mut().as_mut_ptr(), stride, rows, cols };
    // SAFETY: AVX-512 by the level; the view is exclusively borrowed and of that shape, and shapes were
    // compared.
    unsafe {
        if by_all {
            avx512::matmul_by_all(a, b, whole, output);
        } else {
            avx512::matmul(a, b, whole, output);
        }
    }
}

/// `c = a b` or `c += a b`, divided between threads; bit-equal to [`matmul_reference`].
///
/// # Panics
/// If the shapes do not fit each other.
#[track_caller]
pub fn matmul(a: View<'_, f32>, b: View<'_, f32>, c: ViewMut<'_, f32>, output: Output) {
    check(&a, &b, &c);
    #[cfg(feature = "parallel")]
    {
        /// Below this many multiply-adds handing work to another thread costs more than it saves.
        const WORTH_DIVIDING: usize = 1 << 18;
        let (rows, threads) = (c.rows(), crate::parallel::threads());
        let worth = threads > 1 && rows * c.cols() * a.cols() >= WORTH_DIVIDING;
        // Of an operand whose rows are adjacent numbers a thread reads its own rows, and nothing is packed.
        if worth && a.col_stride() != 1 && deep::pays((rows, c.cols()), a.cols()) {
            return deep::matmul(a, b, c, output);
        }
        #[cfg(all(target_arch = "x86_64", feature = "fast-f32"))]
        if worth && has_vectors() {
            return in_vectors(a, b, c, output, true);
        }
        if worth && rows > 1 {
            let band = rows.div_ceil(threads).next_multiple_of(16);
            let mut bands = Vec::with_capacity(threads);
            let mut rest = c;
            while rest.rows() > band {
                let (head, tail) = rest.split_rows(band);
                bands.push(head);
                rest = tail;
            }
            bands.push(rest);
            crate::parallel::for_each(bands, |i, c| {
                let start = i * band;
                matmul_serial(a.rows_range(start..start + c.rows()), b, c, output);
            });
            return;
        }
    }
    matmul_serial(a, b, c, output);
}

#[cfg(feature = "fast-f32")]
mod fast {
    use super::{K_BLOCK, Output, View, ViewMut, matmul_reference};
    use std::sync::OnceLock;

    /// The product by `matrixmultiply`.
    pub(super) fn matmul(
        a: View<'_, f32>,
        b: View<'_, f32>,
        mut c: ViewMut<'_, f32>,
        output: Output,
    ) {
        let beta = match output {
            Output::Overwrite => 0.0,
            Output::Accumulate => 1.0,
        };
        // It leaves `c` alone where K is 0, and the sum of no products is +0, which changes -0.
        if a.cols() == 0 {
            return matmul_reference(a, b, c, output);
        }
        let stride = c.row_stride() as isize;
        let (rows, cols) = (c.rows(), c.cols());
        // SAFETY: a view's constructor proved that every element (i, j) lies inside its slice;
        // shapes were compared by the callers in this file; `c` is exclusively borrowed and its
        // rows do not overlap. Strides fit `isize`, as they index slices.
        unsafe {
            matrixmultiply::sgemm(
                rows,
                a.cols(),
                cols,
                1.0,
                a.data().as_ptr(),
                a.row_stride() as isize,
                a.col_stride() as isize,
                b.data().as_ptr(),
                b.row_stride() as isize,
                b.col_stride() as isize,
                beta,
                c.data_mut().as_mut_ptr(),
                stride,
                1,
            );
        }
    }

    /// Whether this machine's kernel sums in the written order: three shapes with ragged edges and
    /// more than one block along K, compared bit for bit with the reference.
    pub(super) fn follows_the_order() -> bool {
        static ANSWER: OnceLock<bool> = OnceLock::new();
        *ANSWER.get_or_init(|| {
            [(5, 7, 3), (33, 18, K_BLOCK + 9), (16, 34, 2 * K_BLOCK + 1)].into_iter().all(
                |(rows, cols, depth)| {
                    // Thirds are inexact in every product and sum, so that any other order shows.
                    let fill = |len: usize, step: usize| -> Vec<f32> {
                        (0..len).map(|i| ((i * step % 101) as f32 - 50.0) / 3.0).collect()
                    };
                    let (a, b) = (fill(rows * depth, 37), fill(depth * cols, 53));
                    let (a, b) = (View::new(&a, rows, depth), View::new(&b, depth, cols));
                    let mut expected = fill(rows * cols, 11);
                    let mut got = expected.clone();
                    let view = ViewMut::new(&mut expected, rows, cols);
                    matmul_reference(a, b, view, Output::Accumulate);
                    matmul(a, b, ViewMut::new(&mut got, rows, cols), Output::Accumulate);
                    expected == got
                },
            )
        })
    }
}
