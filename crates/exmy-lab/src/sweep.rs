//! What a sweep trains: any keys of a run's `config.toml`, and a grid of others.
//!
//! ```toml
//! preset = "micro"                 # where to start; nano if absent
//! train.batch = 16                 # any keys of config.toml
//!
//! [grid]                           # each with each
//! recipe = ["f32", "mxfp4", "nvfp4"]
//! lr = [1e-3, 3e-3]                # as --lr: the final rate keeps its ratio
//! seed = [1, 2, 3]
//! "train.weight_decay" = [0.0, 0.1]
//! ```
//!
//! Keys of the grid are those of `config.toml`, and `lr` and `steps`, which mean what the options
//! of `exmy train` do and may stand at the top, too. Relative paths are seen from the folder the program was
//! started in.

pub use crate::runner::Plan;
use crate::runner::{Run, content_name};
use exmy::error::{Error, Result};
use exmy::safetensors::given;
use exmy::shown::{printable, printable_path};
use exmy_train::train::check::check_run;
use exmy_train::train::config::{Config, read_table};
use exmy_train::train::data::Source;
use exmy_train::train::preset::preset;
use exmy_train::train::run;
use exmy_train::train::start;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use toml::{Table, Value};

/// A value as a table and a setting show it.
fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Float(number) => format!("{number:?}"),
        other => other.to_string(),
    }
}

/// A grid with keys that are written as `train.lr = [...]`, without quotes, put together again.
fn flat(grid: Table, prefix: &str) -> Table {
    let keys = grid.into_iter().flat_map(|(key, value)| match value {
        Value::Table(inner) => flat(inner, &format!("{prefix}{key}.")),
        value => Table::from_iter([(format!("{prefix}{key}"), value)]),
    });
    keys.collect()
}

/// A value in a line of text.
fn shown(value: &Value) -> String {
    printable(&value.to_string())
}

/// The configuration with one key of a grid set.
fn set(mut config: Config, key: &str, value: &Value) -> Result<Config> {
    let number = || match value {
        Value::Integer(number) => Ok(*number as f64),
        Value::Float(number) => Ok(*number),
        other => Err(Error::new(format!("{key} = {}", shown(other))).hint("numbers")),
    };
    match key {
        "lr" => config.train = config.train.with_lr(number()?),
        "steps" => {
            let steps = value.as_integer().and_then(|steps| u64::try_from(steps).ok());
            let steps = steps.ok_or_else(|| {
                Error::new(format!("steps = {}", shown(value))).hint("whole numbers above 0")
            })?;
            config.train = config.train.with_steps(steps);
        }
        _ => {
            let mut changes = Table::new();
            let mut value = value.clone();
            for part in key.rsplit('.') {
                value = Value::Table(Table::from_iter([(part.to_owned(), value)]));
            }
            if let Value::Table(table) = value {
                changes = table;
            }
            let what = |of: &str| format!("grid.{}{of}", printable(key));
            let text =
                toml::to_string(&changes).map_err(|error| Error::new(what("")).because(error))?;
            config = config.overlaid(&text).map_err(|error| {
                Error::new(what(&format!(" = {}: {error}", shown(&changes.into()))))
            })?;
        }
    }
    Ok(config)
}

impl Plan {
    /// Reads a plan, and the data that its runs are made on.
    ///
    /// # Errors
    /// If it cannot be read, names what does not exist, or describes a run that is impossible.
    pub fn read(path: &Path) -> Result<Self> {
        let text = given::text(path, given::SETTINGS).map_err(|error| {
            Error::io("read", path, error)
                .hint("a plan is a TOML file with any keys of a run's config.toml, and [grid]")
        })?;
        Self::parse(&text).map_err(|error| Error::new(format!("{}: {error}", printable_path(path))))
    }

    /// The same of a text.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(text: &str) -> Result<Self> {
        let mut table = read_table(text)?;
        let grid = match table.remove("grid") {
            None => Table::new(),
            Some(Value::Table(grid)) => flat(grid, ""),
            Some(other) => {
                return Err(Error::new(format!("grid is {}", shown(&other)))
                    .hint("a section: [grid], then key = [value, value]"));
            }
        };
        let name = match table.remove("preset") {
            None => "nano".to_owned(),
            Some(Value::String(name)) => name,
            Some(other) => {
                return Err(Error::new(format!("preset is {}", shown(&other))).hint("a name"));
            }
        };
        let options: Vec<_> =
            ["steps", "lr"].iter().filter_map(|key| table.remove_entry(*key)).collect();
        let base = toml::to_string(&table).unwrap_or_default();
        let mut base = preset(&name)?.overlaid(&base)?;
        for (key, value) in &options {
            base = set(base, key, value)?;
        }
        let mut keys: Vec<(&String, &Vec<Value>)> = Vec::new();
        for (key, values) in &grid {
            match values {
                Value::Array(values) if !values.is_empty() => keys.push((key, values)),
                other => {
                    let (key, other) = (printable(key), shown(other));
                    return Err(Error::new(format!("grid.{key} is {other}"))
                        .hint("a list of values, for example [1, 2]"));
                }
            }
        }
        keys.sort_by_key(|(key, _)| match key.as_str() {
            "recipe" => 0,
            "seed" => 2,
            _ => 1,
        });
        let mut cells = vec![(Vec::new(), base)];
        for (key, values) in &keys {
            let mut more = Vec::new();
            for (words, config) in cells {
                for value in *values {
                    let words = words.iter().cloned().chain([word(value)]).collect();
                    more.push((words, set(Config::clone(&config), key, value)?));
                }
            }
            cells = more;
        }
        let keys = keys.into_iter().map(|(key, _)| key.clone()).collect();
        let mut data = HashMap::new();
        let mut plan = Self { keys, runs: Vec::new(), values: Vec::new() };
        for (values, config) in cells {
            let config = complete(config, &mut data)?;
            let name = content_name((&config.recipe.to_string(), 80), &config, "");
            if plan.runs.iter().any(|run| run.name == name) {
                return Err(Error::new(format!(
                    "two runs are the same, both {}",
                    values.join(" ")
                ))
                .hint("name each value of the grid once"));
            }
            plan.runs.push(Run { name, config, parent: None });
            plan.values.push(values);
        }
        Ok(plan)
    }
}

/// What has been read of a source: its tokens' fingerprint and vocabulary.
type ReadSources = HashMap<(String, u64), (String, Option<usize>)>;

/// Fills in what is known once the data have been read, and checks that the run is possible.
fn complete(mut config: Config, known: &mut ReadSources) -> Result<Config> {
    if let Source::Path(path) = &config.data.source {
        let whole = fs::canonicalize(path).map_err(|error| Error::io("read", path, error))?;
        config.data.source = Source::Path(whole);
    }
    config.validate()?;
    if config.model.decoder().is_none() {
        return Ok(config);
    }
    let set_vocab = |config: &mut Config, vocab: Option<usize>| {
        if let (Some(model), Some(vocab)) = (config.model.decoder_mut(), vocab) {
            model.vocab = vocab;
        }
    };
    let key = (config.data.source.to_string(), config.data.validation.to_bits());
    match known.get(&key) {
        Some((fingerprint, vocab)) => {
            config.data.fingerprint.clone_from(fingerprint);
            set_vocab(&mut config, *vocab);
        }
        None => {
            let data = run::load_data(&mut config)?;
            let vocab = (!data.bytes).then_some(data.vocab);
            set_vocab(&mut config, vocab);
            check_run(&config, &data)?;
            known.insert(key, (config.data.fingerprint.clone(), vocab));
        }
    }
    start::settle(&mut config)?;
    Ok(config)
}
