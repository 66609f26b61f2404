//! What the strategies that stay stable lose against full precision, by size and budget.

use crate::claim::{by_seed, words};
use crate::finding::{Part, Table};
use crate::grid::GridPoint;
use crate::measure::{Metric, Results};
use crate::outcome::size;
use crate::plot::{self, Axis, Panel, Series};
use crate::statistics::{mean, paired_interval, sd};
use exmy::error::Result;

/// A row for each size and budget, the first numbers being what the others are compared with.
pub(crate) fn draw(results: &Results<'_>) -> Result<Vec<Part>> {
    let numbers = results.levels(results.grid.axis("numbers"));
    let mut header = vec!["parameters", "tokens per parameter", "compute, TFLOP"];
    header.extend([numbers[0].name, "+-"]);
    header.extend(numbers[1..].iter().map(|level| level.name));
    let mut table = Table::new(
        "validation loss of bf16 (nats per byte) and gaps to it, means over seeds in thousandths of a nat; \
         +-: standard deviation of bf16 over seeds, likewise",
        &header,
    );
    let middle = |values: &[f64]| mean(values).unwrap_or(f64::NAN);
    let mut squares = Vec::new();
    let mut gaps_by_flops: Vec<Vec<(f64, f64)>> = vec![Vec::new(); numbers.len()];
    let mut all: Vec<Vec<Vec<f64>>> = vec![Vec::new(); numbers.len()];
    // The parameters of each size and budget.
    let mut sizes = Vec::new();
    for points in results.points.chunks(numbers.len()) {
        let values = |point: &GridPoint| results.values(point, Metric::Validation);
        let losses: Vec<Vec<f64>> = points.iter().map(values).collect::<Result<_>>()?;
        let runs = results.grid.runs_of(results.setting, &points[0]);
        let Some((n, d)) = runs.first().map(size) else { continue };
        let (base, scatter) = (middle(&losses[0]), sd(&losses[0]));
        sizes.push(n);
        squares.extend(scatter.map(|sd| sd * sd));
        let mut row =
            vec![format!("{n}"), format!("{:.2}", d / n), format!("{:.3}", 6.0 * n * d / 1e12)];
        row.push(format!("{base:.4}"));
        row.push(scatter.map_or_else(|| "-".into(), |sd| format!("{:.1}", 1e3 * sd)));
        for (i, losses) in losses.into_iter().enumerate() {
            let gap = 1e3 * (middle(&losses) - base);
            row.extend((i > 0).then(|| format!("{gap:+.1}")));
            gaps_by_flops[i].push((6.0 * n * d / 1e12, gap));
            all[i].push(losses);
        }
        table.row(row);
    }
    let scatter = 1e3 * middle(&squares).sqrt();
    let panel = Panel::new(Axis::linear("gap to bf16, thousandths of a nat"))
        .rule(0.0, "")
        .rule(scatter, "+ sd over seeds")
        .rule(-scatter, "- sd over seeds");
    let each = numbers.iter().zip(gaps_by_flops).skip(1);
    let panel =
        each.fold(panel, |panel, (level, points)| panel.points(Series::new(level.name, points)));
    let picture = plot::Figure::new("Validation losses against those of bf16")
        .subtitle("one point for each size and budget, mean of the seeds; between the lines: the scatter of \
                   seeds")
        .x(Axis::log("compute 6 N D, TFLOP"))
        .panel(panel);
    // The gap to the first numbers, each seed counted once with its mean over the budgets of some sizes.
    let gap = |i: usize, own: &dyn Fn(f64) -> bool| {
        let of = |i: usize| {
            let points = all[i].iter().zip(&sizes).filter(|(_, n)| own(**n));
            by_seed(&points.map(|(losses, _)| losses.clone()).collect::<Vec<_>>())
        };
        words(paired_interval(&of(i), &of(0), 0.95))
    };
    let mut heads = vec!["parameters"];
    heads.extend(numbers[1..].iter().map(|level| level.name));
    let caption = "how gaps change with the size of the model: means over budgets, nats, with 95 % intervals \
                   over seeds";
    let mut trend = Table::new(caption, &heads);
    let mut each = sizes.clone();
    each.dedup();
    for n in each {
        let gaps = (1..numbers.len()).map(|i| gap(i, &|other| other == n));
        trend.row(std::iter::once(format!("{n}")).chain(gaps));
    }
    let gaps = (1..numbers.len()).map(|i| format!("{} {}", numbers[i].name, gap(i, &|_| true)));
    let gaps: Vec<String> = gaps.collect();
    let text = format!(
        "Mean gaps to {} and their intervals over seeds, nats: {}. Of {} nothing is claimed.",
        numbers[0].name,
        gaps.join("; "),
        numbers[1].name
    );
    Ok(vec![Part::Picture(picture), Part::Table(trend), Part::Table(table), Part::Text(text)])
}
