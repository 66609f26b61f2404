//! E3: excess kurtosis of activations, softmax attention against gated linear attention.

use super::claim::Claim;
use super::common::{BF16, INPUTS, Kind, main, seeds};
use super::show::{concluded, draw, late, series, spread};
use crate::arm::{Arm, Setting};
use crate::finding::{Figure, Findings, Table};
use crate::plot::{self, Axis, Panel};
use crate::store::Runs;
use exmy::error::Result;

/// E3.
pub(super) struct Tails;

/// The recipes looked at.
pub(super) const RECIPES: [(&str, &str); 2] = [("bf16", BF16), ("nvfp4", "nv-nvfp4")];

/// Whether a part of a probe is of an input of its own: of `suffix`, `input` or `input.rms_p99`.
pub(super) fn of_inputs(part: &str, suffix: &str) -> bool {
    INPUTS.iter().any(|operator| part.ends_with(&format!("{operator}.{suffix}")))
}

/// The runs of both kinds, recipe by recipe.
pub(super) fn arms(setting: &Setting) -> Vec<Arm> {
    let mut arms = Vec::new();
    for kind in Kind::ALL {
        for (_, recipe) in RECIPES {
            arms.extend(
                seeds(setting, 3).into_iter().map(|seed| main(setting, kind, recipe, seed)),
            );
        }
    }
    arms
}

/// Steps and values of the picked parts of a probe, seed by seed.
pub(super) fn by_seed(
    setting: &Setting,
    runs: &Runs<'_>,
    (kind, recipe): (Kind, &str),
    probe: &str,
    pick: impl Fn(&str) -> bool,
) -> Result<Vec<Vec<(f64, f64)>>> {
    let one = |seed| series(&runs.of(&main(setting, kind, recipe, seed))?, probe, &pick);
    seeds(setting, 3).into_iter().map(one).collect()
}

/// Means of the last third, seed by seed.
pub(super) fn ends(series: &[Vec<(f64, f64)>]) -> Vec<f64> {
    series.iter().map(|one| late(one, 2.0 / 3.0)).collect()
}

impl Figure for Tails {
    fn id(&self) -> &'static str {
        "E3"
    }

    fn title(&self) -> &'static str {
        "activations of softmax attention have heavier tails"
    }

    fn source(&self) -> &'static str {
        "arXiv 2602.02047, Figure 1: kurtosis of GLA and of Qwen over training"
    }

    fn claim(&self) -> &'static str {
        "The excess kurtosis of the inputs of linear operators, averaged over layers and operators and the last \
         third of the run, is higher in softmax attention than in gated linear attention; reproduced if the 95 % \
         intervals of the paired differences exclude 0 under bfloat16 and under NVFP4."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        arms(setting)
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let (mut claims, mut panels) = (Vec::new(), Vec::new());
        let mut table = Table::new(
            "excess kurtosis of the last third (mean and range over seeds), by operand",
            &[
                "model",
                "recipe",
                "inputs",
                "weights",
                "output gradients",
                "largest channel of inputs",
            ],
        );
        for (label, recipe) in RECIPES {
            let mut panel = Panel::new(Axis::linear(format!("excess kurtosis of inputs, {label}")));
            let mut found = Vec::new();
            for kind in Kind::ALL {
                let of = |suffix: &'static str| {
                    by_seed(setting, runs, (kind, recipe), "kurtosis", move |part| match suffix {
                        "input" | "input.channels_max" => of_inputs(part, suffix),
                        _ => part.ends_with(suffix) && !part.starts_with("lm_head"),
                    })
                };
                let inputs = of("input")?;
                panel = draw(panel, kind.name(), &inputs);
                let mut row = vec![kind.name().to_owned(), label.to_owned()];
                row.push(spread(&ends(&inputs)));
                for suffix in [".weight", ".grad_output", "input.channels_max"] {
                    row.push(spread(&ends(&of(suffix)?)));
                }
                table.row(row);
                found.push(ends(&inputs));
            }
            let name = |kind: Kind| format!("kurtosis of {} ({label})", kind.name());
            let (gla, sa) = (name(Kind::Gla), name(Kind::Sa));
            claims.push(Claim::below((&gla, &found[0]), (&sa, &found[1]), ""));
            panels.push(panel.rule(0.0, "normal"));
        }
        let figure = plot::Figure::new("Tails of activations: softmax attention and GLA")
            .subtitle(
                "mean over layers and the inputs of q, o, gate and down; bands: range of seeds",
            )
            .x(Axis::linear("step"));
        Ok(concluded(&claims, figure, panels, table))
    }
}
