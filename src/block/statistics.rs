//! What quantization did to a tensor: noise, saturation, loss, range. [`Statistics`] tells how each
//! figure is defined.

use alloc::vec;
use alloc::vec::Vec;

use super::BlockTensor;
use super::fast::{CHUNK, copy_rows, for_each};
use crate::bulk::{Converter, SPAN};
use crate::format::{Format, Sign};
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
    /// The largest finite magnitude.
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
        let Limits { largest, lowest } = Limits::of(cast.format());
        let lowest = if cast.rules().overflow.saturates() { largest } else { lowest };
        let limit = |_, x, _| if x < 0.0 { lowest } else { largest };
        Self::of_groups(x, |i, from, to| {
            cast.starting_at(cast.start() + (i * x.cols()) as u64).fake_quantize_into(from, to);
            Self::of_row(from, to, limit)
        })
    }

    /// The sum of all rows, in groups; `of_row` gets a row's index, the row and room for its image.
    fn of_groups(
        x: View<'_, f32>,
        of_row: impl Fn(usize, &[f32], &mut [f32]) -> Self + Sync + Send,
    ) -> Self {
        let (rows, cols) = (x.rows(), x.cols());
        let step = CHUNK.div_ceil(cols.max(1));
        let mut groups = vec![Self::default(); rows.div_ceil(step)];
        for_each(groups.iter_mut().enumerate().collect(), |(group, sum): (usize, &mut Self)| {
            let (mut from, mut to) = (vec![0.0; cols], vec![0.0; cols]);
            for i in group * step..((group + 1) * step).min(rows) {
                copy_rows(x.rows_range(i..i + 1), cols, &mut from);
                *sum = sum.and(&of_row(i, &from, &mut to));
            }
        });
        groups.iter().fold(Self::default(), |all, group| all.and(group))
    }

    /// The figures of one row; `limit` gets an element's column, the element and its image, and gives
    /// the largest magnitude there is.
    fn of_row(x: &[f32], y: &[f32], limit: impl Fn(usize, f64, f64) -> f64) -> Self {
        let mut all = Self::default();
        for (i, (x, y)) in x.chunks(SPAN).zip(y.chunks(SPAN)).enumerate() {
            let (mut span, mut signal, mut noise) = (Self::default(), [0.0; LANES], [0.0; LANES]);
            for (j, (x, y)) in x.iter().zip(y).enumerate() {
                let (signal, noise) = (&mut signal[j % LANES], &mut noise[j % LANES]);
                let limit = limit(i * SPAN + j, f64::from(*x), f64::from(*y));
                span.add(*x, *y, limit, signal, noise);
            }
            (span.signal, span.noise) = (sum(signal), sum(noise));
            all = all.and(&span);
        }
        all
    }

    /// One element more.
    fn add(&mut self, x: f32, y: f32, limit: f64, signal: &mut f64, noise: &mut f64) {
        self.count += 1;
        if !x.is_finite() || !y.is_finite() {
            self.non_finite += u64::from(!x.is_finite());
            self.lost += 1;
            return;
        }
        let (x64, error) = (f64::from(x), (f64::from(x) - f64::from(y)).abs());
        self.saturated += u64::from(x64.abs() > limit && y != 0.0);
        self.flushed += u64::from(x != 0.0 && y == 0.0);
        self.amax = self.amax.max(x.abs());
        self.max_error = self.max_error.max(error);
        *signal += x64 * x64;
        *noise += error * error;
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
        let largest = f64::from(format.max().to_f32());
        let lowest = match format.sign() {
            Sign::TwosComplement => f64::from(format.to_f32(format.min_code())).abs(),
            _ => largest,
        };
        Self { largest, lowest }
    }

    /// Of an element whose image is `y`, which only the lowest element brings near `lowest`.
    fn of_image(self, y: f64) -> f64 {
        let Self { largest, lowest } = self;
        if y.abs() > 0.5 * (largest + lowest) { lowest } else { largest }
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
        let (y, limits) = (self.dequantize(), self.limits());
        let (cols, right, block) = (self.cols(), self.blocks().1, self.block());
        Statistics::of_groups(x, |i, x, _| {
            let limits = &limits[i / block.0 * right..];
            Statistics::of_row(x, &y[i * cols..(i + 1) * cols], |j, _, y| {
                limits[j / block.1].of_image(y)
            })
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
        let mut row = vec![0.0; cols];
        for i in 0..self.rows() {
            copy_rows(x.rows_range(i..i + 1), cols, &mut row);
            let y = &y[i * cols..(i + 1) * cols];
            let width = self.block().1;
            for (bj, (x, y)) in row.chunks(width).zip(y.chunks(width)).enumerate() {
                let at = i / self.block().0 * right + bj;
                blocks[at] =
                    blocks[at].and(&Statistics::of_row(x, y, |_, _, y| limits[at].of_image(y)));
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
        let format = self.format();
        let of = Limits::of(format.element);
        let tensor = f64::from(self.tensor_scale().unwrap_or(1.0));
        let limits = |scale: u32| {
            let scale = f64::from(format.scale.to_f32(u64::from(scale)));
            let limit = |largest: f64| (largest * scale * tensor).abs();
            Limits { largest: limit(of.largest), lowest: limit(of.lowest) }
        };
        self.scales().into_iter().map(limits).collect()
    }
}
