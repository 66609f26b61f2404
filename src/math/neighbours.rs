//! The next value up or down (IEEE 754-2019, 5.3.1; P3109 Interim Report 4.0, NextGreaterThan and
//! NextLessThan).

use super::sign::same;
use super::{Context, Operand};
use crate::format::{Format, Sign, Value, low_bits};
use crate::round::{Flags, Rounded, Standard};

impl Context {
    /// The least value of `x`'s format that compares greater than `x`, in this context's format.
    ///
    /// From the smallest negative value it is zero, -0 where there is one, and from zero of either
    /// sign the smallest positive value. Of infinity it is infinity; of the largest value infinity
    /// if there is one. Where no such value exists it is what the overflow policy makes of
    /// infinity, or under [`Standard::P3109`] NaN, also of infinity itself.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::math::{Context, Operand};
    /// use exmy::round::Rules;
    ///
    /// let up = |format: Format, code| {
    ///     Context::new(format, Rules::DEFAULT).next_up(Operand::new(format, code)).code
    /// };
    /// assert_eq!(up(Format::E4M3FN, 0x80), 0x01); // from -0, over +0
    /// assert_eq!(up(Format::E5M2, 0x7B), 0x7C); // from the largest to infinity
    /// assert_eq!(up(Format::E2M1, 0x7), 0x7); // which FP4 has not
    /// ```
    ///
    /// # Panics
    /// As [`add`](Self::add), if the formats differ.
    pub const fn next_up(&self, x: Operand) -> Rounded {
        self.neighbour(x, true)
    }

    /// The greatest value that compares less than `x`; the mirror image of
    /// [`next_up`](Self::next_up).
    ///
    /// # Panics
    /// As [`add`](Self::add), if the formats differ.
    pub const fn next_down(&self, x: Operand) -> Rounded {
        self.neighbour(x, false)
    }

    const fn neighbour(&self, x: Operand, up: bool) -> Rounded {
        let format = x.format;
        let p3109 = matches!(self.rules.standard, Standard::P3109);
        let code = match x.value() {
            Value::Nan { .. } => return self.pass_first_nan(&[x]),
            Value::Infinite { negative } if negative != up => {
                if p3109 {
                    None
                } else {
                    format.infinity_code(negative)
                }
            }
            Value::Infinite { negative } => Some(code_at(format, end(format, negative), negative)),
            Value::Finite { negative, .. } => {
                let place = place(x);
                if place == end(format, !up) {
                    format.infinity_code(!up)
                } else {
                    Some(code_at(format, if up { place + 1 } else { place - 1 }, negative))
                }
            }
        };
        match code {
            Some(code) if same(format, self.to) => Rounded { code, flags: Flags::NONE },
            Some(code) => self.convert(Operand { format, code }),
            None if p3109 => self.to.made_nan(&self.rules),
            None => self.to.round_infinity(!up, &self.rules),
        }
    }
}

/// The place of a finite code among the values of its format. Zero is at 0. Where there is none,
/// the smallest positive value is at 0 and the smallest negative one at -1.
const fn place(x: Operand) -> i128 {
    let code = x.code & low_bits(x.format.bits());
    let magnitude = code & x.format.magnitude_mask();
    match x.format.sign() {
        _ if code == magnitude => magnitude as i128,
        Sign::TwosComplement => magnitude as i128 - (1 << x.format.magnitude_bits()),
        _ => -(magnitude as i128) - !x.format.has_zero() as i128,
    }
}

/// The place of the last finite value of a sign; 0 without that sign.
const fn end(format: Format, negative: bool) -> i128 {
    if !negative {
        return format.max_code() as i128;
    }
    if format.is_signed() { place(Operand { format, code: format.min_code() }) } else { 0 }
}

/// The code at a place; zero has the sign `negative` if it can.
const fn code_at(format: Format, place: i128, negative: bool) -> u64 {
    let sign = 1 << format.magnitude_bits();
    match format.sign() {
        Sign::TwosComplement => place as u64 & low_bits(format.bits()),
        _ if place < 0 => (-place - !format.has_zero() as i128) as u64 | sign,
        _ if place == 0 && negative && format.has_negative_zero() => sign,
        _ => place as u64,
    }
}
