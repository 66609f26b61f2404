//! Arithmetic and text of numbers in a picture, with the same bits on every machine.
//!
//! Only `+ - * /` and comparisons touch a value, the logarithm included; the system's `log10`
//! differs between platforms. Powers of ten come from the standard library's decimal parser, which
//! rounds correctly. Tick labels are made from integers and are exact.

use crate::amounts::grouped;
use std::{
    format,
    string::{String, ToString},
};

/// `n * 10^k`, correctly rounded: the standard library's decimal parser is.
pub fn decimal(n: i64, k: i32) -> f64 {
    format!("{n}e{k}").parse().expect("an integer, `e`, an integer")
}

/// The nearest number of so many significant decimal digits, which decimal text alone says exactly.
pub fn of_digits(digits: usize, value: f64) -> f64 {
    format!("{value:.*e}", digits.saturating_sub(1)).parse().unwrap_or(value)
}

/// The decimal exponent of a positive number: the largest `k` with `10^k <= value`.
pub fn decade(value: f64) -> i32 {
    // The logarithm may round across a power of ten; comparisons with the power decide.
    let k = floor(log10(value)) as i32;
    (k - 1..=k + 1).rev().find(|&k| decimal(1, k) <= value).unwrap_or(k)
}

/// `n * 10^k` written out, with exactly `-k` decimals where `k < 0`.
pub(super) fn plain_label(n: i64, k: i32) -> String {
    let sign = if n < 0 { "\u{2212}" } else { "" };
    let digits = n.unsigned_abs().to_string();
    if n == 0 {
        "0".into()
    } else if k >= 0 {
        sign.to_owned() + &grouped(&format!("{digits}{}", "0".repeat(k as usize)))
    } else {
        let decimals = k.unsigned_abs() as usize;
        let digits = format!("{digits:0>width$}", width = decimals + 1);
        let (whole, part) = digits.split_at(digits.len() - decimals);
        format!("{sign}{whole}.{part}")
    }
}

/// `n×10ᵏ`, or `10ᵏ` for `n = 1`.
pub(super) fn power_label(n: i64, k: i32) -> String {
    if n == 1 { power_of_ten(k) } else { format!("{n}×{}", power_of_ten(k)) }
}

/// `10ᵏ` in Unicode superscripts, which need no markup.
pub(super) fn power_of_ten(k: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let mut text = String::from("10");
    if k < 0 {
        text.push('⁻');
    }
    let digits = k.unsigned_abs().to_string();
    text.extend(digits.bytes().map(|digit| DIGITS[usize::from(digit - b'0')]));
    text
}

/// A value to four significant digits for running text: `1.912`, `0.0004`, `3.2e-9`.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() || size >= 1e6 || (size < 1e-3 && size > 0.0) {
        return format!("{:.3e}", value);
    }
    let decimals = (3 - decade(if size >= 1.0 { size } else { 1.0 })).max(0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => grouped(&text),
    }
}

/// The largest integer not above `value`, for |value| < 2^53.
pub(super) fn floor(value: f64) -> f64 {
    let whole = value as i64 as f64;
    if whole > value { whole - 1.0 } else { whole }
}

/// log10 of a positive finite number to about 1 part in 1e15, by `+ - * /` alone.
///
/// x = m 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh((m-1)/(m+1)), whose argument is at
/// most 0.172, so that eleven terms of the series reach 1e-17.
pub fn log10(value: f64) -> f64 {
    const LOG10_2: f64 = core::f64::consts::LOG10_2;
    // Scaling by 2^54 makes a subnormal normal.
    let (value, shift) =
        if value < f64::MIN_POSITIVE { (value * 18_014_398_509_481_984.0, 54) } else { (value, 0) };
    let bits = value.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023 - shift;
    let mut m = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if m > core::f64::consts::SQRT_2 {
        m /= 2.0;
        exponent += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let mut sum = 0.0;
    for term in (0..11).rev() {
        sum = sum * (s * s) + 1.0 / f64::from(2 * term + 1);
    }
    exponent as f64 * LOG10_2 + 2.0 * s * sum * core::f64::consts::LOG10_E
}

/// 10^x for |x| of a few hundred, to about 1e-12: enough for a margin.
pub fn exp10(x: f64) -> f64 {
    let whole = floor(x);
    let y = (x - whole) * core::f64::consts::LN_10;
    let mut sum = 1.0;
    for n in (1..30).rev() {
        sum = 1.0 + sum * y / f64::from(n);
    }
    decimal(1, whole as i32) * sum
}
