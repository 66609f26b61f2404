//! E22: the search behind E3, E4 and E8, in the runs of E21.
//!
//! In the settings that they judge, linear attention has the heavier tails (E3, E4) and weights lose more to zero
//! than activations (E8), the other way round than in the paper. Here one more step is done from the last weights of
//! each of E21's runs, all in NVFP4, and its operands are looked at. As in E21 what counts is what all cells of a learning rate
//! show, and each of the two has a control with planted channels: they make tails heavy, and they are what others in
//! their blocks are flushed beside.

use super::common::{Kind, quantized, under};
use super::e03::of_inputs;
use super::e04::REMAIN;
use super::frozen;
use super::grid::{self, Cell, FORMATS, Hits};
use super::show::{parts_mean, spread};
use crate::error::Result;
use crate::plot::{self, Axis, Intervals, Panel};
use crate::study::arm::{Arm, Setting};
use crate::study::finding::{Figure, Findings, Part, Table, Verdict};
use crate::study::statistics::{mean, mean_interval};
use crate::study::store::Runs;

/// E22.
pub(super) struct Search;

/// What is read of a cell's runs, seed by seed.
#[derive(Clone, Debug)]
struct Found {
    cell: Cell,
    /// Mean excess kurtosis of inputs.
    kurtosis: Vec<f64>,
    /// Mean 99th percentile of amax / rms of blocks of inputs.
    spikes: Vec<f64>,
    /// Percent of inputs and of weights that are flushed, of operators in NVFP4.
    flushed: [Vec<f64>; 2],
}

impl Found {
    fn of(setting: &Setting, runs: &Runs<'_>, cell: Cell) -> Result<Self> {
        let (mut kurtosis, mut spikes, mut flushed) = (Vec::new(), Vec::new(), [vec![], vec![]]);
        for seed in grid::seeds(setting) {
            let arm = cell.arm(setting, seed);
            let probes = ["kurtosis", "spikes", "rounding"];
            let line = frozen::observed(runs, &arm, grid::steps(setting), FORMATS[1], &probes)?;
            let of = |pick: &dyn Fn(&str) -> bool| parts_mean(&line, pick).unwrap_or(f64::NAN);
            kurtosis.push(of(&|part| of_inputs(part, "input")));
            spikes.push(of(&|part| of_inputs(part, "input.rms_p99")));
            let sites = quantized(&under(&arm.config, FORMATS[1])?)?;
            for (operand, flushed) in ["input", "weight"].into_iter().zip(&mut flushed) {
                let names: Vec<String> =
                    sites.iter().map(|site| format!("{site}.forward.{operand}.flushed")).collect();
                flushed.push(100.0 * of(&|part| names.iter().any(|name| name == part)));
            }
        }
        Ok(Self { cell, kurtosis, spikes, flushed })
    }

    /// Whether activations lose more than weights in all seeds.
    fn activations_lose_more(&self) -> bool {
        below(&self.flushed[1], &self.flushed[0])
    }
}

/// Whether all of `a` are below their pair in `b`.
fn below(a: &[f64], b: &[f64]) -> bool {
    !a.is_empty() && a.iter().zip(b).all(|(a, b)| a < b)
}

/// Cells of GLA and of SA that differ in nothing else, without planted channels in GLA, and in SA with or without.
fn pairs(found: &[Found], planted: bool) -> Vec<(&Found, &Found)> {
    let of_gla = found.iter().filter(|one| one.cell.kind == Kind::Gla && !one.cell.planted);
    let partner = |gla: &Found| {
        let cell = Cell { kind: Kind::Sa, planted, ..gla.cell };
        found.iter().find(|one| one.cell == cell)
    };
    of_gla.filter_map(|gla| Some((gla, partner(gla)?))).collect()
}

/// Whether tails are as in the paper, in all seeds: heavier in softmax attention, and spikes of blocks in linear attention
/// nearly as large.
fn tails((gla, sa): (&Found, &Found)) -> bool {
    let mut spikes = gla.spikes.iter().zip(&sa.spikes);
    below(&gla.kurtosis, &sa.kurtosis) && spikes.all(|(gla, sa)| gla / sa >= REMAIN)
}

