//! Scaling laws of the stable strategies, and what losses lost after their lowest.

use crate::criterion::{By, Criterion, Is, Opposite, ask};
use crate::finding::{Findings, Part, Table, Verdict};
use crate::grid::Level;
use crate::measure::Results;
use crate::outcome::{Outcome, calm, number, size};
use crate::plot::{self, Axis, Panel, Series};
use crate::run_config::RunConfig;
use crate::scaling::{Fit, Form, Point, fit};
use crate::store::Trained;
use exmy::error::Result;

const VALID: Is = Is::So("is valid (exponents positive, beta at most 1)");

pub(crate) const ASKS: Criterion = Criterion::new(
    &[
        ask("each law of bf16 and of the hybrids", VALID, By::Value),
        ask("its explained share of the variance", Is::AtLeast(EXPLAINED), By::Value),
        ask("the law of full MX", Is::So("is not so"), By::Value),
    ],
    Opposite::All(&[
        ask("the law of a hybrid", Is::So("is not so"), By::Value),
        ask("that of full MX", Is::So("is"), By::Value),
    ]),
)
.noted(|| {
    "Where there is no fit, there is no law if most runs diverged; otherwise it is open.".into()
});

/// Nats: what a smoothed curve wanders by anyway is well below.
const LARGE: f64 = 0.1;

pub(crate) const DAMAGE_ASKS: Criterion = Criterion::new(
    &[
        ask("the most that a run in full MX loses, in nats,", Is::Over(LARGE), By::Value),
        ask("the most that any other loses", Is::AtMost(LARGE), By::Value),
    ],
    Opposite::Each,
);

/// Why the notebook's sizes, 0.5 to 1.1 nats, say nothing of these runs: the longest learn 3.4e9 tokens.
pub(crate) const LONGER: &str =
    "the sizes that are stated are of 1e10 tokens and more, and no run is that long";

