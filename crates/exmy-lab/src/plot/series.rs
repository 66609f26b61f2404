//! What is drawn: series, bands, and the moving average that makes a noisy series readable.

use std::{string::String, vec::Vec};

/// A named sequence of points.
///
/// The name decides the colour and dash pattern: the same name looks the same in every panel of
/// a figure. Points that have no place on an axis (NaN, infinity, or not positive on a
/// logarithmic axis) interrupt the line and are marked where it breaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    pub(super) note: String,
}

impl Series {
    /// A series of `(x, y)` in the order in which they are joined.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), note: String::new() }
    }

    /// A short remark beside the name, such as the last value.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// A shaded region between two curves, in the colour of the series of the same name.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64, f64)>,
}

impl Band {
    /// A band of `(x, low, high)`; a point with a non-finite member interrupts it.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect() }
    }
}

/// The exponential moving average of `values`, corrected for its start at zero as in Adam (Kingma and Ba,
/// 2015, section 3). A constant stays that constant from the first element on.
///
/// `horizon(i)` says how many values the average looks back at element `i`: the new value has
/// weight `1 / horizon`. A horizon that grows with `i` follows the steep start of a loss curve and
/// still calms its end. A non-finite value is handed through where it stands, so that a picture
/// shows it, and leaves the average of the others alone.
///
/// # Panics
/// If a horizon is below 1.
pub fn smooth(values: &[f64], horizon: impl Fn(usize) -> f64) -> Vec<f64> {
    let (mut sum, mut weight) = (0.0, 0.0);
    let mut next = |(i, &value): (usize, &f64)| {
        let horizon = horizon(i);
        assert!(horizon >= 1.0, "an average over {horizon} values");
        if !value.is_finite() {
            return value;
        }
        let new = 1.0 / horizon;
        sum = (1.0 - new) * sum + new * value;
        weight = (1.0 - new) * weight + new;
        sum / weight
    };
    values.iter().enumerate().map(&mut next).collect()
}
