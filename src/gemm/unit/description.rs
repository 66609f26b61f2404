//! A unit of one's own, described line by line, as a file such as `unit.toml` holds it.
//!
//! ```toml
//! l = 32                 # products of a step: a parameter of docs/units.md
//! out = "e8m13@rtz"
//! like = "hopper"        # the preset whose values hold where nothing is set; custom if this is left away
//! a = "e4m3"             # formats: a, b (as a), result (f32); they may be left away
//! ```
//!
//! These are lines of TOML, of which whole numbers and texts in quotes are understood and nothing else. As of
//! other TOML, a byte-order mark before the first line is skipped.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::Unit;
use super::error::UnitError;
use super::name::{Formats, KEYS, Model, key_list};
use crate::text::UnknownName;

/// Keys of a file that are no parameters: parameters stand on the preset, and formats on those before them.
const BASE: [&str; 4] = ["like", "a", "b", "result"];

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
#[derive(Clone, Debug)]
pub struct Description {
    /// The preset and the parameters.
    pub model: Model,
    /// The formats, if they are named.
    pub formats: Option<Formats>,
    /// The lines, for what may turn out to be wrong with them.
    lines: Vec<Setting>,
}

/// What a line sets.
#[derive(Clone, Debug)]
struct Setting {
    /// From 1.
    line: usize,
    key: String,
    value: String,
}

/// Two descriptions of the same, whatever lines it stands in.
impl PartialEq for Description {
    fn eq(&self, other: &Self) -> bool {
        (&self.model, &self.formats) == (&other.model, &other.formats)
    }
}

impl Eq for Description {}

/// Why lines describe no unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DescriptionError {
    /// The lines at fault, from 1; none if it is about all of them.
    lines: Vec<usize>,
    why: Why,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Why {
    /// It is no line of a description.
    Line(String),
    /// Lines that say what no unit is.
    Unit(UnitError),
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.lines.len().saturating_sub(1);
        for (at, line) in self.lines.iter().enumerate() {
            let before = match at {
                0 if last == 0 => "line ",
                0 => "lines ",
                _ if at == last => " and ",
                _ => ", ",
            };
            write!(f, "{before}{line}")?;
        }
        let colon = if self.lines.is_empty() { "" } else { ": " };
        f.write_str(colon)?;
        match &self.why {
            Why::Line(why) => f.write_str(why),
            Why::Unit(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for DescriptionError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.why {
            Why::Line(_) => None,
            Why::Unit(error) => Some(error),
        }
    }
}

impl DescriptionError {
    /// An error, by what `judge` says of some of the lines (`None` where they leave open what they are to be
    /// judged for). At fault is each line without which all others work; of several faults the first line
    /// that does not work, where without it all that it stands on does.
    fn blame(
        lines: &[Setting],
        error: UnitError,
        judge: impl Fn(&[&Setting]) -> Option<Result<(), UnitError>>,
    ) -> Self {
        let works = |some: &[&Setting]| matches!(judge(some), Some(Ok(())));
        let follow = lines.iter().any(|line| matches!(line.key.as_str(), "b" | "result"));
        let without = |line: &&Setting| {
            let rest = lines.iter().filter(|other| other.line != line.line);
            // What follows the first format would not be read without it.
            !(line.key == "a" && follow) && works(&rest.collect::<Vec<_>>())
        };
        let at_fault: Vec<usize> = lines.iter().filter(without).map(|line| line.line).collect();
        if !at_fault.is_empty() {
            return Self { lines: at_fault, why: Why::Unit(error) };
        }
        // A parameter stands on the preset and the formats, and these on those before them.
        let mut order: Vec<&Setting> =
            BASE.iter().filter_map(|key| lines.iter().find(|line| line.key == *key)).collect();
        let beside = order.len();
        order.extend(lines.iter().filter(|line| !BASE.contains(&line.key.as_str())));
        let alone = (0..order.len()).find_map(|at| {
            let mut some = order[..at.min(beside)].to_vec();
            if !works(&some) {
                return None;
            }
            some.push(order[at]);
            Some((order[at].line, judge(&some)?.err()?))
        });
        match alone {
            Some((line, error)) => Self { lines: alloc::vec![line], why: Why::Unit(error) },
            None => Self { lines: Vec::new(), why: Why::Unit(error) },
        }
    }
}

/// The preset, the parameters and the formats that lines say.
fn said(lines: &[&Setting]) -> Result<(Model, Option<Formats>), UnitError> {
    let of = |key: &str| lines.iter().find(|line| line.key == key).map(|line| line.value.as_str());
    let mut model = String::from(of("like").unwrap_or("custom"));
    for line in lines {
        if !BASE.contains(&line.key.as_str()) {
            model += &format!(",{}={}", line.key, line.value);
        }
    }
    let formats = of("a").map(|a| {
        let result = of("result").map_or(String::new(), |result| format!("+{result}"));
        format!("{a},{}{result}", of("b").unwrap_or(a)).parse()
    });
    Ok((model.parse()?, formats.transpose()?))
}

/// The byte-order mark, which programs on some systems write before a text. TOML ignores it.
const MARK: char = '\u{FEFF}';

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
    let names = || BASE.into_iter().chain(KEYS.iter().map(|(key, _)| *key));
    if names().all(|name| !name.eq_ignore_ascii_case(key)) {
        let forms = key_list!("like, a, b, result, ", " = ");
        return Err(format!("{}", UnknownName::new("key of a matrix unit", key, names(), forms)));
    }
    // What is put together of values has commas between them.
    let formats = ["a", "b", "result"].iter().any(|one| one.eq_ignore_ascii_case(key));
    if !formats && value.contains([',', ':']) {
        return Err(format!("{key} is {value:?}: one parameter has one value"));
    }
    Ok(Some((key, value)))
}

