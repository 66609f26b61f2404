//! Files and folders to tokens, with every way that it can go wrong.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::manifest::{MANIFEST, Manifest, UNFINISHED};
use super::{DataError, Tokens};
use crate::train::memory;
use exmy::reserve::reserve;
use exmy::safetensors::{given, whole};

/// Far above any tokenizer in use (256 000 at most), far below what memory holds as rows.
const LARGEST_TOKEN: u32 = (1 << 24) - 1;

/// What a path holds, and its description.
pub(super) enum Tokenized {
    /// One sequence, still to be split.
    One { tokens: Tokens, what: String, known: Option<Known> },
    /// Two files that say themselves which split they are.
    Two { train: Tokens, validation: Tokens, what: String, known: Option<Known> },
}

/// What a manifest says of token files.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// Every token is below this.
    vocabulary: usize,
    /// Bytes of text a token, of the file read last.
    pub(super) bytes_per_token: f64,
}

/// Reads a file or a folder.
pub(super) fn read(path: &Path) -> Result<Tokenized, DataError> {
    if path.to_str().is_none() {
        return Err(DataError::NotUtf8 { shown: path.to_string_lossy().into_owned() });
    }
    let kind = fs::metadata(path).map_err(|error| explain(path, error))?;
    if kind.is_dir() {
        return read_folder(path);
    }
    if !kind.is_file() {
        return Err(DataError::NotAFile { path: path.to_owned() });
    }
    if !is_token_file(path) {
        let bytes = read_file(path)?;
        if bytes.is_empty() {
            return Err(DataError::Empty { path: path.to_owned() });
        }
        let (tokens, what) = (Tokens::Bytes(bytes), "bytes as tokens".to_owned());
        return Ok(Tokenized::One { tokens, what, known: None });
    }
    if let Some(validation) = sibling(path).filter(|path| path.is_file()) {
        return read_pair(path, &validation);
    }
    let (tokens, what, known) = read_tokens(path)?;
    Ok(Tokenized::One { tokens, what: what.to_owned(), known })
}

/// A token file, checked against the manifest beside it if one speaks of it.
fn read_tokens(path: &Path) -> Result<(Tokens, &'static str, Option<Known>), DataError> {
    let (folder, name) = whole::split(path);
    let bytes = read_file(path)?;
    let manifest = Manifest::of(folder)?;
    let Some((manifest, part)) = manifest.as_ref().and_then(|m| Some((m, m.part(&name)?))) else {
        let (tokens, what) = Tokens::from_bin(path, &bytes)?;
        return Ok((tokens, what, None));
    };
    manifest.check(part, path, &bytes)?;
    if bytes.is_empty() {
        return Err(DataError::Empty { path: path.to_owned() });
    }
    let (vocabulary, bytes_per_token) = (manifest.vocabulary, part.bytes_per_token());
    let tokens = Tokens::from_raw(manifest.dtype, &bytes);
    Ok((tokens, "tokens of exmy data", Some(Known { vocabulary, bytes_per_token })))
}

/// The size of the vocabulary that both splits need, rounded up to a multiple of 64: what is known of it,
/// else their largest token plus one.
pub(super) fn vocabulary(
    train: &Tokens,
    validation: &Tokens,
    path: &Path,
    known: Option<Known>,
) -> Result<usize, DataError> {
    let largest = train.max().max(validation.max()).unwrap_or(0);
    if let Some(Known { vocabulary, .. }) = known.filter(|k| largest as usize >= k.vocabulary) {
        let problem =
            format!("holds the token {largest}, but {MANIFEST} says all are below {vocabulary}");
        let hint = "remove the folder and repeat `exmy data`".to_owned();
        return Err(DataError::TokenFile { path: path.to_owned(), problem, hint });
    }
    if largest > LARGEST_TOKEN {
        let (path, limit) = (path.to_owned(), LARGEST_TOKEN);
        return Err(DataError::Vocabulary { path, largest, limit });
    }
    let needed = known.map_or(largest as usize + 1, |known| known.vocabulary);
    if needed > LARGEST_TOKEN as usize + 1 {
        let problem =
            format!("says the vocabulary has {needed} tokens, above the limit of {LARGEST_TOKEN}");
        let hint = "remove the folder and repeat `exmy data`".to_owned();
        return Err(DataError::TokenFile { path: path.join(MANIFEST), problem, hint });
    }
    Ok(needed.next_multiple_of(64))
}

