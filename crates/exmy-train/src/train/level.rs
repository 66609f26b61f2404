//! The level a noisy value runs at: the median of its last records.

use std::collections::VecDeque;

/// The last values of a series, at most a window of them.
#[derive(Clone, Debug)]
pub struct Level {
    window: usize,
    values: VecDeque<f64>,
}

/// Records before there is a level: the first steps fall too fast for one.
pub const LEAST: usize = 10;

impl Level {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_last_values() {
        let mut level = Level::new(4);
        assert_eq!(level.median(), None);
        for (value, median) in [
            (9.0, None),
            (1.0, None),
            (2.0, None),
            (4.0, Some(3.0)),
            (8.0, Some(3.0)),
            (8.0, Some(6.0)),
        ] {
            level.push(value);
            assert_eq!(level.median(), median, "after {value}");
        }
        assert_eq!(level.ratio(12.0), Some(2.0));
        let mut odd = Level::new(3);
        [5.0, 1.0, 3.0, 7.0].into_iter().for_each(|value| odd.push(value));
        assert_eq!(odd.median(), Some(3.0));
    }

    #[test]
    fn no_level_before_ten_values() {
        let mut level = Level::new(50);
        (0..9).for_each(|_| level.push(2.0));
        assert_eq!(level.ratio(4.0), None);
        level.push(2.0);
        assert_eq!(level.ratio(4.0), Some(2.0));
    }
}
