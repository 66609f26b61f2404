//! Files and folders to tokens, with every way that it can go wrong.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{DataError, Tokens};
use crate::train::memory;
use exmy::reserve::reserve;
use exmy::safetensors::given;

/// Far above any tokenizer in use (256 000 at most), far below what memory holds as rows.
const LARGEST_TOKEN: u32 = (1 << 24) - 1;

/// What a path holds, and its description.
pub(super) enum Tokenized {
    /// One sequence, still to be split.
    One { tokens: Tokens, what: String },
    /// Two files that say themselves which split they are.
    Two { train: Tokens, validation: Tokens, what: String },
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
        return Ok(Tokenized::One {
            tokens: Tokens::Bytes(bytes),
            what: "bytes as tokens".to_owned(),
        });
    }
    if let Some(validation) = sibling(path).filter(|path| path.is_file()) {
        return read_pair(path, &validation);
    }
    let (tokens, what) = Tokens::from_bin(path, &read_file(path)?)?;
    Ok(Tokenized::One { tokens, what: what.to_owned() })
}

/// The size of the vocabulary that both splits need: their largest token plus one, rounded up to
/// a multiple of 64.
pub(super) fn vocabulary(
    train: &Tokens,
    validation: &Tokens,
    path: &Path,
) -> Result<usize, DataError> {
    let largest = train.max().max(validation.max()).unwrap_or(0);
    if largest > LARGEST_TOKEN {
        let (path, limit) = (path.to_owned(), LARGEST_TOKEN);
        return Err(DataError::Vocabulary { path, largest, limit });
    }
    Ok((largest as usize + 1).next_multiple_of(64))
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
    let (train, what) = Tokens::from_bin(train_path, &read_file(train_path)?)?;
    let (validation, _) = Tokens::from_bin(validation_path, &read_file(validation_path)?)?;
    if train.width() != validation.width() {
        return Err(DataError::MixedPair {
            train: (train_path.to_owned(), train.width()),
            validation: (validation_path.to_owned(), validation.width()),
        });
    }
    Ok(Tokenized::Two { train, validation, what: what.to_owned() })
}

fn read_folder(path: &Path) -> Result<Tokenized, DataError> {
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
    Ok(Tokenized::One { tokens: Tokens::Bytes(bytes), what })
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
