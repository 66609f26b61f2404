//! E25: the search behind E15, in the runs of E21 and on artificial operands.
//!
//! On the artificial spikes that E15 judges, rotating the operands of the weight gradient loses signal. Here one more
//! step in NVFP4 is done twice from the last weights of each of E21's runs, with the rotation by 16 and without, and
//! the weight gradients are compared with those of the operands before rounding. Nothing is rounded stochastically, so
//! both steps see the same operands. As in E21 what counts is what all cells of a learning rate show. E15's own
//! product is made of spikes of other sizes and numbers beside that, in NVFP4 and MXFP4. The control is that product
//! with values that E2M1 rounds worst.

use super::common::{Kind, quantized, under};
use super::e15::{Activations, decibel};
use super::frozen;
use super::grid::{self, Cell, Hits};
use super::show::{at, spread};
use crate::error::Result;
use crate::plot::{self, Axis, Intervals, Panel};
use crate::study::arm::{Arm, Setting};
use crate::study::finding::{self, Figure, Findings, Part, Table, Verdict};
use crate::study::statistics::mean;
use crate::study::store::Runs;
use crate::train::probe::Line;

/// E25.
pub(super) struct Search;

/// The formats of artificial operands: what they are called, and their recipes with the rotation; the first is that of the steps.
const FORMATS: [(&str, &str); 2] = [("NVFP4", "nv-nvfp4+last=0"), ("MXFP4", "nv-mxfp4+last=0")];
/// What takes the rotation away.
const NONE: &str = "+rht=none";
/// How many times as large spikes are.
const SIZES: [f64; 5] = [3.0, 10.0, 30.0, 100.0, 300.0];
/// One value in so many is a spike.
const SHARES: [u64; 3] = [16, 64, 256];

/// What is read of a cell's runs.
#[derive(Clone, Debug)]
struct Found {
    cell: Cell,
    /// What the rotation gains, in dB, seed by seed.
    gain: Vec<f64>,
}

/// Artificial operands, draw by draw.
#[derive(Clone, Debug)]
struct Artificial {
    format: &'static str,
    activations: Activations,
    /// Signal to noise in dB without the rotation.
    plain: Vec<f64>,
    /// What the rotation adds to it.
    gain: Vec<f64>,
}

