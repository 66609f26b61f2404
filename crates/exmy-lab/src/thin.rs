//! [`Curves`] of the runs of some figures: they are thinned, and each figure is drawn again from what is
//! kept.

use crate::curves::{Curves, Record};
use crate::finding::{Experiment, Findings, Paper, Part};
use crate::outcome::judge;
use crate::report;
use crate::run_config::Setting;
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
    (setting, store): (&Setting, &Store),
    found: &[Findings],
) -> Result<Curves> {
    let mut runs = Vec::new();
    for planned in report::runs(figures, setting, store)? {
        let trained = store.runs().of(&planned)?;
        let judged = judge(&trained, &planned);
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
