//! Softmax cross-entropy, the divergence of two softmaxes, and the mean that is reported.
//!
//! `loss = ln(sum exp(l - m)) - (l[target] - m)` with `m` the largest logit of the row, in nats.
//! The gradient `(softmax - onehot) scale` replaces the logits: they are the largest activation of
//! a small model and nothing needs them afterwards. A z-loss (PaLM, arXiv 2204.02311) adds
//! `z Z^2` with `Z = m + ln(sum exp(l - m))` to what is minimized, and `2 z Z softmax` to the gradient,
//! but not to the loss that is reported, so that it can be compared with one without.

use super::real::{Real, largest, sum, sum_of_three};
use crate::nn::stopwatch::{Part, lap};
use exmy::parallel;
use exmy::simd::kernel;
use serde::{Deserialize, Serialize};

/// What is minimized of rows of outputs and targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowLoss {
    /// The mean of the squared differences over rows and features.
    #[default]
    Mse,
    /// The mean over rows of `KL(softmax(target) || softmax(output))`, in nats. The study names such a loss
    /// without printing its form; that target and output are taken as logits, at temperature 1, is a
    /// choice.
    Kl,
}

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
    cross_entropy_and_z(logits, vocab, targets, scale.map(|scale| (scale, T::ZERO)), losses);
}

/// [`cross_entropy`] whose gradient, where there is one, is that of `scale` times the sum of the losses
/// and of `z` times the squared logarithm of each row's sum of exponentials.
///
/// # Panics
/// As [`cross_entropy`].
#[track_caller]
pub fn cross_entropy_and_z<T: Real>(
    logits: &mut [T],
    vocab: usize,
    targets: &[u32],
    scale: Option<(T, T)>,
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
        scale: Option<(T, T)>,
        losses: &'a mut [T],
    ) {
        let rows = logits.chunks_exact_mut(vocab).zip(targets);
        for ((row, &target), loss) in rows.zip(losses) {
            let target = target as usize;
            let most = largest(row);
            let at_target = row[target] - most;
            let Some((scale, z)) = scale else {
                *loss = sum(row, |l| (l - most).exp()).ln() - at_target;
                continue;
            };
            for l in row.iter_mut() {
                *l = (*l - most).exp();
            }
            let total = sum(row, |e| e);
            let normalizer = total.ln();
            *loss = normalizer - at_target;
            // Without z this is the scale to the last bit.
            let log = normalizer + most;
            let factor = scale * (T::ONE + z * (log + log)) / total;
            for l in row.iter_mut() {
                *l *= factor;
            }
            row[target] -= scale;
        }
    }
}

/// `KL(softmax(y) || softmax(a))` of each row of outputs `a` (N, V) against targets `y` (N, V), in nats, into
/// losses (N).
///
/// # Panics
/// If the lengths do not fit each other or `width` is 0.
#[track_caller]
pub fn divergence<T: Real>(a: &[T], y: &[T], width: usize, losses: &mut [T]) {
    let _lap = lap(Part::Loss);
    shapes("divergence", a, y, width, losses.len());
    const ROWS: usize = 64;
    parallel::for_each_chunk(losses, ROWS, |i, losses| {
        let range = i * ROWS * width..(i * ROWS + losses.len()) * width;
        divergence_rows(&a[range.clone()], &y[range], width, losses);
    });
}

/// Where each row of logits (N, V) is largest: the first of equals. NaN is never it, and the first element
/// stands for a row without a number above negative infinity.
///
/// # Panics
/// If `vocab` is 0 or rows are not whole.
#[track_caller]
pub fn likeliest<T: Real>(logits: &[T], vocab: usize) -> Vec<u32> {
    assert!(vocab > 0 && logits.len().is_multiple_of(vocab), "likeliest: no whole rows of {vocab}");
    let largest = |row: &[T]| {
        let (mut most, mut at) = (T::from_f64(f64::NEG_INFINITY), 0);
        for (&logit, i) in row.iter().zip(0..) {
            if logit > most {
                (most, at) = (logit, i);
            }
        }
        at
    };
    logits.chunks_exact(vocab).map(largest).collect()
}

