//! The figures of a tensor while its rows pass by, piece after piece, in whatever order the work at hand
//! takes its tiles.

use alloc::vec::Vec;

use super::lanes::Lanes;
use super::limits::Limits;
use super::{BAND, STRIPE, Statistics};
use crate::block::BlockTensor;
use crate::block::fast::copy_rows;
use crate::scale::Order;
use crate::simd::kernel;
use crate::view::View;

/// A tensor beside the matrix that it was quantized from.
pub(crate) struct Watch<'a> {
    tensor: &'a BlockTensor,
    x: View<'a, f32>,
    /// Of each block, row-major.
    limits: Vec<Limits>,
    /// The same as binary32 numbers, if they do not depend on the sign.
    alike: Option<Vec<f32>>,
}

impl<'a> Watch<'a> {
    /// Both have the same shape.
    pub(crate) fn new(tensor: &'a BlockTensor, x: View<'a, f32>) -> Self {
        tensor.check(x);
        let limits = tensor.limits();
        let alike = limits.iter().map(|limits| limits.of_both_signs()).collect();
        Self { tensor, x, limits, alike }
    }

    /// Whether a value is the product of code and block scale times the tensor scale, in that order.
    pub(crate) fn takes_images(&self) -> bool {
        let format = self.tensor.format();
        !format.tensor_scale || format.profile.choices(format.rule).order != Order::Torchao
    }

    /// Tiles one below the other.
    pub(crate) fn bands(&self) -> usize {
        self.x.rows().div_ceil(BAND)
    }

    /// The largest magnitudes there are for the images `y`, of which the first is element (i, j).
    pub(super) fn limits(&self, i: usize, j: usize, y: &[f32], out: &mut [f32]) {
        let ((down, width), right) = (self.tensor.block(), self.tensor.blocks().1);
        let blocks = i / down * right..(i / down + 1) * right;
        let limits = &self.limits[blocks.clone()];
        let alike = self.alike.as_ref().map(|alike| &alike[blocks]);
        if let (Some(alike), 1) = (alike, width) {
            return out.copy_from_slice(&alike[j..j + out.len()]);
        }
        let (mut at, mut block) = (0, j / width);
        while at < out.len() {
            let end = ((block + 1) * width - j).min(out.len());
            match alike {
                Some(alike) => out[at..end].fill(alike[block]),
                None => limits[block].of_images(&y[at..end], &mut out[at..end]),
            }
            (at, block) = (end, block + 1);
        }
    }

    /// The figures of all tiles, in the order that [`Statistics`] defines.
    pub(crate) fn total(&self, tile: impl Fn(usize, usize) -> Statistics) -> Statistics {
        let stripes = self.x.cols().div_ceil(STRIPE);
        let zero = Statistics::default;
        let band = |i| (0..stripes).fold(zero(), |sum, j| sum.and(&tile(i, j)));
        (0..self.bands()).fold(zero(), |sum, i| sum.and(&band(i)))
    }
}

/// The tiles of some stripes of a band.
pub(crate) struct Gather<'a> {
    watch: &'a Watch<'a>,
    tiles: Vec<Lanes<f32>>,
    /// The first column.
    first: usize,
}

impl<'a> Gather<'a> {
    /// So many stripes from column `first` on, a multiple of [`STRIPE`].
    pub(crate) fn new(watch: &'a Watch<'a>, first: usize, stripes: usize) -> Self {
        Self { watch, tiles: (0..stripes).map(|_| Lanes::default()).collect(), first }
    }

    /// A piece of row `i` from column `j` on, a multiple of [`STRIPE`]: the products of codes and block
    /// scales, which become values in place. A band's rows come in order.
    pub(crate) fn row(&mut self, i: usize, j: usize, images: &mut [f32]) {
        let Self { watch, tiles, first } = self;
        if let Some(scale) = watch.tensor.tensor_scale() {
            multiply(scale, images);
        }
        let (mut limits, mut copy) = ([0.0; STRIPE], [0.0; STRIPE]);
        let tiles = &mut tiles[(j - *first) / STRIPE..];
        for ((y, tile), j) in images.chunks(STRIPE).zip(tiles).zip((j..).step_by(STRIPE)) {
            let limits = &mut limits[..y.len()];
            watch.limits(i, j, y, limits);
            let x = match watch.x.row(i) {
                Some(row) => &row[j..j + y.len()],
                None => {
                    let part = watch.x.rows_range(i..i + 1).cols_range(j..j + y.len());
                    copy_rows(part, y.len(), &mut copy);
                    &copy[..y.len()]
                }
            };
            tile.add_row(x, y, limits);
        }
    }

    /// Writes the figures of the band and begins the next one.
    pub(crate) fn finish(&mut self, out: &mut [Statistics]) {
        for (tile, out) in self.tiles.iter_mut().zip(out) {
            *out = core::mem::take(tile).total();
        }
    }
}

kernel! {
    fn multiply<'a>(factor: f32, numbers: &'a mut [f32]) {
        for number in numbers {
            *number *= factor;
        }
    }
}
