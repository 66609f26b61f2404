//! Words and exact results as people read them.
//!
//! A number is shown in decimal: all digits if they are few, else the fewest that the format reads back as
//! the same code. It is shown exactly as a C hexadecimal float. The result of a sum of products is exact
//! whatever the exponents are: parts too far apart for one integer are shown as a sum. Other operations are
//! shown to 53 significant bits (45 where binary64's exponents end), with `...` if there is more.
//! Elementary functions are shown to 64 bits, in decimal as far as those settle the digits. The part before
//! `...` is cut, not rounded.

use std::fmt::Write;

use super::evaluate::{Case, Evaluator};
use super::function::Kind;
use super::operation::Operation;
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
    let case = &Case { operands: evaluator.read(case.operands), ..*case };
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
        O::Elementary(_) => return wide(evaluator, case),
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
    let widest = Format::ieee(16, 44).ok()?;
    cut(evaluator, case, Format::F64)
        .or_else(|| cut(evaluator, case, widest))
        .or_else(|| beyond(evaluator, case, widest))
}

/// What can be said of a result that leaves the widest format.
fn beyond(evaluator: &Evaluator, case: &Case, to: Format) -> Option<String> {
    let Rounded { code, flags } = rounded(evaluator, case, to, Rounding::TowardZero, 0)?;
    let sign = if to.decode(code).is_sign_negative() { "negative" } else { "positive" };
    if flags.contains(Flags::OVERFLOW) {
        Some(format!("{sign}, above 2^32767 in magnitude"))
    } else if flags.contains(Flags::UNDERFLOW) {
        Some(format!("{sign}, below 2^-32766 in magnitude"))
    } else {
        None
    }
}

/// The result cut to a format; none if it overflows or underflows there.
fn cut(evaluator: &Evaluator, case: &Case, to: Format) -> Option<String> {
    let Rounded { code, flags } = rounded(evaluator, case, to, Rounding::TowardZero, 0)?;
    if flags.contains(Flags::OVERFLOW) || flags.contains(Flags::UNDERFLOW) {
        return None;
    }
    let value = to.decode(code);
    let Value::Finite { negative, significand, exponent } = value else {
        return Some(special(value, false).into());
    };
    let inexact = flags.contains(Flags::INEXACT);
    if inexact && matches!(evaluator.function().operation(), Operation::Elementary(_)) {
        return longer(evaluator, case, to, code);
    }
    if significand == 0 {
        return Some(zero(negative).into());
    }
    let text = hexadecimal(negative, significand.into(), exponent);
    Some(if inexact { with_dots(&text) } else { text })
}

/// What the operation gives in a format under a mode; none of operations without such a result.
fn rounded(
    evaluator: &Evaluator,
    case: &Case,
    to: Format,
    mode: Rounding,
    random: u32,
) -> Option<Rounded> {
    let wide = Context::new(to, Rules::DEFAULT.with_rounding(mode)).with_random(random);
    let operand = |i: usize| match evaluator.function().operands()[i] {
        Kind::Format(format) => Operand::new(format, case.operands[i] as u64),
        _ => Operand::new(to, 0),
    };
    Some(match evaluator.function().operation() {
        Operation::Div => wide.div(operand(0), operand(1)),
        Operation::Sqrt => wide.sqrt(operand(0)),
        Operation::Recip => wide.recip(operand(0)),
        Operation::Rsqrt => wide.rsqrt(operand(0)),
        Operation::Hypot => wide.hypot(operand(0), operand(1)),
        Operation::Rem => wide.rem(operand(0), operand(1)),
        Operation::Fmod => wide.fmod(operand(0), operand(1)),
        Operation::ScaleB => wide.scalb(operand(0), case.operands[1] as u32 as i32),
        Operation::Elementary(function) if function.operands() == 1 => {
            wide.apply(function, operand(0)).ok()?
        }
        Operation::Elementary(function) => wide.apply2(function, operand(0), operand(1)).ok()?,
        _ => return None,
    })
}

