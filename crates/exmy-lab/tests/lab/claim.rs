//! Tests of claims.

mod pooled;

use exmy_lab::claim::{Claim, Test, above};
use exmy_lab::finding::Verdict;
use exmy_lab::grid::{Axis, Grid, GridPoint, Level, Set, level};
use exmy_lab::measure::{Metric, Results};
use exmy_lab::run_config::Setting;
use exmy_lab::study_scale::StudyScale;

const LEVELS: [Level; 3] = [
    level("7", Set::Recipe("bitred-e8m7")),
    level("3", Set::Recipe("bitred-e8m3")),
    level("1", Set::Recipe("bitred-e8m1")),
];
const RATES: [Level; 2] = [level("1x", Set::Rate(1e-3)), level("10x", Set::Rate(1e-2))];
const GRID: Grid = Grid {
    model: ["nano"; 3],
    steps: [20; 3],
    rate: [1e-3; 3],
    seeds: [5; 3],
    axes: &[Axis::new("rate", &RATES), Axis::new("bits", &LEVELS)],
    ..Grid::NONE
};
const NOT: &str = "untested at this size";
const REPRODUCED: &str = "reproduced";
const CONTRADICTED: &str = "contradicted";

/// The verdict where a metric is given by the rate, the format and the seed.
fn verdict(claim: Claim, made: impl Fn(&str, &str, u64) -> f64) -> Verdict {
    let setting = Setting::unread(StudyScale::Smoke);
    let of = |point: &GridPoint, seed: u64, _: Metric| {
        made(point.level("rate").unwrap().name, point.level("bits").unwrap().name, seed)
    };
    claim.findings(&Results::made(&setting, &GRID, &of)).unwrap().verdict
}

/// The word where losses of 7, 3 and 1 are so at each rate, with a scatter of seeds that pairs do not
/// have and a little that they have.
fn word(test: Test, losses: [[f64; 3]; 2]) -> &'static str {
    let at = |levels: &[Level], name: &str| levels.iter().position(|l| l.name == name).unwrap();
    let loss = |rate: &str, bits: &str, seed: u64| {
        let own = losses[at(&RATES, rate)][at(&LEVELS, bits)];
        own + 0.5 * seed as f64 + 0.01 * (seed % 2) as f64 * (1 + at(&LEVELS, bits)) as f64
    };
    verdict(Claim::new(test), loss).word()
}

const COSTS: Test = above(&["1"], &["7"]);

#[test]
fn differences_are_of_pairs() {
    const HERE: Test = above(&["1", "1x"], &["7", "1x"]);
    let of = |one: f64| word(HERE, [[2.0, 2.0, one], [2.0; 3]]);
    assert_eq!((of(2.2), of(2.0), of(1.8)), (REPRODUCED, NOT, CONTRADICTED));
    assert_eq!(of(f64::INFINITY), NOT, "no interval");
    const DIVERGED: Test = Test::Above { of: &["1", "1x"], over: &["7", "1x"], or_diverges: true };
    assert_eq!(word(DIVERGED, [[2.0, 2.0, f64::INFINITY], [2.0; 3]]), REPRODUCED);
    assert_eq!(word(DIVERGED, [[f64::INFINITY; 3], [2.0; 3]]), NOT);
}

/// Pairs scatter by some 0.01: 0.2 would be seen, 0.001 would not.
#[test]
fn what_is_not_seen_says_how_often_it_would_be() {
    const LARGE: Test =
        Test::Sized { size: 0.2, words: "0.2 nats", test: &above(&["1", "1x"], &["7", "1x"]) };
    const SMALL: Test =
        Test::Sized { size: 0.001, words: "", test: &above(&["1", "1x"], &["7", "1x"]) };
    let of = |test: Test, one: f64| word(test, [[2.0, 2.0, one], [2.0; 3]]);
    assert_eq!((of(LARGE, 2.0), of(SMALL, 2.0)), ("not seen at this scale", NOT));
    assert_eq!((of(LARGE, 2.2), of(SMALL, 1.8)), (REPRODUCED, CONTRADICTED));
    // Both must be seen: what nobody knows of one is not known of both.
    const BOTH: Test = Test::All(&[LARGE, COSTS_AT_ONCE]);
    assert_eq!(of(BOTH, 2.0), NOT);
    const COSTS_AT_ONCE: Test = above(&["3", "1x"], &["7", "1x"]);
    let text = verdict(Claim::new(LARGE), |_, _, seed| 2.0 + 0.01 * (seed % 2) as f64);
    let ends = "the paper's effect, 0.2 nats, would be seen in 100 % of cases";
    assert!(text.reason().ends_with(ends), "{text:?}");
}

