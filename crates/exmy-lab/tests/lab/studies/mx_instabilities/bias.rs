use exmy_lab::studies::mx_instabilities::bias::{Drift, judge, onset, words};

#[test]
fn onsets_need_records_in_a_row() {
    let values = |list: &[f64]| {
        list.iter().enumerate().map(|(i, v)| (10.0 * i as f64, *v)).collect::<Vec<_>>()
    };
    assert_eq!(onset(&values(&[0.1, 1.2, 0.9, 1.0, 1.1, 1.3, 0.2])), Some(30));
    assert_eq!(onset(&values(&[0.1, 1.2, 1.2, 0.9])), None);
    assert_eq!(onset(&[]), None);
}

#[test]
fn the_search_tells_onsets_apart() {
    let seen = |drifts, onset, diverged| Drift { drifts, shrinks: !drifts, onset, diverged };
    let all = [
        seen(true, Some(40), Some(90)),
        seen(true, Some(50), Some(90)),
        seen(true, Some(95), Some(90)),
        seen(true, None, Some(90)),
        seen(false, Some(50), None),
        seen(true, None, None),
    ];
    assert_eq!(
        words(&all),
        "of 6 MX runs of AppC's grid 4 diverge, 2 of them after such an onset, and 1 that do not diverge \
         have one; rho rises and the cosine falls in 5, the opposite in 1"
    );
}

#[test]
fn verdicts_follow_the_order_of_events() {
    let seen = |drifts, onset, diverged| Drift { drifts, shrinks: !drifts, onset, diverged };
    let quiet = [seen(true, None, None); 5];
    let word = |last: Drift| judge(&[&quiet[..], &[last]].concat()).word();
    assert_eq!(word(seen(true, Some(50), Some(90))), "reproduced");
    assert_eq!(word(seen(true, Some(50), None)), "not seen at this scale");
    assert_eq!(word(seen(true, None, Some(90))), "contradicted");
    assert_eq!(word(seen(true, Some(90), Some(50))), "contradicted");
    assert_eq!(judge(&[seen(false, None, None); 6]).word(), "contradicted");
    assert_eq!(judge(&[seen(false, None, None); 2]).word(), "not seen at this scale");
}
