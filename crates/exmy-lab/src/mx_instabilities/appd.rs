//! App D: what stays of the instability when the model is made simpler.

use super::common::{F32, Fate, Lm, Proxy, later, lm_fate, proxy_fate, seeds, text};
use super::draw::{calm, number, seeds as over_seeds};
use super::judge::{Paired, Side, by_seed};
use crate::arm::{Arm, Setting};
use crate::finding::{Figure, Findings, Part, Table, Verdict};
use crate::plot::{self, Axis, Panel};
use crate::store::Runs;
use exmy::error::Result;

/// App D.
pub(super) struct Simplified;

/// Models: what they are called, and the keys that make them.
const MODELS: [(&str, &str); 3] = [
    ("with norms of queries and keys", ""),
    ("without them", "model.qk_norm = \"none\"\n"),
    ("without gains in any norm", "model.norm_affine = false\n"),
];

const RECIPES: [(&str, &str); 3] = [
    ("bf16", "mxpaper-bf16"),
    ("MX E4M3", "mxpaper-e4m3+ln-affine=mx"),
    ("MX E2M1", "mxpaper-e2m1+ln-affine=mx"),
];

fn arm(setting: &Setting, model: usize, recipe: usize, seed: u64) -> Arm {
    let lm = Lm::of(setting);
    Lm {
        recipe: RECIPES[recipe].1.into(),
        lr: setting.scale.pick([3e-3, 3e-3, 2e-4]),
        seed,
        more: MODELS[model].1.into(),
        ..lm
    }
    .arm(setting)
}

/// The student against its teacher by a divergence in place of squares: no attention, no squares.
fn divergence(setting: &Setting, recipe: &str, seed: u64) -> Arm {
    let proxy = Proxy::of(setting);
    let (recipe, more) = (recipe.to_owned(), "model.loss = \"kl\"\n".to_owned());
    Proxy { recipe, seed, more, ..proxy }.arm(setting)
}

/// Recipes of the proxy.
fn proxies() -> [(&'static str, String); 3] {
    [("f32", F32.into()), ("MX E4M3", text("e4m3")), ("MX E2M1", text("e2m1"))]
}

fn all_seeds(setting: &Setting) -> std::ops::RangeInclusive<u64> {
    seeds(setting, [1, 0, 1])
}

/// Losses of each model by seed.
fn judge(mx: &[Vec<f64>], base: &[Vec<f64>]) -> Verdict {
    let compared = Paired::of(&by_seed(mx), &by_seed(base));
    let text = format!(
        "final loss of MX E4M3 less that of bf16, mean over all models of each seed: {}",
        compared.words()
    );
    compared.verdict(Side::Above, text)
}

impl Figure for Simplified {
    fn id(&self) -> &'static str {
        "AppD"
    }

    fn title(&self) -> &'static str {
        "simpler models"
    }

    fn source(&self) -> &'static str {
        "Appendix D: the proxy as the end of a chain of simplifications (attention, norms of queries and keys, the \
         loss)"
    }

    fn claim(&self) -> &'static str {
        "Simplifications leave the picture as it is: MX stays worse than bfloat16 without norms of queries and \
         keys, without gains, and in the proxy, the model without attention, with a divergence of Kullback and \
         Leibler in place of the mean squared error. Counts as reproduced where final losses of MX E4M3 are \
         above those of bf16, of the proxy f32, over pairs of one seed (95 % interval without 0); each seed counts once, with \
         its mean over models."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let mut arms = Vec::new();
        for model in 0..MODELS.len() {
            for recipe in 0..RECIPES.len() {
                arms.extend(all_seeds(setting).map(|seed| arm(setting, model, recipe, seed)));
            }
        }
        for (_, recipe) in proxies() {
            arms.extend(all_seeds(setting).map(|seed| divergence(setting, &recipe, seed)));
        }
        arms
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if let Some(found) = later(setting) {
            return Ok(found);
        }
        let mut parts = Vec::new();
        let mut table = Table::new(
            "final training losses (nats per byte, of the proxy nats, mean of the last tenth and of the seeds)",
            &["model", "numbers", "loss", "diverged", "spikes"],
        );
        let (mut mx, mut base) = (Vec::new(), Vec::new());
        for (name, axis, fates) in models(setting, runs)? {
            let mut panel = Panel::new(axis);
            for (i, (numbers, fates)) in fates.iter().enumerate() {
                let curves: Vec<_> = fates.iter().map(|fate| calm(&fate.losses)).collect();
                panel = over_seeds(panel, numbers, &curves);
                let tails: Vec<f64> = fates.iter().map(|fate| fate.tail).collect();
                table.row([
                    name.clone(),
                    (*numbers).into(),
                    number(tails.iter().sum::<f64>() / tails.len() as f64),
                    fates.iter().filter(|fate| fate.diverged()).count().to_string(),
                    fates.iter().map(|f| f.verdict.spikes.len()).sum::<usize>().to_string(),
                ]);
                match i {
                    0 => base.push(tails),
                    1 => mx.push(tails),
                    _ => {}
                }
            }
            parts.push(Part::Picture(
                plot::Figure::new(format!("Losses of a {name}"))
                    .subtitle(
                        "median of the seeds and their range; moving average over 2 % of the steps",
                    )
                    .x(Axis::linear("step"))
                    .panel(panel),
            ));
        }
        parts.push(Part::Table(table));
        Ok(Findings { verdict: judge(&mx, &base), parts })
    }
}

