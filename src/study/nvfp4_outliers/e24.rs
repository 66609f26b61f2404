//! E24: the search behind E9, in the runs of E21.
//!
//! In the setting that it judges, largest magnitudes gather in the last layers and kurtosis does not (E9). Here one more step
//! in bfloat16 is done from the last weights of each of E21's runs without planted channels, and its inputs are measured as E9
//! does; and from those of models of eight layers, as many as E9 is to have, trained likewise. As in E21 what counts is what all cells of a learning rate show. The control are the runs in bfloat16 with
//! a channel planted in the norms of the last layer alone, which changes nothing of what they compute: an outlier that
//! lies nowhere else must be found there.

use super::common::{BF16, Kind};
use super::e09::{MEASURES, of_layer, ratio};
use super::frozen;
use super::grid::{self, Cell, Hits, plant_last};
use super::show::{at, spread};
use crate::error::Result;
use crate::plot::{self, Axis, Intervals, Panel};
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::finding::{self, Figure, Findings, Part, Table, Verdict};
use crate::study::store::Runs;
use crate::train::config::Config;
use crate::train::probe::Line;

/// E24.
pub(super) struct Search;

/// The last layers over the others, seed by seed: kurtosis, and the largest magnitude.
type Ratios = [Vec<f64>; 2];

/// Layers of the models that are deeper than E21's.
const DEEP: usize = 8;

/// The cells: those of E21 without planted channels, and deeper ones.
fn cells(setting: &Setting) -> Vec<Cell> {
    let mut cells = grid::cells(setting);
    cells.retain(|cell| !cell.planted);
    if setting.scale == Scale::Medium {
        let depth = grid::depths(setting)[0];
        let shallow: Vec<Cell> = cells.iter().copied().filter(|one| one.layers == depth).collect();
        cells.extend(shallow.into_iter().map(|cell| Cell { layers: DEEP, ..cell }));
    }
    cells
}

/// A run of a cell, whose last weights are kept. What E21 does not read needs none of its probes.
fn arm(setting: &Setting, cell: Cell, seed: u64) -> Arm {
    if cell.layers == DEEP {
        let steps = grid::steps(setting);
        return cell.trial(setting, seed, steps).keeping(&[steps]);
    }
    cell.arm(setting, seed)
}

/// What is read of a cell's runs.
#[derive(Clone, Debug)]
struct Found {
    cell: Cell,
    ratios: Ratios,
    /// The same with a channel planted in the last layer; of the control's cells alone.
    control: Option<Ratios>,
}

/// The ratios of one model, of lines in the order of the measures.
fn ratios(lines: &[Line], layers: usize) -> [f64; 2] {
    [0, 1].map(|at| {
        let of = |layer| of_layer(&lines[at], layer, MEASURES[at].2).unwrap_or(f64::NAN);
        ratio(&(0..layers).map(of).collect::<Vec<_>>())
    })
}

/// The ratios of a cell, whose weights are changed first.
fn read(
    setting: &Setting,
    runs: &Runs<'_>,
    cell: Cell,
    change: fn(&Config, &mut [f32]),
) -> Result<Ratios> {
    let probes = MEASURES.map(|(_, probe, _)| probe);
    let mut all = Ratios::default();
    for seed in grid::seeds(setting) {
        let arm = arm(setting, cell, seed);
        let lines = frozen::observed_of(runs, &arm, grid::steps(setting), BF16, &probes, change)?;
        for (all, one) in all.iter_mut().zip(ratios(&lines, cell.layers)) {
            all.push(one);
        }
    }
    Ok(all)
}

/// Whether a measure gathers in the last layers, in all seeds.
fn gathers(ratios: &[f64]) -> bool {
    !ratios.is_empty() && ratios.iter().all(|&ratio| ratio > 1.0)
}

/// Whether both do.
fn both(ratios: &Ratios) -> bool {
    ratios.iter().all(|one| gathers(one))
}

impl Found {
    fn of(setting: &Setting, runs: &Runs<'_>, cell: Cell) -> Result<Self> {
        let control = (cell.recipe == BF16).then(|| read(setting, runs, cell, plant_last));
        let ratios = read(setting, runs, cell, |_, _| {})?;
        Ok(Self { cell, ratios, control: control.transpose()? })
    }
}

/// Cells of one kind, or of both, of which something is shown.
fn count(found: &[Found], kind: Option<Kind>, shows: impl Fn(&Ratios) -> bool) -> Hits {
    let own = found.iter().filter(|one| kind.is_none_or(|kind| one.cell.kind == kind));
    Hits::of(own.map(|one| (one.cell.lr, shows(&one.ratios))))
}

/// What the cells of the control show.
fn control(found: &[Found]) -> Hits {
    let of = |one: &Found| Some((one.cell.lr, both(one.control.as_ref()?)));
    Hits::of(found.iter().filter_map(of))
}

