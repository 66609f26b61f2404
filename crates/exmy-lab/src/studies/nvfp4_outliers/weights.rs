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
pub fn gaps(
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
pub fn data(setting: &Setting) -> Result<Dataset> {
    Dataset::load(setting.source(), &DataOptions::default()).map_err(Error::from_cause)
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
    let plan = Plan::new(&config.recipe, &layout, config.train.steps).map_err(Error::from_cause)?;
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
