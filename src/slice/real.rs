//! The number types that slices hold, and what a slice of them is to the kernels.
//!
//! A kernel takes `f32`, `f64` or codes. So a slice of `f16` or `bf16` is a slice of codes of 16
//! bits, in place, and what converts codes converts these types too.

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

pub(super) mod sealed {
    pub trait Sealed: Sized {
        /// The slice by its type.
        fn reals(_: &[Self]) -> Reals<'_>;
        /// The slice by its type, for writing.
        fn reals_mut(_: &mut [Self]) -> RealsMut<'_>;
    }

    /// A slice of numbers by its type; those of the crate `half` are their codes.
    #[cfg_attr(not(feature = "half"), allow(dead_code))]
    #[derive(Clone, Copy)]
    pub enum Reals<'a> {
        F32(&'a [f32]),
        F64(&'a [f64]),
        Codes(&'a [u16]),
    }

    /// As [`Reals`], for writing.
    #[cfg_attr(not(feature = "half"), allow(dead_code))]
    pub enum RealsMut<'a> {
        F32(&'a mut [f32]),
        F64(&'a mut [f64]),
        Codes(&'a mut [u16]),
    }
}

macro_rules! real {
    ($($type:ty: $bits:ty, $format:ident, $kind:ident $(, $codes:ident, $codes_mut:ident)?;)*) => {$(
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

        impl sealed::Sealed for $type {
            #[inline(always)]
            fn reals(slice: &[Self]) -> sealed::Reals<'_> {
                sealed::Reals::$kind(slice $(.$codes())?)
            }
            #[inline(always)]
            fn reals_mut(slice: &mut [Self]) -> sealed::RealsMut<'_> {
                sealed::RealsMut::$kind(slice $(.$codes_mut())?)
            }
        }
    )*};
}

#[cfg(feature = "half")]
use half::slice::HalfFloatSliceExt as _;

real! { f32: u32, F32, F32; f64: u64, F64, F64; }
#[cfg(feature = "half")]
real! {
    half::f16: u16, F16, Codes, reinterpret_cast, reinterpret_cast_mut;
    half::bf16: u16, BF16, Codes, reinterpret_cast, reinterpret_cast_mut;
}
