//! Matrix products, each with a stated order of summation.
//!
//! [`mod@f32`]: f32 operands, or the f32 images of quantized ones. [`quantized`]: two block
//! tensors. [`mod@unit`]: what matrix units compute.

pub mod f32;
pub mod quantized;
pub mod unit;
