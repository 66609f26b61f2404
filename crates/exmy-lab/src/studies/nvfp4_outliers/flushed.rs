//! E8: how much is flushed to zero, of activations and of weights, under NVFP4 and under CHON.

use super::weights::{self, quantized, resumed};
use crate::criterion::{By, Criterion, Is, Opposite, Requirement, ask};
use crate::finding::{Findings, Part, Table};
use crate::measure::Results;
use crate::plot::{self, Axis, Panel};
use crate::series::{draw, parts_mean, spread};
use crate::statistics::mean;
use crate::store::Trained;
use crate::test_result::{TestResult, concluded};
use exmy::error::Result;
use exmy_train::nn::site::{Operand, Product, Site};
use exmy_train::recipe::state::RecipeState;
use exmy_train::recipe::{Observer, Rounded};
use exmy_train::train::data::Dataset;
use exmy_train::train::probe::{Key, Of};
use std::collections::{BTreeMap, BTreeSet};

const RECIPES: [&str; 2] = ["NVFP4", "CHON"];

/// Counts, channel by channel, what of the inputs of forward products is flushed.
#[derive(Default)]
pub struct Channels {
    /// By site: rows, and flushed elements of each channel.
    pub flushed: BTreeMap<Site, (usize, Vec<u64>)>,
}

impl Observer for Channels {
    fn operand(&mut self, seen: &Rounded<'_>) {
        if seen.product != Product::Forward || seen.operand != Operand::Input {
            return;
        }
        let (before, after) = (seen.before, seen.after);
        let count = |j: usize| {
            let is_flushed = |&i: &usize| before.at(i, j) != 0.0 && after.at(i, j) == 0.0;
            (0..before.rows()).filter(is_flushed).count() as u64
        };
        let channels = (0..before.cols()).map(count).collect();
        self.flushed.insert(seen.site, (before.rows(), channels));
    }
}

/// The hot channels of each operator, as a recipe's memory has them.
pub fn patched(memory: &RecipeState) -> BTreeMap<Site, BTreeSet<usize>> {
    let of = |(site, channels): (Site, &[u32])| {
        (site, channels.iter().map(|&channel| channel as usize).collect())
    };
    memory.hot_channels().map(of).collect()
}

