//! The pieces of one head of causal attention, for inlining into a kernel.
//!
//! Products by tiles of [`TILE`] rows and sixteen columns whose sums stay in registers. Of the triangle above
//! the diagonal only what a tile's block covers is computed, and nothing of it is used. Orders of summation
//! are [`attention`](super)'s; tiles do not enter them.

// Loops over rows and lanes of fixed number, indexed alike in several arrays, become vector code.
#![allow(clippy::needless_range_loop)]

use crate::nn::real::{LANES, Real, fold};

/// Rows of a tile. It divides the lanes, so that the rows of a tile end in one block of lanes;
/// eight rows were slower, as their sums no longer fit the registers.
const TILE: usize = 4;

/// The rows of a head inside wider rows: element (i, d) at `i * stride + d`.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, T> {
    pub(super) data: &'a [T],
    pub(super) stride: usize,
}

impl<'a, T: Real> Rows<'a, T> {
    #[inline(always)]
    pub(super) fn row(&self, i: usize, hd: usize) -> &'a [T] {
        &self.data[i * self.stride..][..hd]
    }
}

/// `out[d][i] = x[i][d]`, rows of `out` padded with zeros.
#[inline(always)]
pub(super) fn transpose<T: Real>(n: usize, hd: usize, row: usize, x: Rows<'_, T>, out: &mut [T]) {
    for i in 0..n {
        let x = x.row(i, hd);
        for d in 0..hd {
            out[d * row + i] = x[d];
        }
    }
    for out in out.chunks_exact_mut(row) {
        out[n..].fill(T::ZERO);
    }
}

/// `out[i][j] = sum over d of a[i][d] * bt[d][j]` for all blocks of lanes up to the one that holds
/// `j = i`; the lanes after `i` hold whatever the product gives.
#[inline(always)]
pub(super) fn scores<T: Real>(
    n: usize,
    hd: usize,
    row: usize,
    a: Rows<'_, T>,
    bt: &[T],
    out: &mut [T],
) {
    let mut i = 0;
    while i + TILE <= n {
        scores_tile::<T, TILE>(i, hd, row, a, bt, out);
        i += TILE;
    }
    while i < n {
        scores_tile::<T, 1>(i, hd, row, a, bt, out);
        i += 1;
    }
}

#[inline(always)]
fn scores_tile<T: Real, const R: usize>(
    i: usize,
    hd: usize,
    row: usize,
    a: Rows<'_, T>,
    bt: &[T],
    out: &mut [T],
) {
    let mut left: [&[T]; R] = [&[]; R];
    for r in 0..R {
        left[r] = a.row(i + r, hd);
    }
    let mut j = 0;
    while j < i + R {
        let mut sums = [[T::ZERO; LANES]; R];
        for d in 0..hd {
            let right = &bt[d * row + j..][..LANES];
            for r in 0..R {
                let factor = left[r][d];
                for l in 0..LANES {
                    sums[r][l] = factor.mul_add(right[l], sums[r][l]);
                }
            }
        }
        for r in 0..R {
            out[(i + r) * row + j..][..LANES].copy_from_slice(&sums[r]);
        }
        j += LANES;
    }
}

/// Scores into probabilities, in place; positions after a row's own become 0.
#[inline(always)]
pub(super) fn softmax<T: Real>(n: usize, row: usize, p: &mut [T], scale: T) {
    let mut i = 0;
    while i + TILE <= n {
        softmax_tile::<T, TILE>(i, row, &mut p[i * row..][..TILE * row], scale);
        i += TILE;
    }
    while i < n {
        softmax_tile::<T, 1>(i, row, &mut p[i * row..][..row], scale);
        i += 1;
    }
}

/// The row of position `i` alone.
#[inline(always)]
pub(super) fn softmax_row<T: Real>(i: usize, row: usize, p: &mut [T], scale: T) {
    softmax_tile::<T, 1>(i, row, p, scale);
}

