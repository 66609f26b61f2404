//! The formats that exist as types: every valid `ExMy` shape of up to 16 bits, the named ones and
//! a macro for others.
//!
//! Stable Rust cannot choose `u8` or `u16` from `1 + E + M`, so a macro writes one implementation
//! per shape and class.

use core::marker::PhantomData;

use super::{ConstantCodes, FloatFormat};
use crate::format::{Format, FormatBuilder, FormatError, Sign, Specials};

/// Class marker: infinities and NaNs as in IEEE 754.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ieee;

/// Class marker: finite numbers and an all-ones NaN, as OCP E4M3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fn;

/// Class marker: finite numbers, an unsigned zero, and NaN in the place of negative zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fnuz;

/// Class marker: finite numbers only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Finite;

/// The signed format of `E` exponent and `M` significand bits, with the usual bias of its class
/// `S`, as a type: [`Ieee`] unless said otherwise, [`Fn`], [`Fnuz`] or [`Finite`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExMy<const E: u32, const M: u32, S = Ieee>(PhantomData<S>);

/// Evaluated at compile time, where a format that cannot exist fails to compile.
#[doc(hidden)]
pub const fn built(format: Result<Format, FormatError>) -> Format {
    match format {
        Ok(format) => format,
        Err(_) => panic!("no such format can exist"),
    }
}

/// The remarkable codes of `Self::FORMAT` as the integer type; a cast is all that is missing in
/// generic constants on stable Rust.
#[doc(hidden)]
#[macro_export]
macro_rules! codes {
    ($bits:ident) => {{
        const fn cast(code: Option<u64>) -> Option<$bits> {
            match code {
                Some(code) => Some(code as $bits),
                None => None,
            }
        }
        let format = <Self as $crate::minifloat::FloatFormat>::FORMAT;
        assert!(format.bits() <= $bits::BITS, "the integer is too narrow for the format");
        $crate::minifloat::ConstantCodes {
            first: 0,
            max: format.max_code() as $bits,
            min: format.min_code() as $bits,
            min_positive: format.min_positive_code() as $bits,
            min_normal: cast(format.min_normal_code()),
            one: cast(format.one_code()),
            epsilon: cast(format.epsilon_code()),
            nan: cast(format.nan_code()),
            infinity: cast(format.infinity_code(false)),
            neg_infinity: cast(format.infinity_code(true)),
        }
    }};
}

macro_rules! shapes {
    ($bits:ident $class:ident: $($e:literal [$($m:literal)*])*) => {$($(
        impl FloatFormat for ExMy<$e, $m, $class> {
            type Bits = $bits;
            crate::facts! { ExMy<$e, $m, $class> }
            const FORMAT: Format = built(
                Format::builder(Sign::Magnitude, $e, $m).specials(Specials::$class).build(),
            );
            const CODES: ConstantCodes<$bits> = crate::codes!($bits);
        }
    )*)*};
}

shapes! { u8 Ieee:
    1 [1 2 3 4 5 6] 2 [1 2 3 4 5] 3 [1 2 3 4] 4 [1 2 3] 5 [1 2] 6 [1]
}
shapes! { u16 Ieee:
    1 [7 8 9 10 11 12 13 14] 2 [6 7 8 9 10 11 12 13] 3 [5 6 7 8 9 10 11 12] 4 [4 5 6 7 8 9 10 11]
    5 [3 4 5 6 7 8 9 10] 6 [2 3 4 5 6 7 8 9] 7 [1 2 3 4 5 6 7 8] 8 [1 2 3 4 5 6 7]
    9 [1 2 3 4 5 6] 10 [1 2 3 4 5] 11 [1 2 3 4] 12 [1 2 3] 13 [1 2] 14 [1]
}
shapes! { u32 Ieee: 8 [10 13 23] }
shapes! { u64 Ieee: 11 [52] }

