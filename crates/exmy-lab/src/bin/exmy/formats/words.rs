//! Values, codes and classes in few characters.

use exmy::format::{Format, Sign, Specials, Value};

/// Zero-padded to the digits that the format's width needs.
pub(super) fn code(format: Format, code: u64) -> String {
    format!("{code:#0width$x}", width = 2 + format.bits().div_ceil(4) as usize)
}

/// The value exactly, in decimal if that is short, else as an integer times a power of two.
pub(super) fn brief(value: Value) -> String {
    match value {
        Value::Nan { .. } => "NaN".into(),
        Value::Infinite { negative: false } => "Inf".into(),
        Value::Infinite { negative: true } => "-Inf".into(),
        Value::Finite { negative, significand, exponent } => {
            let decimal = value.to_string();
            if decimal.trim_start_matches('-').len() <= 8 && !decimal.contains(['e', 'x']) {
                return decimal;
            }
            let twos = significand.trailing_zeros();
            let (odd, power) = (significand >> twos, exponent + twos as i32);
            let sign = if negative { "-" } else { "" };
            match odd {
                1 => format!("{sign}2^{power}"),
                _ => format!("{sign}{odd}*2^{power}"),
            }
        }
    }
}

/// A constant for a table: as [`brief`], but small powers of two as such, and what is long rounded
/// to four digits.
pub(super) fn constant(format: Format, code: u64) -> String {
    let value = format.decode(code);
    if let Value::Finite { negative: false, significand, exponent } = value
        && significand.is_power_of_two()
    {
        let power = exponent + significand.ilog2() as i32;
        if power < -2 {
            return format!("2^{power}");
        }
    }
    let exact = brief(value);
    if exact.len() <= 8 { exact } else { format!("{:.3e}", format.display(code)) }
}

/// A count, as a power of two less two if it is long.
pub(super) fn count(count: u64) -> String {
    match count {
        0..=9999 => count.to_string(),
        _ if (count + 2).is_power_of_two() => format!("2^{}-2", (count + 2).trailing_zeros()),
        _ => format!("2^{}-1", (count + 1).ilog2()),
    }
}

/// The class of special values, as names spell it, and what departs from the usual.
pub(super) fn class(format: Format) -> String {
    let mut class = match format.specials() {
        _ if format.sign() == Sign::TwosComplement => "integer",
        Specials::Ieee => "ieee",
        Specials::Fn => "fn",
        Specials::Fnuz => "fnuz",
        Specials::P3109 { infinite: true } => "p3109e",
        Specials::P3109 { infinite: false } => "p3109f",
        Specials::Finite => "finite",
        _ => "other",
    }
    .to_owned();
    if !format.has_zero() {
        class += "-nozero";
    } else if format.man_bits() > 0 && !format.has_subnormals() {
        class += "-nosub";
    }
    class
}

/// Sign bits, exponent bits, significand bits.
pub(super) fn fields(format: Format) -> String {
    let sign = u32::from(format.sign() == Sign::Magnitude);
    match format.sign() {
        Sign::TwosComplement => format!("int{}", format.bits()),
        _ => format!("{sign}/{}/{}", format.exp_bits(), format.man_bits()),
    }
}

/// The bias; integers have none.
pub(super) fn bias(format: Format) -> String {
    match format.sign() {
        Sign::TwosComplement if format.bias() == 0 => "-".into(),
        _ => format.bias().to_string(),
    }
}
