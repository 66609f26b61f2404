//! A sequence of tokens at the width it was stored in, and the token files of two projects.
//!
//! [nanoGPT](https://github.com/karpathy/nanoGPT) writes raw little-endian `u16`.
//! [llm.c](https://github.com/karpathy/llm.c) (`dev/data/data_common.py`) writes 256 little-endian
//! `i32` - magic, version, number of tokens, zeros - and then the tokens: `u16` after magic
//! 20240520 version 1 (GPT-2), `u32` after magic 20240801 version 7 (Llama 3). The first `u16` of
//! either magic exceeds 55000, which no GPT-2 token (below 50257) does, so the two are distinguished
//! by their first four bytes.

use std::ops::Range;
use std::path::Path;

use super::DataError;
use super::manifest::Width;

/// Bytes before the tokens of an llm.c file.
const HEADER_BYTES: usize = 1024;
/// Magic, version and bytes per token of the llm.c token files.
const HEADERS: [(u32, u32, usize); 2] = [(20_240_520, 1, 2), (20_240_801, 7, 4)];
/// Magics of llm.c files that hold something else.
const OTHER_FILES: [(u32, &str); 4] = [
    (20_240_326, "an llm.c model checkpoint"),
    (20_240_327, "an llm.c debug state"),
    (20_240_328, "an llm.c tokenizer"),
    (20_240_522, "an llm.c multiple-choice evaluation"),
];

/// Tokens, as wide as their file stores them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tokens {
    /// Bytes of text.
    Bytes(Vec<u8>),
    /// Two bytes each: nanoGPT's, llm.c's GPT-2 files, and small vocabularies of `exmy data`.
    U16(Vec<u16>),
    /// Four bytes each: llm.c's Llama 3 files, and large vocabularies of `exmy data`.
    U32(Vec<u32>),
}

impl Tokens {
    /// The number of tokens.
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(all) => all.len(),
            Self::U16(all) => all.len(),
            Self::U32(all) => all.len(),
        }
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that a token takes: 1, 2 or 4.
    pub fn width(&self) -> usize {
        match self {
            Self::Bytes(_) => 1,
            Self::U16(_) => 2,
            Self::U32(_) => 4,
        }
    }

    /// The largest token, if there is one.
    pub fn max(&self) -> Option<u32> {
        match self {
            Self::Bytes(all) => all.iter().max().map(|&t| t.into()),
            Self::U16(all) => all.iter().max().map(|&t| t.into()),
            Self::U32(all) => all.iter().max().copied(),
        }
    }

    /// The tokens in `range`.
    ///
    /// # Panics
    /// If `range` is not within `0..len`.
    pub fn get(&self, range: Range<usize>) -> Vec<u32> {
        let mut out = vec![0; range.len()];
        self.copy_to(range.start, &mut out);
        out
    }

    /// Writes the `out.len()` tokens from `start` on.
    ///
    /// # Panics
    /// If they are not all there.
    pub fn copy_to(&self, start: usize, out: &mut [u32]) {
        let range = start..start + out.len();
        match self {
            Self::Bytes(all) => {
                out.iter_mut().zip(&all[range]).for_each(|(o, &t)| *o = t.into());
            }
            Self::U16(all) => out.iter_mut().zip(&all[range]).for_each(|(o, &t)| *o = t.into()),
            Self::U32(all) => out.copy_from_slice(&all[range]),
        }
    }

    /// The first `at` tokens and the rest.
    pub(super) fn split_at(self, at: usize) -> (Self, Self) {
        match self {
            Self::Bytes(mut all) => {
                let rest = all.split_off(at);
                (Self::Bytes(all), Self::Bytes(rest))
            }
            Self::U16(mut all) => {
                let rest = all.split_off(at);
                (Self::U16(all), Self::U16(rest))
            }
            Self::U32(mut all) => {
                let rest = all.split_off(at);
                (Self::U32(all), Self::U32(rest))
            }
        }
    }

    /// Little-endian integers without a header.
    pub(super) fn from_raw(width: Width, bytes: &[u8]) -> Self {
        match width {
            Width::UInt16 => Self::U16(u16s(bytes)),
            Width::UInt32 => Self::U32(u32s(bytes)),
        }
    }

    /// The contents of a `.bin` file, and the name of the kind it is.
    pub(super) fn from_bin(path: &Path, bytes: &[u8]) -> Result<(Self, &'static str), DataError> {
        let word = |i: usize| -> Option<u32> {
            let found = bytes.get(4 * i..4 * i + 4)?;
            Some(u32::from_le_bytes(found.try_into().ok()?))
        };
        let bad = |problem: String, hint: &str| {
            Err(DataError::TokenFile { path: path.to_owned(), problem, hint: hint.to_owned() })
        };
        if bytes.is_empty() {
            return Err(DataError::Empty { path: path.to_owned() });
        }
        let magic = word(0);
        if let Some((_, what)) = OTHER_FILES.iter().find(|(m, _)| magic == Some(*m)) {
            return bad(format!("is {what}, not tokens"), "name the *_train.bin of the data set");
        }
        let Some((magic, version, width)) = HEADERS.into_iter().find(|h| magic == Some(h.0)) else {
            if !bytes.len().is_multiple_of(2) {
                return bad(
                    format!("holds {} bytes, an odd number, but its tokens take 2", bytes.len()),
                    "was it cut off, or is it text? rename text to .txt, tokens must be raw \
                     little-endian u16 (nanoGPT) or have an llm.c header",
                );
            }
            return Ok((Self::U16(u16s(bytes)), "nanoGPT tokens (u16)"));
        };
        if bytes.len() < HEADER_BYTES {
            return bad(
                format!("has an llm.c magic but only {} of 1024 header bytes", bytes.len()),
                "was it cut off? fetch or write it again",
            );
        }
        if word(1) != Some(version) {
            return bad(
                format!("has llm.c magic {magic} with version {}", word(1).unwrap_or(0)),
                &format!("version {version} is known for this magic"),
            );
        }
        let count = word(2).unwrap_or(0) as usize;
        let rest = &bytes[HEADER_BYTES..];
        if rest.len() as u128 != count as u128 * width as u128 {
            let problem = format!(
                "says it holds {count} tokens of {width} bytes, but {} bytes follow the header",
                rest.len()
            );
            let other = if width == 2 { 4 } else { 2 };
            let hint = if count > 0 && rest.len() as u128 == count as u128 * other as u128 {
                format!(
                    "the tokens seem to take {other} bytes: was the header of another kind written?"
                )
            } else if (rest.len() as u128) < count as u128 * width as u128 {
                "was it cut off? fetch or write it again".to_owned()
            } else if count == 0 {
                "was its writer interrupted before it filled in the count? write it again"
                    .to_owned()
            } else {
                "were files appended to each other? keep one header and count per file".to_owned()
            };
            return bad(problem, &hint);
        }
        if count == 0 {
            return Err(DataError::Empty { path: path.to_owned() });
        }
        if width == 2 {
            return Ok((Self::U16(u16s(rest)), "llm.c tokens (u16)"));
        }
        Ok((Self::U32(u32s(rest)), "llm.c tokens (u32)"))
    }
}

fn u16s(bytes: &[u8]) -> Vec<u16> {
    bytes.as_chunks::<2>().0.iter().map(|&b| u16::from_le_bytes(b)).collect()
}

fn u32s(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|&b| u32::from_le_bytes(b)).collect()
}
