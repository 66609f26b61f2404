//! A grid of cells coloured by value, and the bar that says which colour is which value.
//!
//! Colours are sixteen steps of one ramp whose lightness runs one way, so that their order is seen by
//! colour-blind readers and in print. On a dark background it runs the other way, and the
//! lowest value is again the one nearest to the background. Neighbours of one colour in a row are one
//! rectangle. A grid of more than `MOST` cells in a direction is drawn by the means of groups, so
//! that the size of a figure is bounded.

use super::{
    Mark,
    axis::{Axis, Scale, with_factor},
    frame::Frame,
    labels::{shorten, width},
    number::{floor, short},
    path::{polyline, rectangle},
    style::{FONT, LINE, STEPS},
    svg::{Svg, escape, tenths},
};
use std::{collections::BTreeSet, format, string::String, vec, vec::Vec};

/// The most cells drawn in a direction.
const MOST: usize = 128;
/// Height of the bar of colours.
const BAR: f64 = 14.0;
/// What a scale of colours takes above a panel: its label, the bar, the values.
pub(super) const HEAD: f64 = LINE + 8.0 + BAR + LINE + 10.0;

/// A rectangle divided into equal cells, each with a value.
///
/// On a logarithmic axis cells are equal in the logarithm. A cell whose value has no place on the
/// scale of colours (NaN, infinity, not positive on a logarithmic one) stays empty and is marked.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    pub(super) value: Axis,
    pub(super) x: [f64; 2],
    pub(super) y: [f64; 2],
    pub(super) columns: usize,
    pub(super) cells: Vec<f64>,
}

impl Heat {
    /// Cells over `x[0]..x[1]` and `y[0]..y[1]`, row by row from the lowest `y`, `columns` in a row;
    /// `value` labels and scales the colours. Values given at points, as of a function at -1, 0 and 1,
    /// stand in the middle of their cells: over -1.5 to 1.5.
    ///
    /// # Panics
    /// If the cells are not whole rows, or a rectangle's sides are not ascending and finite.
    pub fn new(
        value: Axis,
        x: [f64; 2],
        y: [f64; 2],
        columns: usize,
        cells: impl IntoIterator<Item = f64>,
    ) -> Self {
        let cells: Vec<f64> = cells.into_iter().collect();
        let rows = columns > 0 && cells.len().is_multiple_of(columns);
        assert!(rows, "{} cells in rows of {columns}", cells.len());
        let ascending = |side: [f64; 2]| side[0] < side[1] && (side[1] - side[0]).is_finite();
        assert!(ascending(x) && ascending(y), "a grid over {x:?} and {y:?}");
        Self { value, x, y, columns, cells }
    }

    /// Cells of two [category axes](Axis::categories), row by row from the first category of `y`.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    pub fn of_categories(
        value: Axis,
        columns: usize,
        cells: impl IntoIterator<Item = f64>,
    ) -> Self {
        let cells: Vec<f64> = cells.into_iter().collect();
        let side = |n: usize| [-0.5, if n > 0 { n as f64 } else { 1.0 } - 0.5];
        let rows = cells.len().checked_div(columns).unwrap_or(0);
        Self::new(value, side(columns), side(rows), columns, cells)
    }

    fn rows(&self) -> usize {
        self.cells.len() / self.columns
    }

    /// The middle of a cell.
    fn middle(&self, index: usize) -> (f64, f64) {
        let at = |side: [f64; 2], i: usize, n: usize| {
            side[0] + (side[1] - side[0]) * (i as f64 + 0.5) / n as f64
        };
        let (row, column) = (index / self.columns, index % self.columns);
        (at(self.x, column, self.columns), at(self.y, row, self.rows()))
    }

    /// The middle of each row, and its values by the middle of their columns.
    pub(super) fn rows_of_values(&self) -> Vec<(f64, Vec<(f64, f64)>)> {
        let row = |r: usize| {
            let cells = r * self.columns..(r + 1) * self.columns;
            let values = cells.map(|i| (self.middle(i).0, self.cells[i])).collect();
            (self.middle(r * self.columns).1, values)
        };
        (0..self.rows()).map(row).collect()
    }

    /// At most `MOST` cells a side: columns, rows and the means of groups, NaN where a group has a
    /// cell without a place.
    pub fn grouped(&self, scale: &Scale) -> (Vec<usize>, Vec<usize>, Vec<f64>) {
        // Where groups begin, and the end of the last.
        let edges = |n: usize| -> Vec<usize> {
            let size = n.div_ceil(MOST).max(1);
            (0..n).step_by(size).chain([n]).collect()
        };
        let (columns, rows) = (edges(self.columns), edges(self.rows()));
        let mut means = Vec::new();
        for row in rows.windows(2) {
            for column in columns.windows(2) {
                let (mut sum, mut count) = (0.0, 0.0);
                for r in row[0]..row[1] {
                    for value in &self.cells[r * self.columns..][column[0]..column[1]] {
                        sum += if scale.shows(*value) { *value } else { f64::NAN };
                        count += 1.0;
                    }
                }
                means.push(sum / count);
            }
        }
        (columns, rows, means)
    }

    /// The grid in words: where it is lowest and highest, and what has no value.
    pub(super) fn describe(&self, x: &Axis, y: &Axis, scale: &Scale) -> String {
        let shown = || self.cells.iter().enumerate().filter(|(_, value)| scale.shows(**value));
        let missing = self.cells.len() - shown().count();
        let place = |index: usize| {
            let (at_x, at_y) = self.middle(index);
            format!("{}, {}", x.name(at_x), y.name(at_y))
        };
        let low = shown().min_by(|a, b| a.1.total_cmp(b.1));
        let high = shown().max_by(|a, b| a.1.total_cmp(b.1));
        let mut text = match (low, high) {
            (Some((low, low_value)), Some((high, high_value))) => format!(
                "{} from {} at {} to {} at {}",
                self.value.label(),
                short(*low_value),
                place(low),
                short(*high_value),
                place(high)
            ),
            _ => format!("{} has no values", self.value.label()),
        };
        if missing > 0 {
            text += &format!(", {missing} cells without a value");
        }
        // Few enough to be listened to.
        if self.cells.len() <= 64 {
            for (index, value) in shown() {
                text += &format!("; {}: {}", place(index), short(*value));
            }
        }
        text
    }
}

