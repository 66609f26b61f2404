//! F2-18: what moves before the proxy diverges, at its own size, on one axis around each run's divergence T.
//!
//! The study shows one run: gains that move into the last bin, and the bias of gradients, which grows until
//! the loss follows. Here are the runs by the study's text of F2-16, with their probes. What a run has before
//! its T is compared with what runs that do not diverge have at the same steps. The criterion, F-zeta's, was
//! written before the first run. The grid was changed after it (docs/studies/mx-instabilities.md).

use super::bias::{self, CLAIM};
use super::causes::TEXT;
use super::leaving::tens;
use super::*;
use crate::finding::{Findings, Part, Table};
use crate::measure::Results;
use crate::outcome::{Outcome, number};
use crate::plot::{self, Band, Panel, Series};
use crate::spikes::Curve;
use crate::statistics::median;
use exmy::error::Result;

/// Steps of one point of the axis, and which there are: so many before T, so many after it.
const WIDTH: f64 = 100.0;
const BEFORE_T: i32 = 20;
const AFTER_T: i32 = 5;

pub(super) static BEFORE: Figure = Figure {
    id: "F2-18",
    title: "gains, gradient bias and loss before the proxy diverges, at its own size",
    source: "what F3 and F-zeta are of, at the size at which the study has it: gains in the last bin, \
             |g - h| / |h| and the cosine of the gradients g in MX and h in f32 of equal weights, and the \
             loss",
    says: "The ratio rho = |g - h| / |h| drifts up while the cosine falls, and the loss diverges after rho \
           is 1. The runs are those of F2-16 by the text, with what they measure.",
    grid: Grid {
        seeds: [1, 0, 20],
        sets: &[STUDENT, Set::Measured(&["lastbin.gamma", "rho_same", "cos_same"], [6, 20, 50])],
        axes: &[Axis::new("numbers", &[TEXT])],
        ..PROXIES
    },
    judged: Judged::Own { asks: CLAIM, effect: EffectSize::Unstated, find },
    views: &[],
};

/// One quantity of a run by step.
pub type Values = Vec<(f64, f64)>;

/// Steps from T on, and the least, median and largest of what several runs have there, each the median of its
/// values within `WIDTH` steps.
pub fn aligned(runs: &[(u64, &Values)]) -> Vec<(f64, [f64; 3])> {
    (-BEFORE_T..AFTER_T).filter_map(|bin| Some((middle(bin), span_of(runs, bin)?))).collect()
}

fn middle(bin: i32) -> f64 {
    (f64::from(bin) + 0.5) * WIDTH
}

/// The least, median and largest from `bin * WIDTH` steps after each run's T on, for `WIDTH` steps.
fn span_of(runs: &[(u64, &Values)], bin: i32) -> Option<[f64; 3]> {
    let each =
        runs.iter().filter_map(|&(t, values)| within(t as f64 + f64::from(bin) * WIDTH, values));
    let mut each: Vec<f64> = each.filter(|value| value.is_finite()).collect();
    each.sort_by(f64::total_cmp);
    Some([*each.first()?, median(&each)?, *each.last()?])
}

/// The median of the values within `WIDTH` steps from `start` on.
fn within(start: f64, values: &Values) -> Option<f64> {
    let steps = start..start + WIDTH;
    let inside = values.iter().filter(|(step, _)| steps.contains(step));
    median(&inside.map(|value| value.1).collect::<Vec<_>>())
}

/// What is drawn: its axis and its values of each run.
struct Quantity {
    name: &'static str,
    axis: plot::Axis,
    runs: Vec<Values>,
}

impl Quantity {
    fn of_all(outcomes: &[Outcome]) -> Result<Vec<Self>> {
        let probed = |name, axis, probe| -> Result<Self> {
            let runs = outcomes.iter().map(|outcome| outcome.trained.values(probe));
            Ok(Self { name, axis, runs: runs.collect::<Result<_>>()? })
        };
        let curve = |name, of: fn(&Outcome) -> &Curve| Self {
            name,
            axis: plot::Axis::log(name),
            runs: outcomes.iter().map(|outcome| tens(of(outcome))).collect(),
        };
        let share = plot::Axis::linear("gains in the last bin").range(0.0, 1.0);
        Ok(vec![
            curve("training loss", |outcome| &outcome.losses),
            curve("gradient norm", |outcome| &outcome.norms),
            probed("gains in the last bin", share, "lastbin.gamma")?,
            probed("rho", plot::Axis::linear("rho = |g - h| / |h|").include(0.0), "rho_same")?,
            probed("cosine", plot::Axis::linear("cosine of g and h"), "cos_same")?,
        ])
    }

    /// This quantity around the divergence of the runs that diverge, and what the others have there.
    fn panel(&self, ends: &[Option<u64>]) -> Panel {
        let mut panel = Panel::new(self.axis.clone());
        for (name, runs) in [("diverge", diverging(self, ends)), ("do not", others(self, ends))] {
            let found = aligned(&runs);
            let band = found.iter().map(|&(x, [low, _, high])| (x, low, high));
            let line = found.iter().map(|&(x, [_, median, _])| (x, median));
            panel = panel.band(Band::new(name, band)).line(Series::new(name, line));
        }
        panel
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
    let before = |bins: i32| format!("{:.0} steps before T", f64::from(bins) * WIDTH);
    let columns = [BEFORE_T, 10, 5, 1].map(before);
    let mut table = Table::new(
        "medians over runs of their medians within 100 steps, of runs that diverge, and of those that do not \
         at the same steps just before T (least to largest); losses and gradient norms are means of ten",
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
        let at = |runs: &[(u64, &Values)], bins: i32| match span_of(runs, -bins) {
            Some([low, median, high]) => {
                format!("{} ({} to {})", number(median), number(low), number(high))
            }
            None => "-".into(),
        };
        let runs = diverging(quantity, ends);
        let [first, second, third, last] = [BEFORE_T, 10, 5, 1].map(|bins| at(&runs, bins));
        let others = at(&others(quantity, ends), 1);
        table.row([quantity.name.to_owned(), first, second, third, last, others]);
    }
    table
}

fn picture(all: &[Quantity], ends: &[Option<u64>]) -> plot::Figure {
    let count = ends.iter().flatten().count();
    let figure = plot::Figure::new("Before the proxy diverges")
        .subtitle(format!(
            "{count} of {} runs diverge, each aligned at its T; the others at the same steps; medians, least \
             and largest",
            ends.len()
        ))
        .x(plot::Axis::linear("steps from T on, where a run diverges"));
    all.iter().map(|quantity| quantity.panel(ends)).fold(figure, plot::Figure::panel)
}
