//! Scales and factors of all blocks of a tile at once.

use super::{EXPONENT, LANES, NAN};
use crate::block::scale::{TensorFactors, near_power};
use crate::simd::kernel;

/// Sixteen at a time: left to itself, the compiler takes more, and tiles have few blocks.
#[inline(always)]
fn map<A: Copy>(from: &[A], to: &mut [f32], of: impl Fn(A) -> f32) {
    let (groups, rest) = from.as_chunks::<LANES>();
    let (to_groups, to_rest) = to.as_chunks_mut::<LANES>();
    for (from, to) in groups.iter().zip(to_groups) {
        let from = *from;
        let mut group = [0.0; LANES];
        for (from, to) in from.iter().zip(&mut group) {
            *to = of(*from);
        }
        *to = group;
    }
    for (from, to) in rest.iter().zip(to_rest) {
        *to = of(*from);
    }
}

/// A rule of powers of two as seen from the bits of `amax`.
#[derive(Clone, Copy)]
pub(crate) struct Powers {
    /// What carries into the exponent where the rule takes the next power.
    pub(crate) carry: u32,
    /// The exponent that is taken from that of `amax`.
    pub(crate) offset: i32,
    /// The smallest and the largest exponent of a scale to be sure about, within -125..=126.
    pub(crate) range: (i32, i32),
    /// The scale of zeros.
    pub(crate) zero: f32,
}

kernel! {
    /// Scales that are powers of two, and their reciprocals; NaN where the bits do not show it.
    pub(crate) fn powers<'a>(
        of: Powers,
        amax: &'a [u32],
        scales: &'a mut [f32],
        factors: &'a mut [f32],
    ) {
        let exponent = |amax: u32| (((amax + of.carry) >> 23) as i32) - 127 - of.offset;
        let sure = |amax: u32| {
            // Normal numbers, and none that the carry takes past them.
            let normal = (amax >= 0x0080_0000) & (amax + of.carry < EXPONENT);
            let s = exponent(amax);
            normal & (s >= of.range.0) & (s <= of.range.1)
        };
        map(amax, scales, |amax| {
            let scale = f32::from_bits(((exponent(amax) + 127) as u32) << 23);
            if sure(amax) { scale } else { of.zero }
        });
        map(amax, factors, |amax| {
            let factor = f32::from_bits(((127 - exponent(amax)) as u32) << 23);
            let other = if amax == 0 { 1.0 } else { f32::from_bits(NAN) };
            if sure(amax) { factor } else { other }
        });
    }
}

kernel! {
    /// Magnitudes whose binary32 logarithm rounds up to an integer become that power of two; above
    /// the largest number it is infinity. Subnormal numbers stay.
    pub(crate) fn over_powers<'a>(amax: &'a mut [u32]) {
        for amax in amax {
            let normal = (*amax >= 0x0080_0000) & (*amax < EXPONENT);
            let power = (*amax & EXPONENT) + 0x0080_0000;
            *amax = if normal & near_power(*amax) { power } else { *amax };
        }
    }
}

kernel! {
    /// The codes of scales that are powers of two from `2^-127` on: their exponent field, which is 0
    /// for `2^-127` too, and `first`.
    pub(crate) fn power_codes<'a>(first: i32, nan: u8, scales: &'a [f32], codes: &'a mut [u8]) {
        for (scale, code) in scales.iter().zip(codes) {
            let power = ((scale.to_bits() >> 23) as i32 + first) as u8;
            *code = if scale.is_nan() { nan } else { power };
        }
    }
}

kernel! {
    /// Scales of the rule `nearest` before they are rounded.
    pub(crate) fn unrounded<'a>(of: &'a TensorFactors, amax: &'a [u32], scales: &'a mut [f32]) {
        let of = *of;
        map(amax, scales, |amax| of.unrounded(f32::from_bits(amax)));
    }
}

kernel! {
    /// The two scales of `4over6` before they are rounded: for 6 and for 4.
    pub(crate) fn candidates<'a>(
        of: &'a TensorFactors,
        amax: &'a [u32],
        six: &'a mut [f32],
        four: &'a mut [f32],
    ) {
        let of = *of;
        map(amax, six, |amax| of.candidates(f32::from_bits(amax))[0]);
        map(amax, four, |amax| of.candidates(f32::from_bits(amax))[1]);
    }
}

kernel! {
    /// Factors of the rule `nearest`; NaN where they are 0, infinite or lead to it.
    pub(crate) fn factors<'a>(of: &'a TensorFactors, scales: &'a [f32], factors: &'a mut [f32]) {
        let of = *of;
        map(scales, factors, |scale| {
            let factor = of.factor(scale);
            let fine = (factor > 0.0) & (factor <= f32::MAX) & (scale * of.decode <= f32::MAX);
            if fine { factor } else { f32::from_bits(NAN) }
        });
    }
}
