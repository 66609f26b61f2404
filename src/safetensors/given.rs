//! Files that others made: opened only if they are plain ones, and read only as far as their kind goes.
//!
//! Opening a pipe waits for somebody to write to it, and a device may have no end. A file of a few
//! blocks may claim to be larger than the memory. So the commands read what they are given through this
//! module. Its errors are those of the system's functions and two more: the path is no plain file
//! ([`InvalidInput`](ErrorKind::InvalidInput)), or it is longer than anything of its kind
//! ([`FileTooLarge`](ErrorKind::FileTooLarge)).

use crate::reserve;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Bytes of the largest configuration or plan: what people write, and rules that programs wrote.
pub const SETTINGS: u64 = 64 << 20;

/// Bytes of the largest summary, list of runs or page: a hundred thousand runs have less.
pub const RESULTS: u64 = 1 << 30;

/// Bytes of the longest line of a record.
pub const LINE: usize = 16 << 20;

/// Refuses what is no plain file, which a link may lead to.
///
/// # Errors
/// If it is a folder, pipe, socket or device.
fn plain(found: &Metadata) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    Err(if found.is_dir() {
        io::Error::new(ErrorKind::IsADirectory, "it is a folder")
    } else {
        let what = "it is no plain file but a pipe, socket or device";
        io::Error::new(ErrorKind::InvalidInput, what)
    })
}

/// Refuses a path that leads to something that is no plain file. There may be nothing yet.
///
/// # Errors
/// If it does, or what is there cannot be found out.
pub fn check(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        found => plain(&found?),
    }
}

/// Opens a plain file to read it.
///
/// ```
/// use exmy::safetensors::given;
///
/// let folder = tempfile::tempdir()?;
/// assert_eq!(given::open(folder.path()).unwrap_err().to_string(), "it is a folder");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If there is none or it cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    plain(&fs::metadata(path)?)?;
    let file = File::open(path)?;
    // Something else may stand there by now.
    plain(&file.metadata()?)?;
    Ok(file)
}

/// The bytes of a plain file that has `most` at most.
///
/// ```
/// use exmy::safetensors::given;
///
/// let path = tempfile::tempdir()?.keep().join("a");
/// std::fs::write(&path, "four")?;
/// assert_eq!(given::read(&path, 4)?, b"four");
/// let error = given::read(&path, 3).unwrap_err().to_string();
/// assert_eq!(error, "it has more than 3 bytes, and no file of its kind does");
/// # std::fs::remove_dir_all(path.parent().unwrap())?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If it has more, or cannot be read.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let too_large = || {
        let what = format!("it has more than {most} bytes, and no file of its kind does");
        io::Error::new(ErrorKind::FileTooLarge, what)
    };
    if file.metadata()?.len() > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    while bytes.len() as u64 <= most {
        if !more(&mut file, &mut bytes)? {
            return Ok(bytes);
        }
    }
    Err(too_large())
}

/// Appends what comes next in a file, [`LINE`] bytes at most; whether there may be more. What the file claims
/// may be a hole, so not more is asked for by it.
fn more(file: &mut File, bytes: &mut Vec<u8>) -> io::Result<bool> {
    // What is read at once into a vector with so much to spare asks for no memory, which could not be
    // refused.
    const SPARE: usize = 64;
    let claimed = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let next = claimed.saturating_sub(bytes.len()).clamp(SPARE, LINE);
    reserve::reserve(bytes, next + SPARE)?;
    Ok(file.by_ref().take(next as u64).read_to_end(bytes)? == next)
}

/// The same of a file of text.
///
/// # Errors
/// If it has more, is no UTF-8, or cannot be read.
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|error| {
        let what = format!("it is no text: {}", error.utf8_error());
        io::Error::new(ErrorKind::InvalidData, what)
    })
}

/// The bytes of a plain file of lines, of which there may be any number, but none without an end.
///
/// # Errors
/// If a line is longer than [`LINE`], or the file cannot be read.
pub fn lines(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let mut bytes = Vec::new();
    while more(&mut file, &mut bytes)? {
        // Of so many bytes some line ends among the last.
        let last = bytes.len().checked_sub(LINE);
        if last.is_some_and(|from| !bytes[from..].contains(&b'\n')) {
            let what = format!("it has a line of more than {LINE} bytes, and records have none");
            return Err(io::Error::new(ErrorKind::FileTooLarge, what));
        }
    }
    Ok(bytes)
}
