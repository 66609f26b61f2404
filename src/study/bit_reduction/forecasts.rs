//! BR-25: the search behind BR-9, whether sharpness foretells which runs fail.
//!
//! No run of BR-9's own fails or spikes. Of those that [BR-24](super::leads) measures some do, where the rate is high, and most of them in
//! MXFP4. Whatever tells high rates or MXFP4 from the others foretells over all of them; so each rate is judged by itself, and so are cut mantissas
//! and MXFP4.

use super::common::all;
use super::forecast::{self, Areas, MEASURES, Scored};
use super::grid::{Grid, MXFP4};
use super::leads::{self, WATCHED};
use crate::error::Result;
use crate::plot::{self, Axis, Intervals, Panel};
use crate::study::arm::{Arm, Setting};
use crate::study::differences::confidence;
use crate::study::finding::{self, Figure, Findings, Part, Table, Verdict};
use crate::study::statistics::{Interval, roc};
use crate::study::store::Runs;

/// BR-25.
pub(super) struct Forecasts;

/// The formats whose runs are judged together.
const GROUPS: [(&str, &[&str]); 2] =
    [("cut mantissas", WATCHED.first_chunk::<3>().unwrap()), ("MXFP4", &[MXFP4])];

/// What the runs of one rate and group show.
struct Found {
    lr: f64,
    group: &'static str,
    /// Runs, and those of them that fail later.
    counts: (usize, usize),
    areas: Areas,
}

/// The area of the rate itself over all runs, each scored by its rate.
fn control(found: &[Found]) -> Option<Interval> {
    let of = |found: &Found| {
        let (lr, (runs, failing)) = (found.lr, found.counts);
        (0..runs).map(move |run| (lr, run < failing))
    };
    Some(roc(&found.iter().flat_map(of).collect::<Vec<_>>())?.interval(0.95))
}

fn judge(all: &[Found], control: Option<Interval>) -> Verdict {
    let place = |found: &Found| format!("{:e} in {}", found.lr, found.group);
    let holds = |found: &&Found| forecast::best(&found.areas).is_some_and(|(holds, _)| holds);
    let hits: Vec<String> = all.iter().filter(holds).map(place).collect();
    let of = |found: &Found| {
        let (runs, failing) = found.counts;
        format!("; at {} {failing} of {runs}: {}", place(found), forecast::words(&found.areas))
    };
    // Where all runs fail or none there is nothing to tell.
    let some = all.iter().filter(|found| found.areas.iter().any(Option::is_some));
    let told: Vec<String> = some.map(of).collect();
    let fires = control.is_some_and(|area| area.estimate > 0.7 && area.low > 0.5);
    let text = format!(
        "sharpness is the best of four measures and above 0.7 at {}; runs that spike or fail later, and areas under the ROC curve{}; the control \
         {}: over all runs the rate itself {}",
        if hits.is_empty() { "no rate".to_owned() } else { hits.join(", ") },
        told.concat(),
        finding::fires(fires),
        forecast::area(control),
    );
    Verdict::of(fires && !hits.is_empty(), false, text)
}

fn parts(rates: &[f64], found: &[Found], confidence: f64) -> Vec<Part> {
    let sure = format!("{:.1} %", 100.0 * confidence);
    let mut picture = plot::Figure::new("What foretells runs that spike or fail, by learning rate")
        .subtitle(format!("measured after a quarter of the steps; {sure} intervals"))
        .x(Axis::categories("peak learning rate", rates.iter().map(|lr| format!("{lr:e}"))));
    for (group, _) in GROUPS {
        let mut panel =
            Panel::new(Axis::linear(format!("{group}: area")).range(0.0, 1.0)).rule(0.5, "chance");
        for (at, name) in MEASURES.into_iter().enumerate() {
            let own = found.iter().filter(|one| one.group == group).enumerate();
            let of = |(x, one): (usize, &Found)| {
                one.areas[at].map(|area| (x as f64, area.low, area.estimate, area.high))
            };
            panel = panel.intervals(Intervals::new(name, own.filter_map(of)));
        }
        picture = picture.panel(panel);
    }
    let first = ["rate", "formats", "runs", "of which spike or fail"];
    let header: Vec<&str> = first.into_iter().chain(MEASURES).collect();
    let mut table = Table::new(
        format!(
            "areas under the ROC curve and {sure} intervals (Hanley and McNeil), runs as if independent; 0.5 is chance, 1 tells all"
        ),
        &header,
    );
    for one in found {
        let (runs, failing) = one.counts;
        let lr = format!("{:e}", one.lr);
        let first = [lr, one.group.to_owned(), runs.to_string(), failing.to_string()];
        table.row(first.into_iter().chain(one.areas.iter().map(|area| forecast::area(*area))));
    }
    vec![Part::Picture(picture), Part::Table(table)]
}

