use exmy_lab::spikes::{Detected, Spike};
use exmy_lab::statistics::Interval;
use exmy_lab::studies::bit_reduction::forecast::{fails_later, judge};

#[test]
fn each_verdict_can_be_reached() {
    let around =
        |reach: f64| move |x: f64| Some(Interval { estimate: x, low: x - reach, high: x + reach });
    let word = |reach: f64, areas: [f64; 4]| judge(&areas.map(around(reach)), (10, 5)).word();
    let not = "not seen at this scale";
    assert_eq!(word(0.1, [0.9, 0.8, 0.7, 0.6]), "reproduced");
    assert_eq!(word(0.5, [0.9, 0.8, 0.7, 0.6]), not, "chance");
    assert_eq!(word(0.1, [0.8, 0.9, 0.7, 0.6]), "contradicted");
    assert_eq!(word(0.5, [0.8, 0.9, 0.7, 0.6]), not, "chance");
    assert_eq!(word(0.01, [0.6, 0.5, 0.5, 0.5]), not);
    assert_eq!(judge(&[None; 4], (10, 0)).word(), "untested at this size");
}

#[test]
fn what_failed_before_is_not_foretold() {
    let later = |diverged: Option<u64>, first: u64| {
        let spike = Spike { first, last: first, level: 1.0, peak: 2.0, recovered: true };
        let found = Detected { diverged, spikes: vec![spike] };
        fails_later(diverged.is_some(), &found, 100.0)
    };
    assert_eq!(later(Some(50), 40), None);
    assert_eq!(later(Some(300), 40), Some(true));
    assert_eq!(later(None, 40), Some(false));
    assert_eq!(later(None, 140), Some(true));
}
