//! `From`, which stands for exact widening only: from the named types into `f32`, `f64` and wider
//! named types, from small integers, and between these types and the crate `half`'s.
//!
//! Every pair is checked when the crate is compiled. [`Minifloat::to_f32`] and
//! [`Minifloat::from_minifloat`] round where they must.

use super::*;

/// Whether every value of one format, with its special ones, is one of another.
const fn widens(from: Format, to: Format) -> bool {
    let fits = match to.bits() {
        64 => from.is_exact_in_f64(),
        32 => from.is_exact_in_f32(),
        // The named types' exponents decide it; precision by the longest significand.
        _ => {
            from.precision() <= to.precision()
                && from.lsb() >= to.lsb()
                && from.emax() + matches!(from.sign(), crate::format::Sign::TwosComplement) as i32
                    <= to.emax()
        }
    };
    fits && (to.has_nan() || !from.has_nan())
        && (to.has_infinity() || !from.has_infinity())
        && (to.has_negative_zero() || !from.has_negative_zero())
        && (to.is_signed() || !from.is_signed())
}

macro_rules! widening {
    ($($to:ident from $($from:ident)*;)*) => {$($(
        const _: () = assert!(widens($from::FORMAT, $to::FORMAT));

        /// The same number.
        impl From<$from> for $to {
            #[inline]
            fn from(x: $from) -> Self {
                Self::from_minifloat(x)
            }
        }
    )*)*};
}

macro_rules! into_float {
    ($float:ident $format:ident $method:ident: $($from:ident)*) => {$(
        const _: () = assert!(widens($from::FORMAT, Format::$format));

        /// The same number.
        impl From<$from> for $float {
            #[inline]
            fn from(x: $from) -> Self {
                x.$method()
            }
        }
    )*};
}

into_float! { f64 F64 to_f64: E4M3 E5M2 E4M3Ieee E3M4 E4M3Fnuz E5M2Fnuz E4M3B11Fnuz E3M2 E2M3 E2M1
E3M0 Int8 E8M0 Ue4m3 Ue5m3 F16 Bf16 Tf32 E8M3 E8M4 E8M5 E8M6 E8M13 Binary8p3se Binary8p4se
Binary8p5se Binary8p1uf Binary4p2sf }
into_float! { f32 F32 to_f32: E4M3 E5M2 E4M3Ieee E3M4 E4M3Fnuz E5M2Fnuz E4M3B11Fnuz E3M2 E2M3 E2M1
E3M0 Int8 E8M0 Ue4m3 Ue5m3 F16 Bf16 Tf32 E8M3 E8M4 E8M5 E8M6 E8M13 Binary8p3se Binary8p4se
Binary8p5se Binary8p1uf Binary4p2sf }
widening! {
    F16 from E4M3 E5M2 E4M3Ieee E3M4 E4M3Fnuz E5M2Fnuz E4M3B11Fnuz E3M2 E2M3 E2M1 E3M0 Int8 Ue4m3
        Binary8p3se Binary8p4se Binary8p5se Binary4p2sf;
    Bf16 from E4M3 E5M2 E4M3Ieee E3M4 E4M3Fnuz E5M2Fnuz E4M3B11Fnuz E3M2 E2M3 E2M1 E3M0 Int8 Ue4m3
        Ue5m3 E8M0 E8M3 E8M4 E8M5 E8M6 Binary8p3se Binary8p4se Binary8p5se Binary4p2sf;
    Tf32 from F16 Bf16;
    E8M13 from Tf32 F16 Bf16;
    E4M3 from E2M1 E2M3 E3M2 E3M0;
    E5M2 from E2M1 E3M2 E3M0;
    E2M3 from E2M1;
    E3M2 from E2M1 E3M0;
}

macro_rules! from_integers {
    ($($to:ident from $($integer:ident)*;)*) => {$($(
        const _: () = assert!($integer::BITS <= $to::FORMAT.precision());

        /// The same number.
        impl From<$integer> for $to {
            fn from(n: $integer) -> Self {
                Self::from_int(n.into())
            }
        }
    )*)*};
}

from_integers! {
    F16 from u8 i8;
    Bf16 from u8 i8;
    Tf32 from u8 i8;
    E8M13 from u8 i8;
}
