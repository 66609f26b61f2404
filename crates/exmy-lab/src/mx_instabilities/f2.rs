//! F2a and F2b: the proxy with and without norms, by activation function, in f32 and in MX.

use super::common::{F32, Fate, Proxy, STILL, code, proxy_fate, seeds, text};
use super::draw::{calm, number, seeds as over_seeds};
use super::judge::{self, Paired, Side};
use crate::arm::{Arm, Setting};
use crate::finding::{Figure, Findings, Part, Table, Verdict};
use crate::plot::{self, Axis, Panel};
use crate::statistics::mean;
use crate::store::Runs;
use exmy::error::Result;

/// F2a: with norms; F2b: without.
pub(super) struct Activations {
    pub(super) norm: bool,
}

const ACTIVATIONS: [&str; 3] = ["gelu", "relu", "swiglu"];

/// What F-zeta, F4 and others share with F2a: measured in full where the recipe rounds.
pub(super) fn proxy(setting: &Setting, recipe: &str, activation: &'static str, lr: f64) -> Proxy {
    let canonical = Proxy::of(setting);
    let full = activation == "gelu" && recipe == text("e4m3");
    let probes: &[&str] = match full {
        true => &["lastbin.gamma", "rho_same", "cos_same", "rho_traj", "cos_traj"],
        false => &["lastbin.gamma"],
    };
    Proxy { recipe: recipe.into(), activation, lr, probes, ..canonical }
}

/// The rates, the second one stressed.
pub(super) fn rates(setting: &Setting) -> Vec<f64> {
    setting.scale.pick([vec![3e-3], vec![3e-3, 1e-2], vec![6e-4, 1e-3]])
}

impl Activations {
    fn recipes(&self) -> Vec<String> {
        match self.norm {
            true => vec![F32.into(), STILL.into(), code("e4m3"), text("e4m3")],
            // Without norms there are no gains, and text and code are the same.
            false => vec![F32.into(), code("e4m3")],
        }
    }

    fn seeds(setting: &Setting) -> std::ops::RangeInclusive<u64> {
        seeds(setting, [1, 3, 3])
    }

    fn activations(&self, setting: &Setting) -> &'static [&'static str] {
        // A reduced version where the hour is short.
        setting.scale.pick([
            &ACTIVATIONS[..1],
            if self.norm { &ACTIVATIONS } else { &ACTIVATIONS[..1] },
            &ACTIVATIONS,
        ])
    }

    fn run(
        &self,
        setting: &Setting,
        recipe: &str,
        activation: &'static str,
        lr: f64,
        seed: u64,
    ) -> Arm {
        let proxy = proxy(setting, recipe, activation, lr);
        Proxy { norm: self.norm, seed, ..proxy }.arm(setting)
    }

    fn fates(
        &self,
        setting: &Setting,
        runs: &Runs<'_>,
        recipe: &str,
        activation: &'static str,
        lr: f64,
    ) -> Result<Vec<Fate>> {
        Self::seeds(setting)
            .map(|seed| proxy_fate(runs, &self.run(setting, recipe, activation, lr, seed)))
            .collect()
    }
}

fn short(recipe: &str) -> &str {
    match recipe {
        F32 => "f32",
        STILL => "f32, betas still",
        recipe if recipe.contains("ln-affine=mx") => "MX E4M3, gains too",
        _ => "MX E4M3",
    }
}

/// Losses of paired runs: those of one kind and those of another.
#[derive(Clone, Debug, Default, PartialEq)]
struct Pairs {
    a: Vec<f64>,
    b: Vec<f64>,
}

impl Pairs {
    fn of(a: &[Fate], b: &[Fate]) -> Self {
        let tails = |fates: &[Fate]| fates.iter().map(|fate| fate.tail).collect();
        Self { a: tails(a), b: tails(b) }
    }

    fn extend(&mut self, other: &Self) {
        self.a.extend(&other.a);
        self.b.extend(&other.b);
    }

    fn ratios(&self) -> Vec<f64> {
        self.a.iter().zip(&self.b).map(|(a, b)| a / b).collect()
    }

