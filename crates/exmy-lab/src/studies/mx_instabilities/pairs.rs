//! All pairs of formats of weights and activations: which become unstable, and when their losses turn up.

use crate::criterion::{By, Criterion, Is, Opposite, ask};
use crate::finding::{Findings, Part, Table, Verdict};
use crate::grid::GridPoint;
use crate::measure::Results;
use crate::outcome::{Outcome, calm, number, points, size, step};
use crate::plot::{self, Axis, Panel, Series};
use crate::spikes::Heuristics;
use crate::statistics::{median, spearman};
use exmy::error::Result;

/// The share of runs that are most of them.
const MOST: f64 = 0.5;
const RATIO: &str =
    "the norm's variance (windows of 100 steps, median over the last fifth) over that of bf16";

pub(crate) const ASKS: Criterion = Criterion::new(
    &[
        ask(
            "the share of pairs with an MX format that spike or diverge",
            Is::Over(MOST),
            By::Value,
        ),
        ask("bf16", Is::So("does neither"), By::Value),
        ask(RATIO, Is::Over(1.0), By::Value),
    ],
    Opposite::All(&[
        ask("that share", Is::Exactly(0.0), By::Value),
        ask("bf16", Is::So("spikes or diverges"), By::Value),
        ask(RATIO, Is::Under(1.0), By::Value),
    ]),
);

pub(crate) const ONSET_ASKS: Criterion = Criterion::new(
    &[
        ask("the share of runs with an MX format that have an onset", Is::Over(MOST), By::Value),
        ask("the number of bf16 runs with one", Is::Exactly(0.0), By::Value),
    ],
    Opposite::All(&[
        ask("no run with an MX format", Is::So("has an onset"), By::Value),
        ask("a bf16 run", Is::So("has one"), By::Value),
    ]),
)
.noted(|| "The rule of an onset is the notebook's.".into());

/// The names of a grid point's formats, and whether it has an MX format.
fn formats(point: &GridPoint) -> ([&'static str; 2], bool) {
    let of = |axis| point.level(axis).map_or("", |level| level.name);
    let pair = ["weights", "activations"].map(of);
    (pair, pair != ["bf16"; 2])
}

/// `pairs` of MX and the base: spikes and divergences, and the median variance of the norm over the base's.
pub fn judge(unstable: usize, pairs: usize, base_unstable: bool, ratio: f64) -> Verdict {
    let variance = match ratio.is_nan() {
        true => "the runs are too short for the variance of their gradient norm".to_owned(),
        false => format!(
            "the variance of their gradient norm in the last windows is {ratio:.2} times that of bf16 \
             (median over pairs)"
        ),
    };
    let text = format!(
        "{unstable} of {pairs} pairs with MX have spikes or diverge, bf16 {}; {variance}",
        if base_unstable { "too" } else { "does not" }
    );
    match (unstable as f64 > MOST * pairs as f64 && !base_unstable, ratio) {
        (true, ratio) if ratio > 1.0 => Verdict::Reproduced(text),
        (false, ratio) if base_unstable && unstable == 0 && ratio < 1.0 => {
            Verdict::Contradicted(text)
        }
        _ => Verdict::NotSeen(text),
    }
}

fn last_variance(outcome: &Outcome) -> Option<f64> {
    let variances = Heuristics::default().variances(&outcome.norms);
    let values: Vec<f64> = variances.iter().map(|v| v.1).collect();
    median(&values[values.len() - values.len() / 5..])
}

/// What became of the pairs.
pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let mut table = Table::new(
        "final training loss (nats per byte) and what became of the run",
        &["weights", "activations", "steps", "loss", "run", "variance of the gradient norm"],
    );
    let mut parts = Vec::new();
    let (mut unstable, mut pairs, mut base_unstable) = (0, 0, false);
    let (mut variances, mut base) = (Vec::new(), f64::NAN);
    for weights in results.levels(results.grid.axis("weights")) {
        let mut losses = Panel::new(Axis::linear("training loss, nats per byte"));
        let mut norms = Panel::new(Axis::log("variance of the gradient norm, 100 steps"));
        for point in results.points.iter().filter(|point| point.level("weights") == Some(weights)) {
            let ([w, a], mx) = formats(point);
            for (planned, run) in results.trained(point)? {
                let outcome = Outcome::of(run, &planned);
                let variance = last_variance(&outcome);
                if mx {
                    pairs += 1;
                    unstable += usize::from(outcome.unstable());
                    variances.extend(variance);
                } else {
                    base_unstable |= outcome.unstable();
                    base = variance.unwrap_or(base);
                }
                table.row([
                    w.into(),
                    a.into(),
                    planned.config.train.steps.to_string(),
                    number(outcome.tail),
                    outcome.word(),
                    variance.map_or_else(|| "-".into(), number),
                ]);
                let name = format!("activations {a}");
                let windows = points(&Heuristics::default().variances(&outcome.norms));
                losses = losses.line(Series::new(&name, calm(&outcome.losses)));
                norms = norms.line(Series::new(&name, windows));
            }
        }
        let figure = plot::Figure::new(format!("Weights in {}", weights.name))
            .subtitle("one run each; loss: moving average over 2 % of the steps")
            .x(Axis::linear("step"));
        parts.push(Part::Picture(figure.panel(losses).panel(norms)));
    }
    parts.push(Part::Table(table));
    let ratio = median(&variances).unwrap_or(f64::NAN) / base;
    Ok(Findings::of(judge(unstable, pairs, base_unstable, ratio), parts))
}

