//! What quantization did to a tensor: noise, saturation, loss, range. [`Statistics`] tells how each
//! figure is defined.

use alloc::vec;
use alloc::vec::Vec;

use super::BlockTensor;
use super::fast::{self, CHUNK, copy_rows, for_each};
use crate::bulk::{Converter, SPAN, decode_into};
use crate::format::{Format, Sign};
use crate::simd::kernel;
use crate::view::View;

/// Lanes of a sum.
const LANES: usize = 16;

/// Figures of a quantized tensor or a part of it.
///
/// Numbers `x` are compared with the values `y` they became. Sums run in `f64` over
/// written lanes: a row is taken in spans of 2048 elements, element `j` of a span is added to lane
/// `j mod 16`, and the lanes are added by halves; spans are added in order, rows to groups of about
/// 2^15 elements, and groups in order. So the figures do not depend on threads or on the SIMD level.
///
/// An element is *saturated* if its magnitude exceeds the largest one of its sign that its block can
/// express, `largest element * scale * tensor scale`, and its image is not zero. In two's complement
/// the negative side has one value more, -2 of INT8, unless the overflow policy clamps symmetrically;
/// a stored tensor, which does not hold its policy, counts an element whose image is that value by
/// the wider limit and any other by the symmetric one. An element is *flushed* if it is not
/// zero and its image is: judged by the decoded value, since a block whose scale rounds to zero
/// holds large codes that all mean zero. Infinities and NaNs, before or after, are counted and left
/// out of everything else.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Number of elements.
    pub count: u64,
    /// Elements that were infinite or NaN.
    pub non_finite: u64,
    /// Elements that became infinite or NaN, or were it.
    pub lost: u64,
    /// Elements beyond the largest magnitude of their block.
    pub saturated: u64,
    /// Elements that became zero and were not.
    pub flushed: u64,
    /// The largest finite magnitude; of numbers of `f64` rounded to `f32`.
    pub amax: f32,
    /// The largest difference between an element and its image.
    pub max_error: f64,
    /// Sum of the squares of the elements.
    pub signal: f64,
    /// Sum of the squares of the differences.
    pub noise: f64,
}

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
    /// use exmy::bulk::{Cast, Converter};
    /// use exmy::format::Format;
    /// use exmy::view::View;
    ///
    /// let x = [448.0_f32, 449.0, 1e-4, 0.0, f32::NAN];
    /// let cast = Converter::from(Cast::new(Format::E4M3FN));
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
    /// use exmy::bulk::{Cast, Converter};
    /// use exmy::format::Format;
    ///
    /// let cast = Converter::from(Cast::new(Format::F32));
    /// let found = Statistics::of_doubles(&[1.0 + 2.0_f64.powi(-30), 1e-60], &cast);
    /// // What `f32` cannot tell from its own numbers is lost all the same.
    /// assert_eq!((found.max_error, found.flushed), (2.0_f64.powi(-30), 1));
    /// ```
    pub fn of_doubles(x: &[f64], cast: &Converter) -> Self {
        let of = Limits::of_converter(cast);
        let (mut all, mut y, mut limits) = (Self::default(), [0.0; SPAN], [0.0; SPAN]);
        for (x, at) in x.chunks(SPAN).zip((cast.start()..).step_by(SPAN)) {
            let (y, limits) = (&mut y[..x.len()], &mut limits[..x.len()]);
            cast.starting_at(at).fake_quantize_into(x, y);
            of.of_numbers(x, limits);
            all = all.and(&Self::of_span(x, y, limits));
        }
        all
    }

    /// The sum of all rows, in groups. `image` writes what became of consecutive elements, the first
    /// of which has the given index; `limits` gets row and column of the first of some elements of a
    /// row, them and their images, and writes the largest magnitude there is for each. Both are
    /// called for at most [`SPAN`] elements, so that nothing here grows with the matrix.
    fn of_groups(
        x: View<'_, f32>,
        image: impl Fn(usize, &[f32], &mut [f32]) + Sync + Send,
        limits: impl Fn(usize, usize, &[f32], &[f32], &mut [f64]) + Sync + Send,
    ) -> Self {
        let (rows, cols) = (x.rows(), x.cols());
        if rows == 0 || cols == 0 {
            return Self::default();
        }
        let step = CHUNK.div_ceil(cols);
        let mut groups = vec![Self::default(); rows.div_ceil(step)];
        for_each(groups.iter_mut().enumerate().collect(), |(group, sum): (usize, &mut Self)| {
            let (mut from, mut to, mut limit) = ([0.0; SPAN], [0.0; SPAN], [0.0; SPAN]);
            let end = ((group + 1) * step).min(rows);
            // Rows that fit a span are imaged together, longer ones span by span.
            let together = (SPAN / cols).max(1);
            for i0 in (group * step..end).step_by(together) {
                let part = x.rows_range(i0..(i0 + together).min(end));
                let mut long = Self::default();
                for j0 in (0..cols).step_by(SPAN) {
                    let part = part.cols_range(j0..(j0 + SPAN).min(cols));
                    let (width, count) = (part.cols(), part.rows() * part.cols());
                    let (from, to) = (&mut from[..count], &mut to[..count]);
                    copy_rows(part, width, from);
                    image(i0 * cols + j0, from, to);
                    for (i, (x, y)) in from.chunks(width).zip(to.chunks(width)).enumerate() {
                        let limit = &mut limit[..width];
                        limits(i0 + i, j0, x, y, limit);
                        let span = Self::of_span(x, y, limit);
                        let into = if cols > SPAN { &mut long } else { &mut *sum };
                        *into = into.and(&span);
                    }
                }
                if cols > SPAN {
                    *sum = sum.and(&long);
                }
            }
        });
        groups.iter().fold(Self::default(), |all, group| all.and(group))
    }

    /// The figures of one row; `limits` writes the largest magnitude there is for each of some images.
    fn of_row(x: &[f32], y: &[f32], limits: impl Fn(&[f32], &mut [f64])) -> Self {
        let (mut all, mut limit) = (Self::default(), [0.0; SPAN]);
        for (x, y) in x.chunks(SPAN).zip(y.chunks(SPAN)) {
            let limit = &mut limit[..x.len()];
            limits(y, limit);
            all = all.and(&Self::of_span(x, y, limit));
        }
        all
    }

    /// The figures of at most [`SPAN`] elements, their images and the largest magnitude of each.
    fn of_span<T: Element>(x: &[T], y: &[T], limits: &[f64]) -> Self {
        let lanes = compare(x, y, limits);
        let of_all = |counts: [u32; LANES]| counts.iter().map(|count| u64::from(*count)).sum();
        Self {
            count: x.len() as u64,
            non_finite: of_all(lanes.non_finite),
            lost: of_all(lanes.lost),
            saturated: of_all(lanes.saturated),
            flushed: of_all(lanes.flushed),
            amax: lanes.amax.iter().fold(0.0_f64, |max, x| max.max(*x)) as f32,
            max_error: lanes.max_error.iter().fold(0.0, |max, x| max.max(*x)),
            signal: sum(lanes.signal),
            noise: sum(lanes.noise),
        }
    }

    /// The figures of two parts together; the sums of `self` stand before those of `other`.
    ///
    /// ```
    /// use exmy::block::Statistics;
    /// use exmy::bulk::{Cast, Converter};
    /// use exmy::format::Format;
    /// use exmy::view::View;
    ///
    /// let of = |x: &[f32]| {
    ///     let cast = Converter::from(Cast::new(Format::E2M1));
    ///     Statistics::of_cast(View::new(x, 1, x.len()), &cast)
    /// };
    /// let both = of(&[7.0, 0.2]).and(&of(&[-9.0]));
    /// assert_eq!((both.count, both.saturated, both.flushed), (3, 2, 1));
    /// assert_eq!((both.amax, both.max_error), (9.0, 3.0));
    /// ```
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            count: self.count + other.count,
            non_finite: self.non_finite + other.non_finite,
            lost: self.lost + other.lost,
            saturated: self.saturated + other.saturated,
            flushed: self.flushed + other.flushed,
            amax: self.amax.max(other.amax),
            max_error: self.max_error.max(other.max_error),
            signal: self.signal + other.signal,
            noise: self.noise + other.noise,
        }
    }

    /// The ratio of signal to quantization noise in decibels: infinite without noise, NaN without
    /// either.
    ///
    /// ```
    /// use exmy::block::Statistics;
    /// use exmy::bulk::{Cast, Converter};
    /// use exmy::format::Format;
    /// use exmy::view::View;
    ///
    /// let of = |x: &[f32]| {
    ///     let cast = Converter::from(Cast::new(Format::E2M1));
    ///     Statistics::of_cast(View::new(x, 1, x.len()), &cast)
    /// };
    /// assert_eq!(of(&[8.0]).sqnr_db(), 10.0 * 16.0_f64.log10()); // 64 to 4
    /// assert_eq!(of(&[6.0]).sqnr_db(), f64::INFINITY);
    /// assert!(of(&[0.0]).sqnr_db().is_nan());
    /// ```
    #[expect(clippy::disallowed_methods, reason = "a figure to print; no bit of a result uses it")]
    #[cfg(feature = "std")]
    pub fn sqnr_db(&self) -> f64 {
        10.0 * (self.signal / self.noise).log10()
    }

    /// The share of saturated elements; 0 of none.
    ///
    /// ```
    /// use exmy::block::Statistics;
    /// use exmy::bulk::{Cast, Converter};
    /// use exmy::format::Format;
    /// use exmy::view::View;
    ///
    /// let of = |x: &[f32]| {
    ///     let cast = Converter::from(Cast::new(Format::E2M1));
    ///     Statistics::of_cast(View::new(x, 1, x.len()), &cast)
    /// };
    /// assert_eq!(of(&[6.0, 6.5, 7.0, f32::INFINITY]).share_saturated(), 0.5); // infinity is not counted
    /// assert_eq!(Statistics::default().share_saturated(), 0.0);
    /// ```
    pub fn share_saturated(&self) -> f64 {
        share(self.saturated, self.count)
    }

    /// The share of flushed elements; 0 of none.
    ///
    /// ```
    /// use exmy::block::Statistics;
    /// use exmy::bulk::{Cast, Converter};
    /// use exmy::format::Format;
    /// use exmy::view::View;
    ///
    /// let of = |x: &[f32]| {
    ///     let cast = Converter::from(Cast::new(Format::E2M1));
    ///     Statistics::of_cast(View::new(x, 1, x.len()), &cast)
    /// };
    /// assert_eq!(of(&[0.25, 0.3, 0.0, -0.1]).share_flushed(), 0.5); // zeros lose nothing; 0.25 is a tie
    /// ```
    pub fn share_flushed(&self) -> f64 {
        share(self.flushed, self.count)
    }
}

