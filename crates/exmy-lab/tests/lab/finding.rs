use exmy_lab::finding::{Power, Table, Verdict};
use exmy_lab::statistics::Interval;

#[test]
fn differences_are_judged_by_their_intervals() {
    let word = |low, high| {
        let gap = Interval { estimate: 0.0, low, high };
        Verdict::of_difference(&gap, String::new()).word()
    };
    assert_eq!(word(0.1, 0.2), "reproduced");
    assert_eq!(word(-0.2, -0.1), "contradicted");
    assert_eq!(word(-0.1, 0.2), "not seen at this scale");
}

#[test]
fn what_could_not_be_seen_is_untested() {
    let of = |power| Verdict::NotSeen("p 0.3".into()).with_power(power);
    assert_eq!(of(Power::Share(0.81)).word(), "not seen at this scale");
    assert_eq!(of(Power::Share(0.79)).word(), "untested at this size");
    for (power, why) in [(Power::FewSeeds, "too few"), (Power::UNSTATED, "no size")] {
        assert_eq!(of(power).word(), "untested at this size");
        assert!(of(power).reason().contains(why), "{}", of(power).reason());
    }
    let held = Verdict::Reproduced(String::new());
    assert_eq!(held.clone().with_power(Power::UNSTATED), held);
}

#[test]
fn tables_are_written_for_other_programs() {
    let mut table = Table::new("losses", &["recipe", "loss, nats"]);
    table.row(["mxfp4".into(), "2.5".into()]);
    table.row(["a \"b\"".into(), "-".into()]);
    assert_eq!(table.csv(), "recipe,\"loss, nats\"\nmxfp4,2.5\n\"a \"\"b\"\"\",-\n");
}
