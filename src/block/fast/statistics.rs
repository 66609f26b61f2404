//! The [figures](crate::block::Statistics) of a matrix, gathered by the pass that makes its codes.
//!
//! That pass knows an element, its image and its block's scale at once, so nothing is read twice. It
//! serves what is quantized often: elements rounded to nearest or stochastically, as
//! [`Places`](crate::block::kernel::Places) can. Blocks are single columns, a multiple of 16 columns
//! or as wide as the matrix. For all else [`Blocks::plan`] is none, and the figures are found
//! afterwards, from the tensor.

use alloc::vec::Vec;
use core::marker::PhantomData;

use super::{Blocks, Part, TILE_COLS};
use crate::block::Statistics;
use crate::block::kernel::{self, CodesAndStatistics, Elements, Even, Mode, Places, Random};
use crate::block::scale::TensorFactors;
use crate::block::statistics::{Lanes, Limits, PIECE, Sums, of_scales};
use crate::minifloat::Bits;
use crate::round::Rounding;

// A tile that is written in parts is cut between pieces.
const _: () = assert!(TILE_COLS.is_multiple_of(PIECE));

/// What is the same for all chunks.
pub(super) struct StatisticsPlan {
    /// The largest magnitude of an element.
    largest: f64,
    /// The scale of the tensor, or 1.
    tensor_scale: f32,
    /// Columns of a tile.
    tile_cols: usize,
}

impl StatisticsPlan {
    /// Whether rows may be walked over as if they were one.
    pub(super) fn takes_joined_rows(&self, (rows, cols): (usize, usize)) -> bool {
        self.tile_cols.is_multiple_of(PIECE) && (rows == 1 || cols.is_multiple_of(PIECE))
    }
}

impl Blocks<'_> {
    /// How the figures are gathered; none where they cannot.
    pub(super) fn plan(&self, of: &TensorFactors, cols: usize) -> Option<StatisticsPlan> {
        let (width, tile_cols) = (self.side.1, self.tile_cols());
        let known = self.places.is_some()
            && !self.divides
            && !self.halves
            && matches!(self.rounding, Rounding::TiesToEven | Rounding::Stochastic { .. });
        let fits = width == 1 || width >= cols || width.is_multiple_of(16);
        let in_pieces = tile_cols.is_multiple_of(PIECE) || tile_cols >= cols;
        let largest = Limits::of(self.format.element).of_both_signs()?;
        let tensor_scale = if self.format.tensor_scale { of.decode } else { 1.0 };
        (known && fits && in_pieces).then_some(StatisticsPlan { largest, tensor_scale, tile_cols })
    }
}

/// The figures of a chunk.
pub(super) struct ChunkStatistics<'a> {
    plan: &'a StatisticsPlan,
    lanes: Lanes,
    /// The largest magnitudes that the blocks of a tile can express.
    limits: Vec<f32>,
    /// Of the pieces of all rows.
    sums: &'a mut [Sums],
}

impl<'a> ChunkStatistics<'a> {
    pub(super) fn new(plan: &'a StatisticsPlan, sums: &'a mut [Sums]) -> Self {
        Self { plan, lanes: Lanes::default(), limits: Vec::new(), sums }
    }

    /// The scales of the tile that comes next.
    pub(super) fn scales(&mut self, scales: &[f32]) {
        self.limits.resize(scales.len(), 0.0);
        of_scales(self.plan.largest, self.plan.tensor_scale, scales, &mut self.limits);
    }

    /// As [`Blocks::codes`]; `first` is the piece that `x` begins with.
    pub(super) fn codes<C: Bits>(
        &mut self,
        blocks: &Blocks<'_>,
        part: &Part<'_>,
        x: &[f32],
        codes: &mut [C],
        first: usize,
    ) {
        let Some(places) = &blocks.places else { unreachable!("the plan has looked for them") };
        let here = first..first + x.len().div_ceil(PIECE);
        if blocks.is_stochastic() {
            self.pass::<Random, C>(places, part, x, codes, here.clone());
        } else {
            self.pass::<Even, C>(places, part, x, codes, here.clone());
        }
        part.hard(x, codes, |part, x, codes| blocks.general_codes(part, x, codes));
        if self.sums[here.clone()].iter().any(Sums::need_care) {
            self.look_again(blocks, part, x, first);
        }
    }

    fn pass<M: Mode, C: Bits>(
        &mut self,
        places: &Places,
        part: &Part<'_>,
        x: &[f32],
        codes: &mut [C],
        here: core::ops::Range<usize>,
    ) {
        let Part { width, factors, images: scales, decode, words, .. } = *part;
        let (lanes, sums) = (&mut self.lanes, &mut self.sums[here]);
        let codes_and_statistics =
            CodesAndStatistics { codes, lanes, sums, mode: PhantomData::<M> };
        let of = Elements { x, words, width, factors, scales, decode };
        kernel::codes_and_statistics(places, of, &self.limits, codes_and_statistics);
    }

    /// The pieces that need care, with their images.
    #[cold]
    fn look_again(&mut self, blocks: &Blocks<'_>, part: &Part<'_>, x: &[f32], first: usize) {
        let mut y = alloc::vec![0.0; x.len()];
        blocks.values(part, x, &mut y);
        let sums = &mut self.sums[first..];
        for (i, ((x, y), sums)) in x.chunks(PIECE).zip(y.chunks(PIECE)).zip(sums).enumerate() {
            if sums.need_care() {
                let limit = |at: usize| self.limits[(i * PIECE + at) / part.width];
                let mut limits = [0.0; PIECE];
                for (at, out) in limits[..x.len()].iter_mut().enumerate() {
                    *out = limit(at);
                }
                *sums = self.lanes.add_with_care(x, y, &limits[..x.len()]);
            }
        }
    }

    /// Counts and maxima.
    pub(super) fn total(self) -> Statistics {
        self.lanes.total(0, Sums::default())
    }
}