impl Figure for Forecasts {
    fn id(&self) -> &'static str {
        "BR-25"
    }

    fn title(&self) -> &'static str {
        "does sharpness foretell failure: the search"
    }

    fn source(&self) -> &'static str {
        "a question of this study's own, behind BR-9"
    }

    fn claim(&self) -> &'static str {
        "There is a learning rate at which sharpness after a quarter of the steps tells which of the runs of BR-24 (two \
         depths, gradients clipped and not) spike or fail in the rest, among those of E8M7, E8M3 and E8M1 or among those of MXFP4. Reproduced if at a rate, in one of \
         both, its area under the ROC curve is above 0.7, told from 0.5 at 99.5 % as there are ten (Hanley and McNeil, runs as if independent), and above those of the largest \
         logit, the gradient norm and the scatter of the last 50 losses. The control: over all runs together the learning rate itself must be seen to foretell, above \
         0.7 and told from 0.5 at 95 %."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        leads::arms(setting)
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if self.arms(setting).is_empty() {
            return Ok(Findings::not_run());
        }
        let rates = Grid::Cut.rates(setting);
        let confidence = confidence(rates.len() * GROUPS.len());
        let mut found = Vec::new();
        for &lr in &rates {
            for (group, recipes) in GROUPS {
                let mut scored = Scored::default();
                let cells = Grid::Cut.cells(setting).into_iter().filter(|cell| cell.lr == lr);
                for (cell, recipe) in
                    cells.flat_map(|cell| recipes.iter().map(move |recipe| (cell, recipe)))
                {
                    let arms = cell.watched(setting, recipe);
                    for (run, arm) in all(runs, &arms)?.iter().zip(&arms) {
                        scored.push(run, arm)?;
                    }
                }
                let areas = forecast::areas(&scored.curves(), confidence);
                found.push(Found { lr, group, counts: scored.counts(), areas });
            }
        }
        let verdict = judge(&found, control(&found));
        Ok(Findings { verdict, parts: parts(&rates, &found, confidence) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(estimate: f64, reach: f64) -> Option<Interval> {
        Some(Interval { estimate, low: estimate - reach, high: estimate + reach })
    }

    fn found(lr: f64, areas: Areas) -> Found {
        Found { lr, group: "MXFP4", counts: (64, 16), areas }
    }

    #[test]
    fn each_part_can_fail() {
        let sure = [0.9, 0.8, 0.7, 0.6].map(|x| area(x, 0.1));
        let rates = |areas: Areas| [found(1e-3, [None; 4]), found(1e-1, areas)];
        let word = |areas, control| judge(&rates(areas), control).word();
        let not = "not seen at this scale";
        assert_eq!(word(sure, area(0.9, 0.1)), "reproduced");
        assert_eq!(word(sure, area(0.6, 0.05)), not, "the control");
        assert_eq!(word(sure, None), not, "no control");
        assert_eq!(word([0.8, 0.9, 0.7, 0.6].map(|x| area(x, 0.1)), area(0.9, 0.1)), not);
        assert_eq!(word([None; 4], area(0.9, 0.1)), not);
        let text = judge(&rates(sure), area(0.9, 0.1));
        let begin = "sharpness is the best of four measures and above 0.7 at 1e-1 in MXFP4; runs that spike or fail later, and areas under the \
                     ROC curve; at 1e-1 in MXFP4 16 of 64: sharpness phi 0.900 (0.800 to 1.000),";
        assert!(text.reason().starts_with(begin), "{}", text.reason());
    }

    /// Of two rates with two runs each one fails, at the higher: of its three pairs with others two lie right and one ties.
    #[test]
    fn the_rate_itself_is_scored() {
        let one = |lr, counts| Found { counts, ..found(lr, [None; 4]) };
        let area = control(&[one(1e-3, (2, 0)), one(1e-1, (2, 1))]).unwrap();
        assert_eq!(area.estimate, 2.5 / 3.0);
        assert_eq!(control(&[one(1e-3, (2, 0))]), None);
    }
}
