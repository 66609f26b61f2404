//! The table of where the time of training steps goes, and of the memory a run takes.
//!
//! Times are those of the [`stopwatch`](crate::nn::stopwatch); what no part claims is the row
//! `other`. [`MemoryNeed`] counts the memory that training needs whatever it is written in: weights,
//! gradients, the optimizer's moments, and the activations that the backward pass reads. It also has the
//! most that the process held beyond what it held before the first model was made, as Linux says it
//! (`VmHWM`, which is set back before each run, less `VmRSS`). Memory of an earlier run that the
//! system did not get back counts for the later one.

use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::nn::decoder::{Mixer, Norm, NormPlace, QkNorm};
use crate::nn::model;
use crate::nn::proxy::Activation;
use crate::nn::stopwatch::{Laps, Part, measure};
use crate::train::config::{Config, EVALUATED_ROWS, EVALUATED_WINDOWS};
use crate::train::memory::status;

/// What some steps took.
#[derive(Clone, Debug, PartialEq)]
pub struct StepProfile {
    /// Steps that were measured.
    pub steps: u64,
    /// Their time.
    pub time: Duration,
    /// The laps of their parts.
    pub laps: Vec<Laps>,
    /// The memory that the process held at its largest, in bytes, less what it held before the first
    /// model, where the system says it.
    pub held: Option<u64>,
    /// What training needs on paper.
    pub paper: MemoryNeed,
}

impl StepProfile {
    /// Measures `steps` calls of `step` of training a model with `batch` sequences in memory. The
    /// memory is known if it was [begun](begin) to be measured before the model was made.
    pub fn of(model: &model::Config, batch: usize, steps: u64, mut step: impl FnMut()) -> Self {
        let paper = MemoryNeed::of(model, batch, 0);
        Self { steps, ..Self::measure(paper, || (0..steps).for_each(|_| step())).1 }
    }

    /// Measures a whole run, whose steps are counted by the batches that it draws; its evaluations
    /// are forward passes like those of the steps, and what it writes is `other`.
    pub fn of_run<R>(config: &Config, run: impl FnOnce() -> R) -> (R, Self) {
        begin();
        Self::measure(MemoryNeed::of_run(config), run)
    }

    fn measure<R>(paper: MemoryNeed, run: impl FnOnce() -> R) -> (R, Self) {
        let start = Instant::now();
        let (result, laps) = measure(run);
        let time = start.elapsed();
        let batches = laps.iter().find(|laps| laps.part == Part::Batch);
        let steps = batches.map_or(0, |laps| laps.count);
        (result, Self { steps, time, laps, held: held(), paper })
    }
}

/// What training needs on paper, in bytes: everything in f32, each number once.
///
/// Activations are counted for each token of a step.
/// * Of each block: the stream before both norms, the norms' outputs and statistics, the
///   pre-activations and the activations of the MLP; what norms read that come after what they norm.
/// * Of softmax attention: q|k|v, queries and keys before norms of their own, the logarithm of the
///   sum of each row, the output.
/// * Of gated linear attention: all its projections, the gate's logits and decays, what the
///   recurrence writes, that normed and gated.
/// * Apart from the blocks: the stream at the end, the last norm's output, the logits, the token and
///   its target.
/// * Of the proxy: the stream, the norms' outputs and statistics, pre-activations and activations,
///   the targets.
///
/// Probabilities are not among them, as they can be formed again from q and k, nor are gradients of
/// activations. An evaluation has the activations of one block, of more sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryNeed {
    /// Of the model, and of the proxy's teacher.
    pub weights: u64,
    /// Of the weights that are trained.
    pub gradients: u64,
    /// AdamW's two, the buffer of SGD with momentum, or none.
    pub moments: u64,
    /// Of a training step.
    pub activations: u64,
    /// Of a forward pass of an evaluation.
    pub evaluation: u64,
}

