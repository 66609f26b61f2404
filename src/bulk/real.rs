//! The number types that slices hold.

use crate::format::Format;

/// A floating-point type of the language or of the crate `half`: `f32`, `f64`, and with the feature
/// `half` its `f16` and `bf16`.
pub trait Real: Copy + Send + Sync + sealed::Sealed {
    /// The format whose codes its bits are.
    const FORMAT: Format;
    /// Its bits.
    fn to_code(self) -> u64;
    /// The number with these bits.
    fn from_code(code: u64) -> Self;
}

mod sealed {
    pub trait Sealed: Sized {
        /// The same slice where the type is `f32`.
        fn f32s(_: &mut [Self]) -> Option<&mut [f32]> {
            None
        }
    }
}

macro_rules! real {
    ($($type:ty: $bits:ty, $format:ident;)*) => {$(
        impl Real for $type {
            const FORMAT: Format = Format::$format;
            #[inline(always)]
            fn to_code(self) -> u64 {
                self.to_bits() as u64
            }
            #[inline(always)]
            fn from_code(code: u64) -> Self {
                <$type>::from_bits(code as $bits)
            }
        }
    )*};
}

impl sealed::Sealed for f32 {
    #[inline(always)]
    fn f32s(slice: &mut [Self]) -> Option<&mut [f32]> {
        Some(slice)
    }
}
impl sealed::Sealed for f64 {}
#[cfg(feature = "half")]
impl sealed::Sealed for half::f16 {}
#[cfg(feature = "half")]
impl sealed::Sealed for half::bf16 {}

real! { f32: u32, F32; f64: u64, F64; }
#[cfg(feature = "half")]
real! { half::f16: u16, F16; half::bf16: u16, BF16; }
