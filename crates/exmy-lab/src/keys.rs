//! What configurations have in common: their keys and values, whether only the seed differs, and whether what
//! came of them is to be compared.

use exmy_train::train::config::Config;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Values by their keys, dotted as `--set` takes them; a list is one value.
pub(crate) type Keys = BTreeMap<String, Value>;

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
