//! [`Statistics`] of a cast and of a stored tensor, from the numbers and what became of them.

use alloc::vec;
use alloc::vec::Vec;

use super::BlockTensor;
use super::fast::{self, copy_rows, for_each};
use super::statistics::{BAND, Band, Element, Lanes, Limits, PIECE, Statistics, of_scales};
use crate::slice::{Converter, SPAN, View};

impl Statistics {
    /// The figures of numbers that a [`Converter`] rounds, without scale, row by row.
    ///
    /// Element (i, j) of a stochastic converter uses random word `i * cols + j` after its start.
    ///
    /// # Panics
    /// As [`Converter::fake_quantize_into`].
    ///
    /// ```
    /// use exmy::block::Statistics;
    /// use exmy::slice::{Converter, View};
    /// use exmy::format::Format;
    /// use exmy::round::Rules;
    ///
    /// let x = [448.0_f32, 449.0, 1e-4, 0.0, f32::NAN];
    /// let cast = Converter::new(Format::E4M3FN, Rules::SATURATING);
    /// let found = Statistics::of_cast(View::new(&x, 1, 5), &cast);
    /// assert_eq!((found.saturated, found.flushed, found.non_finite), (1, 1, 1));
    /// assert_eq!((found.amax, found.max_error), (449.0, 1.0));
    /// ```
    pub fn of_cast(x: View<'_, f32>, cast: &Converter) -> Self {
        let of = Limits::of_converter(cast);
        let image = |at: usize, from: &[f32], to: &mut [f32]| {
            cast.starting_at(cast.start().wrapping_add(at as u64)).fake_quantize_into(from, to);
        };
        Self::of_groups(x, image, |_, _, x, _, limits| of.of_numbers(x, limits))
    }

    /// As [`of_cast`](Self::of_cast), of one row of `f64`, none of which is narrowed first. Only
    /// [`amax`](Self::amax) is rounded to `f32`, and infinite beyond it.
    ///
    /// # Panics
    /// As [`Converter::fake_quantize_into`].
    ///
    /// ```
    /// use exmy::block::Statistics;
    /// use exmy::slice::Converter;
    /// use exmy::format::Format;
    /// use exmy::round::Rules;
    ///
    /// let cast = Converter::new(Format::F32, Rules::DEFAULT);
    /// let found = Statistics::of_doubles(&[1.0 + 2.0_f64.powi(-30), 1e-60], &cast);
    /// // What is no `f32` number is compared all the same.
    /// assert_eq!((found.max_error, found.flushed), (2.0_f64.powi(-30), 1));
    /// ```
    pub fn of_doubles(x: &[f64], cast: &Converter) -> Self {
        let of = Limits::of_converter(cast);
        let (mut all, mut y) = (Self::default(), [0.0; SPAN]);
        for (x, at) in x.chunks(SPAN).zip((cast.start()..).step_by(SPAN)) {
            let y = &mut y[..x.len()];
            cast.starting_at(at).fake_quantize_into(x, y);
            all = all.and_row(x, y, |x, _, limits| of.of_numbers(x, limits));
        }
        all
    }

