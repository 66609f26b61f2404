//! F2-18: what moves before the proxy diverges, at its own size, on one axis around each run's divergence T.
//!
//! The study shows one run: gains that move into the last bin, and the bias of gradients, which grows until
//! the loss follows. Here are the study's text's runs of F2-11 again with their probes. What a run has
//! before its T is compared with what runs that do not diverge have at the same steps. Grid and criterion,
//! which is F-zeta's, were written before its first run.

use super::bias::{self, CLAIM};
use super::causes::TEXT;
use super::grids::BIAS;
use super::*;
use crate::finding::{Findings, Part, Table};
use crate::measure::Results;
use crate::outcome::{Outcome, number, points};
use crate::plot::{self, Band, Panel, Series};
use crate::statistics::median;
use exmy::error::Result;

/// Steps of one point of the axis, and how many there are before T.
const WIDTH: f64 = 100.0;
const BINS: usize = 20;

pub(super) static BEFORE: Figure = Figure {
    id: "F2-18",
    title: "gains, gradient bias and loss before the proxy diverges, at its own size",
    source: "what F3 and F-zeta are of, at the size at which the study has it: gains in the last bin, \
             |g - h| / |h| and the cosine of the gradients in MX and in f32, and the loss",
    says: "The ratio rho = |g - h| / |h| drifts up while the cosine falls, and the loss diverges after rho \
           is 1. The runs are the first ten of F2-11's first recipe, with probes.",
    grid: Grid {
        seeds: [1, 0, 10],
        sets: &[STUDENT, BIAS],
        axes: &[Axis::new("numbers", &[TEXT])],
        ..PROXIES
    },
    judged: Judged::Own { asks: CLAIM, effect: EffectSize::Unstated, find },
    views: &[],
};

/// One quantity of a run by step.
pub type Values = Vec<(f64, f64)>;

/// Steps before T, and the least, median and largest of what several runs have there, each the median of its
/// values within `WIDTH` steps.
pub fn aligned(runs: &[(u64, &Values)]) -> Vec<(f64, [f64; 3])> {
    let bin = |bin: usize| {
        let each = runs.iter().filter_map(|&(t, values)| within(t as f64, bin, values));
        let mut each: Vec<f64> = each.filter(|value| value.is_finite()).collect();
        each.sort_by(f64::total_cmp);
        let found = [*each.first()?, median(&each)?, *each.last()?];
        Some((-(bin as f64 + 0.5) * WIDTH, found))
    };
    (0..BINS).rev().filter_map(bin).collect()
}

/// The median of the values from `(bin + 1) * WIDTH` steps before `t` on, up to `bin * WIDTH` before it.
fn within(t: f64, bin: usize, values: &Values) -> Option<f64> {
    let end = t - bin as f64 * WIDTH;
    let steps = end - WIDTH..end;
    let inside = values.iter().filter(|(step, _)| steps.contains(step));
    median(&inside.map(|value| value.1).collect::<Vec<_>>())
}

/// What is drawn: its name, the panel it is in, and its values of each run.
struct Quantity {
    name: &'static str,
    panel: usize,
    runs: Vec<Values>,
}

impl Quantity {
    fn of_all(outcomes: &[Outcome]) -> Result<Vec<Self>> {
        let probed = |name, panel, probe| -> Result<Self> {
            let runs = outcomes.iter().map(|outcome| outcome.trained.values(probe));
            Ok(Self { name, panel, runs: runs.collect::<Result<_>>()? })
        };
        let curve = |name, panel, of: fn(&Outcome) -> Values| Self {
            name,
            panel,
            runs: outcomes.iter().map(of).collect(),
        };
        Ok(vec![
            curve("training loss", 0, |outcome| points(&outcome.losses)),
            curve("gradient norm", 1, |outcome| points(&outcome.norms)),
            probed("gains in the last bin", 2, "lastbin.gamma")?,
            probed("rho, same weights", 3, "rho_same")?,
            probed("rho, trajectories", 3, "rho_traj")?,
            probed("cosine, same weights", 4, "cos_same")?,
            probed("cosine, trajectories", 4, "cos_traj")?,
        ])
    }
}

