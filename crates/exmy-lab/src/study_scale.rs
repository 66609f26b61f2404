//! How large a study is: the word on the command line, in `manifest.json` and in tables of figures.

use exmy::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How large a study is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StudyScale {
    /// Seconds: that everything works, not what comes out.
    Smoke,
    /// An hour of two cores for a paper.
    Small,
    /// The sizes at which the paper claims it, for a cluster.
    Paper,
}

impl StudyScale {
    /// All of them, the smallest first.
    pub const ALL: [Self; 3] = [Self::Smoke, Self::Small, Self::Paper];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Small => "small",
            Self::Paper => "paper",
        }
    }

    /// One of three values.
    pub fn pick<T>(self, [smoke, small, paper]: [T; 3]) -> T {
        match self {
            Self::Smoke => smoke,
            Self::Small => small,
            Self::Paper => paper,
        }
    }
}

impl fmt::Display for StudyScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for StudyScale {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|scale| scale.name() == word);
        found.ok_or_else(|| {
            let words = Self::ALL.map(Self::name).join(", ");
            Error::new(format!("no study is of the scale {word:?}"))
                .hint(format!("there are {words}"))
        })
    }
}
