//! [`Curves`] of the runs of some figures: they are thinned, and each figure is drawn again from what is
//! kept.

use crate::curves::{Curves, Record};
use crate::finding::{Experiment, Findings, Paper, Part};
use crate::outcome::judge;
use crate::report;
use crate::run_config::{RunConfig, Setting};
use crate::store::Store;
use exmy::error::Result;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What of some findings must not depend on how many steps were kept.
fn exact(found: &Findings) -> impl PartialEq {
    let is_exact = |part: &&Part| !matches!(part, Part::Picture(_));
    let parts: Vec<Part> = found.parts.iter().filter(is_exact).cloned().collect();
    (found.verdict.clone(), found.judged.clone(), parts)
}

/// Curves, and the figures that cannot be drawn from them: they need weights or parts of probes.
#[derive(Clone, Debug, PartialEq)]
pub struct Thinned {
    pub curves: Curves,
    pub left_out: Vec<&'static str>,
}

/// Those of the complete runs of some figures, of the figures that need no other runs, and of what the
/// store's own curves have besides, and `standing` ones. What is trained later is added to them.
///
/// # Errors
/// If a run cannot be read.
pub fn thin(
    paper: &Paper,
    figures: &[&dyn Experiment],
    (setting, store): (&Setting, &Store),
    standing: Option<&Curves>,
) -> Result<Thinned> {
    let (mut complete, mut others): (Vec<&dyn Experiment>, Vec<RunConfig>) = Default::default();
    for figure in figures {
        let runs = report::runs(&[*figure], setting, store)?;
        let there: Vec<bool> = runs.iter().map(|run| store.has(run)).collect::<Result<_>>()?;
        match there.iter().all(|&is_there| is_there) {
            true => complete.push(*figure),
            false => others.extend(runs),
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
    let mut curves = Arc::new(Curves::new(paper.name, setting, records));
    // Whether a figure needs probes is seen when its last run is there.
    keep_probes(&mut curves, &others, store)?;
    let mut left_out = Vec::new();
    for figure in complete {
        if !draws(figure, setting, store, &curves) {
            let mut probed = Arc::clone(&curves);
            keep_probes(&mut probed, &report::runs(&[figure], setting, store)?, store)?;
            if !draws(figure, setting, store, &probed) {
                left_out.push(figure.id());
                continue;
            }
            curves = probed;
        }
        Arc::make_mut(&mut curves).draw(figure.id());
    }
    // Runs of which nothing can be drawn would only stand in for whole ones.
    let needed = figures.iter().filter(|figure| !left_out.contains(&figure.id()));
    let needed = report::runs(&needed.copied().collect::<Vec<_>>(), setting, store)?;
    let needed: BTreeSet<String> = needed.iter().map(RunConfig::name).collect();
    Arc::make_mut(&mut curves).retain(|name| needed.contains(name));
    for earlier in store.curves().into_iter().chain(standing) {
        Arc::make_mut(&mut curves).add(earlier);
        for id in earlier.figures() {
            let is_new = !curves.figures().contains(id) && !left_out.contains(&id.as_str());
            let figure = paper.figures.iter().find(|figure| figure.id() == id);
            if is_new && figure.is_some_and(|figure| has_all(*figure, setting, &curves)) {
                Arc::make_mut(&mut curves).draw(id);
            }
        }
    }
    Ok(Thinned { curves: Arc::unwrap_or_clone(curves), left_out })
}

/// Whether curves have all runs of a figure.
fn has_all(figure: &dyn Experiment, setting: &Setting, curves: &Arc<Curves>) -> bool {
    let store = Store::drawn_from(Arc::clone(curves));
    let has = |run: &RunConfig| store.has(run).is_ok_and(|has| has);
    report::runs(&[figure], setting, &store).is_ok_and(|runs| runs.iter().all(has))
}

/// Keeps what probes measured in those of some runs that are complete.
fn keep_probes(curves: &mut Arc<Curves>, runs: &[RunConfig], store: &Store) -> Result<()> {
    for run in runs {
        if store.has(run)? {
            let probes = store.runs().of(run)?.probed(&run.config.record.probes)?;
            Arc::make_mut(curves).keep_probes(&run.name(), probes);
        }
    }
    Ok(())
}

/// Whether a figure says the same of curves as of the runs in a store.
fn draws(figure: &dyn Experiment, setting: &Setting, store: &Store, curves: &Arc<Curves>) -> bool {
    let of = |store: &Store| -> Result<Vec<Findings>> {
        Ok(report::find(&[figure], setting, store, |_| true)?.unwrap_or_default())
    };
    match (of(store), of(&Store::drawn_from(Arc::clone(curves)))) {
        (Ok(found), Ok(again)) => found.iter().map(exact).eq(again.iter().map(exact)),
        _ => false,
    }
}
