//! The median of the last values of a noisy series, at which spikes are measured.

use std::collections::VecDeque;

/// The last values of a series, at most a window of them.
#[derive(Clone, Debug)]
pub struct RunningMedian {
    window: usize,
    values: VecDeque<f64>,
}

/// Values before there is a median: losses of the first steps fall too fast for one.
pub const LEAST: usize = 10;

impl RunningMedian {
    /// An empty series with a window of that many values.
    pub fn new(window: usize) -> Self {
        Self { window, values: VecDeque::new() }
    }

    /// Adds a value.
    pub fn push(&mut self, value: f64) {
        if self.values.len() >= self.window {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    /// Whether the window is full.
    pub fn is_full(&self) -> bool {
        self.values.len() >= self.window
    }

    /// The median, of an even number of values the mean of the two in the middle; `None` before
    /// [`LEAST`] values (or a full window, if that is less).
    pub fn median(&self) -> Option<f64> {
        if self.values.is_empty() || self.values.len() < LEAST.min(self.window) {
            return None;
        }
        let mut sorted: Vec<f64> = self.values.iter().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let half = sorted.len() / 2;
        Some(match sorted.len() % 2 {
            1 => sorted[half],
            _ => f64::midpoint(sorted[half - 1], sorted[half]),
        })
    }

    /// `value` over the median.
    pub fn ratio(&self, value: f64) -> Option<f64> {
        self.median().map(|median| value / median).filter(|ratio| !ratio.is_nan())
    }
}
