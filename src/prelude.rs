//! What most programs use: `use exmy::prelude::*;`.
//!
//! None of its names is one of the standard library's prelude.
//!
//! ```
//! use exmy::prelude::*;
//!
//! assert_eq!(E2M1::from_f32_with(5.0, Rounding::TowardZero, Overflow::None).to_f32(), 4.0);
//! assert_eq!(format!("{}", Format::E2M1), "e2m1"); // std's `format!`
//! ```

#[cfg(feature = "block")]
pub use crate::block::{Axis, BlockFormat, BlockTensor};
pub use crate::format::Format;
pub use crate::minifloat::{
    Bf16, E2M1, E2M3, E3M2, E3M4, E4M3, E5M2, E8M0, ExMy, F16, Int8, Minifloat, Tf32, Ue4m3,
};
#[cfg(feature = "block")]
pub use crate::quantizer::Quantizer;
pub use crate::round::{Overflow, Rounding, Rules};
#[cfg(feature = "alloc")]
pub use crate::slice::{Converter, View, ViewMut};
