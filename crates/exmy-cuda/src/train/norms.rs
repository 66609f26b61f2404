//! Norms, biases and roundings to bfloat16: calls of `kernels/layers/norms.cu` and their like.

#![allow(unsafe_code)]

use exmy::round::{Rounding, StochasticVariant};
use exmy_train::nn::device::{NormSteps, Norms, Slice, SliceMut};
use exmy_train::nn::norm::{Norm, ROW_BLOCK};

use super::Cuda;
use super::memory::Parts;
use crate::backend::Grid;
use crate::launch::{Launch, Plain};
use crate::module::NORMS;

/// A rounding to bfloat16 as kernels take it (`Step` of `kernels/layers/real.cuh`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    positive: u32,
    negative: u32,
    odd: u32,
    mask: u32,
}

// SAFETY: four fields of 32 bits.
unsafe impl Plain for Step {}

impl Step {
    /// Numbers stay as they are.
    const NONE: Self = Self { positive: 0, negative: 0, odd: 0, mask: u32::MAX };

    /// No random bits are given, so a stochastic rounding goes up only from where it does with zeros.
    pub(super) fn new(rounding: Option<Rounding>) -> Self {
        const NEVER: u32 = 1 << 16;
        let mask = !0xFFFF;
        // From these distances to the lower neighbour on the magnitude goes up, in parts of 2^16.
        let signed = |positive, negative| Self {
            positive: NEVER - positive,
            negative: NEVER - negative,
            odd: 0,
            mask,
        };
        let from = |threshold| signed(threshold, threshold);
        let Some(rounding) = rounding else { return Self::NONE };
        match rounding {
            Rounding::TiesToEven => Self { odd: 1, ..from(0x8001) },
            Rounding::TiesToAway => from(0x8000),
            Rounding::TiesToZero => from(0x8001),
            Rounding::AwayFromZero => from(1),
            Rounding::TowardPositive => signed(1, NEVER),
            Rounding::TowardNegative => signed(NEVER, 1),
            Rounding::ToOdd => Self { odd: 2, ..from(NEVER) },
            Rounding::Stochastic { variant: StochasticVariant::B | StochasticVariant::C, bits }
                if bits < 16 =>
            {
                from(NEVER - (1 << (15 - bits)))
            }
            // Toward zero, and what truncates where no random bits are set.
            _ => from(NEVER),
        }
    }
}

/// The roundings of a norm's steps.
#[repr(C)]
#[derive(Clone, Copy)]
struct Steps([Step; 3]);

// SAFETY: twelve fields of 32 bits.
unsafe impl Plain for Steps {}

/// Rows by half warps, sixteen of them a block.
fn rows_by_lanes(rows: usize) -> Grid {
    Grid::cover(rows * 16, 256)
}

