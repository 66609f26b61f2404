//! Curves of the MX study's runs: one line for a run, a median and a band for several seeds.

use crate::detect::Curve;
use crate::plot::{Band, Panel, Series, smooth};
use crate::statistics::median;

/// Points of a curve for a picture.
pub(super) fn points(curve: &Curve) -> Vec<(f64, f64)> {
    curve.iter().map(|&(step, value)| (step as f64, value)).collect()
}

/// The moving average over some 2 % of a curve's points.
pub(super) fn calm(curve: &Curve) -> Vec<(f64, f64)> {
    let values: Vec<f64> = curve.iter().map(|(_, value)| *value).collect();
    let horizon = (values.len() as f64 / 50.0).max(1.0);
    let smoothed = smooth(&values, |_| horizon);
    curve.iter().map(|(step, _)| *step as f64).zip(smoothed).collect()
}

/// Adds curves of several seeds: the median and, of several, the region from the lowest to the highest.
pub(super) fn seeds(mut panel: Panel, name: &str, curves: &[Vec<(f64, f64)>]) -> Panel {
    let longest = curves.iter().max_by_key(|curve| curve.len());
    let Some(longest) = longest else { return panel };
    let at = |i: usize| -> Vec<f64> {
        curves.iter().filter_map(|curve| Some(curve.get(i)?.1)).collect()
    };
    let all: Vec<(f64, Vec<f64>)> =
        longest.iter().enumerate().map(|(i, (x, _))| (*x, at(i))).collect();
    if curves.len() > 1 {
        let ends = |values: &[f64]| {
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            (low, high)
        };
        let band = all.iter().map(|(x, values)| {
            let (low, high) = ends(values);
            (*x, low, high)
        });
        panel = panel.band(Band::new(name, band));
    }
    let middle = all.iter().map(|(x, values)| (*x, median(values).unwrap_or(f64::NAN)));
    panel.line(Series::new(name, middle))
}

/// A number of a table: four digits, or how it is no number.
pub(super) fn number(value: f64) -> String {
    match value {
        value if !value.is_finite() => "-".into(),
        0.0 => "0".into(),
        value if value.abs() < 1e-3 || value.abs() >= 1e4 => format!("{value:.2e}"),
        value => format!("{value:.4}"),
    }
}
