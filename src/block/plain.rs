//! The plain definition of block quantization: element by element through the rounding core, block
//! by block from the formulas of [`scale`](crate::block::scale). The fast kernels are tested against it.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::element::encode_quotient;
use super::{Axis, BlockFormat, Elements, decode_element, encode_element};
use crate::block::scale::{FourOverSix, ScaleRule, TensorFactors, is_largest, power_code};
use crate::random::Philox;
use crate::round::{Overflow, Rounding};
use crate::slice::{View, checked_count};

/// A matrix in a block format, a number a code.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlainBlocks {
    /// The format.
    pub format: BlockFormat,
    /// Rows and columns of the matrix.
    pub shape: (usize, usize),
    /// Rows and columns of a block; blocks at the lower and right edge may be smaller.
    pub block: (usize, usize),
    /// The elements' codes, row-major.
    pub codes: Vec<u16>,
    /// The blocks' scale codes, row-major over blocks.
    pub scales: Vec<u32>,
    /// The tensor's scale, if the format has one: what decoded values are multiplied by last.
    pub tensor_scale: Option<f32>,
}

impl PlainBlocks {
    /// A matrix of these parts, without a tensor scale. `shape` and `block` are the rows and columns of the
    /// matrix and of a block.
    pub const fn new(
        format: BlockFormat,
        shape: (usize, usize),
        block: (usize, usize),
        codes: Vec<u16>,
        scales: Vec<u32>,
    ) -> Self {
        Self { format, shape, block, codes, scales, tensor_scale: None }
    }

    /// The same with a tensor scale, or without one.
    #[must_use]
    pub const fn with_tensor_scale(mut self, tensor_scale: Option<f32>) -> Self {
        self.tensor_scale = tensor_scale;
        self
    }

    /// Quantizes a matrix that a product sums along `axis`; the definition of
    /// [`BlockTensor::quantize`](super::BlockTensor::quantize).
    ///
    /// ```
    /// use exmy::block::{Axis, PlainBlocks};
    /// use exmy::round::Rounding;
    /// use exmy::slice::View;
    ///
    /// let scale = |rule: &str, amax: f32| {
    ///     let format = format!("mxfp4@{rule}").parse().unwrap();
    ///     let x = [0.0, amax];
    ///     let x = View::new(&x, 1, 2);
    ///     PlainBlocks::quantize(x, Axis::Cols, format, Rounding::TiesToEven).scales[0]
    /// };
    /// assert_eq!(["floor", "even", "rceil", "ceil"].map(|rule| scale(rule, 6.5)), [127, 127, 128, 128]);
    /// assert_eq!(["floor", "even", "rceil", "ceil"].map(|rule| scale(rule, 7.0)), [127, 128, 128, 128]);
    /// assert_eq!(["floor", "even", "rceil", "ceil"].map(|rule| scale(rule, 4.5)), [127, 127, 127, 128]);
    /// assert_eq!(scale("rceil", f32::INFINITY), 255); // NaN, and so is the block
    /// ```
    ///
    /// # Panics
    /// As there.
    pub fn quantize(
        x: View<'_, f32>,
        axis: Axis,
        format: BlockFormat,
        by: impl Into<Elements>,
    ) -> Self {
        Self::by_rule(x, axis, format, by.into(), None)
    }

    /// Quantizes a matrix whose largest magnitude the caller says; the definition of
    /// [`BlockTensor::quantize_with_amax`](super::BlockTensor::quantize_with_amax), which has an example.
    ///
    /// # Panics
    /// As there.
    pub fn quantize_with_amax(
        x: View<'_, f32>,
        axis: Axis,
        format: BlockFormat,
        by: impl Into<Elements>,
        amax: f32,
    ) -> Self {
        assert!(format.tensor_scale, "{format} has no scale of the tensor");
        assert!(is_largest(amax), "a largest magnitude is finite and not negative, found {amax}");
        Self::by_rule(x, axis, format, by.into(), Some(amax))
    }

    fn by_rule(
        x: View<'_, f32>,
        axis: Axis,
        format: BlockFormat,
        by: Elements,
        amax: Option<f32>,
    ) -> Self {
        checked_count((x.rows(), x.cols()));
        let format = format.checked();
        let choices = format.profile.choices(format.rule);
        let (Elements { rounding, overflow, .. }, random) = (by, by.words());
        let how = How { format, rounding, overflow };
        let whole = || Block::new(x, axis, 0..x.rows(), 0..x.cols());
        let amax = format.tensor_scale.then(|| amax.unwrap_or_else(|| whole().amax()));
        let bound = match format.rule {
            ScaleRule::FourOverSix(four) => four.bound.value(),
            _ => format.scale.max().to_f32(),
        };
        let BlockFormat { element, scale, rule, .. } = format;
        let factors = TensorFactors::with_order(amax, element, scale, bound, choices.order);
        let quantize = |mut block: Block| {
            let largest = block.amax();
            if choices.flushes(largest) {
                block.values.iter_mut().for_each(|x| *x = 0.0_f32.copysign(*x));
            }
            let code = match rule {
                ScaleRule::FourOverSix(four) => {
                    return how.better(four, &block, &factors, random);
                }
                ScaleRule::Nearest => how.scale(factors.unrounded(largest)),
                ScaleRule::MaxAbs => how.scale(block.finite_amax()),
                _ => power_code(largest, element, scale, rule, &choices),
            };
            (code, how.codes(&block, code, &factors, random))
        };
        let tensor_scale = format.tensor_scale.then_some(factors.decode);
        Self { tensor_scale, ..Self::by_blocks(x, axis, format, quantize) }
    }

