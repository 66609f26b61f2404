//! Whether sharpness rises before the loss does, in runs of fewer mantissa bits against those of most.
//!
//! The paper says so of its curves and gives no threshold ("no exact threshold", caption of v2 Fig. 7), and
//! levels of two quantities cannot be compared by eye. So both are held to the same rule. Two measurements in
//! a row must lie above those of the reference run of the same seed, by more than three times the scatter
//! between the seeds of the reference. The curve has risen at the first of them. Losses are means of the
//! steps around a measurement, as a trailing average would come too late. All runs of a seed share its
//! reference, so what counts is one value a seed.

use crate::claim::TestResult;
use crate::criterion::{By, Criterion, Is, Opposite, Requirement, ask};
use crate::grid::GridPoint;
use crate::measure::Results;
use crate::run_config::RunConfig;
use crate::statistics::{mean, mean_interval, sd};
use crate::store::Trained;
use crate::test_result::interval;
use exmy::error::Result;

/// Scatters between seeds that a difference must exceed.
const SCATTERS: f64 = 3.0;
/// Measurements in a row.
const ROW: usize = 2;

/// Steps and values.
pub type Points = Vec<(f64, f64)>;

/// The value at a step, if the curve goes that far.
fn at(curve: &[(f64, f64)], step: f64) -> Option<f64> {
    curve.iter().find(|point| point.0 == step).map(|point| point.1).filter(|x| x.is_finite())
}

/// The mean loss of the steps nearer to each measurement than `reach`, up to where a run ends.
pub fn around(losses: &[(f64, f64)], steps: &[f64], reach: f64) -> Points {
    let end = losses.iter().position(|point| !point.1.is_finite()).unwrap_or(losses.len());
    let last = losses[..end].last().map_or(f64::NEG_INFINITY, |point| point.0);
    let near = |step: f64| -> Vec<f64> {
        let near = losses[..end].iter().filter(|point| (point.0 - step).abs() < reach);
        near.map(|point| point.1).collect()
    };
    let within = steps.iter().filter(|step| **step <= last);
    within.filter_map(|&step| Some((step, mean(&near(step))?))).collect()
}

/// The standard deviation between curves at one step, over all steps that all of them have.
pub fn scatter(curves: &[Points]) -> Option<f64> {
    let steps = curves.first()?.iter().map(|point| point.0);
    let variances = steps.filter_map(|step| {
        let values: Vec<f64> = curves.iter().filter_map(|curve| at(curve, step)).collect();
        (values.len() == curves.len()).then(|| sd(&values).map(|sd| sd * sd)).flatten()
    });
    mean(&variances.collect::<Vec<_>>()).map(f64::sqrt)
}

/// The first step of `ROW` in a row at which a curve lies above its reference by more than `limit`.
///
/// A loss that is no longer there is above any: runs end where it is no finite number.
pub fn risen(curve: &Points, reference: &Points, limit: f64, gone: bool) -> Option<f64> {
    let above = |step: f64| match (at(curve, step), at(reference, step)) {
        (Some(value), Some(reference)) => value - reference > limit,
        (None, Some(_)) => gone,
        _ => false,
    };
    let rows = reference.windows(ROW);
    rows.into_iter().find(|row| row.iter().all(|point| above(point.0))).map(|row| row[0].0)
}

/// When sharpness and loss of one run rise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Risen {
    pub sharpness: Option<f64>,
    pub loss: Option<f64>,
}

impl Risen {
    /// 1 where sharpness rises before the loss does, -1 after, 0 at the same measurement; `None` for a run
    /// whose loss does not rise.
    fn sign(&self) -> Option<f64> {
        let loss = self.loss?;
        Some(match self.sharpness {
            Some(sharpness) if sharpness < loss => 1.0,
            Some(sharpness) if sharpness == loss => 0.0,
            _ => -1.0,
        })
    }
}

/// What the rule looks at in one run: the logarithm of sharpness and the loss around each measurement.
#[derive(Clone, Debug)]
struct Curves {
    sharpness: Points,
    loss: Points,
}

/// The curves of runs, at the measurements of the first of the reference.
fn curves(
    reference: &[(RunConfig, Trained)],
    runs: &[(RunConfig, Trained)],
) -> Result<Vec<Curves>> {
    let steps: Vec<f64> = match reference.first() {
        Some((_, first)) => first.values("sharpness")?.iter().map(|point| point.0).collect(),
        None => return Ok(Vec::new()),
    };
    let reach = steps.windows(2).map(|two| (two[1] - two[0]) / 2.0).fold(f64::INFINITY, f64::min);
    let of = |run: &Trained| -> Result<Curves> {
        let sharpness = run
            .values("sharpness")?
            .into_iter()
            .map(|(step, sharpness)| (step, libm::log(sharpness)));
        Ok(Curves { sharpness: sharpness.collect(), loss: around(&run.losses(), &steps, reach) })
    };
    runs.iter().map(|(_, run)| of(run)).collect()
}

