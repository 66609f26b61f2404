//! Causal softmax attention with grouped heads, forward and backward.
//!
//! "Attention is all you need" (arXiv 1706.03762), section 3.2.1, `softmax(Q Kᵀ / sqrt(hd)) V`,
//! each position attending to itself and what precedes it; `heads / kv_heads` adjacent query heads
//! share a key and a value head (arXiv 2305.13245: grouped, with one key head multi-query). Queries,
//! keys and values lie in the rows of one matrix as the group q|k|v writes them:
//! `(tokens, (heads + 2 kv_heads) * head_dim)`.
//!
//! Orders of summation, the same for any number of threads and any SIMD level. Every element of
//! a product is one chain of fused multiply-adds from +0: scores over the head's dimensions,
//! outputs and dQ over positions `0..=i`, dK and dV over the query heads of the group and within
//! each over positions `j..`, all ascending. Sums along a row of probabilities run in [`LANES`]
//! partial sums (position mod [`LANES`]), folded by halves. A position after the row's own enters no
//! sum and its memory is not multiplied by anything, so infinities or NaNs there change nothing.
//!
//! Work is divided over (sequence, key head). The probabilities are kept for the backward pass,
//! `batch * heads * sequence²` values: at the sizes this crate trains on a CPU they are small beside
//! the other activations.

use crate::nn::real::Real;
use crate::parallel;
use crate::simd::kernel;

/// Partial sums of a row, and elements of a tile's row.
pub const LANES: usize = 16;

/// Rows of a tile; [`LANES`] is a multiple, so the rows of a tile end in one block of lanes.
const TILE: usize = 4;

/// The sizes of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Sequences.
    pub batch: usize,
    /// Tokens of each.
    pub sequence: usize,
    /// Query heads.
    pub heads: usize,
    /// Key heads, and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
}

impl Shape {
    /// Columns of q|k|v.
    pub const fn qkv_width(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.head_dim
    }

