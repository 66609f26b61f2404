//! The picture of a comparison: differences from the first recipe above, loss curves below.
//!
//! Runs that differ in the seed alone are a line with a band (`comparison`). Of one run
//! each also the raw losses are drawn, as pale lines, and the validation losses, as dots.

use crate::comparison::{self, Curves};
use crate::plot::{Axis, Figure, Series};
use exmy_train::train::record::Metrics;

/// One run's line.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What the legend says: the recipe, and the rate where several were tried.
    pub name: String,
    /// The seed.
    pub seed: u64,
    /// The run's records so far.
    pub metrics: Vec<Metrics>,
}

impl Curve {
    /// Steps and training losses; a diverged step is NaN.
    fn losses(&self) -> Vec<(f64, f64)> {
        let trained = self.metrics.iter().filter(|line| line.step > 0);
        trained.map(|line| (line.step as f64, line.loss.unwrap_or(f64::NAN))).collect()
    }

    fn validation(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.metrics.iter().filter_map(|line| Some((line.step as f64, line.val_loss?)))
    }
}

/// Draws the curves; `unit` is what losses are in, `conditions` the line below the title, `reference` the
/// loss of the text's own source on the validation text, if it is known.
pub fn draw(unit: &str, conditions: &str, reference: Option<f64>, curves: &[Curve]) -> String {
    let mut all: Vec<Curves> = Vec::new();
    for curve in curves {
        let own = (curve.seed, curve.losses());
        match all.iter_mut().find(|known| known.name == curve.name) {
            Some(known) => known.seeds.push(own),
            None => all.push(Curves::of(&curve.name, vec![own], all.len())),
        }
    }
    let axis = Axis::log(format!("training loss, {unit}"));
    let mut losses = comparison::values(axis, &all, true);
    if all.len() == curves.len() {
        for curve in curves {
            losses = losses.points(Series::new(&curve.name, curve.validation()));
        }
    }
    if let Some(reference) = reference {
        losses = losses.rule(reference, format!("the language itself {reference:.3}"));
    }
    let figure = Figure::new("Training loss by number format")
        .subtitle(conditions)
        .x(Axis::linear("step"))
        .order(all.iter().map(|one| one.name.as_str()));
    let gaps = comparison::differences(&all, true);
    gaps.into_iter().fold(figure, Figure::panel).panel(losses).to_svg()
}
