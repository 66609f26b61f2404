//! Reading a safetensors file tensor by tensor.
//!
//! Only the header is kept. A tensor's bytes are read when they are asked for, whole or in pieces,
//! so the memory needed does not grow with the file. Whatever a file claims is checked against the
//! bytes there are before anything is allocated by it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::fault::quoted;
use super::header::MAX_HEADER;
use super::{Entry, Fault, Header, Record, given};
use crate::error::{Error, Result};
use crate::reserve;
use crate::shown::printable_path;

/// What to do with a model of several files.
const EACH: &str = "of a model in several files each is done by itself: mkdir -p small; \
                    for f in model-*.safetensors; do \
                    exmy quantize \"$f\" \"small/$f\" --to nvfp4; done (or exmy inspect \"$f\")";

/// What to do with PyTorch's own files.
const PICKLED: &str = "it is a .pt or .bin file of PyTorch, which holds code: load it there and write \
                       it by safetensors.torch.save_file";

/// Bytes of a piece: a multiple of every element's bytes and of 3, so that pieces of 6-bit codes
/// begin with a whole one. It fits a second-level cache.
pub(super) const PIECE: usize = 3 << 18;

/// Memory for `count` elements, or an error that names the tensor.
pub(super) fn reserve<T>(name: &str, into: &mut Vec<T>, count: usize) -> Result<()> {
    /// Bytes that must be left for buffers, which do not grow with a tensor.
    const LEFT: usize = 12 << 20;
    // What is in it is of no use, and would stay next to the new.
    if into.capacity() < count {
        *into = Vec::new();
    }
    into.clear();
    let left = || reserve::reserve(&mut Vec::<u8>::new(), LEFT);
    reserve::reserve(into, count).and_then(|()| left()).map_err(|_| {
        *into = Vec::new();
        let bytes = count as u128 * size_of::<T>() as u128;
        Error::from(Fault::TooLarge { name: name.to_owned(), bytes })
            .hint(
                "there is not as much: take a larger machine, or let `exmy quantize --to` leave it out by \
                 --exclude",
            )
    })
}

/// Whether a file begins as an archive (PyTorch since 1.6) or a pickled object (before), and not with the
/// length of a header that was cut off.
fn is_pickled(first: [u8; 8]) -> bool {
    let magic = matches!(first, [b'P', b'K', 3, 4, ..] | [0x80, 2..=5, ..]);
    magic && u64::from_le_bytes(first) > MAX_HEADER
}

fn is_not_whole(path: &Path, why: Error) -> Error {
    Error::new(format!("{} is no whole safetensors file", printable_path(path))).because(why)
}

/// Makes sure that there is as much memory as somebody is about to take.
pub(super) fn probe(name: &str, bytes: usize) -> Result<()> {
    reserve::<u8>(name, &mut Vec::new(), bytes)
}

/// A safetensors file that is read on demand.
///
/// ```
/// use exmy::safetensors::{Dtype, Reader};
/// use std::io::Cursor;
///
/// let mut file = 59_u64.to_le_bytes().to_vec();
/// file.extend(br#"{"x":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}   "#);
/// file.extend([0, 0, 128, 63, 0, 0, 192, 127]);
/// let mut reader = Reader::new(Cursor::new(&file), "a file in memory")?;
/// assert_eq!(reader.header().get("x")?.shape, [1, 2]);
/// let x = reader.read_f32("x")?;
/// assert!(x[0] == 1.0 && x[1].is_nan());
///
/// let error = Reader::new(Cursor::new(&file[..70]), "half").unwrap_err().to_string();
/// assert!(error.contains("tensor \"x\"") && error.contains("cut off"), "{error}");
/// # Ok::<(), exmy::error::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader<R = File> {
    source: R,
    path: PathBuf,
    header: Header,
    data: u64,
    buffer: Vec<u8>,
    /// What the metadata says of quantized tensors, once somebody asked.
    pub(super) records: OnceLock<BTreeMap<String, Record>>,
}

