//! Numbers as constants.
//!
//! The conversions of [`Minifloat`] are generic over the integer that stores a code, and generic
//! integers cannot be made in `const fn` on stable Rust. Three ways lead around it: the named types
//! have `const fn`s of their own, so have the markers that [`format!`](crate::define_format!) declares, and
//! [`number!`](crate::number) makes a constant of any type. Everything else can be asked of the
//! code, which [`Minifloat::to_bits`] gives in constants too:
//!
//! ```
//! use exmy::math::Operand;
//! use exmy::minifloat::E4M3;
//!
//! const X: E4M3 = E4M3::from_f32_const(1e9);
//! const IS_NAN: bool = Operand::new(E4M3::FORMAT, X.to_bits() as u64).is_nan();
//! assert!(IS_NAN);
//! ```

use super::*;
use crate::round::{Overflow, Rounding};

/// A [`Minifloat`] type, for [`number!`](crate::number), which must name its integer.
#[doc(hidden)]
pub trait Scalar {
    type Bits;
}

impl<F: FloatFormat> Scalar for Minifloat<F> {
    type Bits = F::Bits;
}

impl<F: FloatFormat> Minifloat<F> {
    /// The number with this code, whose bits above the format's width must be 0.
    #[doc(hidden)]
    pub const fn of_bits(bits: F::Bits) -> Self {
        Self(bits)
    }
}

/// A constant of any [`Minifloat`](crate::minifloat::Minifloat) type: the number nearest to a
/// constant `f64`, ties to even, with natural overflow.
///
/// ```
/// use exmy::minifloat::{E2M1, E4M3, ExMy, Minifloat};
///
/// const THIRD: E4M3 = exmy::number!(E4M3: 1.0 / 3.0);
/// const FINER: Minifloat<ExMy<6, 5>> = exmy::number!(Minifloat<ExMy<6, 5>>: 1.0 / 3.0);
/// assert_eq!((THIRD.to_f32(), FINER.to_f32()), (0.34375, 0.3359375));
///
/// // The named types have functions for it, which take what is no constant yet, too.
/// const NAN: E4M3 = E4M3::from_f32_const(1e9);
/// const LARGEST: f32 = E2M1::from_f64_const(1e300).to_f32_const();
/// const SEVEN: E2M1 = E2M1::from_bits_const(0xF7); // four bits are a code
/// assert!(NAN.is_nan() && LARGEST == 6.0 && SEVEN.to_bits() == 0x7);
/// ```
#[macro_export]
macro_rules! number {
    ($type:ty: $value:expr) => {{
        const CODE: u64 = <$type>::FORMAT
            .encode_f64(
                $value,
                $crate::round::Rounding::TiesToEven,
                $crate::round::Overflow::None,
                0,
            )
            .code;
        <$type>::of_bits(CODE as <$type as $crate::minifloat::Scalar>::Bits)
    }};
}

macro_rules! constants {
    ($($name:ident $bits:ident)*) => {$(
        /// As `const fn`s.
        impl $name {
            /// [`from_bits`](Self::from_bits) in constants: bits above the format's width are
            /// dropped.
            pub const fn from_bits_const(bits: $bits) -> Self {
                Self((bits as u64 & crate::format::low_bits(Self::FORMAT.bits())) as $bits)
            }

            /// [`from_f32`](Self::from_f32) in constants.
            pub const fn from_f32_const(x: f32) -> Self {
                Self(Self::FORMAT.encode_f32(x, Rounding::TiesToEven, Overflow::None, 0).code as $bits)
            }

            /// [`from_f64`](Self::from_f64) in constants.
            pub const fn from_f64_const(x: f64) -> Self {
                Self(Self::FORMAT.encode_f64(x, Rounding::TiesToEven, Overflow::None, 0).code as $bits)
            }

            /// [`to_f32`](Self::to_f32) in constants.
            pub const fn to_f32_const(self) -> f32 {
                Self::FORMAT.to_f32(self.0 as u64)
            }

            /// [`to_f64`](Self::to_f64) in constants.
            pub const fn to_f64_const(self) -> f64 {
                Self::FORMAT.to_f64(self.0 as u64)
            }
        }
    )*};
}

constants! {
    E4M3 u8 E5M2 u8 E4M3Ieee u8 E3M4 u8 E4M3Fnuz u8 E5M2Fnuz u8 E4M3B11Fnuz u8 E3M2 u8 E2M3 u8
    E2M1 u8 E3M0 u8 Int8 u8 E8M0 u8 Ue4m3 u8 Ue5m3 u8 F16 u16 Bf16 u16 Tf32 u32 E8M3 u16 E8M4 u16
    E8M5 u16 E8M6 u16 E8M13 u32 Binary8p3se u8 Binary8p4se u8 Binary8p5se u8 Binary8p1uf u8
    Binary4p2sf u8
}
