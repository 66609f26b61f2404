//! What runs are called: what distinguishes them, and without the seed, so that runs which differ in the seed
//! alone have one name, one colour and one row.
//!
//! The name is the recipe, and of the rest what differs: the rate, then up to three keys of the
//! configuration, else the folder above. Where even that is the same, runs are called by their paths.

use crate::keys::{different, keys, repeats};
use crate::runner::{Run, differ};
use exmy::safetensors::whole;
use exmy::shown::printable_path;
use exmy_train::train::config::Config;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Component, PathBuf};
use toml::Value;

/// Keys that a name has at most.
const KEYS: usize = 3;

/// Characters of a value in a name.
const VALUE: usize = 16;

/// What runs are called.
#[derive(Clone, Debug)]
pub struct Names {
    /// Each differs from all others.
    pub runs: Vec<String>,
    /// Without the seeds.
    pub conditions: Vec<String>,
}

/// Names that distinguish some runs.
pub fn names(found: &[(PathBuf, Config)]) -> Names {
    let lr = |config: &Config| format!("{:e}", config.train.lr);
    let rates = differ(found.iter().map(|(_, config)| lr(config)));
    let seeds = differ(found.iter().map(|(_, config)| config.seed));
    let rate = |config: &Config| if rates { format!(" lr {}", lr(config)) } else { String::new() };
    let of = |(_, config): &(_, Config)| format!("{}{}", config.recipe, rate(config));
    let plain: Vec<String> = found.iter().map(of).collect();
    let with = |more: Vec<String>| plain.iter().zip(more).map(|(name, more)| name.clone() + &more);
    let ways: [&dyn Fn() -> Option<Vec<String>>; 3] =
        [&|| Some(plain.clone()), &|| Some(with(by_keys(found)?).collect()), &|| {
            Some(with(by_folders(found)?).collect())
        }];
    let conditions = ways.iter().find_map(|way| way().filter(|names| distinguish(names, found)));
    let Some(conditions) = conditions else {
        let paths: Vec<String> = found.iter().map(|(path, _)| printable_path(path)).collect();
        return Names { runs: paths.clone(), conditions: paths };
    };
    let with_seed = |(condition, (_, config)): (&String, &(_, Config))| match seeds {
        true => format!("{condition} seed {}", config.seed),
        false => condition.clone(),
    };
    Names { runs: conditions.iter().zip(found).map(with_seed).collect(), conditions }
}

/// What runs that are to be trained are called, but for their seeds.
pub fn conditions(runs: &[Run]) -> Vec<String> {
    let of = |run: &Run| (PathBuf::from(&run.name), run.config.clone());
    names(&runs.iter().map(of).collect::<Vec<_>>()).conditions
}

/// Whether runs of one name are the same but for their seeds, each of which is there once.
fn distinguish(names: &[String], found: &[(PathBuf, Config)]) -> bool {
    let mut first: HashMap<&String, &Config> = HashMap::new();
    let mut seen = HashSet::new();
    names.iter().zip(found).all(|(name, (_, config))| {
        let is_new = seen.insert((name, config.seed));
        is_new && repeats(config, first.entry(name).or_insert(config))
    })
}

/// ` batch=16`: the keys in which they differ, unless these are too many, or too long.
fn by_keys(found: &[(PathBuf, Config)]) -> Option<Vec<String>> {
    let mut names = different(found.iter().map(|(_, config)| config));
    names.retain(|name| name != "train.lr");
    let is_short = (1..=KEYS).contains(&names.len());
    let of = |(_, config): &(_, Config)| -> Option<String> {
        let known = keys(config);
        let each = names.iter().map(|name| {
            let value = match known.get(name) {
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                None => "none".to_owned(),
            };
            let key = name.rsplit('.').next().unwrap_or(name);
            (value.len() <= VALUE).then(|| format!(" {key}={value}"))
        });
        each.collect()
    };
    if is_short { found.iter().map(of).collect() } else { None }
}

/// ` in a`: the folders above the runs, without what all of these share; nothing where one has no name.
fn by_folders(found: &[(PathBuf, Config)]) -> Option<Vec<String>> {
    let parts = |(path, _): &(PathBuf, Config)| -> Vec<OsString> {
        let parts = whole::split(path).0.components();
        parts
            .filter(|part| *part != Component::CurDir)
            .map(|part| part.as_os_str().into())
            .collect()
    };
    let all: Vec<Vec<OsString>> = found.iter().map(parts).collect();
    // What lies in the shared folder itself has that one's own name.
    let shortest = all.iter().map(Vec::len).min()?.checked_sub(1)?;
    let shared = (0..shortest).take_while(|&i| !differ(all.iter().map(|parts| &parts[i]))).count();
    let of = |parts: &Vec<OsString>| {
        let own: PathBuf = parts[shared..].iter().collect();
        format!(" in {}", printable_path(&own))
    };
    Some(all.iter().map(of).collect())
}
