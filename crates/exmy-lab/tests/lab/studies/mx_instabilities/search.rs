use exmy_lab::grid::GridPoint;
use exmy_lab::studies::mx_instabilities::grids::SEARCH;
use exmy_lab::studies::mx_instabilities::search::judge;

#[test]
fn verdicts_count_grid_points() {
    let word =
        |f32: bool, mx: [bool; 2], count: usize| judge(&vec![(f32, mx.to_vec()); count], 0).word();
    // A third each: eight tails in a row have (2/3)^8 = 0.039, seven 0.059; three heads 1/27, two 1/9.
    assert_eq!(word(false, [true, false], 8), "reproduced");
    assert_eq!(word(false, [true, false], 7), "not seen at this scale");
    assert_eq!(word(true, [false, false], 3), "contradicted");
    assert_eq!(word(true, [false, false], 2), "not seen at this scale");
    assert_eq!(word(true, [true, true], 9), "not seen at this scale", "all diverge");
}

#[test]
fn the_search_is_large_enough_to_count() {
    use exmy_lab::study_scale::StudyScale;
    let mx = |point: &GridPoint| !point.has("f32") && !point.has("f32, fixed betas");
    let points = SEARCH.points(StudyScale::Small);
    assert!(points.iter().filter(|point| mx(point)).count() >= 200, "for F-zeta");
}
