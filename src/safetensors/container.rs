//! Codes to the bytes in which a file holds them, and back, piece by piece: what is needed besides the
//! bytes themselves does not grow with the tensor.

use super::fault::quoted;
use super::record::Record;
use super::{Dtype, FileLayout};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::pack::{Layout, ggml};

/// Codes that are packed at a time. Every container begins anew behind a multiple of as many.
const BATCH: usize = 1 << 14;

/// Bytes that are gathered before they are passed on.
const BYTES: usize = 1 << 18;

/// How the codes of a tensor lie in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    /// Rows of so many codes, each in this layout.
    Rows(Layout, usize),
    /// Blocks of ggml, scale and codes together.
    Ggml,
}

impl Container {
    /// All codes as one row: the dense stream of bits over the tensor.
    pub(super) const STREAM: Self = Self::Rows(Layout::Stream, usize::MAX);

    /// Of the codes of a quantized tensor.
    pub(super) fn of(record: &Record, element: Format) -> Self {
        let row = record.shape.last().copied().unwrap_or(1).max(1);
        let width = element.bits() as usize;
        match (record.layout, width) {
            (FileLayout::Ggml, _) => Self::Ggml,
            // Rows of whole bytes are the stream over the tensor.
            (FileLayout::Rows(Layout::Stream), _) if (row % 8 * width).is_multiple_of(8) => {
                Self::STREAM
            }
            (FileLayout::Rows(layout), _) => Self::Rows(layout, row),
            // A code that is narrower than its type, such as one of the 7 bits of E4M3 without sign,
            // and FP6 for PyTorch.
            (FileLayout::Torch, 6) | (_, 7) => Self::Rows(Layout::Byte, usize::MAX),
            _ => Self::STREAM,
        }
    }

    /// Of codes in a tensor of type `dtype`.
    pub(super) fn of_dtype(dtype: Dtype, width: u32) -> Self {
        if dtype.bits() == width { Self::STREAM } else { Self::Rows(Layout::Byte, usize::MAX) }
    }

    /// Whether it is the dense stream.
    pub(super) fn is_stream(self) -> bool {
        self == Self::STREAM
    }

    /// Calls `each` with the codes in `bytes`, `count` in all, in pieces; the scales that stand among
    /// them are appended to `scales`.
    pub(super) fn unpack(
        self,
        (width, count): (u32, usize),
        bytes: &[u8],
        scales: &mut Vec<u8>,
        mut each: impl FnMut(&[u16]) -> Result<()>,
    ) -> Result<()> {
        let mut codes = vec![0; BATCH];
        match self {
            Self::Ggml => {
                let mut few = vec![0; BATCH / ggml::BLOCK];
                let length = ggml::len(BATCH).map_err(Error::from_cause)?;
                for (bytes, at) in bytes.chunks(length).zip((0..count).step_by(BATCH)) {
                    let codes = &mut codes[..BATCH.min(count - at)];
                    let few = &mut few[..codes.len() / ggml::BLOCK];
                    ggml::unpack_into(bytes, codes, few).map_err(Error::from_cause)?;
                    scales.extend_from_slice(few);
                    each(codes)?;
                }
            }
            Self::Rows(layout, row) => {
                let (row, mut left, mut held) = (row.min(count), bytes, 0);
                for _ in 0..count / row.max(1) {
                    for at in (0..row).step_by(BATCH) {
                        let now = BATCH.min(row - at);
                        if held + now > BATCH {
                            each(&codes[..held])?;
                            held = 0;
                        }
                        let length = layout.len(now, width).map_err(Error::from_cause)?;
                        let (bytes, rest) = left.split_at(length.min(left.len()));
                        let codes = &mut codes[held..held + now];
                        layout.unpack_into(bytes, width, codes).map_err(Error::from_cause)?;
                        (left, held) = (rest, held + now);
                    }
                }
                each(&codes[..held])?;
            }
        }
        Ok(())
    }
}

/// Puts codes that come piece by piece into a container, and passes on its bytes.
pub(super) struct Packer<'a, F> {
    name: &'a str,
    container: Container,
    width: u32,
    /// The scales of all blocks, for containers that hold both.
    scales: &'a [u8],
    out: F,
    held: Vec<u16>,
    /// Codes of the row that were packed.
    at: usize,
    bytes: Vec<u8>,
}

impl<'a, F: FnMut(&[u8]) -> Result<()>> Packer<'a, F> {
    /// For the codes, `width` bits each, of tensor `name`; `out` gets the bytes.
    pub(super) fn new(
        name: &'a str,
        container: Container,
        width: u32,
        scales: &'a [u8],
        out: F,
    ) -> Self {
        let (held, bytes) = (Vec::new(), Vec::new());
        Self { name, container, width, scales, out, held, at: 0, bytes }
    }

