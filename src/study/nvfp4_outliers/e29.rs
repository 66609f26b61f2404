//! E29: the search behind the second half of E8, that CHON lowers what is flushed to zero of activations.
//!
//! E23, the search behind the first half, reads one step from weights that are the same for all. A patch leaves codes as they are, so
//! from the same weights CHON flushes what NVFP4 does, and what it changes it changes by training. Here both are trained in the cells
//! of E28, and their [differences](crate::study::differences) are those of the shares that the probe `rounding` records on the way.

use super::common::{changed, data, quantized, seeds};
use super::e08::next_step;
use super::grid;
use super::show::parts_mean;
use super::trials::{COLUMNS, NVFP4, Trial, steps, trials};
use crate::error::Result;
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::differences::{self, Beside, Found};
use crate::study::finding::{Figure, Findings};
use crate::study::statistics::mean;
use crate::study::store::{Runs, Trained};
use crate::train::data::Dataset;
use std::collections::{BTreeMap, BTreeSet};

/// E29.
pub(super) struct Search;

const CHON: &str = "chon+last=0";
/// Half the elements share a scale in the inputs of one operator: each block's largest magnitude is at most what it was, and less of
/// the rest is flushed beside it.
const SHORTER: &str = "nv-nvfp4+last=0+down_proj:forward:input=bf16>e2m1/8:e4m3fn+tensor";
/// So many that the two recipes that are compared have 200 runs.
const SEEDS: u64 = 5;
/// How often a run is looked at.
const LOOKS: u64 = 25;

/// What is flushed of the inputs by step, in percent.
type Series = BTreeMap<u64, f64>;

/// What is trained in every cell.
const RECIPES: [&str; 3] = [NVFP4, CHON, SHORTER];

fn arm(setting: &Setting, trial: Trial, recipe: &str, seed: u64) -> Arm {
    let every = (steps(setting) / LOOKS).max(1);
    let changes = format!("record.probes = [\"rounding\"]\nrecord.probe_every = {every}");
    changed(trial.arm(setting, recipe, seed), &changes)
}

/// The cells: those of E28, without planted channels and with four that begin 16 times as large.
fn cells(setting: &Setting) -> Vec<Trial> {
    trials(setting, [1.0, 16.0])
}

/// The names of what is flushed of the inputs at these sites.
fn inputs(sites: &[String]) -> BTreeSet<String> {
    sites.iter().map(|site| format!("{site}.forward.input.flushed")).collect()
}

/// What a run flushes of the named parts.
fn flushed(run: &Trained, parts: &BTreeSet<String>) -> Result<Series> {
    let lines = run.probe("rounding")?;
    let at = |line| Some(100.0 * parts_mean(line, |part| parts.contains(part))?);
    Ok(lines.iter().filter_map(|line| Some((line.step, at(line)?))).collect())
}

