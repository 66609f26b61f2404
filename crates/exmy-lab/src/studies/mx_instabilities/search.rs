//! Which proxies become unstable by themselves, and which in MX: the grid that was searched.

use super::grids::BEYOND;
use super::new_seeds::{self, SURE};
use crate::criterion::{By, Criterion, Is, Opposite, ask};
use crate::finding::{Findings, Part, Table, Verdict};
use crate::grid::{GridPoint, Level};
use crate::measure::Results;
use crate::outcome::{Outcome, number};
use crate::plot::{self, Axis, Heat, Panel, Series};
use crate::series;
use crate::statistics::{coins, mean, wilson};
use exmy::error::Result;

pub(crate) const ASKS: Criterion = Criterion::new(
    &[ask(
        "the number of runs that diverge in MX alone",
        Is::Above("the number of those in f32 alone"),
        By::Signs(SURE),
    )],
    Opposite::Each,
)
.noted(|| {
    format!(
        "Counted are new seeds at a rate between two of the grid's where most runs explode, by all of \
         several thresholds. Where there are no such seeds, f32 must diverge in fewer points of the grid \
         than chance would have it if formats did not matter (p at most {SURE}). E2M1 at ten times the \
         largest rate is the control."
    )
});

/// The number of a level of a grid point.
fn x(point: &GridPoint, axis: &str) -> f64 {
    point.level(axis).map_or(f64::NAN, |level| level.x)
}

/// Final losses in E4M3 over those in f32, by rate and depth, of all widths and gains.
fn heat(results: &Results<'_>, tails: &[Vec<(GridPoint, f64)>]) -> plot::Figure {
    let values = |axis: &str| -> Vec<f64> {
        results.levels(results.grid.axis(axis)).iter().map(|level| level.x).collect()
    };
    let (rates, depths) = (values("rate"), values("layers"));
    let mut heat = Vec::new();
    for depth in &depths {
        for rate in &rates {
            let here =
                |point: &GridPoint| x(point, "rate") == *rate && x(point, "layers") == *depth;
            let pairs = tails[0].iter().zip(&tails[2]).filter(|(plain, _)| here(&plain.0));
            let logs: Vec<f64> = pairs.map(|(plain, mx)| libm::log(mx.1 / plain.1)).collect();
            heat.push(mean(&logs).map_or(f64::NAN, libm::exp));
        }
    }
    let names = |values: &[f64]| values.iter().map(|value| format!("{value}")).collect::<Vec<_>>();
    let value = Axis::log("loss in MX E4M3 over loss in f32");
    plot::Figure::new("Where MX E4M3 ends above f32, and where below")
        .subtitle("geometric mean over widths and gains at the start")
        .x(Axis::categories("learning rate", names(&rates)))
        .panel(Panel::new(Axis::categories("layers", names(&depths))).heat(Heat::of_categories(
            value,
            rates.len(),
            heat,
        )))
}

/// Of each grid point whether its f32 run diverged, and its MX runs. If formats do not matter, which of a
/// grid point's diverged runs is the f32 one is chance. Then f32 diverges with the share of all, grid point
/// by grid point, and the number of its divergences has the distribution of such coins together. (The share
/// of several MX runs is above that of one f32 run more often than below by chance alone, so the signs of
/// their differences say nothing.)
pub fn judge(points: &[(bool, Vec<bool>)], runs: usize) -> Verdict {
    let shares: Vec<f64> = points
        .iter()
        .map(|(f32, mx)| {
            let diverged = mx.iter().filter(|mx| **mx).count() + usize::from(*f32);
            diverged as f64 / (mx.len() + 1) as f64
        })
        .collect();
    let count = points.iter().filter(|point| point.0).count();
    let expected: f64 = shares.iter().sum();
    let chances = coins(&shares);
    let fewer: f64 = chances[..=count].iter().sum();
    let more: f64 = chances[count..].iter().sum();
    let mx: usize = points.iter().map(|point| point.1.iter().filter(|mx| **mx).count()).sum();
    let text = format!(
        "{runs} runs; in {} points of the grid {mx} runs diverge in MX and {count} in f32 (fixed betas), of \
         which chance would have {expected:.1} (as few: p {fewer:.2}, as many: p {more:.2})",
        points.len(),
    );
    Verdict::of(fewer <= SURE, more <= SURE, text)
}

