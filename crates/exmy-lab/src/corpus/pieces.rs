//! Texts of any length in pieces that fit into memory: documents, and parts of long ones.
//!
//! A document ends at the end of its file and at `<|endoftext|>`, which is not part of it, nor is a line end
//! right behind that. One of more than [`LONGEST`] bytes is divided behind a line that is followed by another
//! one, both without blanks at their facing ends: GPT-2's regular expression divides it there in any case, so
//! the tokens stay those of the whole. Where there is no such place it is the last line end, else the last
//! character.

use super::input::{Input, Reader};
use crate::tokenizer::END_OF_TEXT;
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy_train::train::data::manifest::Text;
use std::io::Read;

/// Bytes of the longest piece.
pub const LONGEST: usize = 1 << 20;

/// Bytes that are read at once.
const READ: usize = 1 << 18;

/// How far behind the place where validation is to begin a line may end, for it to begin there.
const LINE: usize = 1 << 16;

/// A document, or a part of one.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    /// Where it begins among the bytes of all texts.
    pub start: u64,
    /// Whether the document ends here.
    pub ends: bool,
}

/// The pieces of some files, one after the other.
pub struct Pieces<'a> {
    inputs: std::slice::Iter<'a, Input>,
    /// The file that is being read.
    open: Option<(&'a Input, Reader)>,
    hashed: bool,
    /// What was read of the file, from `begin` on not given out.
    buffer: String,
    begin: usize,
    /// Bytes behind the buffer that are not yet a character.
    pending: Vec<u8>,
    /// Whether the file has no more.
    ended: bool,
    /// Whether the last piece did not end its document.
    within: bool,
    /// Of the first byte that was not given out, among those of all texts.
    position: u64,
    /// No piece goes beyond this place but to the end of its line.
    cut: u64,
    /// What was found in each file so far; the last one is being read.
    found: Vec<Text>,
    /// Bytes of the files read before.
    taken: u64,
}

impl<'a> Pieces<'a> {
    /// Of all texts, none of which goes beyond a place (see [`Self::cut`]). If wanted, files are hashed.
    pub fn new(inputs: &'a [Input], cut: u64, hashed: bool) -> Self {
        Self {
            inputs: inputs.iter(),
            open: None,
            hashed,
            buffer: String::new(),
            begin: 0,
            pending: Vec::new(),
            ended: false,
            within: false,
            position: 0,
            cut,
            found: Vec::new(),
            taken: 0,
        }
    }

    /// Bytes of the files that were read.
    pub fn taken(&self) -> u64 {
        self.taken + self.open.as_ref().map_or(0, |(_, reader)| reader.taken())
    }

    /// The name of the file that is being read.
    pub fn name(&self) -> &str {
        self.open.as_ref().map_or("", |(input, _)| &input.name)
    }

