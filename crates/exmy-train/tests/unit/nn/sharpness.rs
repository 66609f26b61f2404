use exmy::random::{Philox, Stream};
use exmy_train::nn::sharpness::by_search;

fn spread_logits(vocab: u64, std: f64, stream: u64) -> Vec<f64> {
    let random = Philox::new(stream, Stream::new("logits"));
    let normal = |i: u64| {
        let radius = (-2.0 * libm::log(1.0 - random.uniform(2 * i))).sqrt();
        radius * libm::cos(2.0 * core::f64::consts::PI * random.uniform(2 * i + 1))
    };
    (0..vocab).map(|i| std * normal(i)).collect()
}

/// The exact maximum: the loss is convex, falls with the target's logit and rises with the others.
fn closed(logits: &[f64], targets: &[u32], eps: f64) -> f64 {
    let vocab = logits.len() / targets.len();
    let mean = |vertex: f64| {
        let rows = logits.chunks(vocab).zip(targets).map(|(row, &target)| {
            let sign = |i: usize| if i == target as usize { -vertex } else { vertex };
            let moved: Vec<f64> =
                (0..vocab).map(|i| row[i] + sign(i) * eps * (row[i].abs() + 1.0)).collect();
            libm::log(moved.iter().map(|x| libm::exp(*x)).sum::<f64>()) - moved[target as usize]
        });
        rows.sum::<f64>() / targets.len() as f64
    };
    100.0 * (mean(1.0) - mean(0.0)) / (1.0 + mean(0.0))
}

/// By 30-digit arithmetic from the closed form.
#[test]
fn known_values() {
    for (logits, target, eps, expected) in [
        (&[0.0, 0.0][..], 0, 1e-3, 0.059_091_14),
        (&[2.0, -1.0, 0.5, 3.0], 3, 1e-3, 0.154_694_65),
        (&[2.0, -1.0, 0.5, 3.0], 1, 5e-4, 0.051_401_87),
    ] {
        let found = by_search(logits, &[target], eps, 50).unwrap();
        assert!((found.sharpness - expected).abs() < 1e-6, "{found:?}, not {expected}");
    }
}

#[test]
fn ten_steps_reach_the_maximum_of_256_logits() {
    for (case, std) in [(0, 0.3), (1, 1.0), (2, 3.0), (3, 10.0)] {
        for target in [0, 17, 255] {
            let logits = spread_logits(256, std, case);
            let exact = closed(&logits, &[target], 1e-3);
            let found = by_search(&logits, &[target], 1e-3, 10).unwrap();
            assert!(
                found.sharpness <= exact * (1.0 + 1e-9),
                "std {std}: {} over {exact}",
                found.sharpness
            );
            assert!(
                found.sharpness >= 0.995 * exact,
                "std {std}: {} under {exact}",
                found.sharpness
            );
            assert!(found.iterations <= 10);
        }
    }
}

/// Where the vocabulary is large, ten steps do not: a search is another measure.
#[test]
fn ten_steps_fall_short_of_32_000_logits() {
    let logits = spread_logits(32_000, 2.0, 7);
    let exact = closed(&logits, &[5], 1e-3);
    let found = by_search(&logits, &[5], 1e-3, 10).unwrap();
    assert!(
        found.sharpness < 0.97 * exact && found.sharpness > 0.5 * exact,
        "{} of {exact}",
        found.sharpness
    );
}

#[test]
fn rows_have_boxes_of_their_own() {
    let logits = [spread_logits(64, 1.0, 1), spread_logits(64, 3.0, 2)].concat();
    let exact = closed(&logits, &[3, 60], 1e-3);
    let found = by_search(&logits, &[3, 60], 1e-3, 30).unwrap();
    assert!((found.sharpness / exact - 1.0).abs() < 5e-3, "{} {exact}", found.sharpness);
    assert_eq!(by_search(&[], &[], 1e-3, 10), None);
    assert_eq!(by_search(&[f64::NAN, 0.0], &[0], 1e-3, 10), None);
}