    /// The figures of all pieces. `image` writes what became of consecutive elements, the first
    /// of which has the given index; `limits` gets row and column of the first of some elements of a
    /// row, them and their images, and writes the largest magnitude there is for each. The former is
    /// called for at most [`SPAN`] elements, the latter for those of a piece, so that nothing
    /// here grows with the matrix.
    fn of_groups(
        x: View<'_, f32>,
        image: impl Fn(usize, &[f32], &mut [f32]) + Sync + Send,
        limits: impl Fn(usize, usize, &[f32], &[f32], &mut [f32]) + Sync + Send,
    ) -> Self {
        let (rows, cols) = (x.rows(), x.cols());
        if rows == 0 || cols == 0 {
            return Self::default();
        }
        let mut bands = vec![Self::default(); rows.div_ceil(BAND)];
        for_each(bands.iter_mut().enumerate(), |(band, sum): (usize, &mut Self)| {
            let (mut from, mut to, mut limit) = ([0.0; SPAN], [0.0; SPAN], [0.0; PIECE]);
            let band = band * BAND..((band + 1) * BAND).min(rows);
            let (mut lanes, mut sums) = (Lanes::default(), Band::default());
            // Rows that fit a span are imaged together, longer ones span by span.
            let together = (SPAN / cols).max(1);
            for j0 in (0..cols).step_by(SPAN) {
                let width = (cols - j0).min(SPAN);
                for i0 in band.clone().step_by(together) {
                    let part = x.rows_range(i0..(i0 + together).min(band.end));
                    let part = part.cols_range(j0..j0 + width);
                    let count = part.rows() * width;
                    let (from, to) = (&mut from[..count], &mut to[..count]);
                    copy_rows(part, width, from);
                    image(i0 * cols + j0, from, to);
                    for (i, (x, y)) in (i0..).zip(from.chunks(width).zip(to.chunks(width))) {
                        let pieces = x.chunks(PIECE).zip(y.chunks(PIECE));
                        for ((x, y), j) in pieces.zip((j0..).step_by(PIECE)) {
                            let limit = &mut limit[..x.len()];
                            limits(i, j, x, y, limit);
                            sums.add(i, lanes.add(x, y, limit));
                        }
                    }
                }
            }
            *sum = lanes.total(band.len() * cols, sums.total());
        });
        bands.iter().fold(Self::default(), |all, band| all.and(band))
    }

    /// The same with the pieces of a lone row; `limits` writes the largest magnitude there is for each of
    /// some elements, of which it gets the images too.
    fn and_row<T: Element>(self, x: &[T], y: &[T], limits: impl Fn(&[T], &[T], &mut [T])) -> Self {
        let (mut all, mut limit) = (self, [T::ZERO; PIECE]);
        for (x, y) in x.chunks(PIECE).zip(y.chunks(PIECE)) {
            let (mut lanes, limit) = (Lanes::default(), &mut limit[..x.len()]);
            limits(x, y, limit);
            let sums = lanes.add(x, y, limit);
            all = all.and(&lanes.total(x.len(), sums));
        }
        all
    }
}

