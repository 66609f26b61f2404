//! E26: the search behind E7, in the runs of E21.
//!
//! E7 has one rate and one depth, and there the kurtosis of logits falls where the paper's rises. Here all softmax attention of
//! E21's grid is read: five rates, two depths, channels planted or not, trained in bfloat16 and in NVFP4. The control is
//! attention that is sharpened by hand: queries of one head are made larger from look to look, in weights that are trained.

use super::claim::Claim;
use super::common::{BF16, Kind};
use super::e07::{self, claims};
use super::frozen;
use super::grid::{self, Cell, Hits};
use super::show::{at, late, parts_mean, series, spread};
use crate::error::Result;
use crate::plot::{self, Axis, Intervals, Panel};
use crate::study::arm::{Arm, Setting};
use crate::study::finding::{self, Figure, Findings, Part, Table, Verdict};
use crate::study::store::{Runs, Trained};
use crate::train::config::Config;

/// E26.
pub(super) struct Search;

/// What is looked at, as E7 does: all but the share of the first key, of which nothing is claimed.
const PARTS: [(&str, &str); 3] = [e07::PARTS[0], e07::PARTS[1], e07::PARTS[2]];

/// Steps and values of one run.
type Curve = Vec<(f64, f64)>;

/// What is read of a cell's runs.
struct Found {
    cell: Cell,
    /// Of each of the parts the curves of all seeds.
    curves: [Vec<Curve>; 3],
}

/// Cells of softmax attention.
fn cells(setting: &Setting) -> Vec<Cell> {
    grid::cells(setting).into_iter().filter(|cell| cell.kind == Kind::Sa).collect()
}

/// The three curves of a run.
fn curves(run: &Trained) -> Result<[Curve; 3]> {
    let of = |part: &str| series(run, "attention", |name| name.ends_with(&format!(".{part}")));
    let [a, b, c] = PARTS.map(|(part, _)| of(part));
    Ok([a?, b?, c?])
}

impl Found {
    fn of(setting: &Setting, runs: &Runs<'_>, cell: Cell) -> Result<Self> {
        let mut all: [Vec<Curve>; 3] = Default::default();
        for seed in grid::seeds(setting) {
            let found = curves(&runs.of(&cell.arm(setting, seed))?)?;
            for (all, one) in all.iter_mut().zip(found) {
                all.push(one);
            }
        }
        Ok(Self { cell, curves: all })
    }

    /// Whether each of E7's claims holds in all seeds: entropy falls, kurtosis rises, the largest logit rises.
    fn holds(&self) -> [bool; 3] {
        let [a, b, c] = &self.curves;
        let all: Vec<Claim> = claims([a, b, c]);
        [0, 1, 2].map(|i| all.get(i).is_some_and(|claim| claim.holds == Some(true)))
    }

    /// Values of the last third of the run, by seed.
    fn ends(&self, part: usize) -> Vec<f64> {
        self.curves[part].iter().map(|curve| late(curve, 2.0 / 3.0)).collect()
    }
}

/// How often the control's queries are made larger, each time by a quarter of a doubling.
const LOOKS: i32 = 12;

/// What the queries of the first head of each layer are multiplied with at a look. They begin twice as large: where the other
/// head's logits are the wider ones, tails of both together thin out first.
fn sharpen(config: &Config, params: &mut [f32], look: i32) {
    let factor = libm::exp2(1.0 + f64::from(look) / 4.0);
    let Some(model) = config.model.decoder() else { return };
    let layout = config.model.layout();
    for layer in 0..model.layers {
        let name = format!("model.layers.{layer}.self_attn.q_proj.weight");
        if let Some(entry) = layout.find(&name) {
            let head = entry.range.len() / model.heads;
            for x in &mut params[entry.range.clone()][..head] {
                *x = (f64::from(*x) * factor) as f32;
            }
        }
    }
}

