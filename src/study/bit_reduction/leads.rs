//! BR-24: the search behind what BR-6 says of sharpness, that it rises before the loss does.
//!
//! BR-6 asks at two rates in runs of one model. Here sharpness is measured in E8M7, E8M3, E8M1 and MXFP4 in all cells of the second
//! [`grid`](super::grid), and the rule of [`lead`](super::lead) is applied cell by cell. What a rule can see hangs on the scatter of the runs it is
//! held to: so the control plants a lead in the measured curves of every cell.

use super::common::all;
use super::grid::{Cell, E8M1, E8M3, E8M7, Grid, MXFP4};
use super::lead::{self, Curves, Risen};
use crate::error::Result;
use crate::plot::{self, Axis, Intervals, Panel};
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::differences::{above, confidence, told, words};
use crate::study::finding::{self, Figure, Findings, Part, Table, Verdict};
use crate::study::statistics::{Interval, mean_interval};
use crate::study::store::Runs;

/// BR-24.
pub(super) struct Leads;

/// What is measured, the reference first.
pub(super) const WATCHED: [&str; 4] = [E8M7, E8M3, E8M1, MXFP4];
/// What tables call the other three, and the curves that the control plants a lead in.
const NAMES: [&str; 4] = ["E8M3", "E8M1", "MXFP4", "planted"];
/// By how much the control's sharpness grows at each measurement, in the logarithm,
const SHARPER: f64 = 0.1;
/// how many measurements later its loss begins to grow,
const LATER: usize = 4;
/// and by how many nats at each.
const HIGHER: f64 = 0.1;

/// The measured runs of all cells; none where the search belongs to a larger scale.
pub(super) fn arms(setting: &Setting) -> Vec<Arm> {
    if setting.scale == Scale::Small {
        return Vec::new();
    }
    let of = |cell: Cell| WATCHED.into_iter().flat_map(move |recipe| cell.watched(setting, recipe));
    Grid::Cut.cells(setting).into_iter().flat_map(of).collect()
}

/// The same curves with sharpness that grows from the middle on and a loss that grows somewhat later.
fn planted(curves: &Curves) -> Curves {
    let middle = curves.phi.len() / 2;
    let grown = |curve: &lead::Curve, from: usize, by: f64| {
        let of = |(at, &(step, value)): (usize, &(f64, f64))| {
            (step, value + by * at.saturating_sub(from) as f64)
        };
        curve.iter().enumerate().map(of).collect()
    };
    Curves {
        phi: grown(&curves.phi, middle, SHARPER),
        loss: grown(&curves.loss, middle + LATER, HIGHER),
    }
}

/// What the runs of one cell show, each kind beside E8M7, and the control last.
struct Found {
    cell: Cell,
    kinds: [Vec<Risen>; NAMES.len()],
}

impl Found {
    fn of(setting: &Setting, runs: &Runs<'_>, cell: Cell) -> Result<Self> {
        let trained = |recipe: &str| all(runs, &cell.watched(setting, recipe));
        let base = trained(E8M7)?;
        let curves = |recipe: &str| lead::curves(&base, &trained(recipe)?);
        let reference = lead::curves(&base, &base)?;
        let compare = |runs: &[Curves]| lead::compare_curves(&reference, runs);
        let few = curves(E8M3)?;
        let control: Vec<Curves> = few.iter().map(planted).collect();
        let kinds =
            [compare(&few), compare(&curves(E8M1)?), compare(&curves(MXFP4)?), compare(&control)];
        Ok(Self { cell, kinds })
    }
}

/// All cells of a rate.
struct AtRate {
    lr: f64,
    /// Of each kind how many rise so, and first minus later by seed.
    kinds: [([usize; 4], Option<Interval>); NAMES.len()],
    /// The same of cut mantissas together, E8M3 and E8M1, which is judged.
    cut: Option<Interval>,
}

fn by_rate(rates: &[f64], found: &[Found]) -> Vec<AtRate> {
    let sure = confidence(rates.len());
    let at = |&lr: &f64| {
        let own = |kind: usize| -> Vec<Vec<Risen>> {
            let own = found.iter().filter(|one| one.cell.lr == lr);
            own.map(|one| one.kinds[kind].clone()).collect()
        };
        // Of all seeds or none: two runs that agree have no scatter. A share, so that none goes beyond 1.
        let interval = |runs: &[Vec<Risen>]| {
            let means = lead::by_seed(runs);
            let seeds = runs.iter().map(Vec::len).max()?;
            let Interval { estimate, low, high } =
                mean_interval(&means, sure).filter(|_| means.len() == seeds)?;
            Some(Interval { estimate, low: low.max(-1.0), high: high.min(1.0) })
        };
        let kinds = [0, 1, 2, 3].map(|kind| {
            let own = own(kind);
            (lead::counts(&own), interval(&own))
        });
        AtRate { lr, kinds, cut: interval(&[own(0), own(1)].concat()) }
    };
    rates.iter().map(at).collect()
}

