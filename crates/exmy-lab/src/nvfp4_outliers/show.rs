//! From records to pictures and tables: series of probes, means over seeds, and recipes beside bfloat16.

use super::claim::{Claim, interval, verdict};
use super::common::BF16;
use crate::arm::Arm;
use crate::finding::{Findings, Part, Table};
use crate::plot::{self, Axis, Band, Intervals, Panel, Series, smooth};
use crate::statistics::{Interval, mean, mean_interval};
use crate::store::{Runs, Trained};
use crate::table::gap_percent;
use exmy::error::Result;
use exmy_train::train::probe::Line;

/// The mean over those parts of a line whose names are picked.
pub(super) fn parts_mean(line: &Line, pick: impl Fn(&str) -> bool) -> Option<f64> {
    let picked = line.values.parts.iter().filter(|(name, _)| pick(name));
    mean(&picked.filter_map(|(_, value)| value.number()).collect::<Vec<_>>())
}

/// Steps and means over the picked parts of a probe.
pub(super) fn series(
    trained: &Trained,
    probe: &str,
    pick: impl Fn(&str) -> bool,
) -> Result<Vec<(f64, f64)>> {
    let lines = trained.probe(probe)?;
    let point = |line: &Line| Some((line.step as f64, parts_mean(line, &pick)?));
    Ok(lines.iter().filter_map(point).collect())
}

