//! Softmax cross-entropy, and the mean that is reported.
//!
//! `loss = ln(sum exp(l - m)) - (l[target] - m)` with `m` the largest logit of the row, in nats.
//! The gradient `(softmax - onehot) scale` replaces the logits: they are the largest activation of
//! a small model and nothing needs them afterwards.

use super::real::{Real, largest, sum};
use crate::nn::stopwatch::{Part, lap};
use crate::parallel;
use crate::simd::kernel;

/// Per-row losses of logits (N, V) against targets (N), into losses (N).
///
/// With `scale`, the logits become the gradient of `scale` times the sum of the losses: 1/N for
/// the mean. Without it they are left alone.
///
/// # Panics
/// If the lengths do not fit each other, `vocab` is 0, or a target is outside the vocabulary.
#[track_caller]
pub fn cross_entropy<T: Real>(
    logits: &mut [T],
    vocab: usize,
    targets: &[u32],
    scale: Option<T>,
    losses: &mut [T],
) {
    let _lap = lap(Part::Loss);
    assert!(
        vocab > 0 && targets.len() * vocab == logits.len() && losses.len() == targets.len(),
        "cross_entropy: {} logits, {} targets and {} losses do not fit a vocabulary of {vocab}",
        logits.len(),
        targets.len(),
        losses.len()
    );
    if let Some(target) = targets.iter().find(|&&target| target as usize >= vocab) {
        panic!("cross_entropy: target {target} is outside the vocabulary of {vocab}");
    }
    let rows = ((1 << 14) / vocab).max(1);
    let (logits, losses) = ((logits, rows * vocab), (losses, rows));
    parallel::for_each_chunk_of_two(logits, losses, |i, logits, losses| {
        let targets = &targets[i * rows..][..losses.len()];
        cross_entropy_rows(logits, vocab, targets, scale, losses);
    });
}

kernel! {
    fn cross_entropy_rows<'a, T: Real>(
        logits: &'a mut [T],
        vocab: usize,
        targets: &'a [u32],
        scale: Option<T>,
        losses: &'a mut [T],
    ) {
        let rows = logits.chunks_exact_mut(vocab).zip(targets);
        for ((row, &target), loss) in rows.zip(losses) {
            let target = target as usize;
            let most = largest(row);
            let at_target = row[target] - most;
            let Some(scale) = scale else {
                *loss = sum(row, |l| (l - most).exp()).ln() - at_target;
                continue;
            };
            for l in row.iter_mut() {
                *l = (*l - most).exp();
            }
            let total = sum(row, |e| e);
            *loss = total.ln() - at_target;
            let factor = scale / total;
            for l in row.iter_mut() {
                *l *= factor;
            }
            row[target] -= scale;
        }
    }
}

/// The mean of the losses, summed in f64 from the first to the last; NaN for none.
pub fn mean<T: Real>(losses: &[T]) -> f64 {
    losses.iter().map(|loss| loss.to_f64()).fold(0.0, |sum, loss| sum + loss) / losses.len() as f64
}
