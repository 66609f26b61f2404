//! To and from integers of any width up to 128 bits (IEEE 754-2019, 5.4.1 and 5.8), and to integers that
//! stay floating-point numbers (5.9).

use super::convert::zero;
use super::{Context, Operand};
use crate::format::Value;
use crate::round::{Exact, Flags, Rounded, Rounding};

/// What a conversion to an integer gives where no integer of the type is the result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum IntInvalid {
    /// The smallest number of signed types and the largest of unsigned ones: the "integer
    /// indefinite" of x86.
    #[default]
    X86,
    /// The end of the range on the number's side; for NaN the largest.
    Riscv,
    /// The end of the range on the number's side; for NaN zero. Rust's `as`, too.
    Arm,
}

impl Operand {
    /// The integer that `rounding` chooses, as a two's complement word in the lowest `bits` bits.
    ///
    /// A number whose integer is out of range, an infinity and a NaN give what `invalid` says and
    /// set [`Flags::INVALID`] alone. With `exact`, a number that is not an integer sets
    /// [`Flags::INEXACT`]. Stochastic modes take their bits from `random` as
    /// [`Format::round_by`](crate::format::Format::round_by) does.
    ///
    /// ```
    /// use exmy::math::{IntInvalid, Operand};
    /// use exmy::round::{Flags, Rounding};
    ///
    /// let to_i8 = |x| Operand::f32(x).to_int(8, true, Rounding::TiesToEven, true, IntInvalid::Arm);
    /// assert_eq!(to_i8(-2.5), (0xFE, Flags::INEXACT));
    /// assert_eq!(to_i8(200.0), (0x7F, Flags::INVALID));
    /// ```
    ///
    /// # Panics
    /// If `bits` is not in 1..=128, or the mode is stochastic.
    pub const fn to_int(
        self,
        bits: u32,
        signed: bool,
        rounding: Rounding,
        exact: bool,
        invalid: IntInvalid,
    ) -> (u128, Flags) {
        assert!(!rounding.is_stochastic(), "stochastic rounding to an integer needs random bits");
        self.to_int_with(bits, signed, rounding, 0, exact, invalid)
    }

    /// As [`to_int`](Self::to_int), with the random word of stochastic modes.
    ///
    /// ```
    /// use exmy::math::{IntInvalid, Operand};
    /// use exmy::round::Rounding;
    ///
    /// let mode = Rounding::stochastic(2);
    /// let int = |x, random| Operand::f32(x).to_int_with(8, true, mode, random, false, IntInvalid::X86).0;
    /// assert_eq!([0, 1 << 30, 2 << 30, 3 << 30].map(|random| int(-0.5, random)), [0, 0, 0xFF, 0xFF]);
    /// assert_eq!(int(f32::NAN, 0), 0x80);
    /// ```
    ///
    /// # Panics
    /// If `bits` is not in 1..=128, or the mode is stochastic with a bit count outside 1..=32.
    pub const fn to_int_with(
        self,
        bits: u32,
        signed: bool,
        rounding: Rounding,
        random: u32,
        exact: bool,
        invalid: IntInvalid,
    ) -> (u128, Flags) {
        assert!(bits >= 1 && bits <= 128, "integers of 1 to 128 bits");
        let word = u128::MAX >> (128 - bits);
        let (smallest, largest) =
            if signed { (1_u128 << (bits - 1), word >> 1) } else { (0, word) };
        let value = self.value();
        let negative = value.is_sign_negative();
        if let Some(number) = value.exact()
            && let Some((magnitude, inexact)) = number.to_integer(rounding, random)
            && magnitude <= if negative { smallest } else { largest }
        {
            let flags = if exact && inexact { Flags::INEXACT } else { Flags::NONE };
            let integer = if negative { magnitude.wrapping_neg() } else { magnitude };
            return (integer & word, flags);
        }
        let integer = match invalid {
            IntInvalid::X86 if signed => smallest,
            IntInvalid::X86 => largest,
            IntInvalid::Riscv if value.is_nan() => largest,
            IntInvalid::Arm if value.is_nan() => 0,
            _ if negative => smallest,
            _ => largest,
        };
        (integer, Flags::INVALID)
    }
}

