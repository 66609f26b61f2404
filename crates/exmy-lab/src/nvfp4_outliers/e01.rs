//! E1: the gap to bfloat16 of NVFP4, of each part of CHON, and of CHON.

use super::claim::{Claim, interval, verdict};
use super::common::{Kind, seeds, short};
use super::show::{Recipes, of_seeds};
use crate::arm::{Arm, Setting};
use crate::finding::{Figure, Findings, Part, Table};
use crate::statistics::{mean, paired_interval};
use crate::store::Runs;
use exmy::error::Result;

/// E1.
pub(super) struct Gap;

/// What the paper reports of GLA-1.3B after 60 G tokens, in percent: NVFP4 and CHON.
const PAPER: [f64; 2] = [0.94, 0.58];

/// Those that are judged, then the same of the last blocks in bfloat16.
pub(super) const RECIPES: [(&str, &str); 6] = [
    ("NVFP4", "nv-nvfp4+last=0"),
    ("post-QK", "nv-post-qk+last=0"),
    ("HCP", "nv-hcp+last=0"),
    ("CHON", "chon+last=0"),
    ("NVFP4, last", "nv-nvfp4"),
    ("CHON, last", "chon"),
];

fn recipes(setting: &Setting) -> Recipes<'_> {
    Recipes::new(&RECIPES, seeds(setting, 5), |recipe, seed| {
        short(setting, Kind::Gla, recipe, seed)
    })
}

fn claims(base: &[f64], chon: &[f64]) -> Vec<Claim> {
    vec![Claim::below(("gap of CHON", chon), ("gap of NVFP4", base), " points")]
}

impl Figure for Gap {
    fn id(&self) -> &'static str {
        "E1"
    }

    fn title(&self) -> &'static str {
        "CHON narrows the gap between NVFP4 and bfloat16"
    }

    fn source(&self) -> &'static str {
        "arXiv 2602.02047, abstract and Table 2: GLA-1.3B, 60 G tokens, gaps 0.94 % (NVFP4) and 0.58 % (CHON)"
    }

    fn claim(&self) -> &'static str {
        "The gap of CHON is below that of the NVFP4 recipe; reproduced if the 95 % interval of the paired difference \
         lies below 0. Judged with all blocks in NVFP4: in a model of four blocks the last one and the head, which \
         the recipe leaves in bfloat16, are a quarter of all products."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        recipes(setting).arms()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let recipes = recipes(setting);
        let gaps = recipes.gaps(runs)?;
        let (base, chon) = (&gaps[0], &gaps[3]);
        let mut parts = recipes.parts(
            runs,
            "What patches and protected operators leave of the gap of NVFP4",
            &format!("gated linear attention, {}", of_seeds(recipes.seeds.len())),
        )?;
        let mut pairs = Table::new(
            "differences of gaps, points, paired by seed, with 95 % intervals: what each part of CHON does",
            &["first", "second", "first minus second"],
        );
        for (a, b) in [(1, 0), (2, 0), (3, 0), (3, 1), (3, 2), (5, 4)] {
            let difference = interval(paired_interval(&gaps[a], &gaps[b], 0.95));
            pairs.row([RECIPES[a].0.into(), RECIPES[b].0.into(), difference]);
        }
        parts.push(Part::Table(pairs));
        parts.push(Part::Text(format!(
            "post-QK: o_proj and the decay gate in bfloat16; HCP: hot channels patched; CHON: both; last: the last \
             15 % of the blocks in bfloat16, as the recipes have it. The paper's gaps are {} % (NVFP4) and {} % (CHON), {:.2} of \
             it; here {}. What is in bfloat16 takes products away from NVFP4; patches do not.",
            PAPER[0],
            PAPER[1],
            PAPER[1] / PAPER[0],
            match (mean(base), mean(chon)) {
                (Some(base), Some(chon)) if base > 0.0 && chon > 0.0 =>
                    format!("{base:.2} % and {chon:.2} %, {:.2} of it", chon / base),
                (Some(base), Some(chon)) =>
                    format!("{base:+.2} % and {chon:+.2} %, one of which is no gap"),
                _ => "nothing was trained".into(),
            },
        )));
        Ok(Findings { verdict: verdict(&claims(base, chon)), parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_can_be_reached() {
        let (low, high) = ([0.5, 0.6, 0.4], [0.9, 1.1, 0.8]);
        let word = |base: &[f64], chon: &[f64]| verdict(&claims(base, chon)).word();
        assert_eq!(word(&high, &low), "reproduced");
        assert_eq!(word(&low, &high), "contradicted");
        assert_eq!(word(&low, &[0.2, 0.9, 0.5]), "not seen at this scale");
    }
}