/// The control of one rate: the shallowest model, trained in bfloat16 without planted channels, the first seed.
fn control(setting: &Setting, runs: &Runs<'_>, lr: f64) -> Result<Found> {
    let layers = grid::depths(setting)[0];
    let cell = Cell { kind: Kind::Sa, lr, layers, planted: false, recipe: BF16 };
    let arm = cell.arm(setting, grid::seeds(setting)[0]);
    let mut all: [Curve; 3] = Default::default();
    for look in 0..LOOKS {
        let change = |config: &Config, params: &mut [f32]| sharpen(config, params, look);
        let lines =
            frozen::observed_of(runs, &arm, grid::steps(setting), BF16, &["attention"], change)?;
        for (curve, (part, _)) in all.iter_mut().zip(PARTS) {
            let end = format!(".{part}");
            let value = parts_mean(&lines[0], |name| name.ends_with(&end));
            curve.push((f64::from(look), value.unwrap_or(f64::NAN)));
        }
    }
    Ok(Found { cell, curves: all.map(|curve| vec![curve]) })
}

/// In which cells some of the claims hold.
fn hits<'a>(found: impl IntoIterator<Item = &'a Found>, of: impl Fn(&[bool; 3]) -> bool) -> Hits {
    Hits::of(found.into_iter().map(|one| (one.cell.lr, of(&one.holds()))))
}

fn judge(found: &[Found], controls: &[Found]) -> Verdict {
    let every = |holds: &[bool; 3]| holds.iter().all(|one| *one);
    let all = hits(found, every);
    let plain = hits(found.iter().filter(|one| !one.cell.planted), every);
    let single = [0, 1, 2].map(|i| hits(found, |holds| holds[i]));
    let control = hits(controls, every);
    let fires = control.hits == control.cells && control.cells > 0;
    let text = format!(
        "{}; {}; {}; {}; {}; the control {}: queries of one head made larger show all three in {} of {}",
        all.told("all three trends are as in the paper"),
        plain.told("without planted channels"),
        single[0].told("entropy falls"),
        single[1].told("kurtosis of logits rises"),
        single[2].told("the largest logit rises"),
        finding::fires(fires),
        control.hits,
        control.cells
    );
    Verdict::of(fires && all.any(), false, text)
}

impl Figure for Search {
    fn id(&self) -> &'static str {
        "E26"
    }

    fn title(&self) -> &'static str {
        "softmax attention over training: the search"
    }

    fn source(&self) -> &'static str {
        "a question of this study's own, behind E7 (arXiv 2602.02047, Figure 7)"
    }

    fn claim(&self) -> &'static str {
        "Over the grid of E21 there is a rate at which, in all cells of softmax attention and all seeds, the entropy of the softmax falls over \
         training while the kurtosis of its logits and their mean maximum rise (Mann and Kendall's test, one-sided, 5 %, as in E7). Reproduced if \
         there is such a rate. The control: at the last weights of a run of each rate queries of one head are made larger step by step, and all three \
         trends must be seen at all rates."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        grid::arms(setting)
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if self.arms(setting).is_empty() {
            return Ok(Findings::not_run());
        }
        let found: Vec<Found> = cells(setting)
            .into_iter()
            .map(|cell| Found::of(setting, runs, cell))
            .collect::<Result<_>>()?;
        let rates = grid::rates(setting);
        let controls: Vec<Found> =
            rates.iter().map(|&lr| control(setting, runs, lr)).collect::<Result<_>>()?;
        let verdict = judge(&found, &controls);
        let parts = vec![Part::Picture(picture(&rates, &found)), Part::Table(table(&found))];
        Ok(Findings { verdict, parts })
    }
}

