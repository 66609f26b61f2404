//! Who trains a run: the process that holds the lock on its `config.toml`.

use super::Folder;
use exmy::error::{Error, Result};
use exmy::safetensors::whole;
use std::fs;

/// Whether a process works on the run in `folder`; where a file system has no locks, no.
pub fn is_at_work(folder: &Folder) -> bool {
    whole::is_held(&folder.config_file())
}

/// Keeps other processes out of a run's folder as long as it lives; the operating system ends it with the
/// process, however that ends.
#[derive(Debug)]
pub struct RunLock(#[expect(dead_code, reason = "held, not read")] fs::File);

/// Locks a run; `None` if another process has it. On file systems without locks everybody gets it.
///
/// # Errors
/// If its configuration cannot be opened.
pub fn lock(folder: &Folder) -> Result<Option<RunLock>> {
    let path = folder.config_file();
    let held = whole::lock(&path).map_err(|error| Error::io("open", &path, error))?;
    Ok(held.map(RunLock))
}
