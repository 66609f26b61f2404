//! The text form of where data comes from.
//!
//! `synthetic` is the embedded language with seed 0, `synthetic:7` the one with seed 7, `recall` and
//! `recall:7` are memory tasks. Everything else is a path; a file that happens to have such a name is written
//! `./synthetic`. Run records are text, so a path must be valid UTF-8.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::DataError;

/// Where the data comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The embedded language of this seed.
    Synthetic {
        /// Chooses the words and the text.
        seed: u64,
    },
    /// The [memory task](super::recall) of this seed.
    Recall {
        /// Draws the text.
        seed: u64,
    },
    /// A file or a folder.
    Path(PathBuf),
}

impl Default for Source {
    /// The embedded language with seed 0.
    fn default() -> Self {
        Self::Synthetic { seed: 0 }
    }
}

impl Source {
    /// The source that a command-line argument names.
    ///
    /// # Errors
    /// If the argument is not UTF-8, empty, or `synthetic:` or `recall:` with something that is not a
    /// seed.
    pub fn from_os(text: &OsStr) -> Result<Self, DataError> {
        match text.to_str() {
            Some(text) => text.parse(),
            None => Err(DataError::NotUtf8 { shown: text.to_string_lossy().into_owned() }),
        }
    }
}

impl FromStr for Source {
    type Err = DataError;

    fn from_str(text: &str) -> Result<Self, DataError> {
        if text.is_empty() {
            return Err(DataError::NoName);
        }
        let (word, seed) = match text.split_once(':') {
            Some((word, seed)) => (word, Some(seed)),
            None => (text, None),
        };
        let made: fn(u64) -> Self = match word {
            "synthetic" => |seed| Self::Synthetic { seed },
            "recall" => |seed| Self::Recall { seed },
            _ => return Ok(Self::Path(text.into())),
        };
        match seed.map(str::parse) {
            None => Ok(made(0)),
            Some(Ok(seed)) => Ok(made(seed)),
            Some(Err(_)) => {
                let found = seed.unwrap_or_default().to_owned();
                Err(DataError::Seed { word: word.to_owned(), found })
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Synthetic { seed: 0 } => f.write_str("synthetic"),
            Self::Synthetic { seed } => write!(f, "synthetic:{seed}"),
            Self::Recall { seed: 0 } => f.write_str("recall"),
            Self::Recall { seed } => write!(f, "recall:{seed}"),
            Self::Path(path) => {
                let text = path.to_string_lossy();
                if ["synthetic", "recall"].contains(&text.split(':').next().unwrap_or("")) {
                    f.write_str("./")?;
                }
                f.write_str(&text)
            }
        }
    }
}
