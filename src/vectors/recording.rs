//! What files of recorded results have in common, `EXMYCONV` and `EXMYTILE`: eight letters, little-endian
//! words of which the first is the version, and a length that follows from the header.

use core::fmt;
use std::io::{self, Read};

/// Why bytes do not begin as a recording does, or are more or fewer than its header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file ends within its header.
    NoHeader {
        /// Bytes there are.
        found: usize,
        /// Bytes of a header.
        expected: usize,
    },
    /// It does not begin with the letters of its kind.
    Magic {
        /// What it begins with.
        found: [u8; 8],
        /// The letters.
        expected: [u8; 8],
    },
    /// Of a version that this does not read.
    Version {
        /// The file's.
        found: u32,
        /// The newest one that is read, from 1 on.
        newest: u32,
    },
    /// Longer or shorter than its header says.
    Length {
        /// Bytes the header asks for.
        expected: u128,
        /// Bytes there are; of a longer file at least these.
        found: usize,
    },
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHeader { found, expected } => {
                write!(f, "{found} bytes are less than the {expected} of a header")
            }
            Self::Magic { found, expected } => {
                let [found, expected] = [found, expected].map(|letters| letters.escape_ascii());
                write!(f, "begins with \"{found}\" instead of \"{expected}\"")
            }
            Self::Version { found, newest } => {
                let to = if *newest > 1 { format!("s 1 to {newest}") } else { " 1".into() };
                write!(f, "version {found} of the format; this reads version{to}")
            }
            Self::Length { expected, found } if *expected > *found as u128 => {
                write!(f, "the header asks for {expected} bytes, but the file ends after {found}")
            }
            Self::Length { expected, .. } => {
                write!(f, "the header asks for {expected} bytes, but the file is longer")
            }
        }
    }
}

impl core::error::Error for RecordingError {}

/// The words of a header of `len` bytes, from the version on, which is 1 to `newest`.
pub(super) fn words<'a>(
    bytes: &'a [u8],
    magic: &[u8; 8],
    len: usize,
    newest: u32,
) -> Result<&'a [[u8; 4]], RecordingError> {
    let none = RecordingError::NoHeader { found: bytes.len(), expected: len };
    let Some((letters, rest)) = bytes.split_first_chunk() else { return Err(none) };
    if letters != magic {
        return Err(RecordingError::Magic { found: *letters, expected: *magic });
    }
    let words = rest.get(..len - magic.len()).ok_or(none)?.as_chunks().0;
    match u32::from_le_bytes(words[0]) {
        found if (1..=newest).contains(&found) => Ok(words),
        found => Err(RecordingError::Version { found, newest }),
    }
}

/// Whether a file of these bytes is as long as its header says.
pub(super) fn check_length(bytes: &[u8], expected: u128) -> Result<(), RecordingError> {
    let found = bytes.len();
    if expected == found as u128 { Ok(()) } else { Err(RecordingError::Length { expected, found }) }
}

/// How far a file goes, by what was read of it.
type End<'a, E> = &'a dyn Fn(&[u8]) -> Result<u128, E>;

/// Reads a whole file, and of a wrong one no more than shows it: the header, and then as far as each of
/// `ends` says from what was read.
pub(super) fn read<E: core::error::Error + Send + Sync + 'static>(
    mut reader: impl Read,
    header: usize,
    ends: &[End<'_, E>],
) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.by_ref().take(header as u64).read_to_end(&mut bytes)?;
    for end in ends {
        let end = end(&bytes).map_err(invalid)?;
        let more = end.saturating_sub(bytes.len() as u128);
        // `read_to_end` grows with what is there, not with what a header promises.
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        reader.by_ref().take(more).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// As what callers of [`read`] find such an error.
pub(super) fn invalid<E: core::error::Error + Send + Sync + 'static>(error: E) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
