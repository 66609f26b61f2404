use exmy_train::train::running_median::RunningMedian;

#[test]
fn the_median_of_the_last_values() {
    let mut values = RunningMedian::new(4);
    assert_eq!(values.median(), None);
    for (value, median) in [
        (9.0, None),
        (1.0, None),
        (2.0, None),
        (4.0, Some(3.0)),
        (8.0, Some(3.0)),
        (8.0, Some(6.0)),
    ] {
        values.push(value);
        assert_eq!(values.median(), median, "after {value}");
    }
    assert_eq!(values.ratio(12.0), Some(2.0));
    let mut odd = RunningMedian::new(3);
    [5.0, 1.0, 3.0, 7.0].into_iter().for_each(|value| odd.push(value));
    assert_eq!(odd.median(), Some(3.0));
}

#[test]
fn no_median_before_ten_values() {
    let mut values = RunningMedian::new(50);
    (0..9).for_each(|_| values.push(2.0));
    assert_eq!(values.ratio(4.0), None);
    values.push(2.0);
    assert_eq!(values.ratio(4.0), Some(2.0));
}
