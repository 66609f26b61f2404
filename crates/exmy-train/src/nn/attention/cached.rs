//! Attention of new tokens to all before them, whose keys and values are in a cache.
//!
//! A new token's output is that of its row in [`attention`](super::attention()) of the whole sequence, bit
//! for bit: each element is the same chain in the same order. The cache has rows k|v, `(tokens, 2 kv_heads *
//! head_dim)`. Work is divided over (token, head).

// Lanes of fixed number, indexed alike in several arrays, become vector code.
#![allow(clippy::needless_range_loop)]

use super::Shape;
use super::causal::{Rows, fma, lanes, softmax_row};
use crate::nn::real::{LANES, Real};
use crate::nn::stopwatch::{Direction, Part, lap};
use exmy::parallel;
use exmy::simd::kernel;

/// `y` (tokens, heads * head_dim) of the last `shape.sequence` of the tokens in `cache`, one sequence, from
/// their queries in `qkv` (tokens, qkv_width).
///
/// # Panics
/// If `shape` has several sequences, `qkv` or `y` not its size, or `cache` no whole rows or fewer than it.
pub fn attention_cached<T: Real>(shape: &Shape, qkv: &[T], cache: &[T], y: &mut [T]) {
    let _lap = lap(Part::Attention(Direction::Forward));
    let (n, hd) = (shape.sequence, shape.head_dim);
    let width = 2 * shape.kv_heads * hd;
    shape.check([
        ("batch", shape.batch, 1),
        ("qkv", qkv.len(), n * shape.qkv_width()),
        ("y", y.len(), n * shape.width()),
    ]);
    if y.is_empty() {
        return;
    }
    let tokens = cache.len() / width;
    assert!(
        cache.len().is_multiple_of(width) && tokens >= n,
        "a cache of {} elements has no rows of {width} for {n} tokens",
        cache.len()
    );
    let row = tokens.next_multiple_of(LANES);
    let mut rows = vec![T::ZERO; parallel::threads().min(n * shape.heads) * row];
    parallel::for_each_chunk_with((y, hd), (&mut rows, row), |unit, y, p| {
        let (i, head) = (unit / shape.heads, unit % shape.heads);
        let q = &qkv[i * shape.qkv_width() + head * hd..][..hd];
        let k = Rows { data: &cache[head / shape.group() * hd..], stride: width };
        let v = Rows { data: &k.data[shape.kv_heads * hd..], ..k };
        one(tokens - n + i, q, k, v, p, y);
    });
}

kernel! {
    /// One head of the token at `position`, with its probabilities in `p`.
    fn one<'a, T: Real>(
        position: usize,
        q: &'a [T],
        k: Rows<'a, T>,
        v: Rows<'a, T>,
        p: &'a mut [T],
        y: &'a mut [T],
    ) {
        let hd = q.len();
        let scale = T::ONE / T::from_f64(hd as f64).sqrt();
        let end = (position + 1).next_multiple_of(LANES);
        for j in (0..end).step_by(LANES) {
            // Keys after the token's own stand for nothing: the last is taken again.
            let mut keys: [&[T]; LANES] = [&[]; LANES];
            for l in 0..LANES {
                keys[l] = k.row((j + l).min(position), hd);
            }
            let mut sums = [T::ZERO; LANES];
            for d in 0..hd {
                for l in 0..LANES {
                    sums[l] = q[d].mul_add(keys[l][d], sums[l]);
                }
            }
            p[j..j + LANES].copy_from_slice(&sums);
        }
        let row = p.len();
        softmax_row(position, row, p, scale);
        for c in (0..hd).step_by(LANES) {
            let width = LANES.min(hd - c);
            let mut sums = [T::ZERO; LANES];
            for j in 0..=position {
                let values = &v.row(j, hd)[c..];
                let values = match width {
                    LANES => lanes::<T, true>(values),
                    _ => lanes::<T, false>(values),
                };
                fma(&mut sums, p[j], &values);
            }
            y[c..c + width].copy_from_slice(&sums[..width]);
        }
    }
}
