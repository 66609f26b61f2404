//! Words and exact results as people read them.
//!
//! A number is shown in decimal - all digits if they are few, else the fewest that the format reads
//! back as the same code - and exactly as a C hexadecimal float. The result of a sum of products is exact whatever the
//! exponents are: parts too far apart for one integer are shown as a sum. Other operations are
//! shown to 53 significant bits (45 where binary64's exponents end), with `...` if there is more.

use std::fmt::Write;

use super::evaluate::Evaluator;
use super::function::Kind;
use super::operation::Operation;
use super::testfloat::Case;
use crate::format::{Format, Value};
use crate::math::{Context, Operand};
use crate::round::{Exact, Flags, Rounded, Rounding, Rules};

/// Characters up to which a number is shown with all its digits.
const ALL_DIGITS: usize = 16;

/// A word as a number.
pub(super) fn number(kind: Kind, word: u128) -> String {
    match kind {
        Kind::Truth => if word == 1 { "true" } else { "false" }.into(),
        Kind::Integer { signed: false, .. } => word.to_string(),
        Kind::Integer { signed: true, bits } => {
            let unused = 128 - bits;
            (((word << unused) as i128) >> unused).to_string()
        }
        Kind::Format(format) => {
            let code = word as u64;
            match format.decode(code) {
                Value::Finite { negative, significand: 0, .. } => zero(negative).into(),
                Value::Finite { .. } => {
                    let (number, hex) = (format.display(code), format.hex(code));
                    let all = format!("{number:#}");
                    if all.len() <= ALL_DIGITS {
                        format!("{all} ({hex})")
                    } else {
                        format!("{number:?} ({hex})")
                    }
                }
                value => special(value, format.is_signaling(code)).into(),
            }
        }
    }
}

fn special(value: Value, signaling: bool) -> &'static str {
    match (value, signaling) {
        (Value::Infinite { negative: false }, _) => "inf",
        (Value::Infinite { negative: true }, _) => "-inf",
        (_, false) => "NaN",
        (_, true) => "signaling NaN",
    }
}

fn zero(negative: bool) -> &'static str {
    if negative { "-0" } else { "0" }
}

/// `significand * 2^exponent` as `0x1.8p+3`.
fn hexadecimal(negative: bool, significand: u128, exponent: i32) -> String {
    let sign = if negative { "-" } else { "" };
    if significand == 0 {
        return format!("{sign}0x0p+0");
    }
    let top = significand.ilog2();
    let exponent = i64::from(exponent) + i64::from(top);
    // The bits below the first one, left-aligned.
    let fraction = if top == 0 { 0 } else { significand << (128 - top) };
    let mut digits = format!("{fraction:032x}");
    digits.truncate(digits.trim_end_matches('0').len());
    let point = if digits.is_empty() { "" } else { "." };
    format!("{sign}0x1{point}{digits}p{exponent:+}")
}

/// What the operation returns were there no rounding, if there is such a number.
pub(super) fn value(evaluator: &Evaluator, case: &Case) -> Option<String> {
    use Operation as O;
    let function = evaluator.function();
    let word = |i: usize| -> Option<Exact> {
        let Kind::Format(format) = function.operands()[i] else { return None };
        format.decode(case.operands[i] as u64).exact()
    };
    let minus = |x: Exact| Exact { negative: !x.negative, ..x };
    let product = |a: Exact, b: Exact| Exact {
        negative: a.negative != b.negative,
        significand: a.significand * b.significand,
        exponent: a.exponent + b.exponent,
        sticky: false,
    };
    let terms = match function.operation() {
        O::Convert | O::ToInteger | O::RoundToInt => vec![word(0)?],
        O::FromInteger => return Some(number(function.operands()[0], case.operands[0])),
        O::Add => vec![word(0)?, word(1)?],
        O::Sub => vec![word(0)?, minus(word(1)?)],
        O::Mul => vec![product(word(0)?, word(1)?)],
        O::MulAdd => vec![product(word(0)?, word(1)?), word(2)?],
        O::Faa => vec![word(0)?, word(1)?, word(2)?],
        O::Div | O::Sqrt | O::Recip | O::Rsqrt | O::Hypot | O::Rem | O::Fmod | O::ScaleB => {
            return wide(evaluator, case);
        }
        // The others choose among their operands or ask about them.
        _ => return None,
    };
    Some(sum(terms))
}

/// A sum, in as few parts as integers of 128 bits allow.
fn sum(terms: Vec<Exact>) -> String {
    let mut parts: Vec<Exact> = Vec::new();
    for mut term in terms {
        while let Some(i) = parts.iter().position(|part| joined(*part, term).is_some()) {
            let part = parts.swap_remove(i);
            term = joined(part, term).unwrap_or(term);
        }
        parts.push(term);
    }
    parts.retain(|part| part.significand != 0);
    let size = |part: &Exact| part.exponent + part.significand.ilog2() as i32;
    parts.sort_by_key(|part| std::cmp::Reverse(size(part)));
    let mut text = String::new();
    for part in &parts {
        let negative = part.negative && text.is_empty();
        if !text.is_empty() {
            let _ = write!(text, " {} ", if part.negative { '-' } else { '+' });
        }
        text += &hexadecimal(negative, part.significand, part.exponent);
    }
    if text.is_empty() { "0".into() } else { text }
}

