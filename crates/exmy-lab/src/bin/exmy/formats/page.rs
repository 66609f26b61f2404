//! One format in full: layout, constants, names, look-alikes and, if it is small, every code.

use super::words::{bias, brief, class, code, constant, count, fields};
use exmy::format::{Format, NAMED, Sign, Specials, Value};
use exmy::text::{ALIASES, Alias, CLASHES};
use std::fmt::Write;

/// Columns of a page where there is room.
const WIDTH: usize = 80;

/// The columns to fill: those of the terminal if it is narrower than a page.
pub(super) fn width() -> usize {
    let terminal = terminal_size::terminal_size_of(std::io::stdout());
    terminal.map_or(WIDTH, |(width, _)| usize::from(width.0).clamp(NARROW, WIDTH))
}

/// Columns below which lines are broken by the terminal: those of the fields and of names.
const NARROW: usize = 40;

pub(super) fn text(format: Format, width: usize) -> String {
    let wrapped = |heading: &str, text: &str| wrapped(heading, text, width);
    let mut text = wrapped(&format!("{format}: "), &summary(format)) + "\n";
    text += &layout(format);
    text += "\n";
    for [name, value, hex, code] in constants(format) {
        let line = format!("{name:<18}{value:<12}{hex:<25}{code}");
        if line.trim_end().len() <= width {
            text += line.trim_end();
            text += "\n";
        } else {
            let _ = writeln!(text, "{name:<18}{value}");
            text += &wrapped(&" ".repeat(18), &format!("{hex} {code}"));
        }
    }
    let names = names(format);
    if !names.is_empty() {
        text += "\nCalled\n";
        for (name, projects) in names {
            text += &wrapped(&format!("  {name:<19} "), &projects.join("; "));
        }
    }
    for (name, meaning) in misunderstandings(format) {
        text += &wrapped(&format!("  {name:<19} "), &meaning);
    }
    let alike = alike(format);
    if !alike.is_empty() {
        text += "\nSame fields\n";
        for (name, line) in alike {
            text += &wrapped(&format!("  {name:<19} "), &line);
        }
    }
    if format.bits() <= 8 {
        text += &grid(format, width);
    }
    text
}

/// What kind of format it is, in a sentence.
pub(super) fn summary(format: Format) -> String {
    let special = match format.specials() {
        _ if format.sign() == Sign::TwosComplement => "two's complement, every code finite",
        Specials::Ieee => "infinities and NaNs in the top exponent, as IEEE 754",
        Specials::Fn => "NaN at all ones, no infinity",
        Specials::Fnuz => "one NaN in the place of -0, no infinity",
        Specials::P3109 { infinite: true } => "P3109, extended: one NaN, infinity",
        Specials::P3109 { infinite: false } => "P3109, finite: one NaN, no infinity",
        Specials::Finite => "every code finite",
        _ => "special values of its own",
    };
    let zero = match (format.has_zero(), format.has_negative_zero()) {
        (false, _) => "no zero",
        (true, false) => "one zero",
        (true, true) => "two zeros",
    };
    let subnormals = if format.has_subnormals() { "subnormals" } else { "no subnormals" };
    let bits = match format.bits() {
        1 => "1 bit".into(),
        bits => format!("{bits} bits"),
    };
    match format.sign() {
        Sign::TwosComplement => format!("{bits}, {special}"),
        _ => format!(
            "{bits} (sign/exponent/significand {}), bias {}; {special}; {zero}; {subnormals}",
            fields(format),
            bias(format)
        ),
    }
}

/// The fields of a code as a row of boxes with their bits above.
fn layout(format: Format) -> String {
    let (e, m, bits) = (format.exp_bits(), format.man_bits(), format.bits());
    let mut fields: Vec<(u32, String)> = Vec::new();
    match format.sign() {
        Sign::TwosComplement => fields.push((bits, "integer".into())),
        Sign::Magnitude => fields.push((1, "s".into())),
        Sign::Unsigned => {}
    }
    if format.sign() != Sign::TwosComplement {
        fields.push((e, "exponent".into()));
        fields.push((m, "significand".into()));
    }
    let (mut above, mut line, mut top) = (String::new(), String::new(), bits);
    for (width, name) in fields.into_iter().filter(|(width, _)| *width > 0) {
        let range = match width {
            1 => format!("{}", top - 1),
            _ => format!("{}..{}", top - 1, top - width),
        };
        top -= width;
        let inside = name.len().max(range.len());
        let _ = write!(above, "  {range:^inside$} ");
        let _ = write!(line, "| {name:^inside$} ");
    }
    let line = line + "|";
    let rule: String = line.chars().map(|c| if c == '|' { '+' } else { '-' }).collect();
    format!("  {}\n  {rule}\n  {line}\n  {rule}\n", above.trim_end())
}

