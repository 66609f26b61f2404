//! Files that are whole or absent.
//!
//! Everything that must not be lost or half there is written under another name, flushed to the disk, and
//! renamed. Then the folder itself is flushed, so that after a power cut either the old file or the new one
//! is there. Temporary names start with [`PARTIAL`] and end with a number that nobody else uses. So two
//! writers of one file, of whatever processes, never share one, and the last to finish wins. A symbolic
//! link stays one: what it points to is written, in its own folder. A file that is replaced leaves its
//! permissions to the new one. [`remove_partial`] and [`remove_abandoned`] clear what a kill left behind.

use super::given;
use crate::error::{Error, Result};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Prefix of names that are not yet what they will be.
pub const PARTIAL: &str = ".partial-";

/// Whether a path's last name is one of something that is still being written, or was when its writer was
/// killed.
#[doc(hidden)]
pub fn is_partial(path: &Path) -> bool {
    split(path).1.starts_with(PARTIAL)
}

/// A file that is being written under another name. Dropped before [`finish`](Self::finish) it
/// vanishes, and what was in its place stays.
///
/// ```
/// use exmy::safetensors::whole::WholeFile;
/// use std::io::Write;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a");
/// let mut file = WholeFile::create(&path)?;
/// file.file().write_all(b"half")?;
/// drop(file); // an error on the way, say
/// assert_eq!(std::fs::read_dir(&folder)?.count(), 0);
///
/// let mut file = WholeFile::create(&path)?;
/// file.file().write_all(b"whole")?;
/// assert!(!path.exists());
/// file.finish()?;
/// assert_eq!(std::fs::read(&path)?, b"whole");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct WholeFile {
    file: File,
    partial: PathBuf,
    path: PathBuf,
    finished: bool,
}

impl WholeFile {
    /// Begins a file that is to stand at `path`.
    ///
    /// ```
    /// use exmy::safetensors::whole::WholeFile;
    ///
    /// let folder = tempfile::tempdir()?;
    /// assert!(WholeFile::create(&folder.path().join("missing").join("a")).is_err()); // no folder is made
    /// let a = folder.path().join("a");
    /// let two = (WholeFile::create(&a)?, WholeFile::create(&a)?); // each writes a file of its own
    /// assert_eq!(std::fs::read_dir(&folder)?.count(), 2);
    /// # drop(two);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the folder does not take it, or something is there that is no plain file.
    pub fn create(path: &Path) -> io::Result<Self> {
        let path = &target(path)?;
        let (folder, prefix) = (split(path).0, prefix(path));
        let old = fs::metadata(path).ok();
        // Renaming over a device or a pipe would take it away, also from all others: `/dev/null`, say.
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "what is there is no plain file",
            ));
        }
        let permissions = old.map(|old| old.permissions());
        // Processes of different containers or hosts may have the same number, and a process may
        // write a file twice at a time.
        let mut number = std::process::id();
        loop {
            let partial = folder.join(format!("{prefix}{number}"));
            number = number.wrapping_add(1);
            match File::options().read(true).write(true).create_new(true).open(&partial) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    // Says to `remove_abandoned` of others that somebody is at work. Where the file
                    // system has no locks, nothing is ever taken for abandoned.
                    let _ = file.try_lock();
                    // It may have been taken for abandoned before it was locked.
                    if partial.exists() {
                        if let Some(permissions) = permissions {
                            // Where a file system has none, there is nothing to keep.
                            let _ = file.set_permissions(permissions);
                        }
                        return Ok(Self { file, partial, path: path.to_owned(), finished: false });
                    }
                }
            }
        }
    }

    /// The file, to be written.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Where it will stand.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Flushes it and puts it into its place.
    ///
    /// ```
    /// use exmy::safetensors::whole::WholeFile;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("a");
    /// let (first, second) = (WholeFile::create(&path)?, WholeFile::create(&path)?);
    /// second.finish()?;
    /// first.finish()?; // the last to finish wins
    /// assert_eq!(std::fs::read_dir(&folder)?.count(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a step fails; what was in its place is then still there.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        rename(&self.partial, &self.path)?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if !self.finished {
            // What could not be finished is of no use, and nobody is left to hear of it.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// Removes what killed processes left of writing `path`; files that somebody still writes stay.
