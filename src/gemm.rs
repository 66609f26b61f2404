//! Matrix products.
//!
//! [`mod@f32`]: unquantized operands or the f32 images of quantized ones, in one written order of
//! summation on every machine.

pub mod f32;
