//! The learning rate over a run: linear warm-up, then constant, cosine, or stable and decay.
//!
//! Warm-up and cosine are nanoGPT's (Karpathy): `peak (step + 1) / (warmup + 1)` while
//! `step < warmup`, then `minimum + (1 + cos(pi x)) / 2 (peak - minimum)` with
//! `x = (step - warmup) / (steps - warmup)`. Warm-up-stable-decay (Hu et al., MiniCPM, 2024) holds
//! the peak and falls linearly over the last fraction of the steps. `x` is 0 at the first step of a
//! decay and would be 1 one step after the last.

use core::fmt;
use core::str::FromStr;

/// Share of the steps that `wsd` decays over where the text does not say.
const DECAY_FRACTION: f64 = 0.2;

/// The shape of the learning rate after the warm-up.
///
/// Its text forms are `constant`, `cosine`, `wsd` (the last 0.2 of the steps) and `wsd:0.1`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// The peak, to the end.
    Constant,
    /// Half a cosine from the peak to the minimum.
    Cosine,
    /// The peak, then a line to the minimum.
    Wsd {
        /// Share of all steps that the line takes, in (0, 1].
        decay_fraction: f64,
    },
}

impl Schedule {
    /// The learning rate of `step`, counted from 0, in a run of `steps`.
    ///
    /// From `steps` on it stays where the schedule ends; a decay never starts during the warm-up.
    pub fn learning_rate(
        &self,
        step: u64,
        steps: u64,
        warmup: u64,
        peak: f64,
        minimum: f64,
    ) -> f64 {
        if step < warmup {
            return peak * (step + 1) as f64 / (warmup + 1) as f64;
        }
        match *self {
            Self::Constant => peak,
            Self::Cosine => {
                let share =
                    0.5 * (1.0 + libm::cos(core::f64::consts::PI * part(step, warmup, steps)));
                minimum + share * (peak - minimum)
            }
            Self::Wsd { decay_fraction } => {
                let decay = (steps as f64 * decay_fraction).round() as u64;
                let start = steps.saturating_sub(decay).max(warmup);
                peak + part(step, start, steps) * (minimum - peak)
            }
        }
    }
}

/// How much of `start..end` lies before `step`, from 0 to 1.
fn part(step: u64, start: u64, end: u64) -> f64 {
    if step >= end { 1.0 } else { step.saturating_sub(start) as f64 / (end - start) as f64 }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::Cosine => f.write_str("cosine"),
            Self::Wsd { decay_fraction } if *decay_fraction == DECAY_FRACTION => f.write_str("wsd"),
            Self::Wsd { decay_fraction } => write!(f, "wsd:{decay_fraction}"),
        }
    }
}

/// A text that names no schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseScheduleError(String);

impl fmt::Display for ParseScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no learning-rate schedule `{}`: write `constant`, `cosine`, `wsd` or `wsd:F`, F the \
             share of the steps that decay, above 0 and at most 1 (`wsd` is `wsd:{DECAY_FRACTION}`)",
            self.0
        )
    }
}

impl core::error::Error for ParseScheduleError {}

impl FromStr for Schedule {
    type Err = ParseScheduleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "constant" => return Ok(Self::Constant),
            "cosine" => return Ok(Self::Cosine),
            "wsd" => return Ok(Self::Wsd { decay_fraction: DECAY_FRACTION }),
            _ => {}
        }
        let fraction = text.strip_prefix("wsd:").and_then(|fraction| fraction.parse().ok());
        match fraction {
            Some(decay_fraction) if decay_fraction > 0.0 && decay_fraction <= 1.0 => {
                Ok(Self::Wsd { decay_fraction })
            }
            _ => Err(ParseScheduleError(text.to_owned())),
        }
    }
}
