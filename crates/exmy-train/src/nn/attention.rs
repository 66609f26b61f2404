//! Causal softmax attention with grouped heads, forward and backward.
//!
//! "Attention is all you need" (arXiv 1706.03762), section 3.2.1, `softmax(Q Kᵀ / sqrt(hd)) V`,
//! each position attending to itself and what precedes it; `heads / kv_heads` adjacent query heads
//! share a key and a value head (arXiv 2305.13245: grouped, with one key head multi-query). Queries,
//! keys and values lie in the rows of one matrix as the group q|k|v writes them:
//! `(tokens, (heads + 2 kv_heads) * head_dim)`.
//!
//! Orders of summation, the same for any number of threads and any SIMD level. Every element of
//! a product is one chain of fused multiply-adds from +0, in ascending order. Scores add over the
//! head's dimensions, outputs and dQ over positions `0..=i`; dK and dV over the query heads of the
//! group and within each over positions `j..`. Sums along a row of probabilities run in sixteen
//! partial sums (position mod 16), folded by halves. The backward pass of softmax sums `p dP` along a
//! row, as its definition has it; flash attention (arXiv 2307.08691, algorithm 2) sums `dO O` over the
//! head's dimensions, which is the same number with other last bits. A position after the row's own
//! enters no sum and its memory is not multiplied by anything, so infinities or NaNs there change
//! nothing.
//!
//! Work is divided over (sequence, head) forward and (sequence, key head) backward, so many at a time that
//! the working memory does not grow with the batch. The probabilities, `batch * heads * sequence²` values,
//! are saved for the backward pass if the caller has the memory; if not, they are formed again, to the
//! same bits.

mod cached;
mod causal;
pub(crate) mod split;
#[cfg_attr(not(target_arch = "x86_64"), path = "attention/no_vectors.rs")]
mod vectors;

pub use cached::attention_cached;

use core::ops::Range;