fn judge(found: &[Found]) -> Verdict {
    let (searched, control) = (count(found, None, both), control(found));
    let mut texts = vec![searched.told("kurtosis and magnitudes gather in the last layers")];
    for (at, name) in ["kurtosis", "magnitudes"].into_iter().enumerate() {
        texts.push(count(found, None, |ratios| gathers(&ratios[at])).told(name));
    }
    texts.extend(
        Kind::ALL
            .map(|kind| count(found, Some(kind), both).told(&format!("both of {}", kind.name()))),
    );
    let fires = finding::fires(control.any());
    let what = format!("the control {fires}: with a channel planted in the last layer both");
    texts.push(control.told(&what));
    let text = texts.join("; ");
    Verdict::of(control.any() && searched.any(), false, text)
}

impl Figure for Search {
    fn id(&self) -> &'static str {
        "E24"
    }

    fn title(&self) -> &'static str {
        "outliers by depth: the search"
    }

    fn source(&self) -> &'static str {
        "a question of this study's own, behind E9 (arXiv 2602.02047, by notes of readers)"
    }

    fn claim(&self) -> &'static str {
        "Over the grid of E21 and models of eight layers there is a rate at which, in all cells without planted channels of both kinds of attention and all \
         seeds, the excess kurtosis of the inputs of linear operators and their largest magnitude are higher in the last quarter of the layers (one layer of \
         two or four, two of eight) than in the others. Of one step in bfloat16 from the last weights. Reproduced if there is such a rate. The control: where a channel \
         is planted in the norms of the last layer of the models trained in bfloat16, which changes nothing of what they compute, both must be higher there, \
         at some rate in all cells and all seeds; at other rates a search that finds nothing says little."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        if setting.scale == Scale::Small {
            return Vec::new();
        }
        let seeds = grid::seeds(setting);
        let of = |cell: Cell| seeds.iter().map(move |&seed| arm(setting, cell, seed));
        cells(setting).into_iter().flat_map(of).collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if self.arms(setting).is_empty() {
            return Ok(Findings::not_run());
        }
        let cells = cells(setting).into_iter();
        let found: Vec<Found> =
            cells.map(|cell| Found::of(setting, runs, cell)).collect::<Result<_>>()?;
        let parts = vec![Part::Picture(picture(setting, &found)), Part::Table(table(&found))];
        Ok(Findings { verdict: judge(&found), parts })
    }
}

/// Both ratios by rate, of both kinds and of the control.
fn picture(setting: &Setting, found: &[Found]) -> plot::Figure {
    let rates = grid::rates(setting);
    let by_rate = |of: &dyn Fn(&Found) -> Vec<f64>| {
        let of_rate = |(x, lr): (usize, &f64)| {
            let own = found.iter().filter(|one| one.cell.lr == *lr);
            at(x, &own.flat_map(of).collect::<Vec<_>>())
        };
        rates.iter().enumerate().filter_map(of_rate).collect::<Vec<_>>()
    };
    let panel = |measure: usize| {
        let mut panel = Panel::new(Axis::log(format!("{}: ratio", MEASURES[measure].0)));
        for kind in Kind::ALL {
            let of = |one: &Found| match one.cell.kind == kind {
                true => one.ratios[measure].clone(),
                false => Vec::new(),
            };
            panel = panel.intervals(Intervals::new(kind.name(), by_rate(&of)));
        }
        let control = |one: &Found| {
            one.control.as_ref().map_or_else(Vec::new, |ratios| ratios[measure].clone())
        };
        panel.intervals(Intervals::new("planted last", by_rate(&control))).rule(1.0, "")
    };
    plot::Figure::new("The last quarter of the layers over the others, by learning rate")
        .subtitle("at the last weights; mean and 95 % interval over depths, formats and seeds")
        .x(Axis::categories("learning rate", rates.iter().map(|lr| format!("{lr:e}"))))
        .panel(panel(0))
        .panel(panel(1))
}