/// The sum of two, if it fits.
fn joined(a: Exact, b: Exact) -> Option<Exact> {
    if a.significand == 0 || b.significand == 0 {
        return Some(if a.significand == 0 { b } else { a });
    }
    let exponent = a.exponent.min(b.exponent);
    let aligned = |x: Exact| -> Option<i128> {
        let places = (x.exponent - exponent) as u32;
        // Two bits stay free, for the carry and the sign.
        if places + 2 > x.significand.leading_zeros() {
            return None;
        }
        let magnitude = (x.significand << places) as i128;
        Some(if x.negative { -magnitude } else { magnitude })
    };
    let total = aligned(a)? + aligned(b)?;
    Some(Exact { negative: total < 0, significand: total.unsigned_abs(), exponent, sticky: false })
}

/// The result cut to binary64, or to the widest exponents where that has too few.
fn wide(evaluator: &Evaluator, case: &Case) -> Option<String> {
    cut(evaluator, case, Format::F64).or_else(|| cut(evaluator, case, Format::ieee(16, 44).ok()?))
}

/// The result cut to a format; none if it overflows or underflows there.
fn cut(evaluator: &Evaluator, case: &Case, to: Format) -> Option<String> {
    let wide = Context::new(to, Rules::DEFAULT.with_rounding(Rounding::Rtz));
    let operand = |i: usize| match evaluator.function().operands()[i] {
        Kind::Format(format) => Operand::new(format, case.operands[i] as u64),
        _ => Operand::new(to, 0),
    };
    let Rounded { code, flags } = match evaluator.function().operation() {
        Operation::Div => wide.div(operand(0), operand(1)),
        Operation::Sqrt => wide.sqrt(operand(0)),
        Operation::Recip => wide.recip(operand(0)),
        Operation::Rsqrt => wide.rsqrt(operand(0)),
        Operation::Hypot => wide.hypot(operand(0), operand(1)),
        Operation::Rem => wide.rem(operand(0), operand(1)),
        Operation::Fmod => wide.fmod(operand(0), operand(1)),
        Operation::ScaleB => wide.scalb(operand(0), case.operands[1] as u32 as i32),
        _ => return None,
    };
    if flags.contains(Flags::OVERFLOW) || flags.contains(Flags::UNDERFLOW) {
        return None;
    }
    let value = to.decode(code);
    let Value::Finite { negative, significand, exponent } = value else {
        return Some(special(value, false).into());
    };
    if significand == 0 {
        return Some(zero(negative).into());
    }
    let text = hexadecimal(negative, significand.into(), exponent);
    Some(match (flags.contains(Flags::INEXACT), text.split_once('p')) {
        (true, Some((digits, power))) => format!("{digits}...p{power}"),
        _ => text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_floats() {
        assert_eq!(hexadecimal(false, 1, 0), "0x1p+0");
        assert_eq!(hexadecimal(true, 3, -1), "-0x1.8p+0");
        assert_eq!(hexadecimal(false, 0x1_0001, 4), "0x1.0001p+20");
        assert_eq!(hexadecimal(false, u128::MAX, 0), format!("0x1.{}ep+127", "f".repeat(31)));
    }

    #[test]
    fn numbers_are_short_and_exact() {
        let text = |format: Format, code| number(Kind::Format(format), code);
        assert_eq!(text(Format::F16, 0x3C01), "1.0009765625 (0x1.004p+0)");
        assert_eq!(text(Format::F32, 0x3DCC_CCCD), "0.1 (0x1.99999ap-4)");
        assert_eq!(text(Format::F64, 1), "5e-324 (0x1p-1074)");
        assert_eq!(text(Format::E5M2, 0x7D), "signaling NaN");
        assert_eq!(text(Format::E5M2, 0xFC), "-inf");
        assert_eq!(text(Format::E4M3FN, 0x80), "-0");
        let wide = Format::p3109(16, 1, false, true).unwrap();
        assert!(text(wide, 1).ends_with(" (0x1p-32767)"));
        let integer = Kind::Integer { bits: 8, signed: true };
        assert_eq!(number(integer, 0x80), "-128");
        assert_eq!(number(Kind::Integer { bits: 128, signed: true }, u128::MAX), "-1");
    }

    #[test]
    fn sums_join_where_they_can() {
        let part = |negative, significand, exponent| Exact {
            negative,
            significand,
            exponent,
            sticky: false,
        };
        assert_eq!(sum(vec![part(false, 3, 0), part(true, 1, 0)]), "0x1p+1");
        assert_eq!(sum(vec![part(false, 1, 500), part(true, 1, -500)]), "0x1p+500 - 0x1p-500");
        // The far ends cancel, whatever stands between them.
        let far = vec![part(false, 1, 500), part(false, 1, 0), part(true, 1, 500)];
        assert_eq!(sum(far), "0x1p+0");
        assert_eq!(sum(vec![part(true, 1, 3), part(false, 1, 3)]), "0");
    }
}