/// What the search shows, and the new seeds.
pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let formats = results.levels(results.grid.axis("numbers"));
    let mut header = vec!["layers", "width", "gains", "rate"];
    header.extend(formats.iter().map(|level| level.name));
    let mut table = Table::new(
        "what became of each run, seed 1, and the final loss (mean squared error)",
        &header,
    );
    let mut points = Vec::new();
    let mut diverged: Vec<Vec<(f64, bool)>> = vec![Vec::new(); formats.len()];
    let mut tails: Vec<Vec<(GridPoint, f64)>> = vec![Vec::new(); formats.len()];
    let mut count = 1;
    for group in results.points.chunks(formats.len()) {
        let name = |axis| group[0].level(axis).map_or("-", |level| level.name).to_owned();
        let mut row: Vec<String> = ["layers", "width", "gains", "rate"].map(name).into();
        let (mut plain, mut mx) = (false, Vec::new());
        for (i, point) in group.iter().enumerate() {
            for outcome in results.outcomes(point)? {
                count += 1;
                tails[i].push((point.clone(), outcome.tail));
                row.push(format!("{}, {}", number(outcome.tail), outcome.word()));
                diverged[i].push((x(point, "rate"), outcome.diverged()));
                match i {
                    0 => plain = outcome.diverged(),
                    1 => {}
                    _ => mx.push(outcome.diverged()),
                }
            }
        }
        points.push((plain, mx));
        table.row(row);
    }
    let mut lines = Vec::new();
    let rates = results.levels(results.grid.axis("rate"));
    let mut shares = Table::new(
        "diverged runs, of how many, with the 95 % interval of the share (Wilson)",
        &["numbers", "diverged", "runs", "share", "interval"],
    );
    for (level, diverged) in formats.iter().zip(&diverged) {
        let share = |rate: &Level| {
            let of: Vec<bool> = diverged.iter().filter(|l| l.0 == rate.x).map(|l| l.1).collect();
            (rate.x, of.iter().filter(|d| **d).count() as f64 / of.len() as f64)
        };
        lines.push((level.name.to_owned(), rates.iter().map(share).collect()));
        let (hits, all) = (diverged.iter().filter(|l| l.1).count(), diverged.len());
        let interval = wilson(hits as u64, all as u64, 0.95);
        shares.row([
            level.name.into(),
            hits.to_string(),
            all.to_string(),
            format!("{:.2}", hits as f64 / all as f64),
            interval.map_or_else(|| "-".into(), |i| format!("{:.2} to {:.2}", i.low, i.high)),
        ]);
    }
    let (lines, merged) = series::distinct(lines);
    let panel = Panel::new(Axis::linear("share of diverged runs").include(0.0));
    let panel = lines.into_iter().fold(panel, |panel, (name, points)| {
        let last = points.last().map_or_else(String::new, |point| format!("{:.2}", point.1));
        panel.line(Series::new(name, points).note(last))
    });
    let mut under = "over all depths, widths and gains at the start; one seed a point".to_owned();
    under += &merged
        .map_or_else(String::new, |lines| format!("; lines that coincide are drawn once: {lines}"));
    let picture = plot::Figure::new("Diverged proxies by learning rate and format")
        .subtitle(under)
        .x(Axis::log("learning rate"))
        .panel(panel);
    let heat = heat(results, &tails);
    let beyond = results.of_grid(&BEYOND);
    let positive = beyond.outcomes(&beyond.points[0])?;
    let words: Vec<String> = positive.iter().map(Outcome::word).collect();
    let control = format!("E2M1 at ten times the largest rate: {}", words.join(", "));
    let mut verdicts = vec![judge(&points, count)];
    let mut parts = Vec::new();
    if let Some((verdict, tables)) = new_seeds::find(results)? {
        verdicts.insert(0, verdict);
        parts.extend(tables);
    }
    let fired = positive.iter().all(Outcome::diverged);
    let verdict = Verdict::first_of(&verdicts).controlled(fired, &control);
    parts.extend([
        Part::Picture(picture),
        Part::Picture(heat),
        Part::Table(shares),
        Part::Table(table),
    ]);
    Ok(Findings::of(verdict, parts))
}
