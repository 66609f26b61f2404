//! The table of where the time of training steps goes, and of the memory a run takes.
//!
//! Times are those of the [`stopwatch`](crate::nn::stopwatch); what no part claims is the row
//! `other`. Memory on paper counts the numbers that training needs whatever it is written in:
//! weights, gradients, two moments, and the activations that the backward pass reads; beside it
//! stands the most that the process held, as Linux tells it (`VmHWM`).

use std::fmt;
use std::time::{Duration, Instant};

use crate::nn::decoder::Mixer;
use crate::nn::model;
use crate::nn::proxy::Activation;
use crate::nn::stopwatch::{Laps, Part, measure};

/// What some steps took.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Steps that were measured.
    pub steps: u64,
    /// Their time.
    pub time: Duration,
    /// The laps of their parts.
    pub laps: Vec<Laps>,
    /// The memory of the process at its largest, in bytes, where the system tells it.
    pub peak_memory: Option<u64>,
    /// What training needs on paper, in bytes; see [`memory_on_paper`].
    pub memory_on_paper: u64,
}

impl Profile {
    /// Measures `steps` calls of `step` of training a model with `batch` sequences in memory.
    pub fn of(model: &model::Config, batch: usize, steps: u64, mut step: impl FnMut()) -> Self {
        Self { steps, ..Self::of_run(model, batch, || (0..steps).for_each(|_| step())).1 }
    }

    /// Measures a whole run, whose steps are counted by the batches that it draws; its evaluations
    /// are forward passes like those of the steps, and what it writes is `other`.
    pub fn of_run<R>(model: &model::Config, batch: usize, run: impl FnOnce() -> R) -> (R, Self) {
        let start = Instant::now();
        let (result, laps) = measure(run);
        let time = start.elapsed();
        let batches = laps.iter().find(|laps| laps.part == Part::Batch);
        let profile = Self {
            steps: batches.map_or(0, |laps| laps.count),
            time,
            laps,
            peak_memory: peak_memory(),
            memory_on_paper: memory_on_paper(model, batch),
        };
        (result, profile)
    }
}

/// Bytes of weights, gradients, moments and kept activations of a model in f32, with `batch`
/// sequences in memory.
///
/// Activations of a decoder's block are the stream before both norms, the norms' outputs, q|k|v and
/// the attention's output (gated linear attention: all its projections, the gate's logits and
/// decays, what the recurrence writes, that normed and gated), the pre-activations and the
/// activations; beside the blocks the stream at the end, the last norm's output and the logits.
/// Probabilities are not among them: they can be formed again from q and k. Of the proxy they are the
/// stream, the norms' outputs, pre-activations and activations, and the targets.
pub fn memory_on_paper(model: &model::Config, batch: usize) -> u64 {
    let kept = match model {
        model::Config::Decoder(model) => {
            let d = model.d_model;
            let mixer = |layer| match model.mixer.of(layer) {
                Mixer::Attention => model.qkv_outputs() + model.heads * model.head_dim(),
                Mixer::Gla => model.gla_outputs() + 2 * model.gla_keys() + 3 * model.gla_values(),
            };
            let mixers: usize = (0..model.layers).map(mixer).sum();
            let block = 4 * d + model.mlp_outputs() + model.hidden;
            mixers + model.layers * block + 2 * d + model.vocab
        }
        model::Config::Proxy(model) => {
            let normed = if model.norm { model.width } else { 0 };
            let hidden = model.hidden();
            let before = if model.activation == Activation::Swiglu { 2 * hidden } else { hidden };
            model.layers * (model.width + normed + before + hidden) + 2 * model.width
        }
    };
    4 * (4 * model.layout().len() + batch * model.context() * kept) as u64
}

/// The most memory the process has held.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

impl fmt::Display for Profile {
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
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        write!(f, "memory on paper {:.1} MiB", mebibytes(self.memory_on_paper))?;
        if let Some(peak) = self.peak_memory {
            let ratio = peak as f64 / self.memory_on_paper as f64;
            write!(f, ", at most {:.1} MiB held ({ratio:.2} times)", mebibytes(peak))?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::decoder;
    use crate::nn::stopwatch::{Way, lap};
    use crate::train::preset::preset;

    #[test]
    fn parts_and_the_rest_make_the_whole() {
        let model = preset("nano").unwrap().model;
        let profile = Profile::of(&model, 8, 2, || drop(lap(Part::Norm(Way::Forward))));
        assert_eq!((profile.laps.len(), profile.laps[0].count), (1, 2));
        let text = Profile {
            time: Duration::from_millis(10),
            laps: vec![Laps { time: Duration::from_millis(4), ..profile.laps[0] }],
            ..profile
        }
        .to_string();
        let shares: Vec<_> = text.lines().skip(1).take(3).map(|line| line[59..].trim()).collect();
        assert_eq!(shares, ["40.0", "60.0", "100.0"], "{text}");
        assert!(
            text.contains("norm             forward                     1.0      2.000"),
            "{text}"
        );
    }

    /// Two layers, d 4, by hand: a block keeps 4 * 4 + 12 + 4 + 8 + 8 numbers a token.
    #[test]
    fn memory_by_hand() {
        let model = model::Config::from(decoder::Config {
            vocab: 10,
            context: 3,
            layers: 2,
            d_model: 4,
            heads: 2,
            kv_heads: 2,
            hidden: 8,
            ..*preset("gpt-nano").unwrap().model.decoder().unwrap()
        });
        let parameters = model.layout().len();
        let activations = 5 * 3 * (2 * 48 + 8 + 10);
        assert_eq!(memory_on_paper(&model, 5), 4 * (4 * parameters + activations) as u64);
    }
}
