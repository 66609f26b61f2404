//! One chunk of gated linear attention forward, and what both passes need of it.

// Loops over tokens and lanes of fixed number, indexed alike in several arrays, become vector code.
#![allow(clippy::needless_range_loop)]

use super::{CHUNK, Shape};
use crate::nn::real::{LANES, Real};
use exmy::simd::kernel;

/// Elements of a chunk's memory; [`Chunk`] and the backward pass divide it.
pub(super) const fn size(shape: &Shape) -> usize {
    let (key, row) = (shape.key, shape.row());
    // scaled queries, keys, decays, q p; then keys decayed by lanes; two of values, two of them
    // transposed; scores; decays to the end; two by channel and lane; D.
    4 * CHUNK * key
        + key * LANES
        + 4 * CHUNK * row
        + CHUNK * LANES
        + key
        + 2 * key * LANES
        + CHUNK * key
}

/// The part of a sequence that one head reads, `c` tokens of it.
pub(super) struct Chunk<'a, T> {
    /// Tokens, at most [`CHUNK`].
    pub(super) c: usize,
    /// c^(-1/2) q, (CHUNK, key).
    pub(super) q: &'a mut [T],
    pub(super) k: &'a mut [T],
    pub(super) alpha: &'a mut [T],
    /// Scaled queries times the product of the decays from the chunk's beginning.
    pub(super) qp: &'a mut [T],
    /// (key, LANES): lane j is key j decayed to the chunk's end.
    pub(super) decayed: &'a mut [T],
    /// (CHUNK, row), zeros after a head's own columns.
    pub(super) v: &'a mut [T],
    /// (CHUNK, LANES); row i holds scores of j <= i.
    pub(super) scores: &'a mut [T],
    /// The product of all decays of the chunk, by key channel.
    pub(super) p: &'a mut [T],
}

/// Cuts `len` elements off the front.
#[inline(always)]
pub(super) fn cut<'a, T>(from: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    from.split_off_mut(..len).expect("working memory of the size `size` gives")
}

impl<'a, T: Real> Chunk<'a, T> {
    /// Takes its memory from `work`.
    #[inline(always)]
    pub(super) fn new(shape: &Shape, work: &mut &'a mut [T]) -> Self {
        let rows = CHUNK * shape.key;
        let chunk = Self {
            c: 0,
            q: cut(work, rows),
            k: cut(work, rows),
            alpha: cut(work, rows),
            qp: cut(work, rows),
            decayed: cut(work, shape.key * LANES),
            v: cut(work, CHUNK * shape.row()),
            scores: cut(work, CHUNK * LANES),
            p: cut(work, shape.key),
        };
        chunk.v.fill(T::ZERO);
        chunk
    }

    /// Reads the tokens from `first` on.
    #[inline(always)]
    pub(super) fn read(
        &mut self,
        shape: &Shape,
        head: usize,
        first: usize,
        qkv: &[T],
        stride: usize,
        alpha: &[T],
    ) {
        let (key, value, keys) = (shape.key, shape.value, shape.keys());
        let scale = T::ONE / T::from_f64(key as f64).sqrt();
        self.c = CHUNK.min(shape.sequence - first);
        for i in 0..self.c {
            let row = &qkv[(first + i) * stride..][..stride];
            let q = &row[head * key..][..key];
            for (to, &q) in self.q[i * key..][..key].iter_mut().zip(q) {
                *to = q * scale;
            }
            self.k[i * key..][..key].copy_from_slice(&row[keys + head * key..][..key]);
            let v = &row[2 * keys + head * value..][..value];
            self.v[i * shape.row()..][..value].copy_from_slice(v);
            let alpha = &alpha[(first + i) * keys + head * key..][..key];
            self.alpha[i * key..][..key].copy_from_slice(alpha);
        }
    }

