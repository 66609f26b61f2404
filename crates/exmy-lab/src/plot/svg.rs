//! The few elements of SVG 1.1 that a figure is made of, as text.
//!
//! Coordinates are printed with at most one decimal, rounded by integer arithmetic. A tenth of a unit is a
//! seventh of a pixel on a phone, and the bytes do not depend on a platform's printing.

use exmy::shown::printable;
use std::{format, string::String};

/// A coordinate in tenths of a unit, half away from zero; absurd ones are cut to a million units,
/// far outside every figure.
pub(super) fn to_tenths(value: f64) -> i64 {
    let scaled = (value * 10.0).clamp(-1e7, 1e7);
    (if scaled < 0.0 { scaled - 0.5 } else { scaled + 0.5 }) as i64
}

/// Prints a coordinate.
pub fn tenths(value: f64) -> String {
    let mut text = String::new();
    print_tenths(&mut text, to_tenths(value), false);
    text
}

/// Appends a number of tenths; where it follows another number, with the space that a minus
/// sign makes superfluous.
pub(super) fn print_tenths(out: &mut String, value: i64, follows: bool) {
    let size = value.unsigned_abs();
    if value < 0 {
        out.push('-');
    } else if follows {
        out.push(' ');
    }
    match (size / 10, size % 10) {
        (whole, 0) => *out += &format!("{whole}"),
        (0, part) => *out += &format!(".{part}"),
        (whole, part) => *out += &format!("{whole}.{part}"),
    }
}

/// Text for XML: markup characters as entities, and escaped what cannot be seen, among it all that XML 1.0
/// (section 2.2) has no place for.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(&text.replace(['\t', '\n', '\r'], " ")).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// An SVG document that grows line by line.
#[derive(Debug, Default)]
pub(super) struct Svg(pub(super) String);

impl Svg {
    /// Adds finished markup as a line of its own.
    pub(super) fn raw(&mut self, markup: &str) {
        self.0.push_str(markup);
        self.0.push('\n');
    }

    /// Adds text at a baseline; `class` may be empty.
    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        self.raw(&format!(
            "<text{} x=\"{}\" y=\"{}\">{}</text>",
            attribute("class", class),
            tenths(x),
            tenths(y),
            escape(text)
        ));
    }

    /// Adds an open path, and a tooltip where `tip` is not empty.
    pub(super) fn path(&mut self, class: &str, data: &str, tip: &str) {
        if data.is_empty() {
            return;
        }
        let class = attribute("class", class);
        if tip.is_empty() {
            self.raw(&format!("<path{class} d=\"{data}\"/>"));
        } else {
            self.raw(&format!("<path{class} d=\"{data}\"><title>{}</title></path>", escape(tip)));
        }
    }
}

fn attribute(name: &str, value: &str) -> String {
    if value.is_empty() { String::new() } else { format!(" {name}=\"{value}\"") }
}
