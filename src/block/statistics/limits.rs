//! The largest magnitudes that a format or a block can express, beyond which numbers are saturated.

use super::lanes::{Element, LANES};
use crate::block::BlockTensor;
use crate::format::{Format, Sign};
use crate::simd::kernel;
use crate::slice::{Converter, decode_into};

/// The largest magnitudes of a format or a block, of positive and of negative elements.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    largest: f64,
    /// The same, but for two's complement.
    lowest: f64,
}

impl Limits {
    pub(crate) fn of(format: Format) -> Self {
        let value = |code: u64| {
            let mut value = [0.0_f64];
            decode_into(format, &[code], &mut value);
            value[0].abs()
        };
        let largest = value(format.max_code());
        let lowest = match format.sign() {
            Sign::TwosComplement => value(format.min_code()),
            _ => largest,
        };
        Self { largest, lowest }
    }

    pub(in crate::block) fn of_converter(cast: &Converter) -> Self {
        let Self { largest, lowest } = Self::of(cast.format());
        Self { largest, lowest: if cast.rules().overflow.saturates() { largest } else { lowest } }
    }

    /// Of numbers by their own sign.
    pub(in crate::block) fn of_numbers<T: Element>(self, x: &[T], out: &mut [T]) {
        let (largest, lowest) = (T::below(self.largest), T::below(self.lowest));
        for (limit, x) in out.iter_mut().zip(x) {
            *limit = if *x < T::ZERO { lowest } else { largest };
        }
    }

    /// Of a tensor's block of this scale; `self` are those of its elements.
    pub(in crate::block) fn of_block(self, tensor: &BlockTensor, scale: f32) -> Self {
        let (scale, tensor_scale) = (f64::from(scale), tensor.tensor_scale().unwrap_or(1.0));
        let Self { largest, lowest } = self;
        let limit = |largest: f64| (largest * scale * f64::from(tensor_scale)).abs();
        Self { largest: limit(largest), lowest: limit(lowest) }
    }

    /// Of elements of either sign, if that is one number.
    pub(crate) fn of_both_signs(self) -> Option<f64> {
        (self.largest == self.lowest).then_some(self.largest)
    }

    /// Of elements whose images are `y`; only the lowest element brings one near `lowest`.
    pub(in crate::block) fn of_images(self, y: &[f32], out: &mut [f32]) {
        let Self { largest, lowest } = self;
        let (high, low) = (f32::below(largest), f32::below(lowest));
        if largest == lowest {
            return out.fill(high);
        }
        for (out, y) in out.iter_mut().zip(y) {
            let near_lowest = f64::from(*y).abs() > 0.5 * (largest + lowest);
            *out = if near_lowest { low } else { high };
        }
    }
}

kernel! {
    /// Of blocks of these scales; `largest` is that of elements of either sign.
    pub(crate) fn of_scales<'a>(
        largest: f64,
        tensor_scale: f32,
        scales: &'a [f32],
        out: &'a mut [f32],
    ) {
        let tensor_scale = f64::from(tensor_scale);
        let limit = |scale: f32| f32::below((largest * f64::from(scale) * tensor_scale).abs());
        let (groups, rest) = scales.as_chunks::<LANES>();
        let (out_groups, out_rest) = out.as_chunks_mut::<LANES>();
        for (scales, out) in groups.iter().zip(out_groups) {
            *out = scales.map(limit);
        }
        for (scale, out) in rest.iter().zip(out_rest) {
            *out = limit(*scale);
        }
    }
}
