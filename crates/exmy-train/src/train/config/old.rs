//! Configurations of the version before: the same keys with other [names of formats](exmy::text::old) and of
//! [probes](crate::train::old).

use super::{Config, VERSION, overlay};
use crate::recipe::old::renamed;
use crate::train::old::former as former_probe;
use exmy::error::Result;
use exmy::text::old::{former, modern};
use toml::{Table, Value};

/// Reads a text of TOML, with any keys of a configuration. One that says that it is of the version before is
/// given back as one of this version.
///
/// # Errors
/// With the line at fault.
pub fn read_table(text: &str) -> Result<Table> {
    let mut table = overlay::parse(text)?;
    if let Some(version @ Value::Integer(_)) = table.get_mut("version")
        && version.as_integer() == Some(i64::from(VERSION - 1))
    {
        *version = Value::Integer(VERSION.into());
        if let Some(recipe) = table.get_mut("recipe") {
            each_text(recipe);
        }
        if let Some(recipes) = table.get_mut("grid").and_then(|grid| grid.get_mut("recipe")) {
            each_text(recipes);
        }
        for key in ["at", "when"] {
            let rules = table.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
            rules.filter_map(|rule| rule.get_mut("then")).for_each(each_text);
        }
    }
    Ok(table)
}

/// Gives today's names to the formats of a recipe, a table of one or a list of them.
fn each_text(value: &mut Value) {
    match value {
        Value::String(text) => *text = renamed(text, modern),
        Value::Table(table) => table.iter_mut().for_each(|(_, value)| each_text(value)),
        Value::Array(list) => list.iter_mut().for_each(each_text),
        _ => {}
    }
}

/// What a summary of the version before called a recipe, or the formats of a product, in the names of today.
pub fn share_name(text: &str) -> String {
    renamed(text, modern)
}

impl Config {
    /// The text that the version before wrote for the same run. Hashes of it are in the names of folders,
    /// which a change of names in the text must not change.
    pub fn former_toml(&self) -> String {
        let mut old = Self { version: VERSION - 1, ..self.clone() };
        old.record.probes.iter_mut().for_each(|name| *name = former_probe(name));
        old.when.iter_mut().for_each(|rule| rule.metric = former_probe(&rule.metric));
        let text = old.to_toml();
        text.lines().map(|line| renamed(line, former) + "\n").collect()
    }
}
