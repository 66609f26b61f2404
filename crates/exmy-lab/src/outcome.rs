//! What became of a run, by the rule for its kind of loss: proxies' as multiples of their lowest level,
//! language models' as rises in nats.

use crate::plot::smooth;
use crate::run_config::RunConfig;
use crate::spikes::{self, Curve, Detected, Factor, Judgement, Nats};
use crate::store::Trained;

/// What all steps of a run say, by the rule for its kind of loss.
pub fn judge(trained: &Trained, planned: &RunConfig) -> Judgement {
    if let Some(known) = &trained.judged {
        return known.clone();
    }
    let (losses, norms) = spikes::curves(&trained.metrics);
    let (verdict, untrained) = match planned.config.model.decoder() {
        Some(model) => {
            let rules = Nats::default();
            let untrained = rules.failed_to_train(&losses, model.vocab) == Some(true);
            (rules.judge(&losses, &norms), untrained)
        }
        None => (Factor::default().judge(&losses, &norms), false),
    };
    let tail = Some(tail(trained)).filter(|tail| tail.is_finite());
    Judgement { verdict, untrained, tail }
}

/// A run with what became of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub(super) trained: Trained,
    pub(super) losses: Curve,
    pub(super) norms: Curve,
    pub verdict: Detected,
    /// Whether a language model never learnt much.
    untrained: bool,
    /// As [`Judgement`] has it, or not a number.
    pub(super) tail: f64,
}

impl Outcome {
    pub fn of(trained: Trained, planned: &RunConfig) -> Self {
        let (losses, norms) = spikes::curves(&trained.metrics);
        let Judgement { verdict, untrained, tail } = judge(&trained, planned);
        let tail = tail.unwrap_or(f64::NAN);
        Self { trained, losses, norms, verdict, untrained, tail }
    }

    pub(super) fn diverged(&self) -> bool {
        self.verdict.diverged.is_some()
    }

    /// Whether it diverged or failed to train.
    pub(super) fn failed(&self) -> bool {
        self.diverged() || self.untrained
    }

    /// Whether it has a spike or diverged.
    pub(super) fn unstable(&self) -> bool {
        self.diverged() || !self.verdict.spikes.is_empty()
    }

    /// In words: complete, how many spikes, since when diverged.
    pub(super) fn word(&self) -> String {
        match (self.verdict.diverged, self.verdict.spikes.len()) {
            (Some(step), _) => format!("diverged at {step}"),
            (None, 0) => "smooth".into(),
            (None, 1) => "1 spike".into(),
            (None, count) => format!("{count} spikes"),
        }
    }
}

/// The mean of the last tenth of the losses, at most the first.
pub(super) fn tail(run: &Trained) -> f64 {
    if let Some(known) = &run.judged {
        return known.tail.unwrap_or(f64::NAN);
    }
    let first = spikes::curves(&run.metrics).0.first().map_or(f64::NAN, |first| first.1);
    let last = run.tail_loss();
    if last.is_finite() { last.min(first) } else { first }
}

/// Points of a curve for a picture.
pub(super) fn points(curve: &Curve) -> Vec<(f64, f64)> {
    curve.iter().map(|&(step, value)| (step as f64, value)).collect()
}

/// The moving average over some 2 % of a curve's steps.
pub fn calm(curve: &Curve) -> Vec<(f64, f64)> {
    let steps = curve.first().zip(curve.last()).map_or(0, |(first, last)| last.0 - first.0 + 1);
    average(curve, |_| steps as f64 / 50.0)
}

/// The moving average that looks back over as many steps as `horizon` says, by how many have gone before. A
/// thinned curve has fewer points in them.
pub(super) fn average(curve: &[(u64, f64)], horizon: impl Fn(u64) -> f64) -> Vec<(f64, f64)> {
    let values: Vec<f64> = curve.iter().map(|(_, value)| *value).collect();
    let points = |i: usize| {
        let gap = if i == 0 { 1 } else { curve[i].0 - curve[i - 1].0 };
        (horizon(curve[i].0 - curve[0].0) / gap as f64).max(1.0)
    };
    let smoothed = smooth(&values, points);
    curve.iter().map(|(step, _)| *step as f64).zip(smoothed).collect()
}

/// A number of a table: four digits, or how it is no number.
pub(super) fn number(value: f64) -> String {
    match value {
        value if !value.is_finite() => "-".into(),
        0.0 => "0".into(),
        value if value.abs() < 1e-3 || value.abs() >= 1e4 => format!("{value:.2e}"),
        value => format!("{value:.4}"),
    }
}

/// Steps of a table.
pub(super) fn step(step: Option<u64>) -> String {
    step.map_or_else(|| "-".into(), |step| step.to_string())
}

/// Parameters, embeddings included, and tokens of a run.
pub(super) fn size(planned: &RunConfig) -> (f64, f64) {
    let tokens = planned.config.train.batch * planned.config.model.context();
    (
        planned.config.model.layout().len() as f64,
        (tokens as u64 * planned.config.train.steps) as f64,
    )
}
