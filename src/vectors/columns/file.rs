//! The bytes of a file of columns, and what is wrong with them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use std::io;

use crate::vectors::recording::{self, RecordingError};

const MAGIC: &[u8; 8] = b"EXMYCONV";
const HEADER: usize = 32;
const DESCRIPTOR: usize = 32;
const NAME: usize = 28;

/// What the rows of a file are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Table {
    /// binary32 words to anything (id 1).
    F32,
    /// binary16 words to 8-bit formats (id 2).
    F16,
    /// 8-bit codes to wider formats (id 3).
    F8,
    /// Digests over all binary32 words (id 4).
    F32Digest,
}

impl Table {
    const fn from_id(id: u32) -> Option<Self> {
        match id {
            1 => Some(Self::F32),
            2 => Some(Self::F16),
            3 => Some(Self::F8),
            4 => Some(Self::F32Digest),
            _ => None,
        }
    }

    /// Bytes of an input; `None` of digests, which hold none.
    pub const fn input_bytes(self) -> Option<usize> {
        match self {
            Self::F32 => Some(4),
            Self::F16 => Some(2),
            Self::F8 => Some(1),
            Self::F32Digest => None,
        }
    }
}

/// One column: a name and as many elements as the file has rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    name: String,
    size: usize,
    start: usize,
}

impl Column {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of an element: 1, 2, 4 or 8.
    pub const fn element_bytes(&self) -> usize {
        self.size
    }
}

/// A file of columns, checked.
#[derive(Clone, Debug)]
pub struct Columns {
    table: Table,
    rows: usize,
    columns: Vec<Column>,
    bytes: Vec<u8>,
}

/// Why bytes are no file of columns: what was found and what is expected.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ColumnsError {
    /// It does not begin as such a file does, or is longer or shorter than it says.
    Recording(RecordingError),
    /// A table this version has not.
    Table(u32),
    /// No rows, or no columns (a table of values needs `x` and one more).
    Empty {
        /// Rows there are.
        rows: u32,
        /// Columns there are.
        columns: u32,
    },
    /// More rows of digests than there are blocks of inputs.
    Blocks(u32),
    /// A column's name is not printable ASCII, zero padded.
    Name {
        /// The column, from 0.
        column: usize,
    },
    /// Two columns of one name.
    Twice(String),
    /// A column's elements have an impossible size.
    ElementBytes {
        /// The column's name.
        column: String,
        /// The size its descriptor gives.
        found: u32,
        /// The size it must have, if that is known.
        expected: Option<usize>,
    },
    /// The first column of a table of values is not the input.
    NoInput {
        /// Its name.
        found: String,
    },
}

impl fmt::Display for ColumnsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recording(error) => {
                error.fmt(f)?;
                let other = matches!(error, RecordingError::Magic { .. });
                f.write_str(if other { ": not a file of columns" } else { "" })
            }
            Self::Table(found) => write!(
                f,
                "table {found}; known are 1 (f32 inputs), 2 (f16 inputs), 3 (8-bit inputs) and 4 \
                 (digests over f32)"
            ),
            Self::Empty { rows, columns } => write!(
                f,
                "{rows} rows of {columns} columns: nothing to verify (a table of values holds `x` \
                 and at least one column, a digest at least one)"
            ),
            Self::Blocks(found) => write!(
                f,
                "{found} rows of digests, but all binary32 words make 1024 blocks of 2^22"
            ),
            Self::Name { column } => {
                write!(f, "the name of column {column} is not zero-padded printable ASCII")
            }
            Self::Twice(name) => write!(f, "two columns are called {name}"),
            Self::ElementBytes { column, found, expected: Some(expected) } => {
                write!(f, "column {column} has elements of {found} bytes instead of {expected}")
            }
            Self::ElementBytes { column, found, expected: None } => {
                write!(f, "column {column} has elements of {found} bytes; possible are 1, 2, 4, 8")
            }
            Self::NoInput { found } => {
                write!(f, "the first column is {found}, but must be the input `x`")
            }
        }
    }
}

impl core::error::Error for ColumnsError {}

impl From<RecordingError> for ColumnsError {
    fn from(error: RecordingError) -> Self {
        Self::Recording(error)
    }
}

