//! Files that are whole or absent.
//!
//! Everything a run must not lose is written beside its place, flushed to the disk, and renamed
//! into it; then the folder itself is flushed, so that after a power cut either the old file or the
//! new one is there. Temporary names start with [`PARTIAL`]; [`remove_partial`] clears what a kill
//! left behind.

use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Prefix of names that are not yet what they will be.
pub const PARTIAL: &str = ".partial-";

/// Writes `bytes` to `path` so that no reader and no crash ever sees a part of them.
///
/// # Errors
/// If a step fails; the file that was there before is then still there.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    write_whole_with(path, |file| file.write_all(bytes))
}

/// Like [`write_whole`], for contents that are streamed.
///
/// # Errors
/// If a step or `write` fails; the file that was there before is then still there.
pub fn write_whole_with(
    path: &Path,
    write: impl FnOnce(&mut File) -> std::io::Result<()>,
) -> Result<()> {
    let (folder, name) = split(path);
    let partial = folder.join(format!("{PARTIAL}{name}"));
    let attempt = || -> std::io::Result<()> {
        let mut file = File::create(&partial)?;
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&partial, path)?;
        sync_folder(folder)
    };
    attempt().map_err(|error| {
        // What could not be finished is of no use; the original error is what matters.
        let _ = fs::remove_file(&partial);
        Error::io("write", path, error)
    })
}

/// Flushes a folder's list of names. Where folders cannot be opened (Windows), renames are durable
/// by other means and there is nothing to do.
pub(crate) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// Removes what a kill left half-written directly inside `folder`.
///
/// # Errors
/// If the folder cannot be read or a leftover cannot be removed.
pub fn remove_partial(folder: &Path) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(|e| Error::io("read the folder", folder, e))?;
    for entry in entries.flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && entry.file_name().to_string_lossy().starts_with(PARTIAL) {
            let path = entry.path();
            fs::remove_file(&path).map_err(|e| Error::io("remove", &path, e))?;
        }
    }
    Ok(())
}

/// The folder of a path and its last name.
pub(crate) fn split(path: &Path) -> (&Path, String) {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    (folder, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_whole(&path, b"old").unwrap();
        let failing = |file: &mut File| {
            file.write_all(b"ne")?;
            Err(std::io::Error::other("disk full"))
        };
        let error = write_whole_with(&path, failing).unwrap_err();
        assert!(error.to_string().ends_with("disk full"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn leftovers_are_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(format!("{PARTIAL}x")), b"").unwrap();
        fs::write(folder.path().join("x"), b"").unwrap();
        remove_partial(folder.path()).unwrap();
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].file_name(), "x");
    }
}
