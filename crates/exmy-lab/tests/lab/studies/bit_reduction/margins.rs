use exmy_lab::studies::bit_reduction::margins::Margin;

/// A model whose losses are 2 within so many rates of the best, and 4 elsewhere, with a little scatter
/// over seeds.
fn margin(wide: i32) -> Margin {
    let loss = |at: i32, seed: f64| {
        (if (at - 2).abs() <= wide { 2.0 } else { 4.0 }) + 0.01 * seed * f64::from(at)
    };
    let rate = |at: i32| (libm::exp10(f64::from(at)), vec![loss(at, 0.0), loss(at, 1.0)]);
    Margin::of(&(0..5).map(rate).collect::<Vec<_>>(), 5.5)
}

#[test]
fn fewer_rates_that_work_are_told() {
    // Two of five rates lose 2 nats, and all are a little above the best.
    let of = margin(1);
    assert_eq!((of.each[0], of.decades()), (0.8, 2.0));
    assert_eq!(margin(2).decades(), 4.0);
}
