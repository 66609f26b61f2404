//! Sharpness of the loss in the logits, found by search as it was published.
//!
//! "To FP8 and Back Again" (arXiv 2405.18710, section 3.1) takes Keskar's measure (arXiv 1609.04836,
//! section 2.2.2) of the last token's logits `x`. That is the largest rise of the cross-entropy `f` in the
//! box `|y_i| <= eps (|x_i| + 1)`, in percent of `1 + f(x)`; it is found by a few iterations of
//! [L-BFGS-B](crate::minimize). The maximum is at a vertex that needs no search (the probe `sharpness`); what
//! a search of few iterations ends at is at most that. With ten iterations it was reached within
//! 0.2 % for 256 normal logits of deviation 2. For 32 000, whose gradient is small everywhere, it was
//! missed by 16 % (200 iterations: by 0.4 %). So values of both methods do not belong into one table. `eps`
//! and the number of iterations are not published; Keskar's are 1e-3 or 5e-4, and 10.

use crate::minimize::{Options, minimize};

/// Sharpness as a search finds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sharpness {
    /// The sharpness, in percent of one plus the loss.
    pub sharpness: f64,
    /// The mean cross-entropy at the logits themselves, in nats.
    pub loss: f64,
    /// Steps of the search.
    pub iterations: usize,
}

/// The cross-entropy of logits, in nats; adds `scale` times its gradient to `grad`.
fn cross_entropy(logits: &[f64], target: usize, scale: f64, grad: &mut [f64]) -> f64 {
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logits.iter().map(|x| libm::exp(x - most)).sum();
    for (grad, x) in grad.iter_mut().zip(logits) {
        *grad += scale * libm::exp(x - most) / sum;
    }
    grad[target] -= scale;
    libm::log(sum) - (logits[target] - most)
}

/// The sharpness of the mean loss of some rows of logits, (rows, vocabulary) row-major, each with
/// a box of its own: `iterations` of L-BFGS-B with ten steps of history, from the logits themselves.
///
/// `None` of no rows, or where the loss is no finite number.
///
/// ```
/// use exmy_train::nn::sharpness::by_search;
///
/// let found = by_search(&[2.0, -1.0, 0.5, 3.0], &[3], 1e-3, 10).unwrap();
/// assert!((found.sharpness - 0.154_694_65).abs() < 1e-6);
/// // A box of no width holds no rise.
/// assert_eq!(by_search(&[2.0, -1.0, 0.5, 3.0], &[3], 0.0, 10).unwrap().sharpness, 0.0);
/// ```
///
/// # Panics
/// If the logits are not as many rows as there are targets, or a target is outside of the vocabulary.
pub fn by_search(
    logits: &[f64],
    targets: &[u32],
    eps: f64,
    iterations: usize,
) -> Option<Sharpness> {
    if targets.is_empty() {
        return None;
    }
    assert!(logits.len().is_multiple_of(targets.len()), "rows of logits, one for each target");
    let vocab = logits.len() / targets.len();
    let share = 1.0 / targets.len() as f64;
    let reach: Vec<f64> = logits.iter().map(|x| eps * (x.abs() + 1.0)).collect();
    let low: Vec<f64> = reach.iter().map(|reach| -reach).collect();
    // The variables are the moves, so that a box around a large logit keeps its relative precision.
    let mut moved = vec![0.0; logits.len()];
    let mut height = |y: &[f64], grad: &mut [f64]| {
        for ((moved, x), y) in moved.iter_mut().zip(logits).zip(y) {
            *moved = x + y;
        }
        grad.fill(0.0);
        let rows = moved.chunks(vocab).zip(grad.chunks_mut(vocab)).zip(targets);
        let losses =
            rows.map(|((row, grad), &target)| cross_entropy(row, target as usize, -share, grad));
        -share * losses.sum::<f64>()
    };
    let still = vec![0.0; logits.len()];
    let loss = -height(&still, &mut vec![0.0; logits.len()]);
    if !loss.is_finite() {
        return None;
    }
    let options = Options { iterations, ..Options::default() };
    let found = minimize(height, &still, Some((&low, &reach)), &options);
    let rise = -found.value - loss;
    rise.is_finite().then(|| Sharpness {
        sharpness: 100.0 * rise / (1.0 + loss),
        loss,
        iterations: found.iterations,
    })
}
