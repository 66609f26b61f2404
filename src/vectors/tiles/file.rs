//! The bytes of a file of tiles, and what is wrong with them.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use std::io;

use crate::format::Format;
use crate::vectors::recording::{self, RecordingError};

const MAGIC: &[u8; 8] = b"EXMYTILE";
const HEADER: usize = 64;
/// Bytes of the header that have a meaning.
const FIELDS: usize = 48;
/// The kinds fill whole units of so many bytes.
const UNIT: u128 = 16;

/// Formats by their number in the header, and the low bits of a stored word that are no part of the
/// code: tf32 is kept as whole binary32 words.
const FORMATS: [(&str, Format, u32); 12] = [
    ("f16", Format::F16, 0),
    ("bf16", Format::BF16, 0),
    ("tf32", Format::TF32, 13),
    ("e4m3", Format::E4M3FN, 0),
    ("e5m2", Format::E5M2, 0),
    ("f32", Format::F32, 0),
    ("e4m3fnuz", Format::E4M3FNUZ, 0),
    ("e5m2fnuz", Format::E5M2FNUZ, 0),
    ("e3m2", Format::E3M2, 0),
    ("e2m3", Format::E2M3, 0),
    ("e2m1", Format::E2M1, 0),
    ("f64", Format::F64, 0),
];

/// Names of the four matrices, in the order of their formats in the header.
const MATRICES: [&str; 4] = ["A", "B", "C", "D"];

/// A file of tiles, checked.
#[derive(Clone, Debug)]
pub struct Tiles {
    header: Header,
    bytes: Vec<u8>,
}

/// Why bytes are no file of tiles, or none that a model can be asked about: what was found and what is
/// expected.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TilesError {
    /// It does not begin as such a file does, or is longer or shorter than it says.
    Recording(RecordingError),
    /// A matrix of a format this version has not.
    Format {
        /// Which matrix: A, B, C or D.
        matrix: &'static str,
        /// Its number in the header.
        found: u32,
    },
    /// No tiles, or tiles without elements.
    Empty {
        /// Rows, columns and depth of a tile.
        shape: [u32; 3],
        /// Tiles.
        count: u32,
    },
    /// A byte that is reserved or fills a gap is not zero.
    Reserved {
        /// Where it stands.
        offset: usize,
        /// What it is.
        found: u8,
    },
    /// C and D are of different formats, which no model here takes.
    Addend {
        /// The format of C.
        c: Format,
        /// The format of D.
        d: Format,
    },
}

impl fmt::Display for TilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recording(error) => {
                error.fmt(f)?;
                let other = matches!(error, RecordingError::Magic { .. });
                f.write_str(if other { ": not a file of tiles" } else { "" })
            }
            Self::Format { matrix, found } => {
                write!(f, "matrix {matrix} has format {found}; known are")?;
                for (i, (name, ..)) in FORMATS.iter().enumerate() {
                    write!(f, "{} {i} ({name})", if i > 0 { "," } else { "" })?;
                }
                Ok(())
            }
            Self::Empty { shape: [m, n, k], count } => {
                write!(f, "{count} tiles of {m} x {n} x {k}: nothing to verify")
            }
            Self::Reserved { offset, found } => {
                write!(f, "byte {offset} is 0x{found:02x}, but is reserved and must be 0")
            }
            Self::Addend { c, d } => {
                write!(f, "C is {c} and D is {d}: a model here has addend and result in one format")
            }
        }
    }
}

impl core::error::Error for TilesError {}

impl From<RecordingError> for TilesError {
    fn from(error: RecordingError) -> Self {
        Self::Recording(error)
    }
}

/// The fields of the header.
#[derive(Clone, Copy, Debug)]
struct Header {
    operation: u32,
    /// M, N and K.
    shape: [u32; 3],
    /// Indices into [`FORMATS`].
    formats: [usize; 4],
    count: u32,
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Self, TilesError> {
        let words = recording::words(bytes, MAGIC, HEADER)?;
        let word = |i: usize| u32::from_le_bytes(words[i]);
        let mut formats = [0; 4];
        for (i, format) in formats.iter_mut().enumerate() {
            let found = word(5 + i);
            *format = found as usize;
            if *format >= FORMATS.len() {
                return Err(TilesError::Format { matrix: MATRICES[i], found });
            }
        }
        let (shape, count) = ([word(2), word(3), word(4)], word(9));
        if count == 0 || shape.contains(&0) {
            return Err(TilesError::Empty { shape, count });
        }
        zeros(bytes, FIELDS..HEADER)?;
        Ok(Self { operation: word(1), shape, formats, count })
    }

    /// Elements of a tile of each matrix.
    fn elements(&self) -> [u128; 4] {
        let [m, n, k] = self.shape.map(u128::from);
        [m * k, n * k, m * n, m * n]
    }

