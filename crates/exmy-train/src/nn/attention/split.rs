//! Causal attention in three steps, for recipes that round what passes between them.
//!
//! Scores, softmax, values, and back; each step leaves its result whole, `(batch, heads, sequence,
//! row)` as the probabilities of [`attention`](super::attention()), zeros after each row's own
//! position. A rounding between the steps is passed straight through: the softmax's slope is taken
//! at the probabilities as they are kept. Unrounded, the results differ from the closed form's by
//! the order of sums. Sequences are what threads divide.

use super::Shape;
use crate::nn::real::{Real, largest, sum, sum_of_three};
use crate::nn::stopwatch::{Direction, Part, lap};
use exmy::parallel;
use exmy::simd::kernel;

/// Where a head's queries, keys and values begin in a row.
fn columns(shape: &Shape, h: usize) -> [usize; 3] {
    let (hd, kv) = (shape.head_dim, h / (shape.heads / shape.kv_heads));
    [h * hd, (shape.heads + kv) * hd, (shape.heads + shape.kv_heads + kv) * hd]
}

/// Elements of the scores of one sequence.
const fn square(shape: &Shape) -> usize {
    shape.heads * shape.sequence * shape.row()
}

/// `s[i][j] = q_i k_j / sqrt(hd)` for `j <= i`.
pub(crate) fn scores<T: Real>(shape: &Shape, qkv: &[T], s: &mut [T]) {
    let _lap = lap(Part::Attention(Direction::Forward));
    let rows = shape.sequence * shape.qkv_width();
    let scale = T::ONE / T::from_f64(shape.head_dim as f64).sqrt();
    parallel::for_each_chunk(s, square(shape), |b, s| {
        let qkv = &qkv[b * rows..][..rows];
        for (h, s) in s.chunks_mut(shape.sequence * shape.row()).enumerate() {
            let [q, k, _] = columns(shape, h);
            dots(*shape, &qkv[q..], &qkv[k..], [shape.qkv_width(); 2], scale, s);
        }
    });
}

kernel! {
    /// `out[i][j] = scale sum over d of a[i][d] b[j][d]` for `j <= i`, else 0.
    fn dots<'a, T: Real>(
        shape: Shape,
        a: &'a [T],
        b: &'a [T],
        strides: [usize; 2],
        scale: T,
        out: &'a mut [T],
    ) {
        let hd = shape.head_dim;
        for (i, out) in out.chunks_exact_mut(shape.row()).enumerate() {
            let a = &a[i * strides[0]..][..hd];
            out.fill(T::ZERO);
            for (j, out) in out[..=i].iter_mut().enumerate() {
                let b = &b[j * strides[1]..][..hd];
                *out = sum_of_three(a, b, a, |a, b, _| a * b) * scale;
            }
        }
    }
}

/// Scores into probabilities, in place.
pub(crate) fn softmax<T: Real>(shape: &Shape, s: &mut [T]) {
    let _lap = lap(Part::Attention(Direction::Forward));
    parallel::for_each_chunk(s, square(shape), |_, s| softmax_rows(*shape, s));
}

kernel! {
    fn softmax_rows<'a, T: Real>(shape: Shape, s: &'a mut [T]) {
        for (i, row) in s.chunks_exact_mut(shape.row()).enumerate() {
            let (seen, after) = row.split_at_mut(i % shape.sequence + 1);
            let most = largest(seen);
            seen.iter_mut().for_each(|s| *s = (*s - most).exp());
            let inverse = T::ONE / sum(seen, |s| s);
            seen.iter_mut().for_each(|s| *s *= inverse);
            after.fill(T::ZERO);
        }
    }
}

/// `y_i = sum over j <= i of p[i][j] v_j`.
pub(crate) fn values<T: Real>(shape: &Shape, qkv: &[T], p: &[T], y: &mut [T]) {
    let _lap = lap(Part::Attention(Direction::Forward));
    let (rows, square) = (shape.sequence * shape.qkv_width(), square(shape));
    parallel::for_each_chunk(y, shape.sequence * shape.width(), |b, y| {
        y.fill(T::ZERO);
        for (h, p) in p[b * square..][..square].chunks(square / shape.heads).enumerate() {
            let [q, _, v] = columns(shape, h);
            let strides = [shape.qkv_width(), shape.width()];
            sums(*shape, p, false, T::ONE, &qkv[b * rows + v..], &mut y[q..], strides);
        }
    });
}