/// The mean over sites of what the weight gradient's ratio of signal to noise gains, in dB.
fn gain(without: &[Line], with: &[Line], sites: &[String]) -> f64 {
    let of = |site: &String| {
        let name = format!("{site}.grad_weight.error");
        let error =
            |lines: &[Line]| lines.iter().find_map(|line| line.values.parts.get(&name)?.number());
        let (without, with) = error(without).zip(error(with)).unwrap_or((f64::NAN, f64::NAN));
        20.0 * libm::log10(without / with)
    };
    mean(&sites.iter().map(of).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

/// Whether all draws or seeds gain.
fn gains(gain: &[f64]) -> bool {
    !gain.is_empty() && gain.iter().all(|&gain| gain > 0.0)
}

impl Found {
    fn of(setting: &Setting, runs: &Runs<'_>, cell: Cell) -> Result<Self> {
        let rotated = format!("{}+sr=none", FORMATS[0].1);
        let mut found = Vec::new();
        for seed in grid::seeds(setting) {
            let arm = cell.arm(setting, seed);
            let sites = quantized(&under(&arm.config, &rotated)?)?;
            let lines = |recipe: &str| {
                frozen::observed(runs, &arm, grid::steps(setting), recipe, &["products"])
            };
            found.push(gain(&lines(&format!("{rotated}{NONE}"))?, &lines(&rotated)?, &sites));
        }
        Ok(Self { cell, gain: found })
    }
}

impl Artificial {
    fn of(
        draws: u64,
        (format, recipe): (&'static str, &str),
        activations: Activations,
    ) -> Result<Self> {
        let ratios = |recipe: &str| -> Result<Vec<f64>> {
            (1..=draws).map(|seed| decibel(seed, activations, recipe)).collect()
        };
        let (plain, rotated) = (ratios(&format!("{recipe}{NONE}"))?, ratios(recipe)?);
        let gain = rotated.iter().zip(&plain).map(|(rotated, plain)| rotated - plain).collect();
        Ok(Self { format, activations, plain, gain })
    }

    /// All sizes and numbers of spikes in both formats, and then the controls.
    fn all(draws: u64) -> Result<Vec<Self>> {
        let mut kinds = Vec::new();
        for share in SHARES {
            kinds.extend(SIZES.map(|size| Activations::Spiky(share, size)));
        }
        let spiky =
            FORMATS.into_iter().flat_map(|format| kinds.iter().map(move |&kind| (format, kind)));
        // Unrotated, 5 is rounded to 4 wherever a block's largest is 6: a fifth of nearly all values is lost, and signal is only 14 dB above
        // noise. Rotated, each is a sum of 16 or 32 of them with signs, spread over all codes nearly as normal values are.
        let control = FORMATS.map(|format| (format, Activations::Between));
        spiky.chain(control).map(|(format, kind)| Self::of(draws, format, kind)).collect()
    }

    fn is_control(&self) -> bool {
        self.activations == Activations::Between
    }
}

/// Cells with planted channels or without.
fn count(found: &[Found], planted: bool) -> Hits {
    let own = found.iter().filter(|one| one.cell.planted == planted);
    Hits::of(own.map(|one| (one.cell.lr, gains(&one.gain))))
}

fn judge(found: &[Found], artificial: &[Artificial]) -> Verdict {
    let say = |what: &str, planted: bool| {
        let hits = count(found, planted);
        let own = found.iter().filter(|one| one.cell.planted == planted);
        let gain: Vec<f64> = own.flat_map(|one| one.gain.iter().copied()).collect();
        format!("{}, by {} dB", hits.told(what), spread(&gain))
    };
    let (control, spiky): (Vec<_>, Vec<_>) = artificial.iter().partition(|one| one.is_control());
    let fires = !control.is_empty() && control.iter().all(|one| gains(&one.gain));
    let kinds = FORMATS.map(|(format, _)| {
        let own = || spiky.iter().filter(|one| one.format == format);
        let hits = own().filter(|one| gains(&one.gain)).count();
        format!("{hits} of {} kinds in {format}", own().count())
    });
    let formats: Vec<String> =
        control.iter().map(|one| format!("{} dB in {}", spread(&one.gain), one.format)).collect();
    let text = format!(
        "the rotation raises the signal to noise of weight gradients {}; {}; of artificial spikes in {}; the control {}: of values that E2M1 \
         rounds worst it gains {}",
        say("without planted channels", false),
        say("with them", true),
        kinds.join(" and "),
        finding::fires(fires),
        formats.join(", ")
    );
    Verdict::of(fires && count(found, false).any(), false, text)
}

impl Figure for Search {
    fn id(&self) -> &'static str {
        "E25"
    }

    fn title(&self) -> &'static str {
        "rotations of weight gradients: the search"
    }

    fn source(&self) -> &'static str {
        "a question of this study's own, behind E15 (arXiv 2509.25149, Figures 11 to 13)"
    }

    fn claim(&self) -> &'static str {
        "Over the grid of E21 there is a rate at which, in all cells without planted channels and all seeds, rotating the operands of the weight \
         gradient by 16 raises its ratio of signal to noise, in dB on average over the linear operators in NVFP4. Of one step \
         from the last weights with the rotation and one without, nothing rounded stochastically. Reproduced if there is such a rate. Cells with planted channels and artificial operands with spikes are told \
         beside that. The control: of operands that E2M1 rounds worst, 5 in magnitude where a block's largest is 6, the ratio must \
         rise in all draws, in NVFP4 and MXFP4."
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
        let artificial = Artificial::all(setting.scale.pick([2, 10, 10, 10]))?;
        let parts = vec![
            Part::Picture(picture(setting, &found)),
            Part::Picture(spikes(&artificial)),
            Part::Table(table(&found)),
            Part::Table(spike_table(&artificial)),
        ];
        Ok(Findings { verdict: judge(&found, &artificial), parts })
    }
}