/// The gradient with respect to `a` of `scale` times the sum of [`divergence`]'s losses,
/// `(softmax(a) - softmax(y)) scale`, into `d` (N, V).
///
/// # Panics
/// As [`divergence`].
#[track_caller]
pub fn divergence_backward<T: Real>(a: &[T], y: &[T], width: usize, scale: T, d: &mut [T]) {
    let _lap = lap(Part::Loss);
    shapes("divergence_backward", a, y, width, d.len() / width.max(1));
    const ROWS: usize = 64;
    parallel::for_each_chunk(d, ROWS * width, |i, d| {
        let range = i * ROWS * width..i * ROWS * width + d.len();
        divergence_backward_rows(&a[range.clone()], &y[range], width, scale, d);
    });
}

/// The mean of the squared errors of each row of outputs `a` (N, V) against targets `y` (N, V), into losses
/// (N).
///
/// # Panics
/// As [`divergence`].
#[track_caller]
pub fn squared_error<T: Real>(a: &[T], y: &[T], width: usize, losses: &mut [T]) {
    let _lap = lap(Part::Loss);
    shapes("squared_error", a, y, width, losses.len());
    const ROWS: usize = 64;
    let per_width = T::ONE / T::from_f64(width as f64);
    parallel::for_each_chunk(losses, ROWS, |chunk, losses| {
        let rows = a.chunks_exact(width).zip(y.chunks_exact(width)).skip(chunk * ROWS);
        for (loss, (a, y)) in losses.iter_mut().zip(rows) {
            *loss = per_width * sum_of_three(a, y, a, |a, y, _| (a - y) * (a - y));
        }
    });
}

/// `d = (a - y) scale`, elementwise.
///
/// # Panics
/// If the lengths differ.
#[track_caller]
pub fn squared_error_backward<T: Real>(a: &[T], y: &[T], scale: T, d: &mut [T]) {
    let _lap = lap(Part::Loss);
    shapes("squared_error_backward", a, y, 1, d.len());
    for ((d, &a), &y) in d.iter_mut().zip(a).zip(y) {
        *d = (a - y) * scale;
    }
}

#[track_caller]
fn shapes<T>(name: &str, a: &[T], y: &[T], width: usize, rows: usize) {
    assert!(
        width > 0 && a.len() == y.len() && a.len() == rows * width,
        "{name}: {} outputs and {} targets are not {rows} rows of {width}",
        a.len(),
        y.len()
    );
}

kernel! {
    fn divergence_rows<'a, T: Real>(a: &'a [T], y: &'a [T], width: usize, losses: &'a mut [T]) {
        let rows = a.chunks_exact(width).zip(y.chunks_exact(width));
        for ((a, y), loss) in rows.zip(losses) {
            let (most_a, most_y) = (largest(a), largest(y));
            let sum_a = sum(a, |a| (a - most_a).exp());
            let sum_y = sum(y, |y| (y - most_y).exp());
            // The difference of the logits under the target's softmax, and of the normalizers.
            let term = |a: T, y: T, _| (y - most_y).exp() * ((y - most_y) - (a - most_a));
            *loss = sum_of_three(a, y, a, term) / sum_y + (sum_a.ln() - sum_y.ln());
        }
    }
}

kernel! {
    fn divergence_backward_rows<'a, T: Real>(
        a: &'a [T],
        y: &'a [T],
        width: usize,
        scale: T,
        d: &'a mut [T],
    ) {
        let rows = a.chunks_exact(width).zip(y.chunks_exact(width));
        for ((a, y), d) in rows.zip(d.chunks_exact_mut(width)) {
            let (most_a, most_y) = (largest(a), largest(y));
            let of_a = scale / sum(a, |a| (a - most_a).exp());
            let of_y = scale / sum(y, |y| (y - most_y).exp());
            for ((d, &a), &y) in d.iter_mut().zip(a).zip(y) {
                *d = (a - most_a).exp() * of_a - (y - most_y).exp() * of_y;
            }
        }
    }
}

/// The mean of losses or other numbers, summed in f64 from the first to the last; NaN for none.
pub fn mean<T: Real>(losses: &[T]) -> f64 {
    losses.iter().map(|loss| loss.to_f64()).fold(0.0, |sum, loss| sum + loss) / losses.len() as f64
}
