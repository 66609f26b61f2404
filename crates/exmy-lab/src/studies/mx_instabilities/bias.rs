//! The bias of MX gradients against those of f32, and the loss, on one axis.

use super::grids::{BIASED, SEARCH_MX, STRESSES, UNSCALED};
use crate::criterion::{By, Criterion, Is, Opposite, ask};
use crate::finding::{Findings, Part, Table, Verdict};
use crate::grid::Grid;
use crate::measure::Results;
use crate::outcome::{Outcome, calm, number, step};
use crate::plot::{self, Axis, Panel, Series};
use crate::run_config::RunConfig;
use crate::statistics::{mann_kendall, median, sign_test};
use crate::store::Trained;
use exmy::error::Result;

/// What the study says of the bias.
pub(super) const CLAIM: Criterion = Criterion::new(
    &[
        ask(
            "rho of equal weights",
            Is::So("rises over the runs and the cosine falls"),
            By::Signs(SURE),
        ),
        ask("rho before every divergence", Is::AtLeast(LARGE), By::Value),
    ],
    Opposite::Any(&[
        ask("rho", Is::So("falls and the cosine rises"), By::Signs(SURE)),
        ask("no divergence", Is::So("comes after such a rho"), By::Value),
    ]),
);

pub(crate) const ASKS: Criterion = CLAIM.noted(|| {
    format!(
        "Trends are of the steps up to where runs diverge, and rho counts where it stays for {ROW} records. \
         The control is a run whose gradients are rounded to E3M2 without a scale from its middle on: it \
         must be seen to diverge, and the bias before."
    )
});

/// The p at which chance is not believed.
const SURE: f64 = 0.05;
/// A ratio at which the bias is as large as the gradient.
const LARGE: f64 = 1.0;
/// Records in a row for which the bias must be large, so that one noisy measurement is no onset.
const ROW: usize = 3;

/// The first step from which on `ROW` values in a row are at least 1.
pub fn onset(values: &[(f64, f64)]) -> Option<u64> {
    let rows = values.windows(ROW);
    rows.into_iter().find(|row| row.iter().all(|v| v.1 >= LARGE)).map(|row| row[0].0 as u64)
}

/// Medians of the first and of the last fifth.
fn ends(values: &[(f64, f64)]) -> (f64, f64) {
    let part = (values.len() / 5).max(1).min(values.len());
    let of = |values: &[(f64, f64)]| {
        let values: Vec<f64> = values.iter().map(|value| value.1).collect();
        median(&values).unwrap_or(f64::NAN)
    };
    (of(&values[..part]), of(&values[values.len() - part..]))
}

/// What one run shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Whether rho of equal weights rises and cosine falls, by Mann and Kendall's test.
    pub drifts: bool,
    /// Whether they do the opposite.
    pub shrinks: bool,
    /// Where rho first stays at 1 or above, and where the run diverged.
    pub onset: Option<u64>,
    pub diverged: Option<u64>,
}

impl Drift {
    /// Whether the bias was large before the run diverged.
    fn precedes(&self) -> bool {
        matches!((self.onset, self.diverged), (Some(onset), Some(end)) if onset < end)
    }

    /// What a run shows until it diverges.
    fn of(outcome: &Outcome, rho: &[(f64, f64)], cos: &[(f64, f64)]) -> Self {
        let before = |values: &[(f64, f64)]| {
            let end = outcome.verdict.diverged.map_or(f64::INFINITY, |end| end as f64);
            values.iter().copied().filter(|value| value.0 < end).collect::<Vec<_>>()
        };
        let ((rho_up, rho_down), (cos_up, cos_down)) = (trends(&before(rho)), trends(&before(cos)));
        Self {
            drifts: rho_up && cos_down,
            shrinks: rho_down && cos_up,
            onset: onset(&before(rho)),
            diverged: outcome.verdict.diverged,
        }
    }
}

