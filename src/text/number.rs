//! Numbers as text: decimal, as short as reads back to the same code or exact, and hexadecimal.
//!
//! [`Format::display`] writes a code as `f32` writes its own: the fewest digits that
//! [`Format::parse`] reads back to the same code (to nearest even), of these the nearest. In a
//! coarse format few digits suffice: 448 is written 450 in E4M3FN, as Rust and NumPy write 65504 of
//! binary16 as 65500. So `{:#}` and [`Value`] write the number itself. [`Format::hex`] and `{:x}`
//! of a [`Value`] write C's hexadecimal floating-point text (`%a`), which is exact and short for
//! every format.
//!
//! Decimal text of a format goes as far as every 16-bit exponent field with its usual bias, about
//! `10^9900`. Beyond that (biases of one's own), hexadecimal text is written instead.

use core::fmt;

use super::decimal::{Binary, Decimal, Margins, SMALL, SMALL_LIMIT, WIDE, WIDE_LIMIT, shortest};
use super::layout::{Body, DigitLayout};
use super::value::Hex;
use crate::format::{Format, Value};

/// A code of a format, to be written as a number; made by [`Format::display`].
///
/// | | writes |
/// |---|---|
/// | `{}` | the shortest digits that read back, without an exponent, as `f32` does: `0.3` |
/// | `{:e}` | the same digits with an exponent: `3e-1` |
/// | `{:?}` | the same digits, at least one behind the point: `450.0`; very small and large ones as `{:e}` |
/// | `{:#}`, `{:#e}` | all digits of the number: `0.3125`, `3.125e-1` |
/// | `{:.2}`, `{:.2e}` | the number rounded to so many places, to nearest even: `0.31`, `3.12e-1` |
///
/// Width, fill, alignment, `+` and `0` work as for `f32`. Infinity is `inf`, NaN `NaN`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Number {
    format: Format,
    code: u64,
}

impl Format {
    /// A code as decimal text, by default the shortest that reads back.
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// let third = Format::E4M3FN.display(0x2A);
    /// assert_eq!(format!("{third} {third:e} {third:#} {third:.1}"), "0.3 3e-1 0.3125 0.3");
    /// assert_eq!(Format::F32.display(0x3DCC_CCCD).to_string(), "0.1");
    /// ```
    pub const fn display(self, code: u64) -> Number {
        Number { format: self, code }
    }

    /// A code as exact hexadecimal text.
    ///
    /// ```
    /// use exmy::format::Format;
    ///
    /// assert_eq!(Format::E4M3FN.hex(0x2A).to_string(), "0x1.4p-2");
    /// let widest = Format::p3109(16, 1, false, true)?;
    /// assert_eq!(widest.hex(1).to_string(), "0x1p-32767");
    /// # Ok::<(), exmy::format::FormatError>(())
    /// ```
    pub const fn hex(self, code: u64) -> Hex {
        Hex::new(self.decode(code))
    }

    /// How far decimal text may miss a positive number and still be read as it.
    fn margins(self, code: u64, significand: u64) -> Margins {
        let magnitude = code & self.magnitude_mask();
        let lowest = magnitude == self.min_positive_code() && !self.field_zero_is_low();
        let binade_begins = significand == 1 << self.man_bits()
            && magnitude >> self.man_bits() > u64::from(self.field_zero_is_low());
        let down = match () {
            // Everything above zero becomes the smallest value where there is no zero.
            () if lowest && !self.has_zero() => 4 * significand,
            // Nothing lies between zero and the smallest value of a format without subnormals.
            () if lowest => 2 * significand,
            () if binade_begins => 1,
            () => 2,
        };
        Margins { down, up: 2, inclusive: magnitude & 1 == 0 }
    }
}

/// Decimal exponents within which `{:?}` of `f64` writes no exponent.
const PLAIN: core::ops::Range<i32> = -4..16;

impl Number {
    fn write(self, f: &mut fmt::Formatter<'_>, layout: DigitLayout, exact: bool) -> fmt::Result {
        let value = self.format.decode(self.code);
        let exact = exact || layout.places().is_some();
        let body = match value {
            Value::Nan { .. } => Body::Word("NaN"),
            Value::Infinite { .. } => Body::Word("inf"),
            Value::Finite { significand: 0, .. } => Body::Zero(layout),
            Value::Finite { significand, exponent, .. } => {
                let number = Binary { significand, exponent };
                if exact {
                    Body::Exact(layout, number)
                } else {
                    Body::Shortest(layout, number, self.format.margins(self.code, significand))
                }
            }
        };
        body.pad(value.is_sign_negative(), f)
    }

    /// The shortest digits, if there are any to speak of.
    fn shortest(self) -> Option<Decimal> {
        let Value::Finite { significand, exponent, .. } = self.format.decode(self.code) else {
            return None;
        };
        let number = Binary { significand, exponent };
        if significand == 0 || !number.in_range(WIDE_LIMIT) {
            return None;
        }
        let margins = self.format.margins(self.code, significand);
        Some(if number.in_range(SMALL_LIMIT) {
            shortest::<SMALL>(number, margins)
        } else {
            shortest::<WIDE>(number, margins)
        })
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, DigitLayout::Plain { places: f.precision(), point: false }, f.alternate())
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = match (f.precision(), self.shortest()) {
            (None, Some(decimal)) if !PLAIN.contains(&decimal.exponent) => {
                DigitLayout::Exponent { places: None, letter: 'e' }
            }
            (places, _) => DigitLayout::Plain { places, point: true },
        };
        self.write(f, layout, false)
    }
}

impl fmt::LowerExp for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, DigitLayout::Exponent { places: f.precision(), letter: 'e' }, f.alternate())
    }
}

impl fmt::UpperExp for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, DigitLayout::Exponent { places: f.precision(), letter: 'E' }, f.alternate())
    }
}