    /// Where the kinds end, and after them each matrix.
    fn ends(&self) -> [u128; 5] {
        let mut end = HEADER as u128 + u128::from(self.count).next_multiple_of(UNIT);
        let mut ends = [end; 5];
        for (i, elements) in self.elements().into_iter().enumerate() {
            // Below 2^32 * 2^64 * 2^3, which 128 bits hold.
            end += u128::from(self.count) * elements * u128::from(self.bytes(i) as u64);
            ends[i + 1] = end;
        }
        ends
    }

    /// Bytes of an element of a matrix.
    fn bytes(&self, matrix: usize) -> usize {
        let (_, format, ignored) = FORMATS[self.formats[matrix]];
        (format.bits() + ignored).div_ceil(8) as usize
    }
}

/// Whether gaps are zero.
fn zeros(bytes: &[u8], range: core::ops::Range<usize>) -> Result<(), TilesError> {
    match bytes[range.clone()].iter().position(|byte| *byte != 0) {
        None => Ok(()),
        Some(at) => {
            let offset = range.start + at;
            Err(TilesError::Reserved { offset, found: bytes[offset] })
        }
    }
}

impl Tiles {
    /// The tiles of a whole file.
    ///
    /// # Errors
    /// If the bytes are not such a file; nothing is allocated on the word of a header.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, TilesError> {
        let header = Header::parse(&bytes)?;
        recording::check_length(&bytes, header.ends()[4])?;
        zeros(&bytes, HEADER + header.count as usize..header.ends()[0] as usize)?;
        Ok(Self { header, bytes })
    }

    /// Reads a whole file, and of a wrong one no more than shows it.
    ///
    /// # Errors
    /// If it cannot be read, or, as [`std::io::ErrorKind::InvalidData`] around a [`TilesError`], is
    /// not such a file.
    pub fn read(reader: impl io::Read) -> io::Result<Self> {
        let end = |bytes: &[u8]| Ok(Header::parse(bytes)?.ends()[4] + 1);
        let bytes = recording::read::<TilesError>(reader, HEADER, &[&end])?;
        Self::parse(bytes).map_err(recording::invalid)
    }

    /// The number that the recorder gave the operation.
    pub const fn operation(&self) -> u32 {
        self.header.operation
    }

    /// Rows of D, columns of D, and elements of a dot product.
    pub fn shape(&self) -> [usize; 3] {
        self.header.shape.map(|side| side as usize)
    }

    /// How many tiles there are.
    pub const fn count(&self) -> usize {
        self.header.count as usize
    }

    /// How many results there are.
    pub fn results(&self) -> usize {
        let [m, n, _] = self.shape();
        self.count() * m * n
    }

    /// The formats of A, B, C and D.
    pub fn formats(&self) -> [Format; 4] {
        self.header.formats.map(|format| FORMATS[format].1)
    }

    /// A tile's kind, a number of the recorder's.
    ///
    /// # Panics
    /// If there is no such tile.
    pub fn kind(&self, tile: usize) -> u8 {
        assert!(tile < self.count(), "tile {tile} of {}", self.count());
        self.bytes[HEADER + tile]
    }

    /// The codes of a tile: A by rows, B by columns, C and D by rows.
    ///
    /// # Panics
    /// If there is no such tile.
    pub fn tile(&self, tile: usize) -> [Vec<u64>; 4] {
        assert!(tile < self.count(), "tile {tile} of {}", self.count());
        [0, 1, 2, 3].map(|matrix| {
            let bytes = self.header.bytes(matrix);
            let len = self.header.elements()[matrix] as usize * bytes;
            let start = self.header.ends()[matrix] as usize + tile * len;
            let (_, _, ignored) = FORMATS[self.header.formats[matrix]];
            let word = |element: &[u8]| {
                element.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
            };
            let elements = self.bytes[start..start + len].chunks_exact(bytes);
            elements.map(|element| word(element) >> ignored).collect()
        })
    }
}

impl Tiles {
    /// Writes the results of a tile, D by rows.
    pub(super) fn set_results(&mut self, tile: usize, codes: &[u64]) {
        let bytes = self.header.bytes(3);
        let start = self.header.ends()[3] as usize + tile * codes.len() * bytes;
        let (_, _, ignored) = FORMATS[self.header.formats[3]];
        let places = self.bytes[start..start + codes.len() * bytes].chunks_exact_mut(bytes);
        for (place, code) in places.zip(codes) {
            place.copy_from_slice(&(code << ignored).to_le_bytes()[..bytes]);
        }
    }

    /// The bytes of the file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// How many bytes there are, for people: `A 192 x 16 x 16 of f16`.
impl fmt::Display for Tiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k] = self.shape();
        let [a, b, c, d] = self.formats().map(|format| format.to_string());
        write!(f, "{} tiles of {m} x {n} x {k}, A {a}, B {b}, C {c}, D {d}", self.count())
    }
}
