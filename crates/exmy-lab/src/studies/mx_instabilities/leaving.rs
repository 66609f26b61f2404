//! When a run first leaves its lowest loss, and F2-22, which is judged by it.
//!
//! To 20,000 steps losses shoot up and come back more than once, so what the end looks like says little of
//! when a run stopped learning. A run leaves its lowest loss where the median of five means of ten steps is
//! above ten times the lowest such median before. F2-15 is shown by it, too, which was decided after its runs
//! had been seen. F2-22 asks whether with stochastic rounding of the weights, with which no run of F2-16
//! diverges within 9000 steps, runs hold out longer than in f32. Its recipe and criterion were written before
//! its first run.

use super::before::tens;
use super::causes::{CODE, changed};
use super::survival::Ends;
use super::*;
use crate::criterion::{By, Criterion, Is, Opposite, ask};
use crate::finding::{Findings, Part, Power, Table, Verdict};
use crate::measure::Results;
use crate::outcome::{Outcome, number};
use crate::spikes::Curve;
use crate::statistics::{log_rank, log_rank_power, median};
use exmy::error::Result;

/// Means in a median, and how many times the lowest median is far from it.
const MEANS: usize = 5;
const FAR: f64 = 10.0;

/// What a loss curve does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leaving {
    /// The lowest median.
    pub lowest: f64,
    /// Where the run first leaves the lowest before.
    pub at: Option<u64>,
    /// The last median.
    pub end: f64,
}

impl Leaving {
    /// Absent of a curve of fewer than fifty steps.
    pub fn of(losses: &Curve) -> Option<Self> {
        let (mut found, mut lowest): (Option<Self>, f64) = (None, f64::INFINITY);
        for window in tens(losses).windows(MEANS) {
            let values: Vec<f64> = window.iter().map(|mean| mean.1).collect();
            // A loss that is no finite number is far from any.
            let end = match values.iter().all(|value| value.is_finite()) {
                true => median(&values)?,
                false => f64::INFINITY,
            };
            let step = window[MEANS - 1].0 as u64;
            let left = (end > FAR * lowest).then_some(step);
            lowest = lowest.min(end);
            let at = found.and_then(|found| found.at).or(left);
            found = Some(Self { lowest, at, end });
        }
        found
    }
}

const NOISY: &str = "stochastic weights";

pub(super) static LASTING: Figure = Figure {
    id: "F2-22",
    title: "whether MX with stochastically rounded weights holds out longer than f32, to 20,000 steps",
    source: "a question of our own, after F2-15 and F2-16",
    says: "Runs whose weights alone are rounded stochastically leave their lowest loss later than f32 whose \
           betas stay 0.",
    grid: Grid {
        steps: [0, 0, 20_000],
        seeds: [0, 0, 10],
        axes: &[Axis::new(
            "numbers",
            &[
                level(BETAS.name, Set::All(&[BETAS.set, Set::Seeds(5)])),
                level(CODE.name, Set::All(&[CODE.set, Set::Seeds(5)])),
                level(
                    NOISY,
                    Set::All(&[
                        Set::Measured(&["lastbin.gamma", "rho_same", "cos_same"], [50; 3]),
                        changed!("+weight=bf16@rna>mxfp8-e4m3@microxcaling@sr16"),
                    ]),
                ),
            ],
        )],
        ..PROXIES
    },
    judged: Judged::Own {
        asks: Criterion::new(
            &[ask(
                "runs whose weights alone are rounded stochastically",
                Is::So("leave their lowest loss later than f32 whose betas stay 0"),
                By::LogRank(LEVEL),
            )],
            Opposite::All(&[ask("they", Is::So("leave it sooner"), By::LogRank(LEVEL))]),
        ),
        effect: EffectSize::Stated,
        find,
    },
    views: &[View::Outcomes {
        title: "The proxy to 20,000 steps",
        per: &[],
        norms: false,
        under: MIDDLE,
    }],
};

const LEVEL: f64 = 0.05;

/// A run of a recipe.
struct OneRun {
    seed: u64,
    steps: u64,
    loss: Leaving,
}

/// The recipes of a grid with their runs.
type Runs = Vec<(String, Vec<OneRun>)>;

