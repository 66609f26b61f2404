//! App J and Nb-2: all pairs of formats of weights and activations, and when their losses turn up.

use super::common::{Fate, Lm, later, lm_fate};
use super::draw::{calm, number, points};
use crate::arm::{Arm, Setting};
use crate::detect::Heuristics;
use crate::finding::{Figure, Findings, Part, Table, Verdict};
use crate::plot::{self, Axis, Panel, Series};
use crate::statistics::{median, spearman};
use crate::store::Runs;
use exmy::error::Result;

/// App J.
pub(super) struct Pairs;

/// Nb-2, from the runs of App J.
pub(super) struct Onsets;

const FORMATS: [&str; 5] = ["e2m3", "e3m2", "e4m3", "e5m2", "bf16"];

fn formats(setting: &Setting) -> &'static [&'static str] {
    setting.scale.pick([&FORMATS[3..], &FORMATS[..0], &FORMATS])
}

/// Weights, activations, steps.
fn cells(setting: &Setting) -> Vec<(&'static str, &'static str, u64)> {
    let steps = setting.scale.pick([vec![12], Vec::new(), vec![6509]]);
    let mut all = Vec::new();
    for &w in formats(setting) {
        for &a in formats(setting) {
            all.extend(steps.iter().map(|&steps| (w, a, steps)));
        }
    }
    all
}

fn lm(setting: &Setting, (w, a, steps): (&str, &str, u64)) -> Lm {
    let recipe = match (w, a) {
        ("bf16", "bf16") => "mxpaper-bf16".to_owned(),
        _ => format!("mxpaper-e4m3+w={w}+a={a}"),
    };
    let small = Lm::of(setting);
    // The smallest model, at a rate that stresses it.
    let (layers, width) = setting.scale.pick([(1, 64), (2, 64), (4, 256)]);
    let lr = setting.scale.pick([3e-3, 6e-3, 2e-4]);
    Lm { recipe, layers, width, steps, lr, ..small }
}

fn fate(setting: &Setting, runs: &Runs<'_>, cell: (&str, &str, u64)) -> Result<Fate> {
    lm_fate(runs, &lm(setting, cell).arm(setting))
}

/// `pairs` of MX and the base: spikes and divergences, and the median variance of the norm over the base's.
fn judge(unstable: usize, pairs: usize, base_unstable: bool, ratio: f64) -> Verdict {
    let text = format!(
        "{unstable} of {pairs} pairs with MX have spikes or diverge, bf16 {}; the variance of their gradient norm in \
         the last windows is {ratio:.2} times that of bf16 (median over pairs)",
        if base_unstable { "too" } else { "does not" }
    );
    match (2 * unstable > pairs && !base_unstable, ratio) {
        (true, ratio) if ratio > 1.0 => Verdict::Reproduced(text),
        (false, ratio) if base_unstable && unstable == 0 && ratio < 1.0 => {
            Verdict::Contradicted(text)
        }
        _ => Verdict::NotSeen(text),
    }
}

fn last_variance(fate: &Fate) -> Option<f64> {
    let variances = Heuristics::default().variances(&fate.norms);
    let values: Vec<f64> = variances.iter().map(|v| v.1).collect();
    median(&values[values.len() - values.len() / 5..])
}

impl Figure for Pairs {
    fn id(&self) -> &'static str {
        "AppJ"
    }

    fn title(&self) -> &'static str {
        "all pairs of formats"
    }

    fn source(&self) -> &'static str {
        "Appendix J: more unstable pairs of weight and activation formats, and the variance of their gradient norms"
    }

    fn claim(&self) -> &'static str {
        "Pairs of MX formats become unstable, and the variance of the gradient norm grows with it. Counts as \
         reproduced where more than half of the pairs with an MX format have spikes or diverge, bf16 does \
         not, and the norm's variance (windows of 100 steps, median over the last fifth) is above that of bf16."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        cells(setting).into_iter().map(|cell| lm(setting, cell).arm(setting)).collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if let Some(found) = later(setting) {
            return Ok(found);
        }
        let mut table = Table::new(
            "final training loss (nats per byte) and what became of the run",
            &["weights", "activations", "steps", "loss", "run", "variance of the gradient norm"],
        );
        let mut panels: Vec<(&str, Panel, Panel)> = formats(setting)
            .iter()
            .map(|&w| {
                let loss = Panel::new(Axis::linear("training loss, nats per byte"));
                (w, loss, Panel::new(Axis::log("variance of the gradient norm, 100 steps")))
            })
            .collect();
        let longest = cells(setting).iter().map(|cell| cell.2).max().unwrap_or(0);
        let (mut unstable, mut pairs, mut base_unstable) = (0, 0, false);
        let (mut variances, mut base) = (Vec::new(), f64::NAN);
        for cell in cells(setting) {
            let (w, a, steps) = cell;
            let fate = fate(setting, runs, cell)?;
            let variance = last_variance(&fate);
            let bad = fate.diverged() || !fate.verdict.spikes.is_empty();
            if (w, a) == ("bf16", "bf16") {
                base_unstable |= bad;
                base = variance.unwrap_or(base);
            } else {
                pairs += 1;
                unstable += usize::from(bad);
                variances.extend(variance);
            }
            table.row([
                w.into(),
                a.into(),
                steps.to_string(),
                number(fate.tail),
                fate.word(),
                variance.map_or_else(|| "-".into(), number),
            ]);
            if let (true, Some(entry)) = (steps == longest, panels.iter_mut().find(|p| p.0 == w)) {
                let name = format!("activations {a}");
                let windows = points(&Heuristics::default().variances(&fate.norms));
                entry.1 = std::mem::replace(&mut entry.1, Panel::new(Axis::linear("")))
                    .line(Series::new(&name, calm(&fate.losses)));
                entry.2 = std::mem::replace(&mut entry.2, Panel::new(Axis::linear("")))
                    .line(Series::new(&name, windows));
            }
        }
        let mut parts: Vec<Part> = panels
            .into_iter()
            .map(|(w, loss, variance)| {
                let figure = plot::Figure::new(format!("Weights in {w}"))
                    .subtitle("one run each; loss: moving average over 2 % of the steps")
                    .x(Axis::linear("step"));
                Part::Picture(figure.panel(loss).panel(variance))
            })
            .collect();
        parts.push(Part::Table(table));
        let ratio = median(&variances).unwrap_or(f64::NAN) / base;
        Ok(Findings { verdict: judge(unstable, pairs, base_unstable, ratio), parts })
    }
}