/// What is seen without planted channels of tails and of what is flushed.
fn searched(found: &[Found]) -> [Hits; 2] {
    let flushed = found.iter().filter(|one| one.cell.kind == Kind::Gla && !one.cell.planted);
    [
        Hits::of(pairs(found, false).into_iter().map(|pair| (pair.0.cell.lr, tails(pair)))),
        Hits::of(flushed.map(|one| (one.cell.lr, one.activations_lose_more()))),
    ]
}

/// The same with planted channels, in softmax attention alone as far as tails go.
fn controls(found: &[Found]) -> [Hits; 2] {
    let heavier = |(gla, sa): (&Found, &Found)| (gla.cell.lr, below(&gla.kurtosis, &sa.kurtosis));
    let flushed = found.iter().filter(|one| one.cell.kind == Kind::Gla && one.cell.planted);
    [
        Hits::of(pairs(found, true).into_iter().map(heavier)),
        Hits::of(flushed.map(|one| (one.cell.lr, one.activations_lose_more()))),
    ]
}

fn judge(found: &[Found]) -> Verdict {
    let (searched, controls) = (searched(found), controls(found));
    let say = |what: &str, hits: &Hits| {
        format!("{what} in {} of {} cells, {}", hits.hits, hits.cells, hits.words())
    };
    let what = [
        "tails are heavier in SA and spikes remain in GLA",
        "activations of GLA lose more to zero than weights",
    ];
    let planted = [
        "tails of SA with planted channels are heavier than those of GLA without",
        "with planted channels activations lose more",
    ];
    let fires = |hits: &Hits| if hits.any() { "fires" } else { "does not fire" };
    let mut words: Vec<String> = what.iter().zip(&searched).map(|(w, h)| say(w, h)).collect();
    words.extend(
        planted
            .iter()
            .zip(&controls)
            .map(|(what, hits)| format!("a control {}: {}", fires(hits), say(what, hits))),
    );
    let text = words.join("; ");
    match controls.iter().all(Hits::any) {
        true => Verdict::of(searched.iter().all(Hits::any), false, text),
        false => Verdict::NotSeen(text),
    }
}

impl Figure for Search {
    fn id(&self) -> &'static str {
        "E22"
    }

    fn title(&self) -> &'static str {
        "tails, spikes and what is flushed: the search"
    }

    fn source(&self) -> &'static str {
        "a question of this study's own, behind E3, E4 and E8 (arXiv 2602.02047, Figures 1 and 4, and flush-to-zero ratios)"
    }

    fn claim(&self) -> &'static str {
        "Over the grid of E21 there is a rate at which, in all cells without planted channels and all seeds, inputs of linear \
         operators have a higher excess kurtosis in softmax attention than in gated linear attention of the same depth and training, while \
         the 99th percentile of amax / rms over blocks of 16 x 16 is in the latter at least 0.7 of the former's; and one at which NVFP4 flushes a larger share of \
         the inputs than of the weights of gated linear attention. All are of one step in NVFP4 from the last weights. Reproduced if there are both. The \
         controls: softmax attention with planted channels must have the heavier tails, and gated linear attention with planted channels must \
         lose more of its inputs, each at some rate in all cells and all seeds."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        grid::arms(setting)
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if self.arms(setting).is_empty() {
            return Ok(Findings::not_run());
        }
        let cells = grid::cells(setting).into_iter();
        let found: Vec<Found> =
            cells.map(|cell| Found::of(setting, runs, cell)).collect::<Result<_>>()?;
        let parts = vec![Part::Picture(picture(setting, &found)), Part::Table(table(&found))];
        Ok(Findings { verdict: judge(&found), parts })
    }
}

