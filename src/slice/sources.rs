//! Numbers that are not `f32` on their way through the kernels of `f32`.
//!
//! `f16` and `bf16` numbers are `f32` numbers. A chunk of them is widened into the first-level
//! cache and goes on from there.
//!
//! `f64` numbers are not, and rounding them twice is the field's classic error. So the first
//! rounding is *to odd*: a number between two neighbouring `f32` numbers becomes the one whose last
//! bit is 1. Compared with any `f32` number whose last bit is 0, it gives the same answer as the number
//! itself. This is by Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved
//! algorithms using rounding to odd", IEEE Transactions on Computers 57, 2008. If the target leaves two
//! bits at either end, a conversion compares its operand with such numbers alone. These are the target's
//! values, the midpoints between them, and with N random bits the points that divide the gaps into
//! `2^(N+1)` parts. Where it does not (`e8m22`, `f32`, 17 random bits on `e5m2`), the definition
//! decides. It also decides for chunks with a finite number from `2^128` on, whose size `f32` cannot
//! hold.

use super::chunks::{divided, divided_in_place, spans};
use super::decode::{Decoder, canonical_f32, widen};
use super::memory::Traffic;
use super::plain::image;
use super::real::sealed::{Reals, RealsMut};
use super::{Converter, Real, SPAN, f16};
use crate::format::Format;
use crate::math::Operand;
use crate::minifloat::{Bits, CodeSliceMut};
use crate::round::{Operands, Payload, Rounding, Rules};
use crate::simd::kernel;

/// Of `f32`, to the types of the crate `half` by their own kernels.
pub(super) fn encode_f32<C: Bits>(converter: &Converter, x: &[f32], codes: &mut [C]) {
    if converter.rules == Rules::DEFAULT
        && let Some(kernel) = f16::kernel(converter.to)
        && let CodeSliceMut::U16(codes) = C::codes_mut(codes)
    {
        let traffic = Traffic::of(x, codes, true);
        return divided(x, codes, |_, x, codes| {
            traffic.pieces(x, codes, |_, x, codes| kernel(x, codes));
        });
    }
    converter.encode_f32(x, codes);
}

/// Of `f64`.
pub(super) fn encode_f64<C: Bits>(converter: &Converter, x: &[f64], codes: &mut [C]) {
    if !passes_f32(converter, Format::F64) {
        if converter.to == Format::F32
            && converter.rules == Rules::DEFAULT
            && let CodeSliceMut::U32(codes) = C::codes_mut(codes)
        {
            return divided(x, codes, |_, x, codes| nearest(x, codes));
        }
        return divided(x, codes, |first, x, codes| {
            converter.at_element(first).encode_plain(x, codes);
        });
    }
    divided(x, codes, |first, x, codes| {
        let mut values = [0.0; SPAN];
        spans(x, codes, |offset, x, codes| {
            let converter = converter.at_element(first + offset);
            let values = &mut values[..x.len()];
            if to_odd(x, values) {
                encode_f32(&converter, values, codes);
            } else {
                converter.encode_plain(x, codes);
            }
        });
    });
}

/// Whether a number of the format `from` may be replaced by its rounding to odd in `f32`, which of
/// all but `f64` is the number itself.
fn passes_f32(converter: &Converter, from: Format) -> bool {
    let Converter { to, rules, .. } = *converter;
    let below = match rules.rounding {
        Rounding::Stochastic { bits, .. } => bits as i32 + 1,
        _ => 1,
    };
    let slack = to.precision() as i32 + below <= 23 && to.lsb() - below >= -148;
    reads_values(&rules, from) && to.is_exact_in_f32() && (slack || from.is_exact_in_f32())
}

/// Whether a conversion looks at nothing but the value of its operand, and the sign of NaN.
pub(super) fn reads_values(rules: &Rules, from: Format) -> bool {
    let exact = matches!(rules.operands, Operands::Exact | Operands::Away);
    let sign_is_value = from.nan_has_sign() || !from.has_nan() || !from.is_signed();
    exact && rules.nan.payload == Payload::Drop && (sign_is_value || !rules.nan.top_bit_is_sign)
}