#[test]
fn one_level_or_each() {
    const EACH: Test = Test::Each { axis: "rate", test: &COSTS };
    const ANY: Test = Test::Any { axis: "rate", surer: true, test: &COSTS };
    const LAST: Test = Test::Last { axis: "rate", test: &COSTS };
    let (up, same, down) = ([2.0, 2.0, 2.5], [2.0; 3], [2.5, 2.5, 2.0]);
    let of = |test, losses| word(test, losses);
    assert_eq!((of(EACH, [up, up]), of(ANY, [up, up])), (REPRODUCED, REPRODUCED));
    assert_eq!((of(EACH, [up, same]), of(ANY, [same, up])), (NOT, REPRODUCED));
    assert_eq!((of(EACH, [down, same]), of(ANY, [down, same])), (NOT, CONTRADICTED));
    assert_eq!((of(EACH, [down, down]), of(ANY, [down, up])), (CONTRADICTED, REPRODUCED));
    assert_eq!((of(LAST, [up, down]), of(LAST, [down, up])), (CONTRADICTED, REPRODUCED));
    let diverged = [2.0, 2.0, f64::INFINITY];
    assert_eq!((of(LAST, [up, diverged]), of(LAST, [diverged, diverged])), (REPRODUCED, NOT));
}

#[test]
fn of_several_parts_the_opposite_of_one_is_enough() {
    const ALL: Test = Test::All(&[COSTS, Test::Ordered { axis: "bits" }]);
    const HERE: Test = Test::Each { axis: "rate", test: &ALL };
    let of = |losses| word(HERE, [losses, losses]);
    assert_eq!(of([2.0, 2.2, 2.5]), REPRODUCED);
    assert_eq!(of([2.0, 2.6, 2.5]), NOT, "one of two neighbours is out of order");
    assert_eq!(of([2.5, 2.1, 2.0]), CONTRADICTED);
}

#[test]
fn a_remedy_that_harms_is_no_opposite() {
    const ONE: Test = Test::OneBelow { of: &["3", "7"], over: &["1"] };
    const HERE: Test = Test::Each { axis: "rate", test: &ONE };
    let of = |losses| word(HERE, [losses, losses]);
    assert_eq!(of([3.0, 2.0, 2.5]), REPRODUCED);
    assert_eq!(of([3.0, 3.0, 2.5]), NOT);
}

#[test]
fn a_gap_must_be_there_to_change() {
    const WIDER: Test = Test::Wider { of: &["1"], over: &["7"], at: &["10x"], than: &["1x"] };
    let of = |here: f64, there: f64| word(WIDER, [[2.0, 2.0, 2.0 + here], [2.0, 2.0, 2.0 + there]]);
    assert_eq!((of(0.1, 0.5), of(0.5, 0.1)), (REPRODUCED, CONTRADICTED));
    assert_eq!(of(0.0, -0.3), NOT, "no gap that could narrow");
    assert_eq!(of(-0.5, -0.1), NOT, "no gap that widens");
}