fn runs(results: &Results<'_>) -> Result<Runs> {
    let of = |outcome: Outcome| {
        let summary = &outcome.trained.summary;
        let loss = Leaving::of(&outcome.losses)?;
        Some(OneRun { seed: summary.seed, steps: summary.steps, loss })
    };
    let each = results.points.iter().map(|point| {
        Ok((point.words(&[]), results.outcomes(point)?.into_iter().filter_map(of).collect()))
    });
    each.collect()
}

/// Of each run of a recipe, where it leaves its lowest loss, or its last step.
fn ends(all: &Runs, name: &str) -> Ends {
    let runs = all.iter().find(|recipe| recipe.0 == name).map_or(&[][..], |recipe| &recipe.1);
    let end = |run: &OneRun| (run.loss.at.unwrap_or(run.steps), run.loss.at.is_some());
    runs.iter().map(end).collect()
}

/// What leaves its lowest loss when, recipe by recipe and run by run.
pub(super) fn tables(results: &Results<'_>) -> Result<Vec<Part>> {
    Ok(tables_of(&runs(results)?))
}

fn tables_of(all: &Runs) -> Vec<Part> {
    let base = ends(all, BETAS.name);
    let mut recipes = Table::new(
        "runs that leave their lowest loss, by the median of five means of ten steps above ten times the \
         lowest; whether sooner or later than f32 with fixed betas (log-rank test, each one-sided)",
        &["numbers", "runs", "leave", "at steps", "p, sooner", "p, later"],
    );
    let mut each = Table::new(
        "each run: its lowest loss, where it is first left, and the last one",
        &["numbers", "seed", "lowest", "left at", "last, times the lowest"],
    );
    for (name, runs) in all {
        let ends = ends(all, name);
        let mut at: Vec<u64> = ends.iter().filter(|end| end.1).map(|end| end.0).collect();
        at.sort_unstable();
        let test = log_rank(&ends, &base).filter(|_| name != BETAS.name);
        let p = |p: Option<f64>| p.map_or_else(|| "-".into(), |p| format!("{p:.4}"));
        recipes.row([
            name.clone(),
            runs.len().to_string(),
            at.len().to_string(),
            at.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
            p(test.map(|test| test.p_sooner)),
            p(test.map(|test| test.p_later)),
        ]);
        for OneRun { seed, loss, .. } in runs {
            each.row([
                name.clone(),
                seed.to_string(),
                number(loss.lowest),
                loss.at.map_or_else(|| "-".into(), |at| at.to_string()),
                format!("{:.1}", loss.end / loss.lowest),
            ]);
        }
    }
    vec![Part::Table(recipes), Part::Table(each)]
}

/// Whether runs with noise in their weights leave their lowest loss later than those in f32, and the share of
/// cases in which the largest effect would be seen.
pub fn judge(noisy: &Ends, plain: &Ends) -> (Verdict, f64) {
    let test = log_rank(noisy, plain);
    let is_sure = |p: Option<f64>| p.is_some_and(|p| p <= LEVEL);
    let (later, sooner) = (test.map(|test| test.p_later), test.map(|test| test.p_sooner));
    let count = |ends: &Ends| ends.iter().filter(|end| end.1).count();
    let share = count(plain) as f64 / plain.len().max(1) as f64;
    let power = log_rank_power((share, plain.len()), noisy.len(), LEVEL);
    let shown = |p: Option<f64>| p.map_or_else(|| "-".into(), |p| format!("{p:.4}"));
    let text = format!(
        "{} of {} runs with stochastic weights leave their lowest loss, {} of {} in f32 with fixed betas (p \
         of not later {}, of not sooner {}); that none of the former leaves it would be seen in {:.0} % of \
         cases",
        count(noisy),
        noisy.len(),
        count(plain),
        plain.len(),
        shown(later),
        shown(sooner),
        100.0 * power
    );
    (Verdict::of(is_sure(later), is_sure(sooner), text), power)
}

fn find(results: &Results<'_>) -> Result<Findings> {
    let all = runs(results)?;
    let (verdict, power) = judge(&ends(&all, NOISY), &ends(&all, BETAS.name));
    Ok(Findings::of(verdict.with_power(Power::Share(power)), tables_of(&all)))
}