    /// Geometric means over all that was pushed of one seed, where each push has `seeds` of them: pairs of
    /// one seed at several rates are no independent pairs.
    fn by_seed(&self, seeds: usize) -> Self {
        let of = |values: &[f64], seed: usize| {
            let logs = values.iter().skip(seed).step_by(seeds).map(|value| libm::log(*value));
            libm::exp(mean(&logs.collect::<Vec<_>>()).unwrap_or(f64::NAN))
        };
        let all = |values: &[f64]| {
            (0..seeds.min(values.len())).map(|seed| of(values, seed)).collect::<Vec<_>>()
        };
        Self { a: all(&self.a), b: all(&self.b) }
    }

    fn compare(&self) -> Paired {
        Paired::of_logarithms(&self.a, &self.b)
    }
}

/// With norms: MX loses against f32, and with SwiGLU more than with GELU.
fn judge_with(mx: &Pairs, swiglu: &Pairs, lost: (usize, usize)) -> Verdict {
    let worse = mx.compare();
    let text = format!(
        "ln(loss) of MX with gains in blocks less that of f32 with betas still, mean over activations and \
         rates by seed: {}; diverged {} of MX, {} of f32",
        worse.words(),
        lost.0,
        lost.1
    );
    let first = worse.verdict(Side::Above, text);
    if swiglu.a.is_empty() {
        return first;
    }
    let gated = swiglu.compare();
    let text = format!(
        "what MX adds to ln(loss) of SwiGLU less what it adds to that of GELU: {}",
        gated.words()
    );
    judge::all([first, gated.verdict(Side::Above, text)])
}

/// Without norms: both end with a lower loss.
fn judge_without(off: &Pairs) -> Verdict {
    let lower = off.compare();
    let text = format!("ln(loss) without norms less that with them: {}", lower.words());
    lower.verdict(Side::Below, text)
}

