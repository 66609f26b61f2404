//! Files of text, compressed by xz or not, read as streams.

use exmy::error::{Error, Result};
use exmy::safetensors::given;
use exmy::shown::printable_path;
use exmy_train::train::data::files_below;
use exmy_train::train::digest::Sha256;
use lzma_rust2::XzReader;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

/// How every file begins that xz wrote. No text in UTF-8 begins so.
const XZ: [u8; 6] = *b"\xFD7zXZ\0";

/// Memory that a file may ask for to be decompressed, KiB; `xz -9` takes 65 MiB.
const MEMORY: u32 = 256 << 10;

/// One file of text.
#[derive(Clone, Debug)]
pub struct Input {
    pub path: PathBuf,
    /// What the manifest calls it.
    pub name: String,
    /// As it is on the disk.
    pub bytes: u64,
}

/// The files that are meant: each itself, of a folder all below it in sorted order.
pub fn list(paths: &[PathBuf]) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            return Err(Error::new("- is no file: texts are read more than once").hint(
                "save what is to be read to a file first; files of xz are read as they are",
            ));
        }
        if path.is_dir() {
            let files = files_below(path).map_err(Error::from_cause)?;
            let mut found = files.into_iter().peekable();
            if found.peek().is_none() {
                let shown = printable_path(path);
                return Err(Error::new(format!("the folder {shown} holds no file"))
                    .hint("files whose names begin with a dot are not read"));
            }
            for file in found {
                let name = file.strip_prefix(path).unwrap_or(&file).to_owned();
                inputs.push(input(file, &name)?);
            }
        } else {
            let name = PathBuf::from(path.file_name().unwrap_or(path.as_os_str()));
            inputs.push(input(path.clone(), &name)?);
        }
    }
    Ok(inputs)
}

fn input(path: PathBuf, name: &Path) -> Result<Input> {
    let bytes = given::open(&path).and_then(|file| file.metadata());
    let bytes = bytes.map_err(|error| Error::io("read", &path, error))?.len();
    let name = name.to_str().ok_or_else(|| {
        Error::new(format!("{}: the name is not UTF-8", printable_path(&path)))
            .hint("names are written into the manifest; rename it or give it a link")
    })?;
    // One manifest on every system.
    let name = name.replace(std::path::MAIN_SEPARATOR, "/");
    Ok(Input { path, name, bytes })
}

/// A file that counts what is read of it, and hashes it if that is wanted.
pub struct Counted {
    file: File,
    read: u64,
    hash: Option<Sha256>,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(into)?;
        self.read += count as u64;
        if let Some(hash) = &mut self.hash {
            hash.feed(&into[..count]);
        }
        Ok(count)
    }
}

/// The text of one file, as bytes.
pub enum Reader {
    Plain(Counted),
    Xz(Box<XzReader<Counted>>),
}

impl Reader {
    pub fn open(path: &Path, hashed: bool) -> io::Result<Self> {
        let mut file = given::open(path)?;
        let mut begin = Vec::new();
        file.by_ref().take(XZ.len() as u64).read_to_end(&mut begin)?;
        file.rewind()?;
        let counted = Counted { file, read: 0, hash: hashed.then(Sha256::default) };
        Ok(match begin == XZ {
            true => Self::Xz(Box::new(XzReader::new_mem_limit(counted, true, MEMORY))),
            false => Self::Plain(counted),
        })
    }

    /// Bytes of the file that were read.
    pub fn taken(&self) -> u64 {
        match self {
            Self::Plain(counted) => counted.read,
            Self::Xz(reader) => reader.inner().read,
        }
    }

    /// The SHA-256 of the file as it is, empty if it was not wanted.
    pub fn finish(self) -> io::Result<String> {
        let mut counted = match self {
            Self::Plain(counted) => counted,
            Self::Xz(reader) => reader.into_inner(),
        };
        io::copy(&mut counted, &mut io::sink())?;
        Ok(counted.hash.map_or_else(String::new, Sha256::finish))
    }
}

impl Read for Reader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(counted) => counted.read(into),
            Self::Xz(reader) => reader.read(into),
        }
    }
}
