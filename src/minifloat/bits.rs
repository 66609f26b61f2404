//! The integers that store codes.

use core::fmt;
use core::hash::Hash;

/// An unsigned integer that stores a code: `u8`, `u16`, `u32` or `u64`.
pub trait Bits:
    Copy + Eq + Ord + Hash + fmt::Debug + fmt::LowerHex + fmt::UpperHex + fmt::Binary + sealed::Sealed
{
    /// Bits of the integer.
    const WIDTH: u32;
    /// The integer's bytes: `[u8; N]`.
    type Bytes: Copy + AsRef<[u8]> + AsMut<[u8]> + fmt::Debug + PartialEq;
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

mod sealed {
    pub trait Sealed {}
}

macro_rules! bits {
    ($($type:ident)*) => {$(
        impl sealed::Sealed for $type {}
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

bits!(u8 u16 u32 u64);
