//! The place of one panel on the page: its frame, its scales, and the rows of names above it.

use super::{
    Panel,
    axis::{Scale, Ticks},
    legend::{Entry, GAP, Key, SAMPLE},
    path::Place,
    style::{LINE, PAD, WIDTH},
};
use std::vec::Vec;

/// Where rows of names end at the right.
pub(super) const ROWS_RIGHT: f64 = WIDTH - PAD;
/// How wide and how high slanted text is for its length: at 45 degrees.
pub(super) const SLANT: f64 = core::f64::consts::FRAC_1_SQRT_2;

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
    /// Whether marks may lie outside, because an axis has a fixed range.
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

    pub(super) fn at_x(&self, value: f64) -> f64 {
        self.left + self.x.unit(value) * (self.right - self.left)
    }

    pub(super) fn at_y(&self, value: f64) -> f64 {
        self.bottom - self.y.unit(value) * (self.bottom - self.top)
    }
}
