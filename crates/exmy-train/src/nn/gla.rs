//! Gated linear attention (Yang et al., arXiv 2312.06635): a state that decays by gates of its own.
//!
//! For each head, with the decay `α_t` in (0, 1) of each key channel and `c = hk^(-1/2)`:
//!
//! ```text
//! S_t = diag(α_t) S_(t-1) + k_tᵀ v_t        S_0 = 0, (hk, hv)
//! y_t = c q_t S_t
//! ```
//!
//! [`recurrence`] is these two lines and the reference; [`gla`] computes the same in chunks of
//! sixteen tokens. Within a chunk it uses the triangle of scores `q_i (D_ij ∘ k_j)`, with `D_ij` the
//! product of the decays after j up to i; across chunks it uses the state. The decays enter as products
//! of numbers below 1 and never as quotients or as exponentials of sums, so no gate overflows, however
//! closed. Where `exp(-sum)` of the usual chunked form is infinite, a key has merely decayed to 0.
//!
//! Both forms add the same products `q D k v`, so they differ by rounding alone. At position t that is at
//! most `2 (2 t + hk + 8) u` times the sum of the magnitudes of these products, with `u` half the distance
//! from 1 to the next number.
//!
//! A sequence may come in parts: with the state behind its last whole chunk, and the tokens since then given
//! again, outputs have the bits of one call over all of it. A token never costs more than a chunk.
//!
//! The backward pass forms the states at the chunks' beginnings anew (nothing is kept by layer) and
//! takes the gradient of a decay's logarithm as `α_t rowsum(dS_t ∘ S_(t-1))`, expanded within the chunk. The
//! shorter `sum over i >= t of (q_i dq_i - k_i dk_i)` cancels.
//!
//! Work is divided over (sequence, head), a few of them at a time, so that the working memory does
//! not grow with the batch. Orders of summation: over tokens of a chunk, over key
//! channels and over value channels ascending, each a chain of fused multiply-adds; the dot of a row
//! of dS with one of S in sixteen lanes. They do not depend on threads or SIMD level.

mod backward;
mod chunk;
mod gates;

pub use gates::{decay, decay_backward, swish_gate, swish_gate_backward};

use crate::nn::attention::{of_sequence, parts};
use crate::nn::real::{LANES, Real};
use crate::nn::stopwatch::{Direction, Part, lap};
use backward::backward_unit;
use chunk::forward_unit;
use exmy::parallel;

/// Tokens of a chunk: one for each lane.
pub const CHUNK: usize = LANES;

/// The sizes of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Sequences.
    pub batch: usize,
    /// Tokens of each.
    pub sequence: usize,
    /// Heads.
    pub heads: usize,
    /// Elements of a head's queries and keys.
    pub key: usize,
    /// Elements of a head's values.
    pub value: usize,
}

impl Shape {
    /// Columns of the queries, of the keys and of the decays.
    pub const fn keys(&self) -> usize {
        self.heads * self.key
    }

    /// Columns of the values and of the output.
    pub const fn values(&self) -> usize {
        self.heads * self.value
    }

    /// Columns of q|k|v.
    pub const fn qkv_width(&self) -> usize {
        2 * self.keys() + self.values()
    }

    /// A head's values, padded to whole blocks of lanes.
    pub const fn row(&self) -> usize {
        self.value.next_multiple_of(LANES)
    }

    const fn chunks(&self) -> usize {
        self.sequence.div_ceil(CHUNK)
    }

    /// Elements of the states of all sequences and heads, (batch, heads, key, [`row`](Self::row)).
    pub const fn states(&self) -> usize {
        self.batch * self.heads * self.state()
    }

    const fn state(&self) -> usize {
        self.key * self.row()
    }

    /// Elements of working memory for either pass with which all threads have work. With less fewer
    /// have, down to one with the memory of a (sequence, head).
    pub fn scratch(&self) -> usize {
        parallel::at_once(self.batch * self.heads, self.unit()) * self.unit()
    }

    /// How many (sequence, head) working memory has space for.
    #[track_caller]
    fn at_once(&self, scratch: usize) -> usize {
        let one = self.unit();
        assert!(scratch >= one, "scratch has {scratch} elements, {self:?} needs {one}");
        scratch / one
    }

