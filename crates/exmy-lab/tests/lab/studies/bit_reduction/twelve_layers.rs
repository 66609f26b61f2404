use exmy_lab::figure::{Figure, Judged};
use exmy_lab::finding::Verdict;
use exmy_lab::grid::GridPoint;
use exmy_lab::measure::{Metric, Results};
use exmy_lab::run_config::Setting;
use exmy_lab::studies;
use exmy_lab::studies::bit_reduction::twelve_layers::shares;
use exmy_lab::study_scale::StudyScale;
use std::collections::BTreeSet;

#[test]
fn shares_are_those_of_each_seed() {
    let losses = [vec![3.0, 3.25], vec![3.5, 3.75], vec![3.125, 3.75]];
    assert_eq!(shares(&losses), [0.75, 0.0]);
}

/// What a figure says where arms end so far above E8M7, each seed a little higher than the one before, and
/// three seeds scatter by `scatter`.
fn verdict(scatter: f64, above: &dyn Fn(&GridPoint) -> f64) -> Verdict {
    verdict_of("BR-15", scatter, above)
}

fn claimed(id: &str) -> &'static Figure {
    let paper = studies::by_name("bit-reduction").unwrap();
    paper.claimed().find(|figure| figure.id == id).unwrap()
}

fn verdict_of(id: &str, scatter: f64, above: &dyn Fn(&GridPoint) -> f64) -> Verdict {
    let figure = claimed(id);
    let setting = Setting::unread(StudyScale::Paper);
    let made = |point: &GridPoint, seed: u64, _: Metric| {
        let own = if point.has("E8M7") { 0.0 } else { above(point) };
        // Not the same in all arms, else there would be no scatter of differences.
        4.0 + 0.01 * seed as f64 + own * (1.0 + scatter * (seed as f64 - 2.0))
    };
    let Judged::By(claim) = &figure.judged else { panic!("no claim") };
    claim.findings(&Results::made(&setting, &figure.grid, &made)).unwrap().verdict
}

#[test]
fn the_bias_is_most_of_the_cost_or_not() {
    let cost = |point: &GridPoint| {
        let formats = [("E8M3", 0.12), ("E8M4", 0.05), ("E8M5", 0.02)];
        formats.iter().find(|(name, _)| point.has(name)).unwrap().1
    };
    let rest = |share: f64| {
        move |point: &GridPoint| {
            cost(point) * if point.has("truncated") { 1.0 } else { 1.0 - share }
        }
    };
    assert!(matches!(verdict(0.05, &rest(0.8)), Verdict::Reproduced(_)));
    assert!(matches!(verdict(0.05, &rest(0.3)), Verdict::Contradicted(_)));
    // One of the three that have no bias is enough for that.
    let one = |point: &GridPoint| rest(if point.has("next bit set") { 0.3 } else { 0.8 })(point);
    assert!(matches!(verdict(0.05, &one), Verdict::Contradicted(_)));
    // Seeds that scatter more than arms differ show nothing.
    assert!(matches!(verdict(3.0, &rest(0.8)), Verdict::NotSeen(_) | Verdict::Untested(_)));
    // The order of bits is part of the claim.
    let reversed = |point: &GridPoint| 0.2 - rest(0.8)(point);
    assert!(matches!(verdict(0.05, &reversed), Verdict::Contradicted(_)));
}

#[test]
fn seeds_that_were_not_seen_judge_the_cost_alone() {
    let setting = Setting::unread(StudyScale::Paper);
    let figure = claimed("BR-17");
    let runs = figure.grid.runs(&setting);
    let seeds: BTreeSet<u64> = runs.iter().map(|run| run.config.seed).collect();
    assert_eq!((runs.len(), seeds), (32, (4..12).collect()));
    let rest = |share: f64| {
        move |point: &GridPoint| 0.06 * if point.has("truncated") { 1.0 } else { 1.0 - share }
    };
    assert!(matches!(verdict_of("BR-17", 0.01, &rest(0.8)), Verdict::Reproduced(_)));
    assert!(matches!(verdict_of("BR-17", 0.01, &rest(0.3)), Verdict::Contradicted(_)));
}
