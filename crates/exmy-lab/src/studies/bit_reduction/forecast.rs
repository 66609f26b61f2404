//! Whether sharpness foretells that a run will fail, better than simpler measures.

use crate::criterion::{By, Criterion, Is, Opposite, ask};
use crate::finding::{Findings, Part, Table, Verdict};
use crate::measure::Results;
use crate::outcome::Outcome;
use crate::plot::{self, Axis, Panel, Series};
use crate::run_config::RunConfig;
use crate::spikes::Detected;
use crate::statistics::{Interval, Roc, roc, sd};
use crate::store::Trained;
use exmy::error::Result;

/// The share of the steps after which is foretold.
const AT: f64 = 0.25;
/// Losses of which the scatter is one of the measures.
const WINDOW: usize = 50;
const MEASURES: [&str; 4] = ["sharpness", "largest logit", "gradient norm", "scatter of the loss"];

/// The measures of a run before a step; the last of each that there is.
fn measures(run: &Trained, step: f64) -> Result<[Option<f64>; 4]> {
    let last = |points: &[(f64, f64)]| {
        points.iter().rfind(|point| point.0 <= step).map(|point| point.1).filter(|x| x.is_finite())
    };
    let losses: Vec<f64> =
        run.losses().iter().filter(|point| point.0 <= step).map(|point| point.1).collect();
    let scatter = sd(&losses[losses.len().saturating_sub(WINDOW)..]).filter(|sd| sd.is_finite());
    Ok([last(&run.values("sharpness")?), last(&run.values("logits")?), last(&run.norms()), scatter])
}

/// Whether a run fails, or spikes, after a step; `None` if it failed before.
pub fn fails_later(failed: bool, found: &Detected, step: f64) -> Option<bool> {
    if found.diverged.is_some_and(|at| (at as f64) <= step) {
        return None;
    }
    let spikes = found.spikes.iter().any(|spike| spike.first as f64 > step);
    Some(failed || spikes)
}

/// Measures of runs, each with whether the run fails later.
#[derive(Default)]
struct Scored {
    each: [Vec<(f64, bool)>; MEASURES.len()],
    runs: usize,
    failing: usize,
}

impl Scored {
    /// Adds a run that has not failed by then.
    fn push(&mut self, run: &Trained, planned: &RunConfig) -> Result<()> {
        let step = AT * planned.config.train.steps as f64;
        let outcome = Outcome::of(run.clone(), planned);
        let later = fails_later(outcome.failed(), &outcome.verdict, step);
        let Some(later) = later else { return Ok(()) };
        self.runs += 1;
        self.failing += usize::from(later);
        for (scored, value) in self.each.iter_mut().zip(measures(run, step)?) {
            scored.extend(value.map(|value| (value, later)));
        }
        Ok(())
    }

    /// The curve of each measure.
    fn curves(&self) -> [Option<Roc>; MEASURES.len()] {
        self.each.each_ref().map(|scored| roc(scored))
    }

    /// How many runs there are, and how many of them fail later.
    fn counts(&self) -> (usize, usize) {
        (self.runs, self.failing)
    }
}

/// The areas of each measure.
type Areas = [Option<Interval>; MEASURES.len()];

/// The areas with intervals so sure.
fn areas(curves: &[Option<Roc>; MEASURES.len()], confidence: f64) -> Areas {
    curves.each_ref().map(|curve| curve.as_ref().map(|curve| curve.interval(confidence)))
}

/// `0.712 (0.603 to 0.821)`
fn area(area: Option<Interval>) -> String {
    area.map_or_else(
        || "-".into(),
        |area| format!("{:.3} ({:.3} to {:.3})", area.estimate, area.low, area.high),
    )
}

/// `sharpness 0.712 (0.603 to 0.821), ...`
fn words(areas: &Areas) -> String {
    let each = MEASURES.into_iter().zip(areas);
    each.map(|(name, one)| format!("{name} {}", area(*one))).collect::<Vec<_>>().join(", ")
}

/// Whether sharpness foretells better than chance, more than 0.7, and more than each other measure; and
/// whether another one does better.
fn best(areas: &Areas) -> Option<(bool, bool)> {
    let [Some(sharpness), Some(logit), Some(norm), Some(scatter)] = areas else { return None };
    let others = [logit, norm, scatter];
    let best = others.iter().map(|area| area.estimate).fold(0.0, f64::max);
    let sure = others.iter().any(|area| area.estimate == best && area.low > CHANCE);
    let foretells = sharpness.estimate > GOOD && sharpness.low > CHANCE;
    Some((foretells && sharpness.estimate > best, sure && sharpness.estimate < best && best > GOOD))
}

pub fn judge(areas: &Areas, (runs, failing): (usize, usize)) -> Verdict {
    let text = format!(
        "area under the ROC curve over {runs} runs, {failing} of which spike or fail later: {}",
        words(areas)
    );
    match best(areas) {
        None => Verdict::Untested(format!("too few runs of both kinds; {text}")),
        Some((holds, opposite)) => Verdict::of(holds, opposite, text),
    }
}

const AREA: &str = "the area under sharpness's ROC curve";
const OTHER: &str = "the largest area of the others";
/// An area that foretells, and that of chance.
const GOOD: f64 = 0.7;
const CHANCE: f64 = 0.5;

pub(crate) const ASKS: Criterion = Criterion::new(
    &[
        ask(AREA, Is::Over(GOOD), By::Value),
        ask(AREA, Is::Over(CHANCE), By::Areas),
        ask(AREA, Is::Above("those of all others"), By::Value),
    ],
    Opposite::All(&[
        ask(OTHER, Is::Over(GOOD), By::Value),
        ask(OTHER, Is::Over(CHANCE), By::Areas),
        ask(OTHER, Is::Above("that of sharpness"), By::Value),
    ]),
)
.noted(|| {
    format!(
        "The others are the largest logit, the gradient norm and the scatter of the last {WINDOW} losses."
    )
});

/// The areas of all measures, over the runs of other figures.
pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let mut scored = Scored::default();
    for planned in results.grid.runs(results.setting) {
        scored.push(&results.run(&planned)?, &planned)?;
    }
    let curves = scored.curves();
    let mut table = Table::new(
        "area under the ROC curve; 0.5 is chance, 1 is perfect",
        &["measure", "runs", "area"],
    );
    let mut panel = Panel::new(Axis::linear("share of failing runs found"));
    for ((name, curve), scored) in MEASURES.into_iter().zip(&curves).zip(&scored.each) {
        let area = curve.as_ref().map_or_else(|| "-".into(), |curve| format!("{:.3}", curve.area));
        table.row([name.into(), scored.len().to_string(), area]);
        if let Some(curve) = curve {
            panel = panel.line(Series::new(name, curve.points.iter().copied()));
        }
    }
    let picture = plot::Figure::new("Failing runs found against false alarms")
        .subtitle("measured after a quarter of the steps")
        .x(Axis::linear("share of other runs taken for failing"))
        .panel(panel);
    let verdict = judge(&areas(&curves, 0.95), scored.counts());
    Ok(Findings::of(verdict, vec![Part::Picture(picture), Part::Table(table)]))
}
