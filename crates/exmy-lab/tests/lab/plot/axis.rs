use exmy_lab::plot::axis::{Axis, Scale};
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

fn labels(low: f64, high: f64, target: usize, log: bool) -> (Vec<String>, i32) {
    let ticks = Scale { low, high, log }.ticks(target);
    (ticks.ticks.into_iter().filter_map(|tick| tick.label).collect(), ticks.factor)
}

#[test]
fn linear_ticks_stand_at_one_two_five() {
    let cases: &[(f64, f64, usize, &[&str], i32)] = &[
        (0.0, 1.0, 5, &["0", "0.2", "0.4", "0.6", "0.8", "1.0"], 0),
        (0.0, 600.0, 6, &["0", "100", "200", "300", "400", "500", "600"], 0),
        (1.8, 5.6, 5, &["2", "3", "4", "5"], 0),
        (1.9, 1.95, 5, &["1.90", "1.91", "1.92", "1.93", "1.94", "1.95"], 0),
        (-0.5, 3.2, 4, &["0", "1", "2", "3"], 0),
        (-1.0, 1.0, 4, &["−1.0", "−0.5", "0", "0.5", "1.0"], 0),
        (0.0, 0.7, 7, &["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7"], 0),
        (0.0, 100_000.0, 4, &["0", "50\u{202f}000", "100\u{202f}000"], 0),
        (0.0, 2e6, 4, &["0", "0.5", "1.0", "1.5", "2.0"], 6),
        (0.0, 4e-7, 4, &["0", "100", "200", "300", "400"], -9),
        (1e15, 5e15, 4, &["1", "2", "3", "4", "5"], 15),
        (-f64::MAX, f64::MAX, 4, &["−150", "−100", "−50", "0", "50", "100", "150"], 306),
        (0.0, 1e-300, 2, &["0", "0.5", "1.0"], -300),
    ];
    for &(low, high, target, expected, factor) in cases {
        let (found, found_factor) = labels(low, high, target, false);
        assert_eq!(
            (found, found_factor),
            (expected.iter().map(|s| s.to_string()).collect(), factor),
            "{low}..{high}"
        );
    }
}

#[test]
fn counts_have_no_halves() {
    let labels = |axis: &Axis, high: f64| {
        let scale = Scale { low: 3.0, high, log: false };
        let ticks = axis.ticks(&scale, 5).ticks;
        ticks.into_iter().filter_map(|tick| tick.label).collect::<Vec<_>>()
    };
    assert_eq!(labels(&Axis::linear(""), 5.0), ["3.0", "3.5", "4.0", "4.5", "5.0"]);
    assert_eq!(labels(&Axis::whole(""), 5.0), ["3", "4", "5"]);
    assert_eq!(labels(&Axis::whole(""), 3.5), ["3"]);
    assert_eq!(labels(&Axis::whole(""), 43.0), ["10", "20", "30", "40"]);
}

#[test]
fn log_ticks_stand_at_decades_and_thin_out() {
    let cases: &[(f64, f64, usize, &[&str])] = &[
        (1.0, 1000.0, 4, &["1", "10", "100", "1000"]),
        (1.0, 100.0, 6, &["1", "2", "5", "10", "20", "50", "100"]),
        (0.001, 1.0, 7, &["0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1"]),
        (1e-9, 1e-3, 3, &["10⁻⁸", "10⁻⁶", "10⁻⁴"]),
        (1e-6, 1e-4, 6, &["10⁻⁶", "2×10⁻⁶", "5×10⁻⁶", "10⁻⁵", "2×10⁻⁵", "5×10⁻⁵", "10⁻⁴"]),
        (2.0, 6.0, 4, &["2", "3", "4", "5", "6"]),
        // Even steps of 5 would begin above the middle.
        (1.2, 11.0, 4, &["1.5", "2", "3", "5", "7", "10"]),
        (0.012, 0.11, 4, &["0.015", "0.02", "0.03", "0.05", "0.07", "0.1"]),
        (f64::from_bits(1), f64::MAX, 4, &["10⁻³¹⁶", "10⁻¹⁵⁸", "10⁰", "10¹⁵⁸"]),
    ];
    for &(low, high, target, expected) in cases {
        assert_eq!(labels(low, high, target, true).0, expected, "{low}..{high}");
    }
    // Between the decades: grid lines without text.
    let ticks = Scale { low: 1.0, high: 1000.0, log: true }.ticks(4);
    let silent: Vec<f64> =
        ticks.ticks.iter().filter(|t| t.label.is_none()).map(|t| t.value).collect();
    assert_eq!(silent[..9], [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 20.0]);
}