macro_rules! shapes_without_infinity {
    ($($class:ident)*) => {$(
        shapes! { u8 $class:
            0 [2 3 4 5 6 7] 1 [1 2 3 4 5 6] 2 [0 1 2 3 4 5] 3 [0 1 2 3 4] 4 [0 1 2 3] 5 [0 1 2]
            6 [0 1] 7 [0]
        }
        shapes! { u16 $class:
            0 [8 9 10 11 12 13 14 15] 1 [7 8 9 10 11 12 13 14] 2 [6 7 8 9 10 11 12 13]
            3 [5 6 7 8 9 10 11 12] 4 [4 5 6 7 8 9 10 11] 5 [3 4 5 6 7 8 9 10] 6 [2 3 4 5 6 7 8 9]
            7 [1 2 3 4 5 6 7 8] 8 [0 1 2 3 4 5 6 7] 9 [0 1 2 3 4 5 6] 10 [0 1 2 3 4 5]
            11 [0 1 2 3 4] 12 [0 1 2 3] 13 [0 1 2] 14 [0 1] 15 [0]
        }
    )*};
}

shapes_without_infinity! { Fn Fnuz Finite }
// One magnitude bit: with Fn it would hold nothing but zero and NaN.
shapes! { u8 Fnuz: 0 [1] 1 [0] }
shapes! { u8 Finite: 0 [1] 1 [0] }