/// The mean of `a - b` over the steps that both have, NaN without any; one of them may have been lost on the way.
fn less(a: &Series, b: &Series) -> f64 {
    let pairs = a.iter().filter_map(|(step, a)| Some(a - b.get(step)?));
    mean(&pairs.collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

fn found(setting: &Setting, runs: &Runs<'_>, data: &Dataset, trial: Trial) -> Result<Found> {
    let own = |recipe| quantized(&arm(setting, trial, recipe, 1).config);
    // What CHON protects is flushed by nothing: only what both quantize is compared.
    let (both, of_nv) = (own(CHON)?, own(NVFP4)?.len());
    let inputs = inputs(&both);
    let mut found = Found {
        lr: trial.lr,
        words: trial.words(),
        searched: Vec::new(),
        control: Vec::new(),
        beside: Vec::new(),
    };
    for seed in seeds(setting, SEEDS) {
        let run = |recipe: &str| runs.of(&arm(setting, trial, recipe, seed));
        let (nvfp4, chon) = (run(NVFP4)?, run(CHON)?);
        let base = flushed(&nvfp4, &inputs)?;
        found.searched.push(less(&base, &flushed(&chon, &inputs)?));
        found.control.push(less(&base, &flushed(&run(SHORTER)?, &inputs)?));
        let [_, before] = next_step(&nvfp4, data, of_nv)?;
        let [_, after] = next_step(&chon, data, of_nv)?;
        found.beside.push(before - after);
    }
    Ok(found)
}

impl Figure for Search {
    fn id(&self) -> &'static str {
        "E29"
    }

    fn title(&self) -> &'static str {
        "what CHON flushes to zero: the search"
    }

    fn source(&self) -> &'static str {
        "a question of this study's own, behind E8 (arXiv 2602.02047, flush-to-zero ratios)"
    }

    fn claim(&self) -> &'static str {
        "There is a learning rate at which a smaller share of activations is flushed to zero in runs trained under CHON than under NVFP4, over \
         models of two and four layers without planted channels and with four of 16 times, in runs of 300 steps at five rates (at medium). Shares \
         are as in E8: of elements that were not zero, over the operators that both recipes quantize and over the records of the run, patched \
         channels counted as what their codes are. Reproduced if at a rate the interval of the paired differences lies above 0, of the means over \
         cells of each seed, at 99 % as there are five. What the next step flushes at the end with patched channels and protected operators \
         counted as kept, as in E8's table, is told and not judged: that is less by construction. The control: blocks of 8 in the inputs of \
         down_proj, one of the operators, must be seen to flush less."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        if setting.scale == Scale::Small {
            return Vec::new();
        }
        let of_cell = |trial: Trial| {
            let of = move |seed| RECIPES.map(|recipe| arm(setting, trial, recipe, seed));
            seeds(setting, SEEDS).into_iter().flat_map(of)
        };
        cells(setting).into_iter().flat_map(of_cell).collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if self.arms(setting).is_empty() {
            return Ok(Findings::not_run());
        }
        let data = data(setting)?;
        let cells = cells(setting).into_iter();
        let found: Vec<Found> =
            cells.map(|trial| found(setting, runs, &data, trial)).collect::<Result<_>>()?;
        let search = differences::Search {
            title: "How much less CHON flushes to zero than NVFP4, by learning rate",
            names: [
                "activations flushed under NVFP4 beyond CHON",
                "under NVFP4 beyond blocks of 8 before down_proj",
                "the same at the end, what CHON patches and protects counted as kept",
            ],
            legend: ["as codes", "blocks of 8", "kept counted"],
            unit: "points",
            least: 0.0,
            asks: Beside::Told,
            rates: grid::rates(setting),
            columns: COLUMNS.to_vec(),
        };
        Ok(search.find(&found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_steps_that_both_have_are_compared() {
        let [a, b] = [[(12, 5.0), (24, 7.0)], [(12, 4.0), (36, 1.0)]].map(Series::from);
        assert_eq!([less(&a, &b), less(&b, &a)], [1.0, -1.0]);
        assert!(less(&a, &Series::new()).is_nan());
    }

    #[test]
    fn the_search_is_large_enough_to_count() {
        let setting = Setting::unread(Scale::Medium);
        let mut names: Vec<String> = Search.arms(&setting).iter().map(Arm::name).collect();
        names.sort();
        names.dedup();
        // Two thirds of them are of the recipes that are compared.
        assert_eq!(names.len(), 300);
        let rates = grid::rates(&setting);
        assert!(rates.len() >= 5 && rates[rates.len() - 1] >= 99.0 * rates[0]);
        assert!(Search.arms(&Setting::unread(Scale::Small)).is_empty());
        assert!(Search.arms(&Setting::unread(Scale::Smoke)).len() <= 6);
    }

    /// CHON keeps two operators of a block in bfloat16: post-qk, here o_proj and the gate.
    #[test]
    fn what_both_quantize_is_compared_and_the_control_is_among_it() {
        let setting = Setting::unread(Scale::Medium);
        let trial = Trial { lr: 1e-3, layers: 2, times: 1.0 };
        let own = |recipe| quantized(&arm(&setting, trial, recipe, 1).config).unwrap();
        let [all, both, shorter] = RECIPES.map(own);
        assert_eq!(all, shorter);
        assert!(both.len() < all.len() && both.iter().all(|site| all.contains(site)), "{both:?}");
        assert!(both.contains(&"layers.1.down_proj".to_owned()), "{both:?}");
        assert!(!both.contains(&"layers.1.o_proj".to_owned()), "{both:?}");
        assert!(inputs(&both).contains("layers.1.down_proj.forward.input.flushed"));
    }
}