kernel! {
    /// `out[i] += scale sum over j <= i of p[i][j] x[j]`, or with `transposed`
    /// `out[j] += scale sum over i >= j of p[i][j] x[i]`; rows of x and out of these strides.
    fn sums<'a, T: Real>(
        shape: Shape,
        p: &'a [T],
        transposed: bool,
        scale: T,
        x: &'a [T],
        out: &'a mut [T],
        strides: [usize; 2],
    ) {
        let hd = shape.head_dim;
        for (i, p) in p.chunks_exact(shape.row()).enumerate() {
            for (j, &p) in p[..=i].iter().enumerate() {
                let (from, to) = if transposed { (i, j) } else { (j, i) };
                let out = &mut out[to * strides[1]..][..hd];
                for (out, &x) in out.iter_mut().zip(&x[from * strides[0]..][..hd]) {
                    *out = (p * scale).mul_add(x, *out);
                }
            }
        }
    }
}

/// dV into `dqkv`, whose other columns become 0, and dP.
pub(crate) fn values_backward<T: Real>(
    shape: &Shape,
    qkv: &[T],
    p: &[T],
    dy: &[T],
    dqkv: &mut [T],
    dp: &mut [T],
) {
    let _lap = lap(Part::Attention(Direction::Backward));
    let (width, out, square) = (shape.qkv_width(), shape.width(), square(shape));
    let rows = shape.sequence * width;
    let parts = dqkv.chunks_mut(rows).zip(dp.chunks_mut(square));
    parallel::for_each(parts, |b, (dqkv, dp)| {
        dqkv.fill(T::ZERO);
        let dy = &dy[b * shape.sequence * out..];
        for (h, dp) in dp.chunks_mut(square / shape.heads).enumerate() {
            let [q, _, v] = columns(shape, h);
            let p = &p[b * square..][h * square / shape.heads..][..square / shape.heads];
            sums(*shape, p, true, T::ONE, &dy[q..], &mut dqkv[v..], [out, width]);
            dots(*shape, &dy[q..], &qkv[b * rows + v..], [out, width], T::ONE, dp);
        }
    });
}

/// dP into the gradient of the scores, in place.
pub(crate) fn softmax_backward<T: Real>(shape: &Shape, p: &[T], d: &mut [T]) {
    let _lap = lap(Part::Attention(Direction::Backward));
    let square = square(shape);
    parallel::for_each_chunk(d, square, |b, d| {
        softmax_backward_rows(*shape, &p[b * square..][..square], d);
    });
}

kernel! {
    fn softmax_backward_rows<'a, T: Real>(shape: Shape, p: &'a [T], d: &'a mut [T]) {
        let rows = p.chunks_exact(shape.row()).zip(d.chunks_exact_mut(shape.row()));
        for (i, (p, d)) in rows.enumerate() {
            let seen = i % shape.sequence + 1;
            let (p, d) = (&p[..seen], &mut d[..seen]);
            let mean = sum_of_three(p, d, p, |p, d, _| p * d);
            for (d, &p) in d.iter_mut().zip(p) {
                *d = p * (*d - mean);
            }
        }
    }
}

/// dQ and dK into `dqkv`, from the gradient of the scores.
pub(crate) fn scores_backward<T: Real>(shape: &Shape, qkv: &[T], ds: &[T], dqkv: &mut [T]) {
    let _lap = lap(Part::Attention(Direction::Backward));
    let (width, square) = (shape.qkv_width(), square(shape));
    let rows = shape.sequence * width;
    let scale = T::ONE / T::from_f64(shape.head_dim as f64).sqrt();
    parallel::for_each_chunk(dqkv, rows, |b, dqkv| {
        let qkv = &qkv[b * rows..][..rows];
        for (h, ds) in ds[b * square..][..square].chunks(square / shape.heads).enumerate() {
            let [q, k, _] = columns(shape, h);
            sums(*shape, ds, false, scale, &qkv[k..], &mut dqkv[q..], [width; 2]);
            sums(*shape, ds, true, scale, &qkv[q..], &mut dqkv[k..], [width; 2]);
        }
    });
}