fn is_token_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("bin"))
}

/// The validation file that belongs to a training file by its name.
fn sibling(path: &Path) -> Option<PathBuf> {
    let stem = path.file_name()?.to_str()?.strip_suffix("train.bin")?;
    (stem.is_empty() || stem.ends_with('_')).then(|| path.with_file_name(format!("{stem}val.bin")))
}

fn read_pair(train_path: &Path, validation_path: &Path) -> Result<Tokenized, DataError> {
    let (train, what, _) = read_tokens(train_path)?;
    let (validation, _, known) = read_tokens(validation_path)?;
    if train.width() != validation.width() {
        return Err(DataError::MixedPair {
            train: (train_path.to_owned(), train.width()),
            validation: (validation_path.to_owned(), validation.width()),
        });
    }
    Ok(Tokenized::Two { train, validation, what: what.to_owned(), known })
}

fn read_folder(path: &Path) -> Result<Tokenized, DataError> {
    let unfinished = path.join(UNFINISHED);
    if unfinished.is_file() && !path.join(MANIFEST).exists() {
        let problem = "says that the token files of this folder are not finished".to_owned();
        let hint = "repeat the call of `exmy data` that began it".to_owned();
        return Err(DataError::TokenFile { path: unfinished, problem, hint });
    }
    let pair = ["train.bin", "val.bin"].map(|name| path.join(name));
    match pair.each_ref().map(|file| file.is_file()) {
        [true, true] => return read_pair(&pair[0], &pair[1]),
        [false, false] => {}
        [there, _] => {
            let [train, validation] = pair;
            let (found, missing) = if there { (train, validation) } else { (validation, train) };
            return Err(DataError::HalfPair { found, missing });
        }
    }
    let files = files_below(path)?;
    let mut bytes = Vec::new();
    for file in &files {
        let mut more = read_file(file)?;
        let reserved = reserve(&mut bytes, more.len());
        reserved.map_err(|_| explain(file, io::ErrorKind::OutOfMemory.into()))?;
        bytes.append(&mut more);
    }
    if bytes.is_empty() {
        return Err(DataError::EmptyFolder { path: path.to_owned() });
    }
    let count = files.len();
    let what = format!("{count} file{}, bytes as tokens", if count == 1 { "" } else { "s" });
    Ok(Tokenized::One { tokens: Tokens::Bytes(bytes), what, known: None })
}

/// All regular files below a folder, in sorted path order; names that begin with a dot are skipped, linked
/// folders not followed.
///
/// # Errors
/// If a folder cannot be read.
pub fn files_below(path: &Path) -> Result<Vec<PathBuf>, DataError> {
    let mut files = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| explain(&folder, error))? {
            let entry = entry.map_err(|error| explain(&folder, error))?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let name = entry.path();
            let kind = entry.file_type().map_err(|error| explain(&name, error))?;
            if kind.is_dir() {
                folders.push(name);
            } else if kind.is_file() || kind.is_symlink() && name.is_file() {
                files.push(name);
            }
        }
    }
    // Paths compare by component, so the order is that of a sorted walk on every platform.
    files.sort();
    Ok(files)
}

fn read_file(path: &Path) -> Result<Vec<u8>, DataError> {
    // As much as there is memory for: a file may claim to be larger.
    let most = memory::available().unwrap_or(u64::MAX);
    given::read(path, most).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => DataError::TooLarge { path: path.to_owned(), memory: most },
        _ => explain(path, error),
    })
}

/// Tells what is not there from what is refused.
fn explain(path: &Path, error: io::Error) -> DataError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            let exists =
                path.ancestors().skip(1).find(|part| !part.as_os_str().is_empty() && part.exists());
            DataError::Missing { path: path.to_owned(), exists: exists.map(Path::to_owned) }
        }
        _ => DataError::Unreadable { path: path.to_owned(), source: error },
    }
}