/// What the rotation gains in the runs, by rate.
fn picture(setting: &Setting, found: &[Found]) -> plot::Figure {
    let rates = grid::rates(setting);
    let by_rate = |kind: Kind, planted: bool| {
        let of_rate = |(x, lr): (usize, &f64)| {
            let own = found.iter().map(|one| (one, one.cell));
            let own =
                own.filter(|(_, cell)| (cell.kind, cell.planted, cell.lr) == (kind, planted, *lr));
            at(x, &own.flat_map(|(one, _)| one.gain.iter().copied()).collect::<Vec<_>>())
        };
        rates.iter().enumerate().filter_map(of_rate).collect::<Vec<_>>()
    };
    let mut panel = Panel::new(Axis::linear("gain in signal to noise, dB")).rule(0.0, "");
    for kind in Kind::ALL {
        for (planted, end) in [(false, ""), (true, ", planted")] {
            let name = format!("{}{end}", kind.name());
            panel = panel.intervals(Intervals::new(name, by_rate(kind, planted)));
        }
    }
    plot::Figure::new("What rotating the operands of weight gradients gains, by learning rate")
        .subtitle(
            "NVFP4 at the last weights; mean and 95 % interval over depths, formats and seeds",
        )
        .x(Axis::categories("learning rate", rates.iter().map(|lr| format!("{lr:e}"))))
        .panel(panel)
}

/// The same of artificial operands, by size of their spikes.
fn spikes(artificial: &[Artificial]) -> plot::Figure {
    let mut figure = plot::Figure::new("What it gains on artificial spikes")
        .subtitle("mean and 95 % interval over draws")
        .x(Axis::categories("size of spikes", SIZES.map(|size| format!("{size}"))));
    for (format, _) in FORMATS {
        let mut panel = Panel::new(Axis::linear(format!("{format}: gain, dB"))).rule(0.0, "");
        for share in SHARES {
            let of_size = |(x, size): (usize, f64)| {
                let is = |one: &&Artificial| {
                    (one.format, one.activations) == (format, Activations::Spiky(share, size))
                };
                at(x, &artificial.iter().find(is)?.gain)
            };
            let points = SIZES.into_iter().enumerate().filter_map(of_size);
            panel = panel.intervals(Intervals::new(format!("one in {share}"), points));
        }
        figure = figure.panel(panel);
    }
    figure
}

fn table(found: &[Found]) -> Table {
    let mut table = Table::new(
        "cells: what the rotation adds to the signal to noise of weight gradients at the last weights, in dB, mean and range over seeds",
        &["model", "rate", "layers", "planted", "trained in", "gain, dB"],
    );
    for one in found {
        table.row(one.cell.words().into_iter().chain([spread(&one.gain)]));
    }
    table
}

