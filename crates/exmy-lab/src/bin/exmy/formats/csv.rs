//! Every code of a format, for other programs.

use super::words;
use exmy::error::{Error, Result};
use exmy::format::{Format, Value};
use exmy::math::Operand;
use std::fmt::Write;

/// Codes of more bits make files that nobody reads.
const MOST_BITS: u32 = 16;

pub(super) fn text(format: Format) -> Result<String> {
    if format.bits() > MOST_BITS {
        return Err(Error::new(format!(
            "--csv lists every code of a format of up to {MOST_BITS} bits, and {format} has {}",
            format.bits()
        ))
        .hint(format!("exmy formats {format} shows its constants")));
    }
    let mut text = "code,value,class\n".to_owned();
    for code in format.codes() {
        let value = format.decode(code);
        let (shown, class) = match value {
            Value::Nan { .. } => ("NaN".into(), "nan"),
            Value::Infinite { negative: false } => ("Inf".into(), "inf"),
            Value::Infinite { negative: true } => ("-Inf".into(), "inf"),
            Value::Finite { significand: 0, .. } => (format!("{value:x}"), "zero"),
            Value::Finite { .. } if Operand::new(format, code).is_subnormal() => {
                (format!("{value:x}"), "subnormal")
            }
            Value::Finite { .. } => (format!("{value:x}"), "normal"),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{},{shown},{class}", words::code(format, code));
    }
    Ok(text)
}
