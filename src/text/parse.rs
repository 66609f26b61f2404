//! Text to a number, rounded once.
//!
//! Decimal text of any length is read exactly. Between the kept digits and the next number of as
//! many digits lies no value of the format, no middle between two and no threshold of a stochastic
//! mode. Whatever is cut off counts as "a little more". The kept number becomes 127 or 128 bits and
//! a sticky bit, and the rounding core does the rest.

use core::fmt;

use super::Short;
use super::big::Big;
use super::decimal::{SMALL_LIMIT, WIDE_LIMIT};
use crate::format::{Format, Value};
use crate::round::{Exact, Rounded, Rules};

/// Why a text is no number, or not one this format can be asked to read.
///
/// ```
/// use exmy::format::Format;
/// use exmy::round::Rules;
///
/// let error = Format::F32.parse("1.5e", &Rules::DEFAULT, 0).unwrap_err();
/// assert_eq!((error.position, error.found), (4, None)); // the exponent ends before it begins
/// let error = Format::F32.parse("1,5", &Rules::DEFAULT, 0).unwrap_err();
/// assert_eq!((error.position, error.found), (1, Some(','))); // a program could try a point
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ParseNumberError {
    text: Short,
    /// Where reading stopped, in bytes from the beginning.
    pub position: usize,
    /// The character there; `None` at the end of the text.
    pub found: Option<char>,
    /// What would have been read there, in words.
    pub expected: &'static str,
}

impl fmt::Display for ParseNumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, position, found, expected } = self;
        write!(f, "{text:?} is no number: at position {position} ")?;
        match found {
            Some(found) => write!(f, "{found:?}")?,
            None => f.write_str("it ends")?,
        }
        write!(f, " where {expected} is expected")
    }
}

impl core::error::Error for ParseNumberError {}

/// How many digits are kept, and which decimal exponents of the first one lie beyond every value.
struct Capacity {
    digits: usize,
    lowest: i64,
    highest: i64,
}

/// For formats within `2^-1100..2^1100`. The finest threshold lies 34 binary places below the last
/// one (32 random bits, and a half): 2^-1134 = 10^-341.4. An odd multiple of it of 87 bits has 26 +
/// 1134 log10(5) = 819 digits.
const SMALL: Capacity = Capacity { digits: 850, lowest: -345, highest: 340 };
/// 850 digits, or the power of five that divides them: 5^(345 + 850) has 2775 bits.
const SMALL_LIMBS: usize = 92;

/// For formats within `2^-33000..2^33000`: 2^-33034 = 10^-9944.2, 23117 digits.
const WIDE: Capacity = Capacity { digits: 23_200, lowest: -9950, highest: 9940 };
/// 5^(9950 + 23200) has 76973 bits, and 23200 digits have 77069.
const WIDE_LIMBS: usize = 2415;

impl Format {
    /// The code of the number a text says, rounded once by `rules`.
    ///
    /// Decimal numbers (`-1`, `.5`, `6.02e23`) of any number of digits are read, and C's
    /// hexadecimal ones (`0x1.8p-3`; the exponent may be missing). So are `inf`, `infinity` and
    /// `nan`. All may have a sign and be in any case. `random` is as of
    /// [`round_by`](Self::round_by).
    ///
    /// In formats with exponents beyond 33000 (biases of one's own), decimal numbers below 1e-9950
    /// or from 1e9941 on are not read; hexadecimal ones are.
    ///
    /// # Errors
    /// If the text is none of these; the error names the position.
    ///
    /// # Panics
    /// If the mode is stochastic with a bit count outside 1..=32.
    ///
    /// ```
    /// use exmy::format::Format;
    /// use exmy::round::{Rounding, Rules};
    ///
    /// let up = Rules::DEFAULT.with_rounding(Rounding::TowardPositive);
    /// let code = Format::E4M3FN.parse("1.0000000000000000000000000000000000001", &up, 0)?.code;
    /// assert_eq!(code, Format::E4M3FN.parse("0x1.2p+0", &up, 0)?.code);
    /// # Ok::<(), exmy::text::ParseNumberError>(())
    /// ```
    pub fn parse(
        self,
        text: &str,
        rules: &Rules,
        random: u32,
    ) -> Result<Rounded, ParseNumberError> {
        let mut reader = DigitReader { text, at: 0 };
        let negative = reader.sign();
        let rest = reader.rest();
        if ["inf", "infinity"].iter().any(|word| rest.eq_ignore_ascii_case(word)) {
            return Ok(self.encode_by(Value::Infinite { negative }, rules, random));
        }
        if rest.eq_ignore_ascii_case("nan") {
            return Ok(self.encode_by(Value::Nan { negative }, rules, random));
        }
        let exact = if reader.letters("0x") {
            reader.hexadecimal(negative)?
        } else {
            reader.decimal(negative, self)?
        };
        Ok(self.round_by(exact, rules, random))
    }

