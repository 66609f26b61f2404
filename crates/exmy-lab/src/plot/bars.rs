//! Marks on a category axis: bars, and values with their intervals, side by side where there are several
//! series.

use super::{
    Mark,
    frame::Frame,
    number::short,
    path::{Curve, draw_dots, polyline, rectangle},
    style::hue,
    svg::Svg,
};
use std::{format, string::String, vec::Vec};

/// The share of a category's space that its marks take.
const SHARE: f64 = 0.8;
/// The widest bar.
const WIDEST: f64 = 64.0;

/// The farthest that points stand beside intervals.
const ASIDE: f64 = 14.0;

/// Values with the ends of their intervals: `(x, low, value, high)`.
///
/// On a [category axis](super::Axis::categories) `x` is the number of the category, from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64, f64, f64)>,
}

impl Intervals {
    /// A series of `(x, low, value, high)`. A value without a place is marked as missing; an end without
    /// one (an infinity, or 0 on a logarithmic axis) lies beyond the panel. Where both ends are the value
    /// there is no interval, as of a single seed, and the value stands alone.
    pub fn new(
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, f64, f64, f64)>,
    ) -> Self {
        Self { name: name.into(), points: points.into_iter().collect() }
    }

    /// The values with their intervals in words, `name` naming places.
    pub(super) fn describe(&self, name: impl Fn(f64) -> String) -> String {
        let values: Vec<String> = self
            .points
            .iter()
            .map(|&(x, low, value, high)| match low == high {
                true => format!("{} {}", name(x), short(value)),
                false => {
                    format!("{} {} ({} to {})", name(x), short(value), short(low), short(high))
                }
            })
            .collect();
        listed(&self.name, &values)
    }
}

/// A list for running text, which nobody wants to hear the whole of.
pub fn listed(name: &str, values: &[String]) -> String {
    const MOST: usize = 24;
    let more = match values.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let values = &values[..values.len().min(MOST)];
    format!("{name}: {}{more}", values.join(", "))
}

impl Mark {
    /// Whether it stands beside others of its category.
    pub(super) fn stands(&self) -> bool {
        matches!(self, Self::Bars(_) | Self::Intervals(_))
    }
}

impl Frame<'_> {
    /// How far marks of a name stand from the middle of their category, and the space of each.
    fn slot(&self, name: &str) -> (f64, f64) {
        if !self.categorical {
            return (0.0, 8.0);
        }
        let mut names: Vec<&str> = Vec::new();
        for mark in self.panel.marks.iter().filter(|mark| mark.stands()) {
            if let Some(name) = mark.name()
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        let space = (self.at_x(1.0) - self.at_x(0.0)) * SHARE / names.len() as f64;
        let space = if space < WIDEST { space } else { WIDEST };
        let place = names.iter().position(|&known| known == name).unwrap_or(0) as f64;
        ((place - (names.len() as f64 - 1.0) / 2.0) * space, space)
    }

    /// How far points stand to the right of their category: beside the intervals of the panel, which they
    /// would hide.
    pub(super) fn aside(&self) -> f64 {
        let has_intervals = self.panel.marks.iter().any(|mark| matches!(mark, Mark::Intervals(_)));
        if !self.categorical || !has_intervals {
            return 0.0;
        }
        let step = (self.at_x(1.0) - self.at_x(0.0)) / 5.0;
        if step < ASIDE { step } else { ASIDE }
    }

    /// Draws bars from 0, on a logarithmic axis from the bottom; the result are their ends.
    pub(super) fn draw_bars(&self, svg: &mut Svg, series: &super::Series, style: usize) -> Curve {
        let (off, space) = self.slot(&series.name);
        let base = if self.y.shows(0.0) { self.at_y(0.0) } else { self.bottom };
        let base = base.clamp(self.top, self.bottom);
        let mut data = String::new();
        let mut ends = Curve::default();
        for &(x, y) in &series.points {
            if !self.x.shows(x) {
                continue;
            }
            let middle = self.at_x(x) + off;
            if !self.y.shows(y) {
                ends.breaks.push((middle, base - 7.0));
                continue;
            }
            // A bar of a fraction of a unit would not be seen.
            let reach = if space > 6.0 { space / 2.0 - 1.0 } else { space / 2.0 };
            let end = self.at_y(y);
            let sides = if end < base { [end, base] } else { [base, end] };
            rectangle(&mut data, [middle - reach, middle + reach], sides);
            ends.runs.push([(middle, end)].into());
        }
        svg.path(&format!("w h{}", hue(style)), &data, &series.name);
        ends
    }

    /// Draws values as points and their intervals as capped lines.
    pub(super) fn draw_intervals(&self, svg: &mut Svg, all: &Intervals, style: usize) -> Curve {
        let (off, space) = self.slot(&all.name);
        let cap = if space < 14.0 { space / 2.0 - 1.0 } else { 6.0 };
        let mut data = String::new();
        let mut ends = Curve::default();
        let mut dots = Vec::new();
        for &(x, low, value, high) in &all.points {
            if !self.x.shows(x) {
                continue;
            }
            let middle = self.at_x(x) + off;
            if !self.y.shows(value) {
                ends.breaks.push((middle, self.bottom - 7.0));
                continue;
            }
            dots.push((middle, self.at_y(value)));
            let end = |value: f64, beyond: f64| match self.y.shows(value) {
                true => (self.at_y(value), true),
                false => (beyond, false),
            };
            let (from, to) = (end(low, self.bottom), end(high, self.top));
            let spans = low < high;
            if spans {
                polyline(&mut data, &[(middle, from.0), (middle, to.0)]);
            }
            for (y, capped) in [from, to] {
                if capped && spans {
                    polyline(&mut data, &[(middle - cap, y), (middle + cap, y)]);
                }
            }
            let places = [from.0, self.at_y(value), to.0];
            ends.runs.push(places.map(|y| (middle, y)).into());
        }
        svg.path(&format!("l h{}", hue(style)), &data, &all.name);
        draw_dots(svg, &dots, &all.name, style);
        ends
    }
}

/// Whether one of some marks begins at 0.
pub(super) fn from_zero(marks: &[Mark]) -> bool {
    marks.iter().any(|mark| matches!(mark, Mark::Bars(_)))
}
