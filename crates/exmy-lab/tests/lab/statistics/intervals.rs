use exmy_lab::statistics::intervals::{mean, mean_interval, median, paired_interval, sd};

#[test]
fn means_and_spreads_by_hand() {
    assert_eq!((mean(&[1.0, 2.0, 6.0]), mean(&[])), (Some(3.0), None));
    assert_eq!((sd(&[1.0, 3.0, 5.0]), sd(&[1.0])), (Some(2.0), None));
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, f64::INFINITY]), Some(3.0));
    assert_eq!((median(&[]), median(&[f64::NAN])), (None, None));
}

/// Student's own example: the gains in sleep of ten patients under two drugs, whose mean paired
/// difference is 1.58 with an interval of 0.70 to 2.46.
#[test]
fn students_sleep() {
    let a = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
    let b = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
    let found = paired_interval(&a, &b, 0.95).unwrap();
    assert!((found.estimate - 1.58).abs() < 1e-12);
    assert!((found.low - 0.700_114_2).abs() < 1e-6, "{found:?}");
    assert!((found.high - 2.459_885_8).abs() < 1e-6, "{found:?}");
    assert!(found.excludes(0.0) && !found.excludes(1.0) && found.excludes(2.5));
    let wide = paired_interval(&a, &b, 0.999).unwrap();
    assert!(!wide.excludes(0.0));
}

#[test]
fn what_is_no_number_has_no_interval() {
    for values in [&[][..], &[1.0], &[1.0, f64::NAN, 2.0], &[1.0, f64::INFINITY]] {
        assert_eq!(mean_interval(values, 0.95), None);
    }
    for confidence in [0.0 - 1.0, 1.0, f64::NAN] {
        assert_eq!(mean_interval(&[1.0, 2.0], confidence), None);
    }
    let same = mean_interval(&[2.0, 2.0, 2.0], 0.95).unwrap();
    assert_eq!((same.low, same.high), (2.0, 2.0));
}

#[test]
#[should_panic(expected = "not paired")]
fn pairs_have_two_members() {
    let _ = paired_interval(&[1.0], &[], 0.95);
}
