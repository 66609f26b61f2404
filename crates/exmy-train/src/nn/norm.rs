//! `LayerNorm` and `RMSNorm` over the last axis.
//!
//! `LayerNorm` (Ba, Kiros, Hinton, 2016): `y = (x - mean) rstd gamma + beta` with the biased
//! variance, `rstd = 1 / sqrt(var + eps)`, as PyTorch's `nn.LayerNorm`; the variance is the mean
//! square of the deviations, formed after the mean, so a large common offset costs no digits.
//! `RMSNorm` (Zhang and Sennrich, 2019): `y = x rstd gamma` with `rstd = 1 / sqrt(mean(x^2) + eps)`.
//!
//! The width D is `gamma.len()`, the number of rows N is `x.len() / D`. Sums along a row run over sixteen
//! lanes. The gradients of gamma and beta are summed over blocks of [`ROW_BLOCK`] rows, ascending within, and
//! the blocks' sums are added in ascending order. The backward functions keep one row of sums a block, which
//! is what lets blocks run on any thread.

use super::expect;
use super::real::{Real, sum, sum_of_three};
use crate::nn::stopwatch::{Direction, Part, lap};
use exmy::parallel;
use exmy::simd::kernel;
use serde::{Deserialize, Serialize};

/// How a row is normalized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// To mean 0 and variance 1 (arXiv 1607.06450): `layer-norm`.
    LayerNorm,
    /// To mean square 1 (arXiv 1910.07467): `rms-norm`.
    RmsNorm,
}

/// Rows whose parameter gradients are summed before they meet those of other rows.
pub const ROW_BLOCK: usize = 32;

/// D and N of an input, which must be a whole number of rows.
#[track_caller]
fn shape<T>(name: &str, x: &[T], gamma: &[T]) -> (usize, usize) {
    let width = gamma.len();
    assert!(
        width > 0 && x.len().is_multiple_of(width),
        "{name}: {} elements are no whole number of rows of width {width}",
        x.len()
    );
    (width, x.len() / width)
}

/// Layer normalization: x (N, D) to y (N, D); mean (N) and rstd (N) are kept for the backward.
///
/// # Panics
/// If the lengths do not fit each other.
#[track_caller]
pub fn layer_norm<T: Real>(
    x: &[T],
    gamma: &[T],
    beta: Option<&[T]>,
    eps: T,
    y: &mut [T],
    mean: &mut [T],
    rstd: &mut [T],
) {
    let _lap = lap(Part::Norm(Direction::Forward));
    let (width, rows) = shape("layer_norm", x, gamma);
    expect("layer_norm", "y", y.len(), x.len());
    expect("layer_norm", "mean", mean.len(), rows);
    expect("layer_norm", "rstd", rstd.len(), rows);
    expect("layer_norm", "beta", beta.map_or(width, <[T]>::len), width);
    let (y, mean, rstd) = ((y, ROW_BLOCK * width), (mean, ROW_BLOCK), (rstd, ROW_BLOCK));
    parallel::for_each_chunk_of_three(y, mean, rstd, |i, y, mean, rstd| {
        let start = i * ROW_BLOCK * width;
        layer_norm_rows(&x[start..start + y.len()], gamma, beta, eps, y, mean, rstd);
    });
}

kernel! {
    fn layer_norm_rows<'a, T: Real>(
        x: &'a [T],
        gamma: &'a [T],
        beta: Option<&'a [T]>,
        eps: T,
        y: &'a mut [T],
        means: &'a mut [T],
        rstds: &'a mut [T],
    ) {
        let width = gamma.len();
        let per_width = T::ONE / T::from_f64(width as f64);
        let rows = x.chunks_exact(width).zip(y.chunks_exact_mut(width));
        for ((x, y), (to_mean, to_rstd)) in rows.zip(means.iter_mut().zip(rstds)) {
            let mean = sum(x, |x| x) * per_width;
            let variance = sum(x, |x| (x - mean) * (x - mean)) * per_width;
            let rstd = T::ONE / (variance + eps).sqrt();
            for ((y, &x), &gamma) in y.iter_mut().zip(x).zip(gamma) {
                *y = (x - mean) * rstd * gamma;
            }
            if let Some(beta) = beta {
                for (y, &beta) in y.iter_mut().zip(beta) {
                    *y += beta;
                }
            }
            (*to_mean, *to_rstd) = (mean, rstd);
        }
    }
}