impl Norms for Cuda {
    fn norm(
        &self,
        how: &NormSteps,
        x: Slice<'_, Self>,
        gain: Slice<'_, Self>,
        bias: Option<Slice<'_, Self>>,
        mut y: SliceMut<'_, Self>,
        [mut mean, mut rstd]: [SliceMut<'_, Self>; 2],
    ) {
        let (width, rows) = shape("norm", x.len(), gain.len());
        expect("norm", "y", y.len(), x.len());
        expect("norm", "bias", bias.map_or(width, Slice::len), width);
        let layer = how.norm == Norm::LayerNorm;
        // RMS norms have no bias, as on the CPU.
        let (bias, plain) = (bias.filter(|_| layer || how.tail.is_some()), how.tail.is_none());
        if plain {
            expect("norm", "rstd", rstd.len(), rows);
            expect("norm", "mean", if layer { mean.len() } else { rows }, rows);
        }
        if rows == 0 {
            return;
        }
        let sizes = (u32::from(layer), how.eps as f32, rows as u64, width as u32);
        self.attempt(|| {
            let launch = if plain {
                Launch::new(self.device(), &NORMS, "norm_rows")
            } else {
                let steps = Steps([how.head, how.tail, how.back].map(Step::new));
                Launch::new(self.device(), &NORMS, "stepped_norm").value(steps)
            };
            let launch = launch.slice(x).slice(gain).maybe(bias);
            let launch = launch.value(sizes.0).value(sizes.1).value(sizes.2).value(sizes.3);
            let launch = launch.slice_mut(&mut y);
            let launch =
                if plain { launch.slice_mut(&mut mean).slice_mut(&mut rstd) } else { launch };
            // SAFETY: the lengths were compared; half a warp has a row.
            unsafe { launch.run(rows_by_lanes(rows)) }
        });
    }

    fn norm_backward(
        &self,
        how: &NormSteps,
        x: Slice<'_, Self>,
        gain: Slice<'_, Self>,
        [mean, rstd]: [Slice<'_, Self>; 2],
        dy: Slice<'_, Self>,
        mut dx: SliceMut<'_, Self>,
        mut d_gain: SliceMut<'_, Self>,
        d_bias: Option<SliceMut<'_, Self>>,
    ) {
        let (width, rows) = shape("norm_backward", x.len(), gain.len());
        expect("norm_backward", "dy", dy.len(), x.len());
        expect("norm_backward", "dx", dx.len(), x.len());
        expect("norm_backward", "d_gain", d_gain.len(), width);
        expect("norm_backward", "d_bias", d_bias.as_ref().map_or(width, SliceMut::len), width);
        let layer = how.norm == Norm::LayerNorm;
        let plain = how.tail.is_none() && how.back.is_none();
        let d_bias = d_bias.filter(|_| layer || !plain);
        if plain {
            expect("norm_backward", "rstd", rstd.len(), rows);
            expect("norm_backward", "mean", if layer { mean.len() } else { rows }, rows);
        }
        let (blocks, stride) =
            (rows.div_ceil(ROW_BLOCK), if plain && d_bias.is_none() { width } else { 2 * width });
        let back = Step::new(how.back);
        self.with_scratch((blocks * stride).max(1), |sums| {
            let launch = if plain {
                let launch =
                    Launch::new(self.device(), &NORMS, "norm_backward").slice(x).slice(gain);
                let launch = launch.slice(mean).slice(rstd).slice(dy);
                launch.value(u32::from(layer)).value(u32::from(d_bias.is_some()))
            } else {
                let steps = Steps([how.head, how.tail, how.back].map(Step::new));
                let launch = Launch::new(self.device(), &NORMS, "stepped_norm_backward");
                let launch = launch.value(steps).slice(x).slice(gain).slice(dy);
                launch.value(u32::from(layer)).value(how.eps as f32)
            };
            let launch =
                launch.value(rows as u64).value(width as u32).slice_mut(&mut dx).write(sums);
            if rows > 0 {
                // SAFETY: the lengths were compared; a block has 32 rows and a row of `stride` sums.
                unsafe { launch.run(Grid::new(blocks as u32, 512))? };
            }
            let add = |first: usize, to: &mut SliceMut<'_, Self>| {
                let launch = Launch::new(self.device(), &NORMS, "add_blocks").read_at(sums, first);
                let launch = launch.value(blocks as u64).value(stride as u32).value(width as u32);
                let launch = launch.slice_mut(to).value(if plain { Step::NONE } else { back });
                // SAFETY: there are as many rows of sums, and `to` has `width` elements.
                unsafe { launch.run(Grid::cover(width, 128)) }
            };
            add(0, &mut d_gain)?;
            d_bias.map_or(Ok(()), |mut d_bias| add(width, &mut d_bias))
        });
    }
}

/// The width of rows and how many there are.
#[track_caller]
fn shape(name: &str, len: usize, width: usize) -> (usize, usize) {
    assert!(
        width > 0 && len.is_multiple_of(width),
        "{name}: {len} elements are no whole number of rows of width {width}"
    );
    (width, len / width)
}

/// Panics unless a length is as it must be.
#[track_caller]
pub(super) fn expect(name: &str, what: &str, found: usize, expected: usize) {
    assert!(found == expected, "{name}: {what} has {found} elements, not {expected}");
}