impl BlockTensor {
    /// What became of the matrix `x` from which this tensor was quantized.
    ///
    /// # Panics
    /// If `x` has another shape.
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, BlockTensor};
    /// use exmy::round::Rounding;
    /// use exmy::slice::View;
    ///
    /// // 2^-20 is less than half of what E2M1 times E4M3 can express next to 1; its block is lost.
    /// let mut x = [0.0_f32; 32];
    /// (x[0], x[16]) = (1.0, 1.0 / 1_048_576.0);
    /// let x = View::new(&x, 1, 32);
    /// let tensor =
    ///     BlockTensor::quantize(x, Axis::Cols, BlockFormat::NVFP4, Rounding::TiesToEven);
    /// let found = tensor.statistics(x);
    /// assert_eq!((found.count, found.flushed, found.saturated), (32, 1, 0));
    /// assert_eq!(tensor.block_statistics(x)[1].flushed, 1);
    /// ```
    pub fn statistics(&self, x: View<'_, f32>) -> Statistics {
        self.check(x);
        let watch = Watch::new(self);
        let decoder = fast::Decoder::new(self);
        let image = |at: usize, _: &[f32], to: &mut [f32]| decoder.values(at, to);
        Statistics::of_groups(x, image, |i, j, _, y, out| watch.limits(i, j, y, out))
    }

    /// The same of each block, row-major over blocks; within a block, pieces are of one row of
    /// the block, and their sums are added as they come.
    ///
    /// ```
    /// use exmy::block::Axis;
    /// use exmy::quantizer::Quantizer;
    /// use exmy::slice::View;
    ///
    /// let x = View::new(&[7.9_f32, 1.0, 0.1, 0.1, 0.3], 1, 5);
    /// let tensor = "e2m1/2:e8m0".parse::<Quantizer>().unwrap().quantize(x, Axis::Cols, None).unwrap();
    /// let blocks = tensor.block_statistics(x);
    /// assert_eq!(blocks.iter().map(|block| block.count).collect::<Vec<_>>(), [2, 2, 1]); // ragged
    /// // 0.1 is 6.4 times the scale of its block.
    /// assert_eq!(blocks.iter().map(|block| block.saturated).collect::<Vec<_>>(), [1, 2, 0]);
    /// ```
    ///
    /// # Panics
    /// If `x` has another shape.
    pub fn block_statistics(&self, x: View<'_, f32>) -> Vec<Statistics> {
        self.check(x);
        let (y, limits) = (self.dequantize(), self.limits());
        let (cols, right) = (self.cols(), self.blocks().1);
        let mut blocks = vec![Statistics::default(); limits.len()];
        if blocks.is_empty() {
            return blocks;
        }
        let mut row = vec![0.0; cols];
        for i in 0..self.rows() {
            copy_rows(x.rows_range(i..i + 1), cols, &mut row);
            let y = &y[i * cols..(i + 1) * cols];
            let width = self.block().1;
            for (bj, (x, y)) in row.chunks(width).zip(y.chunks(width)).enumerate() {
                let at = i / self.block().0 * right + bj;
                let of_images =
                    |_: &[f32], y: &[f32], out: &mut [f32]| limits[at].of_images(y, out);
                blocks[at] = blocks[at].and_row(x, y, of_images);
            }
        }
        blocks
    }

    #[track_caller]
    fn check(&self, x: View<'_, f32>) {
        let (shape, found) = ((self.rows(), self.cols()), (x.rows(), x.cols()));
        assert_eq!(shape, found, "a tensor and the matrix it is compared with differ in shape");
    }

    /// The limits of each block.
    fn limits(&self) -> Vec<Limits> {
        let of = Limits::of(self.format().element);
        self.scale_values().into_iter().map(|scale| of.of_block(self, scale)).collect()
    }
}

/// What the blocks of a tensor can express.
pub(super) struct Watch<'a> {
    tensor: &'a BlockTensor,
    /// Of each block, row-major, if they depend on the sign.
    limits: Vec<Limits>,
    /// The same as binary32 numbers, if they do not.
    alike: Option<Vec<f32>>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(tensor: &'a BlockTensor) -> Self {
        let of = Limits::of(tensor.format().element);
        let Some(largest) = of.of_both_signs() else {
            return Self { tensor, limits: tensor.limits(), alike: None };
        };
        let scales = tensor.scale_values();
        let mut alike = vec![0.0; scales.len()];
        of_scales(largest, tensor.tensor_scale().unwrap_or(1.0), &scales, &mut alike);
        Self { tensor, limits: Vec::new(), alike: Some(alike) }
    }

    /// The largest magnitudes there are for the images `y`, of which the first is element (i, j).
    pub(super) fn limits(&self, i: usize, j: usize, y: &[f32], out: &mut [f32]) {
        let ((down, width), right) = (self.tensor.block(), self.tensor.blocks().1);
        let blocks = i / down * right..(i / down + 1) * right;
        let alike = self.alike.as_ref().map(|alike| &alike[blocks.clone()]);
        if let (Some(alike), 1) = (alike, width) {
            return out.copy_from_slice(&alike[j..j + out.len()]);
        }
        let (mut at, mut block) = (0, j / width);
        while at < out.len() {
            let end = ((block + 1) * width - j).min(out.len());
            match alike {
                Some(alike) => out[at..end].fill(alike[block]),
                None => self.limits[blocks.start + block].of_images(&y[at..end], &mut out[at..end]),
            }
            (at, block) = (end, block + 1);
        }
    }
}
