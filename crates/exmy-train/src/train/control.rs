//! What the rules of a run decide as its lines come: the recipe in force, rollbacks and the end.
//!
//! The rules themselves are those of [`trigger`](crate::train::trigger).

use crate::recipe::Recipe;
use crate::train::config::Config;
use crate::train::record::{Event, Metrics};
use crate::train::running_median::RunningMedian;
use crate::train::stop::Watchdog;
use exmy::error::{Error, Result};
use std::collections::BTreeMap;

/// What a rule has seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuleState {
    /// Records in a row for which it holds, and the step of the first.
    streak: u64,
    since: u64,
    /// Records up to this step do not count.
    silent_until: Option<u64>,
    acted: u64,
}

/// What follows from a line.
#[derive(Clone, Debug, PartialEq)]
pub enum NextAction {
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
    pub verdict: NextAction,
}

/// What the lines so far have decided: the recipe in force, and what the rules have seen.
#[derive(Clone, Debug)]
pub struct Control<'a> {
    config: &'a Config,
    /// Places of the rules of `[[at]]` by their steps.
    at: BTreeMap<u64, Vec<usize>>,
    recipe: Recipe,
    losses: RunningMedian,
    norms: RunningMedian,
    watchdog: Watchdog,
    /// What each rule of `[[when]]` has seen.
    #[doc(hidden)]
    pub rules: Vec<RuleState>,
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
            losses: RunningMedian::new(window),
            norms: RunningMedian::new(window),
            watchdog: Watchdog::new(&config.stop, window),
            rules: vec![RuleState::default(); config.when.len()],
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
        let mut verdict = NextAction::GoOn;
        for (index, (when, seen)) in self.config.when.iter().zip(&mut self.rules).enumerate() {
            let is_broken = broken.is_some()
                && matches!(&*when.metric, "loss" | "grad_norm" | "spike" | "grad_spike");
            let value = match &*when.metric {
                _ if is_broken => Some(f64::INFINITY),
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
            let at_once = is_broken && when.rollback;
            if seen.streak < when.records && !at_once || verdict != NextAction::GoOn {
                continue;
            }
            let (rule, metric) = (index + 1, when.metric.clone());
            let value = value.is_finite().then_some(value);
            if inherited {
                // Another recipe's past.
            } else if when.rollback {
                let recipe = self.recipe.to_string();
                let event = Event::Rollback { rule, metric, value, from: step, to: 0, recipe };
                verdict = NextAction::RollBack { since: seen.since, event };
                continue;
            } else {
                self.recipe = when.then.change(&self.recipe)?;
                let recipe = self.recipe.to_string();
                events.push(Event::When { rule, metric, value, recipe });
            }
            *seen = RuleState {
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
        if let (Some(reason), NextAction::GoOn) = (reason, &verdict) {
            events.push(Event::Diverged { reason });
            verdict = NextAction::Stop;
        }
        Ok(Decision { events, verdict })
    }
}
