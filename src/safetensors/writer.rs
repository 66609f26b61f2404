//! Writing a safetensors file tensor by tensor.
//!
//! The header comes first and is known before any byte of a tensor, so every tensor has its place
//! and they may be written in any order and in pieces. The file appears under its name when all of
//! it is there, by one rename. An error, a panic or Ctrl-C leaves nothing. A kill leaves a file
//! whose name begins with `.partial-`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use super::fault::quoted;
use super::whole::{self, WholeFile};
use super::{Fault, Header, Outline};
use crate::error::{Error, Result};
use crate::shown::printable_path;

/// A safetensors file that is being written.
///
/// ```
/// use exmy::safetensors::{Dtype, Outline, Reader, Writer};
///
/// let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("a.safetensors");
/// let tensors = [Outline::new("scale", Dtype::F8E8M0, [2]), Outline::new("w", Dtype::BF16, [2])];
/// let mut writer = Writer::create(&path, &tensors, Default::default())?;
/// writer.write("scale", &[127, 128])?;
/// writer.write("w", &[0x80, 0x3F])?; // half of it
/// let error = writer.finish().unwrap_err().to_string();
/// assert!(error.contains("2 of the 4 bytes of tensor \"w\""), "{error}");
/// assert!(!path.exists());
/// # Ok::<(), exmy::error::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer {
    file: WholeFile,
    header: Header,
    data: u64,
    written: BTreeMap<String, u64>,
}

impl Writer {
    /// Begins a file of these tensors. Where it is written is the folder of `path`; a symbolic link
    /// there is followed and stays. A file that is replaced leaves its permissions.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, Outline, Writer};
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("a.safetensors");
    /// let twice = [Outline::new("w", Dtype::U8, [1]), Outline::new("w", Dtype::F32, [1])];
    /// let error = Writer::create(&path, &twice, Default::default()).unwrap_err().to_string();
    /// assert!(error.contains("two tensors would be called \"w\""), "{error}");
    /// assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    /// ```
    ///
    /// # Errors
    /// As [`Header::lay_out`]; if `path` is there and no plain file, or the folder does not take
    /// files.
    pub fn create(
        path: impl AsRef<Path>,
        tensors: &[Outline],
        metadata: BTreeMap<String, String>,
    ) -> Result<Self> {
        let path = path.as_ref();
        let header = Header::lay_out(tensors, metadata).map_err(|error| {
            Error::new(format!("cannot write {}", printable_path(path))).because(error)
        })?;
        let is_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        if fs::metadata(path).is_ok_and(|found| !found.is_file())
            || path.file_name().is_none()
            || is_folder
        {
            let (path, what) = (path.to_owned(), "is no plain file");
            return Err(Error::from(Fault::NotPlain { path, what }).hint(
                "the output is a new file, or one that is replaced when the new one is whole",
            ));
        }
        whole::remove_abandoned(path);
        let begin = || {
            let mut file = WholeFile::create(path)?;
            let bytes = header.to_bytes();
            file.file().write_all(&bytes)?;
            // The length is set at once, so that most file systems say now if it does not fit.
            let data = bytes.len() as u64;
            file.file().set_len(data + header.data_bytes())?;
            Ok((file, data))
        };
        let (file, data) = begin().map_err(|error: std::io::Error| {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let error = Error::io("write", path, error);
            if missing {
                let folder = printable_path(whole::split(path).0);
                return error
                    .hint(format!("there is no folder {folder}, which is not made either"));
            }
            error
        })?;
        Ok(Self { file, header, data, written: BTreeMap::new() })
    }

    /// The header that was written.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Writes the next bytes of tensor `name`.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, Outline, Writer};
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let tensors = [Outline::new("a", Dtype::U8, [3])];
    /// let mut writer = Writer::create(folder.path().join("a"), &tensors, Default::default())?;
    /// writer.write("a", &[1, 2])?;
    /// let error = writer.write("a", &[3, 4]).unwrap_err().to_string();
    /// assert!(error.contains("has 3 bytes, and 4 were to be written"), "{error}");
    /// writer.write("a", &[3])?; // nothing of the other was
    /// writer.finish()?;
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such tensor, it would have more bytes than announced, or writing fails.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.file.path().to_owned();
        let entry = self.header.get(name).map_err(|error| {
            Error::new(format!("cannot write to {}", printable_path(&path))).because(error)
        })?;
        let before = self.written.get(name).copied().unwrap_or(0);
        let after = before + bytes.len() as u64;
        if after > entry.bytes() {
            return Err(Error::new(format!(
                "tensor {} of {} has {} bytes, and {after} were to be written",
                quoted(name),
                printable_path(&path),
                entry.bytes()
            )));
        }
        let place = SeekFrom::Start(self.data + entry.range.start + before);
        let file = self.file.file();
        file.seek(place)
            .and_then(|_| file.write_all(bytes))
            .map_err(|error| Error::io("write", &path, error))?;
        self.written.insert(name.to_owned(), after);
        Ok(())
    }

    /// Flushes the file and puts it into its place.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, Outline, Writer};
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("a");
    /// // A tensor without elements is whole without a write.
    /// Writer::create(&path, &[Outline::new("a", Dtype::U8, [0])], Default::default())?.finish()?;
    /// // One with elements is not, and the file that was there stays.
    /// let before = std::fs::read(&path).unwrap();
    /// let writer = Writer::create(&path, &[Outline::new("a", Dtype::U8, [1])], Default::default())?;
    /// assert!(writer.finish().is_err());
    /// assert_eq!(std::fs::read(&path).unwrap(), before);
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a tensor has not all its bytes, or a step fails; what was at the path is then still
    /// there.
    pub fn finish(self) -> Result<()> {
        let path = self.file.path().to_owned();
        for entry in self.header.entries() {
            let written = self.written.get(&entry.name).copied().unwrap_or(0);
            if written != entry.bytes() {
                return Err(Error::new(format!(
                    "{} is not whole: {written} of the {} bytes of tensor {} were written",
                    printable_path(&path),
                    entry.bytes(),
                    quoted(&entry.name)
                )));
            }
        }
        self.file.finish().map_err(|error| Error::io("write", &path, error))
    }
}
