//! What became of a run, from its losses and gradient norms: spikes, divergence, recovery.
//!
//! None of the papers that speak of spikes and divergence in few-bit training says in numbers what
//! they are, so there are three detectors, each with its settings and their defaults:
//!
//! - [`Nats`] measures rises in nats against the scatter of the last losses; for cross-entropies, as in
//!   the study of mantissa bits ("To FP8 and Back Again", arXiv 2405.18710), which foretells the outcome of
//!   runs apart and leaves the criterion open;
//! - [`Factor`] measures them as multiples of the lowest level so far; for losses that fall by orders of
//!   magnitude, as those of the student-teacher proxy of arXiv 2506.20752;
//! - [`Heuristics`] are the rules by which that paper's published notebook
//!   (`curve_fitting_and_instability.ipynb` of github.com/Hither1/systems-scaling) reads curves.
//!
//! Levels are medians of the losses *before* a step, of ten at least, as those that `[[when]]` and
//! `[stop]` watch. Smoothed losses are [`smooth`]'s. Input are pairs of step and value in the order of
//! steps; windows count records. From the first value on that is no finite number a curve has ended.

use crate::plot::smooth;
use crate::statistics::{mean, median, sd};
use exmy_train::train::record::Metrics;
use exmy_train::train::running_median::LEAST;
use serde::{Deserialize, Serialize};

/// Losses and gradient norms of a run, by step; a value that was no finite number is NaN.
pub type Curve = Vec<(u64, f64)>;

/// The losses and the gradient norms of a run's records.
pub fn curves(metrics: &[Metrics]) -> (Curve, Curve) {
    let trained = metrics.iter().filter(|line| line.step > 0);
    let value = |value: Option<f64>| value.unwrap_or(f64::NAN);
    trained.map(|m| ((m.step, value(m.loss)), (m.step, value(m.grad_norm)))).unzip()
}

/// Steps in a row at which the loss was far above its level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spike {
    /// Its first step.
    pub first: u64,
    /// Its last step.
    pub last: u64,
    /// The level before it.
    pub level: f64,
    /// The highest loss of it.
    pub peak: f64,
    /// Whether the loss came back; not where the curve ends before.
    pub recovered: bool,
}

/// What a detector found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Detected {
    /// The step from which on the run had diverged, if it did.
    pub diverged: Option<u64>,
    /// Its spikes, in order.
    pub spikes: Vec<Spike>,
}

/// What is said of a run by all of its steps. A [thinned](crate::curves) record has it from before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// Its spikes, and whether it diverged.
    pub verdict: Detected,
    /// Whether a language model never learnt much.
    pub untrained: bool,
    /// The mean of the last tenth, at most the loss before training: a run that diverged has learnt nothing.
    /// Absent if that was no finite number.
    pub tail: Option<f64>,
}

impl Detected {
    /// Spikes per thousand steps of a curve of that many.
    pub fn spikes_per_thousand(&self, steps: usize) -> f64 {
        self.spikes.len() as f64 * 1000.0 / steps.max(1) as f64
    }
}

/// The records before the first that is no finite number, and its step.
fn finite(curve: &[(u64, f64)]) -> (&[(u64, f64)], Option<u64>) {
    let end = curve.iter().position(|(_, value)| !value.is_finite());
    (&curve[..end.unwrap_or(curve.len())], end.map(|end| curve[end].0))
}

/// The first step at which a loss or a norm is no finite number.
fn broken(losses: &[(u64, f64)], norms: &[(u64, f64)]) -> Option<u64> {
    [finite(losses).1, finite(norms).1].into_iter().flatten().min()
}

fn values(curve: &[(u64, f64)]) -> Vec<f64> {
    curve.iter().map(|&(_, value)| value).collect()
}

/// The last `share` of `n` records, one at least.
fn tail(n: usize, share: f64) -> usize {
    n - ((n as f64 * share) as usize).clamp(1, n.max(1)).min(n)
}

/// Joins flagged records to spikes: those nearer than `merge` steps are one.
fn join(losses: &[(u64, f64)], flags: &[Option<f64>], merge: u64) -> Vec<Spike> {
    let mut spikes: Vec<Spike> = Vec::new();
    for (&(step, loss), level) in losses.iter().zip(flags) {
        let Some(level) = *level else { continue };
        match spikes.last_mut() {
            Some(spike) if step - spike.last < merge => {
                spike.last = step;
                spike.peak = spike.peak.max(loss);
            }
            _ => {
                spikes.push(Spike { first: step, last: step, level, peak: loss, recovered: false })
            }
        }
    }
    spikes
}