impl FromStr for Description {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        let mut lines: Vec<Setting> = Vec::new();
        for (at, line) in text.strip_prefix(MARK).unwrap_or(text).lines().enumerate() {
            let wrong = |why| DescriptionError { lines: alloc::vec![at + 1], why: Why::Line(why) };
            let Some((key, value)) = setting(line).map_err(wrong)? else { continue };
            let key = key.to_ascii_lowercase();
            if let Some(first) = lines.iter().find(|other| other.key == key) {
                return Err(wrong(format!(
                    "{key} is set a second time, after line {}",
                    first.line
                )));
            }
            lines.push(Setting { line: at + 1, key, value: value.into() });
        }
        let has = |key: &str| lines.iter().find(|line| line.key == key);
        if let (None, Some(alone)) = (has("a"), has("b").or(has("result"))) {
            let why = "b or result without a: name the left operand's format too".into();
            return Err(DescriptionError { lines: alloc::vec![alone.line], why: Why::Line(why) });
        }
        let all: Vec<&Setting> = lines.iter().collect();
        match said(&all) {
            Ok((model, formats)) => Ok(Self { model, formats, lines }),
            Err(error) => {
                Err(DescriptionError::blame(&lines, error, |some| Some(said(some).map(drop))))
            }
        }
    }
}

impl Description {
    /// The unit that is described, for other formats than its own if there are some.
    fn unit(&self, formats: Option<&Formats>) -> Result<Option<Unit>, DescriptionError> {
        let of = |model: &Model, own: Option<&Formats>| {
            let Formats { a, b, result } = formats.or(own)?;
            Some(model.unit(*a, *b, *result))
        };
        let judge = |some: &[&Setting]| match said(some) {
            Ok((model, own)) => of(&model, own.as_ref()).map(|unit| unit.map(drop)),
            Err(error) => Some(Err(error)),
        };
        of(&self.model, self.formats.as_ref())
            .transpose()
            .map_err(|error| DescriptionError::blame(&self.lines, error, judge))
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
            // Scales have the sign in their formats, too: unit.toml:e2m1/16:ue4m3.
            let end = text.find(&format!("{ENDING}{sign}")).map(|at| at + ENDING.len());
            let (path, behind) = match end {
                _ if text.ends_with(ENDING) => (text, None),
                Some(end) => (&text[..end], Some(&text[end + sign.len_utf8()..])),
                None => return Ok(None),
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
            let named: Option<Formats> =
                formats.or(own).map(str::parse).transpose().map_err(wrong)?;
            let unit = found
                .unit(named.as_ref())
                .map_err(|error| Error::new(format!("no unit is {text:?}")).because(error))?;
            unit.ok_or_else(|| {
                Error::new(format!("{text:?} names no formats")).hint(
                    "write a = \"e4m3\" into it, or the formats behind its name: unit.toml:e4m3",
                )
            })
        }
    }
}
