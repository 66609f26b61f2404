//! In what runs differ, and what they share, in words.

use exmy_train::train::config::Config;
use exmy_train::train::data::Source;
use std::collections::BTreeSet;

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

/// Under which conditions runs with these seeds were made, in a few words.
pub(crate) fn conditions(config: &Config, seeds: &BTreeSet<u64>) -> String {
    let source = match &config.data.source {
        Source::Path(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        synthetic => synthetic.to_string(),
    };
    let parameters = config.model.layout().len() as f64 / 1e3;
    format!("{source}, {parameters:.0} k parameters, {}", seeds_in_words(seeds))
}

/// `seed 1`, `seeds 1 and 2`, `seeds 1 to 4`, `seeds 1, 3 and 7`.
pub fn seeds_in_words(seeds: &BTreeSet<u64>) -> String {
    let words: Vec<String> = seeds.iter().map(u64::to_string).collect();
    match (&words[..], seeds.first(), seeds.last()) {
        ([one], ..) => format!("seed {one}"),
        ([first, .., last], Some(low), Some(high))
            if words.len() > 2 && high - low == words.len() as u64 - 1 =>
        {
            format!("seeds {first} to {last}")
        }
        ([first @ .., last], ..) => format!("seeds {} and {last}", first.join(", ")),
        ([], ..) => "no seed".into(),
    }
}