fn share(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

/// Numbers that `f64` holds.
trait Element: Copy + Into<f64> {}

impl Element for f32 {}

impl Element for f64 {}

/// The figures of every sixteenth element.
#[derive(Default)]
struct Lanes {
    non_finite: [u32; LANES],
    lost: [u32; LANES],
    saturated: [u32; LANES],
    flushed: [u32; LANES],
    amax: [f64; LANES],
    max_error: [f64; LANES],
    signal: [f64; LANES],
    noise: [f64; LANES],
}

impl Lanes {
    /// One element more in lane `l`. What is left out adds zeros, which changes no sum of squares and
    /// no maximum of magnitudes.
    #[inline(always)]
    fn add(&mut self, l: usize, x: f64, y: f64, limit: f64) {
        let (was, is) = (x.is_finite(), y.is_finite());
        let counts = was & is;
        let (x, y) = (if counts { x } else { 0.0 }, if counts { y } else { 0.0 });
        let error = (x - y).abs();
        self.non_finite[l] += u32::from(!was);
        self.lost[l] += u32::from(!counts);
        self.saturated[l] += u32::from((x.abs() > limit) & (y != 0.0));
        self.flushed[l] += u32::from((x != 0.0) & (y == 0.0));
        self.amax[l] = if x.abs() > self.amax[l] { x.abs() } else { self.amax[l] };
        self.max_error[l] = if error > self.max_error[l] { error } else { self.max_error[l] };
        self.signal[l] += x * x;
        self.noise[l] += error * error;
    }
}

kernel! {
    /// Element `j` is added to lane `j mod 16`.
    fn compare<'a, T: Element>(x: &'a [T], y: &'a [T], limits: &'a [f64]) -> Lanes {
        let mut lanes = Lanes::default();
        let (x, y, limits) = (x.as_chunks(), y.as_chunks(), limits.as_chunks());
        for ((x, y), limits) in x.0.iter().zip(y.0).zip(limits.0) {
            let (x, y, limits): (&[T; LANES], &[T; LANES], &[f64; LANES]) = (x, y, limits);
            for l in 0..LANES {
                lanes.add(l, x[l].into(), y[l].into(), limits[l]);
            }
        }
        for (l, ((x, y), limit)) in x.1.iter().zip(y.1).zip(limits.1).enumerate() {
            lanes.add(l, (*x).into(), (*y).into(), *limit);
        }
        lanes
    }
}

