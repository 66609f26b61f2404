use exmy_lab::finding::{Power, Verdict};
use exmy_lab::test_result::{TestResult, all, any, concluded, every, verdict};

/// Whether it holds, and whether its opposite does.
fn sides(result: &TestResult) -> (bool, bool) {
    (result.holds, result.opposite)
}

const HOLDS: (bool, bool) = (true, false);
const OPPOSITE: (bool, bool) = (false, true);
const NEITHER: (bool, bool) = (false, false);

/// A claim whose parts say different things is judged as a whole and part by part.
#[test]
fn parts_are_judged_one_by_one() {
    let part = |holds, opposite, power| TestResult {
        opposite,
        power,
        ..TestResult::either(holds, "x".into())
    };
    let seen = part(false, false, Power::Share(0.9));
    let inner = all(&[part(true, false, Power::UNSTATED), seen]);
    let whole =
        every(&[inner, part(false, true, Power::UNSTATED), part(false, false, Power::UNSTATED)]);
    let words =
        |result: &TestResult| -> Vec<&str> { result.judged().iter().map(Verdict::word).collect() };
    let untested = "untested at this size";
    assert_eq!(words(&whole), ["reproduced", "not seen at this scale", "contradicted", untested]);
    assert_eq!(
        words(&whole.negated())[..3],
        ["contradicted", "not seen at this scale", "reproduced"]
    );
    assert!(words(&any(&[part(true, false, Power::UNSTATED)])).is_empty());
    let found = concluded(&[part(true, false, Power::UNSTATED)], Vec::new());
    assert_eq!((found.verdict.word(), found.judged.len()), ("reproduced", 1));
}

fn word(claims: &[TestResult]) -> &'static str {
    verdict(claims).word()
}

#[test]
fn orderings_are_judged_by_the_paired_interval() {
    let (low, high) = ([0.5, 0.6, 0.4, 0.5, 0.55], [0.9, 1.1, 0.8, 1.0, 0.9]);
    let noisy = [0.1, 1.2, 0.4, 0.9, 0.2];
    let below = |a: &[f64], b: &[f64]| TestResult::below(("a", a), ("b", b), " %");
    assert_eq!(word(&[below(&low, &high)]), "reproduced");
    assert_eq!(word(&[below(&high, &low)]), "contradicted");
    assert_eq!(word(&[below(&low, &noisy)]), "not seen at this scale");
    assert_eq!(word(&[below(&low[..1], &high[..1])]), "untested at this size");
    assert_eq!(word(&[below(&low, &high), below(&low, &noisy)]), "not seen at this scale");
    assert_eq!(word(&[below(&low, &high), below(&high, &low)]), "contradicted");
    assert_eq!(word(&[]), "untested at this size");
    // A run that diverged has no gap to take the mean of.
    assert!(!below(&[f64::INFINITY, 1.0], &[1.0, 2.0]).known);
    assert!(below(&low, &high).text.contains("a minus b: -0.430"), "{}", below(&low, &high).text);
}

#[test]
fn bounds_and_trends_are_judged() {
    let values = [0.8, 0.82, 0.79];
    assert_eq!(sides(&TestResult::above("x", &values, 0.7, "")), HOLDS);
    assert_eq!(sides(&TestResult::above("x", &values, 0.9, "")), OPPOSITE);
    assert_eq!(sides(&TestResult::above("x", &values, 0.8, "")), NEITHER);
    assert_eq!(sides(&TestResult::under("x", &values, 0.9, "")), HOLDS);
    let rise = |sign: f64| (0..9).map(|i| (f64::from(i), sign * f64::from(i * i))).collect();
    let flat: Vec<(f64, f64)> = (0..9).map(|i| (f64::from(i), f64::from(i % 2))).collect();
    let of = |series: &[Vec<(f64, f64)>]| sides(&TestResult::rising("x", series));
    assert_eq!(of(&[rise(1.0), rise(2.0)]), HOLDS);
    assert_eq!(of(&[rise(-1.0), rise(-2.0)]), OPPOSITE);
    assert_eq!(of(&[rise(1.0), flat]), NEITHER);
    assert_eq!(of(&[]), NEITHER);
    assert_eq!(sides(&TestResult::rising("x", &[rise(1.0)]).negated()), OPPOSITE);
}

/// Of parts that must all be seen, one whose power is known to be too low says that the whole is untested, in
/// whatever order; one of which no size is stated does not hide it.
#[test]
fn a_part_with_too_little_power_leaves_the_whole_untested() {
    let part = |power| TestResult { power, ..TestResult::either(false, "x".into()) };
    let of = |powers: [Power; 2]| all(&powers.map(part)).power;
    let (low, high, none) = (Power::Share(0.14), Power::Share(0.9), Power::UNSTATED);
    for (powers, joint) in [
        ([low, none], low),
        ([none, low], low),
        ([low, high], low),
        ([high, none], none),
        ([none, high], none),
    ] {
        assert_eq!(of(powers), joint, "{powers:?}");
    }
}
