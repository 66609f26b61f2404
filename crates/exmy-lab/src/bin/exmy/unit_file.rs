//! A matrix unit of one's own in a file, such as `unit.toml`.
//!
//! Its keys are the parameters of docs/units.md (`l = 32`, `out = "f32@rtz"`). Besides them `like` names the
//! preset whose values hold where nothing is set (`custom`), and `a`, `b` and `result` the formats, where a
//! command has none of its own.

use crate::inputs;
use exmy::error::{Error, Result};
use exmy::gemm::unit::{Model, Unit};
use exmy::shown::printable_path;
use std::io::Read;
use std::path::Path;
use toml::{Table, Value};

/// The longest description, in bytes.
const LONGEST: u64 = 1 << 16;

/// What a file says.
struct Description {
    /// The preset and the parameters, as the text of a model.
    model: String,
    /// The formats, as `A,B+RESULT`.
    formats: Option<String>,
}

fn read(path: &Path) -> Result<Description> {
    let mut text = String::new();
    let mut file = inputs::open(path)?.take(LONGEST + 1);
    file.read_to_string(&mut text).map_err(|error| Error::io("read", path, error))?;
    let failed = |why: &str| Error::new(format!("{}: {why}", printable_path(path)));
    if text.len() as u64 > LONGEST {
        return Err(failed("longer than a description of a unit is (64 KiB)"));
    }
    let mut table: Table =
        text.parse().map_err(|error| failed("this is no TOML").because(error))?;
    let value = |key: &str, value: Value| match value {
        Value::String(text) => Ok(text),
        Value::Integer(number) => Ok(number.to_string()),
        other => Err(failed(&format!("{key} is {}", other.type_str()))
            .hint("parameters are texts or whole numbers: l = 32, out = \"f32@rtz\"")),
    };
    let mut take = |key: &str| table.remove(key).map(|found| value(key, found)).transpose();
    let (like, a, b, result) = (take("like")?, take("a")?, take("b")?, take("result")?);
    let mut model = like.unwrap_or("custom".into());
    for (key, found) in table {
        model += &format!(",{key}={}", value(&key, found)?);
    }
    let formats = match (a, b) {
        (Some(a), b) => {
            let b = b.unwrap_or(a.clone());
            let result = result.map_or(String::new(), |result| format!("+{result}"));
            Some(format!("{a},{b}{result}"))
        }
        (None, None) if result.is_none() => None,
        (None, _) => {
            return Err(failed("b or result without a").hint("name the left operand's format too"));
        }
    };
    // What is wrong is told of the file, and not of the text that is made of it.
    let _: Model = model.parse().map_err(|error| failed("this is no unit").because(error))?;
    Ok(Description { model, formats })
}

/// A model by its name, or of a file whose name ends in `.toml`.
pub(crate) fn model(text: &str) -> Result<Model> {
    let model = if text.ends_with(".toml") { &read(Path::new(text))?.model } else { text };
    model.parse().map_err(|error: exmy::gemm::unit::UnitError| Error::new(error.to_string()))
}

/// A unit by its text, in which a file may stand for the model; with formats that are named apart, if any.
pub(crate) fn unit(text: &str, formats: Option<&str>) -> Result<Unit> {
    let (model, behind) = match text.split_once(".toml:") {
        Some((path, behind)) => (format!("{path}.toml"), Some(behind)),
        None => (text.to_owned(), None),
    };
    let mut whole = model.clone();
    let mut named = formats.or(behind).map(str::to_owned);
    if model.ends_with(".toml") {
        let description = read(Path::new(&model))?;
        (whole, named) = (description.model, named.or(description.formats));
    }
    if let Some(formats) = named {
        whole += &format!(":{formats}");
    }
    whole.parse().map_err(|error| Error::new(format!("no unit is {text:?}")).because(error))
}