    /// Scores, decayed queries and keys, and the chunk's whole decay.
    #[inline(always)]
    pub(super) fn decay(&mut self, key: usize) {
        self.decayed.fill(T::ZERO);
        self.p.fill(T::ONE);
        for i in 0..self.c {
            let (q, k) = (&self.q[i * key..][..key], &self.k[i * key..][..key]);
            let (alpha, qp) = (&self.alpha[i * key..][..key], &mut self.qp[i * key..][..key]);
            let mut sums = [T::ZERO; LANES];
            for d in 0..key {
                self.p[d] *= alpha[d];
                qp[d] = q[d] * self.p[d];
                let lanes = &mut self.decayed[d * LANES..][..LANES];
                for l in 0..LANES {
                    let old = lanes[l] * alpha[d];
                    lanes[l] = if l == i { k[d] } else { old };
                    sums[l] = q[d].mul_add(lanes[l], sums[l]);
                }
            }
            self.scores[i * LANES..][..LANES].copy_from_slice(&sums);
        }
    }

    /// `S = diag(p) S + decayed keysᵀ V`.
    #[inline(always)]
    pub(super) fn advance(&self, row: usize, state: &mut [T]) {
        for (d, state) in state.chunks_exact_mut(row).enumerate() {
            let keys = &self.decayed[d * LANES..][..LANES];
            for (column, state) in (0..).step_by(LANES).zip(state.chunks_exact_mut(LANES)) {
                let mut sums = [T::ZERO; LANES];
                for l in 0..LANES {
                    sums[l] = state[l] * self.p[d];
                }
                for j in 0..self.c {
                    fma(&mut sums, keys[j], &self.v[j * row + column..]);
                }
                state.copy_from_slice(&sums);
            }
        }
    }
}

#[inline(always)]
pub(super) fn fma<T: Real>(sums: &mut [T; LANES], factor: T, right: &[T]) {
    let right = &right[..LANES];
    for l in 0..LANES {
        sums[l] = factor.mul_add(right[l], sums[l]);
    }
}

/// Rows of queries that share what is loaded of the state.
const TILE: usize = 4;

/// Rows `i..i + R` of a chunk's output, a whole block of lanes at `column`.
#[inline(always)]
fn output_tile<T: Real, const R: usize>(
    i: usize,
    column: usize,
    shape: &Shape,
    chunk: &Chunk<'_, T>,
    state: &[T],
    y: &mut [T],
) {
    let (key, row) = (shape.key, shape.row());
    let mut sums = [[T::ZERO; LANES]; R];
    for d in 0..key {
        let state = &state[d * row + column..][..LANES];
        for r in 0..R {
            fma(&mut sums[r], chunk.qp[(i + r) * key + d], state);
        }
    }
    for j in 0..i + R {
        let v = &chunk.v[j * row + column..][..LANES];
        for r in 0..R {
            if j <= i + r {
                fma(&mut sums[r], chunk.scores[(i + r) * LANES + j], v);
            }
        }
    }
    let width = LANES.min(shape.value - column);
    for r in 0..R {
        y[(i + r) * shape.value + column..][..width].copy_from_slice(&sums[r][..width]);
    }
}

kernel! {
    /// The outputs of one (sequence, head), left at the front of `scratch`, and behind the results' place
    /// the state behind the last whole chunk, from that `before` or zeros; `qkv` and `alpha` begin with the
    /// sequence's rows.
    pub(super) fn forward_unit<'a, T: Real>(
        shape: Shape,
        head: usize,
        qkv: &'a [T],
        stride: usize,
        alpha: &'a [T],
        before: Option<&'a [T]>,
        scratch: &'a mut [T],
    ) {
        let (key, row) = (shape.key, shape.row());
        let (results, mut work) = scratch.split_at_mut(shape.results());
        let state = cut(&mut work, key * row);
        let mut chunk = Chunk::new(&shape, &mut work);
        match before {
            Some(before) => state.copy_from_slice(before),
            None => state.fill(T::ZERO),
        }
        let outputs = &mut results[..shape.sequence * shape.value];
        for (n, y) in outputs.chunks_mut(CHUNK * shape.value).enumerate() {
            chunk.read(&shape, head, n * CHUNK, qkv, stride, alpha);
            chunk.decay(key);
            for column in (0..shape.value).step_by(LANES) {
                let mut i = 0;
                while i + TILE <= chunk.c {
                    output_tile::<T, TILE>(i, column, &shape, &chunk, state, y);
                    i += TILE;
                }
                while i < chunk.c {
                    output_tile::<T, 1>(i, column, &shape, &chunk, state, y);
                    i += 1;
                }
            }
            // The tokens of a part of a chunk are given again, with those that follow.
            if chunk.c == CHUNK {
                chunk.advance(row, state);
            }
        }
    }
}