/// The numbers: the first is the base, the next two the hybrids, the last full MX.
fn numbers(results: &Results<'_>) -> &'static [Level] {
    results.levels(results.grid.axis("numbers"))
}

/// The names of the numbers.
fn names(results: &Results<'_>) -> Vec<&'static str> {
    numbers(results).iter().map(|level| level.name).collect()
}

/// The share of the variance that a law of use explains.
const EXPLAINED: f64 = 0.9;

/// What came of fitting a law to the runs of a recipe.
#[derive(Clone, Copy, Debug)]
pub struct Fitted {
    /// Absent where the runs with a finite loss are too few for one.
    pub fit: Option<Fit>,
    /// Runs that ended without a finite loss.
    pub diverged: usize,
    /// All runs.
    pub runs: usize,
}

impl Fitted {
    /// Whether the runs follow a law, if that can be said. Too few runs are no sign of either, unless most
    /// diverged.
    fn follows(&self) -> Option<bool> {
        match self.fit {
            Some(fit) => Some(fit.law.is_valid() && fit.r2 >= EXPLAINED),
            None => (2 * self.diverged > self.runs).then_some(false),
        }
    }

    fn words(&self) -> String {
        match self.fit {
            Some(fit) => format!(
                "alpha {:.3}, beta {:.3}, R2 {:.3}, Huber {:.1e}",
                fit.law.alpha, fit.law.beta, fit.r2, fit.huber
            ),
            None => format!("no fit, {} of {} runs diverged", self.diverged, self.runs),
        }
    }
}

/// `fits` in the order of the recipes.
pub fn judge(names: &[&str], fits: &[Fitted]) -> Verdict {
    let words = |(fit, name): (&Fitted, &&str)| format!("{name}: {}", fit.words());
    let text = fits.iter().zip(names).map(words).collect::<Vec<_>>().join("; ");
    let [base, hybrids @ .., full] = fits else { return Verdict::Untested(text) };
    let all_follow = hybrids.iter().all(|fit| fit.follows() == Some(true));
    let one_does_not = hybrids.iter().any(|fit| fit.follows() == Some(false));
    // Without a law of the base nothing can be said of the others.
    match (base.follows(), full.follows()) {
        (Some(true), Some(false)) if all_follow => Verdict::Reproduced(text),
        (Some(true), Some(true)) if one_does_not => Verdict::Contradicted(text),
        (Some(true), Some(_)) if hybrids.iter().all(|fit| fit.follows().is_some()) => {
            Verdict::NotSeen(text)
        }
        _ => Verdict::Untested(text),
    }
}

/// The runs of some numbers, by size and steps.
fn of(results: &Results<'_>, level: &Level) -> Result<Vec<(RunConfig, Trained)>> {
    let mut all = Vec::new();
    for point in results.points.iter().filter(|point| point.level("numbers") == Some(level)) {
        all.extend(results.trained(point)?);
    }
    Ok(all)
}

/// The laws of the runs.
pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let mut table = Table::new(
        "laws L = A / N^alpha + B / D^beta + E, in nats, of the loss over the last tenth of the steps",
        &[
            "numbers",
            "A",
            "alpha",
            "B",
            "beta",
            "E",
            "a of N* ~ C^a",
            "R2",
            "Huber",
            "runs left out",
        ],
    );
    let mut predicted = Panel::new(Axis::linear("predicted loss, nats per byte"));
    let (mut fits, mut parts) = (Vec::new(), Vec::new());
    let longest = results.levels(results.grid.axis("steps")).iter().map(|level| level.x);
    let longest = longest.fold(0.0, f64::max);
    for level in numbers(results) {
        let name = level.name;
        let mut points = Vec::new();
        let mut panel = Panel::new(Axis::linear("training loss, nats per byte"));
        let mut left_out = 0;
        for (planned, run) in of(results, level)? {
            let outcome = Outcome::of(run, &planned);
            let (n, d) = size(&planned);
            if outcome.trained.tail_loss().is_finite() {
                points.push(Point { n, d, loss: outcome.tail });
            } else {
                left_out += 1;
            }
            let steps = planned.config.train.steps as f64;
            if steps >= longest {
                let curve = calm(&outcome.losses).into_iter();
                let tokens = d / steps;
                let flops = curve.map(|(step, loss)| (6.0 * n * tokens * step / 1e12, loss));
                panel = panel.line(Series::new(format!("{n:.0} parameters"), flops));
            }
        }
        let found = fit(Form::Chinchilla, &points).ok();
        if let Some(Fit { law, huber, r2 }) = found {
            table.row([
                name.into(),
                number(law.a),
                format!("{:.3}", law.alpha),
                number(law.b),
                format!("{:.3}", law.beta),
                number(law.e),
                format!("{:.3}", law.exponent()),
                format!("{r2:.4}"),
                format!("{huber:.1e}"),
                left_out.to_string(),
            ]);
            let pairs = points.iter().map(|point| (point.loss, law.loss(point.n, point.d)));
            predicted = predicted.points(Series::new(name, pairs));
        }
        let runs = points.len() + left_out;
        fits.push(Fitted { fit: found, diverged: left_out, runs });
        parts.push(Part::Picture(
            plot::Figure::new(format!("Loss against compute: {name}"))
                .subtitle("the longest run of each size; moving average over 2 % of the steps")
                .x(Axis::log("compute 6 N D, TFLOP"))
                .panel(panel),
        ));
    }
    parts.push(Part::Picture(
        plot::Figure::new("What laws predict and what was measured")
            .subtitle("one point a run; those that ended without a finite loss are left out")
            .x(Axis::linear("measured loss, nats per byte"))
            .panel(predicted),
    ));
    parts.push(Part::Table(table));
    Ok(Findings::of(judge(&names(results), &fits), parts))
}

/// `lost[numbers]` is what each run of those numbers lost after its lowest loss, nats.
pub fn judge_damage(names: &[&str], lost: &[Vec<f64>]) -> Verdict {
    let most = |values: &Vec<f64>| values.iter().copied().fold(0.0, f64::max);
    let list: Vec<f64> = lost.iter().map(most).collect();
    let words = list.iter().zip(names).map(|(most, name)| format!("{name} {most:.3}"));
    let text = format!(
        "most that a run lost after its lowest smoothed loss, nats: {}",
        words.collect::<Vec<_>>().join(", ")
    );
    let large = |most: &f64| *most > LARGE;
    let [stable @ .., full] = &*list else { return Verdict::Untested(text) };
    match (stable.iter().any(large), large(full)) {
        (false, true) => Verdict::Reproduced(text),
        (true, false) => Verdict::Contradicted(text),
        _ => Verdict::NotSeen(text),
    }
}

/// What runs lose after their lowest loss.
pub(crate) fn damage(results: &Results<'_>) -> Result<Findings> {
    let names = names(results);
    let mut table = Table::new(
        "lowest minus last smoothed loss, nats per byte: 0 where a run ends at its lowest",
        &[&["parameters", "tokens"], names.as_slice()].concat(),
    );
    let mut lost: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    for points in results.points.chunks(names.len()) {
        let mut row = Vec::new();
        for (point, lost) in points.iter().zip(&mut lost) {
            for (planned, run) in results.trained(point)? {
                let outcome = Outcome::of(run, &planned);
                if row.is_empty() {
                    let (n, d) = size(&planned);
                    row.extend([format!("{n}"), format!("{d}")]);
                }
                let curve = calm(&outcome.losses);
                let lowest = curve.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
                let last = curve.last().map_or(f64::NAN, |point| point.1);
                let last = if last.is_finite() { last } else { outcome.tail };
                row.push(format!("{:.3}", lowest - last));
                lost.push(last - lowest);
            }
        }
        table.row(row);
    }
    Ok(Findings::of(judge_damage(&names, &lost), vec![Part::Table(table)]))
}
