//! One product of drawn operands under a recipe, without a model around it: what E11 and E15 look at.

use crate::statistics::normal_quantile;
use exmy::error::{Error, Result};
use exmy::random::Philox;
use exmy_train::nn::site::{Operator, Site};
use exmy_train::recipe::hot::Patch;
use exmy_train::recipe::rule::{Layers, Rule, Selector, Value};
use exmy_train::recipe::{Linear, Plan, Recipe};

/// The `i`-th number of N(0, 1) of a stream.
pub(super) fn normal(random: &Philox, i: u64) -> f64 {
    normal_quantile((f64::from(random.word(i)) + 0.5) / 4_294_967_296.0)
}

/// The recipe of that text.
pub(super) fn recipe(text: &str) -> Result<Recipe> {
    text.parse().map_err(Error::from_cause)
}

/// NVFP4 in all blocks, with a patch or without.
pub(super) fn patched(patch: Option<Patch>) -> Result<Recipe> {
    let on = Selector::layers(Layers::Blocks).patch();
    Ok(recipe("nv-nvfp4+last=0")?.with_rule(Rule { on, value: Value::Patch(patch) }))
}

/// A recipe's plan for one operator, `up_proj` of the first block.
pub(super) fn plan(recipe: &Recipe, outputs: usize, inputs: usize) -> Result<Plan> {
    let site = Site { layer: Some(0), operator: Operator::Up };
    Plan::of(recipe, vec![Linear { site, outputs, inputs }], 1).map_err(Error::from_cause)
}

/// The sums of the squares of what is wrong, and of what would be right.
pub(super) fn squares(found: &[f32], right: &[f32]) -> [f64; 2] {
    let square = |x: f64| x * x;
    let wrong = found.iter().zip(right).map(|(&a, &b)| square(f64::from(a) - f64::from(b)));
    [wrong.sum(), right.iter().map(|&b| square(f64::from(b))).sum()]
}
