//! Block quantization at the speed of memory: the same bits as [`plain`](super::plain).
//!
//! A matrix is cut into chunks of whole blocks ([`walk`]), which threads take. A chunk is walked in
//! *tiles* of about [`TILE_COLS`] columns of one band of blocks, in two passes: maxima of blocks,
//! then elements. What the first brings into the cache is there for the second. Between the two,
//! scales and factors are found for all blocks of the tile at once. Blocks as high as the matrix,
//! such as whole columns or all of it, are divided after their maxima are known. Only where such a
//! scale needs more than a maximum, under `4over6` and for scales of the caller's own, is a band of
//! them the work of one thread.
//!
//! All rules in all orders of operations are fast, with every element format that [`Places`] takes
//! (all of MX and NVFP4). Modes are to nearest, ties to even or away, toward zero, or stochastic of
//! variant A with up to 24 bits. A quotient by a scale that is no power of two takes up to `22 - M`
//! bits. Stochastic modes are not fast in microxcaling's PyTorch profiles. Other formats, modes and
//! overflow policies go through the integer body of [`grid`] where only values are wanted (profile
//! `ocp`), and else element by element through the definition. So do single blocks whose factor is no
//! finite number: those with a NaN, or whose scale is too small to have a reciprocal.

mod decode;
mod encode;
mod four_over_six;
mod own;
mod scales;
mod statistics;
mod walk;

pub(crate) use decode::Decoder;
pub(super) use decode::dequantize;
pub(super) use encode::{Encoded, encode};
pub(crate) use own::{Own, OwnScale};
pub(crate) use walk::{CHUNK, Chunk, WalkedRows, common_multiple, copy_rows, for_each};

use alloc::vec::Vec;

use scales::{Finder, PerBlock};

use super::element::encode_quotient;
use super::kernel::{
    self, Away, Codes, Elements, Even, HalfAway, HalfEven, LogZero, Places, Random, Step, Values,
    Zero,
};
use super::{Axis, BlockFormat, decode_element, encode_element};
use crate::block::scale::{
    BlockProfile, Elements as ElementRounding, ScaleRule, TensorFactors, Zeros, is_largest,
};
use crate::format::Value;
use crate::minifloat::Bits;
use crate::pool::Pooled;
use crate::round::{Overflow, Rounding, Rules};
use crate::slice::grid::{self, Common, Grid};
use crate::slice::memory::Traffic;
use crate::slice::{Converter, SPAN, View, checked_count};
pub(crate) use walk::largest_in;
use walk::maxima;

/// Columns of a tile where blocks are narrower, and the longest piece of a row that is written at once.
pub(crate) const TILE_COLS: usize = 4 * SPAN;

/// A block format prepared for a matrix of one size.
pub(crate) struct Blocks<'a> {
    pub(crate) format: BlockFormat,
    rounding: Rounding,
    overflow: Overflow,
    /// Rows and columns of a block.
    pub(crate) side: (usize, usize),
    axis: Axis,
    /// The largest magnitudes of the only band of blocks, as bits, where they are known before the
    /// walk: one for each of its blocks, or one for all.
    known: Option<Vec<u32>>,
    /// The largest magnitude of the tensor, if the caller says it.
    largest: Option<f32>,
    finder: Finder<'a>,
    scale: Converter<'static>,
    places: Option<Places>,
    grid: Option<Grid>,
    /// How the memory behind a matrix of that size is treated.
    pub(crate) traffic: Traffic,
    /// Whether elements are exact quotients by scales that need not be powers of two. Their factors
    /// are 1.
    divides: bool,
    /// Whether elements are rounded by a sum in binary32.
    halves: bool,
}

