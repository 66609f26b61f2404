use exmy_train::nn::rope::{rotate, tables};
use exmy_train::nn::stopwatch::Way;

/// Position 1, head of 4, base 10000: pairs (0, 2) by 1 rad, (1, 3) by 0.01 rad.
/// cos 1 = 0.5403023058681398, sin 1 = 0.8414709848078965, cos .01 = 0.9999500004166653,
/// sin .01 = 0.009999833334166664. Position 0 does not turn; values behind the heads stay.
#[test]
fn pairs_are_half_a_head_apart() {
    let [cos, sin] = tables::<f64>(2, 4, 10_000.0);
    let mut x = [1.0, 2.0, 3.0, 4.0, 7.0, 1.0, 2.0, 3.0, 4.0, 7.0];
    rotate(&mut x, [5, 1, 2], 2, [&cos, &sin], Way::Forward);
    assert_eq!(x[..5], [1.0, 2.0, 3.0, 4.0, 7.0]);
    let expected = [
        0.540_302_305_868_139_8 - 3.0 * 0.841_470_984_807_896_5,
        2.0 * 0.999_950_000_416_665_3 - 4.0 * 0.009_999_833_334_166_664,
        3.0 * 0.540_302_305_868_139_8 + 0.841_470_984_807_896_5,
        4.0 * 0.999_950_000_416_665_3 + 2.0 * 0.009_999_833_334_166_664,
        7.0,
    ];
    for (got, expected) in x[5..].iter().zip(expected) {
        assert!((got - expected).abs() < 1e-14, "{got} {expected}");
    }
    rotate(&mut x, [5, 1, 2], 2, [&cos, &sin], Way::Backward);
    for (got, expected) in x[5..].iter().zip([1.0, 2.0, 3.0, 4.0, 7.0]) {
        assert!((got - expected).abs() < 1e-14);
    }
}

/// What makes it a position code: a rotated query times a rotated key depends on the
/// distance of their positions only.
#[test]
fn products_depend_on_distance() {
    let [cos, sin] = tables::<f64>(40, 6, 10_000.0);
    let product = |position: usize, distance: usize| {
        let mut x = vec![0.0; 40 * 6];
        let query = [0.3, -1.0, 0.7, 0.2, 0.9, -0.4];
        let key = [1.1, 0.5, -0.6, 0.8, -0.1, 0.35];
        x[position * 6..][..6].copy_from_slice(&key);
        x[(position + distance) * 6..][..6].copy_from_slice(&query);
        rotate(&mut x, [6, 1, 3], 40, [&cos, &sin], Way::Forward);
        let (key, query) = (&x[position * 6..][..6], &x[(position + distance) * 6..][..6]);
        key.iter().zip(query).map(|(k, q)| k * q).sum::<f64>()
    };
    assert!((product(0, 5) - product(30, 5)).abs() < 1e-13);
    assert!((product(0, 5) - product(0, 6)).abs() > 1e-3);
}
