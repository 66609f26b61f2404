//! Codes to numbers, the bodies.
//!
//! Bytes go through a table where the machine looks up 64 at once ([`lookup`](super::lookup)), all
//! else by the integer bodies of [`reader`]; `f64` and the types of the crate `half` by way of
//! `f32`, a chunk of [`SPAN`] at a time, exactly. What no body covers - values that are no `f32` -
//! is read from a table of the definition's results if the codes are short, else by the definition.

pub(super) mod reader;

use alloc::boxed::Box;

use self::reader::CodeReader;
use super::chunks::{divided, spans};
use super::memory::Traffic;
use super::{LONG, SPAN, decode_plain, f16, lookup};
use crate::format::Format;
use crate::minifloat::{Bits, CodeSlice};
use crate::simd::kernel;

/// A way from codes to `f32`, prepared.
pub(super) struct Decoder {
    format: Format,
    way: Method,
}

enum Method {
    /// Bytes by the upper halves of their values, the rest by the reader.
    Lookup(Box<lookup::Halves>, CodeReader),
    Read(CodeReader),
    /// Results of the definition.
    Table(Box<lookup::Table<f64>>),
    Plain,
}

impl Decoder {
    /// For `len` codes in all; a table is made for many only.
    pub(super) fn new(format: Format, len: usize) -> Self {
        Self::with(CodeReader::new(format), format, len)
    }

    /// As [`new`](Self::new), with what [`CodeReader::new`] gives.
    pub(super) fn with(reader: Option<CodeReader>, format: Format, len: usize) -> Self {
        let short = format.bits() <= 8 && len >= LONG;
        let fast = short && lookup::is_fast();
        let way = match reader {
            Some(reader) => match fast.then(|| reader.upper_halves()).flatten() {
                Some(table) => Method::Lookup(Box::new(lookup::Halves::new(&table)), reader),
                None => Method::Read(reader),
            },
            None if short && format.is_exact_in_f64() => {
                let mut table = [0.0; 256];
                decode_plain(format, &lookup::BYTES, &mut table);
                Method::Table(Box::new(table))
            }
            None => Method::Plain,
        };
        Self { format, way }
    }

    /// Writes the values of as many codes, by several threads if they are many.
    pub(super) fn decode_all<C: Bits>(&self, codes: &[C], out: &mut [f32]) {
        let traffic = Traffic::of(codes, out, self.is_light());
        divided(codes, out, |_, codes, out| match (&self.way, C::codes(codes)) {
            (Method::Lookup(table, _), CodeSlice::U8(codes)) => {
                lookup::upper_halves(table, codes, out, traffic);
            }
            _ => traffic.pieces(codes, out, |_, codes, out| self.decode(codes, out)),
        });
    }

    /// Whether memory takes longer than arithmetic.
    pub(super) fn is_light(&self) -> bool {
        matches!(self.way, Method::Lookup(..) | Method::Read(_))
    }

    /// Writes the values of as many codes.
    pub(super) fn decode<C: Bits>(&self, codes: &[C], out: &mut [f32]) {
        match (&self.way, C::codes(codes)) {
            (Method::Lookup(table, _), CodeSlice::U8(codes)) => {
                lookup::upper_halves(table, codes, out, Traffic::Cached);
            }
            (Method::Read(_), CodeSlice::U16(codes))
                if self.format == Format::F16 && f16::widen_f16(codes, out) => {}
            (Method::Lookup(_, reader) | Method::Read(reader), _) => reader.read(codes, out),
            (Method::Table(table), _) => {
                for (code, out) in codes.iter().zip(out) {
                    *out = canonical_f32(table[code.to_u64() as usize & 0xFF]);
                }
            }
            (Method::Plain, _) => decode_plain(self.format, codes, out),
        }
    }

    pub(super) fn decode_f64<C: Bits>(&self, codes: &[C], out: &mut [f64]) {
        match &self.way {
            Method::Lookup(..) | Method::Read(_) => {
                let mut values = [0.0; SPAN];
                spans(codes, out, |_, codes, out| {
                    let values = &mut values[..out.len()];
                    self.decode(codes, values);
                    widen(values, out);
                });
            }
            Method::Table(table) => {
                for (code, out) in codes.iter().zip(out) {
                    *out = table[code.to_u64() as usize & 0xFF];
                }
            }
            Method::Plain => decode_plain(self.format, codes, out),
        }
    }
}

/// To nearest even; NaN quiet and without payload, which a cast need not promise.
#[inline(always)]
pub(super) fn canonical_f32(x: f64) -> f32 {
    let nan = (x.to_bits() >> 32) as u32 & 0x8000_0000 | 0x7FC0_0000;
    if x.is_nan() { f32::from_bits(nan) } else { x as f32 }
}

kernel! {
    /// Exactly; NaN as in [`canonical_f32`].
    pub(super) fn widen<'a>(x: &'a [f32], out: &'a mut [f64]) {
        for (x, out) in x.iter().zip(out) {
            let nan = u64::from(x.to_bits() & 0x8000_0000) << 32 | 0x7FF8_0000_0000_0000;
            *out = if x.is_nan() { f64::from_bits(nan) } else { f64::from(*x) };
        }
    }
}
