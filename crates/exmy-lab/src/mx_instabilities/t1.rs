//! T1: what the two strategies that stay stable lose against full precision.

use super::common::{Lm, lm_fate, seeds};
use super::judge::by_seed;
use crate::arm::{Arm, Setting};
use crate::finding::{Figure, Findings, Part, Table, Verdict};
use crate::plot::{self, Axis, Panel, Series};
use crate::statistics::{Interval, mean, paired_interval, sd};
use crate::store::Runs;
use exmy::error::Result;

/// T1.
pub(super) struct Gaps;

/// Names and recipes; the first is what the others are compared with.
const RECIPES: [(&str, &str); 4] = [
    ("bf16", "mxpaper-bf16"),
    ("E4M3", "mxpaper-e4m3+ln-affine=mx"),
    ("E4M3 weights, bf16 rest", "mxpaper-e4m3+bf16-act-all"),
    ("E4M3 forward only", "mxpaper-e4m3+fwd-only"),
];
/// Those of which the table says that they lose nothing.
const HYBRIDS: [usize; 2] = [2, 3];

/// Layers and widths, and steps.
fn grid(setting: &Setting) -> Vec<(usize, usize, u64)> {
    let sizes = setting.scale.pick([
        vec![(1, 64)],
        vec![(1, 64), (2, 64), (2, 128)],
        vec![(4, 256), (8, 512), (11, 704)],
    ]);
    let steps = setting.scale.pick([vec![12], vec![100, 200, 400], vec![1627, 3254, 6509]]);
    let of = |&(layers, width): &(usize, usize)| {
        steps.iter().map(move |&steps| (layers, width, steps)).collect::<Vec<_>>()
    };
    sizes.iter().flat_map(of).collect()
}

fn lm(
    setting: &Setting,
    (layers, width, steps): (usize, usize, u64),
    recipe: usize,
    seed: u64,
) -> Lm {
    let recipe = RECIPES[recipe].1.into();
    Lm { recipe, layers, width, steps, seed, ..Lm::of(setting) }
}

fn all_seeds(setting: &Setting) -> std::ops::RangeInclusive<u64> {
    seeds(setting, [2, 3, 1])
}

/// A strategy: its gaps to bfloat16, and those less the gaps of E4M3 everywhere.
type Compared = (String, Option<Interval>, Option<Interval>);

/// The mean of the paired differences of two recipes, whose cells have a loss for each seed, and its interval over seeds.
fn difference(a: &[Vec<f64>], b: &[Vec<f64>]) -> Option<Interval> {
    paired_interval(&by_seed(a), &by_seed(b), 0.95)
}

/// The strategies must end nearer to full precision than the numbers they keep out of something.
fn judge(strategies: &[Compared]) -> Verdict {
    let shown = |interval: Option<Interval>| match interval {
        Some(i) => format!("{:+.4} [{:+.4}, {:+.4}]", i.estimate, i.low, i.high),
        None => "without interval".into(),
    };
    let words = |(name, gap, less): &Compared| {
        format!("{name} {}, minus that of E4M3 everywhere {}", shown(*gap), shown(*less))
    };
    let list = strategies.iter().map(words).collect::<Vec<_>>().join("; ");
    let text = format!(
        "mean gaps of validation losses to bf16 and their intervals over seeds, nats: {list}"
    );
    let all = |side: fn(Interval) -> bool| {
        !strategies.is_empty() && strategies.iter().all(|(.., less)| less.is_some_and(side))
    };
    Verdict::of(all(|less| less.high < 0.0), all(|less| less.low > 0.0), text)
}

