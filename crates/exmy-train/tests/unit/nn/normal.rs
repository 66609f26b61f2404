use exmy::random::{Philox, Stream};
use exmy::simd::{Level, with_level};
use exmy_train::nn::normal::{CHUNK, normals, pair};

fn philox() -> Philox {
    Philox::new(3, Stream::new("draw test"))
}

/// Against the transform in f64 on the same words: 4e-7 of the radius.
#[test]
fn pairs_are_the_transform() {
    let mut values = vec![0.0_f32; 40_000];
    normals(&mut values, 0, &philox());
    for (p, pair) in values.chunks(2).enumerate() {
        let [u, t] = [0, 1].map(|w| philox().word(2 * p as u64 + w) >> 8);
        let radius = (-2.0 * libm::log((f64::from(u) + 1.0) / f64::from(1 << 24))).sqrt();
        let (sin, cos) = libm::sincos(std::f64::consts::TAU * f64::from(t) / f64::from(1 << 24));
        for (value, direction) in pair.iter().zip([cos, sin]) {
            let error = (f64::from(*value) - radius * direction).abs();
            assert!(error <= 4e-7 * radius.max(1e-3), "{p}: {value} {}", radius * direction);
        }
    }
    let mean = |power: i32| {
        let powers = values.iter().map(|&z| (0..power).map(|_| f64::from(z)).product::<f64>());
        powers.sum::<f64>() / values.len() as f64
    };
    let error = 5.0 / (values.len() as f64).sqrt();
    assert!(mean(1).abs() < error && (mean(2) - 1.0).abs() < 1.5 * error);
    assert!((mean(4) - 3.0).abs() < 10.0 * error, "{}", mean(4));
}

/// The ends of both uniforms.
#[test]
fn extremes() {
    assert_eq!(pair(u32::MAX, 0)[0], 0.0);
    let most = pair(0, 0);
    assert!((most[0] - 5.768_108).abs() < 1e-5 && most[1] == 0.0, "{most:?}");
    let three_quarters = pair(0, 0xC000_0000);
    assert!(three_quarters[0].abs() == 0.0 && three_quarters[1] == -most[0]);
    assert!(pair(0, u32::MAX)[0] > 5.7);
}

#[test]
fn any_part_at_any_level_is_the_same() {
    let mut whole = vec![0.0_f32; 3 * CHUNK];
    normals(&mut whole, 0, &philox());
    for start in [1, 6, CHUNK - 3] {
        let mut part = vec![0.0; CHUNK + 5];
        normals(&mut part, start as u64, &philox());
        assert_eq!(part[..], whole[start..][..CHUNK + 5]);
    }
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        let mut again = vec![0.0; 999];
        with_level(level, || normals(&mut again, 0, &philox()));
        assert_eq!(again[..], whole[..999], "{level}");
    }
}
