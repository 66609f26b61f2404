//! Gated linear attention backward, a chunk at a time from the last to the first.
//!
//! With G the gradient of the state after the chunk, S that before it, `p_i` the product of the
//! decays up to token i, `D_ij` that of those after j up to i, `D_j` up to the chunk's end, and
//! `A_ij = q_i (D_ij ∘ k_j)` (queries scaled):
//!
//! ```text
//! dA_ij = dy_i v_j                      dv_j = sum over i >= j of A_ij dy_i + (D_j ∘ k_j) G
//! dq_i  = p_i ∘ (S dy_i) + sum over j <= i of dA_ij D_ij ∘ k_j
//! dk_j  = D_j ∘ (G v_j)  + sum over i >= j of dA_ij D_ij ∘ q_i
//! dga_t = p ∘ rowsum(G ∘ S) + sum over j < t of k_j ∘ D_j ∘ (G v_j)
//!       + sum over i >= t of q_i ∘ p_i ∘ (S dy_i)
//!       + sum over j < t <= i of dA_ij q_i ∘ D_ij ∘ k_j
//! G     = diag(p) G + sum over i of (q_i ∘ p_i)ᵀ dy_i
//! ```

// Loops over tokens and lanes of fixed number, indexed alike in several arrays, become vector code.
#![allow(clippy::needless_range_loop)]

use super::chunk::{Chunk, cut, fma};
use super::{CHUNK, Shape};
use crate::nn::real::{LANES, Real, sum_of_three};
use exmy::simd::kernel;

/// `out[e][i] = rows[i][e]`: (CHUNK, row) to (row, LANES), zeros for tokens that are not there.
#[inline(always)]
fn transpose<T: Real>(c: usize, row: usize, rows: &[T], out: &mut [T]) {
    out.fill(T::ZERO);
    for i in 0..c {
        for (out, &x) in out.chunks_exact_mut(LANES).zip(&rows[i * row..][..row]) {
            out[i] = x;
        }
    }
}

/// `out[r] = sum over e of rows[r][e] lanes[e]`: (n, row) times (row, LANES).
#[inline(always)]
fn by_lanes<T: Real>(row: usize, rows: &[T], lanes: &[T], out: &mut [T]) {
    for (out, x) in out.chunks_exact_mut(LANES).zip(rows.chunks_exact(row)) {
        let mut sums = [T::ZERO; LANES];
        for (&x, lanes) in x.iter().zip(lanes.chunks_exact(LANES)) {
            fma(&mut sums, x, lanes);
        }
        out.copy_from_slice(&sums);
    }
}

kernel! {
    /// Gradients of what [`super::chunk::forward_unit`] read, left in `scratch` as dV, dQ, dK and
    /// those of the decays' logarithms.
    pub(super) fn backward_unit<'a, T: Real>(
        shape: Shape,
        head: usize,
        qkv: &'a [T],
        stride: usize,
        alpha: &'a [T],
        dy: &'a [T],
        scratch: &'a mut [T],
    ) {
        let Shape { sequence, key, value, .. } = shape;
        let row = shape.row();
        let (mut results, mut work) = scratch.split_at_mut(shape.results());
        let dv = cut(&mut results, sequence * value);
        let dq = cut(&mut results, sequence * key);
        let dk = cut(&mut results, sequence * key);
        let dga = cut(&mut results, sequence * key);
        let states = cut(&mut work, (shape.chunks() + 1) * key * row);
        let mut chunk = Chunk::new(&shape, &mut work);
        let grad = cut(&mut work, CHUNK * row);
        let (v_lanes, grad_lanes) = (cut(&mut work, row * LANES), cut(&mut work, row * LANES));
        let (from_state, from_grad) = (cut(&mut work, key * LANES), cut(&mut work, key * LANES));
        let decays = cut(&mut work, CHUNK * key);

        // The states at the chunks' beginnings; behind them the place of G.
        states[..key * row].fill(T::ZERO);
        for n in 0..shape.chunks() - 1 {
            chunk.read(&shape, head, n * CHUNK, qkv, stride, alpha);
            chunk.decay(key);
            let (done, next) = states.split_at_mut((n + 1) * key * row);
            next[..key * row].copy_from_slice(&done[n * key * row..]);
            chunk.advance(row, &mut next[..key * row]);
        }
        let (states, g) = states.split_at_mut(shape.chunks() * key * row);
        g.fill(T::ZERO);
        grad.fill(T::ZERO);

        for n in (0..shape.chunks()).rev() {
            let first = n * CHUNK;
            let state = &states[n * key * row..][..key * row];
            chunk.read(&shape, head, first, qkv, stride, alpha);
            chunk.decay(key);
            let c = chunk.c;
            for i in 0..c {
                let dy = &dy[(first + i) * shape.values() + head * value..][..value];
                grad[i * row..][..value].copy_from_slice(dy);
            }
            transpose(c, row, chunk.v, v_lanes);
            transpose(c, row, grad, grad_lanes);
            by_lanes(row, state, grad_lanes, from_state);
            by_lanes(row, g, v_lanes, from_grad);
            let mut d_scores = [T::ZERO; CHUNK * LANES];
            by_lanes(row, &grad[..c * row], v_lanes, &mut d_scores[..c * LANES]);

            values(c, &shape, &chunk, grad, g, &mut dv[first * value..][..c * value]);
            let dq = &mut dq[first * key..][..c * key];
            let dk = &mut dk[first * key..][..c * key];
            let dga = &mut dga[first * key..][..c * key];
            within(key, &chunk, &d_scores, decays, dq, dk, dga);
            across(key, &chunk, from_state, from_grad, decays, dq, dk, dga);
            for (d, (g, state)) in g.chunks_exact(row).zip(state.chunks_exact(row)).enumerate() {
                let whole = chunk.p[d] * sum_of_three(g, state, g, |g, s, _| g * s);
                for dga in dga.chunks_exact_mut(key) {
                    dga[d] += whole;
                }
            }
            for (d, g) in g.chunks_exact_mut(row).enumerate() {
                for (column, g) in (0..).step_by(LANES).zip(g.chunks_exact_mut(LANES)) {
                    let mut sums = [T::ZERO; LANES];
                    for l in 0..LANES {
                        sums[l] = g[l] * chunk.p[d];
                    }
                    for i in 0..c {
                        fma(&mut sums, chunk.qp[i * key + d], &grad[i * row + column..]);
                    }
                    g.copy_from_slice(&sums);
                }
            }
        }
    }
}

