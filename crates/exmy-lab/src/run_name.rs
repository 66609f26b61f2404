//! The name of a run's folder, `WORDS-HASH`: what a reader knows a run by, and what says which one it is.
//!
//! Words may be cut, or be written otherwise by another version, and have the folders above in front; the
//! hash stays. It is made by [`content_name`](crate::runner::content_name).

use std::fmt;
use std::str::FromStr;

/// Digits of the hash.
pub const DIGITS: usize = 16;

/// A name in its two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunName {
    /// The recipe, and what else the folder is called by; never empty.
    pub words: String,
    /// The hexadecimal digits at the end.
    pub hash: String,
}

/// That a text is no name with a hash, as of a folder that somebody named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoHash;

impl FromStr for RunName {
    type Err = NoHash;

    fn from_str(text: &str) -> Result<Self, NoHash> {
        let (words, hash) = text.rsplit_once('-').ok_or(NoHash)?;
        let is_hash = hash.len() == DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_name = is_hash && !words.is_empty();
        is_name.then(|| Self { words: words.to_owned(), hash: hash.to_owned() }).ok_or(NoHash)
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.words, self.hash)
    }
}