    /// The next codes.
    pub(super) fn add(&mut self, mut codes: &[u16]) -> Result<()> {
        let row = match self.container {
            Container::Rows(_, row) => row,
            Container::Ggml => usize::MAX,
        };
        while !codes.is_empty() {
            let wanted = (row - self.at).min(BATCH) - self.held.len();
            let (now, later) = codes.split_at(wanted.min(codes.len()));
            self.held.extend_from_slice(now);
            codes = later;
            if self.at + self.held.len() == row {
                self.pack()?;
                self.at = 0;
            } else if self.held.len() == BATCH {
                self.pack()?;
            }
        }
        Ok(())
    }

    /// Packs what is held: a whole batch, or the end of a row.
    fn pack(&mut self) -> Result<()> {
        let (start, codes) = (self.bytes.len(), &self.held[..]);
        let packed = match self.container {
            Container::Rows(layout, _) => layout.len(codes.len(), self.width).and_then(|length| {
                self.bytes.resize(start + length, 0);
                layout.pack_into(codes, self.width, &mut self.bytes[start..])
            }),
            Container::Ggml => ggml::len(codes.len()).and_then(|length| {
                self.bytes.resize(start + length, 0);
                let scales = self.scales.get(self.at / ggml::BLOCK..).unwrap_or_default();
                let scales = &scales[..scales.len().min(codes.len() / ggml::BLOCK)];
                ggml::pack_into(codes, scales, &mut self.bytes[start..])
            }),
        };
        packed.map_err(|error| Error::new(quoted(self.name)).because(error))?;
        self.at += self.held.len();
        self.held.clear();
        if self.bytes.len() >= BYTES { self.pass_on() } else { Ok(()) }
    }

    fn pass_on(&mut self) -> Result<()> {
        (self.out)(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }

    /// Packs and passes on the rest.
    pub(super) fn finish(mut self) -> Result<()> {
        if !self.held.is_empty() {
            self.pack()?;
        }
        self.pass_on()
    }
}

/// Code `i` of a dense stream of codes of at most 16 bits.
pub(super) fn code(stream: &[u8], width: u32, i: usize) -> u16 {
    // Bytes first, so that nothing overflows: eight codes take `width` of them.
    let (eights, bit) = (i / 8 * width as usize, i % 8 * width as usize);
    let first = eights + bit / 8;
    let bytes = stream[first..].iter().take(3).rev();
    let word = bytes.fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
    (word >> (bit % 8) & ((1 << width) - 1)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In pieces of any length the bytes are those of whole rows.
    #[test]
    fn pieces_are_packed_as_rows() {
        for (row, rows) in [(7, 500), (BATCH + 5, 2), (3 * BATCH, 1), (1, 40)] {
            for (layout, width) in [
                (Layout::Stream, 5),
                (Layout::Byte, 11),
                (Layout::Fp6Padded4, 6),
                (Layout::Fp6Padded32, 6),
                (Layout::Tma16, 6),
            ] {
                let count = row * rows;
                let codes: Vec<u16> = (0..count).map(|i| (i * 7 % 61) as u16 & 31).collect();
                let expected: Vec<u8> =
                    codes.chunks(row).flat_map(|row| layout.pack(row, width).unwrap()).collect();
                let mut found = Vec::new();
                let container = Container::Rows(layout, row);
                let mut packer = Packer::new("w", container, width, &[], |bytes: &[u8]| {
                    found.extend_from_slice(bytes);
                    Ok(())
                });
                for piece in codes.chunks(1000) {
                    packer.add(piece).unwrap();
                }
                packer.finish().unwrap();
                assert_eq!(found, expected, "{layout} {row}");
                let mut back = Vec::new();
                let each = |codes: &[u16]| {
                    back.extend_from_slice(codes);
                    Ok(())
                };
                container.unpack((width, count), &found, &mut Vec::new(), each).unwrap();
                assert_eq!(back, codes, "{layout} {row}");
            }
        }
    }

    #[test]
    fn single_codes() {
        for width in 1..=16 {
            let codes: Vec<u16> =
                (0..100_u32).map(|i| ((i * 40503) >> 3) as u16 >> (16 - width)).collect();
            let stream = crate::pack::pack(&codes, width).unwrap();
            for (i, expected) in codes.iter().enumerate() {
                assert_eq!(code(&stream, width, i), *expected, "{width} {i}");
            }
        }
    }
}