#[test]
fn the_opposite_may_be_another_test() {
    const MORE: Test = Test::Nats { of: &["1"], over: &["7"], least: 0.5, more: true };
    const LESS: Test = Test::Nats { of: &["3"], over: &["7"], least: 0.5, more: true };
    const CLAIM: Claim = Claim {
        holds: Test::AnyOf { axis: "rate", levels: &["10x"], test: &MORE },
        opposite: Some(Test::Any { axis: "rate", surer: false, test: &LESS }),
    };
    let of = |three: f64, one: f64| {
        let loss = |_: &str, bits: &str, _: u64| match bits {
            "3" => three,
            "1" => one,
            _ => 2.0,
        };
        verdict(CLAIM, loss).word()
    };
    assert_eq!((of(2.0, 3.0), of(3.0, 2.0)), (REPRODUCED, CONTRADICTED));
    assert_eq!((of(3.0, 3.0), of(2.0, 2.5)), (NOT, NOT), "both, and none");
}

#[test]
fn counts_are_judged_by_their_own_tests() {
    const SPIKES: Claim = Claim::new(Test::Spikier { of: &["3", "10x"], over: &["7", "10x"] });
    let of = |made: fn(&str, u64) -> f64| verdict(SPIKES, |_, bits, seed| made(bits, seed)).word();
    assert_eq!(of(|bits, seed| if bits == "3" { seed as f64 } else { 0.0 }), REPRODUCED);
    assert_eq!(of(|bits, _| f64::from(u8::from(bits == "7"))), CONTRADICTED);
    let one = |bits: &str, seed: u64| f64::from(u8::from(bits == "3" && seed == 1));
    assert_eq!(of(one), NOT, "one seed is no evidence");
    const FAILS: Claim = Claim::new(Test::Any {
        axis: "rate",
        surer: true,
        test: &Test::FailsMore { of: &["3"], over: &["7"] },
    });
    let fails = |all: &'static str| {
        move |rate: &str, bits: &str, _: u64| f64::from(u8::from(rate == "10x" && bits == all))
    };
    let found = verdict(FAILS, fails("3"));
    assert_eq!(found.word(), REPRODUCED);
    let text = "10x: 5 of 5 fail in 3, 0 of 5 in 7 (one-sided p 0.0040)";
    assert!(found.reason().ends_with(text), "{}", found.reason());
    assert_eq!(verdict(FAILS, fails("7")).word(), CONTRADICTED);
    let two = |_: &str, bits: &str, seed: u64| f64::from(u8::from(bits == "3" && seed < 3));
    assert_eq!(verdict(FAILS, two).word(), NOT);
}

#[test]
fn the_criterion_is_a_sentence() {
    const ANY: Test = Test::Any { axis: "rate", surer: true, test: &COSTS };
    assert_eq!(
        Claim::new(ANY).criterion(),
        "Reproduced where at one rate at least, 1 ends above 7 (interval of the paired difference \
         above 0, surer as one of all rates is enough); contradicted where at one rate at least, 1 \
         ends below 7 (interval of the paired difference below 0, surer as one of all rates is \
         enough)."
    );
    const REMEDY: Claim =
        Claim::new(Test::All(&[COSTS, Test::OneBelow { of: &["3", "7"], over: &["1"] }]));
    assert_eq!(
        REMEDY.criterion(),
        "Reproduced where 1 ends above 7 (interval of the paired difference above 0), and one of 3, \
         7 ends below 1 (interval of the paired difference below 0, at 97.5 % as there are 2); \
         contradicted where 1 ends below 7 (interval of the paired difference below 0)."
    );
}

#[test]
fn smooth_is_without_spikes() {
    let of = |diverged: u64, spiked: u64| {
        let setting = Setting::unread(StudyScale::Smoke);
        let made = |_: &GridPoint, seed: u64, metric: Metric| {
            let count = if metric == Metric::Diverged { diverged } else { spiked };
            f64::from(u8::from(seed <= count))
        };
        let results = Results::made(&setting, &GRID, &made);
        Claim::new(Test::Smooth).findings(&results).unwrap().verdict
    };
    assert_eq!(
        [of(0, 0), of(0, 1), of(1, 1)].map(|found| found.word()),
        [REPRODUCED, NOT, CONTRADICTED]
    );
    assert_eq!(of(0, 0).reason(), "of 30 runs 0 diverge and 0 have spikes");
}