impl Reader<File> {
    /// Opens a file and reads its header.
    ///
    /// ```
    /// use exmy::safetensors::Reader;
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let error = Reader::open(&folder).unwrap_err().to_string();
    /// assert!(error.contains("is a folder"), "{error}");
    /// let path = folder.path().join("text");
    /// std::fs::write(&path, "8 letters, and then others").unwrap();
    /// let error = Reader::open(&path).unwrap_err().to_string();
    /// assert!(error.contains("no whole safetensors file"), "{error}");
    /// ```
    ///
    /// # Errors
    /// If it cannot be read, is a pipe or another thing that is no plain file, or is no whole safetensors
    /// file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = given::open(path).map_err(|error| match error.kind() {
            ErrorKind::IsADirectory => Error::from(Fault::Folder { path: path.to_owned() })
                .hint(format!("name one .safetensors file in it; {EACH}")),
            ErrorKind::InvalidInput => {
                let what = "is no plain file but a pipe, socket or device";
                Error::from(Fault::NotPlain { path: path.to_owned(), what }).hint(
                    "tensors are read from their places, some of them twice: write it to a file first",
                )
            }
            _ => Error::io("read", path, error),
        })?;
        if path.as_os_str().as_encoded_bytes().ends_with(b".safetensors.index.json") {
            return Err(Error::from(Fault::Index { path: path.to_owned() }).hint(EACH));
        }
        Self::new(file, path)
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Reads the header of a file; `path` names it in errors.
    ///
    /// ```
    /// use exmy::safetensors::Reader;
    /// use std::io::Cursor;
    ///
    /// let reader = Reader::new(Cursor::new(b"\x02\0\0\0\0\0\0\0{}"), "no tensors")?;
    /// assert!(reader.header().entries().is_empty());
    /// // A length that the file does not have is an error, and nothing is allocated by it.
    /// let error = Reader::new(Cursor::new([255; 16]), "noise").unwrap_err().to_string();
    /// assert!(error.contains("announce a header of 18446744073709551615 bytes, and 8 follow"), "{error}");
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// If it cannot be read or is no whole safetensors file.
    pub fn new(mut source: R, path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let io = |error| Error::io("read", &path, error);
        let length = source.seek(SeekFrom::End(0)).map_err(io)?;
        source.seek(SeekFrom::Start(0)).map_err(io)?;
        let not_one = |why: String| is_not_whole(&path, Fault::damaged(why));
        if length < 8 {
            return Err(not_one(format!(
                "it has {length} bytes, and the shortest header takes 10"
            )));
        }
        let mut first = [0; 8];
        source.read_exact(&mut first).map_err(io)?;
        let header_bytes = u64::from_le_bytes(first);
        if header_bytes > length - 8 {
            return Err(not_one(format!(
                "its first 8 bytes announce a header of {header_bytes} bytes, and {} follow",
                length - 8
            ))
            .hint(match is_pickled(first) {
                true => PICKLED,
                false => "another kind of file, or one that was cut off",
            }));
        }
        if header_bytes > MAX_HEADER {
            return Err(not_one(format!(
                "its header has {header_bytes} bytes, and the format allows {MAX_HEADER}"
            )));
        }
        let mut text = Vec::new();
        source.by_ref().take(header_bytes).read_to_end(&mut text).map_err(io)?;
        if text.len() as u64 != header_bytes {
            return Err(not_one("it became shorter while it was read".into()));
        }
        let data = 8 + header_bytes;
        let header =
            Header::parse(&text, length - data).map_err(|error| is_not_whole(&path, error))?;
        Ok(Self { source, path, header, data, buffer: Vec::new(), records: OnceLock::new() })
    }

    /// The tensors and the metadata.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The path given at the beginning.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error about this file.
    pub(super) fn fault(&self, cause: impl Into<Error>) -> Error {
        Error::new(printable_path(&self.path).to_string()).because(cause.into())
    }

    /// Calls `work` with the bytes of tensor `name`, piece by piece. Each piece but the last has
    /// 786 432 bytes, so that elements of every width begin and end at its edges.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, Outline, Reader, Writer};
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("a");
    /// let tensors =
    ///     [Outline::new("w", Dtype::U8, [1_000_000]), Outline::new("none", Dtype::U8, [0])];
    /// let mut writer = Writer::create(&path, &tensors, Default::default())?;
    /// writer.write("w", &[7; 1_000_000])?;
    /// writer.finish()?;
    /// let (mut reader, mut lengths) = (Reader::open(&path)?, Vec::new());
    /// reader.pieces("w", |piece| Ok(lengths.push(piece.len())))?;
    /// assert_eq!(lengths, [786_432, 213_568]);
    /// reader.pieces("none", |_| unreachable!("a tensor without elements has no piece"))?;
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such tensor, it cannot be read, or `work` fails.
    pub fn pieces(&mut self, name: &str, mut work: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let (mut piece, mut at) = (std::mem::take(&mut self.buffer), 0);
        while self.piece(name, at, &mut piece)? {
            at += piece.len() as u64;
            work(&piece)?;
        }
        self.buffer = piece;
        Ok(())
    }

    /// The piece of a tensor's bytes that begins at its byte `at`; `false` if there are no more.
    pub(super) fn piece(&mut self, name: &str, at: u64, piece: &mut Vec<u8>) -> Result<bool> {
        let range = self.entry(name)?.range.clone();
        let left = range.end - range.start - at;
        if left == 0 {
            return Ok(false);
        }
        piece.resize(left.min(PIECE as u64) as usize, 0);
        let mut read = |source: &mut R| {
            source.seek(SeekFrom::Start(self.data + range.start + at))?;
            source.read_exact(piece)
        };
        read(&mut self.source).map_err(|error| {
            Error::io(&format!("read tensor {} of", quoted(name)), &self.path, error)
        })?;
        Ok(true)
    }

    /// The bytes of tensor `name`, in a buffer that is used again.
    ///
    /// ```
    /// use exmy::safetensors::Reader;
    /// use std::io::Cursor;
    ///
    /// let mut file = 59_u64.to_le_bytes().to_vec();
    /// file.extend(br#"{"x":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}    "#);
    /// file.extend([0x80, 0x3F, 0xC0, 0x7F]);
    /// let mut reader = Reader::new(Cursor::new(&file), "a file in memory")?;
    /// let mut bytes = vec![1; 100]; // what was in it is gone
    /// reader.read_into("x", &mut bytes)?;
    /// assert_eq!(bytes, [0x80, 0x3F, 0xC0, 0x7F]);
    /// assert!(reader.read_into("y", &mut bytes).is_err());
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such tensor, it cannot be read, or there is no memory for it.
    pub fn read_into(&mut self, name: &str, bytes: &mut Vec<u8>) -> Result<()> {
        let length = self.entry(name)?.bytes();
        self.reserve(name, bytes, usize::try_from(length).unwrap_or(usize::MAX))?;
        self.pieces(name, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })
    }

    /// [`reserve`] with the file's name.
    pub(super) fn reserve<T>(&self, name: &str, into: &mut Vec<T>, count: usize) -> Result<()> {
        reserve(name, into, count).map_err(|error| self.fault(error))
    }

    /// The tensor `name`, an error that names the file if there is none.
    pub(super) fn entry(&self, name: &str) -> Result<&Entry> {
        self.header.get(name).map_err(|error| self.fault(error))
    }
}
