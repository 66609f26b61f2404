mod bit_reduction;
mod mx_instabilities;
mod nvfp4_outliers;

use exmy_lab::figure::Judged;
use exmy_lab::finding::Experiment as _;
use exmy_lab::finding::Findings;
use exmy_lab::measure::Results;
use exmy_lab::run_config::Setting;
use exmy_lab::store::{Store, distinct};
use exmy_lab::studies::{ALL, Paper};
use exmy_lab::study_scale::StudyScale;
use std::collections::BTreeSet;

/// A mistake in a name would be found when the runs are read, after days of training.
#[test]
fn grid_points_that_claims_and_views_name_are_there() {
    for figure in ALL.iter().flat_map(Paper::claimed) {
        for scale in StudyScale::ALL {
            let setting = Setting::unread(scale);
            let results = Results::made(&setting, &figure.grid, &|_, seed, _| seed as f64);
            let Judged::By(claim) = &figure.judged else { panic!("{} has no claim", figure.id) };
            if results.points.is_empty() {
                continue;
            }
            assert!(claim.findings(&results).is_ok(), "{} at {scale}", figure.id);
            for view in figure.views {
                assert_eq!(view.draw(&results).map_or(0, |parts| parts.len()).min(1), 1);
            }
            let asks = figure.criterion();
            assert!(asks.starts_with("Reproduced where ") && asks.ends_with('.'), "{asks}");
        }
    }
}

/// The sentence has what the criterion has: quantities, thresholds, tests, and the opposite if there is one.
#[test]
fn sentences_come_from_criteria() {
    let figures = || ALL.iter().flat_map(|paper| paper.figures);
    let of = |id: &str| figures().find(|figure| figure.id() == id).unwrap().criterion();
    assert_eq!(
        of("E8"),
        "Reproduced where what NVFP4 flushes of weights is below what it flushes of activations (95 % \
         interval of the paired difference), and what CHON flushes of activations is below what NVFP4 does \
         (95 % interval of the paired difference); contradicted where what NVFP4 flushes of weights is \
         above what it flushes of activations (95 % interval of the paired difference), or what CHON \
         flushes of activations is above what NVFP4 does (95 % interval of the paired difference)."
    );
    assert_eq!(
        of("BR-4"),
        "Reproduced where the relative deviation of gain and noise of products of normal numbers from their \
         expectations is below 0.01."
    );
    for part in ["is above 0.7, and", "(interval of Hanley and McNeil)", "of the last 50 losses."] {
        assert!(of("BR-9").contains(part), "{part}");
    }
    assert!(
        of("BR-12")
            .contains("(rates within 0.1 nats of the best); contradicted where S in E8M3 is")
    );
    assert!(of("F2-11").contains("(log-rank test, one-sided, p at most 0.0033)"));
    for figure in figures().filter(|figure| !figure.criterion().is_empty()) {
        let asks = figure.criterion();
        assert!(asks.starts_with("Reproduced where ") && asks.ends_with('.'), "{asks}");
    }
}

/// Figures that have runs at scale `paper` alone say so, whoever judges them.
#[test]
fn figures_of_the_papers_own_size_are_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let (store, setting) = (Store::new(folder.path()), Setting::unread(StudyScale::Small));
    let mut left: BTreeSet<&str> = [
        "F1a", "F1b", "AppD", "AppG", "AppJ", "Nb-1", "Nb-2", "Ext", "BR-7", "E13", "E14", "E16",
        "E17", "E20", "E21", "F2-10", "F2-13", "F2-14", "F2-15", "F2-16", "F2-17", "F2-18",
        "F2-19", "F2-20", "F2-21", "F2-22", "F2-23", "F2-24", "BR-15", "BR-16", "BR-17", "BR-18",
        "BR-19",
    ]
    .into();
    let figures = ALL.iter().flat_map(|paper| paper.figures);
    for figure in figures.filter(|figure| left.remove(figure.id())) {
        assert!(figure.runs(&setting).is_empty(), "{}", figure.id());
        let found = figure.find(&setting, &store.runs()).unwrap();
        assert_eq!(found, Findings::not_run(), "{}", figure.id());
    }
    assert!(left.is_empty(), "{left:?}");
}

/// Every plan can be trained at every scale: presets, keys, recipes, branches.
#[test]
fn every_plan_is_possible_and_every_name_is_taken_once() {
    let mut ids = Vec::new();
    for paper in ALL {
        for figure in paper.figures {
            ids.push(figure.id());
            assert!(!figure.title().is_empty() && !figure.source().is_empty());
            assert!(!figure.claim().is_empty());
            for scale in StudyScale::ALL {
                let runs = distinct(&figure.runs(&Setting::unread(scale)));
                for run in runs {
                    assert!(run.steps() > 0, "{} at {scale}: {}", figure.id(), run.name());
                }
            }
        }
    }
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
}
