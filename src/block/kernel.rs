//! The passes over slices that block quantization consists of: maxima of blocks, elements to values
//! or codes, values times scales. Definitions are in [`plain`](super::plain); a test compares the
//! two.
//!
//! A block has two numbers here: a *factor* that its elements are multiplied by and a *scale* that
//! element values are multiplied by. For scales that are powers of two the factor is the reciprocal,
//! so the first product is exact wherever it can matter (see [`Places::new`]). For the other rules
//! it is the one their definitions name. Both lie in slices: one number a block, or one an element
//! where blocks run down the columns.

mod fold;
mod places;
mod quotients;
mod scales;
mod statistics;

pub(crate) use fold::{any_nan, fold, largest, spread};
pub(crate) use places::{Away, Even, HalfAway, HalfEven, LogZero, Mode, Places, Random, Zero};
pub(crate) use quotients::{Errors, errors, quotients};
pub(crate) use scales::{Powers, candidates, factors, over_powers, power_codes, powers, unrounded};
pub(crate) use statistics::{CodesAndStatistics, codes_and_statistics};

use core::marker::PhantomData;

use crate::minifloat::Bits;
use crate::simd::kernel;

const MAGNITUDE: u32 = 0x7FFF_FFFF;
const EXPONENT: u32 = 0x7F80_0000;
/// The canonical NaN.
pub(crate) const NAN: u32 = 0x7FC0_0000;
/// Elements a step.
const LANES: usize = 16;

/// What a pass makes of an element.
pub(crate) trait Step {
    /// Whether it uses random words.
    const RANDOM: bool;
    /// Whether it makes codes.
    const IS_CODE: bool;
    /// What it writes.
    type Out: Copy;
    /// Any of those.
    fn zero() -> Self::Out;

    /// From an element, its factor, its two scales and its random word.
    fn step(places: &Places, x: f32, factor: f32, scales: (f32, f32), word: u32) -> Self::Out;
}

/// The value times the scale.
pub(crate) struct Values<M>(PhantomData<M>);
/// The code, in an integer.
pub(crate) struct Codes<M, C>(PhantomData<(M, C)>);

impl<M: Mode> Step for Values<M> {
    const RANDOM: bool = M::RANDOM;
    const IS_CODE: bool = false;
    type Out = f32;
    #[inline(always)]
    fn zero() -> f32 {
        0.0
    }

    #[inline(always)]
    fn step(places: &Places, x: f32, factor: f32, scales: (f32, f32), word: u32) -> f32 {
        places.value::<M>(x, factor, word) * scales.0 * scales.1
    }
}

impl<M: Mode, C: Bits> Step for Codes<M, C> {
    const RANDOM: bool = M::RANDOM;
    const IS_CODE: bool = true;
    type Out = C;

    #[inline(always)]
    fn zero() -> C {
        C::from_u64(0)
    }

    #[inline(always)]
    fn step(places: &Places, x: f32, factor: f32, _: (f32, f32), word: u32) -> C {
        C::from_u64(u64::from(places.code::<M>(x, factor, word)))
    }
}

/// The elements of a pass and what belongs to them.
#[derive(Clone, Copy)]
pub(crate) struct Elements<'a> {
    /// The numbers.
    pub(crate) x: &'a [f32],
    /// A random word each; empty unless the mode is stochastic.
    pub(crate) words: &'a [u32],
    /// How many of them share a factor and a scale: 1 or a multiple of 16.
    pub(crate) width: usize,
    /// The factors.
    pub(crate) factors: &'a [f32],
    /// The scales.
    pub(crate) scales: &'a [f32],
    /// What values are multiplied by after their scale.
    pub(crate) decode: f32,
}

kernel! {
    /// Takes the step for every element.
    pub(crate) fn pass<'a, S: Step>(
        places: &'a Places,
        of: Elements<'a>,
        out: &'a mut [S::Out],
    ) {
        let places = *places;
        // What becomes of the sign of a zero is asked once, not in the loops.
        if S::IS_CODE && !places.negative_zero {
            all::<S>(&places.with_negative_zero(false), of, out);
        } else {
            all::<S>(&places.with_negative_zero(true), of, out);
        }
    }
}

#[inline(always)]
fn all<S: Step>(places: &Places, of: Elements<'_>, out: &mut [S::Out]) {
    match of.width {
        1 => lanes::<S>(places, of, out),
        // The widths of NVFP4 and MX, so that a block costs no counting.
        16 => blocks::<S, 16>(places, of, out),
        32 => blocks::<S, 32>(places, of, out),
        width => {
            let each = of.x.chunks(width).zip(out.chunks_mut(width)).enumerate();
            for (i, (x, out)) in each {
                block::<S>(places, of.block(i, i * width, x), out);
            }
        }
    }
}

impl<'a> Elements<'a> {
    /// Block `i`, whose elements `x` start at element `at`.
    #[inline(always)]
    fn block(&self, i: usize, at: usize, x: &'a [f32]) -> Self {
        let words = if self.words.is_empty() { &[] } else { &self.words[at..at + x.len()] };
        Self { x, words, factors: &self.factors[i..=i], scales: &self.scales[i..=i], ..*self }
    }

    /// The words of 16 elements from `at` on, if there are any.
    #[inline(always)]
    fn some_words<S: Step>(&self, at: usize) -> [u32; LANES] {
        let mut words = [0; LANES];
        if S::RANDOM {
            words.copy_from_slice(&self.words[at..at + LANES]);
        }
        words
    }
}