    /// Results of one (sequence, head): the outputs, or dV, dQ, dK and those of the decays.
    const fn results(&self) -> usize {
        self.sequence * (self.value + 3 * self.key)
    }

    /// Of one (sequence, head): the results, the state, that of each chunk's beginning, a chunk.
    pub const fn unit(&self) -> usize {
        self.results() + (self.chunks() + 1) * self.state() + chunk::size(self)
    }

    #[track_caller]
    fn check(&self, stride: usize, sizes: [(&str, usize, usize); 3]) {
        assert!(stride >= self.qkv_width(), "rows of {stride} cannot hold q, k, v of {self:?}");
        for (name, found, expected) in sizes {
            assert!(found == expected, "{name} has {found} elements, {self:?} needs {expected}");
        }
    }
}

/// `y` (tokens, values) from the columns q|k|v at the beginning of rows of `stride` elements and
/// the decays `alpha` (tokens, keys).
///
/// The sequences begin at zero, or, with `states` that are not empty, at these, which become those behind the
/// sequences' last whole chunks.
///
/// # Panics
/// If a slice's length is not the one `shape` gives, or `scratch` has less space than for a
/// (sequence, head).
pub fn gla<T: Real>(
    shape: &Shape,
    qkv: &[T],
    stride: usize,
    alpha: &[T],
    y: &mut [T],
    states: &mut [T],
    scratch: &mut [T],
) {
    let _lap = lap(Part::Recurrence(Direction::Forward));
    let (held, carries) = (shape.states(), !states.is_empty());
    assert!(!carries || states.len() == held, "{} states, {shape:?} has {held}", states.len());
    let tokens = shape.batch * shape.sequence;
    shape.check(
        stride,
        [
            ("qkv", qkv.len(), tokens * stride),
            ("alpha", alpha.len(), tokens * shape.keys()),
            ("y", y.len(), tokens * shape.values()),
        ],
    );
    if tokens == 0 || shape.values() == 0 || shape.keys() == 0 {
        y.fill(T::ZERO);
        return;
    }
    let (out, unit_len, heads) = (shape.sequence * shape.values(), shape.unit(), shape.heads);
    let state = shape.state();
    for units in parts(shape.batch * heads, shape.at_once(scratch.len())) {
        let scratch = &mut scratch[..units.len() * unit_len];
        let before = &*states;
        parallel::for_each_chunk(scratch, unit_len, |unit, scratch| {
            let (b, head) = ((units.start + unit) / heads, (units.start + unit) % heads);
            let qkv = &qkv[b * shape.sequence * stride..][..shape.sequence * stride];
            let alpha = &alpha[b * shape.sequence * shape.keys()..];
            let before = carries.then(|| &before[(units.start + unit) * state..][..state]);
            forward_unit(*shape, head, qkv, stride, alpha, before, scratch);
        });
        let scratch = &*scratch;
        if carries && shape.sequence >= CHUNK {
            let behind = states[units.start * state..].chunks_exact_mut(state);
            for (to, unit) in behind.zip(scratch.chunks_exact(unit_len)) {
                to.copy_from_slice(&unit[shape.results()..][..state]);
            }
        }
        let sequences = units.start / heads..units.end.div_ceil(heads);
        let y = &mut y[sequences.start * out..sequences.end * out];
        parallel::for_each_chunk(y, out, |b, y| {
            for (unit, head) in of_sequence(&units, sequences.start + b, heads) {
                let unit = &scratch[unit * unit_len..];
                scatter(unit, shape.sequence, shape.value, y, shape.values(), head * shape.value);
            }
        });
    }
}