    /// Quantizes a matrix with scales of the caller's own: `scale` sees the elements of a block, the
    /// reduction axis running fastest, and its answer is rounded to the nearest value of the scale
    /// format, ties to even, saturating. Elements are `x / scale`, exact and then rounded once,
    /// NaN if the scale is NaN and zero if it is zero. The format's rule and profile are not asked.
    ///
    /// ```
    /// use exmy::block::{Axis, BlockFormat, PlainBlocks};
    /// use exmy::round::Rounding;
    /// use exmy::slice::View;
    ///
    /// // The second largest magnitude becomes 6: one outlier does not rule the block.
    /// let second = |x: &[f32]| {
    ///     let mut magnitudes: Vec<f32> = x.iter().map(|x| x.abs()).collect();
    ///     magnitudes.sort_by(f32::total_cmp);
    ///     magnitudes[x.len() - 2] / 6.0
    /// };
    /// let format: BlockFormat = "e2m1/4:e4m3".parse()?;
    /// let x = [0.5, -100.0, 1.5, 3.0];
    /// let x = View::new(&x, 1, 4);
    /// let blocks =
    ///     PlainBlocks::quantize_with(x, Axis::Cols, format, Rounding::TiesToEven, second);
    /// assert_eq!(blocks.dequantize(), [0.5, -3.0, 1.5, 3.0]);
    /// # Ok::<(), exmy::block::ParseBlockFormatError>(())
    /// ```
    ///
    /// # Panics
    /// If [`BlockFormat::check`] fails, the format has a tensor scale, or `rounding` is stochastic
    /// with a bit count outside 1..=32.
    pub fn quantize_with(
        x: View<'_, f32>,
        axis: Axis,
        format: BlockFormat,
        by: impl Into<Elements>,
        mut scale: impl FnMut(&[f32]) -> f32,
    ) -> Self {
        let format = format.checked();
        assert!(!format.tensor_scale, "scales of the caller's own have no tensor scale");
        let by = by.into();
        let (Elements { rounding, overflow, .. }, random) = (by, by.words());
        let how = How { format, rounding, overflow };
        Self::by_blocks(x, axis, format, |block| {
            let code = how.scale(scale(&block.values));
            let value = format.scale.decode(code);
            let code_of = |(x, word)| {
                encode_quotient(format.element, rounding, overflow, x, value, word) as u16
            };
            (code, block.with_words(rounding, random).map(code_of).collect())
        })
    }

    /// Goes through the blocks; `quantize` gives a block's scale code and its elements' codes.
    fn by_blocks(
        x: View<'_, f32>,
        axis: Axis,
        format: BlockFormat,
        mut quantize: impl FnMut(Block) -> (u64, Vec<u16>),
    ) -> Self {
        let (rows, cols) = (x.rows(), x.cols());
        let block = axis.block(format.shape, rows, cols);
        // An empty matrix may have any number of rows, of nothing.
        let empty = rows == 0 || cols == 0;
        let grid = if empty { (0, 0) } else { (rows.div_ceil(block.0), cols.div_ceil(block.1)) };
        let mut codes = vec![0; checked_count((rows, cols))];
        let mut scales = Vec::with_capacity(grid.0 * grid.1);
        for (bi, bj) in (0..grid.0).flat_map(|bi| (0..grid.1).map(move |bj| (bi, bj))) {
            let block_rows = bi * block.0..((bi + 1) * block.0).min(rows);
            let block_cols = bj * block.1..((bj + 1) * block.1).min(cols);
            let block = Block::new(x, axis, block_rows, block_cols);
            let places = block.places.clone();
            let (scale, found) = quantize(block);
            for (at, code) in places.into_iter().zip(found) {
                codes[at] = code;
            }
            scales.push(scale as u32);
        }
        Self { format, shape: (rows, cols), block, codes, scales, tensor_scale: None }
    }

