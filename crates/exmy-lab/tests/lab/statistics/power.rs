use exmy_lab::statistics::power::{fisher_power, interval_power};

/// G*Power 3.1, means of pairs, two-sided at 5 %.
#[test]
fn powers_of_a_reference() {
    for (effect, n, power) in [(0.5, 20, 0.5645), (0.5, 34, 0.8078), (0.8, 15, 0.8213)] {
        let found = interval_power(effect, 1.0, n, 0.95).unwrap();
        assert!((found - power).abs() < 5e-4, "{effect}, {n}: {found}");
    }
}

#[test]
fn no_effect_is_seen_at_the_level() {
    assert!((interval_power(0.0, 2.0, 6, 0.9).unwrap() - 0.05).abs() < 1e-4);
    assert_eq!(interval_power(1.0, 1.0, 1, 0.95), None);
    assert_eq!(interval_power(1.0, f64::NAN, 5, 0.95), None);
    assert!(fisher_power((0.3, 10), (0.3, 10), 0.05) < 0.05);
}
