//! Exact text of a [`Value`]: decimal where that is short, C's hexadecimal text elsewhere.

use core::fmt;

use super::decimal::{Binary, Digits, SMALL, SMALL_LIMIT};
use super::layout::{Body, DigitLayout};
use crate::format::Value;

/// A number to be written as C's hexadecimal floating-point text; made by
/// [`Format::hex`](crate::format::Format::hex).
///
/// `0x1.8p-3` is 1.5 times 2 to the power -3. The digit before the point is 1, except of zero
/// (`0x0p+0`); there are as many behind it as needed. Infinity is `inf`, NaN `nan`, as of C's
/// `printf`.
#[derive(Clone, Copy, Debug)]
pub struct Hex(Value);

impl Hex {
    pub(super) const fn new(value: Value) -> Self {
        Self(value)
    }
}

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = match self.0 {
            Value::Nan { .. } => Body::Word("nan"),
            Value::Infinite { .. } => Body::Word("inf"),
            Value::Finite { significand: 0, .. } => Body::Word("0x0p+0"),
            Value::Finite { significand, exponent, .. } => {
                Body::Hex(Binary { significand, exponent })
            }
        };
        body.pad(self.0.is_sign_negative(), f)
    }
}

/// C's hexadecimal floating-point text, exact: `0x1.8p-3`.
impl fmt::LowerHex for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Hex(*self), f)
    }
}

/// Significant digits up to which a value is written in decimal.
const MOST_DIGITS: usize = 17;

/// The value exactly: in decimal if 17 significant digits suffice (`0.3125`, `5e-7`), else as
/// [`LowerHex`](fmt::LowerHex) writes it. With a precision, rounded to so many places in decimal.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = f.precision();
        let plain = DigitLayout::Plain { places, point: false };
        let body = match *self {
            Self::Nan { .. } => Body::Word("NaN"),
            Self::Infinite { .. } => Body::Word("inf"),
            Self::Finite { significand: 0, .. } => Body::Zero(plain),
            Self::Finite { significand, exponent, .. } => {
                let number = Binary { significand, exponent };
                match short_exponent(number) {
                    _ if places.is_some() => Body::Exact(plain, number),
                    Some(-5..=16) => Body::Exact(plain, number),
                    Some(_) => Body::Exact(DigitLayout::Exponent { places, letter: 'e' }, number),
                    None => Body::Hex(number),
                }
            }
        };
        body.pad(self.is_sign_negative(), f)
    }
}

/// The decimal exponent of a number of few digits.
fn short_exponent(number: Binary) -> Option<i32> {
    if !number.in_range(SMALL_LIMIT) {
        return None; // 17 digits times a power of ten end at 2^110
    }
    let mut digits = Digits::<SMALL>::new(number);
    for _ in 0..MOST_DIGITS {
        digits.next_digit();
    }
    digits.is_done().then_some(digits.exponent)
}