fn judge(rates: &[AtRate]) -> Verdict {
    let told = |of: fn(&AtRate) -> bool| told(rates.iter().filter(|at| of(at)).map(|at| at.lr));
    let sum = |kinds: &[usize]| {
        let mut sum = [0; 4];
        for counts in rates.iter().flat_map(|at| kinds.iter().map(|&kind| at.kinds[kind].0)) {
            sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        sum
    };
    let shown = |[first, same, later, alone]: [usize; 4]| {
        format!(
            "of {} runs whose loss rises above E8M7's, sharpness rises before in {first}, at the same measurement in {same}, later or \
             never in {later} (in {alone} others sharpness rises alone)",
            first + same + later
        )
    };
    let fires = rates.iter().any(|at| above(at.kinds[3].1));
    let text = format!(
        "where mantissas are cut sharpness rises first at {}: {}; in MXFP4 at {}: {}; the control {}: a planted lead at {}",
        told(|at| above(at.cut)),
        shown(sum(&[0, 1])),
        told(|at| above(at.kinds[2].1)),
        shown(sum(&[2])),
        finding::fires(fires),
        told(|at| above(at.kinds[3].1)),
    );
    Verdict::of(fires && rates.iter().any(|at| above(at.cut)), false, text)
}

fn parts(rates: &[AtRate]) -> Vec<Part> {
    let sure = format!("{:.0} %", 100.0 * confidence(rates.len()));
    let mut panel =
        Panel::new(Axis::linear("first minus later, share").range(-1.1, 1.1)).rule(0.0, "");
    for (kind, name) in NAMES.iter().enumerate() {
        let of = |(x, at): (usize, &AtRate)| {
            at.kinds[kind].1.map(|found| (x as f64, found.low, found.estimate, found.high))
        };
        panel = panel.intervals(Intervals::new(*name, rates.iter().enumerate().filter_map(of)));
    }
    let picture = plot::Figure::new("Whether sharpness or the loss leaves that of E8M7 first")
        .subtitle(format!(
            "1: sharpness in all runs; mean over cells and {sure} interval over seeds"
        ))
        .x(Axis::categories("peak learning rate", rates.iter().map(|at| format!("{:e}", at.lr))))
        .panel(panel);
    let mut table = Table::new(
        format!(
            "runs by what rises above E8M7's first, by more than three scatters between seeds; first minus later, mean over \
             cells and {sure} interval over seeds"
        ),
        &[
            "rate",
            "format",
            "sharpness first",
            "same",
            "loss first or alone",
            "sharpness alone",
            "first minus later",
        ],
    );
    for at in rates {
        for (name, (counts, interval)) in NAMES.iter().zip(at.kinds) {
            let counts = counts.map(|count| count.to_string());
            let first = [format!("{:e}", at.lr), (*name).to_owned()].into_iter();
            table.row(first.chain(counts).chain([words(interval)]));
        }
        let counts = [0, 1, 2, 3].map(|i| (at.kinds[0].0[i] + at.kinds[1].0[i]).to_string());
        let first = [format!("{:e}", at.lr), "E8M3 and E8M1, judged".to_owned()].into_iter();
        table.row(first.chain(counts).chain([words(at.cut)]));
    }
    vec![Part::Picture(picture), Part::Table(table)]
}

impl Figure for Leads {
    fn id(&self) -> &'static str {
        "BR-24"
    }

    fn title(&self) -> &'static str {
        "does sharpness rise before the loss: the search"
    }

    fn source(&self) -> &'static str {
        "a question of this study's own, behind BR-6 (v2 Fig. 7)"
    }

    fn claim(&self) -> &'static str {
        "There is a learning rate at which, where mantissas are cut to three bits and to one, sharpness leaves that of E8M7 before the loss \
         does, over models of two and four layers, with gradients clipped and not, in runs of 200 steps at five rates (at medium), measured 25 times. \
         The rule is BR-6's: two measurements in a row above those of E8M7 of the same seed by three scatters between its seeds. Reproduced if at a rate \
         first minus later lies above 0, of the means over cells and both formats of each seed, at 99 % as there are five, if each seed has runs whose loss rises. MXFP4 is told and not judged. The control: \
         in the curves of E8M3 sharpness is made to grow from the middle on, by a tenth at each measurement, and the loss four measurements later, by 0.1 nats each, which \
         must be seen so."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        arms(setting)
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if self.arms(setting).is_empty() {
            return Ok(Findings::not_run());
        }
        let cells = Grid::Cut.cells(setting).into_iter();
        let found: Vec<Found> =
            cells.map(|cell| Found::of(setting, runs, cell)).collect::<Result<_>>()?;
        let rates = by_rate(&Grid::Cut.rates(setting), &found);
        Ok(Findings { verdict: judge(&rates), parts: parts(&rates) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Risen = Risen { phi: Some(50.0), loss: Some(100.0) };
    const LAST: Risen = Risen { phi: None, loss: Some(100.0) };

    /// Five rates at each of which the seeds of both depths rise so: cut mantissas, MXFP4, the control.
    fn rates(kinds: [Risen; 3]) -> Vec<AtRate> {
        let cell = |lr, layers| Cell { grid: Grid::Cut, lr, layers, third: false, seeds: 4 };
        let [cut, mxfp4, control] = kinds.map(|one| vec![one; 4]);
        let of = |lr: f64, layers| Found {
            cell: cell(lr, layers),
            kinds: [cut.clone(), cut.clone(), mxfp4.clone(), control.clone()],
        };
        let all = [1e-3, 3e-3, 1e-2, 3e-2, 1e-1];
        let found: Vec<Found> = all.iter().flat_map(|&lr| [of(lr, 2), of(lr, 4)]).collect();
        by_rate(&all, &found)
    }

    #[test]
    fn each_part_can_fail() {
        let word = |kinds| judge(&rates(kinds)).word();
        let not = "not seen at this scale";
        assert_eq!(word([FIRST, LAST, FIRST]), "reproduced");
        assert_eq!(word([LAST, FIRST, FIRST]), not, "MXFP4 alone");
        assert_eq!(word([FIRST, FIRST, LAST]), not, "the control");
    }

    /// Two runs of two seeds that agree have no scatter, and tell nothing.
    #[test]
    fn every_seed_must_speak() {
        let some = |risen: [Option<Risen>; 4]| {
            let still = Risen { phi: None, loss: None };
            let runs = risen.map(|one| one.unwrap_or(still)).to_vec();
            let control = vec![FIRST; 4];
            let cell = Cell { grid: Grid::Cut, lr: 1e-3, layers: 2, third: false, seeds: 4 };
            let kinds = [runs.clone(), runs.clone(), runs, control];
            judge(&by_rate(&[1e-3], &[Found { cell, kinds }])).word()
        };
        let not = "not seen at this scale";
        assert_eq!(some([Some(FIRST), Some(FIRST), None, None]), not);
        assert_eq!(some([Some(FIRST); 4]), "reproduced");
    }

    #[test]
    fn runs_are_counted_over_rates() {
        let verdict = judge(&rates([FIRST, LAST, FIRST]));
        // Two formats, two depths, four seeds, five rates.
        let begin = "where mantissas are cut sharpness rises first at 1e-3, 3e-3, 1e-2, 3e-2, 1e-1: of 80 runs whose loss rises above \
                     E8M7's, sharpness rises before in 80, at the same measurement in 0,";
        assert!(verdict.reason().starts_with(begin), "{}", verdict.reason());
        let middle = "in MXFP4 at no rate: of 40 runs";
        assert!(verdict.reason().contains(middle), "{}", verdict.reason());
    }

    #[test]
    fn a_planted_lead_is_seen() {
        // Two seeds 0.1 apart in both curves: a scatter of 0.1 / sqrt 2, and a limit of 0.212.
        let curves = |value: f64| {
            let curve: Vec<(f64, f64)> = (0..26).map(|at| (8.0 * f64::from(at), value)).collect();
            Curves { phi: curve.clone(), loss: curve }
        };
        let reference = [curves(1.0), curves(1.1)];
        let control: Vec<Curves> = reference.iter().map(planted).collect();
        let found = lead::compare_curves(&reference, &control);
        // Sharpness grows from measurement 13 on and is above by 0.3 at 16; the loss at 20.
        let expected = Risen { phi: Some(8.0 * 16.0), loss: Some(8.0 * 20.0) };
        assert_eq!(found, [expected; 2]);
    }

    #[test]
    fn the_search_is_large_enough_to_count() {
        let mut names: Vec<String> =
            arms(&Setting::unread(Scale::Medium)).iter().map(Arm::name).collect();
        names.sort();
        names.dedup();
        // Of cut mantissas and their reference 240, of MXFP4 80.
        assert_eq!(names.len(), 20 * 4 * 4);
    }
}