/// From `dy` the gradients of q|k|v, over the same columns of `dqkv`, and those of the decays'
/// logarithms, `dga` (tokens, keys), both overwritten.
///
/// # Panics
/// As [`gla`].
pub fn gla_backward<T: Real>(
    shape: &Shape,
    qkv: &[T],
    stride: usize,
    alpha: &[T],
    dy: &[T],
    dqkv: &mut [T],
    dga: &mut [T],
    scratch: &mut [T],
) {
    let _lap = lap(Part::Recurrence(Direction::Backward));
    let tokens = shape.batch * shape.sequence;
    shape.check(
        stride,
        [
            ("qkv", qkv.len(), tokens * stride),
            ("alpha", alpha.len(), tokens * shape.keys()),
            ("dy", dy.len(), tokens * shape.values()),
        ],
    );
    assert_eq!(dqkv.len(), qkv.len(), "dqkv has the elements of qkv");
    assert_eq!(dga.len(), alpha.len(), "dga has the elements of alpha");
    if tokens == 0 || shape.values() == 0 || shape.keys() == 0 {
        return;
    }
    let (sequence, keys) = (shape.sequence, shape.keys());
    let (unit_len, heads) = (shape.unit(), shape.heads);
    let (rows, decays) = (sequence * stride, sequence * keys);
    for units in parts(shape.batch * heads, shape.at_once(scratch.len())) {
        let scratch = &mut scratch[..units.len() * unit_len];
        parallel::for_each_chunk(scratch, unit_len, |unit, scratch| {
            let (b, head) = ((units.start + unit) / heads, (units.start + unit) % heads);
            let qkv = &qkv[b * rows..][..rows];
            let alpha = &alpha[b * decays..];
            let dy = &dy[b * sequence * shape.values()..];
            backward_unit(*shape, head, qkv, stride, alpha, dy, scratch);
        });
        let scratch = &*scratch;
        let sequences = units.start / heads..units.end.div_ceil(heads);
        let dqkv = &mut dqkv[sequences.start * rows..sequences.end * rows];
        let dga = &mut dga[sequences.start * decays..sequences.end * decays];
        parallel::for_each_chunk_of_two((dqkv, rows), (dga, decays), |b, dqkv, dga| {
            for (unit, head) in of_sequence(&units, sequences.start + b, heads) {
                let unit = &scratch[unit * unit_len..];
                let (dv, rest) = unit.split_at(sequence * shape.value);
                let (dq, rest) = rest.split_at(sequence * shape.key);
                let (dk, dga_unit) = rest.split_at(sequence * shape.key);
                let column = head * shape.key;
                scatter(dq, sequence, shape.key, dqkv, stride, column);
                scatter(dk, sequence, shape.key, dqkv, stride, keys + column);
                scatter(dv, sequence, shape.value, dqkv, stride, 2 * keys + head * shape.value);
                scatter(dga_unit, sequence, shape.key, dga, keys, column);
            }
        });
    }
}

/// Copies the dense rows (sequence, width) of a head to `column` and the following of rows of
/// `stride`.
fn scatter<T: Real>(
    dense: &[T],
    sequence: usize,
    width: usize,
    rows: &mut [T],
    stride: usize,
    column: usize,
) {
    for (row, values) in rows.chunks_mut(stride).zip(dense.chunks(width)).take(sequence) {
        row[column..][..width].copy_from_slice(values);
    }
}

/// The definition, token by token: as [`gla`], in another order, on the calling thread.
///
/// # Panics
/// If a slice's length is not the one `shape` gives.
pub fn recurrence<T: Real>(shape: &Shape, qkv: &[T], stride: usize, alpha: &[T], y: &mut [T]) {
    let Shape { batch, sequence, heads, key, value } = *shape;
    let tokens = batch * sequence;
    shape.check(
        stride,
        [
            ("qkv", qkv.len(), tokens * stride),
            ("alpha", alpha.len(), tokens * shape.keys()),
            ("y", y.len(), tokens * shape.values()),
        ],
    );
    let scale = T::ONE / T::from_f64(key as f64).sqrt();
    for (b, head) in (0..batch).flat_map(|b| (0..heads).map(move |head| (b, head))) {
        let mut state = vec![T::ZERO; key * value];
        for token in b * sequence..(b + 1) * sequence {
            let row = &qkv[token * stride..][..stride];
            let q = &row[head * key..][..key];
            let k = &row[shape.keys() + head * key..][..key];
            let v = &row[2 * shape.keys() + head * value..][..value];
            let alpha = &alpha[token * shape.keys() + head * key..][..key];
            let y = &mut y[token * shape.values() + head * value..][..value];
            y.fill(T::ZERO);
            for (d, state) in state.chunks_mut(value).enumerate() {
                let query = q[d] * scale;
                for ((y, state), &v) in y.iter_mut().zip(state).zip(v) {
                    *state = k[d].mul_add(v, alpha[d] * *state);
                    *y = query.mul_add(*state, *y);
                }
            }
        }
    }
}
