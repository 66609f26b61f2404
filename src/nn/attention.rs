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
//! each over positions `j..`, all ascending. Sums along a row of probabilities run in sixteen
//! partial sums (position mod 16), folded by halves. A position after the row's own enters no
//! sum and its memory is not multiplied by anything, so infinities or NaNs there change nothing.
//!
//! Work is divided over (sequence, key head). The probabilities are kept for the backward pass,
//! `batch * heads * sequence²` values: at the sizes this crate trains on a CPU they are small beside
//! the other activations.

mod causal;
pub(crate) mod split;
#[cfg_attr(not(target_arch = "x86_64"), path = "attention/no_vectors.rs")]
mod vectors;

use crate::nn::real::{LANES, Real};
use crate::nn::stopwatch::{Part, Way, lap};
use crate::parallel;
use crate::simd::kernel;
use causal::{Rows, lower, lower_transposed, scores, softmax, softmax_backward, transpose};

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

    /// A head, transposed or packed.
    const fn packed(&self) -> usize {
        let (wide, long) =
            (self.head_dim * self.row(), self.sequence * self.head_dim.next_multiple_of(LANES));
        if wide > long { wide } else { long }
    }

    /// Of one (sequence, key head): a transposed or packed head; the outputs of the group's heads, or their
    /// dQ and then dK and dV; one head's dS.
    const fn unit(&self) -> usize {
        let head = self.sequence * self.head_dim;
        self.packed() + (self.group() + 2) * head + self.sequence * self.row()
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
    let _lap = lap(Part::Attention(Way::Forward));
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
    let units = ((&mut *scratch, shape.unit()), (probabilities, kept));
    parallel::for_each_chunk_of_two(units.0, units.1, |unit, scratch, probabilities| {
        let (b, kv) = (unit / shape.kv_heads, unit % shape.kv_heads);
        forward_unit(*shape, &qkv[b * rows..][..rows], kv, probabilities, scratch);
    });
    let scratch = &*scratch;
    parallel::for_each_chunk(y, shape.sequence * shape.width(), |b, y| {
        for kv in 0..shape.kv_heads {
            let unit = &scratch[(b * shape.kv_heads + kv) * shape.unit()..];
            let heads = &unit[shape.packed()..];
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
    let _lap = lap(Part::Attention(Way::Backward));
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
            let dq = &unit[shape.packed()..];
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
        let (packed, outputs) = scratch.split_at_mut(shape.packed());
        let k = Rows { data: &qkv[(shape.heads + kv) * hd..], stride: shape.qkv_width() };
        let v = Rows { data: &k.data[shape.kv_heads * hd..], ..k };
        let scale = T::ONE / T::from_f64(hd as f64).sqrt();
        for g in 0..group {
            let q = Rows { data: &qkv[(kv * group + g) * hd..], ..k };
            let p = &mut probabilities[g * n * row..][..n * row];
            if !vectors::scores(n, hd, row, q, k, packed, p) {
                transpose(n, hd, row, k, &mut packed[..hd * row]);
                scores(n, hd, row, q, packed, p);
            }
            softmax(n, row, p, scale);
            let out = &mut outputs[g * n * hd..][..n * hd];
            if !vectors::lower(n, hd, row, p, v, packed, out) {
                lower(n, hd, row, p, v, out);
            }
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
        let (packed, rest) = scratch.split_at_mut(shape.packed());
        let (dq, rest) = rest.split_at_mut(group * n * hd);
        let (dk, rest) = rest.split_at_mut(n * hd);
        let (dv, ds) = rest.split_at_mut(n * hd);
        let k = Rows { data: &qkv[(shape.heads + kv) * hd..], stride: shape.qkv_width() };
        let v = Rows { data: &k.data[shape.kv_heads * hd..], ..k };
        dk.fill(T::ZERO);
        dv.fill(T::ZERO);
        let scale = T::ONE / T::from_f64(hd as f64).sqrt();
        for g in 0..group {
            let q = Rows { data: &qkv[(kv * group + g) * hd..], ..k };
            let dy = Rows { data: &dy[(kv * group + g) * hd..], stride: shape.width() };
            let p = &probabilities[g * n * row..][..n * row];
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Philox, Stream};
    use crate::simd::{Level, with_level};

    fn random(len: usize, stream: u64) -> Vec<f32> {
        let philox = Philox::new(3, Stream::new("attention").with(stream));
        (0..len as u64).map(|i| 4.0 * philox.uniform(i) as f32 - 2.0).collect()
    }

    /// Tiles of any kernel, ragged in both sizes, and memory that holds NaN beforehand.
    #[test]
    fn levels_give_the_same_bits() {
        for (sequence, head_dim, heads, kv_heads) in
            [(37, 12, 2, 1), (64, 64, 2, 2), (19, 70, 1, 1)]
        {
            let shape = Shape { batch: 2, sequence, heads, kv_heads, head_dim };
            let tokens = 2 * sequence;
            let (qkv, dy) =
                (random(tokens * shape.qkv_width(), 1), random(tokens * shape.width(), 2));
            let mut results = Vec::new();
            for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
                let nan = |len: usize| vec![f32::NAN; len];
                let (mut y, mut p) = (nan(dy.len()), nan(shape.probabilities()));
                let (mut scratch, mut dqkv) = (nan(shape.scratch()), nan(qkv.len()));
                with_level(level, || {
                    attention(&shape, &qkv, &mut y, &mut p, &mut scratch);
                    attention_backward(&shape, &qkv, &p, &dy, &mut dqkv, &mut scratch);
                });
                let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                results.push([bits(&y), bits(&p), bits(&dqkv)]);
            }
            assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{shape:?}");
            assert!(results[0][2].iter().all(|bits| f32::from_bits(*bits).is_finite()));
        }
    }
}