/// Which of the colours a value has.
pub fn step(scale: &Scale, value: f64) -> usize {
    let unit = floor(scale.unit(value) * STEPS as f64);
    // Beyond a fixed range the last colours go on.
    (unit.clamp(0.0, (STEPS - 1) as f64)) as usize
}

impl Frame<'_> {
    /// The grids of the panel.
    pub(super) fn heats(&self) -> impl Iterator<Item = &Heat> {
        self.panel.marks.iter().filter_map(|mark| match mark {
            Mark::Heat(heat) => Some(heat),
            _ => None,
        })
    }

    /// The scale of colours: that of the first grid, over the values of all.
    pub(super) fn colours(&self) -> Option<Scale> {
        let values = self.heats().flat_map(|heat| heat.cells.iter().copied());
        self.heats().next().map(|first| first.value.fit(values, [0.0; 2]))
    }

    /// Draws label, bar and values above the frame.
    pub(super) fn draw_colours(&self, svg: &mut Svg) {
        let (Some(scale), Some(heat)) = (self.colours(), self.heats().next()) else { return };
        let space = self.right - self.left;
        let mut ticks = scale.ticks(2);
        for target in (2..=8).rev() {
            let found = scale.ticks(target);
            let labels = found.ticks.iter().filter_map(|tick| tick.label.as_ref());
            if labels.map(|label| width(label, FONT) + 16.0).sum::<f64>() <= space {
                ticks = found;
                break;
            }
        }
        let label = with_factor(heat.value.label(), ticks.factor);
        let top = self.top - HEAD;
        svg.text("q", self.left, top + 18.0, &shorten(&label, FONT, space));
        let top = top + LINE + 4.0;
        for i in 0..STEPS {
            let [from, to] = [i, i + 1].map(|i| self.left + space * i as f64 / STEPS as f64);
            let mut data = String::new();
            rectangle(&mut data, [from, to], [top, top + BAR]);
            svg.path(&format!("c c{i}"), &data, "");
        }
        for tick in &ticks.ticks {
            let Some(label) = &tick.label else { continue };
            let x = self.left + space * scale.unit(tick.value);
            let mut data = String::new();
            polyline(&mut data, &[(x, top + BAR), (x, top + BAR + 4.0)]);
            svg.path("a", &data, "");
            // Labels at the ends stay above the panel.
            let half = width(label, FONT) / 2.0;
            let middle = x.clamp(self.left + half, self.right - half);
            let (x, y) = (tenths(middle), tenths(top + BAR + 6.0));
            svg.raw(&format!(
                "<text class=\"q m\" x=\"{x}\" y=\"{y}\" dy=\".9em\">{}</text>",
                escape(label)
            ));
        }
    }

    /// Draws the cells of a grid; returns whether one had no place.
    pub(super) fn draw_heat(&self, svg: &mut Svg, heat: &Heat, scale: &Scale) -> bool {
        let shows =
            heat.x.iter().all(|&x| self.x.shows(x)) && heat.y.iter().all(|&y| self.y.shows(y));
        if !shows {
            return !heat.cells.is_empty();
        }
        let [left, right] = heat.x.map(|x| self.at_x(x));
        let [bottom, top] = heat.y.map(|y| self.at_y(y));
        let (columns, rows, cells) = heat.grouped(scale);
        let at_x = |i: usize| left + (right - left) * i as f64 / heat.columns as f64;
        let at_y = |i: usize| bottom + (top - bottom) * i as f64 / heat.rows() as f64;
        let mut paths = vec![String::new(); STEPS];
        let mut crosses = String::new();
        let mut crossed = BTreeSet::new();
        let width = columns.len() - 1;
        for (row, y) in cells.chunks(width.max(1)).zip(rows.windows(2)) {
            let [low, high] = [at_y(y[0]), at_y(y[1])];
            let colour = |value: &f64| scale.shows(*value).then(|| step(scale, *value));
            let mut from = 0;
            for same in row.chunk_by(|a, b| colour(a) == colour(b)) {
                let to = from + same.len();
                match colour(&same[0]) {
                    Some(step) => {
                        let sides = [at_x(columns[from]), at_x(columns[to])];
                        rectangle(&mut paths[step], sides, [high, low]);
                    }
                    None => (from..to).for_each(|i| {
                        let x = (at_x(columns[i]) + at_x(columns[i + 1])) / 2.0;
                        let y = (low + high) / 2.0;
                        // One for a square of twelve units: more would be a grey area.
                        if crossed.insert((floor(x / 12.0) as i64, floor(y / 12.0) as i64)) {
                            polyline(&mut crosses, &[(x - 4.0, y - 4.0), (x + 4.0, y + 4.0)]);
                            polyline(&mut crosses, &[(x - 4.0, y + 4.0), (x + 4.0, y - 4.0)]);
                        }
                    }),
                }
                from = to;
            }
        }
        for (i, data) in paths.iter().enumerate() {
            svg.path(&format!("c c{i}"), data, "");
        }
        svg.path("x h0", &crosses, &format!("{}: no value", heat.value.label()));
        !crosses.is_empty()
    }
}