/// Name, value, exact hexadecimal text and code of the constants there are.
pub(super) fn constants(format: Format) -> Vec<[String; 4]> {
    let constants = [
        ("largest", Some(format.max_code())),
        ("lowest", (format.is_signed()).then(|| format.min_code())),
        ("smallest normal", format.min_normal_code()),
        ("largest subnormal", format.max_subnormal_code()),
        ("smallest", Some(format.min_positive_code())),
        ("one", format.one_code()),
        ("epsilon", format.epsilon_code()),
        ("infinity", format.infinity_code(false)),
        ("NaN", format.nan_code()),
    ];
    let line = |(name, found): (&str, Option<u64>)| {
        let found = found?;
        let value = format.decode(found);
        let exactly = match value {
            Value::Nan { .. } if format.nan_count() > 1 => {
                format!("one of {}", count(format.nan_count()))
            }
            _ if value.is_finite() => format!("{value:x}"),
            _ => String::new(),
        };
        Some([name.into(), constant(format, found), exactly, code(format, found)])
    };
    constants.into_iter().filter_map(line).collect()
}

/// Other names, each with the projects that use it, in the order of the list.
pub(super) fn names(format: Format) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut names: Vec<(&str, Vec<&str>)> = Vec::new();
    let canonical = format.to_string();
    for Alias { project, name, .. } in ALIASES.iter().filter(|alias| alias.canonical == canonical) {
        match names.iter_mut().find(|(known, _)| known == name) {
            Some((_, projects)) => projects.push(project),
            None => names.push((name, vec![project])),
        }
    }
    names
}

/// Names that others use for this format and that are not read as it.
pub(super) fn misunderstandings(format: Format) -> Vec<(&'static str, String)> {
    let canonical = format.to_string();
    let clashes = CLASHES.iter().filter(|alias| alias.canonical == canonical);
    let meaning = |Alias { project, name, .. }: &Alias| match name.parse::<Format>() {
        Ok(other) => (*name, format!("{project}; here it is {other}")),
        Err(_) => (*name, format!("{project}; others mean another format, so it is not read")),
    };
    clashes.map(meaning).collect()
}

/// Formats of the catalog with the same fields, and what they do otherwise.
fn alike(format: Format) -> Vec<(String, String)> {
    let same = |other: &Format| {
        *other != format
            && (other.exp_bits(), other.man_bits()) == (format.exp_bits(), format.man_bits())
            && other.sign() != Sign::TwosComplement
            && format.sign() != Sign::TwosComplement
    };
    let others = NAMED.iter().map(|(_, other)| *other).filter(same);
    others
        .map(|other| {
            let sign = if other.is_signed() { "" } else { "unsigned, " };
            let line = format!(
                "{sign}bias {}, {}, largest {}, smallest {}",
                other.bias(),
                class(other),
                constant(other, other.max_code()),
                constant(other, other.min_positive_code())
            );
            (other.to_string(), line)
        })
        .collect()
}

/// The values of all codes, row by row; of a signed format those without the sign.
fn grid(format: Format, width: usize) -> String {
    let halved = format.sign() == Sign::Magnitude;
    let mut codes = 1_u64 << format.bits();
    if halved {
        codes /= 2;
    }
    let cells: Vec<String> = (0..codes).map(|code| brief(format.decode(code))).collect();
    let widest = cells.iter().map(String::len).max().unwrap_or(0);
    let label = code(format, codes - 1).len();
    let mut columns = 16;
    while columns > 1 && label + columns * (widest + 1) > width {
        columns /= 2;
    }
    let mut text = "\nCodes\n".to_owned();
    for (row, cells) in cells.chunks(columns).enumerate() {
        text += &code(format, (row * columns) as u64);
        for cell in cells {
            let _ = write!(text, " {cell:>widest$}");
        }
        text += "\n";
    }
    if halved {
        let sign = code(format, codes);
        let zero = match brief(format.decode(codes)).as_str() {
            "0" => "0 too".into(),
            zero => zero.to_owned(),
        };
        let rest = format!("is {zero}; from there on the same with a minus sign");
        text += &wrapped(&format!("{sign} "), &rest, width);
    }
    text
}

/// A text after a heading, broken at spaces, later lines indented as far.
fn wrapped(heading: &str, text: &str, width: usize) -> String {
    let mut lines = heading.to_owned();
    let (indent, mut column) = (heading.len(), heading.len());
    for word in text.split_inclusive(' ') {
        if column > indent && column + word.trim_end().len() > width {
            lines.truncate(lines.trim_end().len());
            lines += "\n";
            lines += &" ".repeat(indent);
            column = indent;
        }
        lines += word;
        column += word.len();
    }
    lines.truncate(lines.trim_end().len());
    lines + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal as narrow as a page allows breaks no line, and no width breaks a word.
    #[test]
    fn pages_fit_and_keep_their_words() {
        let words = |text: &str| {
            let head = text.split("\nCodes").next().unwrap_or_default();
            head.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        for name in ["e4m3", "e4m3-ieee", "e2m1", "bf16", "f64", "int8", "e8m0", "binary8p3se"] {
            let format: Format = name.parse().unwrap();
            let wide = text(format, WIDTH);
            for width in [NARROW, 47, 60, WIDTH] {
                let narrow = text(format, width);
                let long =
                    narrow.lines().filter(|line| !line.starts_with("  +") && !line.contains('|'));
                for line in long.filter(|line| !line.contains("..")) {
                    assert!(line.len() <= width.max(46), "{name} {width}: {line}");
                }
                assert_eq!(words(&narrow), words(&wide), "{name} {width}");
            }
        }
        assert!(text("e4m3".parse().unwrap(), 50).contains("\n  F8_E4M3"));
    }
}