/// What became of the seeds of each recipe, the one compared with first.
type Fates = Vec<(&'static str, Vec<Fate>)>;

/// Each model with the axis of its losses.
fn models(setting: &Setting, runs: &Runs<'_>) -> Result<Vec<(String, Axis, Fates)>> {
    let mut all = Vec::new();
    for (model, (name, _)) in MODELS.iter().enumerate() {
        let of = |recipe: usize| {
            let fates = all_seeds(setting)
                .map(|seed| lm_fate(runs, &arm(setting, model, recipe, seed)))
                .collect::<Result<_>>()?;
            Ok((RECIPES[recipe].0, fates))
        };
        let fates = (0..RECIPES.len()).map(of).collect::<Result<_>>()?;
        all.push((format!("model {name}"), Axis::linear("training loss, nats per byte"), fates));
    }
    let of = |(numbers, recipe): (&'static str, String)| {
        let fates = all_seeds(setting)
            .map(|seed| proxy_fate(runs, &divergence(setting, &recipe, seed)))
            .collect::<Result<_>>()?;
        Ok((numbers, fates))
    };
    let fates = proxies().into_iter().map(of).collect::<Result<_>>()?;
    all.push(("proxy with a divergence".into(), Axis::log("training loss, nats"), fates));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_pairs() {
        let (low, high) = ([vec![2.0, 2.1, 2.2]], [vec![2.5, 2.58, 2.72]]);
        assert_eq!(judge(&high, &low).word(), "reproduced");
        assert_eq!(judge(&low, &high).word(), "contradicted");
        let crossed = judge(&[vec![2.0, 2.6, 2.2]], &[vec![2.1, 2.1, 2.3]]);
        assert_eq!(crossed.word(), "not seen at this scale");
    }

    /// Means of two models differ by 2, 3 and 5.5: 3.5 with an interval that reaches 4.48 to each side. Six pairs would
    /// be told from 0.
    #[test]
    fn each_seed_counts_once() {
        let mx = [vec![11.0, 22.0, 33.0], vec![12.0, 23.0, 38.0]];
        let base = [vec![10.0, 20.0, 30.0], vec![9.0, 19.0, 30.0]];
        let verdict = judge(&mx, &base);
        assert_eq!(verdict.word(), "not seen at this scale");
        let reason = verdict.reason();
        assert!(reason.ends_with("+3.500 [-0.978, +7.978], 3 of 3 pairs above 0"), "{reason}");
        let pairs = Paired::of(&mx.concat(), &base.concat());
        assert_eq!(pairs.side, Side::Above, "pairs, as if they were independent");
    }
}
