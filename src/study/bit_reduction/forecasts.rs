//! BR-25: the search behind BR-9, whether sharpness foretells which runs fail.
//!
//! No run of BR-9's own fails or spikes. Of those that [BR-24](super::leads) measures some do, where the rate is high. Higher rates have
//! more of them and other sharpness, so that over all rates anything that grows with the rate foretells; each rate is judged by itself.

use super::common::all;
use super::forecast::{self, Areas, MEASURES, Scored};
use super::grid::{Cell, Grid};
use super::leads::{self, WATCHED};
use crate::error::Result;
use crate::plot::{self, Axis, Intervals, Panel};
use crate::study::arm::{Arm, Setting};
use crate::study::finding::{self, Figure, Findings, Part, Table, Verdict};
use crate::study::statistics::{Interval, roc};
use crate::study::store::Runs;

/// BR-25.
pub(super) struct Forecasts;

/// What the runs of one rate, or of all, show.
struct Found {
    rate: String,
    counts: (usize, usize),
    areas: Areas,
}

/// The area of the rate itself over the runs of all rates, `(the rate, runs, those that fail)`: each run scored by its rate.
fn control(rates: &[(f64, (usize, usize))]) -> Option<Interval> {
    let scored = rates
        .iter()
        .flat_map(|&(lr, (runs, failing))| (0..runs).map(move |run| (lr, run < failing)));
    Some(roc(&scored.collect::<Vec<_>>())?.interval(0.95))
}

fn judge(rates: &[Found], control: Option<Interval>) -> Verdict {
    let holds = |found: &&Found| forecast::best(&found.areas).is_some_and(|(holds, _)| holds);
    let hits: Vec<&str> = rates.iter().filter(holds).map(|found| found.rate.as_str()).collect();
    let of = |found: &Found| {
        let (runs, failing) = found.counts;
        format!("; at {} {failing} of {runs}: {}", found.rate, forecast::words(&found.areas))
    };
    // Where all runs fail or none there is nothing to tell.
    let told: Vec<String> =
        rates.iter().filter(|found| found.areas.iter().any(Option::is_some)).map(of).collect();
    let fires = control.is_some_and(|area| area.estimate > 0.7 && area.low > 0.5);
    let area = control.map_or_else(
        || "no area".to_owned(),
        |area| format!("{:.3} ({:.3} to {:.3})", area.estimate, area.low, area.high),
    );
    let text = format!(
        "sharpness is the best of four measures and above 0.7 at {}; runs that spike or fail later, and areas under the ROC curve{}; the control \
         {}: over all rates the rate itself {area}",
        if hits.is_empty() { "no rate".to_owned() } else { hits.join(", ") },
        told.concat(),
        finding::fires(fires),
    );
    Verdict::of(fires && !hits.is_empty(), false, text)
}