/// Pairs of tokens a parameter and the step at which the loss turned up, of MX pairs; onsets of bf16.
pub fn judge_onsets(onsets: &[(f64, f64)], runs: usize, base: usize) -> Verdict {
    let (x, y): (Vec<f64>, Vec<f64>) = onsets.iter().copied().unzip();
    let rank = spearman(&x, &y);
    let text = format!(
        "the averaged loss rises by more than 0.008 in one step in {} of {runs} MX runs and in {base} of \
         bf16{}",
        onsets.len(),
        rank.map_or_else(String::new, |rank| format!(
            "; rank correlation of the step with tokens a parameter {rank:.2}"
        ))
    );
    match (onsets.len(), base) {
        (0, 0) => Verdict::NotSeen(text),
        (some, 0) if some as f64 > MOST * runs as f64 => Verdict::Reproduced(text),
        (0, _) => Verdict::Contradicted(text),
        _ => Verdict::NotSeen(text),
    }
}

/// When losses turn up.
pub(crate) fn onsets(results: &Results<'_>) -> Result<Findings> {
    let mut table = Table::new(
        "onsets by the notebook's rule: the first step of the averaged loss above 0.008, and the first turn \
         of the averaged gradient norm after step 120",
        &["weights", "activations", "tokens per parameter", "onset", "turn of the norm"],
    );
    let (mut onsets, mut count, mut base) = (Vec::new(), 0, 0);
    for point in &results.points {
        let ([w, a], mx) = formats(point);
        for (planned, run) in results.trained(point)? {
            let outcome = Outcome::of(run, &planned);
            let (n, d) = size(&planned);
            let rules = Heuristics::default();
            let onset = rules.onset(&outcome.losses);
            let turn = step(rules.reversal(&outcome.norms));
            table.row([w.into(), a.into(), format!("{:.2}", d / n), step(onset), turn]);
            if mx {
                count += 1;
                onsets.extend(onset.map(|onset| (d / n, onset as f64)));
            } else {
                base += usize::from(onset.is_some());
            }
        }
    }
    let picture = plot::Figure::new("Steps at which losses turn up")
        .subtitle("runs with an MX format that have such a step")
        .x(Axis::log("tokens per parameter"))
        .panel(
            Panel::new(Axis::linear("onset, step").include(0.0))
                .points(Series::new("MX pairs", onsets.iter().copied())),
        );
    let mut parts = vec![Part::Table(table)];
    if !onsets.is_empty() {
        parts.insert(0, Part::Picture(picture));
    }
    Ok(Findings::of(judge_onsets(&onsets, count, base), parts))
}