kernel! {
    /// Rounds to odd; false if there is a finite number from `2^128` on.
    fn to_odd<'a>(x: &'a [f64], out: &'a mut [f32]) -> bool {
        const TOO_LARGE: u64 = (1023 + 128) << 52;
        const INFINITY: u64 = f64::INFINITY.to_bits();
        let mut beyond = 0_u64;
        for (x, out) in x.iter().zip(out) {
            let magnitude = x.to_bits() & !(1 << 63);
            // The difference wraps around below, so that one comparison sees both ends.
            let from_there = magnitude.wrapping_sub(TOO_LARGE);
            beyond |= u64::from(from_there < INFINITY - TOO_LARGE);
            let near = canonical_f32(*x);
            let back = f64::from(near);
            // Toward zero it is this one or the one before; its last bit set, the odd one of two.
            let odd = (near.to_bits() - u32::from(back.abs() > x.abs())) | 1;
            let exact = (back == *x) | x.is_nan();
            *out = f32::from_bits(if exact { near.to_bits() } else { odd });
        }
        beyond == 0
    }
}

kernel! {
    /// The codes of the nearest `f32` numbers.
    fn nearest<'a>(x: &'a [f64], codes: &'a mut [u32]) {
        for (x, code) in x.iter().zip(codes) {
            *code = canonical_f32(*x).to_bits();
        }
    }
}

/// The body of [`Converter::fake_quantize_into`] for types other than `f32`.
pub(super) fn fake_quantize_into<S: Real>(converter: &Converter, x: &[S], out: &mut [S]) {
    let rounder = Rounder::new::<S>(converter);
    divided(x, out, |first, x, out| {
        spans(x, out, |offset, x, out| {
            out.copy_from_slice(x);
            rounder.round(first + offset, out);
        });
    });
}

/// The body of [`Converter::fake_quantize`] for types other than `f32`.
pub(super) fn fake_quantize<S: Real>(converter: &Converter, data: &mut [S]) {
    let rounder = Rounder::new::<S>(converter);
    divided_in_place(data, |first, data| {
        for (i, data) in data.chunks_mut(SPAN).enumerate() {
            rounder.round(first + i * SPAN, data);
        }
    });
}

/// Fake quantization of a type, prepared.
struct Rounder<'a> {
    converter: &'a Converter<'a>,
    /// From the type to `f32` and back, if that is a way.
    way: Option<(Decoder, Converter<'static>)>,
}

impl<'a> Rounder<'a> {
    fn new<S: Real>(converter: &'a Converter<'a>) -> Self {
        let way = passes_f32(converter, S::FORMAT)
            .then(|| (Decoder::new(S::FORMAT, 0), Converter::new(S::FORMAT, Rules::DEFAULT)));
        Self { converter, way }
    }

    /// Rounds up to [`SPAN`] elements in place, of which the first has the index `first`.
    fn round<S: Real>(&self, first: usize, data: &mut [S]) {
        let converter = self.converter.at_element(first);
        let mut values = [0.0; SPAN];
        let values = &mut values[..data.len()];
        if let Some((widen_codes, narrow)) = &self.way {
            let fits = match S::reals(data) {
                Reals::F32(x) => {
                    values.copy_from_slice(x);
                    true
                }
                Reals::F64(x) => to_odd(x, values),
                Reals::Codes(x) => {
                    widen_codes.decode(x, values);
                    true
                }
            };
            if fits {
                let mut rounded = [0.0; SPAN];
                let rounded = &mut rounded[..values.len()];
                converter.round_into(values, rounded);
                return match S::reals_mut(data) {
                    RealsMut::F32(out) => out.copy_from_slice(rounded),
                    RealsMut::F64(out) => widen(rounded, out),
                    RealsMut::Codes(out) => encode_f32(narrow, rounded, out),
                };
            }
        }
        for (i, x) in data.iter_mut().enumerate() {
            let code = converter.code(Operand::new(S::FORMAT, x.to_code()), i);
            *x = image(converter.to, code);
        }
    }
}
