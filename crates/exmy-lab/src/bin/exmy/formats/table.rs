//! Formats side by side, one a line, in 80 columns for the names of the catalog.

use super::words::{bias, class, constant, count, fields};
use exmy::format::Format;

/// What the table of the catalog does not show.
pub(super) const NOTE: &str = "
smallest: the smallest value above zero, a subnormal one where there are any.
Any [u]eEmM shape with a bias (b11) and a class (fn, fnuz, finite, ieee) is a
format too, as is P3109's binaryKpP{s|u}{e|f}: exmy formats NAME shows one.
";

/// Column headings.
pub(super) const HEAD: [&str; 10] =
    ["name", "bits", "s/E/M", "bias", "largest", "normal", "smallest", "NaN", "Inf", "class"];

/// One format's line.
pub(super) fn row(format: Format) -> [String; 10] {
    [
        format.to_string(),
        format.bits().to_string(),
        fields(format),
        bias(format),
        constant(format, format.max_code()),
        format.min_normal_code().map_or_else(|| "-".into(), |code| constant(format, code)),
        constant(format, format.min_positive_code()),
        count(format.nan_count()),
        count(format.infinity_count()),
        class(format),
    ]
}

pub(super) fn text(formats: &[Format]) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(formats.iter().map(|format| row(*format)));
    let widths: Vec<usize> = (0..HEAD.len())
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Words to the left, numbers to the right.
            if matches!(column, 0 | 2 | 9) {
                line += &format!("{cell:<width$} ");
            } else {
                line += &format!("{cell:>width$} ");
            }
        }
        text += line.trim_end();
        text += "\n";
    }
    text
}
