//! The passes over slices that block quantization consists of: maxima of blocks, elements to values
//! or codes, values times scales. Definitions are in [`plain`](super::plain); a test holds them
//! equal.
//!
//! A block has two numbers here: a *factor* that its elements are multiplied by and a *scale* that
//! element values are multiplied by. For scales that are powers of two the factor is the reciprocal,
//! so the first product is exact wherever it can matter (see [`Places::new`]); for the other rules
//! it is the one their definitions name. Both lie in slices: one number a block, or one an element
//! where blocks run down the columns.

mod fold;
mod scales;

pub(crate) use fold::{any_nan, fold, largest, spread};
pub(crate) use scales::{Powers, factors, power_codes, powers, unrounded};

use core::marker::PhantomData;

use crate::format::{Format, Sign};
use crate::minifloat::Bits;
use crate::round::{Overflow, Rounding, StochasticVariant};
use crate::simd::kernel;

const MAGNITUDE: u32 = 0x7FFF_FFFF;
const SIGN: u32 = 0x8000_0000;
const EXPONENT: u32 = 0x7F80_0000;
/// The canonical NaN.
pub(crate) const NAN: u32 = 0x7FC0_0000;
/// Elements a step.
const LANES: usize = 16;

/// `2^k` for `k` in -126..=127.
const fn power(k: i32) -> f32 {
    f32::from_bits(((k + 127) as u32) << 23)
}

/// How the elements of a format are rounded, for the modes of [`Mode`]: a format made ready.
///
/// Near a magnitude `m` the format's values are multiples of `u = 2^(e - M)`, where `2^e` is the
/// binade of `m` or the format's lowest one. With `c = 2^(e + 23 - M)` the binary32 sum `m + c` has
/// exactly that spacing, so `(m + c) - c` is `m` to the nearest multiple, ties to even: the sum's
/// last bit is the multiple's. The other modes correct that by one `u` after a comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    largest: f32,
    /// The lowest binade, `2^emin`, as bits.
    low: u32,
    /// What is added to the bits of a binade for `c`, and taken from them for `u`.
    up: u32,
    down: u32,
    /// `-0` or `0`, added before rounding: `0` makes negative zero positive and nothing else.
    before: f32,
    /// The same, added after rounding.
    after: f32,
    /// Places of a random word to shift out, `2^N` and `2^-N`.
    random_shift: u32,
    random_count: u32,
    random_unit: f32,
    /// The code of a negative number is `(code ^ flip) + one | sign`, cut to `mask`.
    flip: u32,
    one: u32,
    sign: u32,
    mask: u32,
    /// `23 - M`.
    code_shift: u32,
    /// Whether a negative number that rounds to zero has the sign.
    negative_zero: bool,
}

impl Places {
    /// `None` unless all of this holds, which it does for every format named in MX and NVFP4:
    ///
    /// * the grid is regular: a zero, subnormals and at least one bit of significand, so that the
    ///   parity of a code is that of the multiple; signed; values of `f32` throughout;
    /// * `c` does not overflow: `emax + 23 - M <= 127`, and `2^emin` is a normal number;
    /// * what a product with a factor can lose to underflow is far less than half a unit: `emin - M`
    ///   is at least -100, which the random bits of a stochastic mode do not undercut either;
    /// * the overflow policy keeps the largest magnitude of either sign, or `clamps`: elements are
    ///   clamped before they are rounded;
    /// * the mode is to nearest (ties to even or away), toward zero, or stochastic (variant A) of up
    ///   to 24 bits.
    ///
    /// `zeros`: whether negative zero counts as zero before rounding, and whether every zero is
    /// positive.
    pub(crate) fn new(
        format: Format,
        rounding: Rounding,
        overflow: Overflow,
        clamps: bool,
        zeros: (bool, bool),
    ) -> Option<Self> {
        let (man_bits, emin) = (format.man_bits() as i32, format.emin());
        let random_bits = match rounding {
            Rounding::Rne | Rounding::Rna | Rounding::Rtz => 0,
            Rounding::Stochastic { bits: bits @ 1..=24, variant: StochasticVariant::A } => {
                u32::from(bits)
            }
            _ => return None,
        };
        let regular = format.has_zero()
            && format.has_subnormals()
            && (1..=22).contains(&man_bits)
            && format.bits() <= 16
            && format.is_exact_in_f32()
            && !matches!(format.sign(), Sign::Unsigned)
            && format.emax() + 23 - man_bits <= 127
            && emin <= 104
            && emin - man_bits >= -100;
        let largest = format.max().to_f32();
        let kept = |x: f32| {
            let code = format.encode_f32(x, rounding, overflow, 0).code;
            format.to_f32(code) == largest.copysign(x)
        };
        if !regular || !(clamps || (kept(f32::MAX) && kept(-f32::MAX))) {
            return None;
        }
        let complement = matches!(format.sign(), Sign::TwosComplement);
        let zero = |positive| if positive { 0.0 } else { -0.0 };
        let mask = u32::MAX >> (32 - format.bits());
        Some(Self {
            largest,
            low: power(emin).to_bits(),
            up: ((23 - man_bits) as u32) << 23,
            down: (man_bits as u32) << 23,
            before: zero(zeros.0),
            after: zero(zeros.1 || !format.has_negative_zero()),
            random_shift: (32 - random_bits) & 31,
            random_count: 1 << random_bits,
            random_unit: power(-(random_bits as i32)),
            flip: if complement { mask } else { 0 },
            one: u32::from(complement),
            sign: if complement { 0 } else { 1 << (format.bits() - 1) },
            mask,
            code_shift: (23 - man_bits) as u32,
            negative_zero: format.has_negative_zero() && !zeros.1,
        })
    }

