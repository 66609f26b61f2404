//! E18: NVFP4 against MXFP4.

use super::claim::{Claim, verdict};
use super::common::{Kind, seeds, short};
use super::show::{Recipes, of_seeds};
use crate::arm::{Arm, Setting};
use crate::finding::{Figure, Findings};
use crate::store::Runs;
use exmy::error::Result;

/// E18.
pub(super) struct Formats;

fn recipes(setting: &Setting) -> Recipes<'_> {
    let list = [("NVFP4", "nv-nvfp4+last=0"), ("MXFP4", "nv-mxfp4+last=0")];
    Recipes::new(&list, seeds(setting, 5), |recipe, seed| short(setting, Kind::Gla, recipe, seed))
}

impl Figure for Formats {
    fn id(&self) -> &'static str {
        "E18"
    }

    fn title(&self) -> &'static str {
        "NVFP4 loses less than MXFP4"
    }

    fn source(&self) -> &'static str {
        "arXiv 2509.25149, Figure 6: 8B, 1 T tokens, relative errors of about 1.5 % and 2.5 %"
    }

    fn claim(&self) -> &'static str {
        "The gap of NVFP4 (blocks of 16, E4M3 scales, tensor scale) is below that of MXFP4 (blocks of 32, scales \
         rounded up to powers of two, rotations of 32) under the same recipe, in all blocks; reproduced if the 95 % interval \
         of the paired difference lies below 0."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        recipes(setting).arms()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let recipes = recipes(setting);
        let gaps = recipes.gaps(runs)?;
        let parts = recipes.parts(
            runs,
            "NVFP4 and MXFP4 beside bfloat16",
            &format!("gated linear attention, {}", of_seeds(recipes.seeds.len())),
        )?;
        let claim = Claim::below(("gap of NVFP4", &gaps[0]), ("gap of MXFP4", &gaps[1]), " points");
        Ok(Findings { verdict: verdict(&[claim]), parts })
    }
}
