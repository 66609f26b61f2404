//! Block quantization at the speed of memory: the same bits as [`plain`](super::plain).
//!
//! A matrix is cut into chunks of whole blocks ([`sheet`]), which threads take; a chunk is walked in
//! *stretches* of about [`STRETCH`] columns of one band of blocks, so that what the first pass over a
//! stretch (maxima of blocks) brings into the cache is there for the second (elements). Between the
//! two, scales and factors are found for all blocks of the stretch at once. A matrix that is one block
//! is divided after its maximum is known; blocks of whole columns, the shape `row` along the columns,
//! are one chunk and so the work of one thread.
//!
//! What is fast: the rules `floor`, `ceil`, `even`, `rceil` and `nearest` in all orders of operations,
//! with every element format that [`Places`] takes (all of MX and NVFP4), rounded to nearest, ties to
//! even or away, toward zero, or stochastically (variant A up to 24 bits). Other formats, modes and
//! overflow policies go through the integer body of [`grid`] where only values are wanted (profile
//! `ocp`), and else element by element through the definition. So do single blocks whose factor is no
//! finite number: those with a NaN, or whose scale is too small to have a reciprocal. Wholly left to
//! [`PlainBlocks`](super::PlainBlocks) are the rules `4over6` and `max-abs` and the profiles
//! `microxcaling-torch` and those that flush.

mod decode;
mod encode;
mod numbers;
mod sheet;

pub(super) use decode::dequantize;
pub(super) use encode::encode;
pub(crate) use sheet::{CHUNK, Chunk, Sheet, common_multiple, copy_rows, for_each, largest_in};

use alloc::vec;
use alloc::vec::Vec;

use numbers::{Finder, Numbers};

use super::kernel::{self, Away, Codes, Elements, Even, Places, Random, Step, Values, Zero};
use super::{Axis, BlockFormat, decode_element, encode_element};
use crate::bulk::grid::{self, Common, Grid};
use crate::bulk::memory::Traffic;
use crate::bulk::{Cast, Converter, SPAN};
use crate::format::Value;
use crate::minifloat::Bits;
use crate::round::{Overflow, Rounding};
use crate::scale::{Elements as ElementRounding, Profile, ScaleRule, TensorFactors, Zeros};

/// The longest piece of a row that is written at once.
pub(crate) const STRETCH: usize = 4 * SPAN;

/// A block format made ready for a matrix of one size.
pub(crate) struct Blocks {
    pub(crate) format: BlockFormat,
    rounding: Rounding,
    overflow: Overflow,
    /// Rows and columns of a block.
    pub(crate) side: (usize, usize),
    /// The largest magnitude of every block, as bits, where it is known before the walk.
    amax: Option<u32>,
    finder: Finder,
    scale: Converter,
    places: Option<Places>,
    grid: Option<Grid>,
    /// How the memory behind a matrix of that size is treated.
    pub(crate) traffic: Traffic,
}

/// Rows of a part of a matrix that is one block; eight rows of codes are whole bytes.
fn part_rows(cols: usize) -> usize {
    CHUNK.div_ceil(cols.max(1)).next_multiple_of(8)
}

/// Elements of a row that lie in whole blocks, or all in one.
pub(crate) struct Part<'a> {
    /// How many elements share a number: 1, or any if there is one number only.
    width: usize,
    factors: &'a [f32],
    scales: &'a [f32],
    /// What values are multiplied by first: the scales, unless the definition has another order.
    images: &'a [f32],
    /// What they are multiplied by last.
    decode: f32,
    /// A random word an element; empty unless the mode is stochastic.
    words: &'a [u32],
    of: &'a TensorFactors,
}

