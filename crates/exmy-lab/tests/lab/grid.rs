//! Tests of grids: the second stage, on runs that diverge.

use exmy::error::Result;
use exmy_lab::grid::{After, Axis, Divergence, Grid, Set, level};
use exmy_lab::outcome::Outcome;
use exmy_lab::run_config::{RunConfig, Setting};
use exmy_lab::runner::{Run, Silent};
use exmy_lab::store::{Store, distinct};
use exmy_lab::study_scale::StudyScale;
use exmy_train::train::data::Source;
use std::sync::Arc;

/// A proxy at a rate far beyond what works.
pub(crate) const GRID: Grid = Grid {
    model: ["proxy-nano"; 3],
    steps: [80; 3],
    rate: [1.0; 3],
    seeds: [1; 3],
    sets: &[
        Set::Layers(2),
        Set::Width(32),
        Set::Batch(32),
        Set::Constant,
        Set::Warmup(1.0),
        Set::Recipe("mxpaper-e2m1"),
        Set::Keep(&[2]),
    ],
    axes: &[
        Axis::new(
            "after",
            &[
                level("T - 3", Set::After(After::Before(3))),
                level("0.88 T", Set::After(After::Until(88))),
                level("T - 1000", Set::After(After::Before(1000))),
            ],
        ),
        Axis::new("change", &[level("control", Set::Whole("mxpaper-e2m1"))]),
    ],
    ..Grid::NONE
};

/// The steps of branches come from where the first stage's runs diverge; they are replayed bit for bit.
#[test]
fn a_second_stage_follows_from_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let (setting, data) = Setting::new(StudyScale::Smoke, Source::default()).unwrap();
    let data = Arc::new(data);
    let train = |runs: &[RunConfig]| {
        let runs: Vec<Run> = distinct(runs).iter().map(RunConfig::run).collect();
        store.runner().work(&runs, Some(Arc::clone(&data)), &Silent).unwrap();
    };
    let first = distinct(&GRID.runs(&setting));
    let [root] = &first[..] else { panic!("{} runs in the first stage", first.len()) };
    let runs = store.runs();
    let diverged = |run: &RunConfig| -> Result<Divergence> {
        if !runs.has(run)? {
            return Ok(Divergence::Unknown);
        }
        Ok(Divergence::of(Outcome::of(runs.of(run)?, run).verdict.diverged))
    };
    assert_eq!(GRID.later(&setting, &diverged).unwrap(), [], "nothing is known yet");
    train(&first);
    let Divergence::At(end) = diverged(root).unwrap() else { panic!("it does not diverge") };
    assert!(end > 6, "{end}");
    let later = GRID.later(&setting, &diverged).unwrap();
    let steps: Vec<u64> = later.iter().map(|run| run.parent.as_ref().unwrap().1).collect();
    assert_eq!(steps, [end - 3, end * 88 / 100], "there is no step T - 1000");
    train(&later);
    let losses = |run: &RunConfig| -> Vec<Option<f64>> {
        runs.of(run).unwrap().metrics.iter().map(|line| line.loss).collect()
    };
    for run in &later {
        let replay = &run.parent.as_ref().unwrap().0;
        let (from, kept) = replay.parent.as_ref().unwrap();
        assert_eq!((from.name(), *kept), (root.name(), 2), "from its last checkpoint");
        assert_eq!(losses(replay), losses(root));
        assert_eq!(losses(run), losses(root), "the control goes on as it began");
    }
}

/// As many runs that do not diverge are left at the same steps, in the order of seeds, once all are known.
#[test]
fn a_second_stage_has_as_many_runs_that_do_not_diverge() {
    let grid = Grid { seeds: [5; 3], ..GRID };
    let (setting, _) = Setting::new(StudyScale::Smoke, Source::default()).unwrap();
    let left = |ends: [Divergence; 5]| -> Vec<(u64, u64)> {
        let diverged = |run: &RunConfig| Ok(ends[run.config.seed as usize - 1]);
        let later = grid.later(&setting, &diverged).unwrap();
        later.iter().map(|run| (run.config.seed, run.parent.as_ref().unwrap().1)).collect()
    };
    let (sound, at) = (Divergence::None, Divergence::At);
    // T - 3, then 0.88 T.
    let left_of_two = [(1, 57), (2, 57), (3, 47), (4, 47), (1, 52), (2, 52), (3, 44), (4, 44)];
    assert_eq!(left([sound, at(60), at(50), sound, sound]), left_of_two);
    assert_eq!(left([sound, at(60), at(50), at(40), Divergence::Unknown]).len(), 6);
    assert_eq!(left([sound; 5]), []);
}
