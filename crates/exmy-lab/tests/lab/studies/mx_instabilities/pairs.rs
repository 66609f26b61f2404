use exmy_lab::studies::mx_instabilities::pairs::{judge, judge_onsets};

#[test]
fn verdicts_of_pairs() {
    assert_eq!(judge(13, 24, false, 1.5).word(), "reproduced");
    assert!(judge(0, 2, false, f64::NAN).reason().contains("too short"));
    assert_eq!(judge(13, 24, true, 1.5).word(), "not seen at this scale");
    assert_eq!(judge(2, 24, false, 0.9).word(), "not seen at this scale");
    assert_eq!(judge(0, 24, true, 0.9).word(), "contradicted");
}

#[test]
fn verdicts_of_onsets() {
    let some = [(1.0, 300.0), (3.0, 900.0)];
    assert_eq!(judge_onsets(&some, 3, 0).word(), "reproduced");
    assert_eq!(judge_onsets(&some, 30, 0).word(), "not seen at this scale");
    assert_eq!(judge_onsets(&[], 3, 0).word(), "not seen at this scale");
    assert_eq!(judge_onsets(&[], 3, 1).word(), "contradicted");
}