use crate::nn::real::{LANES, Real};
use crate::nn::stopwatch::{Direction, Part, lap};
use causal::{Rows, lower, lower_transposed, scores, softmax, softmax_backward, transpose};
use exmy::parallel;
use exmy::simd::kernel;

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

    /// Elements of working memory for either pass with which all threads have work. With less fewer
    /// have, down to one with a workspace and the results of a (sequence, key head).
    pub fn scratch(&self) -> usize {
        let (units, results) = (self.batch * self.kv_heads, self.results());
        parallel::threads().min(units) * self.workspace()
            + parallel::at_once(units, results) * results
    }

    /// Divides working memory into workspaces of `workspace` elements, one a thread, and the `results` of
    /// as many of `units` as are to be done before all are waited for.
    #[track_caller]
    fn divide<'a, T>(
        &self,
        scratch: &'a mut [T],
        units: usize,
        [workspace, results]: [usize; 2],
    ) -> (&'a mut [T], &'a mut [T]) {
        let (len, least) = (scratch.len(), workspace + results);
        assert!(len >= least, "scratch has {len} elements, {self:?} needs {least}");
        let workspaces = parallel::threads().min(units).min(len / least);
        let (workspaces, rest) = scratch.split_at_mut(workspaces * workspace);
        let at_once = parallel::at_once(units, results).min(rest.len() / results);
        (workspaces, &mut rest[..at_once * results])
    }

    const fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// A head, transposed or packed.
    const fn packed(&self) -> usize {
        let (wide, long) =
            (self.head_dim * self.row(), self.sequence * self.head_dim.next_multiple_of(LANES));
        if wide > long { wide } else { long }
    }

    /// Of one thread: a transposed or packed head; backward a head's dS; its probabilities where they are
    /// not saved.
    pub const fn workspace(&self) -> usize {
        self.packed() + 2 * self.sequence * self.row()
    }

    /// Of one (sequence, key head): the outputs of a head, or dQ of the group's heads, dK and dV.
    pub const fn results(&self) -> usize {
        (self.group() + 2) * self.sequence * self.head_dim
    }

    #[track_caller]
    fn check(&self, sizes: [(&str, usize, usize); 3]) {
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

/// `y` (tokens, heads * head_dim) from `qkv` (tokens, qkv_width); keeps the probabilities, unless
/// their slice is empty.
///
/// # Panics
/// If a slice's length is not the one `shape` gives, `scratch` has less space than for a (sequence,
/// key head), or `kv_heads` does not divide `heads`.
pub fn attention<T: Real>(
    shape: &Shape,
    qkv: &[T],
    y: &mut [T],
    probabilities: &mut [T],
    scratch: &mut [T],
) {
    let _lap = lap(Part::Attention(Direction::Forward));
    let tokens = shape.batch * shape.sequence;
    let keeps = !probabilities.is_empty();
    shape.check([
        ("qkv", qkv.len(), tokens * shape.qkv_width()),
        ("y", y.len(), tokens * shape.width()),
        ("probabilities", probabilities.len(), if keeps { shape.probabilities() } else { 0 }),
    ]);
    if tokens == 0 || shape.width() == 0 {
        return;
    }
    let rows = shape.sequence * shape.qkv_width();
    let out = shape.sequence * shape.width();
    let saved = shape.sequence * shape.row();
    // Heads do not meet on the way forward, so each is a unit of its own.
    let (results_len, heads) = (shape.sequence * shape.head_dim, shape.heads);
    let units = shape.batch * heads;
    let (workspaces, results) = shape.divide(scratch, units, [shape.workspace(), results_len]);
    for units in parts(units, results.len() / results_len) {
        let results = &mut results[..units.len() * results_len];
        let first = units.start;
        let work = |unit: usize, output: &mut [T], p: &mut [T], packed: &mut [T]| {
            let (b, head) = ((first + unit) / heads, (first + unit) % heads);
            forward_unit(*shape, &qkv[b * rows..][..rows], head, p, packed, output);
        };
        let workspaces = (&mut *workspaces, shape.workspace());
        if keeps {
            let probabilities = &mut probabilities[first * saved..units.end * saved];
            let (results, saved) = ((&mut *results, results_len), (probabilities, saved));
            parallel::for_each_chunk_of_two_with(results, saved, workspaces, work);
        } else {
            let results = (&mut *results, results_len);
            parallel::for_each_chunk_with(results, workspaces, |unit, output, workspace| {
                let (packed, p) = workspace.split_at_mut(shape.packed());
                work(unit, output, p, packed);
            });
        }
        let results = &*results;
        let sequences = first / heads..units.end.div_ceil(heads);
        let y = &mut y[sequences.start * out..sequences.end * out];
        parallel::for_each_chunk(y, out, |b, y| {
            for (unit, head) in of_sequence(&units, sequences.start + b, heads) {
                let output = &results[unit * results_len..];
                scatter(shape, output, 1, y, shape.width(), head * shape.head_dim);
            }
        });
    }
}

/// `dqkv` (overwritten) from `dy`, with the probabilities that [`attention`] saved for `qkv`, or none.
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
    let _lap = lap(Part::Attention(Direction::Backward));
    let tokens = shape.batch * shape.sequence;
    let keeps = !probabilities.is_empty();
    shape.check([
        ("qkv", qkv.len(), tokens * shape.qkv_width()),
        ("dy", dy.len(), tokens * shape.width()),
        ("probabilities", probabilities.len(), if keeps { shape.probabilities() } else { 0 }),
    ]);
    assert_eq!(dqkv.len(), qkv.len(), "dqkv has the elements of qkv");
    if tokens == 0 || shape.width() == 0 {
        return;
    }
    let rows = shape.sequence * shape.qkv_width();
    let out = shape.sequence * shape.width();
    let saved = if keeps { shape.group() * shape.sequence * shape.row() } else { 0 };
    let (results_len, heads) = (shape.results(), shape.kv_heads);
    let units = shape.batch * heads;
    let (workspaces, results) = shape.divide(scratch, units, [shape.workspace(), results_len]);
    for units in parts(units, results.len() / results_len) {
        let results = &mut results[..units.len() * results_len];
        let workspaces = (&mut *workspaces, shape.workspace());
        let of_units = (&mut *results, results_len);
        parallel::for_each_chunk_with(of_units, workspaces, |unit, results, workspace| {
            let unit = units.start + unit;
            let (b, kv) = (unit / heads, unit % heads);
            let (qkv, dy) = (&qkv[b * rows..][..rows], &dy[b * out..][..out]);
            let probabilities = &probabilities[unit * saved..][..saved];
            backward_unit(*shape, qkv, kv, probabilities, dy, workspace, results);
        });
        let results = &*results;
        let sequences = units.start / heads..units.end.div_ceil(heads);
        let dqkv = &mut dqkv[sequences.start * rows..sequences.end * rows];
        parallel::for_each_chunk(dqkv, rows, |b, dqkv| {
            let (hd, width) = (shape.head_dim, shape.qkv_width());
            for (unit, kv) in of_sequence(&units, sequences.start + b, heads) {
                let dq = &results[unit * results_len..];
                let dk = &dq[shape.group() * shape.sequence * hd..];
                let dv = &dk[shape.sequence * hd..];
                scatter(shape, dq, shape.group(), dqkv, width, kv * shape.group() * hd);
                scatter(shape, dk, 1, dqkv, width, (shape.heads + kv) * hd);
                scatter(shape, dv, 1, dqkv, width, (shape.heads + heads + kv) * hd);
            }
        });
    }
}

