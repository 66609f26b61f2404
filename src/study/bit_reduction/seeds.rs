//! BR-1: how many seeds fail in bfloat16, in TF32 and in E8M3.

use super::common::{Spec, all, fate, seeds, vocab, with_seeds};
use crate::error::Result;
use crate::plot::{self, Axis, Panel};
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::finding::{Figure, Findings, Part, Table, Verdict};
use crate::study::statistics::{fisher, wilson};
use crate::study::store::Runs;

pub(super) struct Seeds;

const RECIPES: [&str; 3] = ["tf32", "bf16", "bitred-e8m3"];

/// Learning rates without warm-up: the paper's way to fail is its length, which two cores do not have.
fn rates(setting: &Setting) -> &'static [f64] {
    match setting.scale {
        Scale::Smoke => &[3e-2],
        Scale::Small | Scale::Medium => &[1e-2, 3e-2, 1e-1],
        Scale::Full => &[6e-4],
    }
}

fn arms_of(setting: &Setting, recipe: &str, lr: f64) -> Vec<Arm> {
    let steps = setting.scale.pick([20, 300, 600, 30_000]);
    let preset = setting.scale.pick(["gpt-nano", "gpt-nano", "gpt-nano", "gpt2-124m"]);
    let warmup = 0.0;
    seeds(setting, [2, 20, 60, 188])
        .map(|seed| Spec { lr, warmup, ..Spec::new(preset, recipe, seed, steps) }.arm(setting))
        .collect()
}

/// A rate, and how many of how many runs fail in TF32, bfloat16 and E8M3.
type Cell = (f64, [(u64, u64); 3]);

/// What shares of failed runs say about the claim that bfloat16 fails more often than TF32.
fn judge(cells: &[Cell]) -> Verdict {
    let word = |&(lr, [tf32, bf16, e8m3]): &Cell| {
        format!(
            "at {lr:e}: TF32 {}/{}, BF16 {}/{}, E8M3 {}/{}",
            tf32.0, tf32.1, bf16.0, bf16.1, e8m3.0, e8m3.1
        )
    };
    let text = cells.iter().map(word).collect::<Vec<_>>().join("; ");
    // The rate at which the first fails most surely more often than the second, and how sure that is.
    let surest = |pair: fn(&Cell) -> [(u64, u64); 2]| {
        let of = |cell: &Cell| (cell.0, fisher(pair(cell)[0], pair(cell)[1]).unwrap_or(1.0));
        let surer = |a: &(f64, f64), b: &(f64, f64)| a.1.total_cmp(&b.1);
        cells.iter().map(of).min_by(surer).unwrap_or((f64::NAN, 1.0))
    };
    let (more, fewer) =
        (surest(|cell| [cell.1[1], cell.1[0]]), surest(|cell| [cell.1[0], cell.1[1]]));
    // One test a rate.
    let level = 0.05 / cells.len() as f64;
    let said = |(lr, p): (f64, f64)| {
        format!("failed runs {text} (Fisher, one-sided, p = {p:.4} at {lr:e})")
    };
    if more.1 < level {
        Verdict::Reproduced(said(more))
    } else if fewer.1 < level {
        Verdict::Contradicted(said(fewer))
    } else {
        Verdict::NotSeen(format!("failed runs {text} (no p below {level:.3})"))
    }
}

impl Figure for Seeds {
    fn id(&self) -> &'static str {
        "BR-1"
    }

    fn title(&self) -> &'static str {
        "failed seeds in TF32, BF16 and E8M3"
    }

    fn source(&self) -> &'static str {
        "v1 and v2 Fig. 1, and the text: 18 of 188 runs of GPT-2 124M in BF16 diverged within the first 5 % of \
         training, 0 of 70 in TF32"
    }

    fn claim(&self) -> &'static str {
        "BF16 fails on some seeds on which TF32 does not. Reproduced where, at one of the learning rates, more runs \
         fail in BF16 than in TF32 by Fisher's exact test (one-sided, 5 % over all rates together). A run fails \
         if its smoothed loss ends 0.5 nats above its lowest, above nine tenths of a guess, or not finite."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let rates = rates(setting).iter();
        rates
            .flat_map(|&lr| RECIPES.into_iter().flat_map(move |r| arms_of(setting, r, lr)))
            .collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut table = Table::new(
            "failed runs, with Wilson's 95 % interval of the share, and spikes per 1000 steps",
            &["lr", "recipe", "failed", "of", "low, %", "high, %", "spikes"],
        );
        let mut cells = Vec::new();
        let mut parts = Vec::new();
        for &lr in rates(setting) {
            let mut counts = [(0, 0); 3];
            let mut panel = Panel::new(Axis::linear("smoothed training loss, nats/token"));
            for (count, recipe) in counts.iter_mut().zip(RECIPES) {
                let arms = arms_of(setting, recipe, lr);
                let trained = all(runs, &arms)?;
                let fates: Vec<_> =
                    trained.iter().zip(&arms).map(|(run, arm)| fate(run, vocab(arm))).collect();
                let failed = fates.iter().filter(|fate| fate.failed).count() as u64;
                *count = (failed, fates.len() as u64);
                let spikes: usize = fates.iter().map(|fate| fate.verdict.spikes.len()).sum();
                let steps: usize = fates.iter().map(|fate| fate.steps).sum();
                let share = wilson(count.0, count.1, 0.95);
                let percent =
                    |x: Option<f64>| x.map_or_else(|| "-".into(), |x| format!("{:.1}", 100.0 * x));
                table.row([
                    format!("{lr:e}"),
                    recipe.into(),
                    count.0.to_string(),
                    count.1.to_string(),
                    percent(share.map(|share| share.low)),
                    percent(share.map(|share| share.high)),
                    format!("{:.2}", 1000.0 * spikes as f64 / steps.max(1) as f64),
                ]);
                panel = with_seeds(panel, recipe, &trained);
            }
            cells.push((lr, counts));
            let title = format!("Mean and range over seeds at learning rate {lr:e}, no warm-up");
            parts
                .push(Part::Picture(plot::Figure::new(title).x(Axis::linear("step")).panel(panel)));
        }
        parts.insert(0, Part::Table(table));
        Ok(Findings { verdict: judge(&cells), parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_can_be_reached() {
        let word = |tf32, bf16| judge(&[(1e-2, [tf32, bf16, (0, 20)])]).word();
        assert_eq!(word((0, 70), (18, 188)), "reproduced");
        assert_eq!(word((0, 20), (2, 20)), "not seen at this scale");
        assert_eq!(word((9, 20), (0, 20)), "contradicted");
    }
}