/// A factor and a scale for each element.
#[inline(always)]
fn lanes<S: Step>(places: &Places, of: Elements<'_>, out: &mut [S::Out]) {
    let (x, x_rest) = of.x.as_chunks::<LANES>();
    let (factors, factors_rest) = of.factors.as_chunks::<LANES>();
    let (scales, scales_rest) = of.scales.as_chunks::<LANES>();
    let (out, out_rest) = out.as_chunks_mut::<LANES>();
    for (i, (((x, f), s), out)) in x.iter().zip(factors).zip(scales).zip(out).enumerate() {
        *out = group::<S>(places, *x, *f, *s, of.decode, of.some_words::<S>(i * LANES));
    }
    let at = of.x.len() - x_rest.len();
    for (i, out) in out_rest.iter_mut().enumerate() {
        let word = if S::RANDOM { of.words[at + i] } else { 0 };
        *out = S::step(places, x_rest[i], factors_rest[i], (scales_rest[i], of.decode), word);
    }
}

/// Blocks of `W` elements, the last of which may be shorter.
#[inline(always)]
fn blocks<S: Step, const W: usize>(places: &Places, of: Elements<'_>, out: &mut [S::Out]) {
    let (x, x_rest) = of.x.as_chunks::<W>();
    let (out, out_rest) = out.as_chunks_mut::<W>();
    let numbers = of.factors.iter().zip(of.scales);
    for (i, ((x, out), (f, s))) in x.iter().zip(out).zip(numbers).enumerate() {
        let groups = x.as_chunks::<LANES>().0.iter().zip(out.as_chunks_mut::<LANES>().0);
        for (j, (x, out)) in groups.enumerate() {
            let words = of.some_words::<S>(i * W + j * LANES);
            *out = group::<S>(places, *x, [*f; LANES], [*s; LANES], of.decode, words);
        }
    }
    if !x_rest.is_empty() {
        block::<S>(places, of.block(x.len(), x.len() * W, x_rest), out_rest);
    }
}

/// One block of any length.
#[inline(always)]
fn block<S: Step>(places: &Places, of: Elements<'_>, out: &mut [S::Out]) {
    let (f, s) = (of.factors[0], of.scales[0]);
    let (x, x_rest) = of.x.as_chunks::<LANES>();
    let (out, out_rest) = out.as_chunks_mut::<LANES>();
    for (i, (x, out)) in x.iter().zip(out).enumerate() {
        let words = of.some_words::<S>(i * LANES);
        *out = group::<S>(places, *x, [f; LANES], [s; LANES], of.decode, words);
    }
    let at = of.x.len() - x_rest.len();
    for (i, out) in out_rest.iter_mut().enumerate() {
        let word = if S::RANDOM { of.words[at + i] } else { 0 };
        *out = S::step(places, x_rest[i], f, (s, of.decode), word);
    }
}

/// A step of a pass. By value, so that input and output may be the same memory.
#[inline(always)]
fn group<S: Step>(
    places: &Places,
    x: [f32; LANES],
    factors: [f32; LANES],
    scales: [f32; LANES],
    decode: f32,
    words: [u32; LANES],
) -> [S::Out; LANES] {
    let mut out = [S::zero(); LANES];
    for i in 0..LANES {
        out[i] = S::step(places, x[i], factors[i], (scales[i], decode), words[i]);
    }
    out
}

kernel! {
    /// Makes every NaN the canonical one.
    pub(crate) fn one_nan<'a>(data: &'a mut [f32]) {
        for x in data {
            *x = if x.is_nan() { f32::from_bits(NAN) } else { *x };
        }
    }
}

kernel! {
    /// Element values times their blocks' scales and one more number; `width` elements share a
    /// scale. There is one NaN, the canonical one.
    pub(crate) fn scale<'a>(width: usize, scales: &'a [f32], decode: f32, data: &'a mut [f32]) {
        let image = |x: f32, scale: f32| {
            let image = x * scale * decode;
            if image.is_nan() { f32::from_bits(NAN) } else { image }
        };
        if width == 1 {
            for (x, scale) in data.iter_mut().zip(scales) {
                *x = image(*x, *scale);
            }
            return;
        }
        // The widths of NVFP4 and MX, so that a block costs no counting.
        let (data, scales) = match width {
            16 => whole::<16>(scales, data, image),
            32 => whole::<32>(scales, data, image),
            _ => (data, scales),
        };
        for (block, scale) in data.chunks_mut(width).zip(scales) {
            for x in block {
                *x = image(*x, *scale);
            }
        }
    }
}

/// Whole blocks of `W` elements in place; what is left is returned.
#[inline(always)]
fn whole<'a, const W: usize>(
    scales: &'a [f32],
    data: &'a mut [f32],
    image: impl Fn(f32, f32) -> f32,
) -> (&'a mut [f32], &'a [f32]) {
    let (blocks, rest) = data.as_chunks_mut::<W>();
    let (scales, left) = scales.split_at(blocks.len());
    for (block, scale) in blocks.iter_mut().zip(scales) {
        let mut values = *block;
        for x in &mut values {
            *x = image(*x, *scale);
        }
        *block = values;
    }
    (rest, left)
}
