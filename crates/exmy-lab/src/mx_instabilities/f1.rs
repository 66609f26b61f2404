//! F1a and F1b: loss and gradient norm of language models in bfloat16 and in MX E5M2.

use super::common::{Fate, Lm, later, lm_fate, seeds};
use super::draw::{calm, number, seeds as over_seeds};
use super::judge::{Paired, Side, by_seed};
use crate::arm::{Arm, Scale, Setting};
use crate::finding::{Figure, Findings, Part, Table, Verdict};
use crate::plot::{self, Axis, Panel};
use crate::store::Runs;
use exmy::error::Result;

/// F1a: bfloat16; F1b: MX.
pub(super) struct Curves {
    pub(super) mx: bool,
}

const BF16: &str = "mxpaper-bf16";
const MX: [(&str, &str); 2] = [("MX E5M2", "mxpaper-e5m2"), ("MX E2M1, as stress", "mxpaper-e2m1")];

impl Curves {
    fn recipes(&self) -> Vec<(&'static str, &'static str)> {
        let base = [("bf16", BF16)];
        if self.mx { base.into_iter().chain(MX).collect() } else { base.to_vec() }
    }

    fn rates(&self, setting: &Setting) -> Vec<f64> {
        match setting.scale {
            Scale::Paper => vec![2e-4],
            Scale::Smoke => vec![3e-3],
            _ if self.mx => vec![1e-3, 3e-3, 6e-3],
            _ => vec![1e-3],
        }
    }

    fn seeds(setting: &Setting) -> std::ops::RangeInclusive<u64> {
        seeds(setting, [1, 0, 1])
    }

    fn arm(setting: &Setting, recipe: &str, lr: f64, seed: u64) -> Arm {
        Lm { recipe: recipe.into(), lr, seed, ..Lm::of(setting) }.arm(setting)
    }

    fn fates(setting: &Setting, runs: &Runs<'_>, recipe: &str, lr: f64) -> Result<Vec<Fate>> {
        Self::seeds(setting)
            .map(|seed| lm_fate(runs, &Self::arm(setting, recipe, lr, seed)))
            .collect()
    }
}

/// Whether all runs are as smooth as bfloat16 is said to be.
fn judge_smooth(diverged: usize, spiked: usize, runs: usize) -> Verdict {
    let text = format!("of {runs} bf16 runs {diverged} diverge and {spiked} have spikes");
    match (diverged, spiked) {
        (0, 0) if runs > 0 => Verdict::Reproduced(text),
        (0, _) => Verdict::NotSeen(text),
        _ => Verdict::Contradicted(text),
    }
}

/// Whether E5M2 ends above bfloat16; losses of each rate by seed.
fn judge_worse(mx: &[Vec<f64>], base: &[Vec<f64>], spikes: (usize, usize)) -> Verdict {
    let compared = Paired::of(&by_seed(mx), &by_seed(base));
    let text = format!(
        "final loss of E5M2 less that of bf16, nats, mean over rates of each seed: {}; spikes {} against {}",
        compared.words(),
        spikes.0,
        spikes.1
    );
    compared.verdict(Side::Above, text)
}

