//! What is read at given weights, without the scatter of training in between: the loss and the operands of products under one
//! recipe, and how a run goes on once its weights were changed.

use super::common::under;
use crate::error::Result;
use crate::recipe::{Observer, Rounded};
use crate::study::arm::Arm;
use crate::study::store::Runs;
use crate::study::table::gap_percent;
use crate::train::checkpoint::{self, Progress, State};
use crate::train::config::Config;
use crate::train::data::Dataset;
use crate::train::probe::{self, Line, Probe, Seen, Values};
use crate::train::run::load_data;
use crate::train::trainer::Trainer;

/// What lies in an arm's checkpoint of `step`, and the data it goes on with.
fn loaded(runs: &Runs<'_>, arm: &Arm, step: u64) -> Result<(Dataset, State, Progress)> {
    let path = checkpoint::path(&runs.of(arm)?.folder.checkpoints(), step);
    let data = load_data(&mut arm.config.clone())?;
    let (state, progress) = checkpoint::load(&path, &arm.config.model.layout())?;
    Ok((data, state, progress))
}

/// The gaps in percent of the validation losses of an arm's checkpoint of `step` under each recipe, to that
/// under `base`.
pub(super) fn gaps(
    runs: &Runs<'_>,
    arm: &Arm,
    step: u64,
    base: &str,
    recipes: impl IntoIterator<Item = String>,
) -> Result<Vec<f64>> {
    gaps_of(runs, arm, step, base, recipes, |_, _| {})
}

/// The same of weights that are changed first.
pub(super) fn gaps_of(
    runs: &Runs<'_>,
    arm: &Arm,
    step: u64,
    base: &str,
    recipes: impl IntoIterator<Item = String>,
    change: impl FnOnce(&Config, &mut [f32]),
) -> Result<Vec<f64>> {
    let (data, mut state, progress) = loaded(runs, arm, step)?;
    change(&arm.config, &mut state.params);
    let loss = |recipe: &str| -> Result<f64> {
        let config = under(&arm.config, recipe)?;
        let mut trainer = Trainer::new(&config, &data)?;
        trainer.restore(state.clone(), progress);
        Ok(trainer.validation_loss())
    };
    let own = loss(base)?;
    recipes.into_iter().map(|recipe| Ok(gap_percent(loss(&recipe)?, own))).collect()
}

/// What probes of the operands of products see in one step of `recipe` from an arm's checkpoint of `step`.
pub(super) fn observed(
    runs: &Runs<'_>,
    arm: &Arm,
    step: u64,
    recipe: &str,
    probes: &[&str],
) -> Result<Line> {
    let (data, state, progress) = loaded(runs, arm, step)?;
    let config = under(&arm.config, recipe)?;
    let mut trainer = Trainer::new(&config, &data)?;
    trainer.restore(state, progress);
    look(&mut trainer, &config, probes)
}

/// What one probe sees every `every` steps of a run that goes on for `more` steps at its full rate from an arm's checkpoint of
/// `step`, whose weights are changed first.
pub(super) fn gone_on(
    runs: &Runs<'_>,
    arm: &Arm,
    (step, more, every): (u64, u64, u64),
    probe: &str,
    change: impl FnOnce(&Config, &mut [f32]),
) -> Result<Vec<Line>> {
    let (data, mut state, progress) = loaded(runs, arm, step)?;
    let longer = format!("train.steps = {}\ntrain.schedule = \"constant\"", step + more);
    let config = arm.config.overlaid(&longer)?;
    change(&config, &mut state.params);
    let mut trainer = Trainer::new(&config, &data)?;
    trainer.restore(state, progress);
    let mut lines = Vec::new();
    for at in step + 1..=step + more {
        if at.is_multiple_of(every) {
            lines.push(look(&mut trainer, &config, &[probe])?);
        } else {
            trainer.step(None);
        }
    }
    Ok(lines)
}

/// A step that probes watch, and what they measure.
fn look(trainer: &mut Trainer<'_>, config: &Config, probes: &[&str]) -> Result<Line> {
    let made = probes.iter().map(|name| probe::by_name(name, &config.model));
    let mut all = Operands(made.collect::<Result<_>>()?);
    trainer.step(Some(&mut all));
    let step = trainer.progress().step;
    let mut line = Line { step, probe: probes.join(" "), values: Values::default() };
    for mut probe in all.0 {
        let seen = Seen {
            step,
            model: &config.model,
            layout: trainer.layout(),
            params: &trainer.state().params,
            // What looks at operands does not look at gradients.
            grads: &[],
            shadow: None,
            twin: None,
            endings: None,
        };
        let mut values = Values::default();
        probe.measure(&seen, &mut values);
        line.values.parts.append(&mut values.parts);
    }
    Ok(line)
}

/// Shows operands to several probes.
struct Operands(Vec<Box<dyn Probe>>);

impl Observer for Operands {
    fn operand(&mut self, seen: &Rounded<'_>) {
        for probe in &mut self.0 {
            if let Some(observer) = probe.observer() {
                observer.operand(seen);
            }
        }
    }
}
