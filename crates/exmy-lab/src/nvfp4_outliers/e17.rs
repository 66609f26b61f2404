//! E17: going back to bfloat16 late.

use super::claim::{Claim, verdict};
use super::common::{Kind, main, seeds, steps};
use super::show::{Recipes, of_seeds};
use crate::arm::{Arm, Scale, Setting};
use crate::finding::{Figure, Findings};
use crate::store::Runs;
use exmy::error::Result;

/// E17.
pub(super) struct Switch;

const LIST: [(&str, &str); 10] = [
    ("never", "nv-nvfp4"),
    ("forward from 60 %", "nv-nvfp4+late=60%+late-scope=forward"),
    ("backward from 60 %", "nv-nvfp4+late=60%+late-scope=backward"),
    ("both from 60 %", "nv-nvfp4+late=60%"),
    ("forward from 80 %", "nv-nvfp4+late=80%+late-scope=forward"),
    ("backward from 80 %", "nv-nvfp4+late=80%+late-scope=backward"),
    ("both from 80 %", "nv-nvfp4+late=80%"),
    ("forward from 95 %", "nv-nvfp4+late=95%+late-scope=forward"),
    ("backward from 95 %", "nv-nvfp4+late=95%+late-scope=backward"),
    ("both from 95 %", "nv-nvfp4+late=95%"),
];

/// A branch from where a run in NVFP4 changes, or a run that does not.
fn arm(setting: &Setting, recipe: &str, seed: u64) -> Arm {
    let percent = [60, 80, 95].into_iter().find(|p| recipe.contains(&format!("late={p}%")));
    match percent {
        None => main(setting, Kind::Gla, recipe, seed),
        Some(percent) => {
            let changes = format!("recipe = \"{recipe}\"\nrecord.probes = []");
            let parent = main(setting, Kind::Gla, "nv-nvfp4", seed);
            parent.branch(steps(setting) * percent / 100, &changes)
        }
    }
}

fn recipes(setting: &Setting) -> Recipes<'_> {
    Recipes::new(&LIST, seeds(setting, 3), |recipe, seed| arm(setting, recipe, seed))
}

/// What is judged: the switches at 80 %, where the rate begins to fall.
fn claims(gaps: &[Vec<f64>]) -> Vec<Claim> {
    let won =
        |at: usize| -> Vec<f64> { gaps[0].iter().zip(&gaps[at]).map(|(a, b)| a - b).collect() };
    let (forward, backward) = (won(4), won(5));
    let half: Vec<f64> = forward.iter().map(|x| 0.5 * x).collect();
    vec![
        Claim::below(
            ("gap with forward in bf16 from 80 %", &gaps[4]),
            ("never", &gaps[0]),
            " points",
        ),
        Claim::below(
            ("recovered by backward", &backward),
            ("half of that by forward", &half),
            " points",
        ),
    ]
}

impl Figure for Switch {
    fn id(&self) -> &'static str {
        "E17"
    }

    fn title(&self) -> &'static str {
        "switching forward products to bfloat16 late recovers the gap"
    }

    fn source(&self) -> &'static str {
        "arXiv 2509.25149, Appendix D: at 82 % of the tokens 1.5 % become 0.5 % (forward alone), backward alone gives \
         nothing"
    }

    fn claim(&self) -> &'static str {
        "From 80 % of the steps on, where the learning rate begins to fall, forward products in bfloat16 make the \
         final gap smaller, and backward products alone recover less than half of that; reproduced if the 95 % \
         intervals of both paired differences lie below 0."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        match setting.scale {
            Scale::Small => Vec::new(),
            _ => recipes(setting).arms(),
        }
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if setting.scale == Scale::Small {
            return Ok(Findings::not_run());
        }
        let recipes = recipes(setting);
        let gaps = recipes.gaps(runs)?;
        let few = format!(
            "gated linear attention, branches of one run a seed, {}",
            of_seeds(recipes.seeds.len())
        );
        let title = "Products that go back to bfloat16 late";
        let parts = recipes.parts(runs, title, &few)?;
        Ok(Findings { verdict: verdict(&claims(&gaps)), parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_can_be_reached() {
        let word = |forward: f64, backward: f64| {
            let near = |x: f64| vec![x, x + 0.01, x - 0.02];
            let mut gaps = vec![near(1.5); 10];
            (gaps[4], gaps[5]) = (vec![forward, forward - 0.01, forward], vec![backward; 3]);
            verdict(&claims(&gaps)).word()
        };
        assert_eq!(word(0.5, 1.4), "reproduced");
        assert_eq!(word(2.5, 0.5), "contradicted");
        assert_eq!(word(1.5, 1.5), "not seen at this scale");
    }
}