fn find(results: &Results<'_>) -> Result<Findings> {
    let (mut runs, mut outcomes) = (Vec::new(), Vec::new());
    for point in &results.points {
        for (planned, run) in results.trained(point)? {
            outcomes.push(Outcome::of(run.clone(), &planned));
            runs.push((TEXT.name.to_owned(), planned, run));
        }
    }
    let (mut parts, seen) = bias::measured(runs)?;
    let ends: Vec<Option<u64>> = outcomes.iter().map(|outcome| outcome.verdict.diverged).collect();
    let all = Quantity::of_all(&outcomes)?;
    parts.insert(0, Part::Picture(picture(&all, &ends)));
    parts.insert(1, Part::Table(table(&all, &ends)));
    Ok(Findings::of(bias::judge(&seen), parts))
}

/// The runs that diverge: their T and values.
fn diverging<'a>(quantity: &'a Quantity, ends: &[Option<u64>]) -> Vec<(u64, &'a Values)> {
    ends.iter().zip(&quantity.runs).filter_map(|(end, run)| Some(((*end)?, run))).collect()
}

/// What runs that do not diverge have at the steps of the others' divergence, each with each.
fn others<'a>(quantity: &'a Quantity, ends: &[Option<u64>]) -> Vec<(u64, &'a Values)> {
    let sound = ends.iter().zip(&quantity.runs).filter(|(end, _)| end.is_none());
    sound.flat_map(|(_, run)| ends.iter().flatten().map(move |&end| (end, run))).collect()
}

fn table(all: &[Quantity], ends: &[Option<u64>]) -> Table {
    let before = |bins: usize| format!("{:.0} steps before T", bins as f64 * WIDTH);
    let columns = [BINS, 10, 5, 1].map(before);
    let mut table = Table::new(
        "medians over runs of their medians within 100 steps, of runs that diverge, and of those that do not \
         at the same steps just before T (least to largest)",
        &[
            "quantity",
            &columns[0],
            &columns[1],
            &columns[2],
            &columns[3],
            "others, at the last of these",
        ],
    );
    for quantity in all {
        let found = aligned(&diverging(quantity, ends));
        let at = |bin: usize| {
            let offset = -(bin as f64 - 0.5) * WIDTH;
            let found = found.iter().find(|found| found.0 == offset);
            found.map_or_else(|| "-".into(), |(_, [low, mid, high])| span(*low, *mid, *high))
        };
        let others = aligned(&others(quantity, ends));
        let others = others.last().map_or_else(|| "-".into(), |(_, [a, b, c])| span(*a, *b, *c));
        table.row([quantity.name.to_owned(), at(BINS), at(10), at(5), at(1), others]);
    }
    table
}

fn span(low: f64, median: f64, high: f64) -> String {
    format!("{} ({} to {})", number(median), number(low), number(high))
}

fn picture(all: &[Quantity], ends: &[Option<u64>]) -> plot::Figure {
    let mut panels = [
        Panel::new(plot::Axis::log("training loss, mean squared error")),
        Panel::new(plot::Axis::log("gradient norm")),
        Panel::new(plot::Axis::linear("gains in the last bin").range(0.0, 1.0)),
        Panel::new(plot::Axis::log("rho = |g - h| / |h|")).rule(1.0, "1"),
        Panel::new(plot::Axis::linear("cosine of g and h").include(0.0)),
    ];
    for quantity in all {
        let found = aligned(&diverging(quantity, ends));
        let band = found.iter().map(|&(x, [low, _, high])| (x, low, high));
        let line = found.iter().map(|&(x, [_, median, _])| (x, median));
        let panel = panels[quantity.panel].clone();
        panels[quantity.panel] =
            panel.band(Band::new(quantity.name, band)).line(Series::new(quantity.name, line));
    }
    let count = ends.iter().flatten().count();
    let figure = plot::Figure::new("Before the proxy diverges")
        .subtitle(format!(
            "{count} of {} runs, seed by seed aligned at their divergence; median, least and largest",
            ends.len()
        ))
        .x(plot::Axis::linear("steps before the run diverges"));
    panels.into_iter().fold(figure, plot::Figure::panel)
}
