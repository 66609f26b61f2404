//! Conversions by a handful of integer operations, for the formats that lie inside `f32` or `f64`.
//!
//! [`Format::encode_by`](crate::format::Format::encode_by) is the definition. This module gives the
//! same codes for one mode, nearest even, with natural overflow. Tests compare the two on every
//! boundary input of every shape, and on all 2^32 binary32 inputs of six formats. Everything about
//! the format is a constant, computed by the definition, and the code has no branches, so that
//! loops over it become vector code.
//!
//! * Where the target's place is relative (normal results), just under half of the lower bits of
//!   the wider encoding is added, or half if the kept part is odd. Then they are cut off. A carry
//!   out of the significand is the next exponent, as it should be.
//! * Where the place is absolute (subnormal results), a power of two whose last place is the
//!   target's is added. The machine's adder rounds, to nearest even as always in Rust.
//! * Reading back shifts the code up; a subnormal's missing hidden bit is put there and subtracted
//!   again, exactly. Formats of up to 8 bits read a table.

use super::FloatFormat;
use crate::format::{Format, Sign, Specials};
use crate::round::{Flags, Overflow, Rounding};

macro_rules! narrowing {
    ($(#[$meta:meta])* $name:ident: $float:ident $word:ident, $encode_with:ident, $exact:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy)]
        pub(super) struct $name {
            /// Whether the format's grid lies inside that of the wider one, so that `encode` is
            /// right.
            pub(super) encodes: bool,
            /// Whether `decode` is right too.
            pub(super) decodes: bool,
            signed: bool,
            /// Negative zero, or zero, in the place of the sign bit.
            zero_sign: $word,
            shift: u32,
            magnitude_bits: u32,
            /// Bits of the smallest magnitude that overflows.
            beyond: $word,
            /// Bits of `2^emin`.
            normal: $word,
            rebias: $word,
            magic: $float,
            /// Whether the code is a part of the wider one's bits: same exponents, same specials.
            is_prefix: bool,
            max_code: $word,
            infinity: $word,
            /// The result of overflow and of NaN, and the bits that a minus sign changes in them.
            past: $word,
            past_sign: $word,
            nan: $word,
            nan_sign: $word,
        }

        impl $name {
            const MAN_BITS: u32 = $float::MANTISSA_DIGITS - 1;
            const BIAS: i32 = $float::MAX_EXP - 1;
            const INFINITY: $word = $float::INFINITY.to_bits();
            const SIGN: u32 = $word::BITS - 1;

            pub(super) const fn of(format: Format) -> Self {
                let (emin, lsb, man_bits) = (format.emin(), format.lsb(), format.man_bits());
                let encodes = !matches!(format.sign(), Sign::TwosComplement)
                    && format.has_zero()
                    && format.field_zero_is_low()
                    && man_bits < Self::MAN_BITS
                    && format.bits() <= $word::BITS
                    && emin > -Self::BIAS
                    && lsb + Self::MAN_BITS as i32 <= Self::BIAS;
                let past = Self::plain(format, $float::INFINITY);
                let past_sign = past ^ Self::plain(format, $float::NEG_INFINITY);
                let nan = Self::plain(format, $float::NAN);
                let place = (1_u64 << format.magnitude_bits()) as $word;
                Self {
                    encodes,
                    decodes: encodes && format.$exact(),
                    signed: format.is_signed(),
                    zero_sign: if format.has_negative_zero() { place } else { 0 },
                    shift: Self::MAN_BITS.saturating_sub(man_bits),
                    magnitude_bits: format.magnitude_bits(),
                    beyond: Self::first_beyond(format),
                    normal: if encodes { Self::power(emin) } else { 0 },
                    rebias: if encodes { Self::power(emin) - Self::power(1 - Self::BIAS) } else { 0 },
                    magic: if encodes {
                        $float::from_bits(Self::power(lsb + Self::MAN_BITS as i32))
                    } else {
                        0.0
                    },
                    is_prefix: encodes
                        && emin == 1 - Self::BIAS
                        && format.max_code() + 1 == (Self::INFINITY >> (Self::MAN_BITS - man_bits)) as u64
                        && matches!(format.specials(), Specials::Ieee),
                    max_code: format.max_code() as $word,
                    infinity: match format.infinity_code(false) {
                        Some(code) => code as $word,
                        None => $word::MAX,
                    },
                    past,
                    past_sign,
                    nan,
                    nan_sign: if format.nan_has_sign() { place } else { 0 },
                }
            }

            /// Bits of a power of two that is a normal number.
            const fn power(exponent: i32) -> $word {
                ((exponent + Self::BIAS) as $word) << Self::MAN_BITS
            }

            const fn plain(format: Format, x: $float) -> $word {
                format.$encode_with(x, Rounding::TiesToEven, Overflow::None, 0).code as $word
            }

            /// Bits of the smallest magnitude that overflows, by bisection: rounding is monotone.
            const fn first_beyond(format: Format) -> $word {
                let (mut low, mut high) = (0, Self::INFINITY);
                while high - low > 1 {
                    let middle = low + (high - low) / 2;
                    let x = $float::from_bits(middle);
                    let rounded = format.$encode_with(x, Rounding::TiesToEven, Overflow::None, 0);
                    if rounded.flags.contains(Flags::OVERFLOW) {
                        high = middle;
                    } else {
                        low = middle;
                    }
                }
                high
            }

            /// The code of a number, to nearest even with natural overflow. A negative number
            /// needs a signed format.
            #[inline(always)]
            pub(super) fn encode(self, x: $float) -> $word {
                let minus = (x.to_bits() >> Self::SIGN).wrapping_neg();
                let nan = self.nan | minus & self.nan_sign;
                if Self::is_nan(x) { nan } else { self.encode_number(x) }
            }

            /// `x.is_nan()`, as a comparison of integers, which becomes no jump.
            #[inline(always)]
            pub(super) fn is_nan(x: $float) -> bool {
                x.to_bits() & ($word::MAX >> 1) > Self::INFINITY
            }

            /// The code of what is known not to be NaN.
            #[inline(always)]
            pub(super) fn encode_number(self, x: $float) -> $word {
                let bits = x.to_bits();
                let magnitude = bits & ($word::MAX >> 1);
                let negative = bits >> Self::SIGN;
                let minus = negative.wrapping_neg();
                let relative = magnitude.wrapping_sub(self.rebias);
                let half = ((1 as $word) << (self.shift - 1)) - 1;
                let odd = relative >> self.shift & 1;
                let cut = (relative.wrapping_add(half).wrapping_add(odd)) >> self.shift;
                let sign = minus & (1 as $word) << self.magnitude_bits;
                if self.is_prefix {
                    return cut | sign;
                }
                let sum = $float::from_bits(magnitude) + self.magic;
                let absolute = sum.to_bits().wrapping_sub(self.magic.to_bits());
                let finite = if magnitude < self.normal { absolute } else { cut };
                let sign = if finite == 0 { sign & self.zero_sign } else { sign };
                let special = self.past ^ minus & self.past_sign;
                if magnitude >= self.beyond { special } else { finite | sign }
            }

            /// Whether `encode` may be asked for this number's code.
            #[inline(always)]
            pub(super) fn takes(self, x: $float) -> bool {
                self.encodes && (self.signed || x.to_bits() >> Self::SIGN == 0)
            }

            /// As `decode`, but of a NaN any NaN.
            #[inline(always)]
            pub(super) fn decode_number(self, code: $word, format: Format) -> $float {
                if self.is_prefix {
                    let sign = (code >> self.magnitude_bits) << Self::SIGN;
                    let magnitude = code & ((1 as $word) << self.magnitude_bits) - 1;
                    $float::from_bits(magnitude << self.shift | sign)
                } else {
                    self.decode(code, format)
                }
            }

            /// The number of a code, exactly.
            #[inline(always)]
            pub(super) fn decode(self, code: $word, format: Format) -> $float {
                let magnitude = code & ((1 as $word) << self.magnitude_bits) - 1;
                let sign = (code >> self.magnitude_bits) << Self::SIGN;
                let shifted = magnitude << self.shift;
                if self.is_prefix {
                    let number = magnitude <= self.infinity;
                    let unsigned = if number { shifted } else { $float::NAN.to_bits() };
                    return $float::from_bits(unsigned | sign);
                }
                let finite = if self.rebias == 0 {
                    shifted // the wider format's own subnormals
                } else {
                    let subnormal = $float::from_bits(shifted.wrapping_add(self.normal))
                        - $float::from_bits(self.normal);
                    let low = magnitude >> format.man_bits() == 0;
                    if low { subnormal.to_bits() } else { shifted + self.rebias }
                };
                let special =
                    if magnitude == self.infinity { Self::INFINITY } else { $float::NAN.to_bits() };
                let unsigned = if magnitude > self.max_code { special } else { finite };
                let one_nan = matches!(format.specials(), Specials::Fnuz | Specials::P3109 { .. });
                if one_nan && code == self.nan {
                    return $float::NAN;
                }
                $float::from_bits(unsigned | sign)
            }
        }
    };
}

narrowing! {
    /// To and from binary32.
    By32: f32 u32, encode_f32, is_exact_in_f32
}
narrowing! {
    /// To and from binary64.
    By64: f64 u64, encode_f64, is_exact_in_f64
}

/// The values of an 8-bit format's codes as binary32.
pub(super) struct Table<F>(core::marker::PhantomData<F>);

impl<F: FloatFormat> Table<F> {
    pub(super) const F32: [f32; 256] = {
        let mut table = [0.0; 256];
        let mut code = 0;
        while code < 256 {
            table[code] = F::FORMAT.to_f32(code as u64);
            code += 1;
        }
        table
    };
}