/// The ends of runs by rate: without planted channels and with.
fn picture(rates: &[f64], found: &[Found]) -> plot::Figure {
    let by_rate = |planted: bool, part: usize| {
        let of_rate = |(x, lr): (usize, &f64)| {
            let own = found.iter().filter(|one| one.cell.planted == planted && one.cell.lr == *lr);
            at(x, &own.flat_map(|one| one.ends(part)).collect::<Vec<_>>())
        };
        rates.iter().enumerate().filter_map(of_rate).collect::<Vec<_>>()
    };
    let figure = plot::Figure::new("Softmax attention by learning rate")
        .subtitle("last third of the runs; mean and 95 % interval over depths, formats and seeds")
        .x(Axis::categories("learning rate", rates.iter().map(|lr| format!("{lr:e}"))));
    PARTS.iter().enumerate().fold(figure, |figure, (part, (_, label))| {
        // Logits span four decades; the other two do not.
        let axis = if part == 2 { Axis::log(*label) } else { Axis::linear(*label) };
        let panel = Panel::new(axis)
            .intervals(Intervals::new("no channels planted", by_rate(false, part)))
            .intervals(Intervals::new("planted", by_rate(true, part)));
        figure.panel(panel)
    })
}

fn table(found: &[Found]) -> Table {
    let mut table = Table::new(
        "cells of softmax attention: whether each trend is as in the paper in all seeds, and the last third of the run (mean and range over seeds)",
        &[
            "rate",
            "layers",
            "planted",
            "trained in",
            "entropy falls",
            "kurtosis rises",
            "largest rises",
            "entropy",
            "kurtosis",
            "largest logit",
        ],
    );
    for one in found {
        let [_, rate, layers, planted, recipe] = one.cell.words();
        let holds = one.holds().map(|holds| if holds { "yes" } else { "no" }.to_owned());
        let ends = [0, 1, 2].map(|part| spread(&one.ends(part)));
        table.row([rate, layers, planted, recipe].into_iter().chain(holds).chain(ends));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::arm::Scale;

    fn curve(slope: f64) -> Curve {
        (0..9).map(|i| (f64::from(i), slope * f64::from(i))).collect()
    }

    fn found(lr: f64, slopes: [f64; 3]) -> Found {
        let cell = Cell { kind: Kind::Sa, lr, layers: 2, planted: false, recipe: BF16 };
        Found { cell, curves: slopes.map(|slope| vec![curve(slope), curve(2.0 * slope)]) }
    }

    #[test]
    fn each_part_can_fail() {
        let paper = [-1.0, 1.0, 1.0];
        let word = |one: [f64; 3], control: [f64; 3]| {
            let all = [found(1e-3, paper), found(1e-2, one), found(1e-3, one)];
            judge(&all, &[found(1e-3, paper), found(1e-2, control)]).word()
        };
        let not = "not seen at this scale";
        assert_eq!(word(paper, paper), "reproduced");
        for part in 0..3 {
            let mut other = paper;
            other[part] = 0.0 - other[part];
            assert_eq!(word(other, paper), not, "{part}");
            assert_eq!(word(paper, other), not, "the control, {part}");
        }
        let mut one = found(1e-3, paper);
        one.curves[1][1] = curve(-1.0);
        assert_eq!(one.holds(), [true, false, true], "one seed the other way round");
    }

    #[test]
    fn only_queries_of_the_first_head_are_made_larger() {
        let setting = Setting::unread(Scale::Medium);
        let cell = Cell { kind: Kind::Sa, lr: 1e-3, layers: 2, planted: false, recipe: BF16 };
        let config = cell.arm(&setting, 1).config;
        let before = config.model.initialize(1);
        let mut after = before.clone();
        sharpen(&config, &mut after, 4);
        let layout = config.model.layout();
        let changed = before.iter().zip(&after).filter(|(a, b)| a != b).count();
        // Two layers, half of 64 x 64 weights.
        assert_eq!(changed, 2 * 64 * 64 / 2);
        let first = layout.find("model.layers.1.self_attn.q_proj.weight").unwrap().range.start;
        assert_eq!(after[first], 4.0 * before[first]);
    }

    #[test]
    fn the_search_is_large_enough_to_count() {
        let setting = Setting::unread(Scale::Medium);
        let runs = cells(&setting).len() * grid::seeds(&setting).len();
        assert_eq!(runs, 200);
        let arm = cells(&setting)[0].arm(&setting, 1);
        assert!(arm.config.record.probes.iter().any(|probe| probe == "attention"));
    }
}
