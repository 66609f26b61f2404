//! The picture of a comparison: loss curves above, differences from the first run below.
//!
//! Curves of number formats nearly coincide, and all runs see the same batches, so what distinguishes them
//! apart is the difference: the lower panel has it in percent, step by step, of the smoothed
//! curves. Raw losses are the pale lines, validation losses the dots.

use crate::plot::{Axis, Figure, Panel, Series, smooth};
use crate::table::gap_percent;
use exmy_train::train::record::Metrics;

/// One run's line.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What the legend says: the recipe.
    pub name: String,
    /// The run's records so far.
    pub metrics: Vec<Metrics>,
}

impl Curve {
    /// Steps and training losses; a diverged step is NaN.
    fn losses(&self) -> (Vec<f64>, Vec<f64>) {
        let trained = self.metrics.iter().filter(|line| line.step > 0);
        trained.map(|line| (line.step as f64, line.loss.unwrap_or(f64::NAN))).unzip()
    }

    fn validation(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.metrics.iter().filter_map(|line| Some((line.step as f64, line.val_loss?)))
    }
}

/// How many steps the drawn average looks back: a tenth of those so far, so that the steep start
/// is not dragged along, and at most a thirtieth of the run.
fn horizon(i: usize, steps: usize) -> f64 {
    (i as f64 / 10.0).min(steps as f64 / 30.0).max(1.0)
}

/// Draws the curves; `unit` is what losses are in, `conditions` the line below the title, `reference` the
/// loss of the text's own source on the validation text, if it is known.
pub fn draw(unit: &str, conditions: &str, reference: Option<f64>, curves: &[Curve]) -> String {
    let mut losses = Panel::new(Axis::log(format!("training loss, {unit}"))).height_share(2.0);
    let mut base: Option<Vec<f64>> = None;
    let mut gaps = Panel::new(Axis::linear(match curves.first() {
        Some(first) => format!("difference from {}, %", first.name),
        None => String::new(),
    }));
    for curve in curves {
        let (steps, raw) = curve.losses();
        let smoothed = smooth(&raw, |i| horizon(i, raw.len()));
        let pairs = |values: &[f64]| -> Vec<(f64, f64)> {
            steps.iter().copied().zip(values.iter().copied()).collect()
        };
        let last = smoothed.last().filter(|value| value.is_finite());
        let note = last.map_or_else(String::new, |value| format!("{value:.3}"));
        losses = losses
            .faint(Series::new(&curve.name, pairs(&raw)))
            .line(Series::new(&curve.name, pairs(&smoothed)).note(note))
            .points(Series::new(&curve.name, curve.validation()));
        match &base {
            None => base = Some(smoothed),
            Some(base) => {
                let gap: Vec<f64> =
                    smoothed.iter().zip(base).map(|(&a, &b)| gap_percent(a, b)).collect();
                let last = gap.last().filter(|value| value.is_finite());
                let note = last.map_or_else(String::new, |value| format!("{value:+.2}"));
                gaps = gaps.line(Series::new(&curve.name, pairs(&gap)).note(note));
            }
        }
    }
    if let Some(reference) = reference {
        losses = losses.rule(reference, format!("the language itself {reference:.3}"));
    }
    let figure = Figure::new("Training loss by number format")
        .subtitle(conditions)
        .x(Axis::linear("step"))
        .panel(losses);
    let figure = if curves.len() > 1 { figure.panel(gaps.rule(0.0, "")) } else { figure };
    figure.to_svg()
}
