//! The numbers of a picture as a table for other programs: what is drawn, without what is only drawn faintly.

use super::number::of_digits;
use super::{Figure, Mark, Panel};
use std::{collections::BTreeMap, format, string::String, vec::Vec};

/// The columns of a table: names, and for each the values by the order of the places.
#[derive(Default)]
struct Columns {
    names: Vec<String>,
    cells: BTreeMap<Place, BTreeMap<usize, String>>,
}

/// A place of the horizontal axis, in the order of values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place(f64);

impl Eq for Place {}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Columns {
    /// Adds a column, and further ones where several values stand at one place, as those of seeds do.
    fn column(&mut self, name: String, values: impl Iterator<Item = (f64, f64)>) {
        let first = self.names.len();
        self.names.push(name.clone());
        for (x, y) in values {
            let row = self.cells.entry(Place(x)).or_default();
            let column = (first..).find(|column| !row.contains_key(column)).unwrap_or(first);
            row.insert(column, number(y));
            if column == self.names.len() {
                self.names.push(format!("{name} {}", column - first + 1));
            }
        }
    }
}

/// A value with six significant digits and no more zeros than it needs.
fn number(value: f64) -> String {
    let rounded = of_digits(6, value);
    if rounded == 0.0 || (1e-4..1e7).contains(&rounded.abs()) {
        format!("{rounded}")
    } else {
        format!("{rounded:e}")
    }
}

/// Text as a cell.
fn cell(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Every so-manieth of many points, counted from the last.
fn few<T: Copy>(points: &[T], most: usize) -> impl Iterator<Item = T> {
    let stride = points.len().div_ceil(most.max(1)).max(1);
    let skipped = points.len().saturating_sub(1) % stride;
    points.iter().copied().skip(skipped).step_by(stride)
}

pub(super) fn table(figure: &Figure, most: usize) -> String {
    let mut columns = Columns::default();
    for panel in &figure.panels {
        add(&mut columns, panel, figure.panels.len() > 1, most);
    }
    let place = |x: f64| match figure.x.is_categorical() {
        true => cell(&figure.x.name(x)),
        false => number(x),
    };
    let first = if figure.x.label().is_empty() { "x" } else { figure.x.label() };
    let names = columns.names.iter().map(|name| cell(name));
    let mut lines = [[cell(first)].into_iter().chain(names).collect::<Vec<_>>().join(",")].to_vec();
    for (Place(x), values) in &columns.cells {
        let mut line = place(*x);
        for i in 0..columns.names.len() {
            line.push(',');
            line.push_str(values.get(&i).map_or("", String::as_str));
        }
        lines.push(line);
    }
    lines.join("\n") + "\n"
}

/// Adds the columns of a panel, which say whose they are where there are several.
fn add(columns: &mut Columns, panel: &Panel, several: bool, most: usize) {
    let label = panel.y.label();
    let named = |name: &str| match (several, name.is_empty()) {
        (_, true) => label.into(),
        (true, false) => format!("{label}: {name}"),
        (false, false) => name.into(),
    };
    for mark in &panel.marks {
        match mark {
            Mark::Line(series) | Mark::Points(series) | Mark::Bars(series) => {
                columns.column(named(&series.name), few(&series.points, most));
            }
            Mark::Band(band) => {
                let low = few(&band.points, most).map(|(x, low, _)| (x, low));
                columns.column(named(&band.name) + " low", low);
                let high = few(&band.points, most).map(|(x, _, high)| (x, high));
                columns.column(named(&band.name) + " high", high);
            }
            Mark::Intervals(all) => {
                columns.column(named(&all.name), all.points.iter().map(|p| (p.0, p.2)));
                columns.column(named(&all.name) + " low", all.points.iter().map(|p| (p.0, p.1)));
                columns.column(named(&all.name) + " high", all.points.iter().map(|p| (p.0, p.3)));
            }
            Mark::Heat(heat) => {
                for (y, row) in heat.rows_of_values() {
                    columns.column(named(&panel.y.name(y)), row.into_iter());
                }
            }
            Mark::Faint(_) | Mark::Rule { .. } => {}
        }
    }
}
