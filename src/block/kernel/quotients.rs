//! Passes of the rules that divide: exact quotients of elements and scales, and the errors of
//! [`FourOverSix`](crate::block::scale::FourOverSix).

use super::LANES;
use crate::simd::kernel;

const SIGN: u32 = 0x8000_0000;
/// `2^127` and `2^-126`.
const LIMITS: (f64, f64) = (f32::from_bits(0x7F00_0000) as f64, f32::MIN_POSITIVE as f64);

/// `x / scale` to 24 bits, rounded to odd: cut, and the last bit set if anything was lost. Rounding
/// that to two bits fewer, in any mode, is rounding the quotient itself.
///
/// The quotient in binary64 decides. The exact quotient either is a number of 24 bits or differs from
/// each by more than 2^-53 of it, since their difference times `scale` has 48 bits. Magnitudes are
/// brought to `2^-126..=2^127`, 0 apart.
#[inline(always)]
fn quotient(x: f32, scale: f32) -> f32 {
    let m = (f64::from(x) / f64::from(scale)).abs();
    let m = if m > LIMITS.0 { LIMITS.0 } else { m };
    let raised = if m < LIMITS.1 { LIMITS.1 } else { m };
    let bits = raised.to_bits();
    let cut = ((bits >> 29) as u32).wrapping_sub((1023 - 127) << 23);
    let odd = cut | u32::from(bits & 0x1FFF_FFFF != 0);
    let magnitude = if m > 0.0 { odd } else { 0 };
    f32::from_bits(magnitude | ((x.to_bits() ^ scale.to_bits()) & SIGN))
}

kernel! {
    /// Quotients of elements and scales, of which `width` elements share one.
    pub(crate) fn quotients<'a>(width: usize, scales: &'a [f32], x: &'a [f32], out: &'a mut [f32]) {
        if width == 1 {
            for ((x, scale), out) in x.iter().zip(scales).zip(out) {
                *out = quotient(*x, *scale);
            }
            return;
        }
        for ((x, out), scale) in x.chunks(width).zip(out.chunks_mut(width)).zip(scales) {
            let (x, x_rest) = x.as_chunks::<LANES>();
            let (out, out_rest) = out.as_chunks_mut::<LANES>();
            for (x, out) in x.iter().zip(out) {
                for i in 0..LANES {
                    out[i] = quotient(x[i], *scale);
                }
            }
            for (x, out) in x_rest.iter().zip(out_rest) {
                *out = quotient(*x, *scale);
            }
        }
    }
}

/// How the error of an element is found: `|((value * scale) * tensor) / over - x|`, or its square.
#[derive(Clone, Copy)]
pub(crate) struct Errors {
    pub(crate) tensor: f32,
    pub(crate) over: f32,
    pub(crate) squared: bool,
}

impl Errors {
    #[inline(always)]
    fn of(&self, x: f32, value: f32, scale: f32) -> f32 {
        let difference = value * scale * self.tensor / self.over - x;
        if self.squared { difference * difference } else { difference.abs() }
    }
}

kernel! {
    /// The errors of elements, in place of their values.
    pub(crate) fn errors<'a>(
        of: Errors,
        width: usize,
        scales: &'a [f32],
        x: &'a [f32],
        values: &'a mut [f32],
    ) {
        if width == 1 {
            for ((x, scale), value) in x.iter().zip(scales).zip(values) {
                *value = of.of(*x, *value, *scale);
            }
            return;
        }
        for ((x, values), scale) in x.chunks(width).zip(values.chunks_mut(width)).zip(scales) {
            for (x, value) in x.iter().zip(values) {
                *value = of.of(*x, *value, *scale);
            }
        }
    }
}