    /// The values, row-major; the definition of
    /// [`BlockTensor::dequantize`](super::BlockTensor::dequantize).
    ///
    /// ```
    /// use exmy::block::{BlockFormat, PlainBlocks};
    ///
    /// let ones = vec![2; 33];
    /// let blocks = PlainBlocks::new(BlockFormat::MXFP4, (1, 33), (1, 32), ones, vec![127, 255]);
    /// let values = blocks.dequantize();
    /// assert!(values[31] == 1.0 && values[32].is_nan()); // the second scale is NaN
    /// ```
    pub fn dequantize(&self) -> Vec<f32> {
        let (cols, across) = (self.shape.1, self.shape.1.div_ceil(self.block.1.max(1)));
        let values = self.codes.iter().enumerate().map(|(at, code)| {
            let (i, j) = (at / cols, at % cols);
            let scale = self.scales[i / self.block.0 * across + j / self.block.1];
            let scale = self.format.scale.decode(u64::from(scale));
            let tensor = self.tensor_scale.unwrap_or(1.0);
            decode_element(self.format, u64::from(*code), scale, tensor)
        });
        values.collect()
    }
}

/// The elements of a block, the reduction axis running fastest.
pub(super) struct Block {
    values: Vec<f32>,
    /// Where each lies in the row-major matrix.
    places: Vec<usize>,
    /// Elements along the reduction axis.
    along: usize,
}

impl Block {
    fn new(x: View<'_, f32>, axis: Axis, rows: Range<usize>, cols: Range<usize>) -> Self {
        let matrix = |(i, j)| i * x.cols() + j;
        let mut block = Self::of(Vec::new(), axis, rows, cols, matrix);
        let values = block.places.iter().map(|place| x.at(place / x.cols(), place % x.cols()));
        block.values = values.collect();
        block
    }

    /// The block of these rows and columns and values; `place` says where in the matrix a row and
    /// a column are.
    pub(super) fn of(
        values: Vec<f32>,
        axis: Axis,
        rows: Range<usize>,
        cols: Range<usize>,
        place: impl Fn((usize, usize)) -> usize,
    ) -> Self {
        let (outer, inner) = match axis {
            Axis::Cols => (rows, cols),
            Axis::Rows => (cols, rows),
        };
        let element = |i, j| match axis {
            Axis::Cols => place((i, j)),
            Axis::Rows => place((j, i)),
        };
        let along = inner.len();
        let outer = if along == 0 { 0..0 } else { outer };
        let places = outer.flat_map(|i| inner.clone().map(move |j| (i, j)));
        Self { values, places: places.map(|(i, j)| element(i, j)).collect(), along }
    }

    /// The largest magnitude; NaN if there is one.
    fn amax(&self) -> f32 {
        // As integers, magnitudes order with their bits, infinity above and NaN above that.
        let bits = self.values.iter().map(|x| x.to_bits() & 0x7FFF_FFFF).max();
        f32::from_bits(bits.unwrap_or(0))
    }

    /// The largest finite magnitude; 0 if there is none.
    fn finite_amax(&self) -> f32 {
        let finite = self.values.iter().filter(|x| x.is_finite());
        finite.fold(0.0, |max, x| if x.abs() > max { x.abs() } else { max })
    }

    /// The elements, each with its random word if the mode uses any.
    fn with_words(&self, rounding: Rounding, random: Philox) -> impl Iterator<Item = (f32, u32)> {
        let word = move |at: usize| {
            if rounding.is_stochastic() { random.word(at as u64) } else { 0 }
        };
        self.values.iter().zip(&self.places).map(move |(x, at)| (*x, word(*at)))
    }
}

/// What all blocks are quantized by.
#[derive(Clone, Copy)]
pub(super) struct How {
    pub(super) format: BlockFormat,
    pub(super) rounding: Rounding,
    pub(super) overflow: Overflow,
}

impl How {
    /// The code of the scale nearest `d`.
    fn scale(self, d: f32) -> u64 {
        self.format.scale.encode_f32(d, Rounding::TiesToEven, Overflow::Finite, 0).code
    }

    /// The codes of a block's elements under a scale.
    fn codes(self, block: &Block, scale: u64, factors: &TensorFactors, random: Philox) -> Vec<u16> {
        let Self { format, rounding, overflow } = self;
        let scale = format.scale.decode(scale);
        let code =
            |(x, word)| encode_element(format, rounding, overflow, x, scale, factors, word) as u16;
        block.with_words(rounding, random).map(code).collect()
    }

    /// The better of the two scales of [`FourOverSix`], and the codes under it.
    pub(super) fn better(
        self,
        four: FourOverSix,
        block: &Block,
        factors: &TensorFactors,
        random: Philox,
    ) -> (u64, Vec<u16>) {
        let candidate = |d| {
            let scale = self.scale(d);
            let codes = self.codes(block, scale, factors, random);
            let values: Vec<f32> =
                codes.iter().map(|code| self.format.element.to_f32(u64::from(*code))).collect();
            let value = self.format.scale.to_f32(scale);
            (four.error(&block.values, &values, block.along, value, factors), scale, codes)
        };
        let [six, four] = factors.candidates(block.amax()).map(candidate);
        // Six wins ties, and where an error is NaN.
        let (_, scale, codes) = if four.0 < six.0 { four } else { six };
        (scale, codes)
    }
}