impl Figure for Gaps {
    fn id(&self) -> &'static str {
        "T1"
    }

    fn title(&self) -> &'static str {
        "validation-loss gaps of the stable strategies"
    }

    fn source(&self) -> &'static str {
        "Table 1: final validation loss less that of full precision, by tokens per parameter and compute, for \
         MX weights with bfloat16 activations and for MX in the forward pass alone"
    }

    fn claim(&self) -> &'static str {
        "E4M3 weights with bfloat16 activations, and E4M3 in the forward pass alone, end closer to full precision than \
         E4M3 everywhere does. Counts as reproduced where the gap of each to bfloat16 is below that of \
         E4M3 everywhere (95 % interval of the paired difference below 0; each seed counts once, with its mean over all sizes and \
         budgets), and as contradicted \
         where both are above it; how large the gaps are is told beside it."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let mut arms = Vec::new();
        for cell in grid(setting) {
            for recipe in 0..RECIPES.len() {
                arms.extend(
                    all_seeds(setting).map(|seed| lm(setting, cell, recipe, seed).arm(setting)),
                );
            }
        }
        arms
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut table = Table::new(
            "validation loss of bf16 (nats per byte) and gaps to it, means over seeds in thousandths of a nat; +-: \
             standard deviation of bf16 over seeds, likewise",
            &[
                "parameters",
                "tokens per parameter",
                "compute, TFLOP",
                "bf16",
                "+-",
                RECIPES[1].0,
                RECIPES[2].0,
                RECIPES[3].0,
            ],
        );
        let mut all: [Vec<Vec<f64>>; 4] = Default::default();
        let mut squares = Vec::new();
        let mut points: [Vec<(f64, f64)>; 4] = Default::default();
        for cell in grid(setting) {
            let mut losses: [Vec<f64>; 4] = Default::default();
            for (recipe, losses) in losses.iter_mut().enumerate() {
                for seed in all_seeds(setting) {
                    let fate = lm_fate(runs, &lm(setting, cell, recipe, seed).arm(setting))?;
                    losses.push(fate.trained.summary.val_loss.unwrap_or(f64::INFINITY));
                }
            }
            let (n, d) = lm(setting, cell, 0, 1).size(setting);
            let middle = |values: &[f64]| mean(values).unwrap_or(f64::NAN);
            let base = middle(&losses[0]);
            let scatter = sd(&losses[0]);
            squares.extend(scatter.map(|sd| sd * sd));
            let milli = |value: f64| format!("{:+.1}", 1e3 * value);
            table.row([
                format!("{n}"),
                format!("{:.2}", d / n),
                format!("{:.3}", 6.0 * n * d / 1e12),
                format!("{base:.4}"),
                scatter.map_or_else(|| "-".into(), |sd| format!("{:.1}", 1e3 * sd)),
                milli(middle(&losses[1]) - base),
                milli(middle(&losses[2]) - base),
                milli(middle(&losses[3]) - base),
            ]);
            for (recipe, losses) in losses.into_iter().enumerate() {
                points[recipe].push((6.0 * n * d / 1e12, 1e3 * (middle(&losses) - base)));
                all[recipe].push(losses);
            }
        }
        let scatter = mean(&squares).unwrap_or(f64::NAN).sqrt();
        let of = |recipe: usize| (RECIPES[recipe].0.to_owned(), difference(&all[recipe], &all[0]));
        let compared = |recipe: usize| {
            let (name, gap) = of(recipe);
            (name, gap, difference(&all[recipe], &all[1]))
        };
        let mut panel = Panel::new(Axis::linear("gap to bf16, thousandths of a nat"))
            .rule(0.0, "")
            .rule(1e3 * scatter, "+ sd over seeds")
            .rule(-1e3 * scatter, "- sd over seeds");
        for recipe in 1..RECIPES.len() {
            panel = panel.points(Series::new(RECIPES[recipe].0, points[recipe].iter().copied()));
        }
        let picture = plot::Figure::new("Validation losses beside those of bf16")
            .subtitle("one point for each size and budget, mean of the seeds; between the lines: the scatter of seeds")
            .x(Axis::log("compute 6 N D, TFLOP"))
            .panel(panel);
        let (name, whole) = of(1);
        let text = match whole {
            Some(i) => format!(
                "{name} everywhere, of which nothing is claimed: {:+.4} [{:+.4}, {:+.4}] nats.",
                i.estimate, i.low, i.high
            ),
            None => format!("{name} everywhere has no interval."),
        };
        Ok(Findings {
            verdict: judge(&HYBRIDS.map(compared)),
            parts: vec![Part::Picture(picture), Part::Table(table), Part::Text(text)],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_held_to_what_they_keep_out() {
        let of = |low: f64, high: f64| {
            let less = Interval { estimate: f64::midpoint(low, high), low, high };
            ("strategy".to_owned(), None, Some(less))
        };
        let word = |all: &[Compared]| judge(all).word();
        let below = of(-0.01, -0.002);
        assert_eq!(word(&[below.clone(), of(-0.02, -0.001)]), "reproduced");
        assert_eq!(word(&[below.clone(), of(-0.02, 0.001)]), "not seen at this scale");
        assert_eq!(word(&[of(0.001, 0.02), of(0.002, 0.003)]), "contradicted");
        assert_eq!(word(&[below.clone(), of(0.002, 0.003)]), "not seen at this scale");
        assert_eq!(word(&[below, ("strategy".into(), None, None)]), "not seen at this scale");
        assert_eq!(word(&[]), "not seen at this scale");
    }
    /// By hand: the means over the two cells are 2, 3 and 5.5, their deviation is 1.8028 and t of 2 degrees 4.3027, so
    /// that 3.5 cannot be told from 0. Six pairs would (deviation 2.4290, t 2.5706): from 0.951 on.
    #[test]
    fn each_seed_counts_once() {
        let cells = [vec![11.0, 22.0, 33.0], vec![12.0, 23.0, 38.0]];
        let base = [vec![10.0, 20.0, 30.0], vec![9.0, 19.0, 30.0]];
        let found = difference(&cells, &base).unwrap();
        assert!((found.estimate - 3.5).abs() < 1e-12, "{found:?}");
        assert!((found.low - (3.5 - 4.3027 * 1.8028 / 3.0_f64.sqrt())).abs() < 1e-3, "{found:?}");
        let strategy = |less| judge(&[("strategy".into(), None, less)]).word();
        assert_eq!(strategy(difference(&base, &cells)), "not seen at this scale");
        let pairs = paired_interval(&base.concat(), &cells.concat(), 0.95);
        assert_eq!(strategy(pairs), "reproduced", "pairs, as if they were independent");
    }
}
