//! Rotary positions (Su et al., "RoFormer", arXiv 2104.09864) in place on queries and keys.
//!
//! The pairing is the half-split one of Hugging Face's Llama: element `i` of a head turns with
//! element `i + head_dim / 2` by the angle `position * base^(-2 i / head_dim)`. Angles, sines and
//! cosines are formed in f64 through `libm` once and tabulated, so that no position's angle is
//! rounded to f32 before its sine is taken. The whole head rotates. A rotation's transpose is its
//! inverse, so the backward pass turns the gradients by the opposite angles.

use crate::nn::real::Real;
use crate::nn::stopwatch::{Part, Way, lap};
use exmy::parallel;
use exmy::simd::kernel;

/// The tabulated rotations of one head size, for all positions of a context.
#[derive(Clone, Debug)]
pub struct Rope<T> {
    /// (context, head_dim / 2).
    cos: Vec<T>,
    sin: Vec<T>,
    half: usize,
}

/// Rows of one piece of work.
const ROWS: usize = 64;

impl<T: Real> Rope<T> {
    /// Tables for positions `0..context`.
    ///
    /// # Panics
    /// If `head_dim` is odd or 0.
    pub fn new(context: usize, head_dim: usize, base: f64) -> Self {
        assert!(
            head_dim > 0 && head_dim.is_multiple_of(2),
            "rotary positions pair the elements of a head: its size {head_dim} must be even"
        );
        let half = head_dim / 2;
        let (mut cos, mut sin) = (Vec::new(), Vec::new());
        for position in 0..context {
            for i in 0..half {
                let frequency = libm::pow(base, -(2.0 * i as f64) / head_dim as f64);
                let (s, c) = libm::sincos(position as f64 * frequency);
                cos.push(T::from_f64(c));
                sin.push(T::from_f64(s));
            }
        }
        Self { cos, sin, half }
    }

    /// Rotates the first `heads` heads of each row of `x` (tokens, `width`); the token of row `r`
    /// stands at position `r % sequence`.
    ///
    /// # Panics
    /// If rows are narrower than the heads, or `sequence` is 0 or exceeds the context.
    pub fn forward(&self, x: &mut [T], width: usize, heads: usize, sequence: usize) {
        let _lap = lap(Part::Rope(Way::Forward));
        self.turn(x, width, heads, sequence, T::ONE);
    }

    /// Turns the gradients of [`forward`](Self::forward)'s output into those of its input.
    ///
    /// # Panics
    /// As [`forward`](Self::forward).
    pub fn backward(&self, dx: &mut [T], width: usize, heads: usize, sequence: usize) {
        let _lap = lap(Part::Rope(Way::Backward));
        self.turn(dx, width, heads, sequence, -T::ONE);
    }

    fn turn(&self, x: &mut [T], width: usize, heads: usize, sequence: usize, sign: T) {
        assert!(2 * self.half * heads <= width, "{heads} heads do not fit rows of {width}");
        let context = self.cos.len() / self.half;
        assert!(
            sequence > 0 && sequence <= context,
            "rotary positions are tabulated for sequences of 1 to {context} tokens, not {sequence}"
        );
        parallel::for_each_chunk(x, ROWS * width, |chunk, rows| {
            let first = chunk * ROWS;
            rotate(rows, width, heads, self.half, first, sequence, &self.cos, &self.sin, sign);
        });
    }
}

kernel! {
    /// `rows` are whole rows of `width`, the first of them token `first` of the batch.
    fn rotate<'a, T: Real>(
        rows: &'a mut [T],
        width: usize,
        heads: usize,
        half: usize,
        first: usize,
        sequence: usize,
        cos: &'a [T],
        sin: &'a [T],
        sign: T,
    ) {
        for (r, row) in rows.chunks_exact_mut(width).enumerate() {
            let at = (first + r) % sequence * half;
            let (cos, sin) = (&cos[at..at + half], &sin[at..at + half]);
            for head in row[..2 * half * heads].chunks_exact_mut(2 * half) {
                let (low, high) = head.split_at_mut(half);
                for (((a, b), &c), &s) in low.iter_mut().zip(high).zip(cos).zip(sin) {
                    let s = s * sign;
                    (*a, *b) = (*a * c - *b * s, *b * c + *a * s);
                }
            }
        }
    }
}
