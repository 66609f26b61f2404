//! What recipes make of the weights of complete runs, without the scatter of training in between.

use super::product;
use crate::run_config::{RunConfig, Setting};
use crate::store::Trained;
use crate::table::gap_percent;
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy_train::nn::site::{Operand, Product, Site};
use exmy_train::recipe::Plan;
use exmy_train::train::checkpoint::{self, Progress, State};
use exmy_train::train::config::Config;
use exmy_train::train::data::{DataOptions, Dataset};
use exmy_train::train::run::load_data;
use exmy_train::train::trainer::Trainer;

/// What lies in a run's checkpoint of `step`, and the data it goes on with.
fn loaded(
    (planned, run): &(RunConfig, Trained),
    step: u64,
) -> Result<(Dataset, State<'static>, Progress)> {
    let path = checkpoint::path(&run.folder.checkpoints(), step);
    let data = load_data(&mut planned.config.clone())?;
    let (state, progress) = checkpoint::load(&path, &planned.config.model.layout())?;
    Ok((data, state, progress))
}

/// The gaps in percent of the validation losses of a run's checkpoint of `step` under each recipe, to that
/// under `base`.
pub(crate) fn gaps(
    run: &(RunConfig, Trained),
    step: u64,
    base: &str,
    recipes: &[&str],
) -> Result<Vec<f64>> {
    let (data, state, progress) = loaded(run, step)?;
    let loss = |recipe: &str| -> Result<f64> {
        let config = under(&run.0.config, recipe)?;
        let mut trainer = Trainer::new(&config, &data)?;
        trainer.restore(state.clone(), progress);
        Ok(trainer.validation_loss())
    };
    let own = loss(base)?;
    recipes.iter().map(|recipe| Ok(gap_percent(loss(recipe)?, own))).collect()
}

/// The text of the study.
pub(crate) fn data(setting: &Setting) -> Result<Dataset> {
    Dataset::load(setting.source(), &DataOptions::default())
        .map_err(|error| Error::new(error.to_string()))
}

/// A configuration under another recipe.
pub(crate) fn under(config: &Config, recipe: &str) -> Result<Config> {
    let mut own = config.clone();
    own.recipe = product::recipe(recipe)?;
    Ok(own)
}

/// The operators whose forward inputs a recipe rounds to eight bits or fewer at first.
pub(crate) fn quantized(config: &Config) -> Result<Vec<Site>> {
    let layout = config.model.layout();
    let plan = Plan::new(&config.recipe, &layout, config.train.steps)
        .map_err(|error| Error::new(error.to_string()))?;
    let few = |site: Site| plan.operand(0, site, Product::Forward, Operand::Input).bits() <= 8;
    let sites = plan.linears().iter().map(|linear| linear.site);
    Ok(sites.filter(|&site| few(site)).collect())
}

/// A complete run as it would go on.
pub(crate) fn resumed<'a>(
    run: &Trained,
    config: &'a Config,
    data: &'a Dataset,
) -> Result<Trainer<'a>> {
    let mut trainer = Trainer::new(config, data)?;
    let folder = run.folder.checkpoints();
    let newest = checkpoint::list(&folder)?.last().copied().ok_or_else(|| {
        Error::new(format!("{} has no checkpoint", printable_path(run.folder.path())))
    })?;
    let (state, progress) =
        checkpoint::load(&checkpoint::path(&folder, newest), &config.model.layout())?;
    trainer.restore(state, progress);
    Ok(trainer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::Silent;
    use crate::scale::Scale;
    use crate::store::Store;
    use std::sync::Arc;

    /// The same weights are trained here once more, and the losses of both recipes read by hand.
    #[test]
    fn gaps_are_of_the_weights_of_their_step() {
        let changes = "model.layers = 1\nmodel.d_model = 64\nmodel.hidden = 192\nmodel.heads = 2\n\
                       model.kv_heads = 2\nmodel.context = 64\nrecipe = \"bf16+out=bf16\"\n\
                       train.steps = 3\ntrain.warmup = 0\ntrain.batch = 2\ntrain.lr = 1e-2\n\
                       record.eval_every = 0\nrecord.checkpoint_every = 0\nrecord.eval_windows = 4";
        let setting = Setting::unread(Scale::Smoke);
        let config = setting.config("sa-micro").overlaid(changes).unwrap();
        let planned = RunConfig::new(config).keeping(&[2]);
        let mut config = planned.config;
        config.data.fingerprint.clear();
        let data = load_data(&mut config).unwrap();
        let planned = RunConfig { config, parent: None };
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let data = Arc::new(data);
        store.runner().work(&[planned.run()], Some(Arc::clone(&data)), &Silent).unwrap();
        let four = "nv-nvfp4+last=0";
        let run = (planned.clone(), store.runs().of(&planned).unwrap());
        let base = "bf16+out=bf16";
        let found = gaps(&run, 2, base, &[base, four]).unwrap();

        let mut trainer = Trainer::new(&planned.config, &data).unwrap();
        trainer.step(None);
        trainer.step(None);
        let own = trainer.validation_loss();
        let config = planned.config.overlaid(&format!("recipe = {four:?}")).unwrap();
        let mut other = Trainer::new(&config, &data).unwrap();
        other.begin(trainer.state().params.to_vec());
        let gap = 100.0 * (other.validation_loss() - own) / own;
        assert_eq!(found[0], 0.0, "the same recipe");
        assert!((found[1] - gap).abs() < 1e-9 && gap.abs() > 1e-3, "{found:?}, not {gap}");
    }
}
