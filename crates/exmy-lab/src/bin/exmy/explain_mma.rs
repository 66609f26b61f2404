//! `exmy explain-mma`: one dot product as a matrix unit computes it, step by step.

use crate::rows::width;
use crate::settings::quiet_pipe;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::format::Format;
use exmy::gemm::unit::Unit;
use exmy::round::{Flags, Overflow, Rules};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Show a dot product as a matrix unit computes it, step by step
///
/// UNIT is MODEL:A, MODEL:A,B or MODEL:A,B+RESULT: a model, the formats of the operands and that of
/// addend and result (f32 unless said): hopper:e4m3, ada:f16+f16, blackwell:nvfp4. Parameters stand
/// behind the model: hopper,f=14:e4m3. The formats may be an option of their own. A file whose name ends in
/// .toml describes a unit of your own: unit.toml, unit.toml:e4m3.
///
/// Operands are numbers, which are rounded to nearest even, or codes: 0x followed by hexadecimal
/// digits. A number in C's hexadecimal form has an exponent: 0x1.8p-3.
///
/// A unit that rounds stochastically, as custom,out=f32@sr8:e4m3, takes a random word for each rounding.
///
/// For each step it shows what the terms were aligned to, what was kept of each in units of the last
/// place, their sum and its rounding.
#[derive(Args)]
#[command(after_long_help = crate::verify_tiles::long_help())]
pub(crate) struct Arguments {
    /// The model with its operands, or with --formats the model alone
    #[arg(value_name = "UNIT")]
    unit: String,
    /// Formats of operands and result: A, A,B or A,B+RESULT
    #[arg(long, value_name = "FORMATS")]
    formats: Option<String>,
    /// Elements of the left operand
    #[arg(short, long, value_name = "X,...", required = true, allow_hyphen_values = true)]
    a: String,
    /// Elements of the right operand
    #[arg(short, long, value_name = "X,...", required = true, allow_hyphen_values = true)]
    b: String,
    /// The addend
    #[arg(short, long, value_name = "X", default_value = "0", allow_hyphen_values = true)]
    c: String,
    /// Block scales of the left operand
    #[arg(long, value_name = "X,...", allow_hyphen_values = true)]
    scale_a: Option<String>,
    /// Block scales of the right operand
    #[arg(long, value_name = "X,...", allow_hyphen_values = true)]
    scale_b: Option<String>,
    /// Random words of 32 bits, of which srN uses the top N: one for each rounding, mostly for each step
    #[arg(long, value_name = "W,...", allow_hyphen_values = true)]
    words: Option<String>,
}

/// Codes of one operand, with what to say about numbers that were rounded.
struct Codes {
    codes: Vec<u64>,
    rounded: Vec<String>,
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let unit = Unit::named(&arguments.unit, arguments.formats.as_deref())?;
    let (left, right) = (unit.a(), unit.b());
    let a = codes("--a", &arguments.a, left.format)?;
    let b = codes("--b", &arguments.b, right.format)?;
    let c = codes("--c", &arguments.c, unit.result())?;
    let scales =
        |option, text: &Option<String>, scale: Option<exmy::gemm::unit::Scale>| match (text, scale)
        {
            (Some(text), Some(scale)) => codes(option, text, scale.format),
            (Some(_), None) => {
                let what = format!("{option}: the operand of {unit} has no scales");
                Err(Error::new(what).hint("a scaled operand is written e2m1/16:ue4m3, or nvfp4"))
            }
            (None, _) => Ok(Codes { codes: Vec::new(), rounded: Vec::new() }),
        };
    let scale_a = scales("--scale-a", &arguments.scale_a, left.scale)?;
    let scale_b = scales("--scale-b", &arguments.scale_b, right.scale)?;
    let k = a.codes.len();
    if b.codes.len() != k {
        let what = format!("--a has {k} elements and --b {}", b.codes.len());
        return Err(Error::new(what).hint("a dot product needs as many of both"));
    }
    let [addend] = c.codes[..] else {
        return Err(Error::new(format!("--c has {} elements", c.codes.len())).hint("one is needed"));
    };
    let of = |side: &str, error| {
        let what = format!("--{side} and --scale-{side} do not fit {unit}");
        Error::new(what).because(error)
    };
    let rows = unit.rows(&a.codes, &scale_a.codes, k).map_err(|error| of("a", error))?;
    let columns = unit.columns(&b.codes, &scale_b.codes, k).map_err(|error| of("b", error))?;
    let words = words(arguments.words.as_deref(), &unit, k)?;
    let explanation = unit.explain_with(&rows.row(0), &columns.row(0), addend, &words);
    for remark in [&a, &b, &c, &scale_a, &scale_b].into_iter().flat_map(|codes| &codes.rounded) {
        say!("note: {remark}");
    }
    let mut text = format!("{unit}\n");
    list(&mut text, "a", left.format, &a.codes);
    list(&mut text, "b", right.format, &b.codes);
    if let (Some(x), Some(y)) = (left.scale, right.scale) {
        list(&mut text, "scale a", x.format, &scale_a.codes);
        list(&mut text, "scale b", y.format, &scale_b.codes);
    }
    list(&mut text, "c", unit.result(), &[addend]);
    text += &match width() {
        Some(width) => format!("{explanation:width$}\n"),
        None => format!("{explanation}\n"),
    };
    let mut out = io::stdout().lock();
    quiet_pipe(out.write_all(text.as_bytes()).and_then(|()| out.flush()))?;
    Ok(0)
}

