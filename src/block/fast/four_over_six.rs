//! Four over six by passes: every element of a tile under both scales, the errors, their sums in the
//! order of the definition, and each block's better scale.

use alloc::vec::Vec;
use core::mem::{swap, take};

use super::own::Tile;
use super::scales::{Candidates, INFINITY, PerBlock};
use super::{Blocks, Chunk, Part, TILE_COLS, WalkedRows};
use crate::block::Axis;
use crate::block::kernel::{self, Errors};
use crate::block::plain::{Block, How};
use crate::block::scale::{FourOverSix, TensorFactors};
use crate::random::Philox;
use crate::slice::{Converter, words_into};

impl Blocks<'_> {
    /// Scales and factors of blocks by the rule `4over6`.
    pub(super) fn choose(
        &self,
        (by, converter): (FourOverSix, &Converter),
        walked: &impl WalkedRows,
        (chunk, at): (Chunk, &Tile),
        of: &TensorFactors,
        random: Philox,
        per_block: &mut PerBlock,
    ) {
        let PerBlock { amax, scales, factors, block, candidates, .. } = per_block;
        let (mut four_scales, mut four_factors) =
            (take(&mut candidates.scales), take(&mut candidates.factors));
        let (width, count) = (self.side.1, amax.len());
        four_scales.fit(count, 0.0);
        four_factors.fit(count, 0.0);
        kernel::candidates(of, amax, scales, &mut four_scales);
        for (scales, factors) in
            [(&mut scales[..], &mut factors[..]), (&mut four_scales[..], &mut four_factors[..])]
        {
            converter.fake_quantize(scales);
            kernel::factors(of, scales, factors);
        }
        // Rows of a block run along the reduction axis.
        let rows_a_block = match self.axis {
            Axis::Cols => at.rows.len(),
            Axis::Rows => width.min(at.cols.len()),
        };
        for sums in &mut candidates.sums {
            sums.reset(count * rows_a_block);
            sums.resize(count * rows_a_block, 0.0);
        }
        if self.places.is_some() {
            let of_pass = [&factors[..], &scales[..], &four_factors[..], &four_scales[..]];
            candidates.add_errors(self, by, walked, (chunk, at), of, random, of_pass);
        }
        let sums = &candidates.sums;
        for b in 0..count {
            let known = amax[b] < INFINITY && !factors[b].is_nan() && !four_factors[b].is_nan();
            if !known || self.places.is_none() {
                let values = &mut *block;
                let place = self.gather(walked, at, b, values);
                let matrix = |(i, j)| chunk.first as usize + i * chunk.cols + j;
                let block =
                    Block::of(take::<Vec<f32>>(values), self.axis, place.rows, place.cols, matrix);
                let how =
                    How { format: self.format, rounding: self.rounding, overflow: self.overflow };
                let (scale, _) = how.better(by, &block, of, random);
                scales[b] = self.format.scale.to_f32(scale);
                factors[b] = f32::NAN;
                continue;
            }
            let rows = match self.axis {
                Axis::Cols => rows_a_block,
                Axis::Rows => width.min(at.cols.len() - b * width),
            };
            let error = |sums: &[f32]| FourOverSix::sum(&sums[b * rows_a_block..][..rows]);
            // Six wins ties.
            if error(&sums[1]) < error(&sums[0]) {
                swap(&mut scales[b], &mut four_scales[b]);
                swap(&mut factors[b], &mut four_factors[b]);
            }
        }
        (candidates.scales, candidates.factors) = (four_scales, four_factors);
    }
}

impl Candidates {
    /// Adds up the errors of all rows of blocks; `of_pass` has factors and scales of 6, then of 4.
    fn add_errors(
        &mut self,
        blocks: &Blocks<'_>,
        by: FourOverSix,
        walked: &impl WalkedRows,
        (chunk, at): (Chunk, &Tile),
        of: &TensorFactors,
        random: Philox,
        of_pass: [&[f32]; 4],
    ) {
        let Self { sums, values, words, ones, spread, .. } = self;
        let Some(places) = &blocks.places else { return };
        let (tensor, over, squared) = by.terms(of);
        let errors = Errors { tensor, over, squared };
        let (side, len) = (blocks.side.1, at.cols.len());
        let (of_pass, width) = if of_pass[0].len() == 1 {
            (of_pass, TILE_COLS)
        } else if side != 1 && !side.is_multiple_of(16) {
            for (spread, numbers) in spread.iter_mut().zip(of_pass) {
                spread.fit(len, 0.0);
                kernel::spread(side, numbers, spread);
            }
            (spread.each_ref().map(|spread| &spread[..]), 1)
        } else {
            (of_pass, side)
        };
        ones.fit(of_pass[0].len(), 1.0);
        values.fit(len.min(TILE_COLS), 0.0);
        for i in at.rows.clone() {
            // More than one piece only if the tile is one wide block.
            for j in at.cols.clone().step_by(TILE_COLS) {
                let range = j..(j + TILE_COLS).min(at.cols.end);
                let x = walked.input(i, range.clone());
                let values = &mut values[..x.len()];
                let words: &[u32] = if blocks.is_stochastic() {
                    words.fit(x.len(), 0);
                    words_into(random, chunk.first + (i * chunk.cols + j) as u64, words);
                    words
                } else {
                    &[]
                };
                for (c, sums) in sums.iter_mut().enumerate() {
                    let (factors, scales) = (of_pass[2 * c], of_pass[2 * c + 1]);
                    let part =
                        Part { width, factors, scales, images: ones, decode: 1.0, words, of };
                    blocks.pass_values(places, &part, x, values);
                    kernel::errors(errors, width, scales, x, values);
                    match blocks.axis {
                        Axis::Cols => {
                            let (first, step) = (i - at.rows.start, at.rows.len());
                            let sums = sums[first..].iter_mut().step_by(step);
                            add_rows(
                                if width == TILE_COLS { TILE_COLS } else { side },
                                values,
                                sums,
                            );
                        }
                        Axis::Rows => {
                            let sums = &mut sums[range.start - at.cols.start..];
                            for (sum, error) in sums.iter_mut().zip(&*values) {
                                *sum += error;
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Adds to each sum the next `width` errors, one after the other.
fn add_rows<'a>(width: usize, errors: &[f32], sums: impl Iterator<Item = &'a mut f32>) {
    for (errors, sum) in errors.chunks(width).zip(sums) {
        *sum = errors.iter().fold(*sum, |sum, error| sum + error);
    }
}
