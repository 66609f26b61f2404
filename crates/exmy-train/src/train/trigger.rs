//! Recipes that change while a run trains: at a step, or when a recorded value asks for it.
//!
//! ```toml
//! [[at]]                    # after 2000 steps
//! step = 2000
//! then = "bf16"
//!
//! [[when]]                  # for 20 records in a row the gradient norm is above 5
//! metric = "grad_norm"
//! above = 5.0
//! for = 20
//! then = "mxfp8-e4m3"
//! cooldown = 500
//! ```
//!
//! A decision is a function of the configuration and of the lines of `metrics.jsonl` up to its step
//! ([`Control`](crate::train::control::Control) reads them one after the other). So it is the same in every
//! repeat, and a resumed run finds its recipe, its counts and its pauses by reading the lines again.
//!
//! What a change does, `then`, is a recipe, or a part of one. A text that begins with `+` is
//! appended to the recipe in force (`+out=bf16`). A table is a recipe's; without a `base` that is the
//! one in force. A change holds from the next step on.
//!
//! Values are compared as recorded. A loss or norm that is no finite number counts as above every
//! limit, and fires rules with `rollback` at once, whatever their `for`: there is no later.

use crate::nn::parameters::Layout;
use crate::recipe::Recipe;
use crate::train::probe;
use exmy::error::{Error, Result};
use exmy::shown::printable;
use exmy::text::Nearest;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use toml::{Table, Value};

/// A recipe, or the part of one that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RecipeChange {
    /// A recipe's text; with a leading `+` what is appended to the one in force.
    Text(String),
    /// A recipe's table; without a `base` that is the one in force.
    Keys(Table),
}

/// A change at a fixed step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct At {
    /// Steps done before the change.
    pub step: u64,
    /// What changes.
    pub then: RecipeChange,
}

/// A change that a recorded value asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// `loss`, `val_loss`, `grad_norm`, `lr`, `spike` (the loss over the median of the last
    /// `record.window` losses before it), `grad_spike` (the same of the norm), or a probe's name.
    #[serde(deserialize_with = "crate::train::old::name")]
    pub metric: String,
    /// Holds where the value is above this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// Holds where the value is below this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
    /// Records of the metric in a row for which it must hold.
    #[serde(rename = "for", default = "one")]
    pub records: u64,
    /// What changes.
    pub then: RecipeChange,
    /// Steps after a change in which the rule sees nothing.
    #[serde(default)]
    pub cooldown: u64,
    /// How often the rule may act; 0 is any number.
    #[serde(default)]
    pub times: u64,
    /// Whether the run first goes back to the newest checkpoint from before the value was seen. The rule is
    /// then silent until the run has passed the step at which it acted.
    #[serde(default)]
    pub rollback: bool,
}

const fn one() -> u64 {
    1
}

/// Values every run records, by name.
pub const METRICS: [&str; 6] = ["loss", "val_loss", "grad_norm", "lr", "spike", "grad_spike"];

impl RecipeChange {
    /// The recipe that comes of `recipe` by this change.
    ///
    /// # Errors
    /// If the result is no recipe, or has grown without an end.
    pub fn change(&self, recipe: &Recipe) -> Result<Recipe> {
        /// Every rule is asked at every site, and a recipe that grows with each change is a mistake.
        const MOST_RULES: usize = 256;
        let changed = self.changed(recipe)?;
        match changed.rules().len() {
            ..=MOST_RULES => Ok(changed),
            rules => {
                Err(Error::new(format!("the recipe would have {rules} rules, of {MOST_RULES}"))
                    .hint("name a whole recipe instead of appending to the one in force"))
            }
        }
    }

    fn changed(&self, recipe: &Recipe) -> Result<Recipe> {
        match self {
            Self::Text(text) => {
                let changed = if text.starts_with('+') { recipe.with(text) } else { text.parse() };
                changed.map_err(Error::from_cause)
            }
            Self::Keys(changes) => {
                let mut table = changes.clone();
                let name = || Value::String(recipe.to_string());
                table.entry("base").or_insert_with(name);
                Value::Table(table).try_into().map_err(|error: toml::de::Error| {
                    let given = toml::to_string(changes).unwrap_or_default();
                    let what = printable(error.message());
                    let what = format!("the change of the recipe {recipe}: {what}");
                    Error::new(format!("{what}\n{}", given.trim_end()))
                })
            }
        }
    }
}

impl When {
    /// Whether the condition holds of a value.
    pub(super) fn holds(&self, value: f64) -> bool {
        // What is no number is as bad as can be.
        let value = if value.is_nan() { f64::INFINITY } else { value };
        self.above.is_some_and(|limit| value > limit)
            || self.below.is_some_and(|limit| value < limit)
    }

    fn validate(&self, number: usize) -> Result<()> {
        let refuse = |what: String, hint: &str| {
            Err(Error::new(format!("rule {number} of [[when]]: {what}")).hint(hint))
        };
        if !METRICS.contains(&&*self.metric) && !probe::exists(&self.metric) {
            let names: Vec<_> = METRICS.iter().copied().chain(probe::registry::names()).collect();
            let near = Nearest::new(&self.metric, names.iter().copied());
            let hint = match near.names() {
                [] => format!("there are {}", names.join(", ")),
                _ => format!("did you mean {near}?"),
            };
            return refuse(format!("nothing records {:?}", self.metric), &hint);
        }
        let limits = [self.above, self.below];
        if limits.iter().flatten().count() != 1 || limits.iter().flatten().any(|x| x.is_nan()) {
            let what = format!("above = {:?}, below = {:?}", self.above, self.below);
            return refuse(what, "one of them, a number");
        }
        if self.records == 0 {
            return refuse("for = 0".into(), "at least 1 record");
        }
        Ok(())
    }
}

/// Refuses rules that can never work.
///
/// # Errors
/// Names the rule and what would work.
pub(super) fn validate(
    recipe: &Recipe,
    (at, when): (&[At], &[When]),
    layout: &Layout,
    steps: u64,
) -> Result<()> {
    // Rules may be many; recipes are few, and each is planned once.
    let mut settled = HashSet::new();
    let mut settles = |recipe: &Recipe| match settled.insert(recipe.to_string()) {
        true => recipe.settled(layout, steps).map(drop),
        false => Ok(()),
    };
    let mut changed = recipe.clone();
    for (number, at) in (1..).zip(at) {
        let context = |error| Error::new(format!("rule {number} of [[at]]: {error}"));
        if at.step >= steps {
            let what = format!("step = {} of {steps} steps", at.step);
            return Err(context(Error::new(what).hint("a step before the last")));
        }
        changed = at.then.change(&changed).map_err(context)?;
        settles(&changed).map_err(context)?;
    }
    for (number, when) in (1..).zip(when) {
        when.validate(number)?;
        let context = |error| Error::new(format!("rule {number} of [[when]]: {error}"));
        let recipe = when.then.change(recipe).map_err(context)?;
        settles(&recipe).map_err(context)?;
    }
    Ok(())
}
