use exmy_lab::plot::series::smooth;

#[test]
fn smoothing_is_the_weighted_mean() {
    // Weights at a horizon of 2: (1), (1 2)/3, (1 2 4)/7.
    assert_eq!(smooth(&[4.0, 1.0, 7.0], |_| 2.0), [4.0, 2.0, (4.0 + 2.0 + 28.0) / 7.0]);
    assert_eq!(smooth(&[3.0, 1.0, 2.0], |_| 1.0), [3.0, 1.0, 2.0]);
    assert!(smooth(&[], |_| 9.0).is_empty());
    for value in smooth(&[5.0; 100], |i| 1.0 + i as f64 / 3.0) {
        assert!((value - 5.0).abs() < 1e-14);
    }
}

#[test]
fn smoothing_hands_gaps_through() {
    let smoothed = smooth(&[4.0, f64::NAN, 1.0, f64::INFINITY], |_| 2.0);
    assert_eq!((smoothed[0], smoothed[2], smoothed[3]), (4.0, 2.0, f64::INFINITY));
    assert!(smoothed[1].is_nan());
}

#[test]
#[should_panic(expected = "an average over 0.5 values")]
fn an_average_takes_at_least_one_value() {
    let _ = smooth(&[1.0], |_| 0.5);
}
