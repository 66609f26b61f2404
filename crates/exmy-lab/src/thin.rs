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

/// Those of the complete runs of some figures, and of the figures that need no other runs. What is trained
/// later is added to them.
///
/// # Errors
/// If a run cannot be read, or if a figure says something else when it is drawn from what is kept, as one
/// that needs weights or parts of probes.
pub fn thin(
    paper: &Paper,
    figures: &[&dyn Experiment],
    (setting, store): (&Setting, &Store),
) -> Result<Curves> {
    let all_there = |runs: &[RunConfig]| -> Result<bool> {
        runs.iter().try_fold(true, |all, run| Ok(all && store.has(run)?))
    };
    let mut complete: Vec<&dyn Experiment> = Vec::new();
    for figure in figures {
        if all_there(&report::runs(&[*figure], setting, store)?)? {
            complete.push(*figure);
        }
    }
    let mut records = Vec::new();
    for run in report::runs(figures, setting, store)? {
        if store.has(&run)? {
            let trained = store.runs().of(&run)?;
            let judged = judge(&trained, &run);
            records.push(Record::of(run.name(), trained.summary, &trained.metrics, judged));
        }
    }
    let ids = complete.iter().map(|figure| figure.id().to_owned()).collect();
    let mut curves = Arc::new(Curves::new(paper.name, setting, ids, records));
    for figure in complete {
        if draws(figure, setting, store, &curves).is_ok_and(|same| same) {
            continue;
        }
        for run in report::runs(&[figure], setting, store)? {
            let probes = store.runs().of(&run)?.probed(&run.config.record.probes)?;
            Arc::make_mut(&mut curves).keep_probes(&run.name(), probes);
        }
        let id = figure.id();
        let hint = "name figures that need losses, gradient norms and values of probes alone with --figure";
        let same = draws(figure, setting, store, &curves).map_err(|error| {
            let what = format!("{id} cannot be drawn from curves, so none are written");
            Error::new(what).because(error).hint(hint)
        })?;
        if !same {
            let what = format!(
                "{id} needs more than curves: drawn from them its verdict or a table is another"
            );
            return Err(Error::new(what).hint(hint));
        }
    }
    Ok(Arc::unwrap_or_clone(curves))
}

/// Whether a figure says the same of curves as of the runs in a store.
fn draws(
    figure: &dyn Experiment,
    setting: &Setting,
    store: &Store,
    curves: &Arc<Curves>,
) -> Result<bool> {
    let of = |store: &Store| -> Result<Vec<Findings>> {
        Ok(report::find(&[figure], setting, store, |_| true)?.unwrap_or_default())
    };
    let (found, again) = (of(store)?, of(&Store::drawn_from(Arc::clone(curves)))?);
    Ok(found.iter().map(exact).eq(again.iter().map(exact)))
}