impl MemoryNeed {
    /// Of a model in training by AdamW with `batch` sequences in memory and evaluations of `evaluated`.
    pub fn of(model: &model::Config, batch: usize, evaluated: usize) -> Self {
        let (blocks, rest): (Vec<usize>, usize) = match model {
            model::Config::Decoder(model) => {
                let d = model.d_model;
                let statistics = if model.norm == Norm::LayerNorm { 2 } else { 1 };
                let queries = model.heads * model.head_dim();
                let normed = match model.qk_norm {
                    QkNorm::None => 0,
                    QkNorm::Head => {
                        queries
                            + model.kv_heads * model.head_dim()
                            + statistics * (model.heads + model.kv_heads)
                    }
                    QkNorm::Full => queries + model.kv_heads * model.head_dim() + 2 * statistics,
                };
                let mixer = |layer| match model.mixer.of(layer) {
                    Mixer::Attention => model.qkv_outputs() + normed + model.heads + queries,
                    Mixer::Gla => {
                        model.gla_outputs()
                            + 2 * model.gla_keys()
                            + 3 * model.gla_values()
                            + model.gla.heads
                    }
                };
                // What norms read, where that is not the stream.
                let inner = if model.norm_place == NormPlace::After { 2 * d } else { 0 };
                let block = 4 * d + inner + 2 * statistics + model.mlp_outputs() + model.hidden;
                let blocks = (0..model.layers).map(|layer| mixer(layer) + block);
                (blocks.collect(), 2 * d + statistics + model.vocab + 2)
            }
            model::Config::Proxy(model) => {
                let normed = if model.norm { model.width + 2 } else { 0 };
                let hidden = model.hidden();
                let before =
                    if model.activation == Activation::Swiglu { 2 * hidden } else { hidden };
                let block = model.width + normed + before + hidden;
                (vec![block; model.layers], 2 * model.width)
            }
        };
        let bytes = |numbers: usize| 4 * numbers as u64;
        let tokens = |sequences: usize| sequences * model.context();
        let parameters = model.layout().len();
        let fixed = match model {
            model::Config::Decoder(_) => 0,
            model::Config::Proxy(model) => model.teacher_parameters(),
        };
        let widest = blocks.iter().max().copied().unwrap_or(0);
        Self {
            weights: bytes(parameters + fixed),
            gradients: bytes(parameters),
            moments: bytes(2 * parameters),
            activations: bytes(tokens(batch) * (blocks.iter().sum::<usize>() + rest)),
            evaluation: bytes(tokens(evaluated) * (widest + rest)),
        }
    }

    /// Of a run of a configuration.
    pub fn of_run(config: &Config) -> Self {
        let Config { model, train, record, .. } = config;
        let most = match model {
            model::Config::Decoder(_) => EVALUATED_WINDOWS,
            model::Config::Proxy(model) => EVALUATED_ROWS.min(model.validation_rows),
        };
        let evaluated = if record.eval_windows == 0 { most } else { most.min(record.eval_windows) };
        let paper = Self::of(model, train.batch / train.accumulate, evaluated);
        let moments = paper.gradients * train.optimizer().moments().len() as u64;
        Self { moments, ..paper }
    }

    /// What is kept from step to step.
    pub fn kept(&self) -> u64 {
        self.weights + self.gradients + self.moments
    }

    /// What must be there at once: steps and evaluations do not overlap.
    pub fn total(&self) -> u64 {
        self.kept() + self.activations.max(self.evaluation)
    }
}

/// Begins to measure memory: what is held when this is called first is no model's, and the system
/// looks for the largest from each call on.
pub fn begin() {
    FIRST.get_or_init(|| status("VmRSS:"));
    // Where this is refused, what is reported is the largest since the process began, which is no less.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The memory that was held when measuring [began](begin).
static FIRST: OnceLock<Option<u64>> = OnceLock::new();

/// The most that was held since then, less what was held before.
fn held() -> Option<u64> {
    let first = (*FIRST.get()?)?;
    Some(status("VmHWM:")?.saturating_sub(first))
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

impl fmt::Display for StepProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = self.steps.max(1) as f64;
        let total = self.time.as_secs_f64();
        let row = |f: &mut fmt::Formatter<'_>, name: &str, detail: &str, count: f64, time: f64| {
            let share = if total > 0.0 { 100.0 * time / total } else { 0.0 };
            writeln!(
                f,
                "{name:<16} {detail:<22} {count:>8.1} {:>10.3} {share:>6.1}",
                1e3 * time / steps
            )
        };
        writeln!(f, "{:<16} {:<22} {:>8} {:>10} {:>6}", "part", "", "calls", "ms a step", "%")?;
        let mut claimed = 0.0;
        for Laps { part, count, time } in &self.laps {
            claimed += time.as_secs_f64();
            let count = *count as f64 / steps;
            row(f, part.name(), &part.detail(), count, time.as_secs_f64())?;
        }
        row(f, "other", "", 1.0, (total - claimed).max(0.0))?;
        row(f, "all", "", 1.0, total)?;
        let sums = self.laps.iter().filter(|laps| matches!(laps.part, Part::Linear(..)));
        let linear: f64 = sums.map(|laps| laps.time.as_secs_f64()).sum();
        row(f, "of it, linear", "", 1.0, linear)?;
        let MemoryNeed { weights, gradients, moments, activations, evaluation } = self.paper;
        writeln!(f, "{:<39} {:>8}", "memory", "MiB")?;
        for (name, detail, bytes) in [
            ("weights", "", weights),
            ("gradients", "", gradients),
            ("moments", "", moments),
            ("activations", "of a step", activations),
            ("or", "of an evaluation", evaluation),
            ("on paper", "", self.paper.total()),
        ] {
            if bytes > 0 {
                writeln!(f, "{name:<16} {detail:<22} {:>8.1}", mebibytes(bytes))?;
            }
        }
        match self.held {
            Some(held) => {
                let ratio = held as f64 / self.paper.total() as f64;
                let detail = format!("{ratio:.2} times");
                writeln!(f, "{:<16} {detail:<22} {:>8.1}", "held at most", mebibytes(held))
            }
            None => writeln!(f, "{:<16} not known here", "held at most"),
        }
    }
}