fn spike_table(artificial: &[Artificial]) -> Table {
    let mut table = Table::new(
        "artificial operands of the weight gradient, E15's with other spikes, and the control: signal to noise in dB, mean and range over draws",
        &["format", "activations", "without rotation", "gain, dB"],
    );
    for one in artificial {
        let words = match one.activations {
            Activations::Normal => "normal".to_owned(),
            Activations::Spiky(share, size) => format!("one in {share} times {size}"),
            Activations::Between => "5 beside 6".to_owned(),
        };
        table.row([one.format.to_owned(), words, spread(&one.plain), spread(&one.gain)]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::common::BF16;
    use super::super::e15::watched;
    use super::*;
    use crate::study::arm::Scale;
    use crate::train::probe::{self, Seen, Values};

    fn found(lr: f64, planted: bool, gain: [f64; 2]) -> Found {
        let cell = Cell { kind: Kind::Sa, lr, layers: 2, planted, recipe: BF16 };
        Found { cell, gain: gain.to_vec() }
    }

    fn artificial(activations: Activations, gain: [f64; 2]) -> Artificial {
        Artificial { format: "NVFP4", activations, plain: vec![14.0; 2], gain: gain.to_vec() }
    }

    #[test]
    fn each_part_can_fail() {
        let spikes = artificial(Activations::Spiky(64, 30.0), [-1.0, -1.1]);
        let control = artificial(Activations::Between, [3.0, 3.1]);
        let both = [spikes.clone(), control];
        let cells = [
            found(1e-3, false, [0.2, 0.1]),
            found(1e-3, true, [-0.2, 0.1]),
            found(1e-2, false, [0.2, -0.1]),
        ];
        let word = |cells: &[Found], artificial: &[Artificial]| judge(cells, artificial).word();
        let not = "not seen at this scale";
        assert_eq!(word(&cells, &both), "reproduced");
        assert_eq!(word(&cells[1..], &both), not, "one seed loses, and planted cells do not count");
        assert_eq!(word(&[found(1e-3, false, [f64::NAN, 0.1])], &both), not, "a run that diverged");
        let weak = artificial(Activations::Between, [3.0, -0.1]);
        assert_eq!(word(&cells, &[both[1].clone(), weak]), not, "the control in one format");
        assert_eq!(word(&cells, &[spikes]), not, "no control");
        assert!(!gains(&[]) && !gains(&[0.0]));
        let verdict = judge(&cells, &both);
        for part in ["channels in 1 of 2 cells, in all of them at 1e-3,", "in 0 of 1 kinds"] {
            assert!(verdict.reason().contains(part), "{}", verdict.reason());
        }
    }

    /// Half the error at one operator, as much at another: (6.02 + 0) / 2 dB. Other products and sites do not count.
    #[test]
    fn gains_are_means_over_operators_in_decibel() {
        let line = |up: f64, down: f64, head: f64| {
            let mut values = Values::default();
            values.part("layers.0.up_proj.grad_weight.error", up);
            values.part("layers.0.down_proj.grad_weight.error", down);
            values.part("lm_head.grad_weight.error", head);
            values.part("layers.0.up_proj.forward.error", head);
            [Line { step: 1, probe: "products".into(), values }]
        };
        let (without, with) = (line(0.2, 0.1, 0.9), line(0.1, 0.1, 0.1));
        let sites = ["layers.0.up_proj", "layers.0.down_proj"].map(String::from);
        let found = gain(&without, &with, &sites);
        assert!((found - 3.010_299_956_639_812).abs() < 1e-12, "{found}");
        assert!((gain(&with, &without, &sites) + found).abs() < 1e-12);
        assert!(gain(&without, &with, &["layers.1.up_proj".into()]).is_nan(), "a missing part");
    }

    /// Fifteen of sixteen values lose 1 of 5: 10 log10((15 * 25 + 36) / 15) = 14.4 dB, and with the noise of the gradients, some 20 dB, a little less.
    #[test]
    fn the_control_must_fire() {
        for format in FORMATS {
            let one = Artificial::of(2, format, Activations::Between).unwrap();
            assert!(one.plain.iter().all(|plain| (12.0..14.4).contains(plain)), "{one:?}");
            assert!(gains(&one.gain), "{one:?}");
        }
    }

    /// The control measures products of its own: what the probe reads of them must be the same.
    #[test]
    fn the_control_and_the_runs_are_read_alike() {
        let config = Setting::unread(Scale::Medium).config("sa-micro", "");
        let layout = config.model.layout();
        let read = |end: &str| {
            let mut probe = probe::by_name("products", &config.model).unwrap();
            let recipe = format!("{}{end}", FORMATS[0].1);
            let own = watched(1, Activations::Between, &recipe, probe.observer()).unwrap();
            let seen = Seen {
                step: 1,
                model: &config.model,
                layout: &layout,
                params: &[],
                grads: &[],
                shadow: None,
                twin: None,
                endings: None,
            };
            let mut values = Values::default();
            probe.measure(&seen, &mut values);
            (own, Line { step: 1, probe: "products".into(), values })
        };
        let ((plain, without), (rotated, with)) = (read(NONE), read(""));
        let found = gain(&[without], &[with], &["layers.0.up_proj".to_owned()]);
        assert!((found - (rotated - plain)).abs() < 0.05, "{found} {rotated} {plain}");
    }
}
