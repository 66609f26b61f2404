//! The losses of recipes at given weights, without the scatter of training in between.

use super::common::under;
use crate::arm::Arm;
use crate::store::Runs;
use crate::table::gap_percent;
use exmy::error::Result;
use exmy_train::train::checkpoint::{self, Progress, State};
use exmy_train::train::data::Dataset;
use exmy_train::train::run::load_data;
use exmy_train::train::trainer::Trainer;

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
    let (data, state, progress) = loaded(runs, arm, step)?;
    let loss = |recipe: &str| -> Result<f64> {
        let config = under(&arm.config, recipe)?;
        let mut trainer = Trainer::new(&config, &data)?;
        trainer.restore(state.clone(), progress);
        Ok(trainer.validation_loss())
    };
    let own = loss(base)?;
    recipes.into_iter().map(|recipe| Ok(gap_percent(loss(&recipe)?, own))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::common::{BF16, Kind, changed, short};
    use super::*;
    use crate::arm::{Scale, Setting};
    use crate::store::{Progress as Told, Store};
    use crate::sweep::Shard;

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
        let short = short(&Setting::unread(Scale::Smoke), Kind::Sa, BF16, 1);
        let changes = "model.layers = 1\ntrain.steps = 3\ntrain.warmup = 0\ntrain.lr = 1e-2";
        let arm = changed(short, changes).keeping(&[2]);
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
