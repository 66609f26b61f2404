//! The types with a name, and the constants of each.
//!
//! The constants in the documentation are compared with the code by `tests/minifloat/names.rs`.

use super::{ConstantCodes, ExMy, Finite, FloatFormat, Fn, Fnuz, Minifloat};
use crate::format::Format;

/// A format of the catalog that is not an [`ExMy`] shape.
macro_rules! named {
    ($($(#[$meta:meta])* $name:ident: $format:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name;

        impl crate::minifloat::sealed::Sealed for $name {}
        impl FloatFormat for $name {
            type Bits = u8;
            crate::facts! { $name }
            const FORMAT: Format = Format::$format;
            const CODES: ConstantCodes<u8> = crate::codes!(u8);
        }
    )*};
}

named! {
    /// Marker of [`Format::E4M3B11FNUZ`].
    E4M3B11FnuzFormat: E4M3B11FNUZ;
    /// Marker of [`Format::INT8`].
    Int8Format: INT8;
    /// Marker of [`Format::E8M0`].
    E8M0Format: E8M0;
    /// Marker of [`Format::UE4M3`].
    Ue4m3Format: UE4M3;
    /// Marker of [`Format::UE5M3`].
    Ue5m3Format: UE5M3;
}

crate::define_format! {
    /// Marker of the P3109 format `Binary8p3se`.
    pub struct Binary8p3seFormat(u8): binary8p3se
}
crate::define_format! {
    /// Marker of the P3109 format `Binary8p4se`.
    pub struct Binary8p4seFormat(u8): binary8p4se
}
crate::define_format! {
    /// Marker of the P3109 format `Binary8p5se`.
    pub struct Binary8p5seFormat(u8): binary8p5se
}
crate::define_format! {
    /// Marker of the P3109 format `Binary8p1uf`.
    pub struct Binary8p1ufFormat(u8): binary8p1uf
}
crate::define_format! {
    /// Marker of the P3109 format `Binary4p2sf`.
    pub struct Binary4p2sfFormat(u8): binary4p2sf
}

/// OCP FP8 E4M3, [`Format::E4M3FN`]: NaN but no infinity, largest value 448.
///
/// `MAX` 448, `MIN` -448, `MIN_NORMAL` 2^-6, `MIN_POSITIVE` 2^-9, `EPSILON` 2^-3;
/// NaN 0x7f, no infinity, one 0x38.
#[doc(alias = "float8_e4m3fn")]
pub type E4M3 = Minifloat<ExMy<4, 3, Fn>>;
/// OCP FP8 E5M2, [`Format::E5M2`].
///
/// `MAX` 57344, `MIN` -57344, `MIN_NORMAL` 2^-14, `MIN_POSITIVE` 2^-16, `EPSILON` 2^-2;
/// NaN 0x7e, infinity 0x7c, one 0x3c.
#[doc(alias = "float8_e5m2")]
pub type E5M2 = Minifloat<ExMy<5, 2>>;
/// The IEEE-like E4M3 of ml_dtypes, [`Format::E4M3_IEEE`].
///
/// `MAX` 240, `MIN` -240, `MIN_NORMAL` 2^-6, `MIN_POSITIVE` 2^-9, `EPSILON` 2^-3;
/// NaN 0x7c, infinity 0x78, one 0x38.
#[doc(alias = "float8_e4m3")]
pub type E4M3Ieee = Minifloat<ExMy<4, 3>>;
/// The IEEE-like E3M4 of ml_dtypes, [`Format::E3M4`].
///
/// `MAX` 15.5, `MIN` -15.5, `MIN_NORMAL` 2^-2, `MIN_POSITIVE` 2^-6, `EPSILON` 2^-4;
/// NaN 0x78, infinity 0x70, one 0x30.
#[doc(alias = "float8_e3m4")]
pub type E3M4 = Minifloat<ExMy<3, 4>>;
/// AMD CDNA3 fp8, [`Format::E4M3FNUZ`].
///
/// `MAX` 240, `MIN` -240, `MIN_NORMAL` 2^-7, `MIN_POSITIVE` 2^-10, `EPSILON` 2^-3;
/// NaN 0x80, no infinity, one 0x40.
#[doc(alias = "float8_e4m3fnuz")]
pub type E4M3Fnuz = Minifloat<ExMy<4, 3, Fnuz>>;
/// AMD CDNA3 bf8, [`Format::E5M2FNUZ`].
///
/// `MAX` 57344, `MIN` -57344, `MIN_NORMAL` 2^-15, `MIN_POSITIVE` 2^-17, `EPSILON` 2^-2;
/// NaN 0x80, no infinity, one 0x40.
#[doc(alias = "float8_e5m2fnuz")]
pub type E5M2Fnuz = Minifloat<ExMy<5, 2, Fnuz>>;
/// [`Format::E4M3B11FNUZ`].
///
/// `MAX` 30, `MIN` -30, `MIN_NORMAL` 2^-10, `MIN_POSITIVE` 2^-13, `EPSILON` 2^-3;
/// NaN 0x80, no infinity, one 0x58.
#[doc(alias = "float8_e4m3b11fnuz")]
pub type E4M3B11Fnuz = Minifloat<E4M3B11FnuzFormat>;
/// OCP MX FP6, [`Format::E3M2`].
///
/// `MAX` 28, `MIN` -28, `MIN_NORMAL` 2^-2, `MIN_POSITIVE` 2^-4, `EPSILON` 2^-2;
/// no NaN, no infinity, one 0xc.
#[doc(alias = "float6_e3m2fn")]
pub type E3M2 = Minifloat<ExMy<3, 2, Finite>>;
/// OCP MX FP6, [`Format::E2M3`].
///
/// `MAX` 7.5, `MIN` -7.5, `MIN_NORMAL` 1, `MIN_POSITIVE` 2^-3, `EPSILON` 2^-3;
/// no NaN, no infinity, one 0x8.
#[doc(alias = "float6_e2m3fn")]
pub type E2M3 = Minifloat<ExMy<2, 3, Finite>>;
/// OCP MX FP4, [`Format::E2M1`].
///
/// `MAX` 6, `MIN` -6, `MIN_NORMAL` 1, `MIN_POSITIVE` 2^-1, `EPSILON` 2^-1;
/// no NaN, no infinity, one 0x2.
#[doc(alias = "float4_e2m1fn")]
pub type E2M1 = Minifloat<ExMy<2, 1, Finite>>;
/// FP4 of powers of two, [`Format::E3M0`].
///
/// `MAX` 16, `MIN` -16, `MIN_NORMAL` 2^-2, `MIN_POSITIVE` 2^-2, `EPSILON` 1;
/// no NaN, no infinity, one 0x3.
pub type E3M0 = Minifloat<ExMy<3, 0, Finite>>;
/// OCP MX INT8, [`Format::INT8`].
///
/// `MAX` 1.984375, `MIN` -2, no `MIN_NORMAL`, `MIN_POSITIVE` 2^-6, `EPSILON` 2^-6;
/// no NaN, no infinity, one 0x40.
pub type Int8 = Minifloat<Int8Format>;
/// OCP MX scale, [`Format::E8M0`].
///
/// `MAX` 2^127, `MIN` 2^-127, `MIN_NORMAL` 2^-127, `MIN_POSITIVE` 2^-127, `EPSILON` 1;
/// NaN 0xff, no infinity, one 0x7f.
#[doc(alias = "float8_e8m0fnu")]
pub type E8M0 = Minifloat<E8M0Format>;
/// NVFP4 block scale, [`Format::UE4M3`].
///
/// `MAX` 448, `MIN` 0, `MIN_NORMAL` 2^-6, `MIN_POSITIVE` 2^-9, `EPSILON` 2^-3;
/// NaN 0x7f, no infinity, one 0x38.
pub type Ue4m3 = Minifloat<Ue4m3Format>;
/// Unsigned E5M3, [`Format::UE5M3`].
///
/// `MAX` 114688, `MIN` 0, `MIN_NORMAL` 2^-14, `MIN_POSITIVE` 2^-17, `EPSILON` 2^-3;
/// NaN 0xff, no infinity, one 0x78.
pub type Ue5m3 = Minifloat<Ue5m3Format>;
/// binary16, [`Format::F16`].
///
/// `MAX` 65504, `MIN` -65504, `MIN_NORMAL` 2^-14, `MIN_POSITIVE` 2^-24, `EPSILON` 2^-10;
/// NaN 0x7e00, infinity 0x7c00, one 0x3c00.
#[doc(alias = "float16")]
pub type F16 = Minifloat<ExMy<5, 10>>;
/// bfloat16, [`Format::BF16`].
///
/// `MAX` 255 * 2^120, `MIN` -255 * 2^120, `MIN_NORMAL` 2^-126, `MIN_POSITIVE` 2^-133, `EPSILON` 2^-7;
/// NaN 0x7fc0, infinity 0x7f80, one 0x3f80.
#[doc(alias = "bfloat16")]
pub type Bf16 = Minifloat<ExMy<8, 7>>;
/// TF32, [`Format::TF32`]; a code has 19 bits.
///
/// `MAX` 2047 * 2^117, `MIN` -2047 * 2^117, `MIN_NORMAL` 2^-126, `MIN_POSITIVE` 2^-136, `EPSILON` 2^-10;
/// NaN 0x3fe00, infinity 0x3fc00, one 0x1fc00.
pub type Tf32 = Minifloat<ExMy<8, 10>>;
/// E8M3, a bfloat16 with four significand bits less.
///
/// `MAX` 15 * 2^124, `MIN` -15 * 2^124, `MIN_NORMAL` 2^-126, `MIN_POSITIVE` 2^-129, `EPSILON` 2^-3;
/// NaN 0x7fc, infinity 0x7f8, one 0x3f8.
pub type E8M3 = Minifloat<ExMy<8, 3>>;
/// E8M4.
///
/// `MAX` 31 * 2^123, `MIN` -31 * 2^123, `MIN_NORMAL` 2^-126, `MIN_POSITIVE` 2^-130, `EPSILON` 2^-4;
/// NaN 0xff8, infinity 0xff0, one 0x7f0.
pub type E8M4 = Minifloat<ExMy<8, 4>>;
/// E8M5.
///
/// `MAX` 63 * 2^122, `MIN` -63 * 2^122, `MIN_NORMAL` 2^-126, `MIN_POSITIVE` 2^-131, `EPSILON` 2^-5;
/// NaN 0x1ff0, infinity 0x1fe0, one 0xfe0.
pub type E8M5 = Minifloat<ExMy<8, 5>>;
/// E8M6.
///
/// `MAX` 127 * 2^121, `MIN` -127 * 2^121, `MIN_NORMAL` 2^-126, `MIN_POSITIVE` 2^-132, `EPSILON` 2^-6;
/// NaN 0x3fe0, infinity 0x3fc0, one 0x1fc0.
pub type E8M6 = Minifloat<ExMy<8, 6>>;
/// E8M13, the accumulator of FP8 products on NVIDIA's Hopper.
///
/// `MAX` 16383 * 2^114, `MIN` -16383 * 2^114, `MIN_NORMAL` 2^-126, `MIN_POSITIVE` 2^-139, `EPSILON` 2^-13;
/// NaN 0x1ff000, infinity 0x1fe000, one 0xfe000.
pub type E8M13 = Minifloat<ExMy<8, 13>>;
/// IEEE P3109 `Binary8p3se`: as E5M2, with one NaN, one zero, and bias 16.
///
/// `MAX` 49152, `MIN` -49152, `MIN_NORMAL` 2^-15, `MIN_POSITIVE` 2^-17, `EPSILON` 2^-2;
/// NaN 0x80, infinity 0x7f, one 0x40.
pub type Binary8p3se = Minifloat<Binary8p3seFormat>;
/// IEEE P3109 `Binary8p4se`: as E4M3 with bias 8, one NaN, one zero, and infinities.
///
/// `MAX` 224, `MIN` -224, `MIN_NORMAL` 2^-7, `MIN_POSITIVE` 2^-10, `EPSILON` 2^-3;
/// NaN 0x80, infinity 0x7f, one 0x40.
pub type Binary8p4se = Minifloat<Binary8p4seFormat>;
/// IEEE P3109 `Binary8p5se`.
///
/// `MAX` 15, `MIN` -15, `MIN_NORMAL` 2^-3, `MIN_POSITIVE` 2^-7, `EPSILON` 2^-4;
/// NaN 0x80, infinity 0x7f, one 0x40.
pub type Binary8p5se = Minifloat<Binary8p5seFormat>;
/// IEEE P3109 `Binary8p1uf`, its scale of powers of two; unlike E8M0 it has a zero.
///
/// `MAX` 2^126, `MIN` 0, `MIN_NORMAL` 2^-127, `MIN_POSITIVE` 2^-127, `EPSILON` 1;
/// NaN 0xff, no infinity, one 0x80.
pub type Binary8p1uf = Minifloat<Binary8p1ufFormat>;
/// IEEE P3109 `Binary4p2sf`: as E2M1 with bias 2, one NaN and one zero.
///
/// `MAX` 3, `MIN` -3, `MIN_NORMAL` 2^-1, `MIN_POSITIVE` 2^-2, `EPSILON` 2^-1;
/// NaN 0x8, no infinity, one 0x4.
pub type Binary4p2sf = Minifloat<Binary4p2sfFormat>;
