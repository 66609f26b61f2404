//! The walk over a chunk of a matrix: tiles of bands of blocks, twice each.

use core::ops::Range;

use alloc::vec;
use alloc::vec::Vec;

use super::own::Tile;
use super::scales::Finder;
use super::{Blocks, Part, PerBlock, TILE_COLS};
use crate::block::kernel;
use crate::block::scale::TensorFactors;
use crate::pool::Pooled;
use crate::random::Philox;
use crate::slice::memory::{self, Traffic};
use crate::slice::{View, words_into};

/// Elements of a chunk, at least, unless the matrix ends: 128 KiB of f32.
pub(crate) const CHUNK: usize = 1 << 15;

/// Elements that are asked for while as many before them are read.
const AHEAD: usize = 512;

/// The rows that a walk reads and writes.
pub(crate) trait WalkedRows {
    /// Columns of row `i` as they are before the walk wrote any of them.
    fn input(&self, i: usize, range: Range<usize>) -> &[f32];

    /// Writes what becomes of these columns, at most [`TILE_COLS`].
    fn write(&mut self, blocks: &Blocks<'_>, part: &Part<'_>, i: usize, range: Range<usize>);

    /// The scales of a band's blocks from block `first` on.
    fn scales(&mut self, _band: usize, _first: usize, _scales: &[f32]) {}
}

/// Which part of a matrix a chunk is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    /// The logical index of its first element.
    pub(crate) first: u64,
    /// Its rows.
    pub(crate) rows: usize,
    /// Its columns: those of the matrix, or more if rows are joined.
    pub(crate) cols: usize,
}

impl Blocks<'_> {
    /// Walks over a chunk.
    pub(crate) fn walk(
        &self,
        chunk: Chunk,
        of: &TensorFactors,
        random: Philox,
        walked: &mut impl WalkedRows,
    ) {
        let (band, width) = self.side;
        let tile_cols = self.tile_cols().min(chunk.cols.next_multiple_of(width));
        let mut per_block = PerBlock::with_capacity(tile_cols.div_ceil(width));
        let mut words =
            Pooled::zeros(if self.is_stochastic() { tile_cols.min(TILE_COLS) } else { 0 });
        // Blocks of a width the passes do not take get a number an element.
        let spread = width != 1 && width != tile_cols && !width.is_multiple_of(16);
        let mut spreads = [(); 3].map(|()| Pooled::zeros(if spread { tile_cols } else { 0 }));
        for (b, i0) in (0..chunk.rows).step_by(band).enumerate() {
            let rows = i0..(i0 + band).min(chunk.rows);
            for j0 in (0..chunk.cols).step_by(tile_cols) {
                let end = (j0 + tile_cols).min(chunk.cols);
                let count = (end - j0).div_ceil(width);
                per_block.reset(count);
                let at = Tile { rows: rows.clone(), cols: j0..end };
                match (&self.known, &self.finder) {
                    (Some(known), _) if known.len() == 1 => per_block.amax.fill(known[0]),
                    (Some(known), _) => {
                        per_block.amax.copy_from_slice(&known[j0 / width..][..count]);
                    }
                    (_, Finder::Own(own)) => self.ask(own, walked, &at, &mut per_block),
                    _ => {
                        for i in rows.clone() {
                            kernel::fold(width, walked.input(i, j0..end), &mut per_block.amax);
                        }
                        self.largest_finite(walked, &at, &mut per_block);
                    }
                }
                if let Finder::Four { by } = &self.finder {
                    let by = (*by, &self.scale);
                    self.choose(by, walked, (chunk, &at), of, random, &mut per_block);
                } else {
                    self.finder.find(self.format, &self.scale, of, &mut per_block);
                }
                walked.scales(b, j0 / width, &per_block.scales);
                let (mut factors, mut scales) = (&per_block.factors[..], &per_block.scales[..]);
                let (mut images, decode) = (per_block.images(), per_block.last(of));
                // A lone block has one number, whatever its width.
                let mut width = if count == 1 { TILE_COLS } else { width };
                if spread && count > 1 {
                    for (spread, numbers) in spreads.iter_mut().zip([factors, scales, images]) {
                        kernel::spread(width, numbers, &mut spread[..end - j0]);
                    }
                    [factors, scales, images] = spreads.each_ref().map(|s| &s[..end - j0]);
                    width = 1;
                }
                for i in rows.clone() {
                    // More than one piece only if the tile is one wide block.
                    for j in (j0..end).step_by(TILE_COLS) {
                        let range = j..(j + TILE_COLS).min(end);
                        let words = if self.is_stochastic() {
                            let words = &mut words[..range.len()];
                            words_into(random, chunk.first + (i * chunk.cols + j) as u64, words);
                            &*words
                        } else {
                            &[]
                        };
                        let part = Part { width, factors, scales, images, decode, words, of };
                        walked.write(self, &part, i, range);
                    }
                }
            }
        }
    }
}

