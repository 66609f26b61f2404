//! E4: spikes within blocks of 16 x 16 remain where kurtosis is low.

use super::claim::Claim;
use super::common::{Kind, seeds};
use super::e03::{RECIPES, arms, by_seed, ends, of_inputs};
use super::show::{concluded, draw, spread};
use crate::arm::{Arm, Setting};
use crate::finding::{Figure, Findings, Table};
use crate::plot::{self, Axis, Panel};
use crate::store::Runs;
use exmy::error::Result;

/// E4.
pub(super) struct Spikes;

/// The ratio of spikes from which they count as remaining.
const REMAIN: f64 = 0.7;

/// Spikes and kurtosis of one recipe: GLA first.
fn claims(label: &str, spikes: &[Vec<f64>; 2], kurtosis: &[Vec<f64>; 2]) -> Vec<Claim> {
    let ratio: Vec<f64> = spikes[0].iter().zip(&spikes[1]).map(|(gla, sa)| gla / sa).collect();
    let lower = ("kurtosis of GLA", kurtosis[0].as_slice());
    vec![
        Claim::above(&format!("spikes of GLA over those of SA ({label})"), &ratio, REMAIN, ""),
        Claim::below(lower, ("kurtosis of SA", &kurtosis[1]), &format!(" ({label})")),
    ]
}

impl Figure for Spikes {
    fn id(&self) -> &'static str {
        "E4"
    }

    fn title(&self) -> &'static str {
        "spikes of blocks remain in linear attention"
    }

    fn source(&self) -> &'static str {
        "arXiv 2602.02047, Figure 4: largest magnitudes of blocks of 16 x 16 in four architectures"
    }

    fn claim(&self) -> &'static str {
        "Although its kurtosis is lower, the 99th percentile of amax / rms over blocks of 16 x 16 of inputs is in \
         GLA at least 0.7 of that in softmax attention (last third); reproduced if the 95 % intervals say both. \
         By definition amax / rms of such a block is at most 16."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        arms(setting)
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut all = Vec::new();
        let mut table = Table::new(
            "blocks of 16 x 16, last third (mean and range over seeds)",
            &[
                "model",
                "recipe",
                "amax / rms: p99",
                "largest",
                "amax / median amax: p99",
                "largest",
            ],
        );
        let mut panels = Vec::new();
        for (label, recipe) in RECIPES {
            let mut panel = Panel::new(Axis::linear(format!("p99 of amax / rms, {label}")));
            let (mut spikes, mut kurtosis) = ([vec![], vec![]], [vec![], vec![]]);
            for (at, kind) in Kind::ALL.into_iter().enumerate() {
                let mut row = vec![kind.name().to_owned(), label.to_owned()];
                for suffix in ["rms_p99", "rms_max", "median_p99", "median_max"] {
                    let suffix = format!("input.{suffix}");
                    let pick = |part: &str| of_inputs(part, &suffix);
                    let found = by_seed(setting, runs, (kind, recipe), "spikes", pick)?;
                    row.push(spread(&ends(&found)));
                    if suffix == "input.rms_p99" {
                        panel = draw(panel, kind.name(), &found);
                        spikes[at] = ends(&found);
                    }
                }
                table.row(row);
                let pick = |part: &str| of_inputs(part, "input");
                kurtosis[at] = ends(&by_seed(setting, runs, (kind, recipe), "kurtosis", pick)?);
            }
            panels.push(panel);
            all.extend(claims(label, &spikes, &kurtosis));
        }
        let figure = plot::Figure::new("Spikes within blocks, softmax attention and GLA")
            .subtitle(format!(
                "mean over layers and the inputs of q, o, gate and down; {} seeds",
                seeds(setting, 3).len()
            ))
            .x(Axis::linear("step"));
        Ok(concluded(&all, figure, panels, table))
    }
}

#[cfg(test)]
mod tests {
    use super::super::claim::verdict;
    use super::*;

    #[test]
    fn each_verdict_can_be_reached() {
        let (low, high) = (vec![1.0, 1.1, 0.9], vec![4.0, 4.2, 4.1]);
        let word = |gla: &[f64], sa: &[f64], kurtosis: [&Vec<f64>; 2]| {
            let kurtosis = kurtosis.map(Clone::clone);
            verdict(&claims("x", &[gla.to_vec(), sa.to_vec()], &kurtosis)).word()
        };
        assert_eq!(word(&[5.0, 5.1, 4.9], &[6.0, 6.0, 6.0], [&low, &high]), "reproduced");
        assert_eq!(word(&[2.0, 2.1, 1.9], &[6.0, 6.0, 6.0], [&low, &high]), "contradicted");
        assert_eq!(word(&[5.0, 5.1, 4.9], &[6.0, 6.0, 6.0], [&high, &low]), "contradicted");
        assert_eq!(
            word(&[5.0, 3.1, 4.0], &[6.0, 6.0, 6.0], [&low, &high]),
            "not seen at this scale"
        );
    }
}
