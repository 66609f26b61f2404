//! Software floating-point formats of any shape, and what is made of them: block formats and matrix
//! products.
//!
//! A low-precision number format is defined once, and the same definition is then a type, a bulk
//! kernel, a packed block, a GEMM operand, a training recipe and a measured experiment, each
//! bit-equal to the one below it.
//!
//! A format is a value, and a type that carries it:
//!
//! ```
//! use exmy::format::Format;
//! use exmy::minifloat::{E4M3, ExMy, Minifloat};
//! use exmy::round::{Overflow, Rounding};
//!
//! let x = E4M3::from_f32(0.3); // OCP FP8, to nearest even
//! assert_eq!((x.to_bits(), x.to_f32()), (0x2A, 0.3125));
//!
//! type E8M3 = Minifloat<ExMy<8, 3>>; // any shape: bfloat16 with 3 mantissa bits
//! assert_eq!(E8M3::from_f32_with(3.14159, Rounding::TowardZero, Overflow::None).to_f32(), 3.0);
//!
//! let format: Format = "float8_e5m2".parse()?; // chosen at run time, by any usual name
//! assert_eq!(format.to_string(), "e5m2");
//! # Ok::<(), exmy::text::ParseFormatError>(())
//! ```
//!
//! Blocks share a scale; a quantizer rounds a whole tensor:
//!
//! ```
//! # #[cfg(feature = "alloc")] {
//! use exmy::quantizer::{Axis, Quantizer};
//! use exmy::random::{Philox, Stream};
//! use exmy::view::{View, ViewMut};
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
//! The layers, from the bottom: [`format`](mod@format) and [`round`] define numbers; [`minifloat`],
//! [`random`] and [`text`] make them usable; [`bulk`], [`pack`] and [`cast`] work on slices; [`block`],
//! [`scale`], [`hadamard`] and [`quantizer`] share scales; [`gemm`] multiplies; [`golden`] compares with recorded
//! results. On top of it stand the crates `exmy-train` (layers of networks, recipes, the training loop) and `exmy-lab`
//! (studies, and the program `exmy`).
//!
//! # Features
//!
//! | feature | brings | default |
//! |---|---|---|
//! | `std` | run-time CPU detection, errors of files | yes |
//! | `alloc` | slices: bulk, blocks, GEMM; without it layers 0 and 1 | by `std` |
//! | `parallel` | threads (rayon); the same bits with and without | |
//! | `fast-f32` | the f32 GEMM by `matrixmultiply`; the same bits with and without | |
//! | `safetensors` | tensors in files: reading, writing, quantizing | |
//! | `half`, `approx`, `serde`, `bitvec` | interoperation with the crates of these names | |

#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

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
pub mod bulk;
pub mod cast;
#[cfg(feature = "alloc")]
#[doc(hidden)]
pub mod kept;
#[cfg(feature = "alloc")]
pub mod pack;
#[cfg(feature = "std")]
pub mod parallel;
#[cfg(feature = "alloc")]
pub mod simd;
#[cfg(feature = "alloc")]
pub mod view;
// Layer 3
#[cfg(feature = "alloc")]
pub mod block;
#[cfg(feature = "safetensors")]
pub mod files;
#[cfg(feature = "alloc")]
pub mod hadamard;
#[cfg(feature = "alloc")]
pub mod quantizer;
#[cfg(feature = "alloc")]
pub mod scale;
// Layer 4
#[cfg(feature = "alloc")]
pub mod gemm;
#[cfg(feature = "std")]
pub mod golden;
// Beside the layers
#[cfg(feature = "std")]
pub mod error;
#[cfg(feature = "alloc")]
pub mod shown;

/// The examples of the README, so that they are compiled and run with those of the code.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
pub struct Readme;