/// The mean of the points in the last part of the steps, from `share` of the last step on.
pub(super) fn late(series: &[(f64, f64)], share: f64) -> f64 {
    let last = series.last().map_or(0.0, |&(step, _)| step);
    let points = series.iter().filter(|(step, _)| *step >= share * last);
    mean(&points.map(|&(_, y)| y).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

/// Adds the mean over seeds as a line, and between which values the seeds lie as a band.
pub(super) fn draw(panel: Panel, name: &str, seeds: &[Vec<(f64, f64)>]) -> Panel {
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

/// The mean of values with its 95 % interval at a place of an axis of categories, as [`Intervals`] draw it; of too few
/// values for one the mean alone.
pub(super) fn at(x: usize, values: &[f64]) -> Option<(f64, f64, f64, f64)> {
    let mean = mean(values)?;
    let alone = Interval { estimate: mean, low: mean, high: mean };
    let Interval { estimate, low, high } = mean_interval(values, 0.95).unwrap_or(alone);
    Some((x as f64, low, estimate, high))
}

/// A number of a picture or table, three significant digits or so.
pub(super) fn number(y: f64) -> String {
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
pub(super) fn spread(values: &[f64]) -> String {
    let mean = mean(values).map_or_else(|| "-".into(), number);
    if values.len() < 2 {
        return mean;
    }
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{mean} ({} to {})", number(low), number(high))
}

/// Makes the run of a recipe and a seed.
type MakeArm<'a> = Box<dyn Fn(&str, u64) -> Arm + 'a>;

/// Recipes beside bfloat16, over paired seeds.
pub(super) struct Recipes<'a> {
    /// What they are called, and their text; without the baseline.
    pub(super) list: Vec<(String, String)>,
    /// The run of a recipe and a seed.
    pub(super) arm: MakeArm<'a>,
    pub(super) seeds: Vec<u64>,
}

impl<'a> Recipes<'a> {
    pub(super) fn new(
        list: &[(&str, &str)],
        seeds: Vec<u64>,
        arm: impl Fn(&str, u64) -> Arm + 'a,
    ) -> Self {
        let own = |(name, recipe): &(&str, &str)| ((*name).to_owned(), (*recipe).to_owned());
        Self { list: list.iter().map(own).collect(), arm: Box::new(arm), seeds }
    }

    /// All runs, seed by seed.
    pub(super) fn arms(&self) -> Vec<Arm> {
        let recipes =
            || std::iter::once(BF16).chain(self.list.iter().map(|(_, recipe)| recipe.as_str()));
        let seeds = self.seeds.iter();
        seeds.flat_map(|&seed| recipes().map(move |recipe| (self.arm)(recipe, seed))).collect()
    }

    fn of_seeds<T>(
        &self,
        runs: &Runs<'_>,
        recipe: &str,
        each: impl Fn(&Trained, &Trained) -> T,
    ) -> Result<Vec<T>> {
        let pair = |&seed: &u64| {
            let base = runs.of(&(self.arm)(BF16, seed))?;
            Ok(each(&runs.of(&(self.arm)(recipe, seed))?, &base))
        };
        self.seeds.iter().map(pair).collect()
    }

    /// The gaps in percent, by seed, of each recipe in the order of the list.
    pub(super) fn gaps(&self, runs: &Runs<'_>) -> Result<Vec<Vec<f64>>> {
        let gap = |own: &Trained, base: &Trained| gap_percent(own.tail_loss(), base.tail_loss());
        self.list.iter().map(|(_, recipe)| self.of_seeds(runs, recipe, gap)).collect()
    }

    /// A table of losses and gaps, and a picture of gaps over steps.
    pub(super) fn parts(&self, runs: &Runs<'_>, title: &str, few: &str) -> Result<Vec<Part>> {
        let mut table = Table::new(
            format!(
                "gap to bfloat16 in percent of the training loss of the last tenth (mean and 95 % \
                 interval over {}), by seed, and of the validation loss",
                of_seeds(self.seeds.len())
            ),
            &["recipe", "gap, %", "by seed, %", "validation, %"],
        );
        let gaps = self.gaps(runs)?;
        let mut panel = Panel::new(Axis::linear("gap to bfloat16, %"));
        let names: Vec<&str> = self.list.iter().map(|(name, _)| name.as_str()).collect();
        let ends = plot::Figure::new(format!("{title}: at the end"))
            .subtitle(format!("{few}; mean and 95 % interval over seeds, and each seed"))
            .x(Axis::categories("", names))
            .panel(intervals("gap to bfloat16, %", &gaps).rule(0.0, "bfloat16"));
        for ((name, recipe), gaps) in self.list.iter().zip(gaps) {
            let validation = self.of_seeds(runs, recipe, |own, base| {
                let of = |run: &Trained| run.summary.val_loss.unwrap_or(f64::INFINITY);
                gap_percent(of(own), of(base))
            })?;
            let found = mean_interval(&gaps, 0.95);
            let shown = match found {
                Some(_) => interval(found),
                None => gaps.first().map_or_else(|| "-".into(), |gap| format!("{gap:+.3}")),
            };
            let list = gaps.iter().map(|gap| format!("{gap:+.2}")).collect::<Vec<_>>().join(" ");
            table.row([name.clone(), shown, list, spread(&validation)]);
            panel = draw(panel, name, &self.of_seeds(runs, recipe, curve)?);
        }
        // More curves than these cannot be told apart.
        let few_enough = self.list.len() <= 6;
        let figure = plot::Figure::new(title)
            .subtitle(format!("{few}; smoothed; bands: from the lowest to the highest seed"))
            .x(Axis::linear("step"))
            .panel(panel.rule(0.0, "bfloat16"));
        let curves = few_enough.then_some(Part::Picture(figure));
        Ok(curves.into_iter().chain([Part::Picture(ends), Part::Table(table)]).collect())
    }
}

/// What a figure of one picture and one table says of its claims.
pub(super) fn concluded(
    claims: &[Claim],
    figure: plot::Figure,
    panels: impl IntoIterator<Item = Panel>,
    table: Table,
) -> Findings {
    let figure = panels.into_iter().fold(figure, plot::Figure::panel);
    Findings { verdict: verdict(claims), parts: vec![Part::Picture(figure), Part::Table(table)] }
}

/// A panel over categories: means with their intervals, and the values of the seeds.
pub(super) fn intervals(label: &str, values: &[Vec<f64>]) -> Panel {
    let found = values.iter().enumerate().filter_map(|(x, values)| at(x, values));
    let places = (0..).map(f64::from).zip(values);
    let each = places.flat_map(|(x, values)| values.iter().map(move |&y| (x, y)));
    Panel::new(Axis::linear(label))
        .intervals(Intervals::new("mean", found))
        .points(Series::new("seeds", each))
}

/// `1 seed`, `5 seeds`.
pub(super) fn of_seeds(count: usize) -> String {
    format!("{count} seed{}", if count == 1 { "" } else { "s" })
}

/// The gap in percent of smoothed losses, step by step.
fn curve(own: &Trained, base: &Trained) -> Vec<(f64, f64)> {
    let calm = |run: &Trained| {
        let losses = run.losses();
        let values: Vec<f64> = losses.iter().map(|&(_, y)| y).collect();
        let horizon = (values.len() as f64 / 20.0).max(1.0);
        smooth(&values, |i| (i as f64 / 5.0).clamp(1.0, horizon))
    };
    let (a, b) = (calm(own), calm(base));
    let gaps = a.iter().zip(&b).map(|(&a, &b)| gap_percent(a, b));
    let points: Vec<(f64, f64)> = (1..).map(f64::from).zip(gaps).collect();
    // The first steps only tell how fast a loss falls from where both begin.
    let first = points.len() / 20;
    points[first..].to_vec()
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
