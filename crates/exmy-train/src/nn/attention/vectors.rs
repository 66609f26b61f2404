//! The products of one head of causal attention in f32 on vectors of sixteen: the tiles of
//! [`gemm::f32`](exmy::gemm::f32), which the generic bodies of [`causal`](super::causal) equal bit
//! for bit. Rows are taken eight at a time; what a tile's rows share comes as one product, the
//! triangle at the diagonal row by row, at the end of the chain or at its start.

use super::causal::Rows;
use crate::nn::real::{LANES, Real};
use exmy::gemm::f32::{End, PackedColumns, has_vectors};

/// Rows of a panel.
const PANEL: usize = 8;

/// Rows as those of f32 numbers, if they are such.
fn singles<T: Real>(x: Rows<'_, T>) -> Option<Rows<'_, f32>> {
    T::singles(x.data).map(|data| Rows { data, stride: x.stride })
}

/// `out[i][j] = sum over d of a[i][d] * b[j][d]` for `j` up to the vector that holds `i`; whether it
/// was done.
pub(super) fn scores<T: Real>(
    n: usize,
    hd: usize,
    row: usize,
    a: Rows<'_, T>,
    b: Rows<'_, T>,
    packed: &mut [T],
    out: &mut [T],
) -> bool {
    let all = (singles(a), singles(b), T::singles_mut(packed), T::singles_mut(out));
    let (Some(a), Some(b), Some(packed), Some(out)) = all else { return false };
    if !has_vectors() {
        return false;
    }
    let columns = PackedColumns::pack_transposed(b.data, b.stride, (hd, n), packed);
    for i in (0..n).step_by(PANEL) {
        let rows = PANEL.min(n - i);
        let width = (i + rows).next_multiple_of(LANES).min(n);
        let (left, out) = (&a.data[i * a.stride..], &mut out[i * row..]);
        columns.chains(rows, left, [a.stride, 1], 0..hd, out, (row, width), End::Store);
    }
    true
}

/// `out[i] = sum over j <= i of p[i][j] * x[j]`, rows of `hd`; whether it was done.
pub(super) fn lower<T: Real>(
    n: usize,
    hd: usize,
    row: usize,
    p: &[T],
    x: Rows<'_, T>,
    packed: &mut [T],
    out: &mut [T],
) -> bool {
    let all = (T::singles(p), singles(x), T::singles_mut(packed), T::singles_mut(out));
    let (Some(p), Some(x), Some(packed), Some(out)) = all else { return false };
    if !has_vectors() {
        return false;
    }
    let columns = PackedColumns::pack(x.data, x.stride, (n, hd), packed);
    let size = (hd, hd);
    for i in (0..n).step_by(PANEL) {
        let rows = PANEL.min(n - i);
        let (left, place) = (&p[i * row..], &mut out[i * hd..]);
        columns.chains(rows, left, [row, 1], 0..i + 1, place, size, End::Store);
        for r in i + 1..i + rows {
            let (left, place) = (&p[r * row + i + 1..], &mut out[r * hd..]);
            columns.chains(1, left, [row, 1], i + 1..r + 1, place, size, End::Chain);
        }
    }
    true
}

/// `out[j] += sum over i >= j of p[i][j] * x[i]`: the chain goes on from what `out` holds; whether
/// it was done.
pub(super) fn lower_transposed<T: Real>(
    n: usize,
    hd: usize,
    row: usize,
    p: &[T],
    x: Rows<'_, T>,
    packed: &mut [T],
    out: &mut [T],
) -> bool {
    let all = (T::singles(p), singles(x), T::singles_mut(packed), T::singles_mut(out));
    let (Some(p), Some(x), Some(packed), Some(out)) = all else { return false };
    if !has_vectors() {
        return false;
    }
    let columns = PackedColumns::pack(x.data, x.stride, (n, hd), packed);
    let size = (hd, hd);
    for j in (0..n).step_by(PANEL) {
        let rows = PANEL.min(n - j);
        // From here on every row of the panel has all positions.
        let last = j + rows - 1;
        for r in j..last {
            let (left, place) = (&p[r * row + r..], &mut out[r * hd..]);
            columns.chains(1, left, [1, row], r..last, place, size, End::Chain);
        }
        let (left, place) = (&p[last * row + j..], &mut out[j * hd..]);
        columns.chains(rows, left, [1, row], last..n, place, size, End::Chain);
    }
    true
}
