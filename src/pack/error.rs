//! Why codes or scales could not be put into a container, or taken out of one.

use core::fmt;

/// Why codes were not packed or unpacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PackError {
    /// A width outside 1..=16, or codes wider than the integers they shall be unpacked to.
    Width {
        /// Bits a code was to have.
        width: u32,
        /// Bits it can have at most.
        most: u32,
    },
    /// A code with bits beyond its width.
    CodeTooWide {
        /// Where it is, counted in codes.
        index: usize,
        /// The code.
        code: u16,
        /// Bits it may have.
        width: u32,
    },
    /// A byte buffer of another length than the codes take.
    Length {
        /// What the bytes were to be: the name of a layout.
        container: &'static str,
        /// Bytes that the codes take; `usize::MAX` if that is more than memory can hold.
        needed: usize,
        /// Bytes there are.
        found: usize,
        /// Number of codes.
        codes: usize,
        /// Bits of a code.
        width: u32,
    },
    /// A container that holds codes of one width only was asked for another.
    Container {
        /// Its name.
        container: &'static str,
        /// The width it holds.
        holds: u32,
        /// The width asked for.
        width: u32,
    },
    /// A container that holds whole blocks only was given another number of codes.
    Blocks {
        /// Its name.
        container: &'static str,
        /// Codes of a block.
        block: usize,
        /// Number of codes.
        codes: usize,
    },
    /// A matrix of scales of another length than its shape says.
    Scales {
        /// What was of the wrong length: the name of a layout.
        container: &'static str,
        /// Scales that the shape takes in it; `usize::MAX` if that is more than memory can hold.
        needed: usize,
        /// Scales there are.
        found: usize,
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
    },
}

impl fmt::Display for PackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Width { width, most: 16 } => {
                write!(f, "codes of {width} bits: widths from 1 to 16 can be packed")
            }
            Self::Width { width, most } => {
                write!(
                    f,
                    "codes of {width} bits in integers of {most}: widths from 1 to {most} fit"
                )
            }
            Self::CodeTooWide { index, code, width } => {
                write!(f, "code {code:#x} at index {index} does not fit {width} bits")
            }
            Self::Length { container, needed: usize::MAX, codes, width, .. } => {
                write!(f, "{codes} codes of {width} bits as {container} are larger than any memory")
            }
            Self::Length { container, needed, found, codes, width } => write!(
                f,
                "{codes} codes of {width} bits take {needed} bytes as {container}, found {found}"
            ),
            Self::Container { container, holds, width } => {
                write!(f, "{container} holds codes of {holds} bits, not of {width}")
            }
            Self::Blocks { container, block, codes } => {
                write!(f, "{container} holds whole blocks of {block} codes; {codes} are none")
            }
            Self::Scales { container, needed: usize::MAX, rows, cols, .. } => write!(
                f,
                "scales of {rows} rows and {cols} columns as {container} are larger than any memory"
            ),
            Self::Scales { container, needed, found, rows, cols } => write!(
                f,
                "scales of {rows} rows and {cols} columns take {needed} bytes as {container}, \
                 found {found}"
            ),
        }
    }
}

impl core::error::Error for PackError {}