    /// Whether all values lie within `2^-limit..2^limit`.
    fn within(self, limit: i32) -> bool {
        self.lsb() >= -limit && self.emax() < limit
    }
}

/// A text and the place reached in it.
struct DigitReader<'a> {
    text: &'a str,
    at: usize,
}

impl DigitReader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Consumes `letters`, whatever their case.
    fn letters(&mut self, letters: &str) -> bool {
        let head = self.rest().as_bytes().get(..letters.len());
        let found = head.is_some_and(|head| head.eq_ignore_ascii_case(letters.as_bytes()));
        self.at += if found { letters.len() } else { 0 };
        found
    }

    /// Consumes a sign if there is one; whether it is minus.
    fn sign(&mut self) -> bool {
        let negative = self.letters("-");
        let _ = negative || self.letters("+");
        negative
    }

    fn error<T>(&self, expected: &'static str) -> Result<T, ParseNumberError> {
        let (text, position) = (Short::new(self.text), self.at);
        Err(ParseNumberError { text, position, found: self.rest().chars().next(), expected })
    }

    /// The digits of a number with at most one point: their range in the text, and how many are
    /// behind the point.
    fn digits(
        &mut self,
        is_digit: fn(&u8) -> bool,
        expected: &'static str,
    ) -> Result<(core::ops::Range<usize>, usize), ParseNumberError> {
        let start = self.at;
        let (mut count, mut point) = (0_usize, None);
        while let Some(byte) = self.peek() {
            if byte == b'.' && point.is_none() {
                point = Some(count);
            } else if is_digit(&byte) {
                count += 1;
            } else {
                break;
            }
            self.at += 1;
        }
        if count == 0 {
            return self.error(expected);
        }
        Ok((start..self.at, point.map_or(0, |before| count - before)))
    }

    /// An exponent after its letter, 0 if the text ends; so large a one that it does not fit is cut.
    fn exponent(&mut self, letter: &str, expected: &'static str) -> Result<i64, ParseNumberError> {
        if self.peek().is_none() {
            return Ok(0);
        }
        if !self.letters(letter) {
            return self.error(expected);
        }
        let negative = self.sign();
        let start = self.at;
        let mut exponent = 0_i64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            // Far beyond all formats, and not so far that sums with digit counts overflow.
            exponent = (exponent * 10 + i64::from(digit - b'0')).min(1 << 50);
            self.at += 1;
        }
        if self.at == start {
            return self.error("a digit of the exponent");
        }
        if self.peek().is_some() {
            return self.error("a digit or the end");
        }
        Ok(if negative { -exponent } else { exponent })
    }

    fn hexadecimal(&mut self, negative: bool) -> Result<Exact, ParseNumberError> {
        let (range, behind) = self.digits(u8::is_ascii_hexdigit, "a hexadecimal digit")?;
        let mut exponent = self.exponent("p", "a hexadecimal digit, p or the end")?;
        exponent -= 4 * behind as i64;
        let (mut significand, mut sticky) = (0_u128, false);
        for digit in self.text[range].chars().filter_map(|c| c.to_digit(16)) {
            if significand >> 124 == 0 {
                significand = significand << 4 | u128::from(digit);
            } else {
                sticky |= digit != 0;
                exponent += 4;
            }
        }
        Ok(Exact { negative, significand, exponent: clamp(exponent), sticky })
    }

    fn decimal(&mut self, negative: bool, format: Format) -> Result<Exact, ParseNumberError> {
        let expected = match self.at {
            0 => "a sign, a digit, inf or nan",
            _ => "a digit, inf or nan",
        };
        let (range, behind) = self.digits(u8::is_ascii_digit, expected)?;
        let exponent = self.exponent("e", "a digit, e or the end")?;
        let digits = || self.text[range.clone()].bytes().filter(u8::is_ascii_digit);
        let leading = digits().take_while(|digit| *digit == b'0').count();
        let count = digits().count();
        if leading == count {
            return Ok(Exact { negative, significand: 0, exponent: 0, sticky: false });
        }
        let significant = || digits().skip(leading).map(|digit| digit - b'0');
        // The decimal exponent of the first significant digit.
        let first = exponent + (count - leading) as i64 - 1 - behind as i64;
        let small = format.within(SMALL_LIMIT);
        let capacity = if small { SMALL } else { WIDE };
        if !(capacity.lowest..=capacity.highest).contains(&first) {
            if !format.within(WIDE_LIMIT) {
                self.at = range.end;
                return self.error("a hexadecimal number (this one and the format are extreme)");
            }
            let (significand, exponent) =
                if first < 0 { (0, i32::MIN / 2) } else { (1, i32::MAX / 2) };
            return Ok(Exact { negative, significand, exponent, sticky: true });
        }
        let kept = (count - leading).min(capacity.digits);
        let cut = significant().skip(kept).any(|digit| digit != 0);
        let (kept, scale) = (significant().take(kept), first as i32 + 1 - kept as i32);
        let exact = if small {
            binary::<SMALL_LIMBS>(kept, scale)
        } else {
            binary::<WIDE_LIMBS>(kept, scale)
        };
        Ok(Exact { negative, sticky: exact.sticky || cut, ..exact })
    }
}