/// What the runs of a grid show.
fn search(results: &Results<'_>, grid: &Grid) -> Result<Vec<Drift>> {
    let results = results.of_grid(grid);
    let seen = |outcome: Outcome| {
        let (rho, cos) = (outcome.trained.values("rho_same")?, outcome.trained.values("cos_same")?);
        Ok(Drift::of(&outcome, &rho, &cos))
    };
    let mut all = Vec::new();
    for point in &results.points {
        all.extend(results.outcomes(point)?.into_iter().map(seen).collect::<Result<Vec<_>>>()?);
    }
    Ok(all)
}

/// What the search shows.
pub fn words(seen: &[Drift]) -> String {
    let diverged: Vec<&Drift> = seen.iter().filter(|seen| seen.diverged.is_some()).collect();
    let count = |of: &dyn Fn(&Drift) -> bool| seen.iter().filter(|seen| of(seen)).count();
    format!(
        "of {} MX runs of AppC's grid {} diverge, {} of them after such an onset, and {} that do not diverge \
         have one; rho rises and the cosine falls in {}, the opposite in {}",
        seen.len(),
        diverged.len(),
        diverged.iter().filter(|seen| seen.precedes()).count(),
        count(&|seen| seen.diverged.is_none() && seen.onset.is_some()),
        count(&|seen| seen.drifts),
        count(&|seen| seen.shrinks),
    )
}

/// In runs that diverged the bias must be large before; without any, only its drift can be seen.
pub fn judge(seen: &[Drift]) -> Verdict {
    let drifts = seen.iter().filter(|seen| seen.drifts).count();
    let shrinks = seen.iter().filter(|seen| seen.shrinks).count();
    let diverged: Vec<&Drift> = seen.iter().filter(|seen| seen.diverged.is_some()).collect();
    let before = diverged.iter().filter(|seen| seen.precedes()).count();
    let text = format!(
        "rho of equal weights rises and the cosine falls in {drifts} of {} MX runs (both trends with p below \
         0.05), the opposite in {shrinks}; {} of them diverged, {before} after rho had been 1 or more for \
         {ROW} records, as it had in {} of the others",
        seen.len(),
        diverged.len(),
        seen.iter().filter(|seen| seen.diverged.is_none() && seen.onset.is_some()).count()
    );
    let differences: Vec<f64> = seen
        .iter()
        .filter(|seen| seen.drifts != seen.shrinks)
        .map(|seen| if seen.drifts { 1.0 } else { -1.0 })
        .collect();
    let signs = sign_test(&differences);
    let rises = signs.is_some_and(|signs| signs.p_positive <= SURE);
    let falls = signs.is_some_and(|signs| signs.p_negative <= SURE);
    if falls || !diverged.is_empty() && before == 0 {
        Verdict::Contradicted(text)
    } else if rises && before > 0 && before == diverged.len() {
        Verdict::Reproduced(text)
    } else {
        Verdict::NotSeen(text)
    }
}

/// Whether the trend of values is up, or down.
fn trends(values: &[(f64, f64)]) -> (bool, bool) {
    let values: Vec<f64> = values.iter().map(|value| value.1).collect();
    let trend = mann_kendall(&values);
    let by = |p: fn(&crate::statistics::Trend) -> f64| {
        trend.as_ref().is_some_and(|trend| p(trend) < 0.05)
    };
    (by(|trend| trend.p_rising), by(|trend| trend.p_falling))
}

/// The runs: what they are called, and what came of them.
fn all(results: &Results<'_>) -> Result<Vec<(String, RunConfig, Trained)>> {
    let mut all = Vec::new();
    let usual = results.of_grid(&BIASED);
    for point in &usual.points {
        let name = format!("E4M3, rate {}", point.words(&[]));
        all.extend(
            usual.trained(point)?.into_iter().map(|(planned, run)| (name.clone(), planned, run)),
        );
    }
    for stress in STRESSES {
        let stressed = results.of_grid(&stress.mx);
        for point in &stressed.points {
            let name =
                format!("{}, {}", stress.numbers(results.setting), stress.called(results.setting));
            let runs = stressed.trained(point)?.into_iter();
            all.extend(runs.map(|(planned, run)| (name.clone(), planned, run)));
        }
    }
    Ok(all)
}