/// Rises in nats.
#[derive(Clone, Debug, PartialEq)]
pub struct Nats {
    /// The weight of a new loss in the smoothed one.
    pub alpha: f64,
    /// The share of the records that counts as the end.
    pub tail: f64,
    /// A run diverged if its smoothed loss stays this far above its lowest one, of ten losses or more,
    /// over the whole end.
    pub rise: f64,
    /// A run failed to train if its last smoothed loss is above this share of the loss of a guess, the
    /// logarithm of the vocabulary.
    pub untrained: f64,
    /// Losses of a level.
    pub window: usize,
    /// A spike is above the level by more than this many standard deviations, as estimated by 1.4826
    /// times the median distance from the level,
    pub deviations: f64,
    /// and by more than this.
    pub least: f64,
    /// Spikes nearer than this many steps are one.
    pub merge: u64,
    /// A spike is over where the loss is at most this far above the level before it,
    pub near: f64,
    /// within this many steps from its first.
    pub within: u64,
}

impl Default for Nats {
    fn default() -> Self {
        Self {
            alpha: 0.05,
            tail: 0.1,
            rise: 0.5,
            untrained: 0.9,
            window: 50,
            deviations: 6.0,
            least: 0.2,
            merge: 10,
            near: 0.1,
            within: 50,
        }
    }
}

impl Nats {
    /// The smoothed losses, up to the first that is no finite number.
    pub fn smoothed(&self, losses: &[(u64, f64)]) -> Curve {
        let (losses, _) = finite(losses);
        let smoothed = smooth(&values(losses), |_| 1.0 / self.alpha);
        losses.iter().map(|&(step, _)| step).zip(smoothed).collect()
    }

    /// Whether the run never learnt much: `None` without a loss.
    pub fn failed_to_train(&self, losses: &[(u64, f64)], vocab: usize) -> Option<bool> {
        let last = self.smoothed(losses).last()?.1;
        Some(last > self.untrained * libm::log(vocab as f64))
    }

    /// Reads a run's losses and gradient norms; a run without the latter has none.
    ///
    /// ```
    /// use exmy_lab::spikes::Nats;
    ///
    /// // One loss of 9 among losses of 2 is a spike and no divergence.
    /// let losses: Vec<(u64, f64)> =
    ///     (1..=200).map(|step| (step, if step == 120 { 9.0 } else { 2.0 })).collect();
    /// let verdict = Nats::default().judge(&losses, &[]);
    /// assert_eq!(verdict.diverged, None);
    /// assert_eq!((verdict.spikes[0].first, verdict.spikes[0].recovered), (120, true));
    /// ```
    pub fn judge(&self, losses: &[(u64, f64)], norms: &[(u64, f64)]) -> Detected {
        let end = broken(losses, norms);
        let (run, _) = finite(losses);
        let losses = values(run);
        let level = |i: usize| {
            let window = &losses[i.saturating_sub(self.window)..i];
            let level = median(window).filter(|_| window.len() >= LEAST.min(self.window))?;
            let distances: Vec<f64> = window.iter().map(|loss| (loss - level).abs()).collect();
            let scatter = 1.4826 * median(&distances)?;
            let limit = (self.deviations * scatter).max(self.least);
            (losses[i] - level > limit).then_some(level)
        };
        let flags: Vec<Option<f64>> = (0..losses.len()).map(level).collect();
        let mut spikes = join(run, &flags, self.merge);
        for spike in &mut spikes {
            let after = run.iter().filter(|(step, _)| *step > spike.first);
            let mut near = after.take_while(|(step, _)| *step <= spike.first + self.within);
            spike.recovered = near.any(|(_, loss)| *loss <= spike.level + self.near);
        }
        Detected { diverged: end.or_else(|| self.drifted(run)), spikes }
    }

    /// The step from which on the smoothed loss lies too far above its lowest, to the end.
    fn drifted(&self, losses: &[(u64, f64)]) -> Option<u64> {
        let smoothed = self.smoothed(losses);
        let (early, late) = smoothed.split_at(tail(smoothed.len(), self.tail));
        let lowest = |part: &[(u64, f64)]| part.iter().map(|s| s.1).fold(f64::INFINITY, f64::min);
        // The average of the first few is as low as the luckiest of them.
        let limit = lowest(early.get(LEAST - 1..)?) + self.rise;
        if lowest(late) <= limit {
            return None;
        }
        let below = smoothed.iter().rposition(|s| s.1 <= limit);
        smoothed.get(below? + 1).map(|s| s.0)
    }
}

/// Rises in multiples of the lowest level.
#[derive(Clone, Debug, PartialEq)]
pub struct Factor {
    /// Losses of a level.
    pub window: usize,
    /// A loss above this multiple of the lowest level so far, or of the first loss where that is lower, is a
    /// spike. A run whose end has its median there diverged.
    pub factor: f64,
    /// The share of the records that counts as the end.
    pub tail: f64,
    /// Spikes nearer than this many steps are one.
    pub merge: u64,
}

impl Default for Factor {
    fn default() -> Self {
        // Short windows: small proxies reach their lowest losses within some forty steps.
        Self { window: 10, factor: 10.0, tail: 0.1, merge: 10 }
    }
}