/// Declares a format as a type, for shapes and biases that [`ExMy`](crate::minifloat::ExMy) lacks.
///
/// After the name follow the storage integer and the format's textual form in tokens. That is a shape
/// `e{E}m{M}`, then optionally `bias`, and `specials`, one of [`Specials`](crate::format::Specials),
/// IEEE-like where none is named, of `e4m3` too. Or it is a name of the P3109 family, `binary6p3sf`. What
/// cannot exist, or does not fit the integer, fails to compile. The marker has `const fn`s:
/// `from_bits_const`, `from_f32_const` and their kin.
///
/// ```
/// use exmy::minifloat::Minifloat;
///
/// exmy::define_format! {
///     /// NVIDIA's accumulator for FP8 products, with a wider exponent.
///     pub struct Wide(u32): e9m13, bias 255
/// }
/// exmy::define_format! { struct Tiny(u8): e4m3, bias 11, specials Fnuz }
/// exmy::define_format! { struct Six(u8): binary6p3sf }
///
/// assert_eq!(Minifloat::<Wide>::from_f32(1.5).to_f32(), 1.5);
/// assert_eq!(Minifloat::<Tiny>::MAX.to_f32(), 30.0);
/// assert_eq!(Minifloat::<Six>::MAX.to_f32(), 14.0);
/// const THIRD: Minifloat<Wide> = Wide::from_f64_const(1.0 / 3.0);
/// assert_eq!(THIRD.to_f32(), 10923.0 / 32768.0); // 14 bits of 2^15 / 3 = 10922.67
/// ```
///
/// ```compile_fail
/// exmy::define_format! { struct TooWide(u8): e6m9 }
/// ```
#[macro_export]
macro_rules! define_format {
    ($(#[$meta:meta])* $vis:vis struct $name:ident($bits:ident): $shape:ident
        $(, bias $bias:expr)? $(, specials $specials:ident)? $(,)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis struct $name;

        /// Conversions of the format's numbers in constants; see
        /// [`Minifloat`]($crate::minifloat::Minifloat) for those at run time.
        #[allow(dead_code)]
        impl $name {
            /// The number with this code; bits above the format's width are dropped.
            pub const fn from_bits_const(bits: $bits) -> $crate::minifloat::Minifloat<Self> {
                let unused = $bits::BITS - $crate::minifloat::Minifloat::<Self>::FORMAT.bits();
                $crate::minifloat::Minifloat::of_bits(bits << unused >> unused)
            }

            /// The number nearest to `x`, ties to even, with natural overflow.
            pub const fn from_f32_const(x: f32) -> $crate::minifloat::Minifloat<Self> {
                let (mode, overflow) = ($crate::round::Rounding::TiesToEven, $crate::round::Overflow::None);
                let format = $crate::minifloat::Minifloat::<Self>::FORMAT;
                let code = format.encode_f32(x, mode, overflow, 0).code;
                $crate::minifloat::Minifloat::of_bits(code as $bits)
            }

            /// The number nearest to `x`, ties to even, with natural overflow.
            pub const fn from_f64_const(x: f64) -> $crate::minifloat::Minifloat<Self> {
                let (mode, overflow) = ($crate::round::Rounding::TiesToEven, $crate::round::Overflow::None);
                let format = $crate::minifloat::Minifloat::<Self>::FORMAT;
                let code = format.encode_f64(x, mode, overflow, 0).code;
                $crate::minifloat::Minifloat::of_bits(code as $bits)
            }

            /// The number as `f32`, rounded if it must be.
            pub const fn to_f32_const(x: $crate::minifloat::Minifloat<Self>) -> f32 {
                $crate::minifloat::Minifloat::<Self>::FORMAT.to_f32(x.to_bits() as u64)
            }

            /// The number as `f64`, rounded if it must be.
            pub const fn to_f64_const(x: $crate::minifloat::Minifloat<Self>) -> f64 {
                $crate::minifloat::Minifloat::<Self>::FORMAT.to_f64(x.to_bits() as u64)
            }
        }

        impl $crate::minifloat::sealed::Sealed for $name {}
        impl $crate::minifloat::FloatFormat for $name {
            type Bits = $bits;
            $crate::facts! { $name }
            const FORMAT: $crate::format::Format = {
                let builder = $crate::minifloat::shape(stringify!($shape));
                $(let builder = builder.bias($bias);)?
                $(let builder = builder.specials($crate::format::Specials::$specials);)?
                $crate::minifloat::built(builder.build())
            };
            const CODES: $crate::minifloat::ConstantCodes<$bits> = $crate::codes!($bits);
        }

        // Where it is declared, not where it is first used, is the place for an error.
        const _: $crate::minifloat::ConstantCodes<$bits> =
            <$name as $crate::minifloat::FloatFormat>::CODES;
    };
}

/// What `[u]e{E}m{M}` or `binary{K}p{P}{s|u}{e|f}` describes, at compile time.
#[doc(hidden)]
pub const fn shape(text: &str) -> FormatBuilder {
    const BAD: &str = "a shape is written e4m3, ue4m3 or binary8p3se";
    /// One or two digits from `at`, and where they end.
    const fn number(text: &[u8], mut at: usize) -> (u32, usize) {
        let (start, mut number) = (at, 0);
        while at < text.len() && text[at].is_ascii_digit() {
            number = number * 10 + (text[at] - b'0') as u32;
            at += 1;
        }
        assert!(at > start && at - start <= 2, "{}", BAD);
        (number, at)
    }
    const fn letter(text: &[u8], at: usize) -> u8 {
        assert!(at < text.len(), "{}", BAD);
        text[at]
    }
    let text = text.as_bytes();
    if letter(text, 0) == b'b' {
        let mut at = 0;
        while at < 6 {
            assert!(letter(text, at) == b"binary"[at], "{}", BAD);
            at += 1;
        }
        let (k, at) = number(text, at);
        assert!(letter(text, at) == b'p', "{}", BAD);
        let (p, at) = number(text, at + 1);
        let (sign, domain) = (letter(text, at), letter(text, at + 1));
        assert!(matches!((sign, domain), (b's' | b'u', b'e' | b'f')), "{}", BAD);
        assert!(at + 2 == text.len(), "{}", BAD);
        let format = built(Format::p3109(k, p, sign == b's', domain == b'e'));
        return Format::builder(format.sign(), format.exp_bits(), format.man_bits())
            .specials(format.specials());
    }
    let unsigned = letter(text, 0) == b'u';
    let at = unsigned as usize;
    assert!(letter(text, at) == b'e', "{}", BAD);
    let (exp_bits, at) = number(text, at + 1);
    assert!(letter(text, at) == b'm', "{}", BAD);
    let (man_bits, at) = number(text, at + 1);
    assert!(at == text.len(), "{}", BAD);
    let sign = if unsigned { Sign::Unsigned } else { Sign::Magnitude };
    Format::builder(sign, exp_bits, man_bits)
}
