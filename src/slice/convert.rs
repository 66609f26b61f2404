//! Codes to numbers, and numbers of one type of the language to another.

use super::chunks::divided;
use super::decode::reader::CodeReader;
use super::decode::{Decoder, canonical_f32, widen};
use super::memory::Traffic;
use super::real::sealed::{Reals, RealsMut};
use super::{Converter, Real, recode};
use crate::format::Format;
use crate::minifloat::Bits;
use crate::round::Rules;
use crate::simd::kernel;

/// Writes to `out` the values of `codes`, to nearest even where the type cannot hold them. NaN is
/// quiet and without payload. Bits of a code above the format's width are ignored.
///
/// # Panics
/// If the lengths differ.
///
/// ```
/// use exmy::slice::decode_into;
/// use exmy::format::Format;
///
/// let mut x = [0.0_f32; 3];
/// decode_into(Format::E2M1, &[0x1_u8, 0xF, 0x7], &mut x);
/// assert_eq!(x, [0.5, -6.0, 6.0]);
///
/// // The top bit of a byte is no part of an unsigned scale; all ones are its NaN.
/// decode_into(Format::UE4M3, &[0x38_u8, 0xB8, 0xFF], &mut x);
/// assert_eq!((x[0], x[1], x[2].is_nan()), (1.0, 1.0, true));
/// ```
pub fn decode_into<C: Bits, T: Real>(format: Format, codes: &[C], out: &mut [T]) {
    decode_by(CodeReader::new(format), format, codes, out);
}

/// As [`decode_into`], with what [`CodeReader::new`] gives.
pub(super) fn decode_by<C: Bits, T: Real>(
    reader: Option<CodeReader>,
    format: Format,
    codes: &[C],
    out: &mut [T],
) {
    assert_eq!(codes.len(), out.len(), "input and output of a conversion have different lengths");
    let decoder = |len| Decoder::with(reader, format, len);
    match T::reals_mut(out) {
        RealsMut::F32(out) => decoder(out.len()).decode_all(codes, out),
        RealsMut::F64(out) => {
            let decoder = decoder(out.len());
            let traffic = Traffic::of(codes, out, decoder.is_light());
            divided(codes, out, |_, codes, out| {
                traffic.pieces(codes, out, |_, codes, out| decoder.decode_f64(codes, out));
            });
        }
        RealsMut::Codes(out) => {
            recode::recode(&Converter::new(T::FORMAT, Rules::DEFAULT), format, codes, out);
        }
    }
}

/// Writes to `out` the elements of `x` as another type: exactly where it holds them, else rounded
/// once, to nearest even, with infinity beyond the largest. NaN is quiet and without payload, with
/// its sign.
///
/// # Panics
/// If the lengths differ.
///
/// ```
/// use exmy::slice::convert_into;
///
/// let mut out = [0.0_f32; 3];
/// convert_into(&[0.1_f64, 1e39, 1.0 + 0.5 / 8388608.0], &mut out);
/// assert_eq!(out, [0.1, f32::INFINITY, 1.0]); // the last is a tie
/// # #[cfg(feature = "half")] {
/// use half::{bf16, f16};
///
/// let mut out = [f16::ZERO; 2];
/// convert_into(&[65519.99_f32, 65520.0], &mut out);
/// assert_eq!(out, [f16::MAX, f16::INFINITY]);
///
/// // Next to a tie, which by way of f32 it would be on.
/// let mut out = [bf16::ZERO];
/// convert_into(&[1.0 + 1.0 / 256.0 + 1e-12], &mut out);
/// assert_eq!(out[0].to_bits(), 0x3F81);
/// # }
/// ```
pub fn convert_into<S: Real, T: Real>(x: &[S], out: &mut [T]) {
    assert_eq!(x.len(), out.len(), "input and output of a conversion have different lengths");
    match (S::reals(x), T::reals_mut(out)) {
        (_, RealsMut::Codes(out)) => {
            Converter::new(T::FORMAT, Rules::DEFAULT).encode_into(x, out);
        }
        (Reals::Codes(x), RealsMut::F32(out)) => decode_into(S::FORMAT, x, out),
        (Reals::Codes(x), RealsMut::F64(out)) => decode_into(S::FORMAT, x, out),
        (Reals::F64(x), RealsMut::F32(out)) => divided(x, out, |_, x, out| narrow(x, out)),
        (Reals::F32(x), RealsMut::F64(out)) => divided(x, out, |_, x, out| widen(x, out)),
        (Reals::F32(x), RealsMut::F32(out)) => divided(x, out, |_, x, out| same_f32(x, out)),
        (Reals::F64(x), RealsMut::F64(out)) => divided(x, out, |_, x, out| same_f64(x, out)),
    }
}

kernel! {
    fn same_f32<'a>(x: &'a [f32], out: &'a mut [f32]) {
        for (x, out) in x.iter().zip(out) {
            *out = if x.is_nan() { f32::NAN.copysign(*x) } else { *x };
        }
    }
}

kernel! {
    fn same_f64<'a>(x: &'a [f64], out: &'a mut [f64]) {
        for (x, out) in x.iter().zip(out) {
            *out = if x.is_nan() { f64::NAN.copysign(*x) } else { *x };
        }
    }
}

kernel! {
    fn narrow<'a>(x: &'a [f64], out: &'a mut [f32]) {
        for (x, out) in x.iter().zip(out) {
            *out = canonical_f32(*x);
        }
    }
}
