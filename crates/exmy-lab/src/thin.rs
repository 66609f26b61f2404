//! [`Curves`] of the runs of some figures: they are thinned, and each figure is drawn again from what is
//! kept.

use crate::curves::{Curves, Record};
use crate::finding::{Experiment, Findings, Paper, Part};
use crate::outcome::judge;
use crate::report;
use crate::run_config::{RunConfig, Setting};
use crate::store::Store;
use exmy::error::{Error, Result};
use std::sync::Arc;

/// What of some findings must not depend on how many steps were kept.
fn exact(found: &Findings) -> impl PartialEq {
    let is_exact = |part: &&Part| !matches!(part, Part::Picture(_));
    let parts: Vec<Part> = found.parts.iter().filter(is_exact).cloned().collect();
    (found.verdict.clone(), found.judged.clone(), parts)
}

/// Those of all runs of some figures, which were `found` in the whole records.
///
/// # Errors
/// If a run is not complete or cannot be read, or if a figure says something else when it is drawn from
/// what is kept, as one that needs probes or weights.
pub fn thin(
    paper: &Paper,
    figures: &[&dyn Experiment],
    place: (&Setting, &Store),
    found: &[Findings],
) -> Result<Curves> {
    let runs = report::runs(figures, place.0, place.1)?;
    drawn_again(paper, (figures, &runs), place, found)
}

/// Those of what is there of figures that are not all trained: of each complete run, and of the figures that
/// need no other runs. What is trained later is added to them.
///
/// # Errors
/// As [`thin`], of the complete runs and figures.
pub fn thin_complete(
    paper: &Paper,
    figures: &[&dyn Experiment],
    (setting, store): (&Setting, &Store),
) -> Result<Curves> {
    let all_there = |runs: &[RunConfig]| -> Result<bool> {
        runs.iter().try_fold(true, |all, run| Ok(all && store.has(run)?))
    };
    let (mut complete, mut runs): (Vec<&dyn Experiment>, _) = (Vec::new(), Vec::new());
    for figure in figures {
        if all_there(&report::runs(&[*figure], setting, store)?)? {
            complete.push(*figure);
        }
    }
    for run in report::runs(figures, setting, store)? {
        if store.has(&run)? {
            runs.push(run);
        }
    }
    let found = report::find(&complete, setting, store, |_| true)?.unwrap_or_default();
    drawn_again(paper, (&complete, &runs), (setting, store), &found)
}

/// The curves of some runs, from which some figures are drawn as they were found.
fn drawn_again(
    paper: &Paper,
    (figures, planned): (&[&dyn Experiment], &[RunConfig]),
    (setting, store): (&Setting, &Store),
    found: &[Findings],
) -> Result<Curves> {
    let mut runs = Vec::new();
    for planned in planned {
        let trained = store.runs().of(planned)?;
        let judged = judge(&trained, planned);
        runs.push(Record::of(planned.name(), trained.summary, &trained.metrics, judged));
    }
    let ids = figures.iter().map(|figure| figure.id().to_owned()).collect();
    let curves = Curves::new(paper.name, setting, ids, runs);
    let thinned = Store::drawn_from(Arc::new(curves.clone()));
    for (figure, found) in figures.iter().zip(found) {
        let id = figure.id();
        let hint = "name the figures that need losses and gradient norms alone with --figure";
        let again = report::find(&[*figure], setting, &thinned, |_| true).map_err(|error| {
            let what = format!("{id} cannot be drawn from curves, so none are written");
            Error::new(what).because(error).hint(hint)
        })?;
        if again.is_none_or(|again| exact(&again[0]) != exact(found)) {
            let what = format!(
                "{id} needs more than curves: drawn from them its verdict or a table is another"
            );
            return Err(Error::new(what).hint(hint));
        }
    }
    Ok(curves)
}
