//! In what runs differ, and what they share, in words.

use exmy_train::train::config::Config;
use exmy_train::train::data::Source;

/// Whether not all of some values are the same.
pub fn differ<T: PartialEq>(values: impl IntoIterator<Item = T>) -> bool {
    let mut values = values.into_iter();
    let first = values.next();
    values.any(|value| Some(value) != first)
}

/// In what of recipe, learning rate and seed some runs differ, and how; the recipe always stands there.
pub(super) fn labelled(configs: &[Config]) -> (Vec<String>, Vec<Vec<String>>) {
    let lrs = differ(configs.iter().map(|config| config.train.lr));
    let seeds = differ(configs.iter().map(|config| config.seed));
    let keys = ["recipe"].into_iter().chain(lrs.then_some("lr")).chain(seeds.then_some("seed"));
    let of = |config: &Config| {
        let lr = lrs.then(|| format!("{:e}", config.train.lr));
        let seed = seeds.then(|| config.seed.to_string());
        [config.recipe.to_string()].into_iter().chain(lr).chain(seed).collect()
    };
    (keys.map(str::to_owned).collect(), configs.iter().map(of).collect())
}

/// Under which conditions the runs were made, in a few words.
pub(crate) fn conditions(config: &Config) -> String {
    let source = match &config.data.source {
        Source::Path(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        synthetic => synthetic.to_string(),
    };
    let parameters = config.model.layout().len() as f64 / 1e3;
    format!("{source}, {parameters:.0} k parameters, seed {}", config.seed)
}
