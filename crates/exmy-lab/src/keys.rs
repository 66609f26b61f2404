//! What configurations have in common and in what they differ: their keys and values, whether only the seed
//! differs, and whether what came of them is to be compared.

use crate::runner::differ;
use exmy_train::train::config::Config;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// Values by their keys, dotted as `--set` takes them; a list is one value.
pub(crate) type Keys = BTreeMap<String, Value>;

/// Parts of a configuration in which runs differ without being other experiments: what names say, what is
/// measured, and rules, which change the recipe alone.
const APART: [&str; 6] = ["recipe", "seed", "record", "at", "when", "version"];

/// Keys that follow from another: where that one differs, these say nothing more.
const FOLLOWS: [(&str, &str); 5] = [
    ("data.fingerprint", "data.source"),
    ("start.fingerprint", "start.run"),
    ("start.fingerprint", "start.weights"),
    ("train.lr_min", "train.lr"),
    ("train.warmup", "train.steps"),
];

/// The keys of a configuration.
pub(crate) fn keys(config: &Config) -> Keys {
    fn collect(prefix: &str, table: Table, keys: &mut Keys) {
        for (name, value) in table {
            let key = format!("{prefix}{name}");
            match value {
                Value::Table(below) => collect(&format!("{key}."), below, keys),
                value => drop(keys.insert(key, value)),
            }
        }
    }
    let mut keys = Keys::new();
    collect("", config.to_table(), &mut keys);
    keys
}

/// Whether a run repeats another with another seed; they may measure different things.
pub(crate) fn repeats(one: &Config, other: &Config) -> bool {
    Config { seed: other.seed, record: other.record.clone(), ..one.clone() } == *other
}

/// Whether runs differ in recipe and seed alone, so that a difference of losses is one of formats; they may
/// measure different things.
pub(crate) fn comparable(one: &Config, other: &Config) -> bool {
    let Config { version, recipe, at, when, .. } = other.clone();
    repeats(&Config { version, recipe, at, when, ..one.clone() }, other)
}

/// The keys in which some configurations differ.
pub fn different<'a>(configs: impl Iterator<Item = &'a Config>) -> Vec<String> {
    let is_meant = |key: &String| !APART.contains(&key.split('.').next().unwrap_or_default());
    let of = |config: &Config| -> Keys {
        keys(config).into_iter().filter(|(key, _)| is_meant(key)).collect()
    };
    let values: Vec<Keys> = configs.map(of).collect();
    let names: BTreeSet<&String> = values.iter().flat_map(Keys::keys).collect();
    let differ = |name: &&String| differ(values.iter().map(|of| of.get(*name)));
    let mut keys: Vec<String> = names.into_iter().filter(differ).cloned().collect();
    let known = keys.clone();
    let follows = |key: &String| {
        let causes = FOLLOWS.iter().filter(|(effect, _)| effect == key);
        causes.into_iter().any(|(_, cause)| known.iter().any(|known| known == cause))
    };
    keys.retain(|key| !follows(key));
    keys
}
