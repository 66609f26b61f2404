use exmy_train::train::schedule::Schedule;

fn rates(schedule: Schedule, steps: u64, warmup: u64) -> Vec<f64> {
    (0..steps + 2).map(|s| schedule.learning_rate(s, steps, warmup, 1.0, 0.2)).collect()
}

#[track_caller]
fn assert_close(got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(expected) {
        assert!((got - expected).abs() < 1e-12, "{got}, not {expected}");
    }
}

/// By hand: 3 steps of warm-up to 1/4, 2/4, 3/4, then the shape, from 8 on the end.
#[test]
fn shapes_by_hand() {
    let constant = [0.25, 0.5, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0];
    assert_close(&rates(Schedule::Constant, 6, 3), &constant);
    // cos(0), cos(pi/4), cos(pi/2), cos(3 pi/4): 0.2 + 0.8 (1 + c) / 2.
    let r = 0.4 * core::f64::consts::FRAC_1_SQRT_2;
    let cosine = [0.25, 0.5, 0.75, 1.0, 0.6 + r, 0.6, 0.6 - r, 0.2, 0.2];
    assert_close(&rates(Schedule::Cosine, 7, 3), &cosine);
    // The last half of 8 steps falls by a quarter of 0.8 each.
    let wsd = Schedule::Wsd { decay_fraction: 0.5 };
    let expected = [0.25, 0.5, 0.75, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2, 0.2];
    assert_close(&rates(wsd, 8, 3), &expected);
}

#[test]
fn short_runs_stay_finite() {
    for schedule in [Schedule::Constant, Schedule::Cosine, "wsd:1".parse().unwrap()] {
        for (steps, warmup) in [(0, 0), (1, 0), (1, 1), (3, 5), (5, 5)] {
            for rate in rates(schedule, steps, warmup) {
                assert!((0.0..=1.0).contains(&rate), "{schedule} {steps} {warmup}: {rate}");
            }
        }
    }
    // A decay of the whole run starts after the warm-up, at the peak.
    assert_eq!(Schedule::Wsd { decay_fraction: 1.0 }.learning_rate(4, 8, 4, 1.0, 0.0), 1.0);
}

#[test]
fn text_forms() {
    for text in ["constant", "cosine", "wsd", "wsd:0.1", "wsd:1"] {
        assert_eq!(text.parse::<Schedule>().unwrap().to_string(), text);
    }
    assert_eq!("wsd:0.2".parse::<Schedule>().unwrap().to_string(), "wsd");
    for text in ["", "cos", "wsd:", "wsd:0", "wsd:1.5", "wsd:NaN", "wsd:x", "WSD"] {
        let error = text.parse::<Schedule>().unwrap_err().to_string();
        assert!(error.contains(&format!("`{text}`")) && error.contains("wsd:F"), "{error}");
    }
}
