//! Slices of `f32` to and from a format: the values, or the codes.
//!
//! *Fake quantization* rounds to the values of a format and keeps them as `f32`: what a tensor
//! becomes when it is stored in that format. Every function here has two bodies. The plain one
//! sends each element through the rounding core, [`Format::round`], and is the definition. The
//! fast one is branch-free integer arithmetic on the bits of binary32 (`bulk/grid.rs`), one body for
//! all formats whose grid is regular, compiled for each [`simd`](crate::simd) level. A test holds
//! them bit-equal.
//!
//! Under stochastic rounding, element `i` of a slice uses random word `i` of the given generator,
//! whatever the order of evaluation.

#![forbid(unsafe_code)]

pub(crate) mod grid;
mod words;

use crate::format::Format;
use crate::random::Philox;
use crate::round::{Overflow, Rounding};

pub use words::words_into;

/// Elements whose random words are made at a time; a multiple of 4. Their words, 4 KiB, stay in
/// the first-level cache.
pub(crate) const SPAN: usize = 1024;

/// Rounds every element of `data` to a value of `format`, in place; see [`fake_quantize_into`].
///
/// # Panics
/// If `rounding` is stochastic with a bit count outside 1..=32.
pub fn fake_quantize(
    format: Format,
    rounding: Rounding,
    overflow: Overflow,
    random: Philox,
    data: &mut [f32],
) {
    Rounder::new(format, rounding, overflow).apply(random, 0, data);
}

/// Writes to `out` the values of `format` to which the elements of `x` round.
///
/// NaN becomes the canonical quiet NaN, with its sign where the format has NaNs of both signs, and
/// the largest value where it has none. Values that `f32` cannot hold (of formats such as f64) are
/// rounded once more, to nearest even.
///
/// # Panics
/// If the lengths differ, or `rounding` is stochastic with a bit count outside 1..=32.
pub fn fake_quantize_into(
    format: Format,
    rounding: Rounding,
    overflow: Overflow,
    random: Philox,
    x: &[f32],
    out: &mut [f32],
) {
    assert_eq!(x.len(), out.len(), "input and output of a conversion have different lengths");
    out.copy_from_slice(x);
    fake_quantize(format, rounding, overflow, random, out);
}

/// The definition of [`fake_quantize_into`]: one call of the rounding core an element.
///
/// # Panics
/// As [`fake_quantize_into`].
pub fn fake_quantize_plain(
    format: Format,
    rounding: Rounding,
    overflow: Overflow,
    random: Philox,
    x: &[f32],
    out: &mut [f32],
) {
    assert_eq!(x.len(), out.len(), "input and output of a conversion have different lengths");
    for (i, (x, out)) in x.iter().zip(out).enumerate() {
        *out = plain(format, rounding, overflow, *x, word(rounding, random, i as u64));
    }
}

/// Writes to `codes` the codes of `format` to which the elements of `x` round.
///
/// # Panics
/// If the lengths differ, a code has more than 16 bits, or `rounding` is stochastic with a bit
/// count outside 1..=32.
pub fn encode_into(
    format: Format,
    rounding: Rounding,
    overflow: Overflow,
    random: Philox,
    x: &[f32],
    codes: &mut [u16],
) {
    assert_eq!(x.len(), codes.len(), "input and output of a conversion have different lengths");
    assert!(format.bits() <= 16, "a code of {} bits does not fit u16", format.bits());
    for (i, (x, code)) in x.iter().zip(codes).enumerate() {
        let word = word(rounding, random, i as u64);
        *code = format.encode_f32(*x, rounding, overflow, word).code as u16;
    }
}

/// Writes to `out` the values of `codes`, to nearest even where `f32` cannot hold them.
///
/// # Panics
/// If the lengths differ, or a code has more than 16 bits.
pub fn decode_into(format: Format, codes: &[u16], out: &mut [f32]) {
    assert_eq!(codes.len(), out.len(), "input and output of a conversion have different lengths");
    assert!(format.bits() <= 16, "a code of {} bits does not fit u16", format.bits());
    for (code, out) in codes.iter().zip(out) {
        *out = format.to_f32(u64::from(*code));
    }
}

/// The random word of element `i`, which deterministic modes do not need.
pub(crate) fn word(rounding: Rounding, random: Philox, i: u64) -> u32 {
    if rounding.is_stochastic() { random.word(i) } else { 0 }
}

fn plain(format: Format, rounding: Rounding, overflow: Overflow, x: f32, word: u32) -> f32 {
    format.to_f32(format.encode_f32(x, rounding, overflow, word).code)
}

/// A conversion with everything that can be computed once.
#[derive(Clone, Copy)]
pub(crate) struct Rounder {
    format: Format,
    rounding: Rounding,
    overflow: Overflow,
    grid: Option<grid::Grid>,
}

impl Rounder {
    pub(crate) fn new(format: Format, rounding: Rounding, overflow: Overflow) -> Self {
        Self { format, rounding, overflow, grid: grid::Grid::new(format, rounding, overflow) }
    }

    /// Rounds `data`, of which element 0 uses random word `first`.
    pub(crate) fn apply(&self, random: Philox, first: u64, data: &mut [f32]) {
        let Self { format, rounding, overflow, grid } = *self;
        match grid {
            Some(grid) if rounding.is_stochastic() => {
                let mut words = [0; SPAN];
                for (i, data) in data.chunks_mut(SPAN).enumerate() {
                    let words = &mut words[..data.len()];
                    words_into(random, first + (i * SPAN) as u64, words);
                    grid::cast_stochastic(&grid, words, data);
                }
            }
            Some(grid) => grid::cast(&grid, data),
            None => {
                for (i, x) in data.iter_mut().enumerate() {
                    let word = word(rounding, random, first + i as u64);
                    *x = plain(format, rounding, overflow, *x, word);
                }
            }
        }
    }
}
