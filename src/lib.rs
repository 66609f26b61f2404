//! Software floating-point formats of any shape, and what is made of them: block formats and matrix
//! products.
//!
//! A low-precision number format is defined once. A type, the conversion of slices, packed blocks,
//! GEMM operands and training recipes all use that definition and give the same bits.
//!
//! A number of a format is a type with the operators of `f32`; a format is also a value, by any of
//! its usual names:
//!
//! ```
//! use exmy::prelude::*;
//!
//! let x = E4M3::from_f32(0.3); // OCP FP8, to nearest even
//! assert_eq!((x.to_bits(), x.to_f32()), (0x2A, 0.3125));
//! assert_eq!((x + x).to_f32(), 0.625);
//!
//! type E8M3 = Minifloat<ExMy<8, 3>>; // any shape: bfloat16 with 3 mantissa bits
//! assert_eq!(E8M3::from_f32_with(3.14159, Rounding::TowardZero, Overflow::None).to_f32(), 3.0);
//!
//! let format: Format = "float8_e5m2".parse()?; // chosen at run time
//! assert_eq!(format.to_string(), "e5m2");
//! # Ok::<(), exmy::text::ParseFormatError>(())
//! ```
//!
//! Slices are converted by a [`Converter`], which is made once for a format and its rules:
//!
//! ```
//! # #[cfg(feature = "alloc")] {
//! use exmy::prelude::*;
//!
//! let codes: Vec<u8> = Converter::new(Format::E4M3FN, Rules::SATURATING).encode(&[0.3_f32, 1000.0]);
//! assert_eq!(codes, [0x2A, 0x7E]); // 1000 saturates at 448
//! # }
//! ```
//!
//! Blocks share a scale; a [`Quantizer`] rounds a whole tensor:
//!
//! ```
//! # #[cfg(feature = "block")] {
//! use exmy::prelude::*;
//! use exmy::random::{Philox, Stream};
//!
//! let quantizer: Quantizer = "mxfp4".parse().unwrap(); // E2M1 in blocks of 32, E8M0 scales
//! let x = [0.1_f32, -0.7, 3.3, 0.0];
//! let mut image = [0.0; 4];
//! let random = Philox::new(0, Stream::new("doc")); // used by stochastic rounding only
//! let out = ViewMut::new(&mut image, 1, 4);
//! quantizer.image_into(View::new(&x, 1, 4), Axis::Cols, random, out);
//! assert_eq!(image, [0.0, -0.75, 3.0, 0.0]); // 3.3 saturates at 6 x 2^-1
//! # }
//! ```
//!
//! # Where things are
//!
//! | you have | look at |
//! |---|---|
//! | one number | [`E4M3`] and the other types of [`minifloat`]; [`math`] for operands of several formats |
//! | a format's name or parameters | [`Format`], [`text`] |
//! | a question of rounding or overflow | [`round`]: [`Rounding`], [`Overflow`], [`Rules`] |
//! | a slice or a matrix of numbers | [`slice`](mod@slice); [`pack`] for codes of 4 and 6 bits |
//! | a tensor to quantize | [`quantizer`] for its values, [`block`] for codes and scales (MX, NVFP4) |
//! | a product of matrices | [`gemm`](mod@gemm), models of matrix units among it |
//! | stochastic rounding | [`random`] |
//! | a file of tensors | [`safetensors`] |
//! | results of hardware to check | [`vectors`] |
//!
//! On top of the library stand the crates `exmy-train` (layers of networks, recipes, the training loop) and
//! `exmy-lab` (studies, and the program `exmy`).
//!
//! # Features
//!
//! | feature | brings | default |
//! |---|---|---|
//! | `std` | run-time CPU detection, errors of files; `alloc` | yes |
//! | `block` | [`block`], [`quantizer`]; `alloc` | yes |
//! | `gemm` | [`gemm`](mod@gemm); `block` | yes |
//! | `vectors` | [`vectors`]; `gemm`, `std` | yes |
//! | `alloc` | slices and packed codes; without it numbers and formats alone | by `std`, `block` |
//! | `parallel` | threads (rayon); the same bits with and without | |
//! | `fast-f32` | the f32 GEMM by `matrixmultiply`; the same bits with and without | |
//! | `safetensors` | tensors in files: reading, writing, quantizing | |
//! | `half`, `approx`, `bitvec` | interoperation with the crates of these names | |
//! | `serde` | formats and quantizers as text, typed numbers as codes, matrices of blocks | |
//! | `bytemuck`, `zerocopy` | typed numbers as plain data ([`slice::cast`]) | |
//! | `rand` | [`PhiloxRng`](random::PhiloxRng) is a generator; typed numbers can be drawn by any | |
//! | `arbitrary` | typed numbers in fuzz targets | |
//!
//! Numbers and slices alone build in a fraction of the time:
//! `exmy = { version = "0.1", default-features = false, features = ["std"] }`.
//!
//! Builds for development should optimize this crate, which is 30 to 170 times slower without; in your
//! `Cargo.toml`:
//!
//! ```toml
//! [profile.dev.package.exmy]
//! opt-level = 3
//! ```

#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]
// Much of the inside serves several modules, and pages name each other: both are checked with all features.
#![cfg_attr(
    not(all(feature = "vectors", feature = "safetensors")),
    allow(dead_code, rustdoc::broken_intra_doc_links)
)]

#[cfg(feature = "alloc")]
extern crate alloc;

// Layer 0
pub mod format;
pub mod round;
// Layer 1
pub mod math;
pub mod minifloat;
pub mod random;
pub mod text;
// Layer 2
#[cfg(feature = "alloc")]
pub mod pack;
#[doc(hidden)]
#[cfg(feature = "std")]
pub mod parallel;
#[doc(hidden)]
#[cfg(feature = "block")]
pub mod pool;
#[doc(hidden)]
#[cfg(feature = "alloc")]
pub mod simd;
pub mod slice;
// Layer 3
#[cfg(feature = "block")]
pub mod block;
#[cfg(feature = "block")]
pub mod quantizer;
#[cfg(feature = "safetensors")]
pub mod safetensors;
// Layer 4
#[cfg(feature = "gemm")]
pub mod gemm;
#[cfg(feature = "vectors")]
pub mod vectors;
// What most programs use of all of them
pub mod prelude;
// Outside of the layers
#[doc(hidden)]
#[cfg(feature = "std")]
pub mod error;
#[doc(hidden)]
#[cfg(feature = "std")]
pub mod reserve;
#[doc(hidden)]
#[cfg(feature = "alloc")]
pub mod shown;

#[cfg(feature = "block")]
pub use block::{Axis, BlockFormat, BlockTensor};
#[cfg(feature = "std")]
pub use error::Error;
pub use format::Format;
#[cfg(feature = "gemm")]
pub use gemm::gemm;
pub use minifloat::{
    Bf16, E2M1, E2M3, E3M2, E3M4, E4M3, E5M2, E8M0, ExMy, F16, Int8, Minifloat, Tf32, Ue4m3,
};
#[cfg(feature = "block")]
pub use quantizer::Quantizer;
pub use round::{Overflow, Rounding, Rules};
#[cfg(feature = "alloc")]
pub use slice::{Converter, View, ViewMut};

/// The examples of the README, so that they are compiled and run with those of the code.
#[cfg(all(doctest, feature = "vectors"))]
#[doc = include_str!("../README.md")]
pub struct Readme;
