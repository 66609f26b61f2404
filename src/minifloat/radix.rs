//! Text to a number to bases other than ten, for `Num::from_str_radix` of num-traits.
//!
//! A digit of base `2^n` is `n` bits, so text to such a base is an exact number of bits. The first
//! 120 or more are kept, and whether any later one is set. The rounding core does the rest. Other
//! bases than those and ten are refused.

use core::fmt;

use crate::format::Format;
use crate::round::{Exact, Rules};
use crate::text::ParseNumberError;

/// Why `from_str_radix` gives no number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ParseRadixError {
    /// The text is no decimal number.
    Decimal(ParseNumberError),
    /// The text is no number to this base, one of 2, 4, 8, 16 and 32.
    Digit {
        /// The base.
        radix: u32,
        /// Where reading stopped, in bytes from the beginning.
        position: usize,
        /// What is there; nothing where the text ends without a digit.
        found: Option<char>,
    },
    /// Numbers are not read to this base.
    Radix(u32),
}

impl fmt::Display for ParseRadixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decimal(error) => error.fmt(f),
            Self::Digit { radix, position, found: Some(found) } => {
                write!(f, "at position {position} {found:?} is no digit to base {radix}")
            }
            Self::Digit { radix, position, found: None } => {
                write!(f, "the text ends at position {position} without a digit to base {radix}")
            }
            Self::Radix(radix) => {
                write!(f, "numbers are read to base 2, 4, 8, 10, 16 and 32, not {radix}")
            }
        }
    }
}

impl core::error::Error for ParseRadixError {}

/// The code of a number, rounded once to nearest even with natural overflow.
pub(super) fn read(text: &str, radix: u32, format: Format) -> Result<u64, ParseRadixError> {
    let rules = &Rules::DEFAULT;
    match radix {
        10 => match format.parse(text, rules, 0) {
            Ok(rounded) => Ok(rounded.code),
            Err(error) => Err(ParseRadixError::Decimal(error)),
        },
        2 | 4 | 8 | 16 | 32 => Ok(format.round_by(digits(text, radix)?, rules, 0).code),
        _ => Err(ParseRadixError::Radix(radix)),
    }
}

/// The number that digits to a base `2^n` say.
fn digits(text: &str, radix: u32) -> Result<Exact, ParseRadixError> {
    let bits = radix.trailing_zeros();
    let negative = text.starts_with('-');
    let start = usize::from(text.starts_with(['-', '+']));
    let (mut significand, mut exponent, mut sticky) = (0_u128, 0_i32, false);
    let (mut point, mut any) = (false, false);
    for (at, found) in text.char_indices().skip(start) {
        if found == '.' && !point {
            point = true;
            continue;
        }
        let Some(digit) = found.to_digit(radix) else {
            return Err(ParseRadixError::Digit { radix, position: at, found: Some(found) });
        };
        any = true;
        let step = bits as i32;
        if significand >> 120 == 0 {
            significand = significand << bits | u128::from(digit);
            exponent = exponent.saturating_sub(if point { step } else { 0 });
        } else {
            sticky |= digit != 0;
            exponent = exponent.saturating_add(if point { 0 } else { step });
        }
    }
    if !any {
        return Err(ParseRadixError::Digit { radix, position: text.len(), found: None });
    }
    Ok(Exact { negative, significand, exponent, sticky })
}