/// Rows `i..i + R`, which end in one block of lanes; side by side, because a single row is one
/// long dependence.
#[inline(always)]
fn softmax_tile<T: Real, const R: usize>(i: usize, row: usize, p: &mut [T], scale: T) {
    let end = (i + R).next_multiple_of(LANES);
    let mut most = [[T::from_f64(f64::NEG_INFINITY); LANES]; R];
    let mut j = 0;
    while j < end {
        for r in 0..R {
            let block = &mut p[r * row + j..][..LANES];
            let seen = (i + r - j) as u32;
            for l in 0..LANES {
                block[l] *= scale;
                let more = (l as u32 <= seen) & (block[l] > most[r][l]);
                most[r][l] = if more { block[l] } else { most[r][l] };
            }
        }
        j += LANES;
    }
    let mut top = [T::ZERO; R];
    for r in 0..R {
        top[r] = fold(most[r], |a, b| if b > a { b } else { a });
    }
    let mut sums = [[T::ZERO; LANES]; R];
    let mut j = 0;
    while j < end {
        for r in 0..R {
            let block = &mut p[r * row + j..][..LANES];
            // One number, or the compiler gathers sixteen times the same.
            let (seen, top) = ((i + r - j) as u32, top[r]);
            let mut values = [T::ZERO; LANES];
            for l in 0..LANES {
                // Later positions take e^0 and drop it: e^-infinity would be 0 by way of an
                // underflow, which costs the CPU some hundred cycles a row.
                let under = if l as u32 <= seen { block[l] - top } else { T::ZERO };
                let power = under.exp();
                values[l] = if l as u32 <= seen { power } else { T::ZERO };
                sums[r][l] += values[l];
            }
            block.copy_from_slice(&values);
        }
        j += LANES;
    }
    for r in 0..R {
        let inverse = T::ONE / fold(sums[r], |a, b| a + b);
        for value in &mut p[r * row..][..end] {
            *value *= inverse;
        }
        p[r * row + end..][..row - end].fill(T::ZERO);
    }
}

/// dP into dS = P (dP - sum of P dP) scale, in place; positions after a row's own become 0.
#[inline(always)]
pub(super) fn softmax_backward<T: Real>(n: usize, row: usize, p: &[T], d: &mut [T], scale: T) {
    for i in 0..n {
        let end = (i + 1).next_multiple_of(LANES);
        let (p, d) = (&p[i * row..][..end], &mut d[i * row..][..end]);
        d[i + 1..].fill(T::ZERO);
        let mut sums = [T::ZERO; LANES];
        for (p, d) in p.chunks_exact(LANES).zip(d.chunks_exact(LANES)) {
            for l in 0..LANES {
                sums[l] = p[l].mul_add(d[l], sums[l]);
            }
        }
        let mean = fold(sums, |a, b| a + b);
        for (p, d) in p.iter().zip(d) {
            *d = *p * (*d - mean) * scale;
        }
    }
}

/// `out[i] = sum over j <= i of p[i][j] * x[j]`, rows of `hd`, overwritten.
#[inline(always)]
pub(super) fn lower<T: Real>(
    n: usize,
    hd: usize,
    row: usize,
    p: &[T],
    x: Rows<'_, T>,
    out: &mut [T],
) {
    let mut i = 0;
    while i < n {
        let tile = if i + TILE <= n { TILE } else { 1 };
        let mut c = 0;
        while c < hd {
            let lanes = LANES.min(hd - c);
            match (tile, lanes) {
                (TILE, LANES) => lower_tile::<T, TILE, true>(i, c, hd, row, p, x, out),
                (TILE, _) => lower_tile::<T, TILE, false>(i, c, hd, row, p, x, out),
                (_, LANES) => lower_tile::<T, 1, true>(i, c, hd, row, p, x, out),
                _ => lower_tile::<T, 1, false>(i, c, hd, row, p, x, out),
            }
            c += LANES;
        }
        i += tile;
    }
}

