//! What one recipe does to the loss at given weights: no training in between that could scatter it.

use super::common::under;
use crate::error::Result;
use crate::study::arm::Arm;
use crate::study::store::Runs;
use crate::study::table::gap_percent;
use crate::train::checkpoint;
use crate::train::config::Config;
use crate::train::run::load_data;
use crate::train::trainer::Trainer;

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
    let path = checkpoint::path(&runs.of(arm)?.folder.checkpoints(), step);
    let mut config = arm.config.clone();
    let data = load_data(&mut config)?;
    let (mut state, progress) = checkpoint::load(&path, &config.model.layout())?;
    change(&config, &mut state.params);
    let loss = |recipe: &str| -> Result<f64> {
        let config = under(&config, recipe)?;
        let mut trainer = Trainer::new(&config, &data)?;
        trainer.restore(state.clone(), progress);
        Ok(trainer.validation_loss())
    };
    let own = loss(base)?;
    recipes.into_iter().map(|recipe| Ok(gap_percent(loss(&recipe)?, own))).collect()
}