/// Exponents beyond 2^30 are beyond all formats in the same way.
fn clamp(exponent: i64) -> i32 {
    exponent.clamp(-(1 << 30), 1 << 30) as i32
}

/// The digits, the first of which is not zero, times `10^scale`: 127 or 128 bits, and the rest.
fn binary<const N: usize>(digits: impl Iterator<Item = u8>, scale: i32) -> Exact {
    let (mut numerator, mut denominator) = (Big::<N>::new(0), Big::<N>::new(1));
    let (mut chunk, mut ten) = (0, 1_u64);
    for digit in digits {
        (chunk, ten) = (chunk * 10 + u32::from(digit), ten * 10);
        if ten == 1_000_000_000 {
            numerator.multiply_add(ten, chunk);
            (chunk, ten) = (0, 1);
        }
    }
    numerator.multiply_add(ten, chunk);
    let five = if scale < 0 { &mut denominator } else { &mut numerator };
    five.multiply_by_power_of_five(scale.unsigned_abs());
    // Of equal length, their quotient lies between a half and two.
    let (above, below) = (numerator.bits(), denominator.bits());
    numerator.shift_left(below.saturating_sub(above));
    denominator.shift_left(above.saturating_sub(below));
    let mut significand = 0_u128;
    for _ in 0..128 {
        let bit = numerator.compare(&denominator).is_ge();
        if bit {
            numerator.subtract(&denominator);
        }
        significand = significand << 1 | u128::from(bit);
        numerator.shift_left(1);
    }
    let exponent = scale + above as i32 - below as i32 - 127;
    Exact { negative: false, significand, exponent, sticky: !numerator.is_zero() }
}
