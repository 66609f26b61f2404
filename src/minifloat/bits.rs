//! The integers that store codes.

use core::fmt;
use core::hash::Hash;

use num_traits::ops::bytes::NumBytes;

/// An unsigned integer that stores a code: `u8`, `u16`, `u32` or `u64`.
pub trait Bits:
    Copy
    + Eq
    + Ord
    + Hash
    + Send
    + Sync
    + fmt::Debug
    + fmt::LowerHex
    + fmt::UpperHex
    + fmt::Binary
    + sealed::Sealed
{
    /// Bits of the integer.
    const WIDTH: u32;
    /// The integer's bytes: `[u8; N]`.
    type Bytes: Copy + NumBytes;
    /// Widens.
    fn to_u64(self) -> u64;
    /// Keeps the low bits.
    fn from_u64(code: u64) -> Self;
    /// The bytes, low ones first.
    fn to_le_bytes(self) -> Self::Bytes;
    /// The bytes, high ones first.
    fn to_be_bytes(self) -> Self::Bytes;
    /// From bytes, low ones first.
    fn from_le_bytes(bytes: Self::Bytes) -> Self;
    /// From bytes, high ones first.
    fn from_be_bytes(bytes: Self::Bytes) -> Self;
}

/// A slice of codes by its type.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum CodeSlice<'a> {
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
}

/// As [`CodeSlice`], for writing.
#[doc(hidden)]
pub enum CodeSliceMut<'a> {
    U8(&'a mut [u8]),
    U16(&'a mut [u16]),
    U32(&'a mut [u32]),
    U64(&'a mut [u64]),
}

pub(crate) mod sealed {
    use super::{CodeSlice, CodeSliceMut};

    /// A number without padding: all its bytes are initialized.
    pub trait Word: Copy + Send {}
    impl Word for u8 {}
    impl Word for u16 {}
    impl Word for u32 {}
    impl Word for u64 {}
    impl Word for f32 {}
    impl Word for f64 {}

    pub trait Sealed: Word {
        /// The slice by its type.
        fn codes(slice: &[Self]) -> CodeSlice<'_>;
        /// The slice by its type, for writing.
        fn codes_mut(slice: &mut [Self]) -> CodeSliceMut<'_>;
    }
}

macro_rules! bits {
    ($($type:ident $kind:ident)*) => {$(
        impl sealed::Sealed for $type {
            #[inline(always)]
            fn codes(slice: &[Self]) -> CodeSlice<'_> {
                CodeSlice::$kind(slice)
            }
            #[inline(always)]
            fn codes_mut(slice: &mut [Self]) -> CodeSliceMut<'_> {
                CodeSliceMut::$kind(slice)
            }
        }
        impl Bits for $type {
            const WIDTH: u32 = <$type>::BITS;
            type Bytes = [u8; size_of::<$type>()];
            #[inline]
            fn to_u64(self) -> u64 {
                self.into()
            }
            #[inline]
            fn from_u64(code: u64) -> Self {
                code as $type
            }
            #[inline]
            fn to_le_bytes(self) -> Self::Bytes {
                self.to_le_bytes()
            }
            #[inline]
            fn to_be_bytes(self) -> Self::Bytes {
                self.to_be_bytes()
            }
            #[inline]
            fn from_le_bytes(bytes: Self::Bytes) -> Self {
                <$type>::from_le_bytes(bytes)
            }
            #[inline]
            fn from_be_bytes(bytes: Self::Bytes) -> Self {
                <$type>::from_be_bytes(bytes)
            }
        }
    )*};
}

bits!(u8 U8 u16 U16 u32 U32 u64 U64);
