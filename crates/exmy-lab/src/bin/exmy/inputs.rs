//! What `verify-cols` and `verify-tiles` are given: files, and folders of them.

use exmy::error::{Error, Result};
use exmy::safetensors::given;
use exmy::shown::printable_path;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Opens one of them.
pub(crate) fn open(path: &Path) -> Result<File> {
    given::open(path).map_err(|error| {
        let odd = error.kind() == ErrorKind::InvalidInput;
        let error = Error::io("open", path, error);
        if odd { error.hint("- reads what a pipe brings: | exmy ... -") } else { error }
    })
}

/// The file itself, or those of a folder that end in `.EXTENSION`, by name.
pub(crate) fn files(path: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |error| Error::io("list", path, error);
    let mut files = Vec::new();
    for entry in path.read_dir().map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.extension().is_some_and(|found| found == extension) && !file.is_dir() {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        let what = format!("no file in {} ends in .{extension}", printable_path(path));
        return Err(Error::new(what).hint("name the files themselves if they are called otherwise"));
    }
    Ok(files)
}