/// Pairs of tokens a parameter and the step at which the loss turned up, of MX pairs; onsets of bf16.
fn judge_onsets(onsets: &[(f64, f64)], runs: usize, base: usize) -> Verdict {
    let (x, y): (Vec<f64>, Vec<f64>) = onsets.iter().copied().unzip();
    let rank = spearman(&x, &y);
    let text = format!(
        "the averaged loss rises by more than 0.008 in one step in {} of {runs} MX runs and in {base} of bf16{}",
        onsets.len(),
        rank.map_or_else(String::new, |rank| format!(
            "; rank correlation of the step with tokens a parameter {rank:.2}"
        ))
    );
    match (onsets.len(), base) {
        (0, 0) => Verdict::NotSeen(text),
        (some, 0) if 2 * some > runs => Verdict::Reproduced(text),
        (0, _) => Verdict::Contradicted(text),
        _ => Verdict::NotSeen(text),
    }
}

impl Figure for Onsets {
    fn id(&self) -> &'static str {
        "Nb-2"
    }

    fn title(&self) -> &'static str {
        "when losses turn up"
    }

    fn source(&self) -> &'static str {
        "the published notebook's plot of the first step whose averaged loss (100 steps) rises by more than 0.008, \
         against tokens per parameter"
    }

    fn claim(&self) -> &'static str {
        "Runs in MX have an onset of instability, bfloat16 has none. Counts as reproduced where more than half of \
         the runs with an MX format have one by the notebook's rule and no bf16 run has."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        Pairs.arms(setting)
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if let Some(found) = later(setting) {
            return Ok(found);
        }
        let mut table = Table::new(
            "onsets by the notebook's rule: the first step of the averaged loss above 0.008, and the first turn of the \
             averaged gradient norm after step 120",
            &["weights", "activations", "tokens per parameter", "onset", "turn of the norm"],
        );
        let (mut onsets, mut count, mut base) = (Vec::new(), 0, 0);
        for cell in cells(setting) {
            let (w, a, _) = cell;
            let fate = fate(setting, runs, cell)?;
            let (n, d) = lm(setting, cell).size(setting);
            let rules = Heuristics::default();
            let onset = rules.onset(&fate.losses);
            let step = |step: Option<u64>| step.map_or_else(|| "-".into(), |step| step.to_string());
            table.row([
                w.into(),
                a.into(),
                format!("{:.2}", d / n),
                step(onset),
                step(rules.turn(&fate.norms)),
            ]);
            if (w, a) == ("bf16", "bf16") {
                base += usize::from(onset.is_some());
            } else {
                count += 1;
                onsets.extend(onset.map(|onset| (d / n, onset as f64)));
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
        Ok(Findings { verdict: judge_onsets(&onsets, count, base), parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_of_pairs() {
        assert_eq!(judge(13, 24, false, 1.5).word(), "reproduced");
        assert_eq!(judge(13, 24, true, 1.5).word(), "not seen at this scale");
        assert_eq!(judge(2, 24, false, 0.9).word(), "not seen at this scale");
        assert_eq!(judge(0, 24, true, 0.9).word(), "contradicted");
    }

    #[test]
    fn verdicts_of_onsets() {
        let some = [(1.0, 300.0), (3.0, 900.0)];
        assert_eq!(judge_onsets(&some, 3, 0).word(), "reproduced");
        assert_eq!(judge_onsets(&some, 30, 0).word(), "not seen at this scale");
        assert_eq!(judge_onsets(&[], 3, 0).word(), "not seen at this scale");
        assert_eq!(judge_onsets(&[], 3, 1).word(), "contradicted");
    }
}
