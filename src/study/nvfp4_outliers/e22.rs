//! E22 and E23: the searches behind E3 and E4, and E8, in the runs of E21.
//!
//! In the settings that they judge, linear attention has the heavier tails (E3, E4) and weights lose more to zero
//! than activations (E8), the other way round than in the paper. Here one more step is done from the last weights of
//! each of E21's runs, all in NVFP4, and its operands are looked at. As in E21 what counts is what all cells of a learning rate
//! show, and both have a control with planted channels: they make tails heavy, and they are what others in
//! their blocks are flushed beside.

use super::common::{Kind, quantized, under};
use super::e03::of_inputs;
use super::e04::REMAIN;
use super::frozen;
use super::grid::{self, Cell, FORMATS, Hits};
use super::show::{at, parts_mean, spread};
use crate::error::Result;
use crate::plot::{self, Axis, Intervals, Panel};
use crate::study::arm::{Arm, Setting};
use crate::study::finding::{self, Figure, Findings, Part, Table, Verdict};
use crate::study::store::Runs;

/// E22 and E23.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Search {
    /// E22.
    Tails,
    /// E23.
    Flushed,
}

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
    /// Of one of the searches; what the other looks at is left empty.
    fn of(search: Search, setting: &Setting, runs: &Runs<'_>, cell: Cell) -> Result<Self> {
        let (mut kurtosis, mut spikes, mut flushed) = (Vec::new(), Vec::new(), [vec![], vec![]]);
        for seed in grid::seeds(setting) {
            let arm = cell.arm(setting, seed);
            let probes: &[&str] = match search {
                Search::Tails => &["kurtosis", "spikes"],
                Search::Flushed => &["rounding"],
            };
            let lines = frozen::observed(runs, &arm, grid::steps(setting), FORMATS[1], probes)?;
            let of = |pick: &dyn Fn(&str) -> bool| {
                lines.iter().find_map(|line| parts_mean(line, pick)).unwrap_or(f64::NAN)
            };
            if search == Search::Tails {
                kurtosis.push(of(&|part| of_inputs(part, "input")));
                spikes.push(of(&|part| of_inputs(part, "input.rms_p99")));
                continue;
            }
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

/// Cells of GLA, with planted channels or without.
fn gla(found: &[Found], planted: bool) -> impl Iterator<Item = &Found> {
    found.iter().filter(move |one| (one.cell.kind, one.cell.planted) == (Kind::Gla, planted))
}

impl Search {
    /// What is seen without planted channels.
    fn searched(self, found: &[Found]) -> Hits {
        match self {
            Self::Tails => {
                Hits::of(pairs(found, false).into_iter().map(|p| (p.0.cell.lr, tails(p))))
            }
            Self::Flushed => {
                Hits::of(gla(found, false).map(|one| (one.cell.lr, one.activations_lose_more())))
            }
        }
    }

    /// With planted channels: heavier tails in softmax attention beside GLA without any (that spikes remain needs no control: they do in all
    /// cells), and what GLA loses.
    fn control(self, found: &[Found]) -> Hits {
        match self {
            Self::Tails => Hits::of(
                pairs(found, true)
                    .into_iter()
                    .map(|(gla, sa)| (gla.cell.lr, below(&gla.kurtosis, &sa.kurtosis))),
            ),
            Self::Flushed => {
                Hits::of(gla(found, true).map(|one| (one.cell.lr, one.activations_lose_more())))
            }
        }
    }

    fn judge(self, found: &[Found]) -> Verdict {
        let (searched, control) = (self.searched(found), self.control(found));
        let (what, planted) = match self {
            Self::Tails => (
                "tails are heavier in SA and spikes remain in GLA",
                "tails of SA with planted channels are heavier than those of GLA without",
            ),
            Self::Flushed => (
                "activations of GLA lose more to zero than weights",
                "the same with planted channels",
            ),
        };
        let fires = finding::fires(control.any());
        let text =
            format!("{}; the control {fires}: {}", searched.told(what), control.told(planted));
        Verdict::of(control.any() && searched.any(), false, text)
    }
}

impl Figure for Search {
    fn id(&self) -> &'static str {
        match self {
            Self::Tails => "E22",
            Self::Flushed => "E23",
        }
    }

    fn title(&self) -> &'static str {
        match self {
            Self::Tails => "tails and spikes: the search",
            Self::Flushed => "what is flushed to zero: the search",
        }
    }

    fn source(&self) -> &'static str {
        match self {
            Self::Tails => {
                "a question of this study's own, behind E3 and E4 (arXiv 2602.02047, Figures 1 and 4)"
            }
            Self::Flushed => {
                "a question of this study's own, behind E8 (arXiv 2602.02047, flush-to-zero ratios)"
            }
        }
    }

    fn claim(&self) -> &'static str {
        match self {
            Self::Tails => {
                "Over the grid of E21 there is a rate at which, in all cells without planted channels and all seeds, inputs of linear \
                 operators have a higher excess kurtosis in softmax attention than in gated linear attention of the same depth and training, while \
                 the 99th percentile of amax / rms over blocks of 16 x 16 is in the latter at least 0.7 of the former's. Of one step in NVFP4 \
                 from the last weights. Reproduced if there is such a rate. The control: softmax attention with planted channels must have the heavier \
                 tails, at some rate in all cells and all seeds; below or above such rates a search that finds nothing says little."
            }
            Self::Flushed => {
                "Over the grid of E21 there is a rate at which, in all cells of gated linear attention without planted channels and all seeds, \
                 NVFP4 flushes a larger share of the inputs than of the weights to zero. Of one step from the last weights. Reproduced if there is such a rate. \
                 The control: with planted channels it must be so, at some rate in all cells and all seeds."
            }
        }
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
            cells.map(|cell| Found::of(*self, setting, runs, cell)).collect::<Result<_>>()?;
        let parts =
            vec![Part::Picture(self.picture(setting, &found)), Part::Table(self.table(&found))];
        Ok(Findings { verdict: self.judge(&found), parts })
    }
}

