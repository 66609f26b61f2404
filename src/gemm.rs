//! Matrix products, each with a stated order of summation.
//!
//! [`mod@f32`]: f32 operands, or the f32 images of quantized ones. [`quantized`]: two block
//! tensors. [`mod@unit`]: what matrix units compute. An [`Operand`] is a matrix of numbers as it is
//! stored, whatever they are.

pub mod f32;
mod operand;
pub mod quantized;
pub mod unit;

pub use operand::{Operand, Store, WidthError};
