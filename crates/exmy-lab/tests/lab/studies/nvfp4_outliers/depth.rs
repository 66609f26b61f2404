use exmy_lab::studies::nvfp4_outliers::depth::ratio;

#[test]
fn the_last_quarter_over_the_rest() {
    assert_eq!(ratio(&[1.0, 1.0, 1.0, 3.0]), 3.0);
    assert_eq!(ratio(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 3.0, 3.0]), 2.0);
    assert_eq!(ratio(&[2.0, 1.0]), 0.5);
    assert!(ratio(&[-1.0, -2.0]).is_nan(), "twice as flat is no outlier");
}