impl Factor {
    /// Reads a run's losses and gradient norms; a run without the latter has none. Levels are of full
    /// windows. A spike recovered if the run did not diverge and a later loss is below the limit again.
    ///
    /// ```
    /// use exmy_lab::spikes::Factor;
    ///
    /// // A mean squared error that rises from 0.001 to 1 and stays there.
    /// let loss = |step| if step < 300 { 1e-3 } else { 1.0 };
    /// let losses: Vec<(u64, f64)> = (1..=400).map(|step| (step, loss(step))).collect();
    /// assert_eq!(Factor::default().judge(&losses, &[]).diverged, Some(300));
    /// ```
    pub fn judge(&self, losses: &[(u64, f64)], norms: &[(u64, f64)]) -> Detected {
        let end = broken(losses, norms);
        let (run, _) = finite(losses);
        let losses = values(run);
        // A run that diverges before its first full window is seen by where it began.
        let mut lowest = losses.first().copied().unwrap_or(f64::INFINITY);
        let (mut flags, mut sound) = (Vec::new(), 0);
        for (i, loss) in losses.iter().enumerate() {
            let before = i.checked_sub(self.window).and_then(|from| median(&losses[from..i]));
            lowest = lowest.min(before.unwrap_or(f64::INFINITY));
            flags.push((*loss > self.factor * lowest).then_some(lowest));
            if before.is_some_and(|level| level <= self.factor * lowest) {
                sound = i - self.window / 2;
            }
        }
        let mut spikes = join(run, &flags, self.merge);
        let late = &losses[tail(losses.len(), self.tail)..];
        let is_high = median(late).is_some_and(|median| median > self.factor * lowest);
        // Diverged since the first loss above the limit after which no level was below it.
        let since = flags.iter().skip(sound).position(Option::is_some).map(|at| run[sound + at].0);
        let diverged = end.or(since.filter(|_| is_high));
        for spike in &mut spikes {
            let later = run.last().is_some_and(|&(step, _)| step > spike.last);
            spike.recovered = later && diverged.is_none_or(|end| end > spike.last);
        }
        Detected { diverged, spikes }
    }
}

/// How the published notebook reads curves.
#[derive(Clone, Debug, PartialEq)]
pub struct Heuristics {
    /// Losses of a moving average.
    pub average: usize,
    /// A rise of the average in one record by more than this is the onset of instability.
    pub rise: f64,
    /// Gradient norms of a moving average.
    pub norm_average: usize,
    /// The first step whose change of the averaged norm counts.
    pub after: u64,
    /// Gradient norms of a variance.
    pub variance: usize,
}

impl Default for Heuristics {
    fn default() -> Self {
        Self { average: 100, rise: 0.008, norm_average: 50, after: 120, variance: 100 }
    }
}

/// `of` each full window, at the step of its last record.
fn rolling(curve: &[(u64, f64)], window: usize, of: impl Fn(&[f64]) -> Option<f64>) -> Curve {
    let (curve, _) = finite(curve);
    let windows = curve.windows(window.max(1));
    windows.filter_map(|w| Some((w.last()?.0, of(&values(w))?))).collect()
}

impl Heuristics {
    /// The first step at which the averaged loss rises by more than `rise`.
    ///
    /// ```
    /// use exmy_lab::spikes::Heuristics;
    ///
    /// let losses: Vec<(u64, f64)> =
    ///     (1..=300).map(|step| (step, if step < 250 { 2.0 } else { 3.0 })).collect();
    /// // One of a hundred losses is higher by 1: the average by 0.01.
    /// assert_eq!(Heuristics::default().onset(&losses), Some(250));
    /// ```
    pub fn onset(&self, losses: &[(u64, f64)]) -> Option<u64> {
        let averages = rolling(losses, self.average, mean);
        averages.windows(2).find(|pair| pair[1].1 - pair[0].1 > self.rise).map(|pair| pair[1].0)
    }

    /// The first step from `after` on at which the averaged gradient norm turns from falling to rising
    /// or back.
    pub fn reversal(&self, norms: &[(u64, f64)]) -> Option<u64> {
        let averages = rolling(norms, self.norm_average, mean);
        let changes = averages.windows(2).map(|pair| (pair[1].0, pair[1].1 - pair[0].1));
        let changes: Vec<(u64, f64)> =
            changes.filter(|&(step, change)| step >= self.after && change != 0.0).collect();
        let turned = changes.windows(2).find(|pair| (pair[0].1 < 0.0) != (pair[1].1 < 0.0));
        turned.map(|pair| pair[1].0)
    }

    /// The sample variance of the gradient norm in a moving window.
    pub fn variances(&self, norms: &[(u64, f64)]) -> Curve {
        rolling(norms, self.variance, |window| sd(window).map(|sd| sd * sd))
    }
}
