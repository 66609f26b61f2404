//! From records to pictures and tables: series of probes, and means over seeds.

use crate::plot::{Axis, Band, Intervals, Panel, Series};
use crate::statistics::{Interval, mean, mean_interval};
use crate::table::number;
use exmy_train::train::probe::{Key, Line};

/// The mean over those parts of a line that are picked.
pub(crate) fn parts_mean(line: &Line, pick: impl Fn(&Key) -> bool) -> Option<f64> {
    let picked = line.values.parts.iter().filter(|(key, _)| pick(key));
    mean(&picked.filter_map(|(_, value)| value.number()).collect::<Vec<_>>())
}

/// The mean of the points in the last part of the steps, from `share` of the last step on.
pub fn late(series: &[(f64, f64)], share: f64) -> f64 {
    let last = series.last().map_or(0.0, |&(step, _)| step);
    let points = series.iter().filter(|(step, _)| *step >= share * last);
    mean(&points.map(|&(_, y)| y).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

/// Adds curves of several seeds: the middle of their values step by step as a line and, of several, the
/// region from the lowest to the highest, as far as the longest goes, at the steps that all have that go so
/// far. The line ends with the note of its last value.
pub fn with_seeds(
    panel: Panel,
    name: &str,
    curves: &[Vec<(f64, f64)>],
    middle: fn(&[f64]) -> Option<f64>,
    note: fn(f64) -> String,
) -> Panel {
    let last = |curve: &Vec<(f64, f64)>| curve.last().map_or(f64::NEG_INFINITY, |point| point.0);
    let longest = curves.iter().max_by(|a, b| last(a).total_cmp(&last(b)));
    let all = longest.into_iter().flatten().filter_map(|&(x, _)| {
        let far = curves.iter().filter(|curve| last(curve) >= x);
        let at = |curve: &Vec<(f64, f64)>| {
            let i = curve.partition_point(|point| point.0 < x);
            curve.get(i).filter(|point| point.0 == x).map(|point| point.1)
        };
        Some((x, far.map(at).collect::<Option<Vec<f64>>>()?))
    });
    let all: Vec<(f64, Vec<f64>)> = all.collect();
    let band = all.iter().map(|(x, values)| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        (*x, low, values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    });
    let panel = if curves.len() > 1 { panel.band(Band::new(name, band)) } else { panel };
    let line = all.iter().map(|(x, values)| (*x, middle(values).unwrap_or(f64::NAN)));
    let line: Vec<(f64, f64)> = line.collect();
    let note = line.last().map_or_else(String::new, |&(_, y)| note(y));
    panel.line(Series::new(name, line).note(note))
}

/// A name and the points of its line.
pub type NamedLine = (String, Vec<(f64, f64)>);

/// Of lines that are nowhere farther apart than a line is wide the first, and which they are: "a = c; b = e".
pub fn distinct(all: Vec<NamedLine>) -> (Vec<NamedLine>, Option<String>) {
    let ys = all.iter().flat_map(|(_, points)| points).map(|point| point.1);
    let (low, high) = ys
        .filter(|y| y.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(y), high.max(y)));
    let width = (high - low) / 200.0;
    let near = |a: f64, b: f64| (a - b).abs() <= width || !a.is_finite() && !b.is_finite();
    let coincide = |a: &[(f64, f64)], b: &[(f64, f64)]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && near(a.1, b.1))
    };
    let mut groups: Vec<Vec<NamedLine>> = Vec::new();
    for one in all {
        match groups.iter_mut().find(|group| coincide(&group[0].1, &one.1)) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    let words = groups
        .iter()
        .filter(|group| group.len() > 1)
        .map(|group| group.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" = "));
    let words: Vec<String> = words.collect();
    let said = (!words.is_empty()).then(|| words.join("; "));
    (groups.into_iter().filter_map(|group| group.into_iter().next()).collect(), said)
}

/// Adds the mean over seeds as a line, and between which values the seeds lie as a band, as far as all go.
pub(crate) fn draw(panel: Panel, name: &str, seeds: &[Vec<(f64, f64)>]) -> Panel {
    let count = seeds.iter().map(Vec::len).min().unwrap_or(0);
    let seeds: Vec<_> = seeds.iter().map(|one| one[..count].to_vec()).collect();
    with_seeds(panel, name, &seeds, mean, number)
}

/// The mean of values with its 95 % interval at a place of an axis of categories, as [`Intervals`] draw it;
/// of too few values for one the mean alone.
pub(crate) fn at(x: usize, values: &[f64]) -> Option<(f64, f64, f64, f64)> {
    let mean = mean(values)?;
    let alone = Interval { estimate: mean, low: mean, high: mean };
    let Interval { estimate, low, high } = mean_interval(values, 0.95).unwrap_or(alone);
    Some((x as f64, low, estimate, high))
}

/// The mean and where the seeds lie: `0.52 (0.49 to 0.55)`.
pub(crate) fn spread(values: &[f64]) -> String {
    let mean = mean(values).map_or_else(|| "-".into(), number);
    if values.len() < 2 {
        return mean;
    }
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{mean} ({} to {})", number(low), number(high))
}

/// A panel over categories: means with their intervals, and the values of the seeds.
pub(crate) fn intervals(label: &str, values: &[Vec<f64>]) -> Panel {
    let found = values.iter().enumerate().filter_map(|(x, values)| at(x, values));
    let places = (0..).map(f64::from).zip(values);
    let each = places.flat_map(|(x, values)| values.iter().map(move |&y| (x, y)));
    Panel::new(Axis::linear(label))
        .intervals(Intervals::new("mean", found))
        .points(Series::new("seeds", each))
}

/// `1 seed`, `5 seeds`.
pub(crate) fn of_seeds(count: usize) -> String {
    format!("{count} seed{}", if count == 1 { "" } else { "s" })
}