impl Figure for Curves {
    fn id(&self) -> &'static str {
        if self.mx { "F1b" } else { "F1a" }
    }

    fn title(&self) -> &'static str {
        match self.mx {
            true => "language models in MX E5M2",
            false => "language models in bfloat16",
        }
    }

    fn source(&self) -> &'static str {
        match self.mx {
            true => {
                "Fig. 1b: OLMo models of 20 M to 1.7 G parameters, weights and activations in MX E5M2"
            }
            false => "Fig. 1a: the same in bfloat16",
        }
    }

    fn claim(&self) -> &'static str {
        match self.mx {
            true => {
                "E5M2 in all products makes larger and longer-trained models spike, their gradient norm grow, and \
                 they never recover. Counts as reproduced where final losses are above those of bf16 over pairs \
                 of one seed (95 % interval without 0); each seed counts once, with its mean over rates."
            }
            false => {
                "Training in bfloat16 is smooth. Counts as reproduced where no run has a spike or diverges."
            }
        }
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let mut arms = Vec::new();
        for lr in self.rates(setting) {
            for (_, recipe) in self.recipes() {
                arms.extend(Self::seeds(setting).map(|seed| Self::arm(setting, recipe, lr, seed)));
            }
        }
        arms
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if let Some(found) = later(setting) {
            return Ok(found);
        }
        let mut parts = Vec::new();
        let mut table = Table::new(
            "final training losses (nats per byte, mean of the last tenth and of the seeds)",
            &["numbers", "rate", "loss", "diverged", "spikes", "seeds"],
        );
        let (mut base, mut mx) = (Vec::new(), Vec::new());
        let (mut base_spikes, mut mx_spikes) = (0, 0);
        let (mut count, mut lost, mut spiked) = (0, 0, 0);
        for lr in self.rates(setting) {
            let mut loss = Panel::new(Axis::linear("training loss, nats per byte"));
            let mut norm = Panel::new(Axis::log("gradient norm"));
            for (name, recipe) in self.recipes() {
                let fates = Self::fates(setting, runs, recipe, lr)?;
                let of = |curve: fn(&Fate) -> &crate::detect::Curve| {
                    fates.iter().map(|fate| calm(curve(fate))).collect::<Vec<_>>()
                };
                loss = over_seeds(loss, name, &of(|fate| &fate.losses));
                norm = over_seeds(norm, name, &of(|fate| &fate.norms));
                let tails: Vec<f64> = fates.iter().map(|fate| fate.tail).collect();
                let diverged = fates.iter().filter(|fate| fate.diverged()).count();
                let spikes: usize = fates.iter().map(|fate| fate.verdict.spikes.len()).sum();
                table.row([
                    name.into(),
                    format!("{lr:e}"),
                    number(tails.iter().sum::<f64>() / tails.len() as f64),
                    diverged.to_string(),
                    spikes.to_string(),
                    tails.len().to_string(),
                ]);
                if recipe == BF16 {
                    count += fates.len();
                    lost += diverged;
                    spiked += fates.iter().filter(|f| !f.verdict.spikes.is_empty()).count();
                    base_spikes += spikes;
                    base.push(tails);
                } else if recipe == MX[0].1 {
                    mx_spikes += spikes;
                    mx.push(tails);
                }
            }
            let numbers = if self.mx { "E5M2 beside bfloat16" } else { "bfloat16" };
            parts.push(Part::Picture(
                plot::Figure::new(format!(
                    "Loss and gradient norm in {numbers}, learning rate {lr:e}"
                ))
                .subtitle(
                    "median of the seeds and their range; moving average over 2 % of the steps",
                )
                .x(Axis::linear("step"))
                .panel(loss)
                .panel(norm),
            ));
        }
        parts.push(Part::Table(table));
        let verdict = match self.mx {
            true => judge_worse(&mx, &base, (mx_spikes, base_spikes)),
            false => judge_smooth(lost, spiked, count),
        };
        Ok(Findings { verdict, parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_counts_and_pairs() {
        assert_eq!(judge_smooth(0, 0, 3).word(), "reproduced");
        assert_eq!(judge_smooth(0, 1, 3).word(), "not seen at this scale");
        assert_eq!(judge_smooth(1, 1, 3).word(), "contradicted");
        let (low, high) = ([vec![2.0, 2.1, 2.2]], [vec![2.5, 2.58, 2.72]]);
        assert_eq!(judge_worse(&high, &low, (3, 0)).word(), "reproduced");
        assert_eq!(judge_worse(&low, &high, (0, 0)).word(), "contradicted");
        let crossed = judge_worse(&[vec![2.0, 2.6, 2.2]], &[vec![2.1, 2.1, 2.3]], (0, 0));
        assert_eq!(crossed.word(), "not seen at this scale");
    }

    /// Means of two rates differ by 2, 3 and 5.5: 3.5 with an interval that reaches 4.48 to each side. Six pairs would
    /// be told from 0.
    #[test]
    fn each_seed_counts_once() {
        let mx = [vec![11.0, 22.0, 33.0], vec![12.0, 23.0, 38.0]];
        let base = [vec![10.0, 20.0, 30.0], vec![9.0, 19.0, 30.0]];
        let verdict = judge_worse(&mx, &base, (0, 0));
        assert_eq!(verdict.word(), "not seen at this scale");
        let reason = verdict.reason();
        assert!(reason.contains("+3.500 [-0.978, +7.978], 3 of 3 pairs above 0"), "{reason}");
        let pairs = Paired::of(&mx.concat(), &base.concat());
        assert_eq!(pairs.side, Side::Above, "pairs, as if they were independent");
    }
}