/// Backward of [`layer_norm`]: dx (N, D) is overwritten, dgamma (D) and dbeta (D) are accumulated.
///
/// With `h = (x - mean) rstd` and `g = dy gamma`: `dx = rstd (g - mean(g) - h mean(g h))`,
/// `dgamma += dy h`, `dbeta += dy`.
///
/// # Panics
/// If the lengths do not fit each other.
#[track_caller]
pub fn layer_norm_backward<T: Real>(
    x: &[T],
    gamma: &[T],
    mean: &[T],
    rstd: &[T],
    dy: &[T],
    dx: &mut [T],
    dgamma: &mut [T],
    dbeta: Option<&mut [T]>,
) {
    let _lap = lap(Part::Norm(Direction::Backward));
    let (width, rows) = shape("layer_norm_backward", x, gamma);
    expect("layer_norm_backward", "mean", mean.len(), rows);
    expect("layer_norm_backward", "rstd", rstd.len(), rows);
    expect("layer_norm_backward", "dy", dy.len(), x.len());
    expect("layer_norm_backward", "dx", dx.len(), x.len());
    expect("layer_norm_backward", "dgamma", dgamma.len(), width);
    expect("layer_norm_backward", "dbeta", dbeta.as_ref().map_or(width, |d| d.len()), width);
    // A block's row of sums: dgamma, then dbeta where it is wanted.
    let sums_len = if dbeta.is_some() { 2 * width } else { width };
    T::with_scratch(rows.div_ceil(ROW_BLOCK) * sums_len, |sums| {
        let blocks = (&mut dx[..], ROW_BLOCK * width);
        parallel::for_each_chunk_of_two(blocks, (&mut *sums, sums_len), |i, dx, sums| {
            let (first, start) = (i * ROW_BLOCK, i * ROW_BLOCK * width);
            let (n, end) = (dx.len() / width, start + dx.len());
            sums.fill(T::ZERO);
            layer_norm_backward_rows(
                &x[start..end],
                gamma,
                &mean[first..first + n],
                &rstd[first..first + n],
                &dy[start..end],
                dx,
                sums,
            );
        });
        for sums in sums.chunks(sums_len) {
            super::activation::add_rows(dgamma, &sums[..width]);
        }
        if let Some(dbeta) = dbeta {
            for sums in sums.chunks(sums_len) {
                super::activation::add_rows(dbeta, &sums[width..]);
            }
        }
    });
}

kernel! {
    fn layer_norm_backward_rows<'a, T: Real>(
        x: &'a [T],
        gamma: &'a [T],
        means: &'a [T],
        rstds: &'a [T],
        dy: &'a [T],
        dx: &'a mut [T],
        sums: &'a mut [T],
    ) {
        let width = gamma.len();
        let per_width = T::ONE / T::from_f64(width as f64);
        let (dgamma, dbeta) = sums.split_at_mut(width);
        let rows = x.chunks_exact(width).zip(dy.chunks_exact(width));
        let rows = rows.zip(dx.chunks_exact_mut(width)).zip(means.iter().zip(rstds));
        for (((x, dy), dx), (&mean, &rstd)) in rows {
            // Two passes over a row that lies in the first-level cache: one loop with two sets of
            // lanes is not vectorized (2.5 times the time of the whole function).
            let mean_g = sum_of_three(x, dy, gamma, |_, dy, gamma| dy * gamma) * per_width;
            let mean_gh = per_width
                * sum_of_three(x, dy, gamma, |x, dy, gamma| dy * gamma * ((x - mean) * rstd));
            let inputs = x.iter().zip(dy).zip(gamma);
            for ((dx, dgamma), ((&x, &dy), &gamma)) in
                dx.iter_mut().zip(dgamma.iter_mut()).zip(inputs)
            {
                let h = (x - mean) * rstd;
                *dx = rstd * (dy * gamma - mean_g - h * mean_gh);
                *dgamma += dy * h;
            }
            for (dbeta, &dy) in dbeta.iter_mut().zip(dy) {
                *dbeta += dy;
            }
        }
    }
}

