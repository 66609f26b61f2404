//! How long runs will still take: what `exmy watch` and `exmy report --follow` say of it.
//!
//! The records of a run have no clock, so its speed is seen by whoever looks twice. Until then, and for runs
//! that wait or are not begun, a step is taken to last as long as one of another run with the same model,
//! batch and recipe. That time is what was seen, else what `timing.jsonl` has, else the mean of all. So the
//! times are estimates; evaluations are in those that were seen alone.

use crate::estimate::kind;
use crate::gather::{RecordedRun, State};
use crate::statistics::mean;
use exmy_train::train::run::Folder;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

/// What is known of the time to come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remaining {
    /// Steps a second of runs that were seen at work at two steps.
    speeds: HashMap<PathBuf, f64>,
    /// Seconds that runs at work, and those that wait, still take once somebody works on them.
    seconds: HashMap<PathBuf, f64>,
    /// Runs that are planned, and of which nothing is there yet.
    pub not_begun: usize,
    /// Seconds until all are done, as many at a time as now; `None` where nobody is at work, or no speed is
    /// known.
    pub all: Option<f64>,
}

impl Remaining {
    /// Of runs at which nobody looks a second time.
    pub fn unseen(not_begun: usize) -> Self {
        Self { not_begun, ..Self::default() }
    }

    /// Steps a second of a run that was seen at work.
    pub fn speed(&self, run: &Folder) -> Option<f64> {
        self.speeds.get(run.path()).copied()
    }

    /// Seconds that a run still takes.
    pub fn of(&self, run: &Folder) -> Option<f64> {
        self.seconds.get(run.path()).copied()
    }
}

/// What was seen of some runs so far.
#[derive(Clone, Debug, Default)]
pub struct Looks {
    /// When a run was first seen, and at which step.
    first: HashMap<PathBuf, (Instant, u64)>,
    /// Seconds a step of complete runs by their records.
    recorded: HashMap<PathBuf, Option<f64>>,
}

/// The step that a run has come to.
fn step(run: &RecordedRun) -> u64 {
    run.metrics.last().map_or(0, |line| line.step)
}

/// Seconds a step, with the kind of run they are of.
type StepTimes<'a> = Vec<(&'a str, f64)>;

/// The mean of one kind, else of all.
fn mean_of(known: &StepTimes<'_>, kind: Option<&str>) -> Option<f64> {
    let is_it = |(of, _): &&(&str, f64)| kind.is_none_or(|kind| *of == kind);
    mean(&known.iter().filter(is_it).map(|(_, seconds)| *seconds).collect::<Vec<_>>())
}

impl Looks {
    /// Looks at runs once more; `not_begun` are the recipes of those that are planned.
    pub fn look(
        &mut self,
        runs: &[RecordedRun],
        states: &[State],
        not_begun: &[String],
    ) -> Remaining {
        let mut left = Remaining::unseen(not_begun.len());
        let all = || runs.iter().zip(states);
        for (run, _) in all().filter(|(_, state)| **state == State::AtWork) {
            if let Some(speed) = self.speed(run) {
                left.speeds.insert(run.folder.path().to_owned(), speed);
            }
        }
        let at_work = states.iter().filter(|state| **state == State::AtWork).count();
        if at_work == 0 {
            return left;
        }
        let kinds: Vec<String> = runs.iter().map(|run| kind(&run.config)).collect();
        let (mut seen, mut recorded) = (StepTimes::new(), StepTimes::new());
        for (run, kind) in runs.iter().zip(&kinds) {
            let speed = left.speed(&run.folder);
            seen.extend(speed.map(|speed| (kind.as_str(), 1.0 / speed)));
            recorded.extend(self.recorded(run).map(|seconds| (kind.as_str(), seconds)));
        }
        let of_kind = |kind: &str| {
            let of = |kind| mean_of(&seen, kind).or_else(|| mean_of(&recorded, kind));
            of(Some(kind)).or_else(|| of(None))
        };
        let mut known: HashMap<&str, Option<f64>> = HashMap::new();
        let mut whole = Vec::new();
        for ((run, state), kind) in all().zip(&kinds) {
            let usual = *known.entry(kind).or_insert_with(|| of_kind(kind));
            let own = left.speed(&run.folder).map(|speed| 1.0 / speed);
            let (steps, Some(seconds)) = (run.config.train.steps, own.or(usual)) else { continue };
            whole.push((run.config.recipe.to_string(), steps as f64 * seconds));
            if matches!(state, State::AtWork | State::Waiting) {
                let seconds = steps.saturating_sub(step(run)) as f64 * seconds;
                left.seconds.insert(run.folder.path().to_owned(), seconds);
            }
        }
        // Of a run that is not begun its recipe is known.
        let whole: StepTimes<'_> =
            whole.iter().map(|(recipe, seconds)| (&**recipe, *seconds)).collect();
        let recipes: HashMap<&String, Option<f64>> = not_begun
            .iter()
            .map(|recipe| (recipe, mean_of(&whole, Some(recipe)).or(mean_of(&whole, None))))
            .collect();
        let to_come: Option<f64> = not_begun.iter().map(|recipe| recipes[recipe]).sum();
        let begun: f64 = left.seconds.values().sum();
        left.all = to_come.filter(|_| !whole.is_empty()).map(|sum| (sum + begun) / at_work as f64);
        left
    }

    /// Steps a second of a run at work, since it was first seen.
    fn speed(&mut self, run: &RecordedRun) -> Option<f64> {
        let first = (Instant::now(), step(run));
        let (begun, at) = *self.first.entry(run.folder.path().to_owned()).or_insert(first);
        let (seconds, done) = (begun.elapsed().as_secs_f64(), step(run).saturating_sub(at));
        (done > 0 && seconds > 0.0).then(|| done as f64 / seconds)
    }

    /// Seconds a step of a complete run by its records, which are read once.
    fn recorded(&mut self, run: &RecordedRun) -> Option<f64> {
        run.summary.as_ref()?;
        let read = || {
            let seconds = run.time().seconds;
            (seconds > 0.0 && step(run) > 0).then(|| seconds / step(run) as f64)
        };
        *self.recorded.entry(run.folder.path().to_owned()).or_insert_with(read)
    }
}