#[test]
fn fitted_ranges_are_never_empty() {
    for log in [false, true] {
        let axis = if log { Axis::log("") } else { Axis::linear("") };
        let data = [
            vec![],
            vec![f64::NAN, f64::INFINITY],
            vec![0.0],
            vec![-3.0],
            vec![7.0, 7.0],
            vec![1e-310, 2e-310],
            vec![f64::MIN_POSITIVE],
            vec![f64::from_bits(1)],
            vec![f64::MAX],
            vec![-f64::MAX, f64::MAX],
            vec![1e12, 1e12 + 1e-3],
            vec![5e-324, 1e308],
        ];
        for values in data {
            let scale = axis.fit(values.iter().copied(), [0.04; 2]);
            assert!(scale.low < scale.high && scale.low.is_finite() && scale.high.is_finite());
            let ticks = scale.ticks(5).ticks;
            assert!((1..=40).contains(&ticks.len()), "{values:?}: {} ticks", ticks.len());
            for tick in ticks {
                assert!((-1e-6..=1.0 + 1e-6).contains(&scale.unit(tick.value)), "{values:?}");
            }
        }
    }
    assert_eq!(
        Axis::linear("").fit([7.0].into_iter(), [0.0; 2]),
        Scale { low: 6.65, high: 7.35, log: false }
    );
    let fixed = Axis::log("").range(1.0, 2.0).fit([50.0].into_iter(), [0.1; 2]);
    assert_eq!(fixed, Scale { low: 1.0, high: 2.0, log: true });
    assert_eq!(
        Axis::linear("").include(0.0).fit([4.0].into_iter(), [0.25, 0.5]),
        Scale { low: -1.0, high: 6.0, log: false }
    );
}

#[test]
fn categories_stand_at_whole_numbers() {
    let axis = Axis::categories("recipe", ["f32", "bf16", "e4m3", "e2m1", "e3m2"]);
    let scale = axis.fit([99.0].into_iter(), [0.5; 2]);
    assert_eq!((scale.low, scale.high), (-0.5, 4.5));
    let labels = |target: usize| -> Vec<Option<String>> {
        axis.ticks(&scale, target).ticks.into_iter().map(|tick| tick.label).collect()
    };
    assert_eq!(labels(5), ["f32", "bf16", "e4m3", "e2m1", "e3m2"].map(|s| Some(s.to_string())));
    let some = |text: &str| Some(text.to_string());
    assert_eq!(labels(4), [some("f32"), None, some("e4m3"), None, some("e3m2")]);
    assert_eq!(["bf16", "bf16", "7", "-1"], [1.4, 0.6, 7.0, -1.0].map(|at| axis.name(at)));
    let part = axis.clone().range(0.5, 2.5);
    let shown = part.ticks(&part.fit([].into_iter(), [0.0; 2]), 5);
    assert_eq!(shown.ticks.iter().map(|tick| tick.value).collect::<Vec<_>>(), [1.0, 2.0]);
    let none = Axis::categories("", [""; 0]);
    assert!(!none.is_categorical() && none.range == Some((-0.5, 0.5)));
}

#[test]
#[should_panic(expected = "axis `lr`: cannot show 0..=1")]
fn a_log_axis_has_no_zero() {
    let _ = Axis::log("lr").range(0.0, 1.0);
}