/// Root-mean-square normalization: x (N, D) to y (N, D); rstd (N) is kept for the backward.
///
/// # Panics
/// If the lengths do not fit each other.
#[track_caller]
pub fn rms_norm<T: Real>(x: &[T], gamma: &[T], eps: T, y: &mut [T], rstd: &mut [T]) {
    let _lap = lap(Part::Norm(Direction::Forward));
    let (width, rows) = shape("rms_norm", x, gamma);
    expect("rms_norm", "y", y.len(), x.len());
    expect("rms_norm", "rstd", rstd.len(), rows);
    let (y, rstd) = ((y, ROW_BLOCK * width), (rstd, ROW_BLOCK));
    parallel::for_each_chunk_of_two(y, rstd, |i, y, rstd| {
        let start = i * ROW_BLOCK * width;
        rms_norm_rows(&x[start..start + y.len()], gamma, eps, y, rstd);
    });
}

kernel! {
    fn rms_norm_rows<'a, T: Real>(
        x: &'a [T],
        gamma: &'a [T],
        eps: T,
        y: &'a mut [T],
        rstds: &'a mut [T],
    ) {
        let width = gamma.len();
        let per_width = T::ONE / T::from_f64(width as f64);
        let rows = x.chunks_exact(width).zip(y.chunks_exact_mut(width));
        for ((x, y), to_rstd) in rows.zip(rstds) {
            let rstd = T::ONE / (sum(x, |x| x * x) * per_width + eps).sqrt();
            for ((y, &x), &gamma) in y.iter_mut().zip(x).zip(gamma) {
                *y = x * rstd * gamma;
            }
            *to_rstd = rstd;
        }
    }
}

/// Backward of [`rms_norm`]: dx (N, D) is overwritten, dgamma (D) is accumulated.
///
/// With `h = x rstd` and `g = dy gamma`: `dx = rstd (g - h mean(g h))`, `dgamma += dy h`.
///
/// # Panics
/// If the lengths do not fit each other.
#[track_caller]
pub fn rms_norm_backward<T: Real>(
    x: &[T],
    gamma: &[T],
    rstd: &[T],
    dy: &[T],
    dx: &mut [T],
    dgamma: &mut [T],
) {
    let _lap = lap(Part::Norm(Direction::Backward));
    let (width, rows) = shape("rms_norm_backward", x, gamma);
    expect("rms_norm_backward", "rstd", rstd.len(), rows);
    expect("rms_norm_backward", "dy", dy.len(), x.len());
    expect("rms_norm_backward", "dx", dx.len(), x.len());
    expect("rms_norm_backward", "dgamma", dgamma.len(), width);
    T::with_scratch(rows.div_ceil(ROW_BLOCK) * width, |sums| {
        let blocks = (&mut dx[..], ROW_BLOCK * width);
        parallel::for_each_chunk_of_two(blocks, (&mut *sums, width), |i, dx, sums| {
            let (first, start) = (i * ROW_BLOCK, i * ROW_BLOCK * width);
            let (n, end) = (dx.len() / width, start + dx.len());
            let (x, dy) = (&x[start..end], &dy[start..end]);
            sums.fill(T::ZERO);
            rms_norm_backward_rows(x, gamma, &rstd[first..first + n], dy, dx, sums);
        });
        for sums in sums.chunks(width) {
            super::activation::add_rows(dgamma, sums);
        }
    });
}

kernel! {
    fn rms_norm_backward_rows<'a, T: Real>(
        x: &'a [T],
        gamma: &'a [T],
        rstds: &'a [T],
        dy: &'a [T],
        dx: &'a mut [T],
        dgamma: &'a mut [T],
    ) {
        let width = gamma.len();
        let per_width = T::ONE / T::from_f64(width as f64);
        let rows = x.chunks_exact(width).zip(dy.chunks_exact(width));
        for (((x, dy), dx), &rstd) in rows.zip(dx.chunks_exact_mut(width)).zip(rstds) {
            let mean_gh = per_width
                * sum_of_three(x, dy, gamma, |x, dy, gamma| dy * gamma * (x * rstd));
            let inputs = x.iter().zip(dy).zip(gamma);
            for ((dx, dgamma), ((&x, &dy), &gamma)) in
                dx.iter_mut().zip(dgamma.iter_mut()).zip(inputs)
            {
                let h = x * rstd;
                *dx = rstd * (dy * gamma - h * mean_gh);
                *dgamma += dy * h;
            }
        }
    }
}