fn parts(found: &[Found], confidence: f64) -> Vec<Part> {
    let sure = format!("{:.0} %", 100.0 * confidence);
    let mut panel =
        Panel::new(Axis::linear("area under the ROC curve").range(0.0, 1.0)).rule(0.5, "chance");
    for (at, name) in MEASURES.into_iter().enumerate() {
        let of = |(x, one): (usize, &Found)| {
            one.areas[at].map(|area| (x as f64, area.low, area.estimate, area.high))
        };
        panel = panel.intervals(Intervals::new(name, found.iter().enumerate().filter_map(of)));
    }
    let picture = plot::Figure::new("What foretells runs that spike or fail, by learning rate")
        .subtitle(format!("measured after a quarter of the steps; {sure} intervals"))
        .x(Axis::categories("peak learning rate", found.iter().map(|one| one.rate.clone())))
        .panel(panel);
    let header: Vec<&str> =
        ["rate", "runs", "of which spike or fail"].into_iter().chain(MEASURES).collect();
    let mut table = Table::new(
        format!(
            "areas under the ROC curve and {sure} intervals (Hanley and McNeil), runs as if independent; 0.5 is chance, 1 tells all"
        ),
        &header,
    );
    for one in found {
        let area = |area: &Option<Interval>| match area {
            Some(area) => format!("{:.3} ({:.3} to {:.3})", area.estimate, area.low, area.high),
            None => "-".to_owned(),
        };
        let (runs, failing) = one.counts;
        let first = [one.rate.clone(), runs.to_string(), failing.to_string()];
        table.row(first.into_iter().chain(one.areas.iter().map(area)));
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
        "There is a learning rate at which sharpness after a quarter of the steps tells which of the runs of BR-24 (E8M7, E8M3, E8M1 and MXFP4, two \
         depths, gradients clipped and not) spike or fail in the rest. Reproduced if at a rate its area under the ROC curve is above 0.7, told from 0.5 at 99 % \
         as there are five, and above those of the largest logit, the gradient norm and the scatter of the last 50 losses. The control: over the runs of all rates \
         together the learning rate itself must be seen to foretell, above 0.7 and told from 0.5."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        leads::arms(setting)
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if self.arms(setting).is_empty() {
            return Ok(Findings::not_run());
        }
        let rates = Grid::Cut.rates(setting);
        let confidence = 1.0 - 0.05 / rates.len().max(1) as f64;
        let (mut found, mut counts) = (Vec::new(), Vec::new());
        for &lr in &rates {
            let mut scored = Scored::default();
            let cells = Grid::Cut.cells(setting).into_iter().filter(|cell| cell.lr == lr);
            for (cell, recipe) in cells.flat_map(|cell: Cell| WATCHED.map(|recipe| (cell, recipe)))
            {
                let arms = cell.watched(setting, recipe);
                for (run, arm) in all(runs, &arms)?.iter().zip(&arms) {
                    scored.push(run, arm)?;
                }
            }
            let areas = forecast::areas(&scored.curves(), confidence);
            found.push(Found { rate: format!("{lr:e}"), counts: scored.counts(), areas });
            counts.push((lr, scored.counts()));
        }
        let verdict = judge(&found, control(&counts));
        Ok(Findings { verdict, parts: parts(&found, confidence) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(estimate: f64, reach: f64) -> Option<Interval> {
        Some(Interval { estimate, low: estimate - reach, high: estimate + reach })
    }

    fn found(rate: &str, areas: Areas) -> Found {
        Found { rate: rate.into(), counts: (64, 16), areas }
    }

    #[test]
    fn each_part_can_fail() {
        let sure = [0.9, 0.8, 0.7, 0.6].map(|x| area(x, 0.1));
        let rates = |areas: Areas| [found("1e-3", [None; 4]), found("1e-1", areas)];
        let word = |areas, control| judge(&rates(areas), control).word();
        let not = "not seen at this scale";
        assert_eq!(word(sure, area(0.9, 0.1)), "reproduced");
        assert_eq!(word(sure, area(0.6, 0.05)), not, "the control");
        assert_eq!(word(sure, None), not, "no control");
        assert_eq!(word([0.8, 0.9, 0.7, 0.6].map(|x| area(x, 0.1)), area(0.9, 0.1)), not);
        assert_eq!(word([None; 4], area(0.9, 0.1)), not);
        let text = judge(&rates(sure), area(0.9, 0.1));
        let begin = "sharpness is the best of four measures and above 0.7 at 1e-1; runs that spike or fail later, and areas under the \
                     ROC curve; at 1e-1 16 of 64: sharpness phi 0.900 (0.800 to 1.000),";
        assert!(text.reason().starts_with(begin), "{}", text.reason());
    }

    /// Of two rates with two runs each one fails, at the higher: of its three pairs with others two lie right and one ties.
    #[test]
    fn the_rate_itself_is_scored() {
        let found = control(&[(1e-3, (2, 0)), (1e-1, (2, 1))]).unwrap();
        assert_eq!(found.estimate, 2.5 / 3.0);
        assert_eq!(control(&[(1e-3, (2, 0))]), None);
    }
}
