//! Software floating-point formats of any shape, and everything above them.

#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;

// Floor 0
pub mod format;
pub mod round;
// Floor 1
pub mod minifloat;
pub mod random;
pub mod text;
// Floor 2
#[cfg(feature = "alloc")]
pub mod bulk;
#[cfg(feature = "alloc")]
pub mod pack;
#[cfg(feature = "std")]
pub mod parallel;
#[cfg(feature = "alloc")]
pub mod simd;
#[cfg(feature = "alloc")]
pub mod view;
// Floor 3
#[cfg(feature = "alloc")]
pub mod block;
#[cfg(feature = "alloc")]
pub mod quantizer;
#[cfg(feature = "alloc")]
pub mod scale;
// Floor 4
#[cfg(feature = "alloc")]
pub mod gemm;
// Floor 5
#[cfg(feature = "train")]
pub mod nn;
#[cfg(feature = "train")]
pub mod recipe;
// Floor 6
#[cfg(feature = "train")]
pub mod train;
// Floor 7
#[cfg(feature = "study")]
pub mod study;
// Beside the floors
#[cfg(feature = "std")]
pub mod error;
#[cfg(feature = "alloc")]
pub mod plot;