/// Rows `i..i + R` of [`lower`], columns `c..` of one block of lanes, a whole one if `FULL`.
#[inline(always)]
fn lower_tile<T: Real, const R: usize, const FULL: bool>(
    i: usize,
    c: usize,
    hd: usize,
    row: usize,
    p: &[T],
    x: Rows<'_, T>,
    out: &mut [T],
) {
    let mut left: [&[T]; R] = [&[]; R];
    for r in 0..R {
        left[r] = &p[(i + r) * row..][..i + R];
    }
    let mut sums = [[T::ZERO; LANES]; R];
    for j in 0..=i {
        let right = lanes::<T, FULL>(&x.row(j, hd)[c..]);
        for r in 0..R {
            fma(&mut sums[r], left[r][j], &right);
        }
    }
    for j in i + 1..i + R {
        let right = lanes::<T, FULL>(&x.row(j, hd)[c..]);
        for r in 1..R {
            if j <= i + r {
                fma(&mut sums[r], left[r][j], &right);
            }
        }
    }
    let width = if FULL { LANES } else { hd - c };
    for r in 0..R {
        out[(i + r) * hd + c..][..width].copy_from_slice(&sums[r][..width]);
    }
}

/// `out[j] += sum over i >= j of p[i][j] * x[i]`: the chain goes on from what `out` holds.
#[inline(always)]
pub(super) fn lower_transposed<T: Real>(
    n: usize,
    hd: usize,
    row: usize,
    p: &[T],
    x: Rows<'_, T>,
    out: &mut [T],
) {
    let mut j = 0;
    while j < n {
        let tile = if j + TILE <= n { TILE } else { 1 };
        let mut c = 0;
        while c < hd {
            let lanes = LANES.min(hd - c);
            match (tile, lanes) {
                (TILE, LANES) => transposed_tile::<T, TILE, true>(n, j, c, hd, row, p, x, out),
                (TILE, _) => transposed_tile::<T, TILE, false>(n, j, c, hd, row, p, x, out),
                (_, LANES) => transposed_tile::<T, 1, true>(n, j, c, hd, row, p, x, out),
                _ => transposed_tile::<T, 1, false>(n, j, c, hd, row, p, x, out),
            }
            c += LANES;
        }
        j += tile;
    }
}

/// Rows `j..j + R` of [`lower_transposed`], as [`lower_tile`].
#[inline(always)]
fn transposed_tile<T: Real, const R: usize, const FULL: bool>(
    n: usize,
    j: usize,
    c: usize,
    hd: usize,
    row: usize,
    p: &[T],
    x: Rows<'_, T>,
    out: &mut [T],
) {
    let width = if FULL { LANES } else { hd - c };
    let mut sums = [[T::ZERO; LANES]; R];
    for r in 0..R {
        sums[r][..width].copy_from_slice(&out[(j + r) * hd + c..][..width]);
    }
    for i in j..j + R - 1 {
        let right = lanes::<T, FULL>(&x.row(i, hd)[c..]);
        for r in 0..R {
            if j + r <= i {
                fma(&mut sums[r], p[i * row + j + r], &right);
            }
        }
    }
    for i in j + R - 1..n {
        let right = lanes::<T, FULL>(&x.row(i, hd)[c..]);
        let left = &p[i * row + j..][..R];
        for r in 0..R {
            fma(&mut sums[r], left[r], &right);
        }
    }
    for r in 0..R {
        out[(j + r) * hd + c..][..width].copy_from_slice(&sums[r][..width]);
    }
}

/// The first lanes of `from`; zeros where a ragged head ends.
#[inline(always)]
pub(super) fn lanes<T: Real, const FULL: bool>(from: &[T]) -> [T; LANES] {
    let mut all = [T::ZERO; LANES];
    if FULL {
        all.copy_from_slice(&from[..LANES]);
    } else {
        for (to, from) in all.iter_mut().zip(from) {
            *to = *from;
        }
    }
    all
}

#[inline(always)]
pub(super) fn fma<T: Real>(sums: &mut [T; LANES], factor: T, right: &[T; LANES]) {
    for l in 0..LANES {
        sums[l] = factor.mul_add(right[l], sums[l]);
    }
}