/// `0..count` in parts of `at_once`; the last one may be shorter.
pub(super) fn parts(count: usize, at_once: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(at_once).map(move |first| first..count.min(first + at_once))
}

/// Of the (sequence, head) pairs `units`, those of sequence `b`: their place in `units`, their head.
pub(super) fn of_sequence(
    units: &Range<usize>,
    b: usize,
    heads: usize,
) -> impl Iterator<Item = (usize, usize)> {
    let (first, end) = (units.start, units.end);
    (first.max(b * heads)..end.min((b + 1) * heads)).map(move |unit| (unit - first, unit % heads))
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

/// The probabilities of one head, for inlining into a kernel.
#[inline(always)]
fn probabilities_of<T: Real>(
    shape: Shape,
    q: Rows<'_, T>,
    k: Rows<'_, T>,
    scale: T,
    packed: &mut [T],
    p: &mut [T],
) {
    let (n, hd, row) = (shape.sequence, shape.head_dim, shape.row());
    if !vectors::scores(n, hd, row, q, k, packed, p) {
        transpose(n, hd, row, k, &mut packed[..hd * row]);
        scores(n, hd, row, q, packed, p);
    }
    softmax(n, row, p, scale);
}

kernel! {
    /// One head of a sequence; `qkv` are the sequence's rows. Its probabilities are left in `p`.
    fn forward_unit<'a, T: Real>(
        shape: Shape,
        qkv: &'a [T],
        head: usize,
        p: &'a mut [T],
        packed: &'a mut [T],
        out: &'a mut [T],
    ) {
        let (n, hd, row) = (shape.sequence, shape.head_dim, shape.row());
        let q = Rows { data: &qkv[head * hd..], stride: shape.qkv_width() };
        let k = Rows { data: &qkv[(shape.heads + head / shape.group()) * hd..], ..q };
        let v = Rows { data: &k.data[shape.kv_heads * hd..], ..q };
        let scale = T::ONE / T::from_f64(hd as f64).sqrt();
        let p = &mut p[..n * row];
        probabilities_of(shape, q, k, scale, packed, p);
        if !vectors::lower(n, hd, row, p, v, packed, out) {
            lower(n, hd, row, p, v, out);
        }
    }
}

kernel! {
    /// Gradients of what [`forward_unit`] read, left in `results` as dQ of each head, dK, dV.
    fn backward_unit<'a, T: Real>(
        shape: Shape,
        qkv: &'a [T],
        kv: usize,
        probabilities: &'a [T],
        dy: &'a [T],
        workspace: &'a mut [T],
        results: &'a mut [T],
    ) {
        let (n, hd, row, group) = (shape.sequence, shape.head_dim, shape.row(), shape.group());
        let (packed, rest) = workspace.split_at_mut(shape.packed());
        let (ds, own) = rest.split_at_mut(n * row);
        let (dq, rest) = results.split_at_mut(group * n * hd);
        let (dk, dv) = rest.split_at_mut(n * hd);
        let k = Rows { data: &qkv[(shape.heads + kv) * hd..], stride: shape.qkv_width() };
        let v = Rows { data: &k.data[shape.kv_heads * hd..], ..k };
        dk.fill(T::ZERO);
        dv.fill(T::ZERO);
        let scale = T::ONE / T::from_f64(hd as f64).sqrt();
        for g in 0..group {
            let q = Rows { data: &qkv[(kv * group + g) * hd..], ..k };
            let dy = Rows { data: &dy[(kv * group + g) * hd..], stride: shape.width() };
            let p = if probabilities.is_empty() {
                let p = &mut own[..n * row];
                probabilities_of(shape, q, k, scale, packed, p);
                &*p
            } else {
                &probabilities[g * n * row..][..n * row]
            };
            if !vectors::scores(n, hd, row, dy, v, packed, ds) {
                transpose(n, hd, row, v, &mut packed[..hd * row]);
                scores(n, hd, row, dy, packed, ds);
            }
            softmax_backward(n, row, p, ds, scale);
            let dq = &mut dq[g * n * hd..][..n * hd];
            if !vectors::lower(n, hd, row, ds, k, packed, dq) {
                lower(n, hd, row, ds, k, dq);
            }
            if !vectors::lower_transposed(n, hd, row, ds, q, packed, dk) {
                lower_transposed(n, hd, row, ds, q, dk);
            }
            if !vectors::lower_transposed(n, hd, row, p, dy, packed, dv) {
                lower_transposed(n, hd, row, p, dy, dv);
            }
        }
    }
}
