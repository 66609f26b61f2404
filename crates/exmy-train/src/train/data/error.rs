//! What can be wrong with data, for the person who named it.

use crate::train::memory;
use exmy::shown::{printable, printable_path};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// One of the two parts of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// What batches are drawn from.
    Training,
    /// What the validation loss is measured on.
    Validation,
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Training => "training",
            Self::Validation => "validation",
        })
    }
}

/// Why there is no data, what was given and what would work.
#[derive(Debug)]
#[non_exhaustive]
pub enum DataError {
    /// An empty name.
    NoName,
    /// `synthetic:` or `recall:` was followed by something that is not a `u64`.
    Seed {
        /// Before the colon.
        word: String,
        /// What followed.
        found: String,
    },
    /// The path is not UTF-8, so that it could not be written into a run's record.
    NotUtf8 {
        /// The path with replacement characters.
        shown: String,
    },
    /// Nothing has this name.
    Missing {
        /// What was asked for.
        path: PathBuf,
        /// The longest part of it that exists, if any.
        exists: Option<PathBuf>,
    },
    /// The operating system refuses it.
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Its reason.
        source: io::Error,
    },
    /// A file with more bytes than there is memory for.
    TooLarge {
        /// Its name.
        path: PathBuf,
        /// Bytes of free memory.
        memory: u64,
    },
    /// A device, socket or pipe.
    NotAFile {
        /// Its name.
        path: PathBuf,
    },
    /// A file without content.
    Empty {
        /// Its name.
        path: PathBuf,
    },
    /// A folder in which no regular, visible file has content.
    EmptyFolder {
        /// Its name.
        path: PathBuf,
    },
    /// A folder with one of `train.bin` and `val.bin`.
    HalfPair {
        /// The one that is there.
        found: PathBuf,
        /// The one that is not.
        missing: PathBuf,
    },
    /// A `.bin` file that is not what nanoGPT or llm.c write.
    TokenFile {
        /// Its name.
        path: PathBuf,
        /// What was found.
        problem: String,
        /// What likely happened and what would work.
        hint: String,
    },
    /// The two files of a pair hold tokens of different width.
    MixedPair {
        /// The training file and the bytes of its tokens.
        train: (PathBuf, usize),
        /// The validation file and the bytes of its tokens.
        validation: (PathBuf, usize),
    },
    /// A token so large that no model could have a row for it.
    Vocabulary {
        /// The file or folder.
        path: PathBuf,
        /// The largest token found.
        largest: u32,
        /// The largest one accepted.
        limit: u32,
    },
    /// The validation fraction is not between 0 and 1.
    Fraction {
        /// What it is.
        found: f64,
    },
    /// A context of 0 tokens.
    ZeroContext {
        /// The largest that works.
        largest: usize,
    },
    /// A split has fewer tokens than one window and its last target need.
    TooShort {
        /// Which.
        split: Split,
        /// The tokens it has.
        tokens: usize,
        /// The context asked for.
        context: usize,
        /// The largest context for which both splits suffice.
        largest: usize,
        /// The dataset's own line.
        description: String,
    },
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName => {
                f.write_str("the data has an empty name; give a file, a folder or `synthetic`")
            }
            Self::Seed { word, found } => write!(
                f,
                "`{word}:{0}`: `{0}` is not a seed; write `{word}`, or `{word}:N` with N from 0 to \
                 {1}, or `./{word}:{0}` for a file of that name",
                printable(found),
                u64::MAX
            ),
            Self::NotUtf8 { shown } => write!(
                f,
                "the path `{}` is not valid UTF-8, which the records of a run are; \
                 rename it or give a link with a UTF-8 name",
                printable(shown)
            ),
            Self::Missing { path, exists } => {
                write!(f, "`{}` does not exist", printable_path(path))?;
                if let Some(part) = exists {
                    write!(f, " (`{}` does)", printable_path(part))?;
                }
                f.write_str(
                    "; give a text file, a folder of them, a .bin token file or `synthetic`",
                )
            }
            Self::Unreadable { path, source } => {
                write!(f, "`{}` cannot be read: {source}", printable_path(path))
            }
            Self::TooLarge { path, memory: free } => write!(
                f,
                "`{}` is larger than the free memory of {}; give a part of it",
                printable_path(path),
                memory::size(*free)
            ),
            Self::NotAFile { path } => write!(
                f,
                "`{}` is neither a regular file nor a folder; save what it delivers to a file first",
                printable_path(path)
            ),
            Self::Empty { path } => write!(
                f,
                "`{}` is empty; give a file with at least a few thousand bytes of text, or \
                 `synthetic`",
                printable_path(path)
            ),
            Self::EmptyFolder { path } => write!(
                f,
                "the folder `{}` holds no text: no regular file with content is below it \
                 (names that begin with a dot are skipped)",
                printable_path(path)
            ),
            Self::HalfPair { found, missing } => write!(
                f,
                "the folder holds `{}` but not `{}`; add it, or name the one file to have it split",
                printable_path(found),
                printable_path(missing)
            ),
            Self::TokenFile { path, problem, hint } => {
                write!(f, "`{}` {problem}; {hint}", printable_path(path))
            }
            Self::MixedPair { train, validation } => write!(
                f,
                "`{}` holds tokens of {} bytes but `{}` of {}; write both with the same tokenizer",
                printable_path(&train.0),
                train.1,
                printable_path(&validation.0),
                validation.1
            ),
            Self::Vocabulary { path, largest, limit } => write!(
                f,
                "`{}` holds the token {largest}, above the limit of {limit}; are its tokens of \
                 another width or byte order?",
                printable_path(path)
            ),
            Self::Fraction { found } => write!(
                f,
                "a validation fraction of {found} leaves one split empty; it must be above 0 and \
                 below 1, for example 0.1"
            ),
            Self::ZeroContext { largest } => {
                write!(f, "a context of 0 tokens; this data allows 1 to {largest}")
            }
            Self::TooShort { split, tokens, context, largest, description } => {
                write!(
                    f,
                    "a context of {context} needs {} tokens in each split, but the {split} split \
                     has {tokens} ({description}); ",
                    context.saturating_add(1)
                )?;
                match largest {
                    0 => f.write_str("give more data"),
                    _ => write!(f, "give more data or a context of at most {largest}"),
                }
            }
        }
    }
}

impl std::error::Error for DataError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            _ => None,
        }
    }
}