impl Blocks {
    /// # Panics
    /// If [`BlockFormat::check`] fails or the mode is stochastic with a bit count outside 1..=32.
    #[track_caller]
    pub(crate) fn new(
        format: BlockFormat,
        rounding: Rounding,
        overflow: Overflow,
        axis: Axis,
        (rows, cols): (usize, usize),
    ) -> Self {
        let format = format.checked();
        if let Rounding::Stochastic { bits, .. } = rounding {
            assert!((1..=32).contains(&bits), "stochastic rounding takes 1 to 32 random bits");
        }
        let (power, choices) = (format.rule.is_power(), format.profile.choices(format.rule));
        let zeros = match choices.zeros {
            Zeros::Signed => Some((false, false)),
            // Where a product underflows, its zero would become positive, though its input is none.
            Zeros::PositiveInput if power => None,
            Zeros::PositiveInput => Some((true, false)),
            Zeros::Positive => Some((true, true)),
        };
        let places =
            zeros.and_then(|zeros| Places::new(format.element, rounding, overflow, !power, zeros));
        // The grid's scales are powers of two from 2^-127 on, its zeros and orders those of `ocp`.
        let grid = format.profile == Profile::Ocp
            && (!power || (format.scale.man_bits() == 0 && format.scale.emin() >= -127));
        Self {
            format,
            rounding,
            overflow,
            side: axis.block(format.shape, rows, cols),
            amax: None,
            finder: Finder::new(format),
            scale: Converter::from(Cast::new(format.scale).with_overflow(Overflow::Finite)),
            places,
            grid: grid.then(|| Grid::new(format.element, rounding, overflow)).flatten(),
            traffic: Traffic::of_bytes(rows * cols * 2 * size_of::<f32>(), true),
        }
    }

    /// Whether the passes know the format at all; if not, the whole matrix is left to
    /// [`PlainBlocks`](super::PlainBlocks).
    pub(crate) fn know(format: BlockFormat) -> bool {
        let choices = format.profile.choices(format.rule);
        let chosen = matches!(format.rule, ScaleRule::FourOverSix(_) | ScaleRule::MaxAbs);
        !chosen && !choices.flush && choices.elements == ElementRounding::Once
    }

    /// Whether element (i, j) uses a random word.
    pub(crate) fn is_stochastic(&self) -> bool {
        self.rounding.is_stochastic()
    }

    /// Columns of a stretch: whole blocks, at least one. The elements of a stretch of blocks along
    /// the rows, before and after, fit the first-level cache.
    fn stretch(&self) -> usize {
        let whole = self.side.0 == 1 && self.traffic == Traffic::Cached;
        let wanted = if whole { STRETCH } else { SPAN };
        (wanted / self.side.1).max(1) * self.side.1
    }

    /// Whether a matrix is one block and worth dividing all the same.
    pub(crate) fn is_one(&self, (rows, cols): (usize, usize)) -> bool {
        self.side.0 >= rows && self.side.1 >= cols && rows > part_rows(cols)
    }

    /// A matrix that [is one block](Self::is_one) as several, so that threads can share it: with the
    /// same largest magnitude, `amax` as bits, they have the same scale. Others stay as they are.
    pub(crate) fn divided(self, (rows, cols): (usize, usize), amax: Option<u32>) -> Self {
        if !self.is_one((rows, cols)) {
            return self;
        }
        Self { side: (part_rows(cols), cols), amax, ..self }
    }

    /// The factors of a tensor of the given largest magnitude, as bits, which one without a scale of
    /// its own does without.
    pub(crate) fn factors(&self, amax: Option<u32>) -> TensorFactors {
        let BlockFormat { element, scale, rule, profile, tensor_scale, .. } = self.format;
        let amax = amax.filter(|_| tensor_scale).map(f32::from_bits);
        let bound = scale.max().to_f32();
        TensorFactors::with_order(amax, element, scale, bound, profile.choices(rule).order)
    }

    /// Writes the values of the elements `x`.
    pub(crate) fn values(&self, part: &Part<'_>, x: &[f32], out: &mut [f32]) {
        let Some(places) = &self.places else { return self.general_values(part, x, out) };
        match self.rounding {
            Rounding::Rna => part.pass::<Values<Away>>(places, x, out),
            Rounding::Rtz => part.pass::<Values<Zero>>(places, x, out),
            Rounding::Stochastic { .. } => part.pass::<Values<Random>>(places, x, out),
            _ => part.pass::<Values<Even>>(places, x, out),
        }
        part.hard(x, out, |part, x, out| self.general_values(part, x, out));
    }

