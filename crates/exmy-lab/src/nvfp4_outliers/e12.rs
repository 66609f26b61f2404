//! E12: patches in training, where channels are planted hot.

use super::claim::{Claim, verdict};
use super::common::{Kind, changed, seeds, short};
use super::show::{Recipes, of_seeds};
use crate::arm::{Arm, Scale, Setting};
use crate::finding::{Figure, Findings, Part};
use crate::store::Runs;
use exmy::error::Result;

/// E12.
pub(super) struct Training;

/// Percentage points of the gap that choosing channels once may cost: what CHON gains in the paper, 0.94 less 0.58.
const MARGIN: f64 = 0.36;
const HALF: [(&str, &str); 2] =
    [("not patched", "nv-nvfp4+last=0"), ("k = 32", "nv-nvfp4+last=0+hcp=s-o2-b-k32")];
const ALL: [(&str, &str); 10] = [
    ("not patched", "nv-nvfp4+last=0"),
    ("k = 16", "nv-nvfp4+last=0+hcp=s-o2-b-k16"),
    ("k = 32", "nv-nvfp4+last=0+hcp=s-o2-b-k32"),
    ("k = 64", "nv-nvfp4+last=0+hcp=s-o2-b-k64"),
    ("k = 128", "nv-nvfp4+last=0+hcp=s-o2-b-k128"),
    ("k = 32, chosen each step", "nv-nvfp4+last=0+hcp=s-o2-b-k32-r1"),
    ("k = 32, each 10 steps", "nv-nvfp4+last=0+hcp=s-o2-b-k32-r10"),
    ("k = 32, once", "nv-nvfp4+last=0+hcp=s-o2-b-k32-r1000000"),
    ("k = 32, frozen from step 300", "nv-nvfp4+last=0+hcp=s-o2-b-k32-freeze300"),
    ("k = 32, backward patched", "nv-nvfp4+last=0+hcp=s-o2-b-k32-dgrad-wgrad"),
];

fn recipes(setting: &Setting) -> Recipes<'_> {
    let list: &[(&str, &str)] = match setting.scale {
        Scale::Smoke | Scale::Small => &HALF,
        Scale::Paper => &ALL,
    };
    let most = setting.scale.pick([1, 3, 1]);
    Recipes::new(list, seeds(setting, most), |recipe, seed| {
        let planted = "model.hot_channels = 4\nmodel.hot_scale = 16.0";
        changed(short(setting, Kind::Gla, recipe, seed), planted)
    })
}

fn claims(names: &[(String, String)], gaps: &[Vec<f64>]) -> Vec<Claim> {
    let of = |name: &'static str| {
        let at = names.iter().position(|one| one.0 == name);
        (name, at.and_then(|at| gaps.get(at)).map(Vec::as_slice).unwrap_or_default())
    };
    let most = if gaps.len() > 2 { "k = 128" } else { "k = 32" };
    let mut all = vec![Claim::below(of(most), of("not patched"), " points")];
    if gaps.len() > 2 {
        // What is claimed is that there is no difference: scatter that hides one does not tell.
        let [once, often] = ["k = 32, once", "k = 32, each 10 steps"].map(|name| of(name).1);
        let cost: Vec<f64> = once.iter().zip(often).map(|(once, often)| once - often).collect();
        all.push(Claim::under("what choosing once adds", &cost, MARGIN, " points"));
    }
    all
}

impl Figure for Training {
    fn id(&self) -> &'static str {
        "E12"
    }

    fn title(&self) -> &'static str {
        "patches in training with planted hot channels"
    }

    fn source(&self) -> &'static str {
        "arXiv 2602.02047, hot-channel patches; neither the number of channels nor how often they are chosen could \
         be read"
    }

    fn claim(&self) -> &'static str {
        "Where four channels begin 16 times as large (function unchanged), patching the most channels makes the gap \
         smaller than without a patch, and choosing the channels once instead of every 10 steps makes it no larger; \
         reproduced if the 95 % interval of the first paired difference lies below 0, and that of the second below \
         0.36 points, what CHON gains in the paper; where only k = 32 is run, the first alone is judged. This is the positive control of the patches: if they do not help here, they do not work."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        recipes(setting).arms()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let recipes = recipes(setting);
        let gaps = recipes.gaps(runs)?;
        let few = format!(
            "gated linear attention, four channels planted, {}",
            of_seeds(recipes.seeds.len())
        );
        let mut parts =
            recipes.parts(runs, "Planted hot channels in training, patched and not", &few)?;
        parts.push(Part::Text(
            "Numbers of channels are of 128 and multiples of 16; 1, 2, 5 and 10 % would all be 16. Of the planted \
             channels training makes what it likes."
                .into(),
        ));
        Ok(Findings { verdict: verdict(&claims(&recipes.list, &gaps)), parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_can_be_reached() {
        let own = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
        };
        let near = |x: f64| vec![x, x + 0.01, x - 0.02];
        let word = |a: f64, b: f64| verdict(&claims(&own(&HALF), &[near(a), near(b)])).word();
        assert_eq!(word(2.0, 1.0), "reproduced");
        assert_eq!(word(1.0, 2.0), "contradicted");
        let noisy = claims(&own(&HALF), &[near(1.0), vec![0.5, 1.6, 1.0]]);
        assert_eq!(verdict(&noisy).word(), "not seen at this scale");
        let gaps = |once: f64| -> Vec<Vec<f64>> {
            let of = |name: &str| match name {
                "not patched" => near(2.0),
                "k = 32, once" => vec![once, once + 0.03, once],
                _ => near(1.0),
            };
            ALL.iter().map(|one| of(one.0)).collect()
        };
        let word = |once| verdict(&claims(&own(&ALL), &gaps(once))).word();
        assert_eq!((word(1.0), word(3.0)), ("reproduced", "contradicted"));
        // Differences of the three seeds: 0.25, 0.27, 0.27 more, which ends below 0.36, and 0.35, 0.37, 0.37.
        assert_eq!((word(1.25), word(1.35)), ("reproduced", "not seen at this scale"));
    }

    #[test]
    fn what_is_not_told_is_no_proof_of_no_harm() {
        let names: Vec<(String, String)> =
            ALL.iter().map(|(name, recipe)| ((*name).into(), (*recipe).into())).collect();
        let of = |once: &[f64]| {
            let of = |name: &str| match name {
                "not patched" => vec![2.0, 2.01, 1.98],
                "k = 32, once" => once.to_vec(),
                _ => vec![1.0, 1.01, 0.98],
            };
            let gaps: Vec<Vec<f64>> = ALL.iter().map(|one| of(one.0)).collect();
            let found = claims(&names, &gaps);
            assert_eq!(found[0].holds, Some(true));
            (found[1].holds, verdict(&found).word())
        };
        let not = (None, "not seen at this scale");
        // Means of the differences are 0 and all they say is that nothing is known.
        assert_eq!(of(&[-1.0, 1.01, 2.98]), not, "wide scatter");
        assert_eq!(of(&[1.0, f64::INFINITY, 1.0]), not, "a run that diverged");
        assert_eq!(of(&[1.0]), not, "one seed");
        assert_eq!(of(&[]), not, "none");
        assert_eq!(of(&[1.0, 1.01, 0.98]), (Some(true), "reproduced"));
    }
}
