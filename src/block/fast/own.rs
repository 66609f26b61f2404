//! Scales that need the elements of a block, not only their maximum.

use core::ops::Range;

use super::scales::{Finder, INFINITY, PerBlock};
use super::{Blocks, WalkedRows};
use crate::block::Axis;
use crate::pool::Pooled;

/// A scale of the caller's own: from the elements of a block, the reduction axis running fastest.
pub(crate) type OwnScale<'a> = &'a (dyn Fn(&[f32]) -> f32 + Sync);

/// What a caller says instead of what would be found.
#[derive(Clone, Copy)]
pub(crate) enum Own<'a> {
    Nothing,
    /// The blocks' scales.
    Scales(OwnScale<'a>),
    /// The largest magnitude of the tensor.
    Largest(f32),
}

/// The part of a chunk whose blocks are dealt with at once: one band, some columns.
#[derive(Clone)]
pub(super) struct Tile {
    pub(super) rows: Range<usize>,
    pub(super) cols: Range<usize>,
}

impl Tile {
    /// Block `b`, of `width` columns.
    fn block(&self, b: usize, width: usize) -> Self {
        let start = self.cols.start + b * width;
        Self { rows: self.rows.clone(), cols: start..(start + width).min(self.cols.end) }
    }
}

impl Blocks<'_> {
    /// The elements of block `b` of a tile, and each one's place by row and column of the chunk,
    /// the reduction axis running fastest.
    pub(super) fn gather(
        &self,
        walked: &impl WalkedRows,
        at: &Tile,
        b: usize,
        out: &mut Pooled<f32>,
    ) -> Tile {
        let block = at.block(b, self.side.1);
        out.reset(block.rows.len() * block.cols.len());
        match self.axis {
            Axis::Cols => {
                for i in block.rows.clone() {
                    out.extend_from_slice(walked.input(i, block.cols.clone()));
                }
            }
            Axis::Rows => {
                for j in block.cols.clone() {
                    out.extend(block.rows.clone().map(|i| walked.input(i, j..j + 1)[0]));
                }
            }
        }
        block
    }

    /// Asks the caller about every block.
    pub(super) fn ask(
        &self,
        own: OwnScale<'_>,
        walked: &impl WalkedRows,
        at: &Tile,
        per_block: &mut PerBlock,
    ) {
        let PerBlock { amax, scales, block, .. } = per_block;
        for (b, (amax, scale)) in amax.iter_mut().zip(scales.iter_mut()).enumerate() {
            self.gather(walked, at, b, block);
            *amax = block.iter().fold(0, |amax, x| amax.max(x.to_bits() & 0x7FFF_FFFF));
            *scale = own(block);
        }
    }

    /// The largest finite magnitudes of blocks with others, under the rule `max-abs`.
    pub(super) fn largest_finite(
        &self,
        walked: &impl WalkedRows,
        at: &Tile,
        per_block: &mut PerBlock,
    ) {
        if !matches!(self.finder, Finder::Largest) {
            return;
        }
        let PerBlock { amax, scales, block, .. } = per_block;
        for (b, (amax, largest)) in amax.iter().zip(scales.iter_mut()).enumerate() {
            if *amax >= INFINITY {
                self.gather(walked, at, b, block);
                let finite = block.iter().filter(|x| x.is_finite());
                *largest = finite.fold(0.0, |max, x| if x.abs() > max { x.abs() } else { max });
            }
        }
    }
}
