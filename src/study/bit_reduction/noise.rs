//! BR-10: whether noisier data widen the gap between FP8 and bfloat16.

use super::common::{Spec, all, seeds, tails, with_seeds};
use super::rates::with_interval;
use crate::error::Result;
use crate::plot::{self, Axis, Panel};
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::finding::{Figure, Findings, Part, Table, Verdict};
use crate::study::statistics::paired_interval;
use crate::study::store::Runs;

pub(super) struct Noise;

const SHARES: [f64; 3] = [0.0, 0.1, 0.3];
const RECIPES: [(&str, &str); 2] = [("BF16", "bf16"), ("FP8", "msamp-o1")];

fn arms_of(setting: &Setting, recipe: &str, share: f64) -> Vec<Arm> {
    let steps = setting.scale.pick([20, 600, 1200, 120_000]);
    let preset = if setting.scale == Scale::Full { "gpt2-124m" } else { "nano" };
    let lr = if setting.scale == Scale::Full { 6e-4 } else { 3e-3 };
    let more = format!("data.noise = {share:?}\n");
    seeds(setting, [1, 5, 5, 3])
        .map(|seed| {
            Spec { lr, more: more.clone(), ..Spec::new(preset, recipe, seed, steps) }.arm(setting)
        })
        .collect()
}

/// How much wider the gap is with the most noise than without, seed by seed. Where neither gap is told from 0 there is
/// none that could change.
fn judge(clean: [&[f64]; 2], noisy: [&[f64]; 2]) -> Verdict {
    let gaps = |[base, fp8]: [&[f64]; 2]| -> Vec<f64> {
        fp8.iter().zip(base).map(|(fp8, base)| fp8 - base).collect()
    };
    let wider = paired_interval(&gaps(noisy), &gaps(clean), 0.95);
    let is_gap = |[base, fp8]: [&[f64]; 2]| {
        paired_interval(fp8, base, 0.95).is_some_and(|gap| gap.low > 0.0)
    };
    let (before, after) = (is_gap(clean), is_gap(noisy));
    match wider {
        None => Verdict::NotSeen("too few seeds for an interval".into()),
        Some(wider) => {
            let told = |is_gap| if is_gap { "is" } else { "is not" };
            let text = format!(
                "with the most noise the gap of FP8 is {:+.4} nats wider (95 % interval {:+.4} to {:+.4}); it {} told from 0 \
                 without noise and {} with it",
                wider.estimate,
                wider.low,
                wider.high,
                told(before),
                told(after)
            );
            Verdict::of(after && wider.low > 0.0, before && wider.high < 0.0, text)
        }
    }
}

impl Figure for Noise {
    fn id(&self) -> &'static str {
        "BR-10"
    }

    fn title(&self) -> &'static str {
        "FP8 on noisier data"
    }

    fn source(&self) -> &'static str {
        "v2 Fig. 12: FP8 on data sets of different quality; which they were is not known"
    }

    fn claim(&self) -> &'static str {
        "Worse data widen the gap between FP8 and BF16. Here tokens of the text are replaced by random ones, the same in every \
         run. Reproduced where the gap with three tenths of the tokens replaced is wider than without (interval of \
         the difference of paired gaps above 0) and told from 0, contradicted where the opposite holds of the gap without."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let of = |share| RECIPES.into_iter().flat_map(move |(_, r)| arms_of(setting, r, share));
        SHARES.into_iter().flat_map(of).collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut table = Table::new(
            "mean training loss of the last tenth, nats/token, with 95 % intervals over seeds, and the paired gap",
            &["tokens replaced, %", "BF16", "FP8", "gap"],
        );
        let mut panel = Panel::new(Axis::linear("smoothed training loss, nats/token"));
        let mut cells: Vec<[Vec<f64>; 2]> = Vec::new();
        for share in SHARES {
            let percent = format!("{:.0}", 100.0 * share);
            let mut cell = [Vec::new(), Vec::new()];
            for ((name, recipe), losses) in RECIPES.into_iter().zip(&mut cell) {
                let trained = all(runs, &arms_of(setting, recipe, share))?;
                *losses = tails(&trained);
                panel = with_seeds(panel, &format!("{name}, {percent} %"), &trained);
            }
            let gap = paired_interval(&cell[1], &cell[0], 0.95);
            let gap = gap.map_or_else(
                || "too few seeds".into(),
                |gap| format!("{:+.4} ({:+.4} to {:+.4})", gap.estimate, gap.low, gap.high),
            );
            table.row([percent, with_interval(&cell[0]), with_interval(&cell[1]), gap]);
            cells.push(cell);
        }
        let (clean, noisy) = (&cells[0], &cells[cells.len() - 1]);
        let verdict = judge([&clean[0], &clean[1]], [&noisy[0], &noisy[1]]);
        let picture = plot::Figure::new("BF16 and FP8 with random tokens in the text")
            .subtitle("mean and range over seeds; the loss of random tokens is part of all")
            .x(Axis::linear("step"))
            .panel(panel);
        Ok(Findings { verdict, parts: vec![Part::Table(table), Part::Picture(picture)] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_can_be_reached() {
        let base = [2.0, 2.1, 1.9];
        let at = |gap: f64| [base[0] + gap, base[1] + gap + 0.01, base[2] + gap];
        let word = |clean: f64, noisy: f64| {
            judge(
                [&base, &at(clean)],
                [&base, &[base[0] + noisy, base[1] + noisy, base[2] + noisy]],
            )
            .word()
        };
        assert_eq!(word(0.1, 0.5), "reproduced");
        assert_eq!(word(0.5, 0.1), "contradicted");
        assert_eq!(word(0.1, 0.1), "not seen at this scale");
        assert_eq!(word(0.0, -0.3), "not seen at this scale", "no gap that could narrow");
        assert_eq!(word(-0.5, -0.1), "not seen at this scale", "no gap that widens");
    }
}
