//! The place of one panel on the page: its frame, its scales, and the rows of names above it.

use super::{
    Panel,
    axis::{Scale, Ticks},
    labels::broken,
    legend::{Entry, GAP, Key, NAME, SAMPLE},
    path::Place,
    style::{FONT, LINE, PAD, WIDTH},
};
use std::{string::String, vec, vec::Vec};

/// Where rows of names end at the right.
pub(super) const ROWS_RIGHT: f64 = WIDTH - PAD;
/// How wide and how high slanted text is for its length: at 45 degrees.
pub(super) const SLANT: f64 = core::f64::consts::FRAC_1_SQRT_2;

/// The most space of a slanted name.
pub(super) const SLANTED: f64 = NAME * 1.25;

/// The lines of a category's name below its place, where it fits in three; `slot` is the space of a category.
pub(super) fn flat(name: &str, slot: f64) -> Option<Vec<String>> {
    broken(name, FONT, slot - 12.0).filter(|lines| lines.len() <= 3)
}

/// A panel with its place on the page.
pub(super) struct Frame<'a> {
    pub(super) panel: &'a Panel,
    /// The series number of each mark.
    pub(super) styles: Vec<usize>,
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) ticks: Ticks,
    pub(super) entries: Vec<Entry<'a>>,
    pub(super) key: Key,
    /// Whether marks lie outside, because an axis has a fixed or a settled range.
    pub(super) clip: bool,
    /// Whether the horizontal axis has categories, and whether their names are slanted.
    pub(super) categorical: bool,
    pub(super) slanted: bool,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame<'_> {
    /// The places of the names above the frame: x from its left edge, y from the first row; and what all
    /// rows take.
    pub(super) fn rows(&self) -> (Vec<Place>, f64) {
        let (mut x, mut y, mut below) = (0.0, 0.0, 0.0);
        let mut places = Vec::new();
        for entry in &self.entries {
            let size = SAMPLE + GAP + entry.width();
            if x > 0.0 && x + size > ROWS_RIGHT - self.left {
                (x, y) = (0.0, below);
            }
            places.push((x, y));
            x += size + 20.0;
            let end = y + LINE * entry.height() as f64;
            below = if end > below { end } else { below };
        }
        (places, below + 4.0)
    }

    /// The lines of a name below the horizontal axis: several of a category's that is not slanted.
    pub(super) fn lines(&self, name: &str) -> Vec<String> {
        let slot = self.at_x(1.0) - self.at_x(0.0);
        let several = (self.categorical && !self.slanted).then(|| flat(name, slot)).flatten();
        several.unwrap_or_else(|| vec![name.into()])
    }

    pub(super) fn at_x(&self, value: f64) -> f64 {
        self.left + self.x.unit(value) * (self.right - self.left)
    }

    pub(super) fn at_y(&self, value: f64) -> f64 {
        self.bottom - self.y.unit(value) * (self.bottom - self.top)
    }
}
