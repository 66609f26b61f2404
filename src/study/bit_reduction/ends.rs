//! BR-20: the search behind BR-11, which end of a shorter range it is that breaks training.
//!
//! BR-11 trains at one rate, at which E7M7 clips a few of a hundred inputs where the low half of the exponents is kept, and none where
//! the middle half is. Magnitudes grow with the rate. So here E7M7 is clipped at one end or at the other in the second grid of
//! [`grid`](super::grid), and the [differences](crate::study::differences) of final losses are asked to be as large as BR-11's.

use super::common::{all, number, tails, vocab};
use super::exponent::{BREAKS, recipe, shares};
use super::grid::{self, Cell, E8M7, Grid};
use crate::error::Result;
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::differences::{self, Beside, Found, less};
use crate::study::finding::{Figure, Findings};
use crate::study::statistics::mean;
use crate::study::store::Runs;

/// BR-20.
pub(super) struct Ends;

/// What is trained in every cell beside E8M7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// E7M7 that keeps the low half of the exponents: up to 2.
    Low(&'static str),
    /// E7M7 that keeps the middle half: 2^-62 to 2^64.
    Centred(&'static str),
    /// E6M7 that keeps the low quarter, up to 2^-63, which clips nearly everything.
    Quarter(&'static str),
}

const KINDS: [Kind; 6] = [
    Kind::Low("outer"),
    Kind::Low("inner"),
    Kind::Centred("outer"),
    Kind::Centred("inner"),
    Kind::Quarter("outer"),
    Kind::Quarter("inner"),
];

impl Kind {
    fn recipe(self) -> String {
        match self {
            Self::Low(clip) => recipe(7, "keep-low", clip),
            Self::Centred(clip) => recipe(7, "centred", clip),
            Self::Quarter(clip) => recipe(6, "keep-low", clip),
        }
    }

    /// Its runs of a cell, by seed. That whose clipping is told of measures it when it ends.
    fn arms(self, setting: &Setting, cell: Cell) -> Vec<Arm> {
        let keys = match self {
            Self::Low("outer") => {
                let every = grid::steps(setting) / 2;
                format!("record.probes = [\"rounding\"]\nrecord.probe_every = {every}\n")
            }
            _ => String::new(),
        };
        cell.arms_with(setting, &self.recipe(), &keys)
    }
}

/// The differences of a cell.
fn found(setting: &Setting, runs: &Runs<'_>, cell: Cell) -> Result<Found> {
    let base = cell.losses(setting, runs, E8M7)?;
    let vocab = cell.arms(setting, E8M7).first().map_or(1, vocab);
    let losses = |kind: Kind| Ok(tails(&all(runs, &kind.arms(setting, cell))?));
    let gap = |a: Kind, b: &[f64]| -> Result<Vec<f64>> { Ok(less(&losses(a)?, b, vocab)) };
    let inner = losses(Kind::Low("inner"))?;
    let centred = gap(Kind::Centred("outer"), &losses(Kind::Centred("inner"))?)?;
    let outer = all(runs, &Kind::Low("outer").arms(setting, cell))?;
    let clipped: Vec<f64> = outer
        .iter()
        .map(|run| Ok(shares(run, "saturated")?[0]))
        .filter(|share| !share.as_ref().is_ok_and(|share| share.is_nan()))
        .collect::<Result<_>>()?;
    let of = |values: &[f64]| mean(values).unwrap_or(f64::NAN);
    let [layers, clip] = cell.words();
    let share = mean(&clipped).map_or("-".into(), |share| format!("{share:.1}"));
    let words = vec![layers, clip, number(of(&base)), format!("{:+.4}", of(&centred)), share];
    Ok(Found {
        lr: cell.lr,
        words,
        searched: less(&tails(&outer), &inner, vocab),
        control: gap(Kind::Quarter("outer"), &losses(Kind::Quarter("inner"))?)?,
        beside: less(&inner, &base, vocab),
    })
}

impl Figure for Ends {
    fn id(&self) -> &'static str {
        "BR-20"
    }

    fn title(&self) -> &'static str {
        "which end of a shorter range breaks training: the search"
    }

    fn source(&self) -> &'static str {
        "a question of this study's own, behind BR-11 (the text of section 4.2)"
    }

    fn claim(&self) -> &'static str {
        "There is a learning rate at which E7M7 that keeps the low half of the exponents breaks training by clipping large magnitudes, \
         and not by losing small ones, over models of two and four layers, with gradients clipped and not, in runs of 200 steps at five \
         rates (at medium). Reproduced if at a rate, of the means over cells of each seed at 99 % as there are five, the loss with the \
         outer end clipped is told to be more than 0.5 nats above that with the inner end, BR-11's measure of breaking, and the latter to be \
         less than 0.5 above E8M7. What E7M7 with a centred bias loses is told and not judged. The control: E6M7 that keeps the low quarter, \
         and clips nearly all inputs, must be seen to break so."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        if setting.scale == Scale::Small {
            return Vec::new();
        }
        let of = |cell: Cell| {
            let kinds = KINDS.into_iter().flat_map(move |kind| kind.arms(setting, cell));
            cell.arms(setting, E8M7).into_iter().chain(kinds)
        };
        Grid::Cut.cells(setting).into_iter().flat_map(of).collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if self.arms(setting).is_empty() {
            return Ok(Findings::not_run());
        }
        let cells = Grid::Cut.cells(setting).into_iter();
        let found: Vec<Found> =
            cells.map(|cell| found(setting, runs, cell)).collect::<Result<_>>()?;
        let search = differences::Search {
            title: "What clipping an end of E7M7 costs, by learning rate",
            names: [
                "E7M7 clipped at its outer end above its inner",
                "E6M7 clipped at its outer end above its inner",
                "E7M7 clipped at its inner end above E8M7",
            ],
            legend: ["outer - inner", "the same of E6M7", "inner - E8M7"],
            unit: "nats",
            least: BREAKS,
            asks: Beside::Below,
            rates: Grid::Cut.rates(setting),
            columns: vec![
                "layers",
                "gradients clipped",
                "loss of E8M7",
                "centred: outer above inner",
                "inputs clipped at the outer end at last, %",
            ],
        };
        Ok(search.find(&found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_is_large_enough_to_count() {
        let setting = Setting::unread(Scale::Medium);
        let mut names: Vec<String> = Ends.arms(&setting).iter().map(Arm::name).collect();
        names.sort();
        names.dedup();
        // Five rates, two depths, gradients clipped and not; E8M7 and six more, four seeds each.
        assert_eq!(names.len(), 20 * 7 * 4);
        let shared = grid::arms(&setting, Grid::Cut.cells(&setting), &[E8M7]);
        let own = shared.iter().filter(|arm| names.contains(&arm.name()));
        assert_eq!(own.count(), 20 * 4, "E8M7's runs are those of BR-18");
    }
}
