//! Codes of one format to codes of another.
//!
//! Of a source of up to 8 bits every deterministic conversion is a table of 256 codes, and such a
//! table is made of 256 conversions, whatever the rules. Longer slices of bytes are looked up
//! ([`lookup`]). Other sources go by way of `f32` (or `f64`, if that is the source) where that
//! holds their values exactly, a chunk of [`SPAN`] at a time. So the target's encoder sees the same
//! number. The definition computes what depends on more than the value: a NaN's payload, or whether
//! the operand is subnormal in its own format. It also serves sources whose values are no `f32`.

use super::chunks::{divided, spans};
use super::decode::Decoder;
use super::memory::Traffic;
use super::{Converter, LONG, SPAN, lookup, sources};
use crate::format::Format;
use crate::minifloat::{Bits, CodeSlice, CodeSliceMut};

/// The body of [`Converter::recode_into`], after its checks.
pub(super) fn recode<C: Bits, D: Bits>(
    converter: &Converter,
    from: Format,
    codes: &[C],
    out: &mut [D],
) {
    let fixed = !converter.rules.rounding.is_stochastic();
    if fixed && from.bits() <= 8 && codes.len() >= LONG {
        let mut table = [D::from_u64(0); 256];
        by_value(converter, from, &lookup::BYTES, &mut table);
        let traffic = Traffic::of(codes, out, lookup::is_fast());
        let table = Lookup::new(&table);
        return divided(codes, out, |_, codes, out| {
            traffic.pieces(codes, out, |_, codes, out| table.look_up(codes, out));
        });
    }
    by_value(converter, from, codes, out);
}

/// By way of `f32` or `f64`, or by the definition.
fn by_value<C: Bits, D: Bits>(converter: &Converter, from: Format, codes: &[C], out: &mut [D]) {
    if !sources::reads_values(&converter.rules, from) {
        return converter.recode_plain(from, codes, out);
    }
    if let (Format::F64, CodeSlice::U64(codes)) = (from, C::codes(codes)) {
        return divided(codes, out, |first, codes, out| {
            let mut values = [0.0; SPAN];
            spans(codes, out, |offset, codes, out| {
                let values = &mut values[..codes.len()];
                for (value, code) in values.iter_mut().zip(codes) {
                    *value = f64::from_bits(*code);
                }
                sources::encode_f64(&converter.at_element(first + offset), values, out);
            });
        });
    }
    if !from.is_exact_in_f32() {
        return converter.recode_plain(from, codes, out);
    }
    let decoder = Decoder::new(from, codes.len());
    divided(codes, out, |first, codes, out| {
        let mut values = [0.0; SPAN];
        spans(codes, out, |offset, codes, out| {
            let values = &mut values[..codes.len()];
            decoder.decode(codes, values);
            sources::encode_f32(&converter.at_element(first + offset), values, out);
        });
    });
}

/// Codes of another format for all bytes, prepared.
struct Lookup<'a, D> {
    all: &'a lookup::Table<D>,
    bytes: Option<&'a lookup::Table<u8>>,
    halves: Option<lookup::Halves>,
}

impl<'a, D: Bits> Lookup<'a, D> {
    fn new(all: &'a lookup::Table<D>) -> Self {
        let (mut bytes, mut halves) = (None, None);
        match D::codes(all) {
            CodeSlice::U8(table) => bytes = table.try_into().ok(),
            CodeSlice::U16(table) => halves = table.try_into().ok().map(lookup::Halves::new),
            _ => {}
        }
        Self { all, bytes, halves }
    }

    fn look_up<C: Bits>(&self, codes: &[C], out: &mut [D]) {
        if let CodeSlice::U8(codes) = C::codes(codes) {
            match (self.bytes, &self.halves, D::codes_mut(out)) {
                (Some(table), _, CodeSliceMut::U8(out)) => return lookup::bytes(table, codes, out),
                (_, Some(table), CodeSliceMut::U16(out)) => {
                    return lookup::halves(table, codes, out);
                }
                _ => {}
            }
        }
        for (code, out) in codes.iter().zip(out) {
            *out = self.all[code.to_u64() as usize & 0xFF];
        }
    }
}