    /// Columns of the output.
    pub const fn width(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Distance between rows of probabilities: the sequence, padded to whole blocks of lanes.
    pub const fn row(&self) -> usize {
        self.sequence.next_multiple_of(LANES)
    }

    /// Elements of the probabilities, `(batch, heads, sequence, row)`; zeros after each row's
    /// own position.
    pub const fn probabilities(&self) -> usize {
        self.batch * self.heads * self.sequence * self.row()
    }

    /// Elements of working memory for either pass.
    pub const fn scratch(&self) -> usize {
        self.batch * self.kv_heads * self.unit()
    }

    const fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// Of one (sequence, key head): a transposed head; the outputs of the group's heads, or their
    /// dQ and then dK and dV; one head's dS.
    const fn unit(&self) -> usize {
        let head = self.sequence * self.head_dim;
        self.head_dim * self.row() + (self.group() + 2) * head + self.sequence * self.row()
    }

    #[track_caller]
    fn check(&self, sizes: [(&str, usize, usize); 4]) {
        assert!(
            self.kv_heads > 0 && self.heads.is_multiple_of(self.kv_heads),
            "{} heads cannot share {} key heads evenly",
            self.heads,
            self.kv_heads
        );
        for (name, found, expected) in sizes {
            assert!(found == expected, "{name} has {found} elements, {self:?} needs {expected}");
        }
    }
}

/// `y` (tokens, heads * head_dim) from `qkv` (tokens, qkv_width); keeps the probabilities.
///
/// # Panics
/// If a slice's length is not the one `shape` gives, or `kv_heads` does not divide `heads`.
pub fn attention<T: Real>(
    shape: &Shape,
    qkv: &[T],
    y: &mut [T],
    probabilities: &mut [T],
    scratch: &mut [T],
) {
    let tokens = shape.batch * shape.sequence;
    shape.check([
        ("qkv", qkv.len(), tokens * shape.qkv_width()),
        ("y", y.len(), tokens * shape.width()),
        ("probabilities", probabilities.len(), shape.probabilities()),
        ("scratch", scratch.len(), shape.scratch()),
    ]);
    if tokens == 0 || shape.width() == 0 {
        return;
    }
    let rows = shape.sequence * shape.qkv_width();
    let kept = shape.group() * shape.sequence * shape.row();
    let units: Vec<_> =
        scratch.chunks_mut(shape.unit()).zip(probabilities.chunks_mut(kept)).collect();
    parallel::for_each(units, |unit, (scratch, probabilities)| {
        let (b, kv) = (unit / shape.kv_heads, unit % shape.kv_heads);
        forward_unit(*shape, &qkv[b * rows..][..rows], kv, probabilities, scratch);
    });
    let scratch = &*scratch;
    parallel::for_each_chunk(y, shape.sequence * shape.width(), |b, y| {
        for kv in 0..shape.kv_heads {
            let unit = &scratch[(b * shape.kv_heads + kv) * shape.unit()..];
            let heads = &unit[shape.head_dim * shape.row()..];
            let column = kv * shape.group() * shape.head_dim;
            scatter(shape, heads, shape.group(), y, shape.width(), column);
        }
    });
}

/// `dqkv` (overwritten) from `dy`, with the probabilities that [`attention`] kept for `qkv`.
///
/// # Panics
/// As [`attention`].
pub fn attention_backward<T: Real>(
    shape: &Shape,
    qkv: &[T],
    probabilities: &[T],
    dy: &[T],
    dqkv: &mut [T],
    scratch: &mut [T],
) {
    let tokens = shape.batch * shape.sequence;
    shape.check([
        ("qkv", qkv.len(), tokens * shape.qkv_width()),
        ("dy", dy.len(), tokens * shape.width()),
        ("probabilities", probabilities.len(), shape.probabilities()),
        ("scratch", scratch.len(), shape.scratch()),
    ]);
    assert_eq!(dqkv.len(), qkv.len(), "dqkv has the elements of qkv");
    if tokens == 0 || shape.width() == 0 {
        return;
    }
    let rows = shape.sequence * shape.qkv_width();
    let out = shape.sequence * shape.width();
    let kept = shape.group() * shape.sequence * shape.row();
    parallel::for_each_chunk(scratch, shape.unit(), |unit, scratch| {
        let (b, kv) = (unit / shape.kv_heads, unit % shape.kv_heads);
        let (qkv, dy) = (&qkv[b * rows..][..rows], &dy[b * out..][..out]);
        backward_unit(*shape, qkv, kv, &probabilities[unit * kept..][..kept], dy, scratch);
    });
    let scratch = &*scratch;
    parallel::for_each_chunk(dqkv, rows, |b, dqkv| {
        let (hd, width) = (shape.head_dim, shape.qkv_width());
        for kv in 0..shape.kv_heads {
            let unit = &scratch[(b * shape.kv_heads + kv) * shape.unit()..];
            let dq = &unit[hd * shape.row()..];
            let dk = &dq[shape.group() * shape.sequence * hd..];
            let dv = &dk[shape.sequence * hd..];
            scatter(shape, dq, shape.group(), dqkv, width, kv * shape.group() * hd);
            scatter(shape, dk, 1, dqkv, width, (shape.heads + kv) * hd);
            scatter(shape, dv, 1, dqkv, width, (shape.heads + shape.kv_heads + kv) * hd);
        }
    });
}

/// Copies `heads` dense heads (sequence, head_dim) to `column` and the following of rows of
/// `width`. A dense copy per unit lets threads own what they write: rows interleave the heads.
fn scatter<T: Real>(
    shape: &Shape,
    dense: &[T],
    heads: usize,
    rows: &mut [T],
    width: usize,
    column: usize,
) {
    let hd = shape.head_dim;
    for (h, head) in dense.chunks(shape.sequence * hd).take(heads).enumerate() {
        for (row, values) in rows.chunks_mut(width).zip(head.chunks(hd)) {
            row[column + h * hd..][..hd].copy_from_slice(values);
        }
    }
}

kernel! {
    /// The heads of one (sequence, key head); `qkv` are the sequence's rows.
    fn forward_unit<'a, T: Real>(
        shape: Shape,
        qkv: &'a [T],
        kv: usize,
        probabilities: &'a mut [T],
        scratch: &'a mut [T],
    ) {
        let (n, hd, row, group) = (shape.sequence, shape.head_dim, shape.row(), shape.group());
        let (keys, outputs) = scratch.split_at_mut(hd * row);
        let k = Rows { data: &qkv[(shape.heads + kv) * hd..], stride: shape.qkv_width() };
        let v = Rows { data: &k.data[shape.kv_heads * hd..], ..k };
        transpose(n, hd, row, k, keys);
        let scale = T::ONE / T::from_f64(hd as f64).sqrt();
        for g in 0..group {
            let q = Rows { data: &qkv[(kv * group + g) * hd..], ..k };
            let p = &mut probabilities[g * n * row..][..n * row];
            scores(n, hd, row, q, keys, p);
            softmax(n, row, p, scale);
            lower(n, hd, row, p, v, &mut outputs[g * n * hd..][..n * hd]);
        }
    }
}

kernel! {
    /// Gradients of what [`forward_unit`] read, left in `scratch` as dQ of each head, dK, dV.
    fn backward_unit<'a, T: Real>(
        shape: Shape,
        qkv: &'a [T],
        kv: usize,
        probabilities: &'a [T],
        dy: &'a [T],
        scratch: &'a mut [T],
    ) {
        let (n, hd, row, group) = (shape.sequence, shape.head_dim, shape.row(), shape.group());
        let (values, rest) = scratch.split_at_mut(hd * row);
        let (dq, rest) = rest.split_at_mut(group * n * hd);
        let (dk, rest) = rest.split_at_mut(n * hd);
        let (dv, ds) = rest.split_at_mut(n * hd);
        let k = Rows { data: &qkv[(shape.heads + kv) * hd..], stride: shape.qkv_width() };
        let v = Rows { data: &k.data[shape.kv_heads * hd..], ..k };
        transpose(n, hd, row, v, values);
        dk.fill(T::ZERO);
        dv.fill(T::ZERO);
        let scale = T::ONE / T::from_f64(hd as f64).sqrt();
        for g in 0..group {
            let q = Rows { data: &qkv[(kv * group + g) * hd..], ..k };
            let dy = Rows { data: &dy[(kv * group + g) * hd..], stride: shape.width() };
            let p = &probabilities[g * n * row..][..n * row];
            scores(n, hd, row, dy, values, ds);
            for i in 0..n {
                softmax_backward(&p[i * row..][..row], &mut ds[i * row..][..row], i, scale);
            }
            lower(n, hd, row, ds, k, &mut dq[g * n * hd..][..n * hd]);
            lower_transposed(n, hd, row, ds, q, dk);
            lower_transposed(n, hd, row, p, dy, dv);
        }
    }
}

