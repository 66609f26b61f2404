//! E13, E14, E16: parts of the NVFP4 recipe taken out, moved or replaced, one at a time.

use super::claim::{Claim, verdict};
use super::common::{Kind, seeds, short};
use super::show::{Recipes, of_seeds};
use crate::arm::{Arm, Scale, Setting};
use crate::finding::{Figure, Findings};
use crate::store::Runs;
use exmy::error::Result;

/// A figure that is a list of recipes and orderings of their gaps.
pub(super) struct Ablation {
    id: &'static str,
    title: &'static str,
    source: &'static str,
    claim: &'static str,
    picture: &'static str,
    /// Names and recipes.
    recipes: &'static [(&'static str, &'static str)],
    /// Which of them should have a smaller gap than which.
    orderings: &'static [(&'static str, &'static str)],
}

/// What each part of the recipe is worth.
pub(super) static PARTS: Ablation = Ablation {
    id: "E13",
    title: "what each part of the NVFP4 recipe is worth",
    source: "arXiv 2509.25149, Figures 4 and 8: 12B and 1.2B, parts removed and added",
    claim: "With all blocks in NVFP4, rounding gradients to nearest instead of stochastically makes the gap larger, \
            and keeping the last block, or the last two, in bfloat16 makes it smaller; reproduced if the 95 % \
            intervals of the paired differences exclude 0. Rotations and tiles may be null at this size, as the \
            paper says of small models.",
    picture: "Stochastic gradients and last blocks in bfloat16",
    recipes: &[
        ("all blocks NVFP4", "nv-nvfp4+last=0"),
        ("without stochastic rounding", "nv-nvfp4+last=0+sr=none"),
        ("without rotation", "nv-nvfp4+last=0+rht=none"),
        ("without tiles", "nv-nvfp4+last=0+weight-block=1x16"),
        ("last block bf16", "nv-nvfp4+last=1"),
        ("last two blocks bf16", "nv-nvfp4+last=2"),
    ],
    orderings: &[
        ("all blocks NVFP4", "without stochastic rounding"),
        ("last block bf16", "all blocks NVFP4"),
        ("last two blocks bf16", "all blocks NVFP4"),
    ],
};

/// Which tensors are to be rounded stochastically.
pub(super) static STOCHASTIC: Ablation = Ablation {
    id: "E14",
    title: "stochastic rounding belongs to gradients",
    source: "arXiv 2509.25149, Figure 10: 1.2B, of activations or weights it diverges",
    claim: "Rounding activations or weights stochastically makes the gap larger than rounding everything to nearest; \
            reproduced if the 95 % intervals of both paired differences exclude 0.",
    picture: "Stochastic rounding by tensor",
    recipes: &[
        ("none", "nv-nvfp4+last=0+sr=none"),
        ("gradients", "nv-nvfp4+last=0"),
        ("activations", "nv-nvfp4+last=0+sr=act"),
        ("weights", "nv-nvfp4+last=0+sr=weight"),
        ("all of backward", "nv-nvfp4+last=0+sr=bwd"),
    ],
    orderings: &[("none", "activations"), ("none", "weights")],
};

/// Along which dimension weights have their blocks.
pub(super) static BLOCKS: Ablation = Ablation {
    id: "E16",
    title: "weights should be the same numbers in both products",
    source: "arXiv 2509.25149, Figure 14: 1.2B, blocks of weights",
    claim: "Blocks of 16 along the same dimension in both products that read a weight, and tiles of 16 x 16, have \
            smaller gaps than blocks along each product's own sum; reproduced if the 95 % intervals of both paired \
            differences exclude 0.",
    picture: "Blocks of weights: one dimension, tiles, two dimensions",
    recipes: &[
        ("1x16, same dimension", "nv-nvfp4+last=0+weight-block=1x16-same"),
        ("16x16", "nv-nvfp4+last=0"),
        ("1x16, different dimensions", "nv-nvfp4+last=0+weight-block=1x16"),
    ],
    orderings: &[
        ("1x16, same dimension", "1x16, different dimensions"),
        ("16x16", "1x16, different dimensions"),
    ],
};

impl Ablation {
    fn recipes<'a>(&self, setting: &'a Setting) -> Recipes<'a> {
        Recipes::new(self.recipes, seeds(setting, 5), |recipe, seed| {
            short(setting, Kind::Gla, recipe, seed)
        })
    }

    fn claims(&self, gaps: &[Vec<f64>]) -> Vec<Claim> {
        let of = |name: &'static str| {
            let at = self.recipes.iter().position(|one| one.0 == name);
            (name, at.and_then(|at| gaps.get(at)).map(Vec::as_slice).unwrap_or_default())
        };
        let orderings = self.orderings.iter();
        orderings.map(|&(low, high)| Claim::below(of(low), of(high), " points")).collect()
    }
}

impl Figure for Ablation {
    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn source(&self) -> &'static str {
        self.source
    }

    fn claim(&self) -> &'static str {
        self.claim
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        match setting.scale {
            Scale::Small => Vec::new(),
            _ => self.recipes(setting).arms(),
        }
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if setting.scale == Scale::Small {
            return Ok(Findings::not_run());
        }
        let recipes = self.recipes(setting);
        let gaps = recipes.gaps(runs)?;
        let few = format!("gated linear attention, {}", of_seeds(recipes.seeds.len()));
        let parts = recipes.parts(runs, self.picture, &few)?;
        Ok(Findings { verdict: verdict(&self.claims(&gaps)), parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest chain of recipes that should have smaller gaps.
    fn below(figure: &Ablation, name: &str) -> usize {
        let lower = figure.orderings.iter().filter(|one| one.1 == name);
        lower.map(|one| below(figure, one.0) + 1).max().unwrap_or(0)
    }

    #[test]
    fn orderings_name_recipes_and_each_verdict_can_be_reached() {
        for figure in [&PARTS, &STOCHASTIC, &BLOCKS] {
            let place = |name| figure.recipes.iter().position(|one| one.0 == name).unwrap();
            // Levels that satisfy all orderings: how many stand below in a chain.
            let level = |name: &str| f64::from(u8::try_from(below(figure, name)).unwrap());
            let gaps = |sign: f64, noise: [f64; 3]| -> Vec<Vec<f64>> {
                let of = |i: usize, name| noise.map(|x| sign * level(name) + x * i as f64).into();
                figure.recipes.iter().enumerate().map(|(i, one)| of(i, one.0)).collect()
            };
            assert!(figure.orderings.iter().all(|one| place(one.0) != place(one.1)));
            let word = |gaps: &[Vec<f64>]| verdict(&figure.claims(gaps)).word();
            let (calm, wild) = ([0.0, 0.01, -0.01], [0.0, 9.0, -9.0]);
            assert_eq!(word(&gaps(1.0, calm)), "reproduced", "{}", figure.id);
            assert_eq!(word(&gaps(-1.0, calm)), "contradicted", "{}", figure.id);
            assert_eq!(word(&gaps(1.0, wild)), "not seen at this scale", "{}", figure.id);
        }
    }
}
