//! exmy on NVIDIA GPUs: the same operations on device memory, with the same bits.
//!
//! A [`Device`] is a GPU and a stream of it, a [`Buffer`] a vector in its memory. Every operation here is the
//! twin of one of the library `exmy` and gives its bits, on any GPU of compute capability 8.0 or higher. The
//! orders of summation of Hopper's tensor cores need that GPU (9.0), as their names say.
//!
//! A build needs no CUDA. The driver and NVRTC, the compiler of the kernels, are loaded when a device is
//! first asked for. A program on a machine without them gets an [`Error`] that says so in one line. Kernels
//! are compiled at first use and kept on disk (`EXMY_CACHE` names another folder than the user's own for
//! caches).

#![cfg_attr(docsrs, feature(doc_cfg))]
#![deny(unsafe_code)]
#![cfg_attr(not(feature = "train"), allow(dead_code, reason = "marks and graphs are for training"))]

mod backend;
mod blocks;
mod buffer;
mod cache;
pub mod compile;
mod convert;
mod device;
mod error;
#[doc(hidden)]
pub mod launch;
pub mod module;
mod pack;
mod product;
mod rounder;
pub mod times;
#[cfg(feature = "train")]
#[cfg_attr(docsrs, doc(cfg(feature = "train")))]
pub mod train;
pub mod verify;
mod view;

#[cfg(feature = "emulated")]
#[doc(hidden)]
pub use backend::emulated::Emulation;
pub use backend::{Grid, Properties};
pub use blocks::{BlockTensor, Image, factored_image_into, image_into, quantize};
pub use buffer::{ALIGNMENT, Buffer, Element};
pub use convert::{Code, Converter, decode_into, words_into};
pub use device::Device;
pub use error::{Error, Result};
pub use pack::{Narrow, copy_matrix, pack, transpose_into, unpack};
pub use product::{Matrix, Order, Scales, multiply};
pub use view::{View, ViewMut};
