//! What is read at given weights, without the scatter of training in between: the loss and the operands of products under one
//! recipe, and how a run goes on once its weights were changed.

use super::common::under;
use crate::error::Result;
use crate::recipe::Observer;
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

/// What probes of products see in one step of `recipe` from an arm's checkpoint of `step`, a line each.
pub(super) fn observed(
    runs: &Runs<'_>,
    arm: &Arm,
    step: u64,
    recipe: &str,
    probes: &[&str],
) -> Result<Vec<Line>> {
    observed_of(runs, arm, step, recipe, probes, |_, _| {})
}

/// The same of weights that are changed first.
pub(super) fn observed_of(
    runs: &Runs<'_>,
    arm: &Arm,
    step: u64,
    recipe: &str,
    probes: &[&str],
    change: impl FnOnce(&Config, &mut [f32]),
) -> Result<Vec<Line>> {
    let (data, mut state, progress) = loaded(runs, arm, step)?;
    change(&arm.config, &mut state.params);
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
            lines.append(&mut look(&mut trainer, &config, &[probe])?);
        } else {
            trainer.step(None);
        }
    }
    Ok(lines)
}

/// A step that probes watch, and what each measures: parts of two probes may have the same name.
fn look(trainer: &mut Trainer<'_>, config: &Config, probes: &[&str]) -> Result<Vec<Line>> {
    let made = probes.iter().map(|name| probe::by_name(name, &config.model));
    let mut all: Vec<Box<dyn Probe>> = made.collect::<Result<_>>()?;
    let mut watching: Vec<&mut dyn Observer> =
        all.iter_mut().filter_map(|probe| probe.observer()).collect();
    trainer.step(Some(&mut watching));
    let step = trainer.progress().step;
    let seen = Seen {
        step,
        model: &config.model,
        layout: trainer.layout(),
        params: &trainer.state().params,
        // What looks at products does not look at gradients.
        grads: &[],
        shadow: None,
        twin: None,
        endings: None,
    };
    let line = |(mut probe, name): (Box<dyn Probe>, &&str)| {
        let mut values = Values::default();
        probe.measure(&seen, &mut values);
        Line { step, probe: (*name).to_owned(), values }
    };
    Ok(all.into_iter().zip(probes).map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::super::common::{BF16, Kind};
    use super::super::grid::Cell;
    use super::*;
    use crate::study::arm::{Scale, Setting};
    use crate::study::store::{Progress as Told, Store};
    use crate::study::sweep::Shard;

    /// Two probes whose parts share names, and one that needs what products give.
    #[test]
    fn each_probe_has_its_own_line() {
        let recipe = "nv-nvfp4+last=0+sr=none";
        let cell = Cell { kind: Kind::Sa, lr: 1e-3, layers: 2, planted: false, recipe };
        let mut config = cell.arm(&Setting::unread(Scale::Medium), 1).config;
        config.data.fingerprint.clear();
        let data = load_data(&mut config).unwrap();
        let mut trainer = Trainer::new(&config, &data).unwrap();
        let names = ["kurtosis", "channels", "products"];
        let lines = look(&mut trainer, &config, &names).unwrap();
        assert_eq!(lines.iter().map(|line| line.probe.as_str()).collect::<Vec<_>>(), names);
        let part = |at: usize, name: &str| lines[at].values.parts[name].clone();
        assert!(part(0, "layers.1.q_proj.input").number().is_some());
        assert_eq!(part(1, "layers.1.q_proj.input").list().unwrap().len(), 64);
        let error = part(2, "layers.1.q_proj.grad_weight.error").number().unwrap();
        // Two operands of four bits lose about a tenth each, those of bfloat16 some 2^-9.
        assert!((0.02..0.2).contains(&error), "{error}");
    }
    struct Quiet;

    impl Told for Quiet {
        fn step(&self) -> bool {
            true
        }

        fn end(&self, _: &str, _: usize, _: usize) {}
    }

    /// The same weights are trained here once more, and the losses of both recipes read by hand.
    #[test]
    fn gaps_are_of_the_weights_of_their_step() {
        let cell = Cell { kind: Kind::Sa, lr: 1e-2, layers: 1, planted: false, recipe: BF16 };
        let arm = cell.trial(&Setting::unread(Scale::Smoke), 1, 3).keeping(&[2]);
        let mut config = arm.config;
        config.data.fingerprint.clear();
        let data = load_data(&mut config).unwrap();
        let arm = Arm { config, parent: None };
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        assert!(store.train(std::slice::from_ref(&arm), &data, (Shard::ALL, 1), &Quiet).unwrap());
        let four = "nv-nvfp4+last=0";
        let recipes = [BF16.to_owned(), four.to_owned()];
        let found = gaps(&store.runs(), &arm, 2, BF16, recipes).unwrap();

        let mut trainer = Trainer::new(&arm.config, &data).unwrap();
        trainer.step(None);
        trainer.step(None);
        let own = trainer.validation_loss();
        let config = arm.config.overlaid(&format!("recipe = {four:?}")).unwrap();
        let mut other = Trainer::new(&config, &data).unwrap();
        other.begin(trainer.state().params.clone());
        let gap = 100.0 * (other.validation_loss() - own) / own;
        assert_eq!(found[0], 0.0, "the same recipe");
        assert!((found[1] - gap).abs() < 1e-9 && gap.abs() > 1e-3, "{found:?}, not {gap}");
    }
}