/// Lanes added by halves: lane `i` and lane `i + 8`, then 4, 2, 1.
fn sum(mut lanes: [f64; LANES]) -> f64 {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// The largest magnitudes of a format or a block, of positive and of negative elements.
#[derive(Clone, Copy)]
struct Limits {
    largest: f64,
    /// The same, but for two's complement.
    lowest: f64,
}

impl Limits {
    fn of(format: Format) -> Self {
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

    fn of_converter(cast: &Converter) -> Self {
        let Self { largest, lowest } = Self::of(cast.format());
        Self { largest, lowest: if cast.rules().overflow.saturates() { largest } else { lowest } }
    }

    /// Of numbers by their own sign.
    fn of_numbers<T: Element>(self, x: &[T], out: &mut [f64]) {
        let Self { largest, lowest } = self;
        for (limit, x) in out.iter_mut().zip(x) {
            *limit = if (*x).into() < 0.0 { lowest } else { largest };
        }
    }

    /// Of a tensor's block of this scale; `self` are those of its elements.
    fn of_block(self, tensor: &BlockTensor, scale: f32) -> Self {
        let (scale, tensor_scale) = (f64::from(scale), tensor.tensor_scale().unwrap_or(1.0));
        let Self { largest, lowest } = self;
        let limit = |largest: f64| (largest * scale * f64::from(tensor_scale)).abs();
        Self { largest: limit(largest), lowest: limit(lowest) }
    }

    /// Of elements whose images are `y`; only the lowest element brings one near `lowest`.
    fn of_images(self, y: &[f32], out: &mut [f64]) {
        let Self { largest, lowest } = self;
        if largest == lowest {
            return out.fill(largest);
        }
        for (out, y) in out.iter_mut().zip(y) {
            let near_lowest = f64::from(*y).abs() > 0.5 * (largest + lowest);
            *out = if near_lowest { lowest } else { largest };
        }
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
    /// use exmy::random::{Philox, Stream};
    /// use exmy::round::{Overflow, Rounding};
    /// use exmy::view::View;
    ///
    /// // 2^-20 is less than half of what E2M1 times E4M3 can express beside 1; its block is lost.
    /// let mut x = [0.0_f32; 32];
    /// (x[0], x[16]) = (1.0, 1.0 / 1_048_576.0);
    /// let x = View::new(&x, 1, 32);
    /// let random = Philox::new(0, Stream::new("unused"));
    /// let (rounding, overflow) = (Rounding::Rne, Overflow::Finite);
    /// let tensor =
    ///     BlockTensor::quantize(x, Axis::Cols, BlockFormat::NVFP4, rounding, overflow, random);
    /// let found = tensor.statistics(x);
    /// assert_eq!((found.count, found.flushed, found.saturated), (32, 1, 0));
    /// assert_eq!(tensor.block_statistics(x)[1].flushed, 1);
    /// ```
    pub fn statistics(&self, x: View<'_, f32>) -> Statistics {
        self.check(x);
        let (decoder, scales) = (fast::Decoder::new(self), self.scale_values());
        let of = Limits::of(self.format().element);
        let (right, width) = (self.blocks().1, self.block().1);
        let image = |at: usize, _: &[f32], to: &mut [f32]| decoder.values(at, to);
        Statistics::of_groups(x, image, |i, j, _, y, out| {
            let scales_of_row = &scales[i / self.block().0 * right..][..right];
            let (mut at, mut block) = (0, j / width);
            while at < out.len() {
                let end = ((block + 1) * width - j).min(out.len());
                of.of_block(self, scales_of_row[block]).of_images(&y[at..end], &mut out[at..end]);
                (at, block) = (end, block + 1);
            }
        })
    }

    /// The same of each block, row-major over blocks; within a block, sums run over its rows one
    /// after the other, each as [`statistics`](Self::statistics) sums a row.
    ///
    /// ```
    /// use exmy::block::Axis;
    /// use exmy::quantizer::Quantizer;
    /// use exmy::random::{Philox, Stream};
    /// use exmy::view::View;
    ///
    /// let random = Philox::new(0, Stream::new("unused"));
    /// let x = View::new(&[7.9_f32, 1.0, 0.1, 0.1, 0.3], 1, 5);
    /// let tensor = "e2m1/2:e8m0".parse::<Quantizer>().unwrap().quantize(x, Axis::Cols, random).unwrap();
    /// let blocks = tensor.block_statistics(x);
    /// assert_eq!(blocks.iter().map(|block| block.count).collect::<Vec<_>>(), [2, 2, 1]); // ragged
    /// assert_eq!(blocks.iter().map(|block| block.saturated).collect::<Vec<_>>(), [1, 2, 0]); // 0.1 is 6.4 of the scale
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
                let row = Statistics::of_row(x, y, |y, out| limits[at].of_images(y, out));
                blocks[at] = blocks[at].and(&row);
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
