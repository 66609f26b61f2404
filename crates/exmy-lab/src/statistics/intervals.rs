//! Means with their intervals, of independent values and of pairs.

use super::distribution::t_quantile;
use exmy_train::train::running_median::RunningMedian;

/// An estimate, and between what the truth lies at the confidence asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub estimate: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether `value` lies outside: of a difference and 0, whether there is one.
    pub fn excludes(&self, value: f64) -> bool {
        value < self.low || value > self.high
    }

    /// `+0.120 (+0.030 to +0.210)`, with so many digits behind the point.
    pub fn words(&self, digits: usize) -> String {
        let Self { estimate, low, high } = self;
        format!("{estimate:+.digits$} ({low:+.digits$} to {high:+.digits$})")
    }
}

fn finite(values: &[f64]) -> bool {
    values.iter().all(|value| value.is_finite())
}

/// The arithmetic mean; `None` of no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The middle value, of an even number the mean of the two in the middle; `None` of no values or
/// where one is NaN.
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut all = RunningMedian::new(values.len());
    values.iter().for_each(|&value| all.push(value));
    all.median()
}

/// The sample standard deviation, over `n - 1`; `None` of fewer than two values.
pub fn sd(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// The mean of independent values and its interval by Student's t (Biometrika 6, 1908):
/// `mean +- t sd / sqrt(n)`, where `t` has `n - 1` degrees of freedom.
///
/// `None` of fewer than two values, values that are not finite, or a confidence outside (0, 1).
///
/// ```
/// use exmy_lab::statistics::mean_interval;
///
/// let found = mean_interval(&[1.0, 2.0, 3.0], 0.95).unwrap();
/// assert!((found.high - found.estimate - 4.302_652_7 / 3.0_f64.sqrt()).abs() < 1e-7);
/// assert_eq!(mean_interval(&[1.0], 0.95), None); // one seed says nothing of others
/// ```
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let (estimate, sd) = (mean(values)?, sd(values)?);
    let n = values.len() as f64;
    let reach = t_quantile((1.0 - confidence) / 2.0, n - 1.0) * sd / n.sqrt();
    let found = Interval { estimate, low: estimate - reach, high: estimate + reach };
    (finite(values) && reach.is_finite()).then_some(found)
}

/// The interval of the mean of `a[i] - b[i]`, which are pairs: runs of the same seed.
///
/// `None` as of [`mean_interval`].
///
/// ```
/// use exmy_lab::statistics::{mean_interval, paired_interval};
///
/// // Seeds differ far more than formats do: the pairs show what the means hide.
/// let (a, b) = ([5.1, 3.1, 4.1, 2.2], [5.0, 3.0, 4.0, 2.0]);
/// assert!(paired_interval(&a, &b, 0.95).unwrap().excludes(0.0));
/// assert!(!mean_interval(&a, 0.95).unwrap().excludes(3.5));
/// ```
///
/// # Panics
/// If the numbers of values differ.
pub fn paired_interval(a: &[f64], b: &[f64], confidence: f64) -> Option<Interval> {
    assert_eq!(a.len(), b.len(), "values that are not paired");
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    mean_interval(&differences, confidence)
}
