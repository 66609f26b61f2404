use exmy_lab::series::late;

#[test]
fn the_last_part_is_by_steps() {
    let series = [(100.0, 1.0), (200.0, 5.0), (300.0, 7.0)];
    assert_eq!(late(&series, 2.0 / 3.0), 6.0);
    assert_eq!(late(&series, 0.0), 13.0 / 3.0);
    assert!(late(&[], 0.5).is_nan());
}
