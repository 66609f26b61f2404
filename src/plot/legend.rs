//! The names of series: what stands beside or above a panel, with a sample of each line.

use super::{
    Mark,
    bars::{bar_sample, interval_sample},
    labels::{shorten, width},
    path::{Place, outline, polyline},
    style::{self, FONT},
    svg::{Svg, escape, tenths},
};
use alloc::{format, string::String};

/// From the frame to a name beside it: leader, sample of the line, gap.
pub(super) const KEY: f64 = LEADER + SAMPLE + GAP;
pub(super) const LEADER: f64 = 18.0;
pub(super) const SAMPLE: f64 = 30.0;
pub(super) const GAP: f64 = 6.0;
/// The most that a name may take.
pub(super) const NAME: f64 = 230.0;

/// A name of the legend.
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    note: &'a str,
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
    /// In rows above the panel: there is no room beside it.
    Rows,
    /// Nowhere: earlier panels name all of them.
    Elsewhere,
}

impl<'a> Entry<'a> {
    /// An entry without any mark yet.
    pub(super) fn new(name: &'a str, style: usize) -> Self {
        let (line, dot, band, bar, interval) = (false, false, false, false, false);
        Self { name, note: "", style, line, dot, band, bar, interval, empty: true }
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

    /// The width of name and note.
    pub(super) fn width(&self) -> f64 {
        let (name, note) = self.parts();
        width(&name, FONT) + width(&note, FONT)
    }

    /// Name and note, shortened to fit; the note with its leading space.
    fn parts(&self) -> (String, String) {
        let note = if self.empty { "no values" } else { self.note };
        let note = if note.is_empty() { String::new() } else { format!(" {note}") };
        let note = shorten(&note, FONT, NAME / 2.0);
        (shorten(self.name, FONT, NAME - width(&note, FONT)), note)
    }

    /// Draws the sample of the line and the name; `y` is the middle of the text.
    pub(super) fn draw(&self, svg: &mut Svg, x: f64, y: f64) {
        let mut data = String::new();
        if self.band {
            outline(&mut data, &[(x, y - 7.0, y + 7.0), (x + SAMPLE, y - 7.0, y + 7.0)]);
            svg.path(&format!("b h{}", self.style % 6), &data, "");
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
        let (name, note) = self.parts();
        let note = match note.as_str() {
            "" => note,
            note => format!("<tspan class=\"q\">{}</tspan>", escape(note)),
        };
        let (x, y) = (tenths(x + SAMPLE + GAP), tenths(y));
        svg.raw(&format!("<text x=\"{x}\" y=\"{y}\" dy=\".35em\">{}{note}</text>", escape(&name)));
    }
}

/// Draws one marker at each place.
pub(super) fn draw_dots(svg: &mut Svg, dots: &[Place], tip: &str, style: usize) {
    let shape = match style % 4 {
        0 => "m-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z",
        1 => "m-2.9-2.9h5.8v5.8h-5.8z",
        2 => "m0-4l4 4l-4 4l-4-4z",
        _ => "m0-3.8l3.8 6.6h-7.6z",
    };
    let mut data = String::new();
    for &(x, y) in dots {
        data += &format!("M{} {}{shape}", tenths(x), tenths(y));
    }
    svg.path(&format!("p h{}", style % 6), &data, tip);
}