/// Random words, decimal or hexadecimal, as many as a unit needs for `k` elements.
fn words(text: Option<&str>, unit: &Unit, k: usize) -> Result<Vec<u32>> {
    let needed = unit.words(k);
    let parse = |word: &str| {
        let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
        let found = digits.map_or_else(|| word.parse(), |digits| u32::from_str_radix(digits, 16));
        found.map_err(|_| {
            Error::new(format!("--words: {word:?} is no word of 32 bits"))
                .hint("0 to 4294967295, or 0x0 to 0xffffffff")
        })
    };
    let found: Vec<u32> = parts(text.unwrap_or_default()).map(parse).collect::<Result<_>>()?;
    if found.len() == needed {
        return Ok(found);
    }
    let why =
        format!("{unit} needs {needed} random words for {k} elements, --words has {}", found.len());
    Err(Error::new(why).hint(match needed {
        0 => "leave --words away: it does not round stochastically".into(),
        _ => format!("--words {}", vec!["0x80000000"; needed.min(4)].join(",")),
    }))
}

/// What stands between commas and blanks.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty())
}

/// The codes of numbers and codes, separated by commas or blanks.
fn codes(option: &str, text: &str, format: Format) -> Result<Codes> {
    let mut found = Codes { codes: Vec::new(), rounded: Vec::new() };
    for word in parts(text) {
        let wrong = |what: String| {
            Error::new(format!("{option}: {what}")).hint(format!(
                "a number such as 1.5, or a code of {format} ({} bits) such as 0x1",
                format.bits()
            ))
        };
        let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if let Some(digits) = digits {
            let code = u64::from_str_radix(digits, 16)
                .map_err(|_| wrong(format!("{word:?} is no code")))?;
            if code & !format.codes().end() != 0 {
                return Err(wrong(format!("{word:?} has bits beyond the width")));
            }
            found.codes.push(code);
            continue;
        }
        let rules = Rules::DEFAULT.with_overflow(Overflow::None);
        let rounded = format.parse(word, &rules, 0).map_err(|error| wrong(error.to_string()))?;
        if rounded.flags.contains(Flags::INEXACT) {
            let value = format.decode(rounded.code);
            found.rounded.push(format!("{option}: {word} is rounded to {value} of {format}"));
        }
        found.codes.push(rounded.code);
    }
    if found.codes.is_empty() {
        return Err(Error::new(format!("{option} names no element")));
    }
    Ok(found)
}

/// Elements with their codes, as many on a line as fit.
fn list(text: &mut String, name: &str, format: Format, codes: &[u64]) {
    let limit = width().unwrap_or(80).max(20);
    let digits = format.bits().div_ceil(4) as usize;
    let mut line = format!("{name}:");
    for code in codes {
        let word = format!(" 0x{code:0digits$x}={}", format.decode(*code));
        if line.len() + word.len() > limit && line.trim() != "" {
            let _ = writeln!(text, "{line}");
            line = "  ".into();
        }
        line += &word;
    }
    let _ = writeln!(text, "{line}");
}
