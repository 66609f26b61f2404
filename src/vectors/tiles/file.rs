//! The bytes of a file of tiles, and what is wrong with them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use std::io;

use crate::format::Format;
use crate::gemm::unit::{Formats, Input, UnitError};
use crate::reserve::reserve;
use crate::vectors::recording::{self, RecordingError};

const MAGIC: &[u8; 8] = b"EXMYTILE";
const HEADER: usize = 64;
/// Bytes of the header that have a meaning.
const FIELDS: usize = 48;
/// Text and kinds fill whole units of so many bytes.
const UNIT: usize = 16;

/// The longest text of formats, in bytes.
const LONGEST: usize = 256;

/// Formats by their number in the header of version 1.
const FORMATS: [(&str, Format); 12] = [
    ("f16", Format::F16),
    ("bf16", Format::BF16),
    ("tf32", Format::TF32),
    ("e4m3", Format::E4M3FN),
    ("e5m2", Format::E5M2),
    ("f32", Format::F32),
    ("e4m3fnuz", Format::E4M3FNUZ),
    ("e5m2fnuz", Format::E5M2FNUZ),
    ("e3m2", Format::E3M2),
    ("e2m3", Format::E2M3),
    ("e2m1", Format::E2M1),
    ("f64", Format::F64),
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
    /// The text of formats of version 2 is none.
    Formats {
        /// What it is, or how long.
        found: String,
        /// Why it is none.
        why: String,
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
    /// Random words that are not as many for each result.
    Words {
        /// How many a tile must have.
        expected: usize,
        /// How many it has.
        found: usize,
    },
    /// Another number of codes than the shape asks for.
    Lengths {
        /// Which ones.
        what: &'static str,
        /// How many there must be.
        expected: u128,
        /// How many there are.
        found: usize,
    },
    /// More bytes than a memory holds.
    Size(u128),
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
            Self::Formats { found, why } => write!(
                f,
                "the formats are {found:?}: {why}; A,B+RESULT is meant, such as e2m1/16:ue4m3+f32"
            ),
            Self::Lengths { what, expected, found } => {
                write!(f, "{found} codes of {what}, where {expected} are needed")
            }
            Self::Words { expected, found } => write!(
                f,
                "{found} random words of a tile, where {expected} are needed: as many for each result"
            ),
            Self::Size(bytes) => write!(f, "tiles of {bytes} bytes are more than a memory holds"),
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

/// Codes of a tile that stand together: a matrix, the block scales of one, or random words.
#[derive(Clone, Copy)]
struct Codes {
    bits: u32,
    /// Low bits of a stored word that are no part of the code: of tf32, whole binary32 words are kept.
    ignored: u32,
    /// How many a tile has.
    each: u128,
}

impl Codes {
    fn new(format: Format, each: u128) -> Self {
        let ignored = if format == Format::TF32 { 13 } else { 0 };
        Self { bits: format.bits(), ignored, each }
    }

    /// Bytes of a stored word.
    fn bytes(self) -> usize {
        ((self.bits + self.ignored).div_ceil(8) as usize).next_power_of_two()
    }
}

/// What stands together, in the order of the file; `A` to `D` are at [`PLACES`].
const NAMES: [&str; SECTIONS] =
    ["A", "the scales of A", "B", "the scales of B", "C", "the random words", "D"];
const SECTIONS: usize = 7;
const PLACES: [usize; 4] = [0, 2, 4, 6];
const RANDOM: usize = 5;

/// The fields of the header.
#[derive(Clone, Copy, Debug)]
struct Header {
    operation: u32,
    /// M, N and K.
    shape: [u32; 3],
    /// A and B.
    inputs: [Input; 2],
    /// C and D.
    results: [Format; 2],
    count: u32,
    /// Bytes of the text of formats; none in version 1.
    text: usize,
    /// Random words of a result; none in version 1.
    words: u32,
}

impl Header {
    /// The header of a file, or of what was read of it: at least 64 bytes, and the formats' text.
    fn parse(bytes: &[u8]) -> Result<Self, TilesError> {
        let words = recording::words(bytes, MAGIC, HEADER, 2)?;
        let word = |i: usize| u32::from_le_bytes(words[i]);
        let (inputs, results, text, words_each) = if word(0) == 1 {
            let mut formats = [Format::F32; 4];
            for (i, format) in formats.iter_mut().enumerate() {
                let found = word(5 + i);
                let known = FORMATS.get(found as usize);
                *format = known.ok_or(TilesError::Format { matrix: MATRICES[i], found })?.1;
            }
            let [a, b, c, d] = formats;
            ([Input::plain(a), Input::plain(b)], [c, d], 0, 0)
        } else {
            let text = Self::text(bytes)?;
            let Some(found) = bytes.get(HEADER..HEADER + text) else {
                let expected = (HEADER + text) as u128;
                return Err(RecordingError::Length { expected, found: bytes.len() }.into());
            };
            let found = String::from_utf8_lossy(found).into_owned();
            let Formats { a, b, result } = found.parse().map_err(|error: UnitError| {
                TilesError::Formats { found, why: error.to_string() }
            })?;
            zeros(bytes, 36..44)?;
            ([a, b], [result; 2], text, word(6))
        };
        let (shape, count) = ([word(2), word(3), word(4)], word(9));
        if count == 0 || shape.contains(&0) {
            return Err(TilesError::Empty { shape, count });
        }
        zeros(bytes, FIELDS..HEADER)?;
        let operation = word(1);
        Ok(Self { operation, shape, inputs, results, count, text, words: words_each })
    }

    /// Bytes of the text of formats, which the header of version 2 says.
    fn text(bytes: &[u8]) -> Result<usize, TilesError> {
        let words = recording::words(bytes, MAGIC, HEADER, 2)?;
        if u32::from_le_bytes(words[0]) == 1 {
            return Ok(0);
        }
        let text = u32::from_le_bytes(words[5]) as usize;
        if (1..=LONGEST).contains(&text) {
            return Ok(text);
        }
        let why = format!("a text has 1 to {LONGEST} bytes");
        Err(TilesError::Formats { found: format!("{text} bytes"), why })
    }

    /// What stands together.
    fn codes(&self) -> [Codes; SECTIONS] {
        let [m, n, k] = self.shape.map(u128::from);
        let [a, b] = self.inputs;
        let scales = |input: Input, rows: u128| {
            let (format, block) =
                input.scale.map_or((input.format, None), |scale| (scale.format, Some(scale.block)));
            let each = block.map_or(0, |block| k.div_ceil(block.max(1).into()) * rows);
            Codes::new(format, each)
        };
        let [c, d] = self.results.map(|format| Codes::new(format, m * n));
        [
            Codes::new(a.format, m * k),
            scales(a, m),
            Codes::new(b.format, n * k),
            scales(b, n),
            c,
            Codes { bits: 32, ignored: 0, each: m * n * u128::from(self.words) },
            d,
        ]
    }

    /// Where the text ends with what fills it up, and the kinds begin.
    fn kinds(&self) -> usize {
        HEADER + self.text.next_multiple_of(UNIT)
    }

    /// Where the kinds end, and after them all that stands together.
    fn ends(&self) -> [u128; SECTIONS + 1] {
        let kinds = u128::from(self.count).next_multiple_of(UNIT as u128);
        let mut end = self.kinds() as u128 + kinds;
        let mut ends = [end; SECTIONS + 1];
        for (end_of, codes) in ends[1..].iter_mut().zip(self.codes()) {
            // Of random words there may be 2^128, each of four bytes.
            let all = u128::from(self.count).saturating_mul(codes.each);
            end = end.saturating_add(all.saturating_mul(codes.bytes() as u128));
            *end_of = end;
        }
        ends
    }

    /// Bytes of the whole file.
    fn size(&self) -> u128 {
        self.ends()[SECTIONS]
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

/// What a tile holds, but for its results: codes, A by rows, B by columns and C by rows; the scales of a row
/// or column one after another, none where an operand has none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TileOperands {
    /// A number of the recorder's, such as the place of a word in [`KINDS`](super::KINDS).
    pub kind: u8,
    /// Elements of A.
    pub a: Vec<u64>,
    /// Block scales of A.
    pub a_scales: Vec<u64>,
    /// Elements of B.
    pub b: Vec<u64>,
    /// Block scales of B.
    pub b_scales: Vec<u64>,
    /// Addends.
    pub c: Vec<u64>,
    /// Random words, as many for each result, those of a result one after another; none for a unit that
    /// needs none.
    pub words: Vec<u32>,
}

impl Tiles {
    /// The tiles of a whole file.
    ///
    /// # Errors
    /// If the bytes are not such a file; nothing is allocated on the word of a header.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, TilesError> {
        let header = Header::parse(&bytes)?;
        recording::check_length(&bytes, header.size())?;
        zeros(&bytes, HEADER + header.text..header.kinds())?;
        zeros(&bytes, header.kinds() + header.count as usize..header.ends()[0] as usize)?;
        Ok(Self { header, bytes })
    }

    /// Reads a whole file, and of a wrong one no more than shows it.
    ///
    /// # Errors
    /// If it cannot be read, or, as [`std::io::ErrorKind::InvalidData`] around a [`TilesError`], is
    /// not such a file.
    pub fn read(reader: impl io::Read) -> io::Result<Self> {
        let text = |bytes: &[u8]| Ok((HEADER + Header::text(bytes)?) as u128);
        let end = |bytes: &[u8]| Ok(Header::parse(bytes)?.size().saturating_add(1));
        let bytes = recording::read::<TilesError>(reader, HEADER, &[&text, &end])?;
        Self::parse(bytes).map_err(recording::invalid)
    }

    /// A file of version 2 with these operands, its results zero until they are
    /// [filled in](Self::with_results). `shape` is M, N and K.
    ///
    /// ```
    /// use exmy::vectors::tiles::{TileOperands, Tiles};
    ///
    /// // 1.5 * 2 with scales of 2 and 1, and 1 added.
    /// let tile = TileOperands {
    ///     a: vec![0x3],
    ///     a_scales: vec![0x80],
    ///     b: vec![0x4],
    ///     b_scales: vec![0x7F],
    ///     c: vec![1.0_f32.to_bits().into()],
    ///     ..TileOperands::default()
    /// };
    /// let tiles = Tiles::with_operands("mxfp4".parse()?, [1, 1, 1], &[tile])?;
    /// let filled = tiles.with_results(&"blackwell".parse()?)?;
    /// assert_eq!(filled.tile(0)[3], [u64::from(7.0_f32.to_bits())]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there are no tiles, a tile has other numbers of codes, or a memory does not hold them.
    pub fn with_operands(
        formats: Formats,
        shape: [u32; 3],
        tiles: &[TileOperands],
    ) -> Result<Self, TilesError> {
        let count = u32::try_from(tiles.len()).unwrap_or(u32::MAX);
        let random = tiles.first().map_or(0, |tile| tile.words.len());
        let results = (shape[0] as usize).saturating_mul(shape[1] as usize);
        let words = u32::try_from(random.checked_div(results).unwrap_or(0)).unwrap_or(u32::MAX);
        let (mut bytes, header) = Self::beginning(formats, shape, count, words)?;
        let size = header.size();
        bytes.resize(header.kinds(), 0);
        bytes.extend(tiles.iter().map(|tile| tile.kind));
        bytes.resize(header.ends()[0] as usize, 0);
        for (i, codes) in header.codes().into_iter().enumerate() {
            for tile in tiles {
                if i == RANDOM {
                    let (expected, found) = (codes.each as usize, tile.words.len());
                    if found != expected {
                        return Err(TilesError::Words { expected, found });
                    }
                    tile.words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
                    continue;
                }
                let of_tile =
                    [&tile.a, &tile.a_scales, &tile.b, &tile.b_scales, &tile.c].get(i).copied();
                let Some(of_tile) = of_tile else { continue };
                if of_tile.len() as u128 != codes.each {
                    let (what, expected, found) = (NAMES[i], codes.each, of_tile.len());
                    return Err(TilesError::Lengths { what, expected, found });
                }
                let words = of_tile.iter().map(|code| (code << codes.ignored).to_le_bytes());
                words.for_each(|word| bytes.extend(&word[..codes.bytes()]));
            }
        }
        bytes.resize(size as usize, 0);
        Ok(Self { header, bytes })
    }

    /// Header and text of a file, with room for the rest.
    fn beginning(
        formats: Formats,
        [m, n, k]: [u32; 3],
        count: u32,
        words: u32,
    ) -> Result<(Vec<u8>, Header), TilesError> {
        let text = formats.to_string();
        let mut bytes = MAGIC.to_vec();
        for word in [2, 0, m, n, k, text.len() as u32, words, 0, 0, count] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(HEADER, 0);
        bytes.extend(text.bytes());
        let header = Header::parse(&bytes)?;
        let size = header.size();
        // The numbers of a file, of which a memory holds eight bytes each, and the bytes.
        let room = usize::try_from(size.saturating_mul(9)).ok();
        match room.map(|room| reserve(&mut bytes, room)) {
            Some(Ok(())) => Ok((bytes, header)),
            _ => Err(TilesError::Size(size)),
        }
    }

    /// Whether a file of so many tiles can be made.
    pub(super) fn size_of(
        formats: Formats,
        shape: [u32; 3],
        count: u32,
        words: u32,
    ) -> Result<(), TilesError> {
        Self::beginning(formats, shape, count, words).map(|_| ())
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
        let ([a, b], [c, d]) = (self.header.inputs, self.header.results);
        [a.format, b.format, c, d]
    }

    /// The formats of A and B with those of their block scales.
    pub const fn inputs(&self) -> [Input; 2] {
        self.header.inputs
    }

    /// Random words of a result; 0 where rounding is not stochastic.
    pub const fn words(&self) -> usize {
        self.header.words as usize
    }

    /// The random words of a tile, those of a result one after another.
    ///
    /// # Panics
    /// If there is no such tile.
    pub fn random_words(&self, tile: usize) -> Vec<u32> {
        self.codes(tile, RANDOM).into_iter().map(|word| word as u32).collect()
    }

    /// A tile's kind, a number of the recorder's.
    ///
    /// # Panics
    /// If there is no such tile.
    pub fn kind(&self, tile: usize) -> u8 {
        assert!(tile < self.count(), "tile {tile} of {}", self.count());
        self.bytes[self.header.kinds() + tile]
    }

    /// The codes of a tile: A by rows, B by columns, C and D by rows.
    ///
    /// # Panics
    /// If there is no such tile.
    pub fn tile(&self, tile: usize) -> [Vec<u64>; 4] {
        PLACES.map(|place| self.codes(tile, place))
    }

    /// The codes of a tile's block scales: of each row of A, and of each column of B.
    ///
    /// # Panics
    /// If there is no such tile.
    pub fn scales(&self, tile: usize) -> [Vec<u64>; 2] {
        [1, 3].map(|place| self.codes(tile, place))
    }

    /// The codes of a tile that stand at a place of [`NAMES`].
    fn codes(&self, tile: usize, place: usize) -> Vec<u64> {
        assert!(tile < self.count(), "tile {tile} of {}", self.count());
        let codes = self.header.codes()[place];
        let len = codes.each as usize * codes.bytes();
        let start = self.header.ends()[place] as usize + tile * len;
        let word = |element: &[u8]| {
            element.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
        };
        let elements = self.bytes[start..start + len].chunks_exact(codes.bytes());
        elements.map(|element| word(element) >> codes.ignored).collect()
    }
}

impl Tiles {
    /// Writes the results of a tile, D by rows.
    pub(super) fn set_results(&mut self, tile: usize, results: &[u64]) {
        let [.., codes] = self.header.codes();
        let bytes = codes.bytes();
        let start = self.header.ends()[SECTIONS - 1] as usize + tile * results.len() * bytes;
        let places = self.bytes[start..start + results.len() * bytes].chunks_exact_mut(bytes);
        for (place, code) in places.zip(results) {
            place.copy_from_slice(&(code << codes.ignored).to_le_bytes()[..bytes]);
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
        let ([a, b], [c, d]) = (self.header.inputs, self.header.results);
        write!(f, "{} tiles of {m} x {n} x {k}, A {a}, B {b}, C {c}, D {d}", self.count())?;
        match self.words() {
            0 => Ok(()),
            words => write!(f, ", {words} random words a result"),
        }
    }
}
