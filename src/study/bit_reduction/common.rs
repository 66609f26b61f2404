//! What figures of this study have in common: how an arm is trained, what became of it, and curves of
//! several seeds.

use crate::error::Result;
use crate::plot::{Band, Panel, Series};
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::detect::{self, Nats, Verdict};
use crate::study::statistics::mean;
use crate::study::store::{Runs, Trained};

/// Runs of a study are judged by their training losses; files are for resuming, evaluations for the end.
const RECORD: &str =
    "record.eval_every = 0\nrecord.eval_windows = 32\nrecord.checkpoint_every = 0\n";

/// One run: what it is trained in, and with.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) preset: &'static str,
    pub(super) recipe: String,
    pub(super) seed: u64,
    pub(super) lr: f64,
    pub(super) steps: u64,
    /// Steps of warm-up as a part of all.
    pub(super) warmup: f64,
    /// Further keys, as TOML.
    pub(super) more: String,
}

impl Spec {
    /// A run of `steps` in a preset, at the rate 1e-3 with a twentieth of warm-up.
    pub(super) fn new(preset: &'static str, recipe: &str, seed: u64, steps: u64) -> Self {
        let (recipe, more) = (recipe.to_owned(), String::new());
        Self { preset, recipe, seed, lr: 1e-3, steps, warmup: 0.05, more }
    }

    pub(super) fn arm(&self, setting: &Setting) -> Arm {
        let Self { recipe, seed, lr, steps, more, .. } = self;
        let warmup = (self.warmup * *steps as f64) as u64;
        // The paper's own sizes come with the paper's own schedule.
        let schedule = match setting.scale {
            Scale::Full => String::new(),
            _ => format!("train.steps = {steps}\ntrain.warmup = {warmup}\n"),
        };
        let changes = format!(
            "recipe = {recipe:?}\nseed = {seed}\ntrain.lr = {lr:?}\ntrain.lr_min = {:?}\n{schedule}{RECORD}{more}",
            lr / 10.0
        );
        Arm::new(setting.config(self.preset, &changes))
    }
}

/// What became of a run by the rules for cross-entropies: diverged, or failed to train, counts as failed.
#[derive(Clone, Debug)]
pub(super) struct Fate {
    pub(super) failed: bool,
    pub(super) verdict: Verdict,
    pub(super) steps: usize,
}

pub(super) fn fate(run: &Trained, vocab: usize) -> Fate {
    let (losses, norms) = detect::curves(&run.metrics);
    let nats = Nats::default();
    let verdict = nats.judge(&losses, &norms);
    let untrained = nats.failed_to_train(&losses, vocab) == Some(true);
    Fate { failed: verdict.diverged.is_some() || untrained, verdict, steps: losses.len() }
}

/// The runs of some arms.
pub(super) fn all(runs: &Runs<'_>, arms: &[Arm]) -> Result<Vec<Trained>> {
    arms.iter().map(|arm| runs.of(arm)).collect()
}

/// Losses that runs are judged by.
pub(super) fn tails(runs: &[Trained]) -> Vec<f64> {
    runs.iter().map(Trained::tail_loss).collect()
}

/// The smoothed losses of a run, step by step, up to the first that is no finite number.
fn smoothed_loss(run: &Trained) -> Vec<(f64, f64)> {
    let curve = Nats::default().smoothed(&detect::curves(&run.metrics).0);
    curve.into_iter().map(|(step, loss)| (step as f64, loss)).collect()
}

/// Smoothed losses of several seeds, step by step: mean, lowest and highest, as far as all of them go.
pub(super) fn smoothed(runs: &[Trained]) -> Vec<(f64, f64, f64, f64)> {
    let curves: Vec<_> = runs.iter().map(smoothed_loss).collect();
    let shortest = curves.iter().map(Vec::len).min().unwrap_or(0);
    // One point in a few is enough for a picture.
    let stride = shortest.div_ceil(200).max(1);
    (0..shortest)
        .step_by(stride)
        .map(|i| {
            let values: Vec<f64> = curves.iter().map(|curve| curve[i].1).collect();
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            (curves[0][i].0, mean(&values).unwrap_or(f64::NAN), low, high)
        })
        .collect()
}

/// Adds the mean of several seeds and the band from the lowest to the highest.
pub(super) fn with_seeds(panel: Panel, name: &str, runs: &[Trained]) -> Panel {
    let points = smoothed(runs);
    let band = points.iter().map(|&(x, _, low, high)| (x, low, high));
    let last = points.last().map_or_else(String::new, |point| format!("{:.3}", point.1));
    let panel = if runs.len() > 1 { panel.band(Band::new(name, band)) } else { panel };
    panel.line(Series::new(name, points.iter().map(|&(x, mean, ..)| (x, mean))).note(last))
}

/// A loss as tables have it; a run without one diverged.
pub(super) fn number(x: f64) -> String {
    if x.is_finite() { format!("{x:.4}") } else { "diverged".to_owned() }
}

/// The mean of some losses as tables have it.
pub(super) fn mean_of(values: &[f64]) -> String {
    number(mean(values).unwrap_or(f64::NAN))
}

/// Seeds from 1.
pub(super) fn seeds(setting: &Setting, counts: [u64; 4]) -> std::ops::RangeInclusive<u64> {
    1..=setting.scale.pick(counts)
}

/// Tokens there are in the text of a run.
pub(super) fn vocab(arm: &Arm) -> usize {
    arm.config.model.decoder().map_or(1, |model| model.vocab)
}