    /// Bytes of all texts that were given out, ends of documents included.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// What was found, when there are no more pieces.
    pub fn found(self) -> Vec<Text> {
        self.found
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// If a file cannot be read, cannot be decompressed or is no UTF-8.
    pub fn read(&mut self) -> Result<Option<Piece>> {
        loop {
            if self.open.is_none() && !self.open_next()? {
                return Ok(None);
            }
            self.fill()?;
            let rest = &self.buffer[self.begin..];
            if rest.is_empty() {
                self.close()?;
                if std::mem::take(&mut self.within) {
                    let (text, start) = (String::new(), self.position);
                    return Ok(Some(self.counted(Piece { text, start, ends: true })));
                }
                continue;
            }
            let (end, behind) = self.end(rest);
            let piece = Piece {
                text: rest[..end].to_owned(),
                start: self.position,
                ends: behind.is_some(),
            };
            let past = end + behind.unwrap_or(0);
            self.begin += past;
            self.position += past as u64;
            let was_within = std::mem::replace(&mut self.within, !piece.ends);
            if !piece.text.is_empty() || was_within {
                return Ok(Some(self.counted(piece)));
            }
        }
    }

    fn counted(&mut self, piece: Piece) -> Piece {
        if let Some(text) = self.found.last_mut() {
            text.text_bytes += piece.text.len() as u64;
            text.documents += u64::from(piece.ends);
        }
        piece
    }

    /// Where the next piece ends, and how many bytes behind it belong to no document if the document ends
    /// there.
    fn end(&self, rest: &str) -> (usize, Option<usize>) {
        let reach = floor(rest, LONGEST);
        let seen = floor(rest, reach + END_OF_TEXT.len());
        let (mut end, mut behind) = match rest[..seen].find(END_OF_TEXT) {
            Some(end) => {
                let line_end = rest[end + END_OF_TEXT.len()..].starts_with('\n');
                (end, Some(END_OF_TEXT.len() + usize::from(line_end)))
            }
            None if rest.len() <= LONGEST && self.ended => (rest.len(), Some(0)),
            None => (line_end(&rest[..reach], &rest[reach..]), None),
        };
        let cut = self.cut.checked_sub(self.position).and_then(|cut| usize::try_from(cut).ok());
        if let Some(cut) = cut.filter(|cut| (1..end).contains(cut)) {
            let line = &rest.as_bytes()[cut - 1..end.min(cut + LINE)];
            let line = line.iter().position(|&byte| byte == b'\n').map(|at| cut + at);
            let at = line.unwrap_or_else(|| ceil(rest, cut));
            if at < end {
                (end, behind) = (at, None);
            }
        }
        (end, behind)
    }

    fn open_next(&mut self) -> Result<bool> {
        let Some(input) = self.inputs.next() else { return Ok(false) };
        let reader = Reader::open(&input.path, self.hashed);
        let reader = reader.map_err(|error| Error::io("read", &input.path, error))?;
        self.open = Some((input, reader));
        (self.ended, self.begin) = (false, 0);
        self.buffer.clear();
        let (file, sha256) = (input.name.clone(), String::new());
        self.found.push(Text { file, sha256, text_bytes: 0, documents: 0 });
        Ok(true)
    }

    fn close(&mut self) -> Result<()> {
        let Some((input, reader)) = self.open.take() else { return Ok(()) };
        let hash = reader.finish().map_err(|error| Error::io("read", &input.path, error))?;
        if let Some(text) = self.found.last_mut() {
            text.sha256 = hash;
        }
        self.taken += input.bytes;
        Ok(())
    }

    /// Reads on until the longest piece and the end behind it are there.
    fn fill(&mut self) -> Result<()> {
        const ENOUGH: usize = LONGEST + LINE;
        if self.ended || self.buffer.len() - self.begin >= ENOUGH {
            return Ok(());
        }
        self.buffer.drain(..self.begin);
        self.begin = 0;
        let Some((input, reader)) = &mut self.open else { return Ok(()) };
        while self.buffer.len() < 2 * ENOUGH {
            let old = self.pending.len();
            self.pending.resize(old + READ, 0);
            let count = reader.read(&mut self.pending[old..]);
            let count = count.map_err(|error| {
                Error::io("read", &input.path, error)
                    .hint("a text, or one compressed by xz that is whole")
            })?;
            self.pending.truncate(old + count);
            self.ended = count == 0;
            let (good, bad) = match std::str::from_utf8(&self.pending) {
                Ok(text) => (text.len(), false),
                Err(error) => (error.valid_up_to(), error.error_len().is_some() || self.ended),
            };
            self.buffer.push_str(&String::from_utf8_lossy(&self.pending[..good]));
            self.pending.drain(..good);
            if bad {
                let name = printable_path(&input.path);
                return Err(Error::new(format!(
                    "{name} is no UTF-8: the byte {:#04x} follows {:?}",
                    self.pending[0],
                    last_words(&self.buffer)
                ))
                .hint("convert it first, as in `iconv -f latin1 -t utf8`"));
            }
            if self.ended {
                break;
            }
        }
        Ok(())
    }
}

/// The end of a text, to find it by.
fn last_words(text: &str) -> &str {
    const BYTES: usize = 40;
    &text[ceil(text, text.len().saturating_sub(BYTES))..]
}

/// The last place at or before `at` where a text may be divided.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// The first one at or behind `at`.
fn ceil(text: &str, at: usize) -> usize {
    (at..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len())
}

/// Where a text that goes on is best divided.
fn line_end(text: &str, behind: &str) -> usize {
    let ends = || text.rmatch_indices('\n').map(|(at, _)| at + 1);
    let is_word = |found: Option<char>| found.is_some_and(|found| !found.is_whitespace());
    let is_clean = |at: &usize| {
        let next = text[*at..].chars().chain(behind.chars()).next();
        is_word(text[..at - 1].chars().next_back()) && is_word(next)
    };
    ends().find(is_clean).or_else(|| ends().next()).unwrap_or(text.len())
}
