//! How digits become a text: decimal point, exponent, hexadecimal, sign and padding, all by the
//! rules of `f32`, and none of it in a buffer.

use core::fmt::{self, Write};

use super::decimal::{
    Binary, Decimal, Digits, Margins, Plan, SMALL, SMALL_LIMIT, WIDE, WIDE_LIMIT, shortest,
};

/// The two layouts of decimal text, with the places behind the point if they are given.
#[derive(Clone, Copy)]
pub(super) enum DigitLayout {
    /// `123.45`; `point` asks for a digit behind the point.
    Plain { places: Option<usize>, point: bool },
    /// `1.2345e2`.
    Exponent { places: Option<usize>, letter: char },
}

impl DigitLayout {
    pub(super) fn places(self) -> Option<usize> {
        match self {
            Self::Plain { places, .. } | Self::Exponent { places, .. } => places,
        }
    }

    /// Writes digits, the first of which has the weight `10^exponent`.
    fn write(
        self,
        out: &mut dyn Write,
        mut exponent: i32,
        digits: &mut dyn FnMut() -> Option<u8>,
    ) -> fmt::Result {
        let mut digit = || digits().map(|digit| char::from(b'0' + digit));
        let shown = exponent;
        let (places, point) = match self {
            Self::Plain { places, point } => (places, point),
            Self::Exponent { places, .. } => {
                exponent = 0;
                (places, false)
            }
        };
        if exponent < 0 {
            out.write_char('0')?;
        }
        for _ in 0..=exponent {
            out.write_char(digit().unwrap_or('0'))?;
        }
        let wanted = places.unwrap_or(usize::from(point));
        let zeros = (-1 - exponent.min(-1)) as usize;
        let zeros = places.map_or(zeros, |places| zeros.min(places));
        let mut next = digit();
        if next.is_some() || wanted > 0 {
            out.write_char('.')?;
            let mut written = 0;
            while written < zeros && (next.is_some() || written < wanted) {
                out.write_char('0')?;
                written += 1;
            }
            while let Some(digit_now) = next {
                out.write_char(digit_now)?;
                written += 1;
                next = digit();
            }
            while written < wanted {
                out.write_char('0')?;
                written += 1;
            }
        }
        match self {
            Self::Exponent { letter, .. } => write!(out, "{letter}{shown}"),
            Self::Plain { .. } => Ok(()),
        }
    }

    fn write_zero(self, out: &mut dyn Write) -> fmt::Result {
        self.write(out, 0, &mut || None)
    }

    fn write_short(self, out: &mut dyn Write, decimal: &Decimal) -> fmt::Result {
        let mut digits = decimal.digits().iter().copied();
        self.write(out, decimal.exponent, &mut || digits.next())
    }

    /// All digits, or as many as the places ask for, rounded to nearest even.
    fn write_exact<const N: usize>(self, out: &mut dyn Write, number: Binary) -> fmt::Result {
        let mut digits = Digits::<N>::new(number);
        let Some(places) = self.places() else {
            let exponent = digits.exponent;
            let mut next = || (!digits.is_done()).then(|| digits.next_digit());
            return self.write(out, exponent, &mut next);
        };
        let plan = Plan::new::<N>(number, |exponent| match self {
            Self::Plain { .. } => i64::from(exponent) + 1 + places as i64,
            Self::Exponent { .. } => 1 + places as i64,
        });
        if plan.power_of_ten {
            let mut one = Some(1);
            return self.write(out, plan.exponent, &mut || one.take());
        }
        if plan.count == 0 {
            return self.write_zero(out);
        }
        let mut at = 0;
        self.write(out, plan.exponent, &mut || {
            let i = at;
            at += 1;
            (i < plan.count).then(|| plan.digit(i, digits.next_digit()))
        })
    }
}

/// What is to be written between sign and padding.
#[derive(Clone, Copy)]
pub(super) enum Body {
    Word(&'static str),
    Zero(DigitLayout),
    Exact(DigitLayout, Binary),
    Shortest(DigitLayout, Binary, Margins),
    Hex(Binary),
}

impl Body {
    fn write(self, out: &mut dyn Write) -> fmt::Result {
        match self {
            Self::Word(word) => out.write_str(word),
            Self::Zero(layout) => layout.write_zero(out),
            Self::Exact(layout, number) if number.in_range(SMALL_LIMIT) => {
                layout.write_exact::<SMALL>(out, number)
            }
            Self::Exact(layout, number) if number.in_range(WIDE_LIMIT) => {
                layout.write_exact::<WIDE>(out, number)
            }
            Self::Shortest(layout, number, margins) if number.in_range(SMALL_LIMIT) => {
                layout.write_short(out, &shortest::<SMALL>(number, margins))
            }
            Self::Shortest(layout, number, margins) if number.in_range(WIDE_LIMIT) => {
                layout.write_short(out, &shortest::<WIDE>(number, margins))
            }
            Self::Hex(number) | Self::Exact(_, number) | Self::Shortest(_, number, _) => {
                write_hex(out, number)
            }
        }
    }

    /// With sign and padding as the formatter asks, by the rules of `f32`.
    pub(super) fn pad(self, negative: bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_nan = matches!(self, Self::Word("NaN" | "nan"));
        let sign = match (is_nan, negative) {
            (true, _) => "",
            (false, true) => "-",
            (false, false) if f.sign_plus() => "+",
            (false, false) => "",
        };
        let Some(width) = f.width() else {
            f.write_str(sign)?;
            return self.write(f);
        };
        let mut length = Length(sign.len());
        self.write(&mut length)?;
        let missing = width.saturating_sub(length.0);
        if f.sign_aware_zero_pad() {
            f.write_str(sign)?;
            (0..missing).try_for_each(|_| f.write_char('0'))?;
            return self.write(f);
        }
        let before = match f.align() {
            Some(fmt::Alignment::Left) => 0,
            Some(fmt::Alignment::Center) => missing / 2,
            Some(fmt::Alignment::Right) | None => missing,
        };
        let fill = f.fill();
        (0..before).try_for_each(|_| f.write_char(fill))?;
        f.write_str(sign)?;
        self.write(f)?;
        (before..missing).try_for_each(|_| f.write_char(fill))
    }
}

/// Counts what is written.
struct Length(usize);

impl Write for Length {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

/// C's `%a` of a positive number: a leading one and the hexadecimal digits there are.
fn write_hex(out: &mut dyn Write, number: Binary) -> fmt::Result {
    let above = number.significand.leading_zeros();
    let exponent = i64::from(number.exponent) + 63 - i64::from(above);
    // The bits below the leading one, from the top of the word.
    let mut fraction = number.significand << above << 1;
    out.write_str(if fraction == 0 { "0x1" } else { "0x1." })?;
    while fraction != 0 {
        write!(out, "{:x}", fraction >> 60)?;
        fraction <<= 4;
    }
    write!(out, "p{exponent:+}")
}