/// What each of some runs shows, as pictures, one of each name, and a table.
pub(super) fn measured(runs: Vec<(String, RunConfig, Trained)>) -> Result<(Vec<Part>, Vec<Drift>)> {
    let mut table = Table::new(
        "medians over the first and the last fifth of a run; onset: the first step from which on rho is at \
         least 1 in three records; divergence: the loss ten times above its lowest level to the end",
        &[
            "run",
            "seed",
            "rho first",
            "rho last",
            "cosine first",
            "cosine last",
            "rho of trajectories, last",
            "cosine of trajectories, last",
            "onset of rho",
            "of trajectories",
            "the run",
        ],
    );
    let (mut parts, mut seen) = (Vec::new(), Vec::new());
    let mut drawn: Vec<String> = Vec::new();
    for (name, planned, run) in runs {
        let outcome = Outcome::of(run, &planned);
        let values = |probe: &str| outcome.trained.values(probe);
        let (rho, cos) = (values("rho_same")?, values("cos_same")?);
        let (rho_twin, cos_twin) = (values("rho_traj")?, values("cos_traj")?);
        if rho.is_empty() {
            continue;
        }
        let ((rho_first, rho_last), (cos_first, cos_last)) = (ends(&rho), ends(&cos));
        let last = |values: &[(f64, f64)]| match values.is_empty() {
            true => "-".to_owned(),
            false => number(ends(values).1),
        };
        table.row([
            name.clone(),
            planned.config.seed.to_string(),
            number(rho_first),
            number(rho_last),
            number(cos_first),
            number(cos_last),
            last(&rho_twin),
            last(&cos_twin),
            step(onset(&rho)),
            step(onset(&rho_twin)),
            outcome.word(),
        ]);
        seen.push(Drift::of(&outcome, &rho, &cos));
        if !drawn.contains(&name) {
            parts.push(Part::Picture(picture(
                &name,
                planned.config.seed,
                &outcome,
                [&rho, &rho_twin],
                [&cos, &cos_twin],
            )));
            drawn.push(name);
        }
    }
    parts.push(Part::Table(table));
    Ok((parts, seen))
}

pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let (parts, seen) = measured(all(results)?)?;
    let searched = search(results, &SEARCH_MX)?;
    let verdict = judge(&seen);
    let verdict = verdict.with(format!("{}; the search: {}", verdict.reason(), words(&searched)));
    let mut fired = false;
    let mut text = "gradients rounded to E3M2 without a scale from the middle on: ".to_owned();
    for control in search(results, &UNSCALED)? {
        let [onset, end] = [control.onset, control.diverged]
            .map(|step| step.map_or_else(|| "never".into(), |step| step.to_string()));
        text += &format!("rho at 1 or above from {onset}, diverged at {end}");
        fired = control.drifts && control.precedes();
    }
    Ok(Findings::of(verdict.controlled(fired, &text), parts))
}

fn picture(
    name: &str,
    seed: u64,
    outcome: &Outcome,
    rho: [&Vec<(f64, f64)>; 2],
    cos: [&Vec<(f64, f64)>; 2],
) -> plot::Figure {
    let names = ["same weights", "trajectories"];
    let mut ratio = Panel::new(Axis::log("rho = |g - h| / |h|")).rule(1.0, "1");
    let mut cosine = Panel::new(Axis::linear("cosine of g and h").include(0.0)).rule(0.0, "");
    for (name, (rho, cos)) in names.iter().zip(rho.into_iter().zip(cos)) {
        let both = !rho.is_empty();
        if both {
            ratio = ratio.line(Series::new(*name, rho.iter().copied().filter(|v| v.1 > 0.0)));
            cosine = cosine.line(Series::new(*name, cos.iter().copied()));
        }
    }
    let loss = Panel::new(Axis::log("training loss, mean squared error"))
        .line(Series::new("loss", calm(&outcome.losses)));
    plot::Figure::new(format!("Gradient bias and loss in MX, {name}"))
        .subtitle(format!(
            "seed {seed}; g in MX, gains too, h in f32; loss: moving average over 2 % of the steps"
        ))
        .x(Axis::linear("step"))
        .panel(ratio)
        .panel(cosine)
        .panel(loss)
}
