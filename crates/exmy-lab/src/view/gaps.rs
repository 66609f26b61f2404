//! Cells against a baseline: gaps over steps and at the end, in percent of its loss.

use crate::finding::{Part, Table};
use crate::grid::GridPoint;
use crate::measure::{Metric, Pick, Results};
use crate::outcome::average;
use crate::plot::{self, Axis, Panel};
use crate::series::{draw, intervals, of_seeds, spread};
use crate::spikes::curves;
use crate::statistics::{mean_interval, paired_interval};
use crate::store::Trained;
use crate::table::gap_percent;
use crate::test_result::interval;
use exmy::error::Result;
use std::collections::BTreeMap;

/// More curves than these cannot be distinguished.
const FEW: usize = 6;

/// Pictures of gaps to the grid point `base`, over steps where they are few, and a table.
pub(super) fn gaps(
    results: &Results<'_>,
    title: &str,
    under: &str,
    base: Pick,
) -> Result<Vec<Part>> {
    let base_point = results.point(base, &GridPoint::default());
    let own: Vec<&GridPoint> = results.points.iter().filter(|point| *point != base_point).collect();
    let names: Vec<String> = own.iter().map(|point| point.words(&[])).collect();
    let gaps: Vec<Vec<f64>> =
        own.iter().map(|point| results.values(point, Metric::Gap(base))).collect::<Result<_>>()?;
    let few = of_seeds(gaps.first().map_or(0, Vec::len));
    let mut table = Table::new(
        format!(
            "gap to bfloat16 in percent of the training loss of the last tenth (mean and 95 % \
             interval over {few}), by seed, and of the validation loss"
        ),
        &["recipe", "gap, %", "by seed, %", "validation, %"],
    );
    let mut panel = Panel::new(Axis::linear("gap to bfloat16, %"));
    let bases = results.trained(base_point)?;
    for ((point, name), gaps) in own.iter().zip(&names).zip(&gaps) {
        let runs = results.trained(point)?;
        let pairs = || runs.iter().zip(&bases).map(|((_, own), (_, base))| (own, base));
        let validation = |run: &Trained| run.summary.val_loss.unwrap_or(f64::INFINITY);
        let validation: Vec<f64> =
            pairs().map(|(own, base)| gap_percent(validation(own), validation(base))).collect();
        let found = mean_interval(gaps, 0.95);
        let shown = match found {
            Some(_) => interval(found),
            None => gaps.first().map_or_else(|| "-".into(), |gap| format!("{gap:+.3}")),
        };
        let list = gaps.iter().map(|gap| format!("{gap:+.2}")).collect::<Vec<_>>().join(" ");
        table.row([name.clone(), shown, list, spread(&validation)]);
        let curves: Vec<_> = pairs().map(|(own, base)| curve(own, base)).collect();
        panel = draw(panel, name, &curves);
    }
    let figure = plot::Figure::new(title)
        .subtitle(format!("{under}, {few}; smoothed; bands: from the lowest to the highest seed"))
        .x(Axis::linear("step"))
        .panel(panel.rule(0.0, "bfloat16"));
    let curves = (own.len() <= FEW).then_some(Part::Picture(figure));
    let ends = plot::Figure::new(format!("{title}: at the end"))
        .subtitle(format!("{under}, {few}; mean and 95 % interval over seeds, and each seed"))
        .x(Axis::categories("", names))
        .panel(intervals("gap to bfloat16, %", &gaps).rule(0.0, "bfloat16"));
    Ok(curves.into_iter().chain([Part::Picture(ends), Part::Table(table)]).collect())
}

/// Differences of a metric between grid points, seed by seed.
pub(super) fn pairs(
    results: &Results<'_>,
    caption: &str,
    metric: Metric,
    pairs: &[[&'static str; 2]],
) -> Result<Vec<Part>> {
    let mut table = Table::new(caption, &["first", "second", "first minus second"]);
    for [a, b] in pairs {
        let [of, over] = results.pair([&[*a], &[*b]], &GridPoint::default(), metric)?;
        table.row([(*a).to_owned(), (*b).to_owned(), interval(paired_interval(&of, &over, 0.95))]);
    }
    Ok(vec![Part::Table(table)])
}

/// The gap in percent of smoothed losses, step by step.
fn curve(own: &Trained, base: &Trained) -> Vec<(f64, f64)> {
    let calm = |run: &Trained| {
        let horizon = (run.summary.steps as f64 / 20.0).max(1.0);
        average(&curves(&run.metrics).0, |before| (before as f64 / 5.0).clamp(1.0, horizon))
    };
    let base: BTreeMap<u64, f64> = calm(base).into_iter().map(|(x, y)| (x as u64, y)).collect();
    let gap = |(x, y): (f64, f64)| Some((x, gap_percent(y, *base.get(&(x as u64))?)));
    let points: Vec<(f64, f64)> = calm(own).into_iter().filter_map(gap).collect();
    // The first steps only show how fast a loss falls from where both begin.
    let first = points.len() / 20;
    points[first..].to_vec()
}