/// The fields of the first 32 bytes.
struct Header {
    table: Table,
    rows: u32,
    columns: u32,
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Self, ColumnsError> {
        let words = recording::words(bytes, MAGIC, HEADER, 1)?;
        let [table, rows, columns] = [1, 2, 3].map(|i| u32::from_le_bytes(words[i]));
        let Some(table) = Table::from_id(table) else { return Err(ColumnsError::Table(table)) };
        let least = 1 + u32::from(table.input_bytes().is_some());
        if rows == 0 || columns < least {
            return Err(ColumnsError::Empty { rows, columns });
        }
        if table == Table::F32Digest && rows > 1024 {
            return Err(ColumnsError::Blocks(rows));
        }
        Ok(Self { table, rows, columns })
    }

    /// Bytes of header and descriptors.
    fn head(&self) -> u128 {
        HEADER as u128 + DESCRIPTOR as u128 * u128::from(self.columns)
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// The columns that the descriptors name, and the length of the file they make.
fn descriptors(header: &Header, bytes: &[u8]) -> Result<(Vec<Column>, u128), ColumnsError> {
    let found = bytes.len();
    if header.head() > found as u128 {
        return Err(RecordingError::Length { expected: header.head(), found }.into());
    }
    let mut columns = Vec::<Column>::new();
    let mut end = header.head();
    for (i, descriptor) in
        bytes[HEADER..].chunks_exact(DESCRIPTOR).take(header.columns as usize).enumerate()
    {
        let (name, size) = descriptor.split_at(NAME);
        let len = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        let padded = name[len..].iter().all(|byte| *byte == 0);
        let name = core::str::from_utf8(&name[..len]).unwrap_or_default().to_string();
        if !padded || name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ColumnsError::Name { column: i });
        }
        let found = word(size);
        let expected = match (header.table.input_bytes(), i) {
            (Some(input), 0) => Some(input),
            (None, _) => Some(8),
            _ => None,
        };
        if !matches!(found, 1 | 2 | 4 | 8) || expected.is_some_and(|size| size != found as usize) {
            return Err(ColumnsError::ElementBytes { column: name, found, expected });
        }
        if header.table.input_bytes().is_some() && i == 0 && name != "x" {
            return Err(ColumnsError::NoInput { found: name });
        }
        if columns.iter().any(|column| column.name == name) {
            return Err(ColumnsError::Twice(name));
        }
        // A start beyond the address space belongs to a file that is refused below.
        columns.push(Column { name, size: found as usize, start: end as usize });
        end += u128::from(header.rows) * u128::from(found);
    }
    Ok((columns, end))
}

impl Columns {
    /// The columns of a whole file.
    ///
    /// # Errors
    /// If the bytes are not such a file; nothing is allocated on the word of a header.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, ColumnsError> {
        let header = Header::parse(&bytes)?;
        let (columns, expected) = descriptors(&header, &bytes)?;
        recording::check_length(&bytes, expected)?;
        Ok(Self { table: header.table, rows: header.rows as usize, columns, bytes })
    }

    /// Reads a whole file, and of a wrong one no more than shows it.
    ///
    /// # Errors
    /// If it cannot be read, or, as [`std::io::ErrorKind::InvalidData`] around a [`ColumnsError`],
    /// is not such a file.
    pub fn read(reader: impl io::Read) -> io::Result<Self> {
        let head = |bytes: &[u8]| Ok(Header::parse(bytes)?.head());
        let end = |bytes: &[u8]| Ok(descriptors(&Header::parse(bytes)?, bytes)?.1 + 1);
        let bytes = recording::read::<ColumnsError>(reader, HEADER, &[&head, &end])?;
        Self::parse(bytes).map_err(recording::invalid)
    }

    /// What the rows are.
    pub const fn table(&self) -> Table {
        self.table
    }

    /// The number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The columns of results, without the input.
    pub fn results(&self) -> &[Column] {
        &self.columns[usize::from(self.table.input_bytes().is_some())..]
    }

    /// The inputs, zero-extended; `None` of digests.
    pub fn inputs(&self) -> Option<impl ExactSizeIterator<Item = u64> + '_> {
        self.table.input_bytes().map(|_| self.elements(&self.columns[0]))
    }

    /// The elements of one of this file's columns, zero-extended.
    ///
    /// # Panics
    /// If the column is of another file.
    pub fn elements(&self, column: &Column) -> impl ExactSizeIterator<Item = u64> + '_ {
        assert!(self.columns.contains(column), "a column of another file");
        let bytes = &self.bytes[column.start..column.start + self.rows * column.size];
        bytes
            .chunks_exact(column.size)
            .map(|element| element.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
    }
}