/// dV of a chunk.
#[inline(always)]
fn values<T: Real>(
    c: usize,
    shape: &Shape,
    chunk: &Chunk<'_, T>,
    grad: &[T],
    g: &[T],
    dv: &mut [T],
) {
    let (value, row) = (shape.value, shape.row());
    for (j, dv) in dv.chunks_exact_mut(value).enumerate() {
        for (column, dv) in (0..).step_by(LANES).zip(dv.chunks_mut(LANES)) {
            let mut sums = [T::ZERO; LANES];
            for i in j..c {
                fma(&mut sums, chunk.scores[i * LANES + j], &grad[i * row + column..]);
            }
            for d in 0..shape.key {
                fma(&mut sums, chunk.decayed[d * LANES + j], &g[d * row + column..]);
            }
            dv.copy_from_slice(&sums[..dv.len()]);
        }
    }
}

/// The terms of dQ, dK and dga between tokens of the chunk; leaves `D_j` in `decays`.
#[inline(always)]
fn within<T: Real>(
    key: usize,
    chunk: &Chunk<'_, T>,
    d_scores: &[T],
    decays: &mut [T],
    dq: &mut [T],
    dk: &mut [T],
    dga: &mut [T],
) {
    dq.fill(T::ZERO);
    dk.fill(T::ZERO);
    dga.fill(T::ZERO);
    for i in 0..chunk.c {
        decays[i * key..][..key].fill(T::ONE);
        for first in (0..key).step_by(LANES) {
            if first + LANES <= key {
                within_row::<T, true>(i, first, key, chunk, d_scores, decays, dq, dk, dga);
            } else {
                within_row::<T, false>(i, first, key, chunk, d_scores, decays, dq, dk, dga);
            }
        }
    }
}

/// What token `i` adds, for the block of channels from `first` on, a whole one if `FULL`.
#[inline(always)]
fn within_row<T: Real, const FULL: bool>(
    i: usize,
    first: usize,
    key: usize,
    chunk: &Chunk<'_, T>,
    d_scores: &[T],
    decays: &mut [T],
    dq: &mut [T],
    dk: &mut [T],
    dga: &mut [T],
) {
    let width = if FULL { LANES } else { key - first };
    let own = i * key + first;
    let (q, alpha) = (&chunk.q[own..][..width], &chunk.alpha[own..][..width]);
    let (mut total, mut running) = ([T::ZERO; LANES], [T::ZERO; LANES]);
    total[..width].copy_from_slice(&dq[own..][..width]);
    for j in 0..=i {
        let at = j * key + first;
        let k = &chunk.k[at..][..width];
        let (decay, dk) = (&mut decays[at..][..width], &mut dk[at..][..width]);
        let score = d_scores[i * LANES + j];
        for l in 0..width {
            if j < i {
                decay[l] *= alpha[l];
            }
            let share = score * decay[l];
            total[l] = share.mul_add(k[l], total[l]);
            dk[l] = share.mul_add(q[l], dk[l]);
            running[l] = (share * q[l]).mul_add(k[l], running[l]);
        }
        // The decays of the tokens after j up to i act on this product and all before it.
        if j < i {
            let dga = &mut dga[at + key..][..width];
            for l in 0..width {
                dga[l] += running[l];
            }
        }
    }
    dq[own..][..width].copy_from_slice(&total[..width]);
}

/// The terms of dQ, dK and dga by way of the states; takes the scale of the queries out of dQ.
#[inline(always)]
fn across<T: Real>(
    key: usize,
    chunk: &Chunk<'_, T>,
    from_state: &[T],
    from_grad: &[T],
    decays: &[T],
    dq: &mut [T],
    dk: &mut [T],
    dga: &mut [T],
) {
    let scale = T::ONE / T::from_f64(key as f64).sqrt();
    for d in 0..key {
        let mut p = T::ONE;
        let mut before = T::ZERO;
        for t in 0..chunk.c {
            let at = t * key + d;
            p *= chunk.alpha[at];
            dq[at] = scale * p.mul_add(from_state[d * LANES + t], dq[at]);
            dga[at] += before;
            let through = decays[at] * from_grad[d * LANES + t];
            dk[at] += through;
            before = chunk.k[at].mul_add(through, before);
        }
        let mut after = T::ZERO;
        for t in (0..chunk.c).rev() {
            let at = t * key + d;
            after = chunk.qp[at].mul_add(from_state[d * LANES + t], after);
            dga[at] += after;
        }
    }
}
