//! `manifest.json` in its folder: read, also where an earlier version wrote something else in its place, and
//! written whole.

use super::manifest::{Manifest, VERSION};
use super::old;
use exmy::error::{Error, Result};
use exmy::safetensors::{given, whole};
use exmy::shown::printable_path;
use std::path::{Path, PathBuf};

/// Where it stands in a folder.
fn file(folder: &Path) -> PathBuf {
    folder.join("manifest.json")
}

impl Manifest {
    /// That of a folder, also of one that an earlier version made; `None` where none is.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let path = file(folder);
        let text = match given::read(&path, given::RESULTS) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return old::read(folder),
            text => text.map_err(|error| Error::io("read", &path, error))?,
        };
        let mut found: Self = serde_json::from_slice(&text).map_err(|error| {
            Error::new(format!("{} is no list of runs", printable_path(&path))).because(error).hint(
                "remove it: the command that made the folder, or `exmy train --resume`, writes it anew",
            )
        })?;
        if found.version > VERSION {
            let what = format!("{} is of version {}", printable_path(&path), found.version);
            return Err(
                Error::new(what).hint(format!("this program reads versions up to {VERSION}"))
            );
        }
        if found.version < VERSION {
            found.modernize();
        }
        Ok(Some(found))
    }

    /// Writes it, and takes away what earlier versions had in its place.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|error| Error::new("cannot write the list of runs").because(error))?;
        text.push('\n');
        whole::remove_abandoned(&file(folder));
        whole::write_whole(&file(folder), text.as_bytes())?;
        old::remove(folder);
        Ok(())
    }
}
