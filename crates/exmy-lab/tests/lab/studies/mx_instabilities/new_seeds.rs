use exmy_lab::run_config::Setting;
use exmy_lab::studies::mx_instabilities::grids::NEW_SEEDS;
use exmy_lab::studies::mx_instabilities::new_seeds::{Pairs, judge};
use exmy_lab::study_scale::StudyScale;

#[test]
fn verdicts_count_seeds_by_every_multiple() {
    let of = |pair: (bool, bool), count: usize| vec![pair; count];
    let word = |by: [Pairs; 4]| judge("E2M1", &by, "").word();
    let same = |pairs: Pairs| word([pairs.clone(), pairs.clone(), pairs.clone(), pairs]);
    // Half to the fifth power is 0.031, to the fourth 0.0625.
    assert_eq!(same(of((false, true), 5)), "reproduced");
    assert_eq!(same(of((false, true), 4)), "not seen at this scale");
    assert_eq!(same(of((true, false), 5)), "contradicted");
    assert_eq!(same(of((true, true), 9)), "not seen at this scale");
    assert_eq!(same(Vec::new()), "not seen at this scale");
    let (few, many) = (of((true, true), 5), of((false, true), 5));
    assert_eq!(word([few, many.clone(), many.clone(), many]), "not seen at this scale");
}

#[test]
fn seeds_are_not_those_of_the_search() {
    let runs = |scale| NEW_SEEDS.runs(&Setting::unread(scale));
    let small = runs(StudyScale::Small);
    assert_eq!(small.len(), 24 * 6);
    assert!(small.iter().all(|planned| (21..45).contains(&planned.config.seed)));
    assert!(runs(StudyScale::Smoke).is_empty());
}
