//! From records to pictures and tables: series of probes, and means over seeds.

use crate::finding::{Findings, Part, Table};
use crate::paired::{Side, verdict};
use crate::plot::{self, Axis, Band, Intervals, Panel, Series};
use crate::statistics::{Interval, mean, mean_interval};
use crate::store::Trained;
use exmy::error::Result;
use exmy_train::train::probe::{Key, Line};

/// The mean over those parts of a line that are picked.
pub(crate) fn parts_mean(line: &Line, pick: impl Fn(&Key) -> bool) -> Option<f64> {
    let picked = line.values.parts.iter().filter(|(key, _)| pick(key));
    mean(&picked.filter_map(|(_, value)| value.number()).collect::<Vec<_>>())
}

/// Steps and means over the picked parts of a probe.
pub(crate) fn series(
    trained: &Trained,
    probe: &str,
    pick: impl Fn(&Key) -> bool,
) -> Result<Vec<(f64, f64)>> {
    let lines = trained.probe(probe)?;
    let point = |line: &Line| Some((line.step as f64, parts_mean(line, &pick)?));
    Ok(lines.iter().filter_map(point).collect())
}

/// The mean of the points in the last part of the steps, from `share` of the last step on.
pub(crate) fn late(series: &[(f64, f64)], share: f64) -> f64 {
    let last = series.last().map_or(0.0, |&(step, _)| step);
    let points = series.iter().filter(|(step, _)| *step >= share * last);
    mean(&points.map(|&(_, y)| y).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

/// Adds the mean over seeds as a line, and between which values the seeds lie as a band.
pub(crate) fn draw(panel: Panel, name: &str, seeds: &[Vec<(f64, f64)>]) -> Panel {
    let count = seeds.iter().map(Vec::len).min().unwrap_or(0);
    let at = |i: usize| seeds.iter().map(move |one| one[i].1);
    let x = |i: usize| seeds[0][i].0;
    let line = (0..count).map(|i| (x(i), at(i).sum::<f64>() / seeds.len() as f64));
    let line: Vec<(f64, f64)> = line.collect();
    let note = line.last().map_or_else(String::new, |&(_, y)| number(y));
    let panel = match seeds.len() {
        0 | 1 => panel,
        _ => panel.band(Band::new(
            name,
            (0..count).map(|i| {
                (x(i), at(i).fold(f64::INFINITY, f64::min), at(i).fold(f64::NEG_INFINITY, f64::max))
            }),
        )),
    };
    panel.line(Series::new(name, line).note(note))
}

/// The mean of values with its 95 % interval at a place of an axis of categories, as [`Intervals`] draw it;
/// of too few values for one the mean alone.
pub(crate) fn at(x: usize, values: &[f64]) -> Option<(f64, f64, f64, f64)> {
    let mean = mean(values)?;
    let alone = Interval { estimate: mean, low: mean, high: mean };
    let Interval { estimate, low, high } = mean_interval(values, 0.95).unwrap_or(alone);
    Some((x as f64, low, estimate, high))
}

/// A number of a picture or table, three significant digits or so.
pub(crate) fn number(y: f64) -> String {
    match y.abs() {
        _ if !y.is_finite() => "-".into(),
        a if a >= 100.0 => format!("{y:.0}"),
        a if a >= 10.0 => format!("{y:.1}"),
        a if a >= 0.1 || a == 0.0 => format!("{y:.2}"),
        a if a >= 0.001 => format!("{y:.4}"),
        _ => format!("{y:.1e}"),
    }
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

/// What a figure of one picture and one table says of its claims.
pub(crate) fn concluded(
    claims: &[Side],
    figure: plot::Figure,
    panels: impl IntoIterator<Item = Panel>,
    table: Table,
) -> Findings {
    let figure = panels.into_iter().fold(figure, plot::Figure::panel);
    Findings { verdict: verdict(claims), parts: vec![Part::Picture(figure), Part::Table(table)] }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_is_by_steps() {
        let series = [(100.0, 1.0), (200.0, 5.0), (300.0, 7.0)];
        assert_eq!(late(&series, 2.0 / 3.0), 6.0);
        assert_eq!(late(&series, 0.0), 13.0 / 3.0);
        assert!(late(&[], 0.5).is_nan());
    }
}
