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
//! ([`Control`] reads them one after the other), so it is the same in every repeat, and a resumed
//! run finds its recipe, its counts and its pauses by reading the lines again.
//!
//! What a change does, `then`, is a recipe, or a part of one: a text that begins with `+` is
//! appended to the recipe in force (`+out=bf16`), a table is a recipe's, its `base` the one in force
//! unless it names one.
//! It holds from the next step on.
//!
//! Values are compared as recorded. A loss or norm that is no finite number counts as above every
//! limit, and fires rules with `rollback` at once, whatever their `for`: there is no later.

use crate::recipe::Recipe;
use crate::train::config::Config;
use crate::train::level::Level;
use crate::train::probe;
use crate::train::record::{Event, Metrics};
use crate::train::stop::Watchdog;
use crate::train::trainer::plan;
use exmy::error::{Error, Result};
use exmy::text::Nearest;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use toml::{Table, Value};

/// A recipe, or the part of one that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Part {
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
    pub then: Part,
}

/// A change that a recorded value asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// `loss`, `val_loss`, `grad_norm`, `lr`, `spike` (the loss over the median of the last
    /// `record.window` losses before it), `grad_spike` (the same of the norm), or a probe's name.
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
    pub then: Part,
    /// Steps after a change in which the rule sees nothing.
    #[serde(default)]
    pub cooldown: u64,
    /// How often the rule may act; 0 is any number.
    #[serde(default)]
    pub times: u64,
    /// Whether the run first goes back to the newest checkpoint from before the value was seen; the
    /// rule is then silent until the run has passed the step at which it acted.
    #[serde(default)]
    pub rollback: bool,
}

const fn one() -> u64 {
    1
}

/// Values every run records, by name.
pub const METRICS: [&str; 6] = ["loss", "val_loss", "grad_norm", "lr", "spike", "grad_spike"];

impl Part {
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
            // What was appended last is not appended again, or a rule that acts often would grow it.
            Self::Text(text) if text.starts_with('+') && recipe.to_string().ends_with(text) => {
                Ok(recipe.clone())
            }
            Self::Text(text) => {
                let appended = text.starts_with('+').then(|| format!("{recipe}{text}"));
                let text = appended.as_deref().unwrap_or(text);
                text.parse().map_err(|error| Error::new(format!("{error}")))
            }
            Self::Keys(changes) => {
                let mut table = changes.clone();
                let name = || Value::String(recipe.to_string());
                table.entry("base").or_insert_with(name);
                Value::Table(table).try_into().map_err(|error: toml::de::Error| {
                    let given = toml::to_string(changes).unwrap_or_default();
                    let what = format!("the change of the recipe {recipe}: {}", error.message());
                    Error::new(format!("{what}\n{}", given.trim_end()))
                })
            }
        }
    }
}

impl When {
    /// Whether the condition holds of a value.
    fn holds(&self, value: f64) -> bool {
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
pub fn validate(config: &Config) -> Result<()> {
    let layout = config.model.layout();
    // Rules may be many; recipes are few, and each is planned once.
    let mut settled = HashSet::new();
    let mut settles = |recipe: &Recipe| match settled.insert(recipe.to_string()) {
        true => plan(recipe, &layout, config.train.steps).map(drop),
        false => Ok(()),
    };
    let mut recipe = config.recipe.clone();
    for (number, at) in (1..).zip(&config.at) {
        let context = |error| Error::new(format!("rule {number} of [[at]]: {error}"));
        if at.step >= config.train.steps {
            let what = format!("step = {} of {} steps", at.step, config.train.steps);
            return Err(context(Error::new(what).hint("a step before the last")));
        }
        recipe = at.then.change(&recipe).map_err(context)?;
        settles(&recipe).map_err(context)?;
    }
    for (number, when) in (1..).zip(&config.when) {
        when.validate(number)?;
        let context = |error| Error::new(format!("rule {number} of [[when]]: {error}"));
        let recipe = when.then.change(&config.recipe).map_err(context)?;
        settles(&recipe).map_err(context)?;
    }
    Ok(())
}

/// What a rule has seen.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    /// Records in a row for which it holds, and the step of the first.
    streak: u64,
    since: u64,
    /// Records up to this step do not count.
    silent_until: Option<u64>,
    acted: u64,
}

/// What follows from a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The next step.
    GoOn,
    /// The end of the run.
    Stop,
    /// Back to a checkpoint of a step before `since`, and on under the event's recipe.
    RollBack {
        /// The step at which the value was first seen.
        since: u64,
        /// What is written into the first line after the checkpoint; `to` and `recipe` are of
        /// whoever knows the checkpoint.
        event: Event,
    },
}

/// What a line's values mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// For the line's record.
    pub events: Vec<Event>,
    /// For the run.
    pub verdict: Verdict,
}

/// What the lines so far have decided: the recipe in force, and what the rules have seen.
#[derive(Clone, Debug)]
pub struct Control<'a> {
    config: &'a Config,
    /// Places of the rules of `[[at]]` by their steps.
    at: BTreeMap<u64, Vec<usize>>,
    recipe: Recipe,
    losses: Level,
    norms: Level,
    watchdog: Watchdog,
    rules: Vec<Seen>,
}