fn table(found: &[Found]) -> Table {
    let mut table = Table::new(
        "cells: the last quarter of the layers over the others at the last weights, mean and range over seeds",
        &[
            "model",
            "rate",
            "layers",
            "trained in",
            "kurtosis",
            "largest magnitude",
            "kurtosis, planted last",
            "largest magnitude, planted last",
        ],
    );
    for one in found {
        let [kind, rate, layers, _, recipe] = one.cell.words();
        let [kurtosis, magnitude] = one.ratios.each_ref().map(|one| spread(one));
        let control = one.control.as_ref().map(|control| control.each_ref().map(|one| spread(one)));
        let [kurtosis_after, magnitude_after] = control.unwrap_or_default();
        table.row([
            kind,
            rate,
            layers,
            recipe,
            kurtosis,
            magnitude,
            kurtosis_after,
            magnitude_after,
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::probe::Values;

    /// E21's runs without planted channels, and half as many of eight layers.
    #[test]
    fn the_search_is_large_enough_to_count() {
        let setting = Setting::unread(Scale::Medium);
        let arms = Search.arms(&setting);
        let deep =
            |arm: &&Arm| arm.config.model.decoder().is_some_and(|model| model.layers == DEEP);
        assert_eq!((arms.len(), arms.iter().filter(deep).count()), (300, 100));
        let shared: Vec<String> = grid::arms(&setting).iter().map(Arm::name).collect();
        assert_eq!(arms.iter().filter(|arm| shared.contains(&arm.name())).count(), 200);
    }

    fn found(kind: Kind, lr: f64, recipe: &'static str) -> Found {
        let cell = Cell { kind, lr, layers: 2, planted: false, recipe };
        let control = (recipe == BF16).then(|| [vec![4.0; 2], vec![6.0; 2]]);
        Found { cell, ratios: [vec![1.2, 1.3], vec![1.5, 1.6]], control }
    }

    /// Outliers as in the paper at 1e-3 with a control that fires, and at another rate magnitudes alone.
    fn all() -> [Found; 5] {
        let mut other = found(Kind::Sa, 1e-2, "nv-nvfp4");
        other.ratios[0] = vec![0.5, 2.0];
        [
            found(Kind::Gla, 1e-3, BF16),
            found(Kind::Sa, 1e-3, BF16),
            found(Kind::Gla, 1e-3, "nv-nvfp4"),
            found(Kind::Sa, 1e-3, "nv-nvfp4"),
            other,
        ]
    }

    #[test]
    fn each_part_can_fail() {
        let word = |change: fn(&mut [Found; 5])| {
            let mut cells = all();
            change(&mut cells);
            judge(&cells).word()
        };
        let not = "not seen at this scale";
        assert_eq!(word(|_| {}), "reproduced");
        assert_eq!(word(|all| all[0].ratios[0][1] = 0.99), not, "kurtosis of one seed");
        assert_eq!(word(|all| all[3].ratios[1][0] = 1.0), not, "magnitudes of one seed");
        assert_eq!(word(|all| all[1].ratios[0][0] = f64::NAN), not, "a run that diverged");
        assert_eq!(word(|all| all[1].control = Some([vec![0.9; 2], vec![6.0; 2]])), not, "control");
        assert_eq!(
            word(|all| all.iter_mut().for_each(|one| one.control = None)),
            not,
            "no control"
        );
        assert!(!gathers(&[]));
    }

    #[test]
    fn what_gathers_alone_is_told() {
        let verdict = judge(&all());
        let text = verdict.reason();
        for part in [
            "kurtosis and magnitudes gather in the last layers in 4 of 5 cells, in all of them at 1e-3;",
            "; kurtosis in 4 of 5 cells, in all of them at 1e-3;",
            "; magnitudes in 5 of 5 cells, in all of them at 1e-3, 1e-2;",
            "; both of GLA in 2 of 2 cells,",
            "; both of SA in 2 of 3 cells, in all of them at 1e-3;",
            "the control fires: with a channel planted in the last layer both in 2 of 2 cells, in all of them at 1e-3",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    /// Kurtosis 2, 2, 4, 8 of four layers; magnitudes half as large in the last; other operators and parts are no inputs of their own.
    #[test]
    fn ratios_are_of_inputs_by_layer() {
        let (mut kurtosis, mut channels) = (Values::default(), Values::default());
        for (layer, value) in [2.0, 2.0, 4.0, 8.0].into_iter().enumerate() {
            for (operator, offset) in
                [("q_proj", -1.0), ("o_proj", 1.0), ("gate_proj", 0.0), ("down_proj", 0.0)]
            {
                let name = format!("layers.{layer}.{operator}.input");
                kurtosis.part(&name, value + offset);
                kurtosis.part(format!("{name}.channels_max"), 900.0);
                channels.list(&name, vec![70.0, 80.0]);
                let top = if layer == 3 { 5.0 } else { 10.0 };
                channels.list(format!("{name}.top"), vec![top, 1.0, 1.0, 1.0, 0.5]);
            }
            kurtosis.part(format!("layers.{layer}.k_proj.input"), 700.0);
            kurtosis.part(format!("layers.{layer}.q_proj.weight"), 700.0);
        }
        let line = |probe: &str, values| Line { step: 1, probe: probe.to_owned(), values };
        let lines = [line("kurtosis", kurtosis), line("channels", channels)];
        assert_eq!(ratios(&lines, 4), [3.0, 0.5]);
    }
}