impl Figure for Activations {
    fn id(&self) -> &'static str {
        if self.norm { "F2a" } else { "F2b" }
    }

    fn title(&self) -> &'static str {
        match self.norm {
            true => "the proxy with norms, by activation function",
            false => "the proxy without norms",
        }
    }

    fn source(&self) -> &'static str {
        match self.norm {
            true => {
                "Fig. 2a: student-teacher MLP, depth 4, width 512, batch 2048, learning rate 6e-4"
            }
            false => "Fig. 2b: the same without layer norms",
        }
    }

    fn claim(&self) -> &'static str {
        match self.norm {
            true => {
                "With layer norms MX does worse than FP32, in the study until it diverges, and SwiGLU fares worst. \
                 Judged is the loss (divergence by AppC): reproduced where final losses of MX E4M3 (gains of norms in blocks) are above those of f32 \
                 (whose betas of norms stay 0 as those of the study's MX runs do), and by more with SwiGLU than with \
                 GELU, one value a seed (95 % interval of the mean without 0)."
            }
            false => {
                "Without layer norms the final loss is lower, as the teacher has none. Counts as reproduced where \
                 final losses without norms are below those with them, over pairs of runs of one seed. That MX \
                 becomes more stable and FP32 less is claimed as well and not judged: the table tells what became of the runs."
            }
        }
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let mut arms = Vec::new();
        for lr in rates(setting) {
            for &activation in self.activations(setting) {
                for recipe in self.recipes() {
                    let run = |seed| self.run(setting, &recipe, activation, lr, seed);
                    arms.extend(Self::seeds(setting).map(run));
                    if !self.norm {
                        let with = Self { norm: true };
                        let run = |seed| with.run(setting, &recipe, activation, lr, seed);
                        arms.extend(Self::seeds(setting).map(run));
                    }
                }
            }
        }
        arms
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut parts = Vec::new();
        let mut table = Table::new(
            "final losses (mean squared error over the last tenth of the steps, mean of seeds); spikes and \
             divergence: losses above ten times the lowest median of 50 steps",
            &[
                "activation",
                "rate",
                "numbers",
                "loss",
                "with norms",
                "diverged",
                "with spikes",
                "seeds",
            ],
        );
        let (mut mx, mut swiglu, mut off) = (Pairs::default(), Pairs::default(), Pairs::default());
        let (mut lost_mx, mut lost_f32) = (0, 0);
        for lr in rates(setting) {
            let mut gelu: Option<Pairs> = None;
            for &activation in self.activations(setting) {
                let mut panel = Panel::new(Axis::log("training loss, mean squared error"));
                let plain = match self.norm {
                    true => self.fates(setting, runs, STILL, activation, lr)?,
                    false => Vec::new(),
                };
                for recipe in self.recipes() {
                    let fates = self.fates(setting, runs, &recipe, activation, lr)?;
                    let curves: Vec<_> = fates.iter().map(|fate| calm(&fate.losses)).collect();
                    panel = over_seeds(panel, short(&recipe), &curves);
                    let loss = fates.iter().map(|fate| fate.tail).sum::<f64>() / fates.len() as f64;
                    let diverged = fates.iter().filter(|fate| fate.diverged()).count();
                    let spiked = fates.iter().filter(|f| !f.verdict.spikes.is_empty()).count();
                    let mut with = "-".to_owned();
                    if !self.norm {
                        let other =
                            Self { norm: true }.fates(setting, runs, &recipe, activation, lr)?;
                        off.extend(&Pairs::of(&fates, &other));
                        with =
                            number(other.iter().map(|f| f.tail).sum::<f64>() / other.len() as f64);
                    }
                    table.row([
                        activation.into(),
                        format!("{lr:e}"),
                        short(&recipe).into(),
                        number(loss),
                        with,
                        diverged.to_string(),
                        spiked.to_string(),
                        fates.len().to_string(),
                    ]);
                    if recipe == STILL {
                        lost_f32 += diverged;
                    }
                    if recipe == text("e4m3") {
                        lost_mx += diverged;
                        let own = Pairs::of(&fates, &plain);
                        mx.extend(&own);
                        match (&gelu, activation) {
                            (Some(gelu), "swiglu") => {
                                swiglu.extend(&Pairs { a: own.ratios(), b: gelu.ratios() });
                            }
                            (None, "gelu") => gelu = Some(own),
                            _ => {}
                        }
                    }
                }
                let norms = if self.norm { "with" } else { "without" };
                parts.push(Part::Picture(
                    plot::Figure::new(format!("{activation}, {norms} norms, learning rate {lr:e}"))
                        .subtitle("median of the seeds and their range, moving average over 2 % of the steps")
                        .x(Axis::linear("step"))
                        .panel(panel),
                ));
            }
        }
        parts.push(Part::Table(table));
        let seeds = Self::seeds(setting).count();
        let verdict = match self.norm {
            true => judge_with(&mx.by_seed(seeds), &swiglu.by_seed(seeds), (lost_mx, lost_f32)),
            false => judge_without(&off.by_seed(seeds)),
        };
        Ok(Findings { verdict, parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(a: [f64; 3], b: [f64; 3]) -> Pairs {
        Pairs { a: a.to_vec(), b: b.to_vec() }
    }

    #[test]
    fn values_of_one_seed_are_one() {
        let all = Pairs { a: vec![1.0, 8.0, 4.0, 2.0], b: vec![1.0, 1.0, 9.0, 1.0] };
        let found = all.by_seed(2);
        for (found, expected) in found.a.iter().chain(&found.b).zip([2.0, 4.0, 3.0, 1.0]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert_eq!(Pairs::default().by_seed(3), Pairs::default());
    }

    #[test]
    fn verdicts_follow_the_pairs() {
        let (low, high) = ([0.10, 0.11, 0.12], [0.20, 0.23, 0.25]);
        let unclear = pairs([0.1, 0.3, 0.1], [0.2, 0.1, 0.2]);
        let word = |verdict: Verdict| verdict.word();
        let none = Pairs::default();
        assert_eq!(word(judge_with(&pairs(high, low), &pairs(high, low), (1, 0))), "reproduced");
        assert_eq!(word(judge_with(&pairs(high, low), &none, (1, 0))), "reproduced");
        assert_eq!(word(judge_with(&pairs(high, low), &unclear, (0, 0))), "not seen at this scale");
        assert_eq!(word(judge_with(&pairs(high, low), &pairs(low, high), (0, 0))), "contradicted");
        assert_eq!(word(judge_with(&pairs(low, high), &pairs(high, low), (0, 0))), "contradicted");
        assert_eq!(word(judge_without(&pairs(low, high))), "reproduced");
        assert_eq!(word(judge_without(&unclear)), "not seen at this scale");
        assert_eq!(word(judge_without(&pairs(high, low))), "contradicted");
    }
}
