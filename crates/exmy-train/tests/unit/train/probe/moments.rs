use exmy::slice::View;
use exmy_train::train::probe::moments::{Powers, brief, column_maxima, elements, quantile, sorted};

#[test]
fn by_hand() {
    // 1, 2, 3, 6: mean 3, differences -2, -1, 0, 3, squares 14, fourth powers 98.
    let some = Powers::of([1.0, 2.0, 3.0, 6.0]);
    assert_eq!((some.mean(), some.variance()), (3.0, 3.5));
    assert!((some.excess_kurtosis() - (24.5 / 12.25 - 3.0)).abs() < 1e-12);
    let halves = Powers::of([1.0, 2.0]).and(&Powers::of([3.0, 6.0]));
    assert_eq!(halves, some);
    assert!(Powers::of([0.3; 7]).excess_kurtosis().is_nan());
    // Two values, equally often: -2; one of n: n - 2 + 1 / (n - 1) - 3.
    assert!((Powers::of([-1.0, 1.0]).excess_kurtosis() + 2.0).abs() < 1e-12);
    let spike = Powers::of((0..100).map(|i| f64::from(i / 99)));
    assert!((spike.excess_kurtosis() - (98.0 + 1.0 / 99.0 - 3.0)).abs() < 1e-9);
}

#[test]
fn quantiles_are_elements() {
    let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
    assert_eq!(
        [0.0, 0.5, 0.99, 0.999, 1.0].map(|q| quantile(&hundred, q)),
        [1.0, 50.0, 99.0, 100.0, 100.0]
    );
    assert!(quantile(&[], 0.5).is_nan());
    assert_eq!(sorted(vec![3.0, -1.0, 2.0]), [-1.0, 2.0, 3.0]);
    assert_eq!([123.456, 0.0, -0.000_123_49].map(brief), [123.5, 0.0, -0.000_123_5]);
}

#[test]
fn columns() {
    let x = View::new(&[1.0_f32, -5.0, 0.0, -2.0, 3.0, 0.0], 2, 3);
    assert_eq!(column_maxima(x), [2.0, 5.0, 0.0]);
    assert_eq!(elements(x.t()).collect::<Vec<_>>(), [1.0, -2.0, -5.0, 3.0, 0.0, 0.0]);
}
