//! Slices of numbers to and from a format: the values, or the codes.
//!
//! A [`Converter`] is a target format and its [`Rules`](crate::round::Rules), made ready once and
//! then applied to slices of `f32`, `f64` or, with the feature `half`, `f16` and `bf16`, or to codes
//! of another format. *Encoding* writes codes. *Fake quantization* rounds to the values of a format
//! and keeps the type: what a tensor becomes when it is stored in that format. [`decode_into`] is
//! the way back.
//!
//! Every function has two bodies. The plain one sends each element through
//! [`Context::convert`](crate::math::Context::convert) and is the definition. The fast ones are
//! branch-free bodies for all formats whose grid is regular, compiled for each
//! [`simd`](crate::simd) level, in the file `fast.rs`, which also says what they leave to the plain
//! one. Tests hold them bit-equal.
//!
//! Under stochastic rounding, element `i` of a slice uses random word `i` of the given generator or of the
//! caller's own words, whatever the order of evaluation.

#![deny(unsafe_code)]

mod convert;
mod converter;
mod decode;
mod fast;
pub(crate) mod grid;
mod lookup;
pub(crate) mod memory;
mod plain;
mod real;
mod recode;
mod sixteen;
mod sources;
mod stretches;
mod typed;
mod words;

pub use convert::convert_into;
pub use converter::{Cast, Converter};
pub use decode::decode_into;
pub use plain::decode_plain;
pub use real::Real;
pub use words::words_into;

/// Elements whose random words are made at a time; a multiple of 4. Their words, 8 KiB, stay in
/// the first-level cache.
pub(crate) const SPAN: usize = 2048;

/// Elements from which on it pays to make a table of 256 results.
const LONG: usize = 512;
