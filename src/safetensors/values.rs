//! Bytes of tensors as numbers, and back. Everything in a file is little-endian.

use std::io::{Read, Seek};

use super::fault::quoted;
use super::{Dtype, Fault, Reader};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::pack;
use crate::quantizer::Cast;
use crate::round::{Rounding, Rules};
use crate::slice::{Converter, decode_into};

/// The numbers of a piece of a tensor.
#[derive(Clone, Copy, Debug)]
pub(super) enum Floats<'a> {
    /// Of every type that fits `f32`.
    Single(&'a [f32]),
    /// Of `F64`.
    Double(&'a [f64]),
}

impl Floats<'_> {
    /// As elements of a type: [`encode`] or [`encode_doubles`].
    pub(super) fn encoded(self, dtype: Dtype, bytes: &mut Vec<u8>) -> u64 {
        match self {
            Self::Single(numbers) => encode(dtype, numbers, bytes),
            Self::Double(numbers) => encode_doubles(dtype, numbers, bytes),
        }
    }

    /// Appends them as `f32`, those of `F64` by `narrow`.
    pub(super) fn append(self, into: &mut Vec<f32>, narrow: impl Fn(&[f64], &mut [f32])) {
        match self {
            Self::Single(single) => into.extend_from_slice(single),
            Self::Double(double) => {
                let at = into.len();
                into.resize(at + double.len(), 0.0);
                narrow(double, &mut into[at..]);
            }
        }
    }
}

/// Memory for the numbers of a piece, used again from piece to piece.
#[derive(Debug, Default)]
pub(super) struct Piece {
    codes: Vec<u8>,
    halves: Vec<u16>,
    single: Vec<f32>,
    double: Vec<f64>,
}

/// Fills `into` with integers made of `N` bytes each.
fn words<const N: usize, T>(bytes: &[u8], into: &mut Vec<T>, from: impl Fn([u8; N]) -> T) {
    into.clear();
    into.extend(bytes.as_chunks::<N>().0.iter().map(|bytes| from(*bytes)));
}

impl Piece {
    /// The numbers in `bytes`: codes of `format`, `width` bits each (a code that is narrower has
    /// zeros above).
    pub(super) fn decode(&mut self, format: Format, width: u32, bytes: &[u8]) -> Floats<'_> {
        let Self { codes, halves, single, double } = self;
        match width {
            64 => {
                words(bytes, double, f64::from_le_bytes);
                return Floats::Double(double);
            }
            32 => words(bytes, single, f32::from_le_bytes),
            16 => {
                words(bytes, halves, u16::from_le_bytes);
                single.resize(halves.len(), 0.0);
                decode_into(format, halves, single);
            }
            _ => {
                codes.resize(bytes.len() * 8 / width as usize, 0);
                unpack(bytes, width, codes);
                single.resize(codes.len(), 0.0);
                decode_into(format, codes, single);
            }
        }
        Floats::Single(single)
    }
}

/// Codes of up to 8 bits out of a stream that is exactly as long as they need.
pub(super) fn unpack(bytes: &[u8], width: u32, codes: &mut [u8]) {
    let unpacked = pack::unpack_into(bytes, width, codes);
    debug_assert!(unpacked.is_ok(), "{unpacked:?}");
}

/// Numbers as elements of a floating-point type of 16 bits or more, rounded once, to nearest even.
/// Returns how many were finite and are infinite.
pub(super) fn encode(dtype: Dtype, numbers: &[f32], bytes: &mut Vec<u8>) -> u64 {
    bytes.clear();
    match dtype {
        Dtype::F16 | Dtype::BF16 => {
            let (format, exponent) = match dtype {
                Dtype::F16 => (Format::F16, 0x7C00),
                _ => (Format::BF16, 0x7F80),
            };
            let codes: Vec<u16> = Converter::from(Cast::new(format)).encode(numbers);
            bytes.extend(codes.iter().flat_map(|code| code.to_le_bytes()));
            let beyond = |(x, code): (&f32, &u16)| x.is_finite() & (code & exponent == exponent);
            return numbers.iter().zip(&codes).map(|pair| u64::from(beyond(pair))).sum();
        }
        Dtype::F64 => bytes.extend(numbers.iter().flat_map(|x| f64::from(*x).to_le_bytes())),
        _ => bytes.extend(numbers.iter().flat_map(|x| x.to_le_bytes())),
    }
    0
}