/// An irrational result to 64 bits, of which `code` has the first ones. The others are found by
/// stochastic rounding, which goes up exactly where they and the random integer overflow.
fn longer(evaluator: &Evaluator, case: &Case, to: Format, code: u64) -> Option<String> {
    let Value::Finite { negative, significand, exponent } = to.decode(code) else { return None };
    let bits = significand.leading_zeros();
    // A subnormal number has fewer bits than the format's precision; 32 random ones may not do.
    if significand == 0 || bits > 32 {
        return None;
    }
    let mut more = 0_u64;
    for place in (0..bits).rev() {
        // The bits are at least `next` iff the complement of `next` makes them overflow.
        let next = more | 1 << place;
        let random = (((1_u64 << bits) - next) << (32 - bits)) as u32;
        if rounded(evaluator, case, to, Rounding::stochastic(bits), random)?.code != code {
            more = next;
        }
    }
    let (low, exponent) = (significand << bits | more, exponent - bits as i32);
    // One bit and fifteen whole digits.
    let hex = with_dots(&hexadecimal(negative, (low >> 3).into(), exponent + 3));
    let sign = if negative { "-" } else { "" };
    Some(format!("{sign}{} ({hex})", settled(low, exponent)))
}

fn with_dots(hexadecimal: &str) -> String {
    match hexadecimal.split_once('p') {
        Some((digits, power)) => format!("{digits}...p{power}"),
        None => hexadecimal.into(),
    }
}

/// The decimal digits that all numbers from `low` to `low + 1` times `2^exponent` have in common.
fn settled(low: u64, exponent: i32) -> String {
    // The digits that 64 bits can settle, and some.
    const DIGITS: i32 = 24;
    let log = f64::from(exponent + 63) * std::f64::consts::LOG10_2;
    let places = (DIGITS - log as i32).max(0) as usize;
    let bound = |significand, exponent| {
        let value = Value::Finite { negative: false, significand, exponent };
        format!("{value:.places$}")
    };
    let from = bound(low, exponent);
    let to = match low.checked_add(1) {
        Some(high) => bound(high, exponent),
        None => bound(1, exponent + 64),
    };
    let common = from.bytes().zip(to.bytes()).take_while(|(a, b)| a == b).count();
    let common = if from.len() == to.len() { common } else { 0 };
    let point = from.find('.').unwrap_or(from.len());
    let first = from.find(|c: char| c.is_ascii_digit() && c != '0').unwrap_or(from.len());
    if first >= common {
        // A power of ten lies between.
        return format!("about {to}");
    }
    let power = if first < point { (point - first - 1) as i64 } else { -((first - point) as i64) };
    if (-5..16).contains(&power) && common > point {
        return format!("{}...", &from[..common]);
    }
    let digits: String = from[first..common].chars().filter(|c| *c != '.').collect();
    let (one, rest) = digits.split_at(1);
    format!("{one}.{rest}...e{power}")
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

    /// Digits of sin 1, e^-100, e^1000 and e^10000 as tables and long division have them.
    #[test]
    fn elementary_functions_are_shown_to_many_digits() {
        use crate::vectors::evaluate::Settings;
        use crate::vectors::function::TestFunction;
        let text = |name: &str, code: u128| {
            let function: TestFunction = name.parse().unwrap();
            let evaluator = function.evaluator(&Settings::default()).unwrap();
            let case = Case { operands: [code, 0, 0], random: 0, result: 0, flags: 0 };
            value(&evaluator, &case).unwrap_or_default()
        };
        let sine = text("f16_sin", 0x3C00);
        assert!(sine.starts_with("0.841470984807896506"), "{sine}");
        assert!(sine.ends_with("... (0x1.aed548f090cee04...p-1)"), "{sine}");
        assert!(text("f16_sin", 0xBC00).starts_with("-0.841470984807896506"));
        assert_eq!(text("f16_exp2", 0x4200), "0x1p+3");
        assert_eq!(text("f16_sin", 0), "0");
        assert_eq!(text("f16_log", 0x8400), "NaN");
        assert_eq!(text("f32_exp", 0x47C3_5000), "positive, above 2^32767 in magnitude");
        let small = text("f16_exp", 0xD640);
        assert!(small.starts_with("3.72007597602083596") && small.contains("...e-44"), "{small}");
        let large = text("f32_exp", 0x447A_0000);
        assert!(large.starts_with("1.97007111401704699") && large.contains("...e434"), "{large}");
        let large = text("f32_exp", 0x461C_4000);
        assert!(large.starts_with("8.80681822566292158") && large.contains("...e4342"), "{large}");
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