impl Search {
    /// Tails of both kinds, or what GLA loses, by rate.
    fn picture(self, setting: &Setting, found: &[Found]) -> plot::Figure {
        let rates = grid::rates(setting);
        let by_rate = |kind: Kind, planted: bool, of: fn(&Found) -> &[f64]| {
            let of_rate = |(x, lr): (usize, &f64)| {
                let own = found
                    .iter()
                    .filter(|one| (one.cell.kind, one.cell.planted) == (kind, planted))
                    .filter(|one| one.cell.lr == *lr);
                let values: Vec<f64> = own.flat_map(|one| of(one).to_vec()).collect();
                at(x, &values)
            };
            rates.iter().enumerate().filter_map(of_rate).collect::<Vec<_>>()
        };
        let kurtosis: fn(&Found) -> &[f64] = |one| &one.kurtosis;
        let inputs: fn(&Found) -> &[f64] = |one| &one.flushed[0];
        let weights: fn(&Found) -> &[f64] = |one| &one.flushed[1];
        let (title, panel) = match self {
            Self::Tails => (
                "Tails of inputs by learning rate",
                Panel::new(Axis::log("excess kurtosis of inputs"))
                    .intervals(Intervals::new("GLA", by_rate(Kind::Gla, false, kurtosis)))
                    .intervals(Intervals::new("SA", by_rate(Kind::Sa, false, kurtosis)))
                    .intervals(Intervals::new("SA, planted", by_rate(Kind::Sa, true, kurtosis))),
            ),
            Self::Flushed => (
                "What NVFP4 flushes to zero in GLA, by learning rate",
                Panel::new(Axis::linear("flushed, %"))
                    .intervals(Intervals::new("inputs", by_rate(Kind::Gla, false, inputs)))
                    .intervals(Intervals::new("weights", by_rate(Kind::Gla, false, weights)))
                    .intervals(Intervals::new("inputs, planted", by_rate(Kind::Gla, true, inputs))),
            ),
        };
        plot::Figure::new(title)
            .subtitle("at the last weights; mean and 95 % interval over depths, formats and seeds")
            .x(Axis::categories("learning rate", rates.iter().map(|lr| format!("{lr:e}"))))
            .panel(panel)
    }

    fn table(self, found: &[Found]) -> Table {
        let (caption, columns) = match self {
            Self::Tails => (
                "cells: inputs of linear operators at the last weights, mean and range over seeds",
                ["kurtosis", "amax / rms: p99"],
            ),
            Self::Flushed => (
                "cells: shares flushed to zero by NVFP4 in percent, mean and range over seeds",
                ["inputs", "weights"],
            ),
        };
        let header = ["model", "rate", "layers", "planted", "trained in", columns[0], columns[1]];
        let mut table = Table::new(caption, &header);
        for Found { cell, kurtosis, spikes, flushed } in found {
            let [kind, rate, layers, planted, recipe] = cell.words();
            let [a, b] = match self {
                Self::Tails => [spread(kurtosis), spread(spikes)],
                Self::Flushed => flushed.each_ref().map(|one| spread(one)),
            };
            table.row([kind, rate, layers, planted, recipe, a, b]);
        }
        table
    }
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
        let word = |search: Search, change: fn(&mut [Found; 4])| {
            let mut cells = all();
            change(&mut cells);
            search.judge(&cells).word()
        };
        let (tails, flushed) = (Search::Tails, Search::Flushed);
        assert_eq!([tails, flushed].map(|search| word(search, |_| {})), ["reproduced"; 2]);
        let not = "not seen at this scale";
        assert_eq!(
            word(tails, |all| all[1].kurtosis[1] = 5.5),
            not,
            "one seed the other way round"
        );
        assert_eq!(word(tails, |all| all[0].spikes[0] = 5.5), not, "0.69 of softmax attention's");
        assert_eq!(word(tails, |all| all[3].kurtosis[0] = 1.0), not, "the control of tails");
        assert_eq!(word(flushed, |all| all[0].flushed[0][1] = 7.0), not, "weights lose more once");
        assert_eq!(
            word(flushed, |all| all[2].flushed[1][0] = 21.0),
            not,
            "the control of flushing"
        );
    }

    #[test]
    fn cells_are_paired_by_all_but_their_kind() {
        let mut cells = all().to_vec();
        let deeper = Cell { layers: 4, ..cells[0].cell };
        cells.push(Found { cell: deeper, ..cells[0].clone() });
        assert_eq!(pairs(&cells, false).len(), 1, "no partner of four layers");
        assert_eq!(pairs(&cells, true)[0].1.kurtosis[0], 90.0);
        assert_eq!(Search::Tails.searched(&cells).cells, 1);
    }
}
