//! E20: what a model can still do that was trained in NVFP4: recall and repeat.

use super::claim::{Claim, interval};
use super::common::{BF16, Kind, changed, seeds, short};
use super::memory;
use super::show::{concluded, intervals, spread};
use crate::arm::{Arm, Scale, Setting};
use crate::finding::{Figure, Findings, Table};
use crate::plot::{self, Axis};
use crate::statistics::paired_interval;
use crate::store::Runs;
use exmy::error::{Error, Result};
use exmy_train::train::data::{DataOptions, Dataset};

/// E20.
pub(super) struct Abilities;

const RECIPES: [(&str, &str); 3] = [("bf16", BF16), ("NVFP4", "nv-nvfp4"), ("CHON", "chon")];
const TASKS: [&str; 2] = ["recall", "induction"];
/// Percentage points that count as maintained.
const MARGIN: f64 = 2.0;

fn arms_of(setting: &Setting, kind: Kind, recipe: &str) -> Result<Vec<Arm>> {
    let setting = memory::setting(setting)?;
    let changes = format!("train.steps = {}", memory::steps(&setting));
    let of = |seed| changed(short(&setting, kind, recipe, seed), &changes);
    Ok(seeds(&setting, 5).into_iter().map(of).collect())
}

/// Whether CHON stays within the margin of bfloat16, in percent, task by task.
fn claims(kind: Kind, bf16: &[Vec<f64>; 2], chon: &[Vec<f64>; 2]) -> Vec<Claim> {
    let tasks = TASKS.iter().zip(bf16.iter().zip(chon));
    let of = |(task, (bf16, chon)): (&&str, (&Vec<f64>, &Vec<f64>))| {
        let lost: Vec<f64> = bf16.iter().zip(chon).map(|(a, b)| a - b).collect();
        let what = format!("{task} of {}, lost by CHON", kind.name());
        Claim::under(&what, &lost, MARGIN, " points")
    };
    tasks.map(of).collect()
}

impl Figure for Abilities {
    fn id(&self) -> &'static str {
        "E20"
    }

    fn title(&self) -> &'static str {
        "recall and induction after training in NVFP4"
    }

    fn source(&self) -> &'static str {
        "a question of our own, after \"downstream accuracy is maintained\" in the abstract of arXiv 2602.02047"
    }

    fn claim(&self) -> &'static str {
        "On the memory task (values of six keys, repetition of twelve letters, resets between episodes) a model trained \
         under CHON is at most 2 percentage points behind bfloat16; reproduced if the 95 % intervals of the paired \
         losses of accuracy lie below 2 for both tasks and both kinds of attention."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        if setting.scale == Scale::Small {
            return Vec::new();
        }
        let of =
            |kind| RECIPES.map(|(_, recipe)| arms_of(setting, kind, recipe).unwrap_or_default());
        Kind::ALL.into_iter().flat_map(of).flatten().collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if setting.scale == Scale::Small {
            return Ok(Findings::not_run());
        }
        let own = memory::setting(setting)?;
        let text = Dataset::load(own.source(), &DataOptions::default())
            .map_err(|error| Error::new(error.to_string()))?;
        let mut table = Table::new(
            "accuracy in percent (mean and range over seeds), and difference from bfloat16 in points (mean and 95 % \
             interval)",
            &["model", "recipe", "recall", "difference", "induction", "difference"],
        );
        let (mut all, mut panels) = (Vec::new(), Vec::new());
        for kind in Kind::ALL {
            // By recipe and task.
            let mut found: Vec<[Vec<f64>; 2]> = Vec::new();
            for (name, recipe) in RECIPES {
                let mut own: [Vec<f64>; 2] = Default::default();
                for arm in arms_of(setting, kind, recipe)? {
                    let right = memory::accuracy(&runs.of(&arm)?, &text)?;
                    own.iter_mut().zip(right).for_each(|(own, right)| own.push(100.0 * right));
                }
                found.push(own);
                let (own, base) = (&found[found.len() - 1], &found[0]);
                let mut row = vec![kind.name().to_owned(), name.to_owned()];
                for task in 0..TASKS.len() {
                    row.push(spread(&own[task]));
                    row.push(match recipe {
                        BF16 => "-".into(),
                        _ => interval(paired_interval(&own[task], &base[task], 0.95)),
                    });
                }
                table.row(row);
            }
            for (task, name) in TASKS.iter().enumerate() {
                let label = format!("{name} of {}, % right", kind.name());
                let values: Vec<Vec<f64>> = found.iter().map(|own| own[task].clone()).collect();
                panels.push(intervals(&label, &values));
            }
            all.extend(claims(kind, &found[0], &found[2]));
        }
        let figure = plot::Figure::new("What models recall and repeat")
            .subtitle("validation text, under each model's own recipe; mean and 95 % interval, and each seed")
            .x(Axis::categories("", RECIPES.map(|(name, _)| name)));
        Ok(concluded(&all, figure, panels, table))
    }
}

#[cfg(test)]
mod tests {
    use super::super::claim::verdict;
    use super::*;

    #[test]
    fn each_verdict_can_be_reached() {
        let word = |lost: [f64; 3]| {
            let bf16 = [vec![90.0; 3], vec![95.0; 3]];
            let chon = [lost.map(|x| 90.0 - x).into(), lost.map(|x| 95.0 - x).into()];
            verdict(&claims(Kind::Sa, &bf16, &chon)).word()
        };
        assert_eq!(word([0.1, 0.2, 0.0]), "reproduced");
        assert_eq!(word([8.0, 8.1, 8.3]), "contradicted");
        assert_eq!(word([0.0, 4.0, 1.0]), "not seen at this scale");
    }
}
