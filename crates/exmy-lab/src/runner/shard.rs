//! Which part of a sweep a process does, and how batch systems say so.

use std::fmt;
use std::str::FromStr;

/// Part `index` of `count`: the runs whose place in the plan is `index` modulo `count`. Text:
/// `2/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u64,
    count: u64,
}

/// A text that is no shard, or an environment that says nothing useful.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseShardError {
    /// A text that is no shard.
    Text(String),
    /// A variable whose text is no number.
    Variable(&'static str, String),
    /// Part of so many, and no variable says which.
    NoIndex(u64),
    /// A variable with an index, and of how many is not said.
    NoCount(&'static str, u64),
    /// A variable whose index is not below the count.
    Index(&'static str, u64, u64),
}

impl fmt::Display for ParseShardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(
                f,
                "{text:?} is no shard: write I/N with I from 0 to N - 1, or /N where the batch system says \
                 which"
            ),
            Self::Variable(name, text) => write!(f, "{name} is {text:?}, which is no number"),
            Self::NoIndex(count) => write!(
                f,
                "/{count} takes the index from SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX, and neither is \
                 set"
            ),
            Self::NoCount(name, index) => {
                write!(f, "{name} is {index}, of how many is not said: add --shard /N")
            }
            Self::Index(name, index, count) => {
                write!(f, "{name} makes this part {index} of {count}")
            }
        }
    }
}

impl std::error::Error for ParseShardError {}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = ParseShardError;

    fn from_str(text: &str) -> Result<Self, ParseShardError> {
        let parts =
            text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        let shard = parts.and_then(|(index, count)| Self::new(index, count));
        shard.ok_or_else(|| ParseShardError::Text(text.to_owned()))
    }
}

impl Shard {
    /// The whole.
    pub const ALL: Self = Self { index: 0, count: 1 };

    /// Part `index` of `count`, if there is one.
    pub fn new(index: u64, count: u64) -> Option<Self> {
        (index < count).then_some(Self { index, count })
    }

    /// Which part, from 0.
    pub fn index(self) -> u64 {
        self.index
    }

    /// Of how many.
    pub fn count(self) -> u64 {
        self.count
    }

    /// The part this process is to do: `given` (`I/N`, or `/N` with the index from the
    /// environment), else what `variable` says of the environment, else the whole.
    ///
    /// * Slurm's job arrays: `SLURM_ARRAY_TASK_ID`, `_MIN`, `_STEP` and `_COUNT` (`sbatch`(1)); an
    ///   array of any range and step is numbered from 0.
    /// * Kubernetes' indexed jobs: `JOB_COMPLETION_INDEX`, which comes without a count.
    ///
    /// # Errors
    /// If these are no numbers that fit each other, or the count is not known.
    pub fn choose(
        given: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ParseShardError> {
        let count = match given {
            Some(text) => match text.strip_prefix('/') {
                Some(count) => match count.parse::<u64>() {
                    Ok(count) if count > 0 => Some(count),
                    _ => return text.parse(),
                },
                None => return text.parse(),
            },
            None => None,
        };
        let number = |name: &'static str| -> Result<Option<u64>, ParseShardError> {
            let Some(text) = variable(name).filter(|text| !text.is_empty()) else {
                return Ok(None);
            };
            text.parse().map(Some).map_err(|_| ParseShardError::Variable(name, text))
        };
        let (index, count, name) = if let Some(id) = number("SLURM_ARRAY_TASK_ID")? {
            let least = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
            let step = number("SLURM_ARRAY_TASK_STEP")?.unwrap_or(1).max(1);
            let count = match count {
                None => number("SLURM_ARRAY_TASK_COUNT")?,
                given => given,
            };
            (id.saturating_sub(least) / step, count, "SLURM_ARRAY_TASK_ID")
        } else if let Some(index) = number("JOB_COMPLETION_INDEX")? {
            (index, count, "JOB_COMPLETION_INDEX")
        } else if let Some(count) = count {
            return Err(ParseShardError::NoIndex(count));
        } else {
            return Ok(Self::ALL);
        };
        let Some(count) = count else {
            return Err(ParseShardError::NoCount(name, index));
        };
        Self::new(index, count).ok_or(ParseShardError::Index(name, index, count))
    }
}
