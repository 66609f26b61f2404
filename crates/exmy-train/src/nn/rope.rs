//! Rotary positions (Su et al., "RoFormer", arXiv 2104.09864) in place on queries and keys.
//!
//! The pairing is the half-split one of Hugging Face's Llama: element `i` of a head turns with
//! element `i + head_dim / 2` by the angle `position * base^(-2 i / head_dim)`, or a smaller one by a
//! [`Scaling`]. Angles, sines and cosines are formed in f64 through `libm` once and tabulated, so that no
//! position's angle is rounded to f32 before its sine is taken. The whole head rotates. A rotation's
//! transpose is its inverse, so the backward pass turns the gradients by the opposite angles.

use crate::nn::real::Real;
use crate::nn::stopwatch::{Direction, Part, lap};
use exmy::parallel;
use exmy::simd::kernel;
use serde::{Deserialize, Serialize};

/// Rows of one piece of work.
const ROWS: usize = 64;

/// How rotations are slowed down for sequences longer than a model was first trained on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Scaling {
    /// They are not.
    #[default]
    None,
    /// All by one factor (arXiv 2306.15595).
    Linear {
        /// What angles are divided by.
        factor: f64,
    },
    /// Llama 3.1's, as its reference implementation has it. Pairs that turn at most `low` times in the
    /// original context are slowed down by the factor, those that turn at least `high` times are not, and in
    /// between the frequencies are interpolated.
    Llama3 {
        /// What the angles of slow pairs are divided by.
        factor: f64,
        /// Turns in the original context (`low_freq_factor`).
        low: f64,
        /// Turns in the original context (`high_freq_factor`); above `low`.
        high: f64,
        /// The context at first (`original_max_position_embeddings`).
        context: f64,
    },
}

impl Scaling {
    /// What a frequency, in radians a token, becomes.
    pub fn of(self, frequency: f64) -> f64 {
        match self {
            Self::None => frequency,
            Self::Linear { factor } => frequency / factor,
            Self::Llama3 { factor, low, high, context } => {
                let turns = context * frequency / (2.0 * core::f64::consts::PI);
                let smooth = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                (1.0 - smooth) * frequency / factor + smooth * frequency
            }
        }
    }
}

/// Radians a token of each pair of a head's elements, the fastest first.
///
/// # Panics
/// If `head_dim` is odd or 0.
pub fn frequencies(head_dim: usize, base: f64, scaling: Scaling) -> Vec<f64> {
    assert!(
        head_dim > 0 && head_dim.is_multiple_of(2),
        "rotary positions pair the elements of a head: its size {head_dim} must be even"
    );
    let frequency = |i: usize| libm::pow(base, -(2.0 * i as f64) / head_dim as f64);
    (0..head_dim / 2).map(frequency).map(|frequency| scaling.of(frequency)).collect()
}

/// Cosines and sines of positions `0..context`, each (context, half a head).
pub fn tables<T: Real>(context: usize, frequencies: &[f64]) -> [Vec<T>; 2] {
    let [mut cos, mut sin] = [(); 2].map(|()| Vec::with_capacity(context * frequencies.len()));
    for position in 0..context {
        for frequency in frequencies {
            let (s, c) = libm::sincos(position as f64 * frequency);
            cos.push(T::from_f64(c));
            sin.push(T::from_f64(s));
        }
    }
    [cos, sin]
}

/// Rotates the first `heads` heads, of twice `half` elements, of each row of `x` (tokens, `width`), or
/// (backward) turns gradients of the result into those of `x`. The token of row `r` stands at position
/// `r % sequence`; the [`tables`] are those of its context.
///
/// # Panics
/// If rows are narrower than the heads, or `sequence` is 0 or exceeds the context.
pub fn rotate<T: Real>(
    x: &mut [T],
    [width, heads, half]: [usize; 3],
    sequence: usize,
    [cos, sin]: [&[T]; 2],
    direction: Direction,
) {
    let _lap = lap(Part::Rope(direction));
    assert!(2 * half * heads <= width, "{heads} heads do not fit rows of {width}");
    let context = cos.len() / half;
    assert!(
        sequence > 0 && sequence <= context,
        "rotary positions are tabulated for sequences of 1 to {context} tokens, not {sequence}"
    );
    let sign = if direction == Direction::Forward { T::ONE } else { -T::ONE };
    parallel::for_each_chunk(x, ROWS * width, |chunk, rows| {
        rotate_rows(rows, width, heads, half, chunk * ROWS, sequence, cos, sin, sign);
    });
}

kernel! {
    /// `rows` are whole rows of `width`, the first of them token `first` of the batch.
    fn rotate_rows<'a, T: Real>(
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