/// Compares curves, seed by seed, with those of the reference; nothing where that has no scatter.
fn compare_curves(reference: &[Curves], runs: &[Curves]) -> Vec<Risen> {
    let limit = |part: fn(&Curves) -> &Points| {
        let own: Vec<Points> = reference.iter().map(|one| part(one).clone()).collect();
        scatter(&own).map(|scatter| SCATTERS * scatter)
    };
    let (Some(sharpness), Some(loss)) = (limit(|one| &one.sharpness), limit(|one| &one.loss))
    else {
        return Vec::new();
    };
    let seeds = runs.iter().zip(reference);
    seeds
        .map(|(run, reference)| Risen {
            sharpness: risen(&run.sharpness, &reference.sharpness, sharpness, false),
            loss: risen(&run.loss, &reference.loss, loss, true),
        })
        .collect()
}

/// Compares runs, seed by seed, with the reference.
fn compare(
    reference: &[(RunConfig, Trained)],
    runs: &[(RunConfig, Trained)],
) -> Result<Vec<Risen>> {
    Ok(compare_curves(&curves(reference, reference)?, &curves(reference, runs)?))
}

/// First minus later of each seed, the mean over some kinds of runs; seeds without a loss that rises are
/// left out.
fn by_seed(runs: &[Vec<Risen>]) -> Vec<f64> {
    let seeds = runs.iter().map(Vec::len).max().unwrap_or(0);
    let of = |seed: usize| {
        let signs = runs.iter().filter_map(|runs| runs.get(seed)?.sign());
        mean(&signs.collect::<Vec<_>>())
    };
    (0..seeds).filter_map(of).collect()
}

/// How many runs rise so: sharpness before, at the same measurement, later or never, alone.
fn counts(runs: &[Vec<Risen>]) -> [usize; 4] {
    let all = || runs.iter().flatten();
    let count = |sign: f64| all().filter_map(Risen::sign).filter(|s| *s == sign).count();
    let alone = all().filter(|run| run.sharpness.is_some() && run.loss.is_none()).count();
    [count(1.0), count(0.0), count(-1.0), alone]
}

/// Whether sharpness rises first, and the numbers; `runs` holds the seeds of each number of bits and rate, in
/// the same order. That the loss rises first is no opposite: the paper speaks of losses before they diverge,
/// and here a loss counts as risen that is higher than with more bits.
pub fn count(runs: &[Vec<Risen>]) -> (bool, String) {
    let [first, same, later, alone] = counts(runs);
    let means = by_seed(runs);
    let found = mean_interval(&means, 0.95);
    let shown = interval(found);
    let text = format!(
        "of {} runs whose loss rises above that of the most bits, sharpness rises before in {first}, at \
         the same measurement in {same}, later or never in {later}; first minus later over all, by seed: \
         {shown}; in {alone} runs sharpness rises and the loss does not",
        first + same + later,
    );
    (found.is_some_and(|found| found.low > FIRST.bound()), text)
}

const FIRST: Requirement = ask(
    "how much more often sharpness rises before the loss than after it, in runs whose loss rises,",
    Is::Over(0.0),
    By::Interval,
);

pub(crate) const ASKS: Criterion = Criterion::new(&[FIRST], Opposite::None).noted(|| {
    format!(
        "sharpness before the loss counts as 1, after it as -1, the mean of each seed once; either has risen \
         where it lies above that of the run with most bits and the same seed by more than {SCATTERS} times \
         the scatter between seeds, in {ROW} measurements in a row"
    )
});

/// Whether sharpness rises first where bits are fewer than on the first level of the axis `format`, at all
/// rates.
pub(crate) fn judge(results: &Results<'_>) -> Result<TestResult> {
    let mut risen = Vec::new();
    for rate in results.levels(results.grid.axis("rate")) {
        let here = GridPoint::default().with("rate", rate);
        let formats = results.levels(results.grid.axis("format")).iter();
        let mut runs = formats.map(|format| results.trained(results.point(&[format.name], &here)));
        let Some(reference) = runs.next().transpose()? else { continue };
        for runs in runs {
            risen.push(compare(&reference, &runs?)?);
        }
    }
    let (holds, text) = count(&risen);
    Ok(TestResult::either(holds, text))
}