/// Tails of both kinds, and what GLA loses, by rate.
fn picture(setting: &Setting, found: &[Found]) -> plot::Figure {
    let rates = grid::rates(setting);
    let by_rate = |kind: Kind, planted: bool, of: &dyn Fn(&Found) -> Vec<f64>| {
        let at = |(x, lr): (usize, &f64)| {
            let own = found
                .iter()
                .filter(|one| (one.cell.kind, one.cell.planted) == (kind, planted))
                .filter(|one| one.cell.lr == *lr);
            let values: Vec<f64> = own.flat_map(of).collect();
            let value = mean(&values).unwrap_or(f64::NAN);
            let (low, high) =
                mean_interval(&values, 0.95).map_or((value, value), |i| (i.low, i.high));
            (x as f64, low, value, high)
        };
        rates.iter().enumerate().map(at).collect::<Vec<_>>()
    };
    let kurtosis = |one: &Found| one.kurtosis.clone();
    let inputs = |one: &Found| one.flushed[0].clone();
    let weights = |one: &Found| one.flushed[1].clone();
    let names = rates.iter().map(|lr| format!("{lr:e}"));
    plot::Figure::new("Tails of inputs, and what NVFP4 flushes to zero, by learning rate")
        .subtitle("at the last weights; mean and 95 % interval over depths, formats and seeds")
        .x(Axis::categories("learning rate", names))
        .panel(
            Panel::new(Axis::log("excess kurtosis of inputs"))
                .intervals(Intervals::new("GLA", by_rate(Kind::Gla, false, &kurtosis)))
                .intervals(Intervals::new("SA", by_rate(Kind::Sa, false, &kurtosis)))
                .intervals(Intervals::new("SA, planted", by_rate(Kind::Sa, true, &kurtosis))),
        )
        .panel(
            Panel::new(Axis::linear("flushed, %, GLA"))
                .intervals(Intervals::new("inputs", by_rate(Kind::Gla, false, &inputs)))
                .intervals(Intervals::new("weights", by_rate(Kind::Gla, false, &weights)))
                .intervals(Intervals::new("inputs, planted", by_rate(Kind::Gla, true, &inputs))),
        )
}

fn table(found: &[Found]) -> Table {
    let mut table = Table::new(
        "cells: inputs of linear operators at the last weights, and shares flushed to zero by NVFP4 in percent, mean and range over seeds",
        &[
            "model",
            "rate",
            "layers",
            "planted",
            "trained in",
            "kurtosis",
            "amax / rms: p99",
            "flushed of inputs",
            "of weights",
        ],
    );
    for Found { cell, kurtosis, spikes, flushed } in found {
        let [kind, rate, layers, planted, recipe] = cell.words();
        let [inputs, weights] = flushed.each_ref().map(|one| spread(one));
        let (kurtosis, spikes) = (spread(kurtosis), spread(spikes));
        table.row([kind, rate, layers, planted, recipe, kurtosis, spikes, inputs, weights]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::common::BF16;
    use super::*;

    fn found(kind: Kind, planted: bool, kurtosis: f64, flushed: [f64; 2]) -> Found {
        let cell = Cell { kind, lr: 1e-3, layers: 2, planted, recipe: BF16 };
        let flushed = flushed.map(|share| vec![share; 2]);
        Found { cell, kurtosis: vec![kurtosis, kurtosis + 1.0], spikes: vec![8.0; 2], flushed }
    }

    /// Tails and flushing as in the paper, with controls that fire.
    fn all() -> [Found; 4] {
        [
            found(Kind::Gla, false, 5.0, [9.0, 8.0]),
            found(Kind::Sa, false, 7.0, [9.0, 8.0]),
            found(Kind::Gla, true, 9.0, [20.0, 8.0]),
            found(Kind::Sa, true, 90.0, [20.0, 8.0]),
        ]
    }

    #[test]
    fn each_part_can_fail() {
        let word = |change: fn(&mut [Found; 4])| {
            let mut cells = all();
            change(&mut cells);
            judge(&cells).word()
        };
        assert_eq!(word(|_| {}), "reproduced");
        let not = "not seen at this scale";
        assert_eq!(word(|all| all[1].kurtosis[1] = 5.5), not, "one seed the other way round");
        assert_eq!(word(|all| all[0].spikes[0] = 5.5), not, "0.69 of softmax attention's");
        assert_eq!(word(|all| all[0].flushed[0][1] = 7.0), not, "weights lose more in one seed");
        assert_eq!(word(|all| all[3].kurtosis[0] = 1.0), not, "the control of tails");
        assert_eq!(word(|all| all[2].flushed[1][0] = 21.0), not, "the control of flushing");
    }

    #[test]
    fn cells_are_paired_by_all_but_their_kind() {
        let mut cells = all().to_vec();
        let deeper = Cell { layers: 4, ..cells[0].cell };
        cells.push(Found { cell: deeper, ..cells[0].clone() });
        assert_eq!(pairs(&cells, false).len(), 1, "no partner of four layers");
        assert_eq!(pairs(&cells, true)[0].1.kurtosis[0], 90.0);
        assert_eq!(searched(&cells)[0].cells, 1);
    }
}
