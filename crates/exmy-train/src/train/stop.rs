//! When a run has diverged and goes no further.
//!
//! A loss or gradient norm that is no finite number always ends a run. The other criteria are
//! switched off by 0, which is the default: a number format that makes training slower or rougher
//! must not shorten the run it is judged by. Suggestions of the literature on training in few bits:
//! `loss_factor = 10` (the median of 50 losses above ten times the lowest such median), `loss_rise = 0.5`
//! (nats above it).

use crate::train::record::Metrics;
use crate::train::running_median::RunningMedian;
use exmy::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// `[stop]`: criteria of divergence; 0 switches one off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// A training loss above this.
    pub loss_above: f64,
    /// A gradient norm above this.
    pub grad_norm_above: f64,
    /// A median of the last `record.window` losses above this multiple of the lowest one so far.
    pub loss_factor: f64,
    /// A median of the last `record.window` losses this far above the lowest one so far.
    pub loss_rise: f64,
    /// Steps in a row for which one of these must hold; 0 counts as 1.
    pub patience: u64,
}

impl Stop {
    /// Refuses criteria that are no numbers.
    ///
    /// # Errors
    /// Names the key.
    pub fn validate(&self) -> Result<()> {
        for (key, value) in [
            ("stop.loss_above", self.loss_above),
            ("stop.grad_norm_above", self.grad_norm_above),
            ("stop.loss_factor", self.loss_factor),
            ("stop.loss_rise", self.loss_rise),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                return Err(Error::new(format!("{key} = {value} is impossible"))
                    .hint("a finite number, not negative; 0 switches it off"));
            }
        }
        Ok(())
    }
}

/// Reads losses and norms and says when it is enough.
#[derive(Clone, Debug)]
pub struct Watchdog {
    stop: Stop,
    losses: RunningMedian,
    lowest: f64,
    streak: u64,
}

impl Watchdog {
    /// Before the first line; `window` losses make a median.
    pub fn new(stop: &Stop, window: usize) -> Self {
        let losses = RunningMedian::new(window);
        Self { stop: stop.clone(), losses, lowest: f64::INFINITY, streak: 0 }
    }

    /// Why the run ends after this line, if it does.
    pub fn bark(&mut self, line: &Metrics) -> Option<String> {
        let (loss, norm) = (line.loss?, line.grad_norm?);
        let stop = &self.stop;
        self.losses.push(loss);
        let median = if self.losses.is_full() { self.losses.median() } else { None };
        let above = |limit: f64, value: f64| limit > 0.0 && value > limit;
        let reason = if above(stop.loss_above, loss) {
            Some(format!("loss {loss} above {}", stop.loss_above))
        } else if above(stop.grad_norm_above, norm) {
            Some(format!("gradient norm {norm} above {}", stop.grad_norm_above))
        } else {
            median.and_then(|median| {
                let lowest = self.lowest;
                let medians = format!("median loss {median}, lowest {lowest}");
                if stop.loss_factor > 0.0 && median > stop.loss_factor * lowest {
                    Some(format!("{medians}: more than {} times", stop.loss_factor))
                } else if stop.loss_rise > 0.0 && median > lowest + stop.loss_rise {
                    Some(format!("{medians}: more than {} above", stop.loss_rise))
                } else {
                    None
                }
            })
        };
        self.lowest = self.lowest.min(median.unwrap_or(f64::INFINITY));
        self.streak = if reason.is_some() { self.streak + 1 } else { 0 };
        reason.filter(|_| self.streak >= stop.patience.max(1))
    }
}
