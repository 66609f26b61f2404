//! The error of everything that touches files, configurations and runs.
//!
//! An error is for the person who made the mistake: it says what was being done, what was found,
//! and on a second line what would work. Number formats, views and other lower layers have error
//! types of their own, which convert into this one.

use crate::shown::{printable, printable_path};
use std::fmt;
use std::io;
use std::path::Path;

/// What went wrong, and what would work, in words. What a program may act on is the cause: a typed error of a
/// lower layer is the [`source`](std::error::Error::source), [`io_kind`](Self::io_kind) is the file system's,
/// and `safetensors::Fault::of` finds what is wrong with a file of tensors.
#[derive(Debug)]
pub struct Error {
    /// Empty where the cause's words say it all.
    what: String,
    hint: Option<String>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The result of operations of the upper layers.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error that says `what`: the thing given and why it cannot be used.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None, source: None }
    }

    /// An error of a lower layer, which says what was wrong and what would work: it keeps its own words, and
    /// is the [`source`](std::error::Error::source).
    pub fn from_cause(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { what: String::new(), hint: None, source: Some(source.into()) }
    }

    /// Adds what would work instead.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What went wrong alone, for one who cannot do what would work.
    #[cfg(feature = "safetensors")]
    pub(crate) fn without_hint(mut self) -> Self {
        self.hint = None;
        self
    }

    /// Keeps the error that caused this one.
    #[must_use]
    pub fn because(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// A failed file operation: `doing` as in "cannot `doing` `path`".
    pub fn io(doing: &str, path: &Path, source: io::Error) -> Self {
        Self::new(format!("cannot {doing} {}", printable_path(path))).because(source)
    }
}

impl Error {
    /// What the file system said, if that is the cause, however far behind: a file that is missing, a disk
    /// that is full.
    ///
    /// ```
    /// # #[cfg(feature = "safetensors")] {
    /// use std::io::ErrorKind;
    ///
    /// let error = exmy::safetensors::Reader::open("there is none").unwrap_err();
    /// assert_eq!(error.io_kind(), Some(ErrorKind::NotFound));
    /// # }
    /// ```
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        let causes = std::iter::successors(std::error::Error::source(self), |error| error.source());
        causes.filter_map(|error| error.downcast_ref()).map(io::Error::kind).next()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.source {
            None => {}
            Some(source) if self.what.is_empty() => write!(f, "{source}")?,
            Some(source) if source.is::<Self>() => write!(f, ": {source}")?,
            // Those of other libraries may repeat what they found as it is.
            Some(source) => write!(f, ": {}", printable(&source.to_string()))?,
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_why_and_what_would_work() {
        let missing = io::Error::new(io::ErrorKind::NotFound, "no such file");
        let error = Error::io("read", Path::new("a.txt"), missing).hint("give a text file");
        assert_eq!(error.to_string(), "cannot read a.txt: no such file\n  give a text file");
        assert_eq!(Error::new("b").because(error).io_kind(), Some(io::ErrorKind::NotFound));
        assert_eq!(Error::new("b").io_kind(), None);
        let odd = Error::io("read", Path::new("a\n\u{1b}"), io::Error::other("odd"));
        assert_eq!(odd.to_string(), "cannot read a\\n\\u{1b}: odd");
        let field = Error::new("a.json").because(io::Error::other("no field `b\n`"));
        assert_eq!(field.to_string(), "a.json: no field `b\\n`");
        let outer = Error::new("b").because(Error::new("a").hint("try c"));
        assert_eq!(outer.to_string(), "b: a\n  try c");
        let unknown = "e4x".parse::<crate::Format>().unwrap_err();
        let found = Error::from_cause(unknown).hint("see formats.md");
        assert_eq!(found.to_string(), format!("{unknown}\n  see formats.md"));
        let cause = std::error::Error::source(&found).and_then(|cause| cause.downcast_ref());
        assert_eq!(cause, Some(&unknown));
    }
}
