//! Slices of numbers to and from a format: the values, or the codes.
//!
//! A [`Converter`] is a target format and its [`Rules`](crate::round::Rules). It is made once and
//! then applied to slices of `f32`, `f64` or, with the feature `half`, `f16` and `bf16`, or to codes
//! of another format. *Encoding* writes codes. *Fake quantization* rounds to the values of a format
//! and keeps the type: what a tensor becomes when it is stored in that format. [`decode_into`] is
//! the way back.
//!
//! Every function has two bodies. The plain one sends each element through
//! [`Context::convert`](crate::math::Context::convert) and is the definition. The fast ones are
//! branch-free bodies for all formats whose grid is regular, compiled for each
//! [`simd`](crate::simd) level. They are in the file `fast.rs`, which also says what they leave to
//! the plain one. Tests compare them bit for bit.
//!
//! A [`View`] is a borrowed matrix of such numbers, with two strides. [`cast`] borrows typed numbers
//! as their codes or bytes, and back; it needs no allocator, the rest does.
//!
//! Under stochastic rounding, element `i` of a slice uses random word `i` of the given generator or of the
//! caller's own words, whatever the order of evaluation.

#![deny(unsafe_code)]

pub mod cast;
#[cfg(feature = "alloc")]
mod chunks;
#[cfg(feature = "alloc")]
mod convert;
#[cfg(feature = "alloc")]
mod converter;
#[cfg(feature = "alloc")]
mod decode;
#[cfg(feature = "alloc")]
mod f16;
#[cfg(feature = "alloc")]
mod fast;
#[cfg(feature = "alloc")]
pub(crate) mod grid;
#[cfg(feature = "alloc")]
mod lookup;
#[cfg(feature = "alloc")]
pub(crate) mod memory;
#[cfg(feature = "alloc")]
mod plain;
#[cfg(feature = "alloc")]
mod real;
#[cfg(feature = "alloc")]
mod recode;
#[cfg(feature = "alloc")]
mod sources;
#[cfg(feature = "alloc")]
mod typed;
#[cfg(feature = "alloc")]
pub(crate) mod view;
#[cfg(feature = "alloc")]
mod words;

#[cfg(feature = "alloc")]
pub use convert::{convert_into, decode_into};
#[cfg(feature = "alloc")]
pub use converter::Converter;
#[cfg(feature = "alloc")]
pub use plain::decode_plain;
#[cfg(feature = "alloc")]
pub use real::Real;
#[cfg(feature = "block")]
pub(crate) use view::checked_count;
#[cfg(feature = "alloc")]
pub use view::{ShapeError, View, ViewMut};
#[cfg(feature = "alloc")]
pub use words::words_into;

/// Elements whose random words are made at a time; a multiple of 4. Their words, 8 KiB, stay in
/// the first-level cache.
#[cfg(feature = "alloc")]
pub(crate) const SPAN: usize = 2048;

/// Elements of a slice that counts as short.
#[cfg(feature = "alloc")]
const SHORT: usize = 128;

/// Elements from which on it pays to make a table of 256 results.
#[cfg(feature = "alloc")]
const LONG: usize = 512;
