//! What is drawn: series, bands, and the moving average that makes a noisy series readable.

use alloc::{string::String, vec::Vec};

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

/// The exponential moving average of `values`, corrected for its start at zero as in Adam
/// (Kingma and Ba, 2015, section 3): a constant stays that constant from the first element on.
///
/// `beta` is the weight of the past; the average looks back about `1 / (1 - beta)` values. A
/// non-finite value is handed through where it stands, so that a picture shows it, and leaves
/// the average of the others alone.
///
/// # Panics
/// Unless `0 <= beta < 1`.
pub fn smooth(values: &[f64], beta: f64) -> Vec<f64> {
    assert!((0.0..1.0).contains(&beta), "smoothing needs 0 <= beta < 1, not {beta}");
    let (mut sum, mut weight) = (0.0, 0.0);
    let mut next = |&value: &f64| {
        if !value.is_finite() {
            return value;
        }
        sum = beta * sum + (1.0 - beta) * value;
        weight = beta * weight + (1.0 - beta);
        sum / weight
    };
    values.iter().map(&mut next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothing_is_the_weighted_mean() {
        // Weights of the past at beta = 1/2: (1), (1 2)/3, (1 2 4)/7.
        assert_eq!(smooth(&[4.0, 1.0, 7.0], 0.5), [4.0, 2.0, (4.0 + 2.0 + 28.0) / 7.0]);
        assert_eq!(smooth(&[3.0, 1.0, 2.0], 0.0), [3.0, 1.0, 2.0]);
        assert!(smooth(&[], 0.9).is_empty());
        for value in smooth(&[5.0; 100], 0.97) {
            assert!((value - 5.0).abs() < 1e-14);
        }
    }

    #[test]
    fn smoothing_hands_gaps_through() {
        let smoothed = smooth(&[4.0, f64::NAN, 1.0, f64::INFINITY], 0.5);
        assert_eq!((smoothed[0], smoothed[2], smoothed[3]), (4.0, 2.0, f64::INFINITY));
        assert!(smoothed[1].is_nan());
    }

    #[test]
    #[should_panic(expected = "0 <= beta < 1, not 1")]
    fn smoothing_must_forget() {
        let _ = smooth(&[1.0], 1.0);
    }
}
