//! Tokens on their way into a token file: parts that are whole or absent, and put together at the end.
//!
//! A part has the tokens of some pieces and, behind them, eight bytes of XXH64 of these under a seed that
//! says of which text and by which tokenizer they are. So a part that was cut off, moved or made by another
//! tokenizer is none, and is made again.

use exmy::error::{Error, Result};
use exmy::safetensors::{given, whole};
use exmy_train::train::data::manifest::{TokenFile, Width};
use exmy_train::train::digest::{Digest, Sha256};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The folder of the parts, inside that of the token files.
const FOLDER: &str = ".parts";

/// Bytes of the longest part: many times the pieces of one batch.
const LONGEST: u64 = 1 << 30;

const DIGEST: usize = 8;

/// Where the text of a part begins and ends, among the bytes of all texts.
pub type Place = std::ops::Range<u64>;

/// Where parts are.
#[derive(Debug)]
pub struct Parts {
    folder: PathBuf,
    width: Width,
    seed: u64,
}

impl Parts {
    /// Those below a folder, of tokens of a tokenizer.
    ///
    /// # Errors
    /// If there can be none.
    pub fn open(out: &Path, width: Width, tokenizer: &[u8]) -> Result<Self> {
        let folder = out.join(FOLDER);
        fs::create_dir_all(&folder).map_err(|error| Error::io("create", &folder, error))?;
        whole::remove_partial(&folder)?;
        Ok(Self { folder, width, seed: Digest::of(tokenizer, 0) })
    }

    /// Removes what a folder has of them.
    ///
    /// # Errors
    /// If that is impossible.
    pub fn remove(out: &Path) -> Result<()> {
        let folder = out.join(FOLDER);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("remove", &folder, error))
            }
            _ => Ok(()),
        }
    }

    fn path(&self, place: &Place) -> PathBuf {
        self.folder.join(format!("{:012}", place.start))
    }

    fn digest(&self, place: &Place, bytes: &[u8]) -> [u8; DIGEST] {
        let seed = Digest::of(&[place.start, place.end].map(u64::to_le_bytes).concat(), self.seed);
        Digest::of(bytes, seed).to_le_bytes()
    }

    /// The bytes of the tokens of a part; `None` if it is not there, or not whole.
    fn read(&self, place: &Place) -> Option<Vec<u8>> {
        let mut bytes = given::read(&self.path(place), LONGEST).ok()?;
        let digest = bytes.split_off(bytes.len().checked_sub(DIGEST)?);
        (digest == self.digest(place, &bytes)).then_some(bytes)
    }

    /// Whether a part is there.
    pub fn has(&self, place: &Place) -> bool {
        self.read(place).is_some()
    }

    /// Writes a part.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, place: &Place, tokens: impl IntoIterator<Item = u32>) -> Result<()> {
        let mut bytes = Vec::new();
        for token in tokens {
            // The low bytes come first, and the others of this width's tokens are 0.
            bytes.extend_from_slice(&token.to_le_bytes()[..self.width.bytes()]);
        }
        bytes.extend(self.digest(place, &bytes));
        whole::write_whole(&self.path(place), &bytes)
    }

    /// Puts parts together to a token file.
    ///
    /// # Errors
    /// If one is missing, or the file cannot be written.
    pub fn join(&self, path: &Path, places: &[Place], text_bytes: u64) -> Result<TokenFile> {
        let failed = |error| Error::io("write", path, error);
        whole::remove_abandoned(path);
        let mut file = whole::WholeFile::create(path).map_err(failed)?;
        let (mut hash, mut written) = (Sha256::default(), 0);
        for place in places {
            let bytes = self.read(place).ok_or_else(|| {
                Error::io("read", &self.path(place), io::ErrorKind::InvalidData.into())
                    .hint("repeat the call; it makes what is missing")
            })?;
            file.file().write_all(&bytes).map_err(failed)?;
            hash.feed(&bytes);
            written += bytes.len() as u64;
        }
        file.finish().map_err(failed)?;
        let tokens = written / self.width.bytes() as u64;
        Ok(TokenFile { file: whole::split(path).1, tokens, text_bytes, sha256: hash.finish() })
    }
}
