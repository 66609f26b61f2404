//! Ext: what reviewers asked for: blocks, roundings, scales, starts, optimizers.

use super::common::{F32, Proxy, later, proxy_fate, seeds, text};
use super::draw::number;
use super::judge::{Paired, Side};
use crate::arm::{Arm, Setting};
use crate::finding::{Figure, Findings, Part, Table, Verdict};
use crate::plot::{self, Axis, Panel, Series};
use crate::store::Runs;
use exmy::error::Result;

/// Ext.
pub(super) struct Variations;

/// Names, what is appended to the recipe, and further keys; the first is the base.
const VARIATIONS: [(&str, &str, &str); 12] = [
    ("blocks of 32, half away", "", ""),
    ("blocks of 2", "+block=2", ""),
    ("blocks of 8", "+block=8", ""),
    ("blocks of 16", "+block=16", ""),
    ("blocks of 64", "+block=64", ""),
    ("to nearest even", "+round=rne", ""),
    ("rounded down", "+round=floor", ""),
    ("bump of each block", "+bump", ""),
    ("bump as coded", "+bump=code", ""),
    ("Xavier start, gain 0.5", "", "model.init = \"xavier\"\nmodel.init_gain = 0.5\n"),
    (
        "gradient descent, rate 0.3",
        "",
        "train.optimizer = \"sgd\"\ntrain.lr = 0.3\ntrain.lr_min = 0.3\n",
    ),
    (
        "with momentum 0.9, rate 0.1",
        "",
        "train.optimizer = \"sgd\"\ntrain.momentum = 0.9\ntrain.lr = 0.1\ntrain.lr_min = 0.1\n",
    ),
];
/// What the claim is about: the bump against the base.
const BUMP: usize = 7;

const FORMATS: [&str; 2] = ["e4m3", "e2m1"];

fn arm(setting: &Setting, format: Option<&str>, variation: usize, seed: u64) -> Arm {
    let (_, words, keys) = VARIATIONS[variation];
    let recipe = format.map_or_else(|| F32.to_owned(), |format| text(format) + words);
    let proxy = Proxy::of(setting);
    let steps = setting.scale.pick([10, 0, 9000]);
    let lr = setting.scale.pick([3e-3, 3e-3, 6e-4]);
    Proxy { recipe, seed, steps, lr, more: keys.into(), ..proxy }.arm(setting)
}

fn all_seeds(setting: &Setting) -> std::ops::RangeInclusive<u64> {
    seeds(setting, [1, 0, 3])
}

fn variations(setting: &Setting) -> Vec<usize> {
    setting.scale.pick([vec![0, 1, BUMP], Vec::new(), (0..VARIATIONS.len()).collect()])
}

/// Losses with the bump and without.
fn judge(bump: &[f64], base: &[f64]) -> Verdict {
    let compared = Paired::of_logarithms(bump, base);
    let text = format!("ln(loss) with the bump less that without: {}", compared.words());
    compared.verdict(Side::Below, text)
}

impl Figure for Variations {
    fn id(&self) -> &'static str {
        "Ext"
    }

    fn title(&self) -> &'static str {
        "blocks, roundings, scales, starts, optimizers"
    }

    fn source(&self) -> &'static str {
        "what reviewers of the study asked for, and its ablation of the start"
    }

    fn claim(&self) -> &'static str {
        "Avoiding saturation helps: with the exponent raised where a block would saturate, losses are lower. Counts \
         as reproduced where they are, over pairs of one format and seed; the other variations are shown."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let mut arms = Vec::new();
        for seed in all_seeds(setting) {
            for variation in variations(setting) {
                let of = |format: &&'static str| arm(setting, Some(format), variation, seed);
                arms.extend(FORMATS.iter().map(of));
                // In f32 only starts differ.
                if VARIATIONS[variation].1.is_empty() {
                    arms.push(arm(setting, None, variation, seed));
                }
            }
        }
        arms
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if let Some(found) = later(setting) {
            return Ok(found);
        }
        let mut table = Table::new(
            "final losses (mean squared error, mean of the seeds) and spikes of all seeds",
            &["variation", "numbers", "loss", "diverged", "spikes"],
        );
        let (mut bump, mut base) = (Vec::new(), Vec::new());
        let mut blocks: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for variation in variations(setting) {
            let (name, words, _) = VARIATIONS[variation];
            let formats = FORMATS.iter().map(|format| Some(*format));
            let plain = words.is_empty().then_some(None);
            for format in formats.chain(plain) {
                let mut tails = Vec::new();
                let (mut diverged, mut spikes) = (0, 0);
                for seed in all_seeds(setting) {
                    let fate = proxy_fate(runs, &arm(setting, format, variation, seed))?;
                    diverged += usize::from(fate.diverged());
                    spikes += fate.verdict.spikes.len();
                    tails.push(fate.tail);
                }
                let mean = tails.iter().sum::<f64>() / tails.len() as f64;
                let numbers = format.map_or(F32.to_owned(), |format| format!("MX {format}"));
                table.row([
                    name.into(),
                    numbers.clone(),
                    number(mean),
                    diverged.to_string(),
                    spikes.to_string(),
                ]);
                let size = match variation {
                    0 => Some(32.0),
                    _ => words.strip_prefix("+block=").and_then(|size| size.parse().ok()),
                };
                if let (Some(size), Some(_)) = (size, format) {
                    match blocks.iter_mut().find(|(known, _)| *known == numbers) {
                        Some((_, points)) => points.push((size, mean)),
                        None => blocks.push((numbers, vec![(size, mean)])),
                    }
                }
                match (variation, format) {
                    (0, Some(_)) => base.extend(tails),
                    (BUMP, Some(_)) => bump.extend(tails),
                    _ => {}
                }
            }
        }
        let mut panel = Panel::new(Axis::log("final loss, mean squared error"));
        for (name, mut points) in blocks {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            panel = panel.line(Series::new(name, points));
        }
        let picture = plot::Figure::new("Final loss by the size of blocks")
            .subtitle("mean of the seeds")
            .x(Axis::log("elements of a block"))
            .panel(panel);
        Ok(Findings {
            verdict: judge(&bump, &base),
            parts: vec![Part::Picture(picture), Part::Table(table)],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_pairs() {
        let (low, high) = ([0.10, 0.11, 0.12], [0.20, 0.23, 0.25]);
        assert_eq!(judge(&low, &high).word(), "reproduced");
        assert_eq!(judge(&high, &low).word(), "contradicted");
        assert_eq!(judge(&[0.1, 0.3, 0.1], &[0.2, 0.1, 0.2]).word(), "not seen at this scale");
    }
}