/// The share of `sites`' inputs that is flushed in channels that no patch gives back.
pub fn effective(
    seen: &Channels,
    sites: &[Site],
    patched: &BTreeMap<Site, BTreeSet<usize>>,
) -> f64 {
    let share = |site: &Site| {
        let (rows, channels) = seen.flushed.get(site)?;
        let given_back = |j: &usize| patched.get(site).is_some_and(|set| set.contains(j));
        let lost = channels.iter().enumerate().filter(|(j, _)| !given_back(j)).map(|(_, n)| n);
        Some(lost.sum::<u64>() as f64 / (rows * channels.len()) as f64)
    };
    mean(&sites.iter().filter_map(share).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

/// What the next step of a run flushes of its activations, in percent, of as many operators as NVFP4
/// quantizes: as codes, and with patched channels counted as kept. What CHON protects is flushed by
/// nothing. NaN of a run that diverged.
fn next_step(run: &Trained, data: &Dataset, of_nv: usize) -> Result<[f64; 2]> {
    if run.summary.diverged_at.is_some() {
        return Ok([f64::NAN; 2]);
    }
    let config = run.folder.config()?;
    let mut trainer = resumed(run, &config, data)?;
    let mut seen = Channels::default();
    trainer.step(Some(&mut seen));
    let here = quantized(&config)?;
    seen.flushed.retain(|site, _| here.contains(site));
    let share = 100.0 * here.len() as f64 / of_nv as f64;
    let hot = patched(&trainer.state().memory);
    Ok([BTreeMap::new(), hot].map(|kept| share * effective(&seen, &here, &kept)))
}

pub fn claims(inputs: &[f64], weights: &[f64], chon: &[f64]) -> Vec<TestResult> {
    let unit = " points";
    vec![WEIGHTS.of_pairs(weights, inputs, unit), PROTECTED.of_pairs(chon, inputs, unit)]
}

const WEIGHTS: Requirement =
    ask("what NVFP4 flushes of weights", Is::Below("what it flushes of activations"), By::Interval);
const PROTECTED: Requirement =
    ask("what CHON flushes of activations", Is::Below("what NVFP4 does"), By::Interval);

pub(crate) const ASKS: Criterion = Criterion::new(&[WEIGHTS, PROTECTED], Opposite::One);

pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let data = weights::data(results.setting)?;
    let runs = RECIPES.map(|recipe| results.picked(&[recipe]));
    let [nvfp4, chon] = runs;
    let runs = [nvfp4?, chon?];
    let own = |at: usize| {
        runs[at].first().map_or(Ok(Vec::new()), |(planned, _)| quantized(&planned.config))
    };
    let (of_nv, both) = (own(0)?, own(1)?);
    let mut panels = Vec::new();
    // Of each recipe: means over the run of inputs and weights; at the end, of the sites that NVFP4
    // quantizes.
    let (mut inputs, mut weights, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    let mut table = Table::new(
        "share flushed to zero, in percent (mean and range over seeds)",
        &[
            "recipe",
            "activations",
            "weights",
            "at the end, all operators of NVFP4",
            "and patched channels counted as kept",
        ],
    );
    for (name, runs) in RECIPES.into_iter().zip(&runs) {
        let (mut of_inputs, mut of_weights) = (Vec::new(), Vec::new());
        let (mut raw, mut kept) = (Vec::new(), Vec::new());
        for (_, run) in runs {
            let lines = run.probe("rounding")?;
            let series = |operand: Operand| -> Vec<(f64, f64)> {
                let is_own = |key: &Key| match key.of() {
                    Of::Operator(site, Some(Product::Forward), Some(one)) => {
                        *one == operand && key.statistic() == "flushed" && both.contains(site)
                    }
                    _ => false,
                };
                let share = |line| parts_mean(line, is_own);
                let lines = lines.iter();
                lines.filter_map(|l| Some((l.step as f64, 100.0 * share(l)?))).collect()
            };
            of_inputs.push(series(Operand::Input));
            of_weights.push(series(Operand::Weight));
            let [codes, without] = next_step(run, &data, of_nv.len())?;
            raw.push(codes);
            kept.push(without);
        }
        let over_run = |series: &[Vec<(f64, f64)>]| -> Vec<f64> {
            series.iter().map(|one| crate::series::late(one, 0.0)).collect()
        };
        let mut panel =
            Panel::new(Axis::linear(format!("flushed to zero, %, {name}")).include(0.0));
        panel = draw(panel, "activations", &of_inputs);
        panels.push(draw(panel, "weights", &of_weights));
        inputs.push(over_run(&of_inputs));
        weights.push(over_run(&of_weights));
        table.row([
            name.to_owned(),
            spread(&over_run(&of_inputs)),
            spread(&over_run(&of_weights)),
            spread(&raw),
            spread(&kept),
        ]);
        ends.push(kept);
    }
    let figure = plot::Figure::new("Shares flushed to zero: activations and weights")
        .subtitle(
            "GLA, forward products, operators that both recipes quantize; bands: range of seeds",
        )
        .x(Axis::linear("step"));
    let figure = panels.into_iter().fold(figure, plot::Figure::panel);
    let text = Part::Text(format!(
        "A patch leaves the codes as they are, so the share flushed of an operand moves only as far as \
         training does. With patched channels counted as kept, and protected operators as not flushed, it is \
         {} % of the activations under CHON against {} % under NVFP4.",
        spread(&ends[1]),
        spread(&ends[0]),
    ));
    let claims = claims(&inputs[0], &weights[0], &inputs[1]);
    let parts = vec![Part::Picture(figure), Part::Table(table), text];
    Ok(concluded(&claims, parts))
}
