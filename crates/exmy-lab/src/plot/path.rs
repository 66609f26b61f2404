//! From points to the `d` of an SVG path: breaks where a point has no place, and no more points
//! than a screen can show.
//!
//! Within one column of `COLUMN` units, a run of points keeps its first, lowest, highest and last. What a
//! renderer would paint is the same to within the width of the line, and no peak is lost. A series of any
//! length with ascending x thus costs at most four points a column.

use super::{
    number::floor,
    style::hue,
    svg::{Svg, print_tenths, tenths, to_tenths},
};
use std::{collections::BTreeSet, format, string::String, vec::Vec};

/// Width of the column within which points are merged, in units of the view box.
const COLUMN: f64 = 1.0;

/// A point on the page, in units of the view box.
pub type Place = (f64, f64);

/// A curve cut where it has no place.
#[derive(Debug, Default, PartialEq)]
pub struct Curve {
    /// Runs of consecutive places.
    pub runs: Vec<Vec<Place>>,
    /// Where a break starts, or ends if nothing came before it; at most one in a unit square.
    pub breaks: Vec<Place>,
}

impl Curve {
    /// Sorts projected points into runs; `None` is a point that has no place.
    pub fn new(points: impl IntoIterator<Item = Option<Place>>) -> Self {
        let mut curve = Self::default();
        let mut seen = BTreeSet::new();
        let mut previous = None;
        let mut broken = false;
        for point in points {
            match (point, previous) {
                (Some(at), _) => {
                    if previous.is_none() || broken {
                        curve.runs.push(Vec::new());
                    }
                    if previous.is_none() && broken && seen.insert(cell(at)) {
                        curve.breaks.push(at);
                    }
                    curve.runs.last_mut().expect("a run was just opened").push(at);
                    (previous, broken) = (Some(at), false);
                }
                (None, Some(at)) if !broken => {
                    if seen.insert(cell(at)) {
                        curve.breaks.push(at);
                    }
                    broken = true;
                }
                (None, _) => broken = true,
            }
        }
        curve
    }

    /// The rightmost place, the last of them if there are several: where a label on the right side belongs,
    /// whichever way the points are joined.
    pub fn end(&self) -> Option<Place> {
        self.runs.iter().flatten().copied().max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// The path data of the runs of at least two points, and the points that stand alone.
    pub fn draw(&self) -> (String, Vec<Place>) {
        let mut data = String::new();
        let mut alone = Vec::new();
        for run in &self.runs {
            match run[..] {
                [single] => alone.push(single),
                _ => polyline(&mut data, &thin(run)),
            }
        }
        (data, distinct(&alone))
    }
}

/// Keeps the first, lowest, highest and last of each run of points in one column.
pub fn thin(points: &[Place]) -> Vec<Place> {
    let mut kept = Vec::new();
    for column in points.chunk_by(|a, b| floor(a.0 / COLUMN) == floor(b.0 / COLUMN)) {
        if column.len() <= 4 {
            kept.extend_from_slice(column);
            continue;
        }
        let last = column.len() - 1;
        let (mut low, mut high) = (0, 0);
        for (i, point) in column.iter().enumerate() {
            low = if point.1 < column[low].1 { i } else { low };
            high = if point.1 > column[high].1 { i } else { high };
        }
        let mut wanted = [0, low, high, last];
        wanted.sort_unstable();
        for (i, &index) in wanted.iter().enumerate() {
            if i == 0 || wanted[i - 1] != index {
                kept.push(column[index]);
            }
        }
    }
    kept
}

/// One place for each square of half a unit: what lies on top of it would not be seen.
pub(super) fn distinct(points: &[Place]) -> Vec<Place> {
    let mut seen = BTreeSet::new();
    let half = |(x, y): Place| cell((x * 2.0, y * 2.0));
    points.iter().copied().filter(|&point| seen.insert(half(point))).collect()
}

fn cell((x, y): Place) -> (i64, i64) {
    (floor(x) as i64, floor(y) as i64)
}

/// Appends an open line, `M x y l dx dy ...`, leaving out points that print like the one before.
///
/// Steps are differences of rounded places, so that errors do not add up; they take a third less
/// text than places.
pub fn polyline(data: &mut String, points: &[Place]) {
    let mut before = (0, 0);
    for (i, &(x, y)) in points.iter().enumerate() {
        let at = (to_tenths(x), to_tenths(y));
        if i == 0 {
            data.push('M');
            print_tenths(data, at.0, false);
            print_tenths(data, at.1, true);
        } else if at != before || i == 1 {
            if i == 1 {
                data.push('l');
            }
            print_tenths(data, at.0 - before.0, i > 1);
            print_tenths(data, at.1 - before.1, true);
        }
        before = at;
    }
}

/// Appends the closed outlines of a band given as runs of `(x, upper y, lower y)`.
pub fn outline(data: &mut String, run: &[(f64, f64, f64)]) {
    let edge =
        |pick: fn(&(f64, f64, f64)) -> Place| -> Vec<Place> { run.iter().map(pick).collect() };
    let mut ring = thin(&edge(|&(x, a, _)| (x, a)));
    ring.extend(thin(&edge(|&(x, _, b)| (x, b))).into_iter().rev());
    polyline(data, &ring);
    data.push('Z');
}

/// Appends a closed rectangle.
pub(super) fn rectangle(data: &mut String, x: [f64; 2], y: [f64; 2]) {
    polyline(data, &[(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1])]);
    data.push('Z');
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
    svg.path(&format!("p h{}", hue(style)), &data, tip);
}
