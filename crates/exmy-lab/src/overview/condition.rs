//! Runs that differ in the seed alone are one condition: one name, one colour, one row of a table.

use crate::comparison::Curves;
use crate::gather::RecordedRun;
use crate::keys::{comparable, repeats};
use crate::statistics::mean;
use exmy::error::Result;

/// Runs of one configuration with different seeds.
#[derive(Clone, Debug)]
pub struct Condition<'a> {
    /// What distinguishes it from the others: the recipe, and the rate where that differs.
    pub(super) name: String,
    /// Its runs.
    pub(super) runs: Vec<&'a RecordedRun>,
    /// The number of the condition that it is compared with: the first that has another recipe and is the
    /// same in everything else.
    pub(super) base: Option<usize>,
}

/// The conditions of some runs, in the order of the first run of each.
pub fn conditions(runs: &[RecordedRun]) -> Vec<Condition<'_>> {
    let mut found: Vec<Condition<'_>> = Vec::new();
    for run in runs {
        match found.iter_mut().find(|known| known.name == run.condition) {
            Some(known) => known.runs.push(run),
            None => {
                let (name, runs) = (run.condition.clone(), vec![run]);
                found.push(Condition { name, runs, base: None });
            }
        }
    }
    // Runs of one name that are no repeats of each other stand alone.
    let is_one =
        |one: &Condition<'_>| one.runs.iter().all(|run| repeats(&run.config, &one.runs[0].config));
    let mut split = Vec::new();
    for one in found {
        if is_one(&one) {
            split.push(one);
        } else {
            for run in one.runs {
                split.push(Condition { name: run.name.clone(), runs: vec![run], base: None });
            }
        }
    }
    let mut found = split;
    for i in 1..found.len() {
        let config = |of: &Condition<'_>| of.runs[0].config.clone();
        let own = config(&found[i]);
        found[i].base = found[..i].iter().position(|other| comparable(&config(other), &own));
    }
    found
}

impl Condition<'_> {
    /// Training and validation loss: the means of those that its runs have by now.
    pub(super) fn losses(&self) -> [Option<f64>; 2] {
        [0, 1].map(|which| {
            let each = self.runs.iter().filter_map(|run| run.losses()[which]);
            mean(&each.collect::<Vec<_>>())
        })
    }

    /// What its runs have recorded of a quantity.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(super) fn curves(&self, quantity: &str) -> Result<Curves> {
        let mut seeds = Vec::new();
        for run in &self.runs {
            let points = run.curve(quantity)?;
            if !points.is_empty() {
                seeds.push((run.config.seed, points));
            }
        }
        let end = |run: &&RecordedRun| run.diverged_at();
        let first = self.runs.iter().filter_map(end).min();
        let all = self.runs.iter().all(|run| end(run).is_some());
        let end = first.filter(|_| all).map(|step| format!("diverged at {step}"));
        Ok(Curves { name: self.name.clone(), seeds, base: self.base, end })
    }
}