impl Context {
    /// The integer that the mode chooses for `x`, in this context's format.
    ///
    /// Zeros and numbers that become zero keep the sign of `x`.
    /// [`ToOdd`](crate::round::Rounding::ToOdd) takes the odd
    /// integer next to a number that is none, as Berkeley SoftFloat does. With `exact`, a changed
    /// number sets [`Flags::INEXACT`] (`roundToIntegralExact`). An integer that the format does not have is
    /// rounded to it, with the flags of that rounding.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::{Flags, Rules};
    ///
    /// let context = Context::new(Format::E4M3FN, Rules::DEFAULT);
    /// let round = |x, exact| context.round_to_integral(Operand::f32(x), exact);
    /// assert_eq!((round(-0.5, true).code, round(-0.5, true).flags), (0x80, Flags::INEXACT)); // -0
    /// assert_eq!(round(-0.5, false).flags, Flags::NONE);
    /// assert_eq!(round(17.0, false).flags, Flags::INEXACT); // an integer that E4M3FN lacks
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add).
    pub const fn round_to_integral(&self, x: Operand, exact: bool) -> Rounded {
        let value = self.read(x);
        let (Some(number), Value::Finite { negative, .. }) = (value.exact(), value) else {
            return match value {
                Value::Infinite { negative } => self.to.round_infinity(negative, &self.rules),
                _ => self.pass_first_nan(&[x]),
            };
        };
        if number.exponent >= 0 {
            return self.finish(number);
        }
        let Some((significand, inexact)) = number.to_integer(self.rules.rounding, self.word())
        else {
            unreachable!()
        };
        let Rounded { code, flags } = if significand == 0 {
            self.to.encode_by(zero(negative), &self.rules, self.word())
        } else {
            self.finish(Exact { negative, significand, exponent: 0, sticky: false })
        };
        let flags = if exact && inexact { flags.union(Flags::INEXACT) } else { flags };
        Rounded { code, flags }
    }

    /// An integer of a sign and magnitude, rounded once; zero is +0 unless `negative`.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::Context;
    /// use exmy::round::{Flags, Rules};
    ///
    /// let context = Context::new(Format::E4M3FN, Rules::DEFAULT);
    /// let rounded = context.from_int(false, 17); // a tie of 16 and 18
    /// assert_eq!((rounded.code, rounded.flags), (0x58, Flags::INEXACT));
    /// assert_eq!(context.from_int(true, 0).code, 0x80); // -0
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add); so do the other conversions from integers.
    pub const fn from_int(&self, negative: bool, magnitude: u128) -> Rounded {
        self.finish(Exact { negative, significand: magnitude, exponent: 0, sticky: false })
    }
}

macro_rules! from_integers {
    (signed: $($name:ident $type:ty),*; unsigned: $($unsigned:ident $word:ty),*) => {
        impl Context {
            $(
                #[doc = concat!("An integer of type `", stringify!($type), "`, rounded once.")]
                /// # Panics
                /// As [`add`](Self::add).
                #[inline]
                pub const fn $name(&self, integer: $type) -> Rounded {
                    self.from_int(integer < 0, integer.unsigned_abs() as u128)
                }
            )*
            $(
                #[doc = concat!("An integer of type `", stringify!($word), "`, rounded once.")]
                /// # Panics
                /// As [`add`](Self::add).
                #[inline]
                pub const fn $unsigned(&self, integer: $word) -> Rounded {
                    self.from_int(false, integer as u128)
                }
            )*
        }
    };
}

from_integers! {
    signed: from_i32 i32, from_i64 i64, from_i128 i128;
    unsigned: from_u32 u32, from_u64 u64, from_u128 u128
}
