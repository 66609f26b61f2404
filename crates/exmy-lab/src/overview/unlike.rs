//! In what the runs of one picture differ, apart from what their names say: curves of other data, sizes or
//! batches share an axis and are not to be compared.

use crate::gather::RecordedRun;
use crate::keys::{Keys, keys};
use crate::runner::differ;
use exmy_train::train::config::Config;
use std::collections::BTreeSet;

/// Keys that are named before the rest is counted.
const MOST: usize = 5;

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

/// In what runs differ in addition to recipe and seed, in words; nothing where they do not.
pub(super) fn unlike(runs: &[&RecordedRun]) -> Option<String> {
    said(&different(runs.iter().map(|run| &run.config)))
}

pub fn said(keys: &[String]) -> Option<String> {
    let (named, more) = keys.split_at(keys.len().min(MOST));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    (!keys.is_empty()).then(|| format!("the runs also differ in {}{more}", named.join(", ")))
}