impl<'a> Control<'a> {
    /// Before the first line.
    pub fn new(config: &'a Config) -> Self {
        let window = config.record.window;
        let mut at = BTreeMap::<u64, Vec<usize>>::new();
        for (index, rule) in config.at.iter().enumerate() {
            at.entry(rule.step).or_default().push(index);
        }
        Self {
            config,
            at,
            recipe: config.recipe.clone(),
            losses: Level::new(window),
            norms: Level::new(window),
            watchdog: Watchdog::new(&config.stop, window),
            rules: vec![Seen::default(); config.when.len()],
        }
    }

    /// The recipe of the next step.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// The first step of the oldest observation that may lead to a rollback: checkpoints from
    /// before it are still needed.
    pub fn suspicion(&self) -> Option<u64> {
        let rules = self.config.when.iter().zip(&self.rules);
        rules.filter(|(w, seen)| w.rollback && seen.streak > 0).map(|(_, seen)| seen.since).min()
    }

    /// Reads a line that was decided on before.
    ///
    /// # Errors
    /// If its rollbacks do not fit the configuration.
    pub fn replay(&mut self, line: &Metrics) -> Result<()> {
        if !self.is_inherited(line.step) {
            for event in line.events.iter().filter(|e| matches!(e, Event::Rollback { .. })) {
                self.rolled_back(event)?;
            }
        }
        if !line.diverged() {
            self.decide(line, None)?;
        }
        Ok(())
    }

    /// Takes over what a rollback changes, at the checkpoint it leads to.
    ///
    /// # Errors
    /// If there is no such rule.
    pub fn rolled_back(&mut self, event: &Event) -> Result<()> {
        if let Event::Rollback { rule, from, .. } = event {
            let index = rule.wrapping_sub(1);
            let Some(when) = self.config.when.get(index) else {
                return Err(Error::new(format!("a rollback by rule {rule}, which is not there"))
                    .hint("config.toml was changed; its [[when]] must stay as they were"));
            };
            self.recipe = when.then.change(&self.recipe)?;
            let seen = &mut self.rules[index];
            seen.streak = 0;
            seen.acted += 1;
            let until = from + when.cooldown;
            seen.silent_until = Some(seen.silent_until.map_or(until, |old| old.max(until)));
        }
        Ok(())
    }

    /// Whether the line of `step` is that of the run this one branched off from. What the rules see
    /// there counts, what they would have done does not: the branch begins under its own recipe.
    fn is_inherited(&self, step: u64) -> bool {
        self.config.start.is_branch() && step <= self.config.start.step
    }

    /// Decides on a new line; `broken` says what of it was no finite number.
    ///
    /// # Errors
    /// If a change of the recipe in force gives no recipe.
    pub fn decide(&mut self, line: &Metrics, broken: Option<&str>) -> Result<Decision> {
        let (step, mut events) = (line.step, Vec::new());
        let inherited = self.is_inherited(step);
        if !inherited {
            for &index in self.at.get(&step).into_iter().flatten() {
                self.recipe = self.config.at[index].then.change(&self.recipe)?;
                events.push(Event::At { rule: index + 1, recipe: self.recipe.to_string() });
            }
        }
        let spike = line.loss.and_then(|loss| self.losses.ratio(loss));
        let grad_spike = line.grad_norm.and_then(|norm| self.norms.ratio(norm));
        let mut verdict = Verdict::GoOn;
        for (index, (when, seen)) in self.config.when.iter().zip(&mut self.rules).enumerate() {
            let lost = broken.is_some()
                && matches!(&*when.metric, "loss" | "grad_norm" | "spike" | "grad_spike");
            let value = match &*when.metric {
                _ if lost => Some(f64::INFINITY),
                "loss" => line.loss,
                "val_loss" => line.val_loss,
                "grad_norm" => line.grad_norm,
                "lr" => line.lr,
                "spike" => spike,
                "grad_spike" => grad_spike,
                name => line.probes.get(name).copied(),
            };
            let Some(value) = value else { continue };
            let silent = seen.silent_until.is_some_and(|until| step <= until)
                || (when.times > 0 && seen.acted >= when.times);
            if silent || !when.holds(value) {
                seen.streak = 0;
                continue;
            }
            if seen.streak == 0 {
                seen.since = step;
            }
            seen.streak += 1;
            let at_once = lost && when.rollback;
            if seen.streak < when.records && !at_once || verdict != Verdict::GoOn {
                continue;
            }
            let (rule, metric) = (index + 1, when.metric.clone());
            let value = value.is_finite().then_some(value);
            if inherited {
                // Another recipe's past.
            } else if when.rollback {
                let recipe = self.recipe.to_string();
                let event = Event::Rollback { rule, metric, value, from: step, to: 0, recipe };
                verdict = Verdict::RollBack { since: seen.since, event };
                continue;
            } else {
                self.recipe = when.then.change(&self.recipe)?;
                let recipe = self.recipe.to_string();
                events.push(Event::When { rule, metric, value, recipe });
            }
            *seen = Seen {
                streak: 0,
                since: 0,
                silent_until: (when.cooldown > 0).then(|| step + when.cooldown),
                acted: seen.acted + 1,
            };
        }
        if let Some(loss) = line.loss {
            self.losses.push(loss);
        }
        if let Some(norm) = line.grad_norm {
            self.norms.push(norm);
        }
        let reason = match broken {
            Some(reason) => Some(reason.to_owned()),
            None => self.watchdog.bark(line),
        };
        if let (Some(reason), Verdict::GoOn) = (reason, &verdict) {
            events.push(Event::Diverged { reason });
            verdict = Verdict::Stop;
        }
        Ok(Decision { events, verdict })
    }
}

#[cfg(test)]
mod tests;
