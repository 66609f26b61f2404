//! What share of the multiplications of linear layers a run makes in which formats.
//!
//! The shares follow from the configuration and from the changes of the recipe that the run's lines
//! contain, so they are the same in every repeat. A run is divided where anything changes: at late
//! switches of a recipe, at `[[at]]`, at `[[when]]`, after a rollback.

use crate::nn::site::Product;
use crate::recipe::Plan;
use crate::train::config::Config;
use crate::train::record::{Event, Metrics};
use crate::train::trigger::RecipeChange;
use exmy::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Shares by the formats of both operands, `mxfp8-e5m2 x mxfp8-e4m3`, or by the one that both have;
/// from 0 to 1, in sum 1.
pub type Shares = BTreeMap<String, f64>;

/// Steps with the same precision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Steps done before the first of them.
    pub from: u64,
    /// Of `Y = X Wᵀ`.
    pub forward: Shares,
    /// Of `dX = dY W`.
    pub grad_input: Shares,
    /// Of `dW = dYᵀ X`.
    pub grad_weight: Shares,
    /// Multiplications that hot-channel patches add, as a share of those above.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub patches: f64,
}

fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

impl Span {
    /// The shares of a plan at a step.
    pub fn of(plan: &Plan, step: u64) -> Self {
        let mut span = Self { from: step, patches: plan.patched(step), ..Self::default() };
        for share in plan.shares(step) {
            let [a, b] = &share.formats;
            let name = if a == b { a.clone() } else { format!("{a} x {b}") };
            let of = match share.product {
                Product::Forward => &mut span.forward,
                Product::GradInput => &mut span.grad_input,
                Product::GradWeight => &mut span.grad_weight,
            };
            of.insert(name, share.share);
        }
        span
    }
}

/// `nvfp4 84.2 %, bf16 15.8 %`, the largest share first.
fn words(shares: &Shares) -> String {
    let mut sorted: Vec<_> = shares.iter().collect();
    sorted.sort_by(|a, b| b.1.total_cmp(a.1));
    let word = |(name, share): &(&String, &f64)| format!("{name} {:.1} %", 100.0 * **share);
    sorted.iter().map(word).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { forward, grad_input, grad_weight, patches, .. } = self;
        if forward == grad_input && forward == grad_weight {
            write!(f, "{}", words(forward))?;
        } else if grad_input == grad_weight {
            write!(f, "forward {}; backward {}", words(forward), words(grad_input))?;
        } else {
            let [a, b, c] = [forward, grad_input, grad_weight].map(words);
            write!(f, "forward {a}; grad_input {b}; grad_weight {c}")?;
        }
        if *patches > 0.0 {
            write!(f, "; patches add {:.1} %", 100.0 * patches)?;
        }
        Ok(())
    }
}

/// What the rule of this number, from 1, changes.
fn then<T>(rules: &[T], number: usize, part: fn(&T) -> &RecipeChange) -> Option<&RecipeChange> {
    rules.get(number.checked_sub(1)?).map(part)
}

/// The spans of a run up to step `end`, whose lines so far are `lines`; changes that only a later line
/// contains are not foreseen.
///
/// # Errors
/// If a recipe does not go with the model.
pub fn spans(config: &Config, lines: &[Metrics], end: u64) -> Result<Vec<Span>> {
    let layout = config.model.layout();
    let branch = config.start.is_branch();
    let begin = if branch { config.start.step } else { 0 };
    let mut recipe = config.recipe.clone();
    let mut recipes = vec![(begin, recipe.clone())];
    // A branch has the lines of the run it left, whose changes are not its own.
    for line in lines.iter().filter(|line| !branch || line.step > begin) {
        for event in &line.events {
            // By the rules, not by the text of the line, which may be an earlier version's.
            let (from, then) = match event {
                Event::At { rule, .. } => (line.step, then(&config.at, *rule, |at| &at.then)),
                Event::When { rule, .. } => {
                    (line.step, then(&config.when, *rule, |when| &when.then))
                }
                Event::Rollback { rule, to, .. } => {
                    (*to, then(&config.when, *rule, |when| &when.then))
                }
                Event::Diverged { .. } => continue,
            };
            let fault = |error: Error| Error::new(format!("step {}: {error}", line.step));
            let then =
                then.ok_or_else(|| fault(Error::new("a change by a rule that is not there")))?;
            recipe = then.change(&recipe).map_err(fault)?;
            recipes.push((from, recipe.clone()));
        }
    }
    let mut spans: Vec<Span> = Vec::new();
    for (i, (from, recipe)) in recipes.iter().enumerate() {
        let until = recipes.get(i + 1).map_or(end.max(begin + 1), |next| next.0);
        let plan = recipe.settled(&layout, config.train.steps)?;
        let switches = plan.switches().into_iter().filter(|step| (from + 1..until).contains(step));
        for step in [*from].into_iter().filter(|from| *from < until).chain(switches) {
            let span = Span::of(&plan, step);
            let same = |last: &Span| *last == Span { from: last.from, ..span.clone() };
            if !spans.last().is_some_and(same) {
                spans.push(span);
            }
        }
    }
    Ok(spans)
}
