//! What can be wrong with a safetensors file or with what is asked of it, for programs that act on it.

use std::fmt;
use std::path::PathBuf;

use super::{CopyReason, Dtype};
use crate::error::Error;
use crate::quantizer::Target;
use crate::shown::printable_path;
use crate::text::Nearest;

/// Why work on a safetensors file failed: a cause of the [`Error`], where neither the file system nor a
/// mistake in the options of the call is.
///
/// ```
/// use exmy::safetensors::{Fault, Reader};
/// use std::io::Cursor;
///
/// let mut reader = Reader::new(Cursor::new(b"\x02\0\0\0\0\0\0\0{}"), "no tensors")?;
/// let error = reader.read_f32("w").unwrap_err();
/// assert_eq!(Fault::of(&error), Some(&Fault::NoTensor { name: "w".into() }));
/// assert_eq!(error.to_string(), "no tensors: there is no tensor \"w\"");
/// # Ok::<(), exmy::error::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The file is no whole safetensors file, or its metadata contradict its tensors.
    Damaged {
        /// What does not fit, in words.
        what: String,
    },
    /// A folder was named.
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// The index of a model of several files was named.
    Index {
        /// The index.
        path: PathBuf,
    },
    /// A pipe, socket or device was named, or the output is one or a folder.
    NotPlain {
        /// The path.
        path: PathBuf,
        /// What it is, in words.
        what: &'static str,
    },
    /// The output is the input.
    OutputIsInput {
        /// The output.
        path: PathBuf,
    },
    /// The file has no such tensor.
    NoTensor {
        /// The name that was asked for.
        name: String,
    },
    /// The tensor was not quantized, so it has no [`Record`](super::Record).
    NotQuantized {
        /// The name that was asked for.
        name: String,
    },
    /// The tensor's elements are no floating-point numbers.
    NotFloat {
        /// The tensor.
        name: String,
        /// The type of its elements.
        dtype: Dtype,
    },
    /// The tensor was quantized to a format without blocks, and blocks were asked for.
    NoBlocks {
        /// The tensor.
        name: String,
        /// Its format.
        format: Target,
    },
    /// A tensor, or what is made of it, is larger than the memory there is.
    TooLarge {
        /// The tensor.
        name: String,
        /// Bytes that are needed at once.
        bytes: u128,
    },
    /// A pattern of [`include`](super::QuantizeOptions::include) or
    /// [`exclude`](super::QuantizeOptions::exclude) matches no tensor.
    NoMatch {
        /// `--include` or `--exclude`.
        option: &'static str,
        /// The pattern.
        pattern: String,
    },
    /// No tensor would be quantized.
    NothingToQuantize {
        /// How many tensors are left as they are, and why.
        kept: Vec<(CopyReason, usize)>,
    },
    /// No tensor of the file is quantized, so there are no codes whose values could be written.
    NothingQuantized,
    /// Tensors that cannot be quantized so, by their shape, the layout or the format. Without them
    /// ([`exclude`](super::QuantizeOptions::exclude)) the others can.
    Misfit {
        /// The tensors.
        tensors: Vec<String>,
        /// Why, in words.
        why: String,
    },
    /// A tensor of codes or scales would have a name that is taken.
    NameClash {
        /// The tensor that is quantized.
        tensor: String,
        /// The name of its part.
        part: String,
        /// Whose it is already: the file's own tensor, or a part of another that is quantized.
        owner: String,
    },
}

impl Fault {
    /// The fault behind an error, if it has one.
    pub fn of(error: &Error) -> Option<&Self> {
        let causes =
            std::iter::successors(std::error::Error::source(error), |error| error.source());
        causes.filter_map(|error| error.downcast_ref()).next()
    }

    pub(super) fn damaged(what: impl Into<String>) -> Error {
        Self::Damaged { what: what.into() }.into()
    }

    /// One tensor that cannot be quantized so.
    pub(super) fn misfit(name: &str, why: String) -> Error {
        Self::Misfit { tensors: vec![name.to_owned()], why }.into()
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::from_cause(fault)
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { what } | Self::Misfit { why: what, .. } => f.write_str(what),
            Self::Folder { path } => write!(f, "{} is a folder", printable_path(path)),
            Self::Index { path } => {
                write!(f, "{} lists the files of a model and holds no tensor", printable_path(path))
            }
            Self::NotPlain { path, what } => write!(f, "{} {what}", printable_path(path)),
            Self::OutputIsInput { path } => write!(f, "{} is the input", printable_path(path)),
            Self::NoTensor { name } => write!(f, "there is no tensor {}", quoted(name)),
            Self::NotQuantized { name } => write!(f, "{} is no quantized tensor", quoted(name)),
            Self::NotFloat { name, dtype } => {
                write!(f, "tensor {} is {dtype}, not of floating-point numbers", quoted(name))
            }
            Self::NoBlocks { name, format } => {
                write!(f, "{} is in {format}, without blocks", quoted(name))
            }
            Self::TooLarge { name, bytes } => {
                write!(f, "tensor {} needs {bytes} bytes of memory at once", quoted(name))
            }
            Self::NoMatch { option, pattern } => {
                write!(f, "{option} {pattern:?} matches none of the file's tensors")
            }
            Self::NothingToQuantize { kept } => {
                let kept: Vec<String> =
                    kept.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
                let found = if kept.is_empty() { "it has none".into() } else { kept.join(", ") };
                write!(f, "there is no tensor to quantize: {found}")
            }
            Self::NothingQuantized => {
                f.write_str("there is no quantized tensor whose values could be written")
            }
            Self::NameClash { tensor, part, owner } => {
                let other = quoted(owner);
                let owner = if owner == part { "the file" } else { &other };
                let (tensor, part) = (quoted(tensor), quoted(part));
                write!(f, "quantizing {tensor} writes {part}, which {owner} has already")
            }
        }
    }
}

/// A name for a message: in quotes, control characters escaped, not endless.
#[doc(hidden)]
pub fn quoted(name: &str) -> String {
    const LONGEST: usize = 200;
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}...", &name[..end]),
        None => format!("{name:?}"),
    }
}

/// A shape for a message, of many axes the first.
#[doc(hidden)]
pub fn extents<T: std::fmt::Display>(shape: &[T]) -> String {
    const MOST: usize = 16;
    let first: Vec<String> = shape.iter().take(MOST).map(T::to_string).collect();
    match shape.len() {
        ..=MOST => format!("[{}]", first.join(", ")),
        axes => format!("[{}, ...] ({axes} axes)", first.join(", ")),
    }
}

/// Names for a message, of many the first.
pub(super) fn some_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const MOST: usize = 8;
    let mut names = names.into_iter();
    let first: Vec<String> = names.by_ref().take(MOST).map(quoted).collect();
    match names.count() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// The question after a name that is not there.
pub(super) fn did_you_mean(nearest: &Nearest<'_>) -> String {
    let names: Vec<String> = nearest.names().iter().map(|name| quoted(name)).collect();
    format!("did you mean {}?", names.join(" or "))
}
