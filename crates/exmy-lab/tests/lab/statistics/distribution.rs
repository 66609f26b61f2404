use exmy_lab::statistics::distribution::{
    incomplete_beta, normal_quantile, normal_tail, t_quantile,
};

/// Abramowitz and Stegun, table 26.10, and closed forms: tan for one degree of freedom,
/// `t = (1 - 2q) sqrt(2 / (4 q (1 - q)))` for two.
#[test]
fn quantiles_of_t_are_those_of_the_tables() {
    for (tail, df, expected) in [
        (0.025, 1.0, 12.706_204_736),
        (0.025, 2.0, 4.302_652_730),
        (0.025, 3.0, 3.182_446_305),
        (0.025, 4.0, 2.776_445_105),
        (0.025, 9.0, 2.262_157_163),
        (0.025, 17.0, 2.109_815_578),
        (0.025, 30.0, 2.042_272_456),
        (0.005, 4.0, 4.604_094_871),
        (0.05, 10.0, 1.812_461_123),
        (0.0005, 5.0, 6.868_826_626),
    ] {
        let found = t_quantile(tail, df);
        assert!((found - expected).abs() < 1e-6, "{tail} {df}: {found}");
        assert_eq!(t_quantile(1.0 - tail, df), -t_quantile(1.0 - (1.0 - tail), df));
    }
    let q: f64 = 0.01;
    let two = (1.0 - 2.0 * q) * (2.0 / (4.0 * q * (1.0 - q))).sqrt();
    assert!((t_quantile(q, 2.0) - two).abs() < 1e-10);
    assert!((t_quantile(0.025, 1e6) - normal_quantile(0.025)).abs() < 1e-5);
    for bad in [t_quantile(0.0, 3.0), t_quantile(0.5, 0.0), normal_quantile(f64::NAN)] {
        assert!(bad.is_nan());
    }
    assert!(t_quantile(0.5, 3.0).abs() < 1e-300);
}

#[test]
fn normal_values_are_those_of_the_tables() {
    for (z, tail) in [(0.0, 0.5), (1.0, 0.158_655_254), (-2.0, 0.977_249_868)] {
        assert!((normal_tail(z) - tail).abs() < 1e-9);
    }
    assert!((normal_quantile(0.005) - 2.575_829_304).abs() < 1e-9);
}

/// For whole parameters `I_x(a, b)` is the chance of at least `a` successes in `a + b - 1`.
#[test]
fn the_incomplete_beta_is_a_binomial_tail() {
    let choose = |n: u32, k: u32| (0..k).fold(1.0, |c, i| c * f64::from(n - i) / f64::from(i + 1));
    let power = |x: f64, n: u32| (0..n).fold(1.0, |p, _| p * x);
    for (a, b) in [(1, 1), (2, 3), (5, 2), (9, 12)] {
        let n = a + b - 1;
        for x in [0.01, 0.3, 0.5, 0.77, 0.999] {
            let sum: f64 =
                (a..=n).map(|k| choose(n, k) * power(x, k) * power(1.0 - x, n - k)).sum();
            let found = incomplete_beta(f64::from(a), f64::from(b), x);
            assert!((found / sum - 1.0).abs() < 1e-12, "{a} {b} {x}: {found} {sum}");
        }
    }
    assert_eq!(incomplete_beta(2.0, 2.0, 0.0), 0.0);
    assert!(incomplete_beta(2.0, 2.0, 1.5).is_nan() && incomplete_beta(0.0, 1.0, 0.5).is_nan());
}