    /// Writes the codes of the elements `x`.
    pub(crate) fn codes<C: Bits>(&self, part: &Part<'_>, x: &[f32], out: &mut [C]) {
        let Some(places) = &self.places else { return self.general_codes(part, x, out) };
        match self.rounding {
            Rounding::Rna => part.pass::<Codes<Away, C>>(places, x, out),
            Rounding::Rtz => part.pass::<Codes<Zero, C>>(places, x, out),
            Rounding::Stochastic { .. } => part.pass::<Codes<Random, C>>(places, x, out),
            _ => part.pass::<Codes<Even, C>>(places, x, out),
        }
        part.hard(x, out, |part, x, out| self.general_codes(part, x, out));
    }

    /// [`values`](Self::values) for all formats, modes and scales.
    fn general_values(&self, part: &Part<'_>, x: &[f32], out: &mut [f32]) {
        let of = part.of;
        // Setting up the passes is not worth it for a few elements of a column.
        let grid = self.grid.as_ref().filter(|_| x.len() >= 16);
        let Some(grid) = grid else {
            let image = |code, scale| decode_element(self.format, code, scale, of.decode);
            return self.elements(part, x, out, image);
        };
        out.copy_from_slice(x);
        let mut scales = vec![0.0; x.len()];
        let scales = part.spread(part.scales, &mut scales);
        if self.format.rule.is_power() {
            match part.words {
                [] => grid::shifted(grid, scales, out),
                words => grid::shifted_stochastic(grid, words, scales, out),
            }
            return kernel::one_nan(out);
        }
        let common = Common { largest: of.largest, decode: of.decode };
        let factors: Vec<f32> = scales.iter().map(|scale| of.factor(*scale)).collect();
        let factors = &factors[..];
        match part.words {
            [] => grid::divided(grid, common, factors, scales, out),
            words => grid::divided_stochastic(grid, common, words, factors, scales, out),
        }
        kernel::one_nan(out);
    }

    /// [`codes`](Self::codes) for all formats, modes and scales.
    fn general_codes<C: Bits>(&self, part: &Part<'_>, x: &[f32], out: &mut [C]) {
        self.elements(part, x, out, |code, _| C::from_u64(code));
    }

    /// Element by element through the definition.
    fn elements<T>(
        &self,
        part: &Part<'_>,
        x: &[f32],
        out: &mut [T],
        finish: impl Fn(u64, Value) -> T,
    ) {
        let Self { format, rounding, overflow, .. } = *self;
        for (i, (x, out)) in x.iter().zip(out).enumerate() {
            let scale = Value::from_f32(part.scales[i / part.width]);
            let word = part.words.get(i).copied().unwrap_or(0);
            let code = encode_element(format, rounding, overflow, *x, scale, part.of, word);
            *out = finish(code, scale);
        }
    }
}

impl<'a> Part<'a> {
    fn pass<S: Step>(&self, places: &Places, x: &[f32], out: &mut [S::Out]) {
        let Self { width, factors, images: scales, decode, words, .. } = *self;
        kernel::pass::<S>(places, Elements { x, words, width, factors, scales, decode }, out);
    }

    /// Does `work` for what the passes cannot do.
    fn hard<T>(&self, x: &[f32], out: &mut [T], work: impl Fn(&Part<'_>, &[f32], &mut [T])) {
        if !kernel::any_nan(self.factors) {
            return;
        }
        for (i, factor) in self.factors.iter().enumerate().filter(|(_, factor)| factor.is_nan()) {
            let range = i * self.width..((i + 1) * self.width).min(x.len());
            let part = Part {
                factors: core::slice::from_ref(factor),
                scales: &self.scales[i..=i],
                images: &self.images[i..=i],
                words: self.words.get(range.clone()).unwrap_or_default(),
                ..*self
            };
            work(&part, &x[range.clone()], &mut out[range]);
        }
    }

    /// A number an element.
    fn spread<'b>(&self, numbers: &'b [f32], out: &'b mut [f32]) -> &'b [f32] {
        if self.width == 1 {
            return &numbers[..out.len()];
        }
        kernel::spread(self.width, numbers, out);
        out
    }
}
