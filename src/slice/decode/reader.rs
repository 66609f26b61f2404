//! Codes to binary32 by integer operations, without branches: three bodies for all formats whose
//! values are binary32 values.
//!
//! * *Prefix*: the exponent field is binary32's (`e8mN`, bf16, TF32). A code is the top of the word.
//! * *Regular*: the magnitude, shifted to binary32's fields, needs another bias. Below the lowest
//!   binade the hidden bit is put in and subtracted again, exactly (no multiplication: those by a
//!   subnormal number take microcode on some processors). The values of the two codes that may be
//!   zero, and where infinity and NaN begin, come from [`Format::decode`], so that one body serves
//!   every class of special values.
//! * *Fixed*: a two's complement integer times a power of two.
//!
//! Not served are formats whose unusual bias brings them to the ends of binary32. These have normal
//! numbers below `2^-126` other than the smallest one, or subnormal ones whose binade would be
//! `2^128`.

use crate::format::{Format, Sign, Specials, low_bits};
use crate::minifloat::Bits;
use crate::simd::kernel;
use crate::slice::lookup::{BYTES, Table};

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7F80_0000;
const NAN: u32 = 0x7FC0_0000;

/// A format prepared for the kernels.
#[derive(Clone, Copy, Debug)]
pub(in crate::slice) enum CodeReader {
    Prefix(Prefix),
    Regular(Regular),
    Fixed(Fixed),
}

impl CodeReader {
    /// `None` if a value is no binary32 number, or lies where the bodies do not reach.
    pub(in crate::slice) const fn new(format: Format) -> Option<Self> {
        if !format.is_exact_in_f32() || format.bits() > 32 {
            return None;
        }
        let signed = format.is_signed();
        let shift = 23 - format.man_bits();
        if matches!(format.sign(), Sign::TwosComplement) {
            let unit = format.decode(1).to_f32();
            return Some(Self::Fixed(Fixed { shift: 32 - format.bits(), unit }));
        }
        let prefix = matches!(format.specials(), Specials::Ieee)
            && format.exp_bits() == 8
            && format.bias() == 127
            && format.has_zero()
            && format.has_subnormals()
            && format.has_negative_zero() == signed;
        if prefix {
            let mask = low_bits(format.bits()) as u32;
            return Some(Self::Prefix(Prefix { mask, shift }));
        }
        // Where field 0 holds one number alone, that number is looked up.
        let low = format.field_zero_is_low() || format.man_bits() == 0;
        // The lowest binade must be one of normal numbers of binary32.
        let lowest = format.emin() + ((low && !format.field_zero_is_low()) as i32);
        if lowest < -126 || format.emin() > 127 {
            return None;
        }
        let place = (signed as u32) << (format.magnitude_bits() & 31);
        let base = (format.emin() + 127) as u32;
        Some(Self::Regular(Regular {
            magnitude: format.magnitude_mask() as u32,
            place,
            sign_shift: 31 - (format.magnitude_bits() & 31),
            shift,
            rebias: ((127 - format.bias()) as u32) << 23,
            low: if format.field_zero_is_low() { 1 << format.man_bits() } else { 0 },
            base: base << 23,
            max: format.max_code() as u32,
            infinity: match format.infinity_code(false) {
                Some(code) => code as u32,
                None => u32::MAX,
            },
            zero: format.to_f32(0).to_bits(),
            other_zero: format.to_f32(place as u64).to_bits(),
        }))
    }

    /// The upper halves of the values of all bytes, unless there is something in a lower half.
    pub(in crate::slice) fn upper_halves(&self) -> Option<Table<u16>> {
        let mut values = [0.0; 256];
        self.read(&BYTES, &mut values);
        let words = values.map(f32::to_bits);
        let none_below = words.iter().fold(0, |all, word| all | word) & 0xFFFF == 0;
        none_below.then(|| words.map(|word| (word >> 16) as u16))
    }

    /// Writes the values of `codes`.
    pub(in crate::slice) fn read<C: Bits>(&self, codes: &[C], out: &mut [f32]) {
        match self {
            Self::Prefix(body) => prefix(*body, codes, out),
            Self::Regular(body) => regular(*body, codes, out),
            Self::Fixed(body) => fixed(*body, codes, out),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(in crate::slice) struct Prefix {
    mask: u32,
    shift: u32,
}

impl Prefix {
    #[inline(always)]
    fn value(self, code: u32) -> f32 {
        let bits = (code & self.mask) << self.shift;
        let nan = (bits & SIGN) | NAN;
        f32::from_bits(if bits & !SIGN > INFINITY { nan } else { bits })
    }
}

#[derive(Clone, Copy, Debug)]
pub(in crate::slice) struct Regular {
    /// The magnitude's bits, and the sign's, which is 0 in formats without one.
    magnitude: u32,
    place: u32,
    sign_shift: u32,
    shift: u32,
    /// What is added to the exponent field, modulo `2^32`.
    rebias: u32,
    /// Magnitudes below this one have no hidden bit.
    low: u32,
    /// The bits of `2^emin`.
    base: u32,
    /// The largest finite magnitude; above it only `infinity` is not NaN.
    max: u32,
    infinity: u32,
    /// The bits of the values of code 0 and of the sign bit alone.
    zero: u32,
    other_zero: u32,
}

impl Regular {
    #[inline(always)]
    fn value(self, code: u32) -> f32 {
        let magnitude = code & self.magnitude;
        let place = code & self.place;
        let sign = place << self.sign_shift;
        let fields = magnitude << self.shift;
        let normal = fields.wrapping_add(self.rebias);
        let low = f32::from_bits(fields.wrapping_add(self.base)) - f32::from_bits(self.base);
        let finite = if magnitude < self.low { low.to_bits() } else { normal };
        let special = if magnitude == self.infinity { INFINITY } else { NAN };
        let bits = if magnitude > self.max { special } else { finite } | sign;
        let zero = if place == 0 { self.zero } else { self.other_zero };
        f32::from_bits(if magnitude == 0 { zero } else { bits })
    }
}

#[derive(Clone, Copy, Debug)]
pub(in crate::slice) struct Fixed {
    /// From the code's sign bit to the word's.
    shift: u32,
    /// The value of code 1.
    unit: f32,
}

impl Fixed {
    #[inline(always)]
    fn value(self, code: u32) -> f32 {
        ((code << self.shift) as i32 >> self.shift) as f32 * self.unit
    }
}

kernel! {
    fn prefix<'a, C: Bits>(body: Prefix, codes: &'a [C], out: &'a mut [f32]) {
        for (code, out) in codes.iter().zip(out) {
            *out = body.value(code.to_u64() as u32);
        }
    }
}

kernel! {
    fn regular<'a, C: Bits>(body: Regular, codes: &'a [C], out: &'a mut [f32]) {
        for (code, out) in codes.iter().zip(out) {
            *out = body.value(code.to_u64() as u32);
        }
    }
}

kernel! {
    fn fixed<'a, C: Bits>(body: Fixed, codes: &'a [C], out: &'a mut [f32]) {
        for (code, out) in codes.iter().zip(out) {
            *out = body.value(code.to_u64() as u32);
        }
    }
}