/// The rows of a head inside wider rows: element (i, d) at `i * stride + d`.
#[derive(Clone, Copy)]
struct Rows<'a, T> {
    data: &'a [T],
    stride: usize,
}

impl<'a, T: Real> Rows<'a, T> {
    #[inline(always)]
    fn row(&self, i: usize, hd: usize) -> &'a [T] {
        &self.data[i * self.stride..][..hd]
    }
}

/// `out[d][i] = x[i][d]`, rows of `out` padded with zeros.
#[inline(always)]
fn transpose<T: Real>(n: usize, hd: usize, row: usize, x: Rows<'_, T>, out: &mut [T]) {
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
fn scores<T: Real>(n: usize, hd: usize, row: usize, a: Rows<'_, T>, bt: &[T], out: &mut [T]) {
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
fn softmax<T: Real>(n: usize, row: usize, p: &mut [T], scale: T) {
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
                block[l] = block[l] * scale;
                let more = (l as u32 <= seen) & (block[l] > most[r][l]);
                most[r][l] = if more { block[l] } else { most[r][l] };
            }
        }
        j += LANES;
    }
    let mut half = LANES / 2;
    while half > 0 {
        for most in &mut most {
            for l in 0..half {
                most[l] = if most[l + half] > most[l] { most[l + half] } else { most[l] };
            }
        }
        half /= 2;
    }
    let mut sums = [[T::ZERO; LANES]; R];
    let mut j = 0;
    while j < end {
        for r in 0..R {
            let block = &mut p[r * row + j..][..LANES];
            let seen = (i + r - j) as u32;
            let mut values = [T::ZERO; LANES];
            for l in 0..LANES {
                // Later positions take e^0 and drop it: e^-infinity would be 0 by way of an
                // underflow, which costs the CPU some hundred cycles a row.
                let under = if l as u32 <= seen { block[l] - most[r][0] } else { T::ZERO };
                let power = under.exp();
                values[l] = if l as u32 <= seen { power } else { T::ZERO };
                sums[r][l] = sums[r][l] + values[l];
            }
            block.copy_from_slice(&values);
        }
        j += LANES;
    }
    for r in 0..R {
        let inverse = T::ONE / fold(sums[r]);
        for value in &mut p[r * row..][..end] {
            *value = *value * inverse;
        }
        p[r * row + end..][..row - end].fill(T::ZERO);
    }
}

/// dP of position `i` into dS = P (dP - sum of P dP) scale: positions after it become 0.
#[inline(always)]
fn softmax_backward<T: Real>(p: &[T], d: &mut [T], i: usize, scale: T) {
    let end = (i + 1).next_multiple_of(LANES);
    let (p, d) = (&p[..end], &mut d[..end]);
    for one in &mut d[i + 1..] {
        *one = T::ZERO;
    }
    let mut sums = [T::ZERO; LANES];
    for (p, d) in p.chunks_exact(LANES).zip(d.chunks_exact(LANES)) {
        for l in 0..LANES {
            sums[l] = p[l].mul_add(d[l], sums[l]);
        }
    }
    let mean = fold(sums);
    for (p, d) in p.iter().zip(d) {
        *d = *p * (*d - mean) * scale;
    }
}

/// Lane l + lane l + 8, then + 4, + 2, + 1.
#[inline(always)]
fn fold<T: Real>(mut sums: [T; LANES]) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for l in 0..half {
            sums[l] = sums[l] + sums[l + half];
        }
        half /= 2;
    }
    sums[0]
}

/// `out[i] = sum over j <= i of p[i][j] * x[j]`, rows of `hd`, overwritten.
#[inline(always)]
fn lower<T: Real>(n: usize, hd: usize, row: usize, p: &[T], x: Rows<'_, T>, out: &mut [T]) {
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
fn lower_transposed<T: Real>(
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
fn lanes<T: Real, const FULL: bool>(from: &[T]) -> [T; LANES] {
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
fn fma<T: Real>(sums: &mut [T; LANES], factor: T, right: &[T; LANES]) {
    for l in 0..LANES {
        sums[l] = factor.mul_add(right[l], sums[l]);
    }
}
