//! E20: what a model can still do that was trained in NVFP4: recall and repeat.

use super::recall;
use crate::finding::{Findings, Table};
use crate::measure::Results;
use crate::plot::{self, Axis};
use crate::series::{concluded, intervals, spread};
use crate::statistics::paired_interval;
use crate::test_result::{TestResult, interval};
use exmy::error::{Error, Result};
use exmy_train::train::data::{DataOptions, Dataset, Source};

const RECIPES: [&str; 3] = ["bf16", "NVFP4", "CHON"];
const TASKS: [&str; 2] = ["recall", "induction"];
/// Percentage points that count as maintained.
const MARGIN: f64 = 2.0;

/// Whether CHON stays within the margin of bfloat16, in percent, task by task.
fn claims(kind: &str, bf16: &[Vec<f64>; 2], chon: &[Vec<f64>; 2]) -> Vec<TestResult> {
    let tasks = TASKS.iter().zip(bf16.iter().zip(chon));
    let of = |(task, (bf16, chon)): (&&str, (&Vec<f64>, &Vec<f64>))| {
        let lost: Vec<f64> = bf16.iter().zip(chon).map(|(a, b)| a - b).collect();
        let what = format!("{task} of {}, lost by CHON", kind);
        TestResult::under(&what, &lost, MARGIN, " points")
    };
    tasks.map(of).collect()
}

pub(crate) const ASKS: &str = "Reproduced where the 95 % intervals of the paired losses of accuracy under \
                               CHON lie below 2 percentage points for both tasks and both kinds of \
                               attention; contradicted where one lies above.";

pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let text = Dataset::load(&Source::Recall { seed: 0 }, &DataOptions::default())
        .map_err(|error| Error::new(error.to_string()))?;
    let mut table = Table::new(
        "accuracy in percent (mean and range over seeds), and difference from bfloat16 in points (mean and \
         95 % interval)",
        &["model", "recipe", "recall", "difference", "induction", "difference"],
    );
    let (mut all, mut panels) = (Vec::new(), Vec::new());
    for kind in ["GLA", "SA"] {
        // By recipe and task.
        let mut found: Vec<[Vec<f64>; 2]> = Vec::new();
        for recipe in RECIPES {
            let mut own: [Vec<f64>; 2] = Default::default();
            for (_, run) in results.picked(&[kind, recipe])? {
                let right = recall::accuracy(&run, &text)?;
                own.iter_mut().zip(right).for_each(|(own, right)| own.push(100.0 * right));
            }
            found.push(own);
            let (own, base) = (&found[found.len() - 1], &found[0]);
            let mut row = vec![kind.to_owned(), recipe.to_owned()];
            for task in 0..TASKS.len() {
                row.push(spread(&own[task]));
                row.push(match recipe {
                    "bf16" => "-".into(),
                    _ => interval(paired_interval(&own[task], &base[task], 0.95)),
                });
            }
            table.row(row);
        }
        for (task, name) in TASKS.iter().enumerate() {
            let label = format!("{name} of {}, % right", kind);
            let values: Vec<Vec<f64>> = found.iter().map(|own| own[task].clone()).collect();
            panels.push(intervals(&label, &values));
        }
        all.extend(claims(kind, &found[0], &found[2]));
    }
    let figure = plot::Figure::new("What models recall and repeat")
        .subtitle(
            "validation text, under each model's own recipe; mean and 95 % interval, and each seed",
        )
        .x(Axis::categories("", RECIPES));
    Ok(concluded(&all, figure, panels, table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_result::verdict;

    #[test]
    fn each_verdict_can_be_reached() {
        let word = |lost: [f64; 3]| {
            let bf16 = [vec![90.0; 3], vec![95.0; 3]];
            let chon = [lost.map(|x| 90.0 - x).into(), lost.map(|x| 95.0 - x).into()];
            verdict(&claims("SA", &bf16, &chon)).word()
        };
        assert_eq!(word([0.1, 0.2, 0.0]), "reproduced");
        assert_eq!(word([8.0, 8.1, 8.3]), "contradicted");
        assert_eq!(word([0.0, 4.0, 1.0]), "not seen at this scale");
    }
}