/// Rows whose codes of `width` bits are whole bytes.
fn whole_bytes(cols: usize, width: u32) -> usize {
    8 >> (cols * width as usize).trailing_zeros().min(3)
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

impl<'a> Blocks<'a> {
    /// With scales by the format's rule, or the caller's `own`.
    ///
    /// # Panics
    /// If [`BlockFormat::check`] fails, the mode is stochastic with a bit count outside 1..=32, or
    /// memory could not hold such a matrix.
    #[track_caller]
    pub(crate) fn new(
        format: BlockFormat,
        rounding: Rounding,
        overflow: Overflow,
        axis: Axis,
        (rows, cols): (usize, usize),
        own: Option<OwnScale<'a>>,
    ) -> Self {
        let format = format.checked();
        assert!(
            own.is_none() || !format.tensor_scale,
            "scales of the caller's own have no tensor scale"
        );
        if let Rounding::Stochastic { bits, .. } = rounding {
            assert!((1..=32).contains(&bits), "stochastic rounding takes 1 to 32 random bits");
        }
        let count = checked_count((rows, cols));
        let (power, choices) = (format.rule.is_power(), format.profile.choices(format.rule));
        let divides = own.is_some() || format.rule == ScaleRule::MaxAbs;
        let halves = choices.elements == ElementRounding::Binary32 && own.is_none();
        let zeros = match choices.zeros {
            _ if divides => Some((false, false)),
            Zeros::Signed => Some((false, false)),
            // Where a product underflows, its zero becomes positive, though its input is none. So it
            // does in binary32 quotients (`halves`), but not in exact ones.
            Zeros::PositiveInput if power && !halves => None,
            Zeros::PositiveInput => Some((true, false)),
            Zeros::Positive => Some((true, true)),
        };
        // A quotient is known to 24 bits, which the random ones must not reach.
        let known = match rounding {
            Rounding::Stochastic { bits, .. } => {
                !halves && (!divides || u32::from(bits) + format.element.man_bits() <= 22)
            }
            _ => true,
        };
        let clamps = !power && !divides;
        let places = zeros
            .filter(|_| known)
            .and_then(|zeros| Places::new(format.element, rounding, overflow, clamps, zeros));
        // The grid's scales are powers of two from 2^-127 on, its zeros and orders those of `ocp`.
        let grid = format.profile == BlockProfile::Ocp
            && !divides
            && (!power || (format.scale.man_bits() == 0 && format.scale.emin() >= -127));
        Self {
            format,
            rounding,
            overflow,
            side: axis.block(format.shape, rows, cols),
            axis,
            known: None,
            largest: None,
            finder: Finder::new(format, own),
            scale: Converter::new(format.scale, Rules::SATURATING),
            places,
            grid: grid.then(|| Grid::new(format.element, rounding, overflow)).flatten(),
            traffic: Traffic::of_bytes(count * 2 * size_of::<f32>(), true),
            divides,
            halves,
        }
    }

    /// The same with a tensor scale for a largest magnitude that the caller says.
    ///
    /// # Panics
    /// If the format has no tensor scale, or there is no such magnitude.
    #[track_caller]
    pub(crate) fn with_largest(self, amax: f32) -> Self {
        assert!(self.format.tensor_scale, "{} has no scale of the tensor", self.format);
        assert!(is_largest(amax), "a largest magnitude is finite and not negative, found {amax}");
        Self { largest: Some(amax), ..self }
    }

    /// Whether element (i, j) uses a random word.
    pub(crate) fn is_stochastic(&self) -> bool {
        self.rounding.is_stochastic()
    }

    /// Columns of a tile: whole blocks, at least one. The elements of a tile of blocks along
    /// the rows, before and after, fit the first-level cache.
    fn tile_cols(&self) -> usize {
        let whole = self.side.0 == 1 && self.traffic == Traffic::Cached;
        let wanted = if whole { TILE_COLS } else { SPAN };
        (wanted / self.side.1).max(1) * self.side.1
    }

    /// Whether the matrix must be seen as a whole before its first element can be rounded.
    pub(crate) fn needs_whole(&self, shape: (usize, usize)) -> bool {
        self.format.tensor_scale || self.part(shape).is_some()
    }

    /// Sides of the parts of blocks that are as high as the matrix, if it is worth dividing them.
    fn part(&self, (rows, cols): (usize, usize)) -> Option<(usize, usize)> {
        let empty = rows == 0 || cols == 0;
        if empty
            || self.side.0 < rows
            || matches!(self.finder, Finder::Four { .. } | Finder::Own(_))
        {
            return None;
        }
        if rows == 1 {
            return (self.side.1 >= cols && cols > CHUNK).then_some((1, CHUNK));
        }
        let bytes = whole_bytes(cols, self.format.element.bits());
        // Parts of one row would be joined to one long row, whose blocks are counted otherwise.
        let least = if self.side.1 < cols { 2 } else { 1 };
        let part = CHUNK.div_ceil(cols).max(least).next_multiple_of(bytes);
        (rows > part).then_some((part, self.side.1))
    }

    /// What is known after looking at the whole matrix: the factors of a tensor with a scale, and the
    /// maxima of blocks as high as the matrix. These are divided then, so that threads can share them:
    /// parts with the same largest magnitude have the same scale.
    pub(crate) fn after(mut self, x: View<'_, f32>) -> (TensorFactors, Self) {
        let BlockFormat { rule, tensor_scale, .. } = self.format;
        if let Some(part) = self.part((x.rows(), x.cols())) {
            let known = maxima(x, self.side.1);
            // The largest finite magnitude is looked for block by block.
            if rule != ScaleRule::MaxAbs || known.iter().all(|amax| *amax < scales::INFINITY) {
                (self.side, self.known) = (part, Some(known));
            }
        }
        let amax = tensor_scale.then(|| match (self.largest, &self.known) {
            (Some(largest), _) => largest,
            (None, Some(known)) => f32::from_bits(known.iter().copied().fold(0, u32::max)),
            (None, None) => f32::from_bits(largest_in(x)),
        });
        (self.factors(amax), self)
    }

    /// The same where the largest magnitude is all that is needed of the matrix, and known.
    pub(crate) fn after_largest(self, amax: f32) -> (TensorFactors, Self) {
        (self.factors(Some(amax).filter(|_| self.format.tensor_scale)), self)
    }

    /// Whether the largest magnitude is all that is needed of a matrix of this size.
    pub(crate) fn looks_for_largest(&self, shape: (usize, usize)) -> bool {
        self.part(shape).is_none()
    }

    fn factors(&self, amax: Option<f32>) -> TensorFactors {
        let BlockFormat { element, scale, rule, profile, .. } = self.format;
        let bound = match rule {
            ScaleRule::FourOverSix(four) => four.bound.value(),
            _ => scale.max().to_f32(),
        };
        TensorFactors::with_order(amax, element, scale, bound, profile.choices(rule).order)
    }

    /// Writes the values of the elements `x`.
    pub(crate) fn values(&self, part: &Part<'_>, x: &[f32], out: &mut [f32]) {
        let Some(places) = &self.places else { return self.general_values(part, x, out) };
        self.with_quotients(part, x, |x| self.pass_values(places, part, x, out));
        part.hard(x, out, |part, x, out| self.general_values(part, x, out));
    }

    /// [`values`](Self::values) without the tensor scale: code times block scale, rounded once.
    pub(crate) fn scaled_values(&self, part: &Part<'_>, x: &[f32], out: &mut [f32]) {
        let general = |part: &Part<'_>, x: &[f32], out: &mut [f32]| {
            let image = |code, scale| decode_element(self.format, code, scale, 1.0);
            self.elements(part, x, out, image);
        };
        let part = &Part { images: part.scales, decode: 1.0, ..*part };
        let Some(places) = &self.places else { return general(part, x, out) };
        self.with_quotients(part, x, |x| self.pass_values(places, part, x, out));
        part.hard(x, out, general);
    }

    fn pass_values(&self, places: &Places, part: &Part<'_>, x: &[f32], out: &mut [f32]) {
        match (self.rounding, self.halves) {
            (Rounding::TiesToAway, true) => part.pass::<Values<HalfAway>>(places, x, out),
            (Rounding::TowardZero, true) => part.pass::<Values<LogZero>>(places, x, out),
            (_, true) => part.pass::<Values<HalfEven>>(places, x, out),
            (Rounding::TiesToAway, _) => part.pass::<Values<Away>>(places, x, out),
            (Rounding::TowardZero, _) => part.pass::<Values<Zero>>(places, x, out),
            (Rounding::Stochastic { .. }, _) => part.pass::<Values<Random>>(places, x, out),
            _ => part.pass::<Values<Even>>(places, x, out),
        }
    }

    /// Hands `work` the elements, or their quotients by the scales.
    fn with_quotients(&self, part: &Part<'_>, x: &[f32], work: impl FnOnce(&[f32])) {
        fn divide<const N: usize>(part: &Part<'_>, x: &[f32], work: impl FnOnce(&[f32])) {
            let mut quotients = [0.0; N];
            let quotients = &mut quotients[..x.len()];
            kernel::quotients(part.width, part.scales, x, quotients);
            work(quotients);
        }
        match x.len() {
            _ if !self.divides => work(x),
            ..=256 => divide::<256>(part, x, work),
            _ => divide::<TILE_COLS>(part, x, work),
        }
    }

    /// Writes the codes of the elements `x`.
    pub(crate) fn codes<C: Bits>(&self, part: &Part<'_>, x: &[f32], out: &mut [C]) {
        let Some(places) = &self.places else { return self.general_codes(part, x, out) };
        self.with_quotients(part, x, |x| match (self.rounding, self.halves) {
            (Rounding::TiesToAway, true) => part.pass::<Codes<HalfAway, C>>(places, x, out),
            (Rounding::TowardZero, true) => part.pass::<Codes<LogZero, C>>(places, x, out),
            (_, true) => part.pass::<Codes<HalfEven, C>>(places, x, out),
            (Rounding::TiesToAway, _) => part.pass::<Codes<Away, C>>(places, x, out),
            (Rounding::TowardZero, _) => part.pass::<Codes<Zero, C>>(places, x, out),
            (Rounding::Stochastic { .. }, _) => part.pass::<Codes<Random, C>>(places, x, out),
            _ => part.pass::<Codes<Even, C>>(places, x, out),
        });
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
        let mut scales = Pooled::zeros(x.len());
        let scales = part.spread(part.scales, &mut scales);
        if self.format.rule.is_power() {
            match part.words {
                [] => grid::shifted(grid, scales, out),
                words => grid::shifted_stochastic(grid, words, scales, out),
            }
            return kernel::one_nan(out);
        }
        let common = Common { largest: of.largest, decode: of.decode };
        let mut factors = Pooled::with_capacity(scales.len());
        factors.extend(scales.iter().map(|scale| of.factor(*scale)));
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
            // A factor of zero is that of a block which is read as zeros.
            let x = if part.factors[i / part.width] == 0.0 { 0.0_f32.copysign(*x) } else { *x };
            let code = if self.divides {
                encode_quotient(format.element, rounding, overflow, x, scale, word)
            } else {
                encode_element(format, rounding, overflow, x, scale, part.of, word)
            };
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