    /// The element's magnitude, rounded, and its sign as the sign of a number of unspecified
    /// magnitude.
    #[inline(always)]
    fn place<M: Mode>(&self, x: f32, factor: f32, word: u32) -> (f32, u32) {
        let y = x * factor + self.before;
        let magnitude = f32::from_bits(y.to_bits() & MAGNITUDE);
        let m = if magnitude > self.largest { self.largest } else { magnitude };
        let e = m.to_bits() & EXPONENT;
        let e = if e > self.low { e } else { self.low };
        let c = f32::from_bits(e + self.up);
        let nearest = (m + c) - c;
        (M::correct(self, nearest, m, f32::from_bits(e - self.down), word), y.to_bits())
    }

    /// An element's value before it is multiplied by the scale.
    #[inline(always)]
    fn value<M: Mode>(&self, x: f32, factor: f32, word: u32) -> f32 {
        let (t, y) = self.place::<M>(x, factor, word);
        f32::from_bits(t.to_bits() | (y & SIGN)) + self.after
    }

    /// An element's code.
    #[inline(always)]
    fn code<M: Mode>(&self, x: f32, factor: f32, word: u32) -> u32 {
        let (t, y) = self.place::<M>(x, factor, word);
        // Below the lowest binade the code is the number of units, elsewhere exponent and
        // significand lie side by side in the bits of binary32 already.
        let subnormal = t.to_bits() < self.low;
        let low = f32::from_bits(self.low);
        let w = t + if subnormal { low } else { 0.0 };
        let first = if subnormal { self.low } else { self.low - 0x0080_0000 };
        let code = (w.to_bits() - first) >> self.code_shift;
        let negative = ((y as i32) >> 31) as u32;
        let signed = if code != 0 || self.negative_zero { negative } else { 0 };
        (((code ^ (signed & self.flip)) + (signed & self.one)) | (signed & self.sign)) & self.mask
    }
}

/// A rounding mode: what becomes of the nearest multiple.
pub(crate) trait Mode {
    /// Whether it uses random words.
    const RANDOM: bool = false;

    /// From `nearest` to the multiple of `u` that the mode takes; `m` is the unrounded magnitude.
    fn correct(places: &Places, nearest: f32, m: f32, u: f32, word: u32) -> f32;
}

/// To nearest, ties to even.
pub(crate) struct Even;
/// To nearest, ties away from zero.
pub(crate) struct Away;
/// Toward zero.
pub(crate) struct Zero;
/// Up if the fraction's first N bits and N random bits carry.
pub(crate) struct Random;

impl Mode for Even {
    #[inline(always)]
    fn correct(_: &Places, nearest: f32, _: f32, _: f32, _: u32) -> f32 {
        nearest
    }
}

impl Mode for Away {
    #[inline(always)]
    fn correct(_: &Places, nearest: f32, m: f32, u: f32, _: u32) -> f32 {
        nearest + if m - nearest == 0.5 * u { u } else { 0.0 }
    }
}

impl Mode for Zero {
    #[inline(always)]
    fn correct(_: &Places, nearest: f32, m: f32, u: f32, _: u32) -> f32 {
        nearest - if nearest > m { u } else { 0.0 }
    }
}

impl Mode for Random {
    const RANDOM: bool = true;

    #[inline(always)]
    fn correct(places: &Places, nearest: f32, m: f32, u: f32, word: u32) -> f32 {
        let below = Zero::correct(places, nearest, m, u, word);
        // The fraction is (m - below) / u. Its first N bits and the random integer R carry if
        // fraction * 2^N >= 2^N - R; every number here is exact.
        let random = word >> places.random_shift;
        let missing = (places.random_count - random) as i32 as f32;
        below + if m - below >= missing * (places.random_unit * u) { u } else { 0.0 }
    }
}

/// What a pass makes of an element.
pub(crate) trait Step {
    /// Whether it uses random words.
    const RANDOM: bool;
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
        match of.width {
            1 => lanes::<S>(&places, of, out),
            // The widths of NVFP4 and MX, so that a block costs no counting.
            16 => blocks::<S, 16>(&places, of, out),
            32 => blocks::<S, 32>(&places, of, out),
            width => {
                let each = of.x.chunks(width).zip(out.chunks_mut(width)).enumerate();
                for (i, (x, out)) in each {
                    block::<S>(&places, of.block(i, i * width, x), out);
                }
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

/// A step of a pass. By value, so that input and output need not be told apart.
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
        for (block, scale) in data.chunks_mut(width).zip(scales) {
            let (groups, rest) = block.as_chunks_mut::<LANES>();
            for group in groups {
                for x in group {
                    *x = image(*x, *scale);
                }
            }
            for x in rest {
                *x = image(*x, *scale);
            }
        }
    }
}