/// The largest magnitude of a matrix, as bits. A maximum is the same in any order.
pub(crate) fn largest_in(x: View<'_, f32>) -> u32 {
    let x = if x.col_stride() > x.row_stride() { x.t() } else { x };
    let (rows, cols) = (x.rows(), x.cols());
    if rows == 0 || cols == 0 {
        return 0;
    }
    if x.col_stride() == 1 && (x.row_stride() == cols || rows == 1) {
        let all = &x.data()[..rows * cols];
        let traffic = Traffic::of_bytes(size_of_val(all), false);
        return largest_of(all.chunks(CHUNK), |chunk| {
            if traffic == Traffic::Cached {
                return kernel::largest(chunk);
            }
            let parts = chunk.chunks(AHEAD).map(|part| {
                memory::fetch(part, AHEAD);
                kernel::largest(part)
            });
            parts.max().unwrap_or(0)
        });
    }
    let chunk_rows = CHUNK.div_ceil(cols);
    largest_of((0..rows).step_by(chunk_rows), |first| {
        let largest = (first..(first + chunk_rows).min(rows)).map(|i| match x.row(i) {
            Some(row) => kernel::largest(row),
            None => (0..cols).fold(0, |max, j| max.max(x.at(i, j).to_bits() & 0x7FFF_FFFF)),
        });
        largest.max().unwrap_or(0)
    })
}

/// The largest number that `number` gives for an item. Atomics only where there are threads: not every
/// target without `std` has them.
fn largest_of<I>(items: I, number: impl Fn(I::Item) -> u32 + Sync + Send) -> u32
where
    I: IntoIterator<Item: Send, IntoIter: Send>,
{
    #[cfg(feature = "std")]
    {
        use std::sync::atomic::{AtomicU32, Ordering};
        let largest = AtomicU32::new(0);
        for_each(items, |item| {
            largest.fetch_max(number(item), Ordering::Relaxed);
        });
        largest.into_inner()
    }
    #[cfg(not(feature = "std"))]
    items.into_iter().map(number).max().unwrap_or(0)
}

/// The largest magnitudes, as bits, of blocks of `width` columns that are as high as the matrix.
pub(super) fn maxima(x: View<'_, f32>, width: usize) -> Vec<u32> {
    let (rows, cols) = (x.rows(), x.cols());
    let count = cols.div_ceil(width);
    if count <= 1 {
        return vec![largest_in(x); count];
    }
    // Few enough that their maxima are little next to the matrix.
    let step = CHUNK.div_ceil(cols).max(rows.div_ceil(64));
    let mut parts: Vec<(usize, Vec<u32>)> =
        (0..rows).step_by(step).map(|first| (first, vec![0; count])).collect();
    for_each(parts.iter_mut(), |(first, amax)| {
        let mut copy = Vec::new();
        for i in *first..(*first + step).min(rows) {
            let row = x.row(i).unwrap_or_else(|| {
                copy.resize(cols, 0.0);
                copy_rows(x.rows_range(i..i + 1), cols, &mut copy);
                &[]
            });
            kernel::fold(width, if row.is_empty() { &copy } else { row }, amax);
        }
    });
    let mut all = vec![0; count];
    for (_, amax) in parts {
        all.iter_mut().zip(amax).for_each(|(all, amax)| *all = amax.max(*all));
    }
    all
}

/// Work on items that do not depend on one another.
pub(crate) fn for_each<I>(items: I, work: impl Fn(I::Item) + Sync + Send)
where
    I: IntoIterator<Item: Send, IntoIter: Send>,
{
    #[cfg(feature = "std")]
    crate::parallel::for_each(items, |_, item| work(item));
    #[cfg(not(feature = "std"))]
    items.into_iter().for_each(work);
}

/// Copies `x` to rows that are `stride` numbers apart.
pub(crate) fn copy_rows(x: View<'_, f32>, stride: usize, out: &mut [f32]) {
    let (rows, cols) = (x.rows(), x.cols());
    if x.col_stride() == 1 || cols == 1 {
        for (i, out) in out.chunks_mut(stride.max(1)).take(rows).enumerate() {
            out[..cols].copy_from_slice(x.row(i).unwrap_or_default());
        }
        return;
    }
    // In squares, so that both sides stay in cache when `x` is a transposed matrix.
    const SQUARE: usize = 16;
    for i0 in (0..rows).step_by(SQUARE) {
        for j0 in (0..cols).step_by(SQUARE) {
            for i in i0..(i0 + SQUARE).min(rows) {
                for j in j0..(j0 + SQUARE).min(cols) {
                    out[i * stride + j] = x.at(i, j);
                }
            }
        }
    }
}

/// The smallest number that both divide; neither is 0.
pub(crate) fn common_multiple(a: usize, b: usize) -> usize {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}
