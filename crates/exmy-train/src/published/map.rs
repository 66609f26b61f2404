//! A file as a slice of bytes, read by the system where and when it is looked at.
#![allow(unsafe_code)]

use exmy::error::{Error, Result};
use exmy::safetensors::given;
use memmap2::Mmap;
use std::path::Path;

/// A file in the process's addresses. It takes addresses, and memory only as far as the system keeps what was
/// read.
#[derive(Debug)]
pub struct Map(Mmap);

impl Map {
    /// Maps a plain file.
    ///
    /// # Errors
    /// If it cannot be read, is none, or is empty.
    pub fn open(path: &Path) -> Result<Self> {
        let file = given::open(path).map_err(|error| Error::io("read", path, error))?;
        // SAFETY: the map is only ever read as bytes, each of which may have any value, and whatever is read
        // is checked before anything relies on it. A file that another process shortens meanwhile ends this
        // one (SIGBUS) without touching other memory; models are written under another name and renamed.
        let map = unsafe { Mmap::map(&file) };
        map.map(Self).map_err(|error| Error::io("map", path, error))
    }
}

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
