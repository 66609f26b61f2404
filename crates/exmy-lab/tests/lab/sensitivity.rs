use exmy_lab::sensitivity::{Rate, sensitivity, stable};

fn rate(lr: f64, losses: &[f64], diverged: usize) -> Rate {
    Rate { lr, losses: losses.to_vec(), diverged }
}

#[test]
fn sensitivity_by_hand() {
    // Means, cut to 4: 3, 2, 3.25, 4; less 2: 1, 0, 1.25, 2.
    let rates = [
        rate(1e-4, &[3.5, 2.5], 0),
        rate(1e-3, &[2.0, 2.0], 0),
        rate(1e-2, &[2.5, 1e9], 1),
        rate(1e-1, &[f64::NAN, f64::NAN], 2),
    ];
    let found = sensitivity(&rates, 4.0).unwrap();
    assert_eq!((found.s, found.best_lr, found.best), (4.25 / 4.0, 1e-3, 2.0));
    // A flat curve is insensitive, a single rate, too.
    assert_eq!(sensitivity(&[rate(1.0, &[2.0], 0), rate(2.0, &[2.0], 0)], 9.0).unwrap().s, 0.0);
    assert_eq!(sensitivity(&rates[..1], 4.0).unwrap().s, 0.0);
    // Nothing is above the start: every rate diverged.
    assert_eq!(sensitivity(&rates[3..], 4.0).unwrap().best, 4.0);
}

#[test]
fn what_is_no_grid_has_no_sensitivity() {
    let one = |lr| rate(lr, &[2.0], 0);
    for rates in [
        vec![],
        vec![one(1.0), one(1.0)],
        vec![one(2.0), one(1.0)],
        vec![one(0.0)],
        vec![one(f64::NAN)],
        vec![rate(1.0, &[], 0)],
    ] {
        assert_eq!(sensitivity(&rates, 4.0), None);
        assert_eq!(stable(&rates, 0.1), None);
    }
    assert_eq!(sensitivity(&[one(1.0)], f64::NAN), None);
}

#[test]
fn the_interval_is_about_the_best() {
    let grid = |losses: &[f64]| -> Vec<Rate> {
        let lr = |i: usize| [3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1][i];
        losses.iter().enumerate().map(|(i, &loss)| rate(lr(i), &[loss], 0)).collect()
    };
    let found = stable(&grid(&[2.5, 2.05, 2.0, 2.09, 2.11, 2.05, 2.0]), 0.1).unwrap();
    assert_eq!((found.low, found.high), (1e-3, 1e-2));
    assert!((found.decades - 1.0).abs() < 1e-12);
    assert!(!found.open_below && !found.open_above);
    let all = stable(&grid(&[2.0; 7]), 0.1).unwrap();
    assert!((all.decades - 3.0).abs() < 1e-12 && all.open_below && all.open_above);
    let single = stable(&grid(&[2.5, 2.0, 2.5]), 0.1).unwrap();
    assert_eq!((single.low, single.high, single.decades), (1e-3, 1e-3, 0.0));
    // A diverged seed or one without a loss ends it.
    let mut broken = grid(&[2.0, 2.0, 2.0, 2.0]);
    broken[2].diverged = 1;
    assert_eq!(stable(&broken, 0.1).unwrap().high, 1e-3);
    broken[1].losses.push(f64::NAN);
    assert_eq!(stable(&broken, 0.1).unwrap().high, 3e-4);
    broken.iter_mut().for_each(|rate| rate.diverged = 1);
    assert_eq!(stable(&broken, 0.1), None);
}
