//! How long a run was trained, over all processes that worked on it: what `timing.jsonl` says.
//!
//! Its lines ([`Timing`](exmy_train::train::record::Timing)) count from the beginning of each process, so a
//! run that was stopped and resumed has several counts. A speed is the tokens of all of them over their
//! seconds; steps that a kill undid are in neither.

use exmy::safetensors::given;
use exmy_train::train::config::Config;
use exmy_train::train::run::Folder;
use serde::Deserialize;
use std::iter::Sum;
use std::ops::Add;

/// Training steps in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Time {
    /// Tokens that were trained on.
    pub tokens: f64,
    /// Seconds in steps; evaluations and files are not in them.
    pub seconds: f64,
}

impl Add for Time {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { tokens: self.tokens + other.tokens, seconds: self.seconds + other.seconds }
    }
}

impl Sum for Time {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
}

impl Time {
    /// Tokens a second, where something was timed.
    pub fn speed(self) -> Option<f64> {
        (self.seconds > 0.0 && self.tokens > 0.0).then(|| self.tokens / self.seconds)
    }
}

/// Tokens of a step.
pub(crate) fn tokens_per_step(config: &Config) -> u64 {
    (config.train.batch * config.model.context()) as u64
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    step: u64,
    train_seconds: f64,
    #[serde(default)]
    tokens_per_second: f64,
}

/// What was timed of a run whose steps have so many tokens; nothing where there is no such file.
pub fn of(run: &Folder, tokens_per_step: u64) -> Time {
    let text = given::lines(&run.timing_file()).unwrap_or_default();
    let lines = text.split(|&byte| byte == b'\n');
    let (mut done, mut step, mut now) = (Time::default(), 0, Time::default());
    for line in lines.filter_map(|line| serde_json::from_slice::<Line>(line).ok()) {
        let seconds = line.train_seconds;
        let next = Time { tokens: line.tokens_per_second * seconds, seconds };
        // A process has done all steps since its last line; one that began there has not done those before.
        let since = line.step.saturating_sub(step) * tokens_per_step;
        let grew = next.tokens - now.tokens + 0.5;
        if next.seconds < now.seconds || next.tokens > 0.0 && grew < since as f64 {
            done = done + now;
        }
        (step, now) = (line.step, next);
    }
    done + now
}