/// `f64` to `f32`, rounded to odd. A second rounding, to a format of at most 22 bits, then gives what
/// one rounding of the `f64` would. See Boldo, Melquiond: "Emulation of FMA and correctly rounded
/// sums", IEEE Transactions on Computers 57(4), 2008. Finite numbers beyond `f32` become its largest.
pub(super) fn narrow(x: &[f64], into: &mut [f32]) {
    let rules = Rules::DEFAULT.with_rounding(Rounding::ToOdd);
    let converter = Converter::new(Format::F32, rules);
    let mut codes = vec![0_u32; x.len().min(1 << 14)];
    for (x, into) in x.chunks(1 << 14).zip(into.chunks_mut(1 << 14)) {
        let codes = &mut codes[..x.len()];
        converter.encode_into(x, codes);
        for (into, code) in into.iter_mut().zip(codes) {
            *into = f32::from_bits(*code);
        }
    }
}

/// `f64` to `f32`, to nearest even.
pub(super) fn nearest(x: &[f64], into: &mut [f32]) {
    for (x, into) in x.iter().zip(into) {
        *into = *x as f32;
    }
}

/// As [`encode`], rounded once from `f64`.
pub(super) fn encode_doubles(dtype: Dtype, numbers: &[f64], bytes: &mut Vec<u8>) -> u64 {
    bytes.clear();
    if dtype == Dtype::F64 {
        bytes.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
        return 0;
    }
    let mut single = vec![0.0; numbers.len()];
    // To odd before another rounding, which keeps what is finite so; and before none to nearest.
    if dtype != Dtype::F32 {
        narrow(numbers, &mut single);
        return encode(dtype, &single, bytes);
    }
    nearest(numbers, &mut single);
    encode(dtype, &single, bytes);
    let beyond = |(x, y): (&f64, &f32)| x.is_finite() & y.is_infinite();
    numbers.iter().zip(&single).map(|pair| u64::from(beyond(pair))).sum()
}

impl<R: Read + Seek> Reader<R> {
    /// The elements of a floating-point tensor as `f32`. Elements of `F64` are rounded to nearest
    /// even; those of the narrow types are their own values, without the scale that a tensor next to
    /// them may hold. See [`read_values`](Self::read_values) for those.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, Outline, Reader, Writer};
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("a");
    /// let tensors = [Outline::new("x", Dtype::F64, [3]), Outline::new("fp4", Dtype::F4, [2])];
    /// let mut writer = Writer::create(&path, &tensors, Default::default())?;
    /// writer.write("x", &[0.1, 1e300, f64::NAN].map(f64::to_le_bytes).concat())?;
    /// writer.write("fp4", &[0xF7])?; // the first code in the low nibble
    /// writer.finish()?;
    ///
    /// let mut reader = Reader::open(&path)?;
    /// let x = reader.read_f32("x")?;
    /// assert!(x[0] == 0.1 && x[1] == f32::INFINITY && x[2].is_nan());
    /// assert_eq!(reader.read_f32("fp4")?, [6.0, -6.0]);
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such tensor, it does not hold floating-point numbers, it cannot be read, or
    /// there is no memory for it.
    pub fn read_f32(&mut self, name: &str) -> Result<Vec<f32>> {
        let entry = self.entry(name)?;
        let (dtype, count) = (entry.dtype, entry.count());
        let format = dtype
            .format()
            .ok_or_else(|| self.fault(Fault::NotFloat { name: name.to_owned(), dtype }))?;
        let mut numbers = Vec::new();
        self.reserve(name, &mut numbers, count)?;
        let mut piece = Piece::default();
        self.pieces(name, |bytes| {
            piece.decode(format, dtype.bits(), bytes).append(&mut numbers, nearest);
            Ok(())
        })?;
        Ok(numbers)
    }
}

/// An error about what a file's own description of itself says.
pub(super) fn damaged(name: &str, what: impl std::fmt::Display) -> Error {
    Fault::damaged(format!("the description of {} does not fit: {what}", quoted(name)))
}
