//! A unit of one's own, described line by line, as a file such as `unit.toml` holds it.
//!
//! ```toml
//! l = 32                 # products of a step: a parameter of docs/units.md
//! out = "e8m13@rtz"
//! like = "hopper"        # the preset whose values hold where nothing is set; custom if this is left away
//! a = "e4m3"             # formats: a, b (as a), result (f32); they may be left away
//! ```
//!
//! These are lines of TOML, of which whole numbers and texts in quotes are understood and nothing else.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::error::UnitError;
use super::name::{Formats, Model};

/// What lines say of a unit.
///
/// ```
/// use exmy::gemm::unit::Description;
///
/// let own: Description = "l = 32\nf = 25\na = \"mxfp8-e4m3\"".parse()?;
/// assert_eq!(own.model.to_string(), "custom,l=32,f=25");
/// assert_eq!(own.formats.unwrap().to_string(), "e4m3/32:e8m0");
/// # Ok::<(), exmy::gemm::unit::DescriptionError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// The preset and the parameters.
    pub model: Model,
    /// The formats, if they are named.
    pub formats: Option<Formats>,
}

/// Why lines describe no unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DescriptionError {
    /// The line, from 1; `None` if it is about all of them.
    line: Option<usize>,
    why: String,
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

impl core::error::Error for DescriptionError {}

impl From<UnitError> for DescriptionError {
    fn from(error: UnitError) -> Self {
        Self { line: None, why: error.to_string() }
    }
}

/// Key and value of a line without its comment; `None` if nothing stands there.
fn setting(line: &str) -> Result<Option<(&str, &str)>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let Some((key, value)) = line.split_once('=') else {
        return Err(format!("{line:?} is not of the form KEY = VALUE"));
    };
    let (key, value) = (key.trim(), value.trim());
    let quoted = ['"', '\''].into_iter().find_map(|quote| {
        let (text, rest) = value.strip_prefix(quote)?.split_once(quote)?;
        Some((text, rest.trim()))
    });
    let (value, rest) = match quoted {
        Some(found) => found,
        None => {
            let end = value.find([' ', '\t', '#']).unwrap_or(value.len());
            let (number, rest) = value.split_at(end);
            if number.parse::<i64>().is_err() {
                let what = if number.is_empty() { "nothing" } else { number };
                return Err(format!(
                    "{key} is {what}: parameters are whole numbers or texts in quotes, as l = 32 and \
                     out = \"f32@rtz\""
                ));
            }
            (number, rest.trim())
        }
    };
    if !rest.is_empty() && !rest.starts_with('#') {
        return Err(format!("{rest:?} stands behind the value of {key}"));
    }
    // What is put together of values has commas between them.
    let formats = matches!(key, "a" | "b" | "result");
    if !formats && value.contains([',', ':']) {
        return Err(format!("{key} is {value:?}: one parameter has one value"));
    }
    Ok(Some((key, value)))
}

impl FromStr for Description {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        let mut found: Vec<(&str, &str)> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let wrong = |why| DescriptionError { line: Some(at + 1), why };
            let Some((key, value)) = setting(line).map_err(wrong)? else { continue };
            if found.iter().any(|(other, _)| *other == key) {
                return Err(wrong(format!("{key} is set a second time")));
            }
            found.push((key, value));
        }
        let mut take = |key: &str| {
            let at = found.iter().position(|(other, _)| *other == key)?;
            Some(found.remove(at).1)
        };
        let (like, a, b, result) = (take("like"), take("a"), take("b"), take("result"));
        let mut model = String::from(like.unwrap_or("custom"));
        for (key, value) in found {
            model += &format!(",{key}={value}");
        }
        let formats = match (a, b) {
            (Some(a), b) => {
                let result = result.map_or(String::new(), |result| format!("+{result}"));
                Some(format!("{a},{}{result}", b.unwrap_or(a)).parse()?)
            }
            (None, None) if result.is_none() => None,
            (None, _) => {
                let why = "b or result without a: name the left operand's format too".into();
                return Err(DescriptionError { line: None, why });
            }
        };
        Ok(Self { model: model.parse()?, formats })
    }
}

#[cfg(feature = "std")]
mod files {
    use std::fs::File;
    use std::io::Read;
    use std::path::Path;

    use super::{Description, Formats, Model, UnitError};
    use crate::error::{Error, Result};
    use crate::gemm::unit::Unit;
    use crate::shown::printable_path;

    /// The longest description, in bytes.
    const LONGEST: u64 = 1 << 16;

    /// How a file's name ends.
    const ENDING: &str = ".toml";

    impl Description {
        /// Reads a file.
        ///
        /// # Errors
        /// If it cannot be read, or describes no unit.
        pub fn read(path: &Path) -> Result<Self> {
            let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
            let mut text = String::new();
            let mut file = file.take(LONGEST + 1);
            file.read_to_string(&mut text).map_err(|error| Error::io("read", path, error))?;
            let failed = |why: &str| Error::new(format!("{}: {why}", printable_path(path)));
            if text.len() as u64 > LONGEST {
                return Err(failed("longer than a description of a unit is (64 KiB)"));
            }
            text.parse().map_err(|error| failed("this is no unit").because(error))
        }

        /// That of the file whose name a text begins with, and what stands behind a sign; `None` if it
        /// names no file.
        pub(in crate::gemm) fn of(text: &str, sign: char) -> Result<Option<(Self, Option<&str>)>> {
            let (path, behind) = match text.rsplit_once(sign) {
                _ if text.ends_with(ENDING) => (text, None),
                Some((path, behind)) if path.ends_with(ENDING) => (path, Some(behind)),
                _ => return Ok(None),
            };
            Ok(Some((Self::read(Path::new(path))?, behind)))
        }
    }

    impl Model {
        /// A model by its name, or of a file whose name ends in `.toml`.
        ///
        /// # Errors
        /// If there is no such model.
        pub fn named(text: &str) -> Result<Self> {
            if text.ends_with(ENDING) {
                return Ok(Description::read(Path::new(text))?.model);
            }
            text.parse().map_err(Error::from_cause)
        }
    }

    impl Unit {
        /// A unit by its text, in which the name of a file that ends in `.toml` may stand for the model:
        /// `unit.toml`, whose formats are the file's, or `unit.toml:e4m3`. Formats named apart come before
        /// those.
        ///
        /// # Errors
        /// If there is no such unit, or its file cannot be used.
        pub fn named(text: &str, formats: Option<&str>) -> Result<Self> {
            let wrong =
                |error: UnitError| Error::new(format!("no unit is {text:?}")).because(error);
            let Some((found, own)) = Description::of(text, ':')? else {
                let whole = formats.map(|formats| format!("{text}:{formats}"));
                return whole.as_deref().unwrap_or(text).parse().map_err(wrong);
            };
            let named = formats.or(own).map(str::parse).transpose().map_err(wrong)?;
            let Some(Formats { a, b, result }) = named.or(found.formats) else {
                return Err(Error::new(format!("{text:?} names no formats")).hint(
                    "write a = \"e4m3\" into it, or the formats behind its name: unit.toml:e4m3",
                ));
            };
            found.model.unit(a, b, result).map_err(wrong)
        }
    }
}