///
/// ```
/// use exmy::safetensors::whole::{WholeFile, remove_abandoned};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a");
/// std::fs::write(folder.path().join(".partial-a-1"), "left by a kill")?;
/// let file = WholeFile::create(&path)?;
/// remove_abandoned(&path);
/// assert_eq!(std::fs::read_dir(&folder)?.count(), 1); // the one that is being written stays
/// file.finish()?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn remove_abandoned(path: &Path) {
    let Ok(path) = &target(path) else { return };
    let (folder, prefix) = (split(path).0, prefix(path));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        if number.is_some_and(|number| number.parse::<u32>().is_ok()) {
            // Who opens a pipe waits for somebody to write to it.
            if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
                continue;
            }
            // To be read, for it may have the permissions of a file that nobody is to write.
            let file = File::open(entry.path());
            if file.is_ok_and(|file| file.try_lock().is_ok()) {
                // It costs space and nothing else if it stays.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Where a path leads: behind symbolic links, whether there is a file or not.
fn target(path: &Path) -> io::Result<PathBuf> {
    /// As many as Linux follows.
    const LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
            return Ok(path);
        }
        let link = fs::read_link(&path)?;
        path = split(&path).0.join(link);
    }
    Err(io::Error::other("too many symbolic links, or a circle of them"))
}

/// What the temporary names of a file start with: its own name, cut where the whole would be longer
/// than file systems allow (255 bytes).
fn prefix(path: &Path) -> String {
    let name = split(path).1;
    let mut end = name.len().min(200);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{PARTIAL}{}-", &name[..end])
}

/// Writes `bytes` to `path` so that no reader and no crash ever sees a part of them.
///
/// ```
/// use exmy::safetensors::whole::write_whole;
///
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("a");
/// write_whole(&path, b"long")?;
/// write_whole(&path, b"")?; // replaces, as `std::fs::write`
/// assert_eq!(std::fs::read(&path).unwrap(), b"");
/// assert!(write_whole(&path.join("b"), b"").is_err()); // a file is no folder
/// # Ok::<(), exmy::error::Error>(())
/// ```
///
/// # Errors
/// If a step fails; the file that was there before is then still there.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let attempt = || {
        let mut file = WholeFile::create(path)?;
        file.file().write_all(bytes)?;
        file.finish()
    };
    attempt().map_err(|error| Error::io("write", path, error))
}

/// Gives a file or a folder another name in its folder, and flushes that folder's list of names. Where
/// folders cannot be opened (Windows), renames are durable by other means.
///
/// # Errors
/// If the folder cannot be opened or the name cannot be given; then nothing has changed. Or if the folder
/// cannot be flushed.
#[doc(hidden)]
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(unix)]
    let folder = File::open(split(to).0)?;
    fs::rename(from, to)?;
    #[cfg(unix)]
    folder.sync_all()?;
    Ok(())
}

/// Locks a file against other processes, which is over when what is returned is closed, however the
/// process ends; `None` if another process has it. Where a file system has no locks, everybody gets one.
///
/// # Errors
/// If it cannot be opened.
#[doc(hidden)]
pub fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = given::open(path)?;
    // Who looks whether it is held has it for some microseconds.
    for wait in [0, 1, 10, 50] {
        std::thread::sleep(std::time::Duration::from_millis(wait));
        if !matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// Whether another process [holds](hold) a file.
#[doc(hidden)]
pub fn is_held(path: &Path) -> bool {
    // As long as many look, none sees another.
    let held = |file: File| matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock));
    given::open(path).is_ok_and(held)
}

/// Removes what a kill left half-written directly inside `folder`.
///
/// ```
/// use exmy::safetensors::whole::remove_partial;
///
/// let folder = tempfile::tempdir().unwrap();
/// for name in [".partial-a-1", "partial"] {
///     std::fs::write(folder.path().join(name), "").unwrap();
/// }
/// remove_partial(folder.path())?;
/// assert!(folder.path().join("partial").exists() && !folder.path().join(".partial-a-1").exists());
/// # Ok::<(), exmy::error::Error>(())
/// ```
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

/// Creates a folder in `parent` that is put together there before it is renamed to `name`.
///
/// # Errors
/// If `parent` takes none.
#[doc(hidden)]
pub fn create_partial_folder(parent: &Path, name: &str) -> io::Result<PathBuf> {
    // Processes of several hosts may have the same number.
    let mut number = std::process::id();
    loop {
        let partial = parent.join(format!("{PARTIAL}{number}-{name}"));
        match fs::create_dir(&partial) {
            Ok(()) => return Ok(partial),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                number = number.wrapping_add(1);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Removes what others began of a folder that stands now: they were killed, or were slower.
#[doc(hidden)]
pub fn remove_partial_folders(parent: &Path, name: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let rest = found.to_str().and_then(|found| found.strip_prefix(PARTIAL)?.split_once('-'));
        if rest.is_some_and(|(number, rest)| rest == name && number.parse::<u32>().is_ok()) {
            // It costs space and nothing else if it stays.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The folder of a path and its last name.
#[doc(hidden)]
pub fn split(path: &Path) -> (&Path, String) {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    (folder, name)
}
