use exmy_train::nn::rope::{Scaling, frequencies, rotate, tables};
use exmy_train::nn::stopwatch::Direction;

/// Position 1, head of 4, base 10000: pairs (0, 2) by 1 rad, (1, 3) by 0.01 rad.
/// cos 1 = 0.5403023058681398, sin 1 = 0.8414709848078965, cos .01 = 0.9999500004166653,
/// sin .01 = 0.009999833334166664. Position 0 does not turn; values behind the heads stay.
#[test]
fn pairs_are_half_a_head_apart() {
    let [cos, sin] = tables::<f64>(2, &frequencies(4, 10_000.0, Scaling::None));
    let mut x = [1.0, 2.0, 3.0, 4.0, 7.0, 1.0, 2.0, 3.0, 4.0, 7.0];
    rotate(&mut x, [5, 1, 2], 2, [&cos, &sin], Direction::Forward);
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
    rotate(&mut x, [5, 1, 2], 2, [&cos, &sin], Direction::Backward);
    for (got, expected) in x[5..].iter().zip([1.0, 2.0, 3.0, 4.0, 7.0]) {
        assert!((got - expected).abs() < 1e-14);
    }
}

/// What makes it a position code: a rotated query times a rotated key depends on the
/// distance of their positions only.
#[test]
fn products_depend_on_distance() {
    let [cos, sin] = tables::<f64>(40, &frequencies(6, 10_000.0, Scaling::None));
    let product = |position: usize, distance: usize| {
        let mut x = vec![0.0; 40 * 6];
        let query = [0.3, -1.0, 0.7, 0.2, 0.9, -0.4];
        let key = [1.1, 0.5, -0.6, 0.8, -0.1, 0.35];
        x[position * 6..][..6].copy_from_slice(&key);
        x[(position + distance) * 6..][..6].copy_from_slice(&query);
        rotate(&mut x, [6, 1, 3], 40, [&cos, &sin], Direction::Forward);
        let (key, query) = (&x[position * 6..][..6], &x[(position + distance) * 6..][..6]);
        key.iter().zip(query).map(|(k, q)| k * q).sum::<f64>()
    };
    assert!((product(0, 5) - product(30, 5)).abs() < 1e-13);
    assert!((product(0, 5) - product(0, 6)).abs() > 1e-3);
}

/// Llama 3.1's own code (`apply_scaling` of its reference implementation) on its own numbers: head 128, base
/// 500000, factor 8, original context 8192. Pairs that turn at least 4 times in that context stay (wavelength
/// below 2048), those that turn less than once (above 8192) are 8 times as slow, one in between is a mean.
#[test]
fn llama3_slows_down_what_turns_slowly() {
    let scaling = Scaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, context: 8192.0 };
    let plain = frequencies(128, 5e5, Scaling::None);
    let slowed = frequencies(128, 5e5, scaling);
    let wavelength = |frequency: f64| 2.0 * core::f64::consts::PI / frequency;
    for (plain, slowed) in plain.iter().zip(&slowed) {
        let by = match wavelength(*plain) {
            ..2048.0 => 1.0,
            8192.0.. => 8.0,
            long => {
                let smooth = (8192.0 / long - 1.0) / (4.0 - 1.0);
                1.0 / ((1.0 - smooth) / 8.0 + smooth)
            }
        };
        assert!((plain / slowed / by - 1.0).abs() < 1e-14, "{plain} {slowed} {by}");
    }
    let count = |test: &dyn Fn(f64) -> bool| {
        slowed.iter().zip(&plain).filter(|(slowed, plain)| test(*plain / *slowed)).count()
    };
    // 500000^(i / 64) 2π is 2048 at i = 28.2 and 8192 at i = 34.98.
    assert_eq!([count(&|by| by == 1.0), count(&|by| (by - 8.0).abs() < 1e-12)], [29, 29]);
    let halved = frequencies(8, 100.0, Scaling::Linear { factor: 2.0 });
    let plain = frequencies(8, 100.0, Scaling::None);
    assert!(plain.iter().zip(halved).all(|(plain, halved)| plain / 2.0 == halved));
}
