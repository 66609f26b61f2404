//! Tests of the figures that are judged by claims.

mod abilities;
mod depth;
mod flushed;
mod hot_channels;
mod operators;
mod overhead;
mod patches;
mod rotations;
mod weights;

use exmy_lab::figure::{Figure, Judged};
use exmy_lab::grid::GridPoint;
use exmy_lab::measure::{Metric, Results};
use exmy_lab::run_config::Setting;
use exmy_lab::studies::nvfp4_outliers::recipes::TRAINING;
use exmy_lab::studies::nvfp4_outliers::{DEPTH, GAP, SPIKES, TAILS};
use exmy_lab::study_scale::StudyScale;

/// The word where the metrics of grid points are so, by names of their levels and what is measured, and
/// scatter little between seeds.
fn word(figure: &Figure, made: impl Fn(&GridPoint, &str) -> f64) -> &'static str {
    let setting = Setting::unread(StudyScale::Small);
    let made = |point: &GridPoint, seed: u64, metric: Metric| {
        made(point, metric.name()) + 0.01 * (seed % 2) as f64
    };
    let results = Results::made(&setting, &figure.grid, &made);
    let Judged::By(claim) = &figure.judged else { panic!("{} has no claim", figure.id) };
    claim.findings(&results).unwrap().verdict.word()
}

#[test]
fn gaps_and_probes_reach_each_verdict() {
    const NOT: &str = "untested at this size";
    let gap = |chon: f64| word(&GAP, |point, _| if point.has("CHON") { chon } else { 1.0 });
    assert_eq!((gap(0.5), gap(1.5)), ("reproduced", "contradicted"));
    // A gap of the paper's size would have been seen: seeds scatter by a hundredth of a point.
    assert_eq!(gap(1.0), "not seen at this scale");
    let tails = |gla: f64, four: f64| {
        word(&TAILS, |point, _| match (point.has("GLA"), point.has("nvfp4")) {
            (false, _) => 4.0,
            (true, false) => gla,
            (true, true) => four,
        })
    };
    assert_eq!((tails(1.0, 1.0), tails(1.0, 4.0)), ("reproduced", NOT));
    // The opposite at one of the recipes is enough.
    assert_eq!(tails(1.0, 5.0), "contradicted");
    // What is said of the kurtosis is E3's.
    let spikes = |spike: f64, kurtosis: f64| {
        word(&SPIKES, |point, name| match (point.has("GLA"), name) {
            (false, _) => 6.0,
            (true, "spike of inputs") => spike,
            (true, _) => kurtosis,
        })
    };
    assert_eq!((spikes(5.0, 9.0), spikes(2.0, 1.0)), ("reproduced", "contradicted"));
    assert_eq!(spikes(4.2, 1.0), NOT);
}

/// Each of four ratios must be above 1, and one below is enough for the opposite.
#[test]
fn outliers_by_depth_reach_each_verdict() {
    let of = |other: f64| {
        word(
            &DEPTH,
            |point, name| {
                if point.has("SA") && name.starts_with("largest") { other } else { 2.0 }
            },
        )
    };
    let not = "untested at this size";
    assert_eq!((of(3.0), of(0.5), of(1.0)), ("reproduced", "contradicted", not));
}

/// What is judged at the paper's size is that choosing once costs little, where that was run.
#[test]
fn what_is_not_run_is_not_judged() {
    let of =
        |patched: f64| word(&TRAINING, |point, _| if point.has("k = 32") { patched } else { 2.0 });
    assert_eq!((of(1.0), of(3.0)), ("reproduced", "contradicted"));
    let Judged::By(claim) = &TRAINING.judged else { panic!("no claim") };
    let sentence = claim.criterion();
    assert!(sentence.contains("where k = 128 is not run, the gap of k = 32"), "{sentence}");
}
