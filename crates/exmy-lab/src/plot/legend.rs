//! The names of series: what stands beside or above a panel, with a sample of each line.

use super::{
    Mark,
    labels::{broken, shorten_note, width},
    path::{draw_dots, outline, polyline, rectangle},
    style::{self, FONT, LINE, hue},
    svg::{Svg, escape, tenths},
};
use std::{format, string::String, vec::Vec};

/// From the frame to a name beside it: leader, sample of the line, gap.
pub(super) const KEY: f64 = LEADER + SAMPLE + GAP;
pub(super) const LEADER: f64 = 18.0;
pub(super) const SAMPLE: f64 = 30.0;
pub(super) const GAP: f64 = 6.0;
/// The most that a name may take beside a panel.
pub(super) const NAME: f64 = 230.0;
/// The most lines of a name.
pub(super) const LINES: usize = 3;

/// A line of an entry: what of the name stands in it, and what of the note.
type Part = [String; 2];

/// A name of the legend.
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    note: &'a str,
    /// Name and note as they are written.
    lines: Vec<Part>,
    pub(super) style: usize,
    line: bool,
    dot: bool,
    band: bool,
    bar: bool,
    interval: bool,
    /// Whether no value of it has a place.
    pub(super) empty: bool,
}

/// Where the names of a panel stand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Key {
    /// Beside the ends of the curves.
    Ends,
    /// In rows above the panel: there is no space beside it.
    Rows,
    /// Nowhere: earlier panels name all of them.
    Elsewhere,
}

impl<'a> Entry<'a> {
    /// An entry without any mark yet.
    pub(super) fn new(name: &'a str, style: usize) -> Self {
        let (line, dot, band, bar, interval) = (false, false, false, false, false);
        let lines = Vec::new();
        Self { name, note: "", lines, style, line, dot, band, bar, interval, empty: true }
    }

    /// Adds a mark of this name; the first remark stays.
    pub(super) fn add(&mut self, mark: &Mark, note: &'a str) {
        self.note = if self.note.is_empty() { note } else { self.note };
        self.line |= matches!(mark, Mark::Line(_));
        self.dot |= matches!(mark, Mark::Points(_));
        self.band |= matches!(mark, Mark::Band(_));
        self.bar |= matches!(mark, Mark::Bars(_));
        self.interval |= matches!(mark, Mark::Intervals(_));
    }

    /// The note, or why there is nothing to note.
    pub(super) fn note(&self) -> &'a str {
        if self.empty { "no values" } else { self.note }
    }

    /// The width of the longest line.
    pub(super) fn width(&self) -> f64 {
        let line = |part: &Part| width(part.concat().trim_end(), FONT);
        self.lines.iter().map(line).fold(0.0, |a, b| if b > a { b } else { a })
    }

    /// How many lines it takes.
    pub(super) fn height(&self) -> usize {
        self.lines.len()
    }

    /// How many lines of at most `space` it takes with its whole name; None where that does not fit.
    pub(super) fn whole(&self, space: f64) -> Option<usize> {
        self.lay(self.name, space, LINES).map(|lines| lines.len())
    }

    /// Whether it takes at most so many lines of so much `space` under this name.
    pub(super) fn fits(&self, name: &str, space: f64, most: usize) -> bool {
        self.lay(name, space, most).is_some_and(|lines| lines.len() <= most)
    }

    /// Writes the name as `text`, which [`fits`](Self::fits).
    pub(super) fn write(&mut self, text: &str, space: f64, most: usize) {
        self.lines = self.lay(text, space, most).unwrap_or_default();
    }

    /// The lines of a name with the note, each of which takes no more than `space`: the note follows the name
    /// where it can and stands below it otherwise, and so does a range after the note. In a single line the
    /// note has half of it at most, and the range what is left.
    fn lay(&self, name: &str, space: f64, most: usize) -> Option<Vec<Part>> {
        let (note, range) = self.note().split_once(" [").unwrap_or((self.note(), ""));
        let note = shorten_note(note, FONT, if most > 1 { space } else { space / 2.0 });
        let lines = broken(name, FONT, space)?;
        let mut lines: Vec<Part> = lines.into_iter().map(|name| [name, String::new()]).collect();
        if let Some([last, beside]) = lines.last_mut().filter(|_| !note.is_empty()) {
            let after = format!(" {note}");
            if width(last, FONT) + width(&after, FONT) <= space {
                *beside = after;
            } else {
                last.push(' ');
                lines.push([String::new(), note]);
            }
        }
        if let Some(line) = lines.last_mut().filter(|_| !range.is_empty()) {
            let after = format!(" [{range}");
            if width(&line.concat(), FONT) + width(&after, FONT) <= space {
                line[1] += &after;
            } else if most > 1 {
                lines.push([String::new(), after.trim_start().to_owned()]);
            }
        }
        Some(lines)
    }

    /// Draws the sample of the line and the name; `y` is the middle of the text.
    pub(super) fn draw(&self, svg: &mut Svg, x: f64, y: f64) {
        svg.raw(&format!("<g class=\"y\" data-name=\"{}\">", escape(self.name)));
        let mut data = String::new();
        if self.band {
            outline(&mut data, &[(x, y - 7.0, y + 7.0), (x + SAMPLE, y - 7.0, y + 7.0)]);
            svg.path(&format!("b h{}", hue(self.style)), &data, "");
            data.clear();
        }
        if self.bar {
            bar_sample(svg, [x, x + SAMPLE], y, self.style);
        }
        if self.interval {
            interval_sample(svg, x + SAMPLE / 2.0, y, self.style);
        }
        if self.line {
            polyline(&mut data, &[(x, y), (x + SAMPLE, y)]);
            svg.path(&format!("k {}", style::classes(self.style)), &data, "");
        }
        if self.dot {
            draw_dots(svg, &[(x + SAMPLE / 2.0, y)], "", self.style);
        }
        let (x, y) = (tenths(x + SAMPLE + GAP), tenths(y));
        let mut text = String::new();
        for (i, [name, note]) in self.lines.iter().enumerate() {
            let place = match i {
                0 => String::new(),
                _ => format!(" x=\"{x}\" dy=\"{}\"", tenths(LINE)),
            };
            if i == 0 {
                text += &escape(name);
            } else if !name.is_empty() {
                text += &format!("<tspan{place}>{}</tspan>", escape(name));
            }
            let place = if name.is_empty() { place.as_str() } else { "" };
            if !note.is_empty() {
                text += &format!("<tspan class=\"q\"{place}>{}</tspan>", escape(note));
            }
        }
        svg.raw(&format!("<text x=\"{x}\" y=\"{y}\" dy=\".35em\">{text}</text></g>"));
    }
}

/// The sample of a bar in a legend: from `x[0]` to `x[1]`, about the middle `y`.
fn bar_sample(svg: &mut Svg, x: [f64; 2], y: f64, style: usize) {
    let mut data = String::new();
    rectangle(&mut data, x, [y - 7.0, y + 7.0]);
    svg.path(&format!("w h{}", hue(style)), &data, "");
}

/// The sample of an interval in a legend.
fn interval_sample(svg: &mut Svg, x: f64, y: f64, style: usize) {
    let mut data = String::new();
    polyline(&mut data, &[(x, y - 9.0), (x, y + 9.0)]);
    for end in [y - 9.0, y + 9.0] {
        polyline(&mut data, &[(x - 5.0, end), (x + 5.0, end)]);
    }
    svg.path(&format!("l h{}", hue(style)), &data, "");
    draw_dots(svg, &[(x, y)], "", style);
}
