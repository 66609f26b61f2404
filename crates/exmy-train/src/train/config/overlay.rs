//! Changing some keys of a configuration: TOML laid over TOML, with the mistakes people make answered.

use exmy::error::{Error, Result};
use exmy::shown::printable;
use exmy::text::Nearest;
use toml::{Table, Value};

/// Replaces values of `base` by those of `changes`; both must have the same keys and kinds.
pub(super) fn overlay(base: &mut Table, changes: Table, prefix: &str) -> Result<()> {
    for (key, change) in changes {
        let shown = printable(&key);
        let path = if prefix.is_empty() { shown } else { format!("{prefix}.{shown}") };
        let Some(old) = base.get_mut(&key) else {
            return Err(unknown_key(base, &key, &path));
        };
        match (old, change) {
            (Value::Table(old), Value::Table(change)) => overlay(old, change, &path)?,
            (old @ Value::Float(_), Value::Integer(number)) => *old = Value::Float(number as f64),
            (Value::Integer(_), Value::Integer(number)) if number < 0 => {
                return Err(Error::new(format!("{path} = {number} is negative"))
                    .hint("0 or a whole number above"));
            }
            (old @ Value::Integer(_), Value::Float(number)) => match whole(number) {
                Some(whole) => *old = Value::Integer(whole),
                None => {
                    return Err(Error::new(format!(
                        "{path} is the whole number {old}, not {number:?}"
                    )));
                }
            },
            // A recipe or a path may look like a number or a list to TOML.
            // Or be a table of rules.
            (old @ Value::String(_), table @ Value::Table(_)) if path == "recipe" => *old = table,
            (old @ Value::String(_), Value::Integer(number)) => {
                *old = Value::String(number.to_string());
            }
            (old, change) if old.same_type(&change) => *old = change,
            (Value::Integer(_) | Value::Float(_), Value::String(text))
                if text.parse::<f64>().is_ok() =>
            {
                return Err(Error::new(format!("{path} = {text} is out of range")));
            }
            (old, change) => {
                let what = printable(&change.to_string());
                let error = Error::new(format!(
                    "{path} is {} {old}, not {} {what}",
                    kind(old),
                    kind(&change)
                ));
                return Err(match old {
                    Value::Array(_) => error.hint(format!("write a list: {path}=[{what}]")),
                    _ => error,
                });
            }
        }
    }
    Ok(())
}

/// A number without a fraction that TOML's whole numbers have, as `1e3` is.
fn whole(number: f64) -> Option<i64> {
    const MOST: f64 = (1_u64 << 53) as f64;
    (number.fract() == 0.0 && (0.0..=MOST).contains(&number)).then_some(number as i64)
}

/// Reads a text of TOML.
///
/// # Errors
/// With the line at fault.
pub(super) fn parse(text: &str) -> Result<Table> {
    text.parse().map_err(|error: toml::de::Error| {
        let place = error.span().map_or(0, |span| span.start.min(text.len()));
        let number = 1 + text[..place].matches('\n').count();
        let line = text.lines().nth(number - 1).unwrap_or_default();
        let cut = line.chars().nth(60).map_or("", |_| " ...");
        let begins: String = line.chars().take(60).collect();
        Error::new(format!("line {number} is not TOML: {}", printable(error.message())))
            .hint(format!("the line is {:?}{cut}", begins))
    })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "the word",
        Value::Integer(_) => "the whole number",
        Value::Float(_) => "the number",
        Value::Boolean(_) => "the switch",
        Value::Table(_) => "the section",
        Value::Array(_) => "the list",
        Value::Datetime(_) => "the date",
    }
}

fn unknown_key(table: &Table, key: &str, path: &str) -> Error {
    let keys = || table.keys().map(String::as_str);
    let near = Nearest::new(key, keys());
    let inside = table.iter().find(|(_, value)| {
        value.as_table().is_some_and(|section| section.contains_key(key) && key == path)
    });
    let hint = match near.names() {
        _ if inside.is_some() => {
            let section = inside.map_or("", |(name, _)| name.as_str());
            format!("did you mean {section}.{key}?")
        }
        [] => format!("the keys here are {}", keys().collect::<Vec<_>>().join(", ")),
        [name, ..] => {
            let section = path.strip_suffix(key).unwrap_or_default();
            format!("did you mean {section}{name}?")
        }
    };
    Error::new(format!("there is no key {path}")).hint(hint)
}
