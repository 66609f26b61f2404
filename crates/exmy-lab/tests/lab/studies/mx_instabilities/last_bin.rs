use exmy::format::Format;
use exmy_lab::studies::mx_instabilities::last_bin::{Clustering, gaps, judge};

/// Inside a binade from 1/8 down to 1/15; the last one ends at 448, after 416.
#[test]
fn gaps_of_e4m3_by_hand() {
    let gaps = gaps(Format::E4M3FN);
    assert_eq!(gaps.len(), 125);
    assert_eq!(gaps[0].1, 1.0);
    assert_eq!(gaps[124].1, 32.0 / 416.0);
    let normal: Vec<f64> = gaps[8..].iter().map(|gap| gap.1).collect();
    assert_eq!(normal.iter().copied().fold(0.0, f64::max), 0.125);
    assert!((normal.iter().copied().fold(1.0, f64::min) - 1.0 / 15.0).abs() < 1e-15);
}

#[test]
fn verdicts_follow_what_is_seen() {
    let seen = |first, most, activations| Clustering { first, most, last: 0.0, activations };
    let (yes, no) = (seen(0.0, 0.9, 0.01), seen(0.0, 0.2, 0.01));
    let control = [seen(0.98, 1.0, 0.01)];
    let word = |natural: &[Clustering], control: &[Clustering]| judge(natural, control).word();
    assert_eq!(word(&[yes, yes], &control), "reproduced");
    assert_eq!(word(&[yes, no], &control), "not seen at this scale");
    assert_eq!(word(&[no, no], &control), "not seen at this scale");
    assert_eq!(word(&[seen(0.0, 0.9, 0.3)], &control), "not seen at this scale");
    assert_eq!(word(&[seen(0.0, 0.01, 0.01)], &control), "contradicted");
    assert_eq!(word(&[yes], &[no]), "untested at this size", "the control must fire");
}
