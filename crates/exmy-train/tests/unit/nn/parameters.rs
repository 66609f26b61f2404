use exmy_train::nn::parameters::{Init, Layout, Role};

fn two(len: usize) -> Layout {
    let mut layout = Layout::default();
    let init = Init::Normal { std: 0.02 };
    layout.push("a.weight".into(), &[len / 2, 2], Role::Matrix, init);
    layout.push("gain".into(), &[3], Role::Norm, Init::Ones);
    layout.push("shift".into(), &[2], Role::Bias, Init::Zeros);
    layout.push("b.weight".into(), &[len / 2, 2], Role::Embedding, init);
    layout
}

/// The expected values are from an independent implementation of Philox, of the stream's hash and of the
/// transform in Python's integers and f64. The last ones lie in a second chunk.
#[test]
fn golden_values() {
    let layout = two(16_386);
    let arena = layout.initialize(1);
    let part = |name: &str| &arena[layout.find(name).unwrap().range.clone()];
    let golden = [
        (
            "a.weight",
            [-0.036_888_898, 0.022_358_847, -0.017_577_765, 0.003_233_255, -0.008_508_339],
            0.001_150_666_6,
        ),
        (
            "b.weight",
            [-0.016_131_032, -0.030_064_637, 0.001_637_721_3, 0.011_510_374, -0.017_622_769],
            -0.006_185_075,
        ),
    ];
    for (name, first, last) in golden {
        let values = part(name);
        let five = [0, 1, 2, 3, 16_384].map(|i| values[i]);
        for (got, expected) in five.into_iter().zip(first) {
            assert!((got - expected).abs() <= 2e-9_f32, "{name}: {got} {expected}");
        }
        assert!((values[16_385] - last).abs() <= 2e-10_f32, "{name}: {}", values[16_385]);
    }
    assert_eq!(part("gain"), [1.0; 3]);
    assert_eq!(part("shift"), [0.0; 2]);
    // The high half of the seed counts.
    let other = layout.initialize((7 << 32) + 1);
    assert!((other[5] - 0.042_749_31).abs() <= 4e-9, "{}", other[5]);
}

/// Of 200 000 values mean, variance and fourth moment lie within 5 standard errors of those of
/// N(0, 1): 1, sqrt 2 and sqrt 96 over sqrt n.
#[test]
fn moments_are_normal() {
    let n = 200_000;
    let arena = two(n).initialize(3);
    let values = arena[..n].iter().map(|value| f64::from(*value) / 0.02);
    let mean = |power: usize| {
        let powers = values.clone().map(|z| std::iter::repeat_n(z, power).product::<f64>());
        powers.sum::<f64>() / n as f64
    };
    let error = 5.0 / (n as f64).sqrt();
    assert!(mean(1).abs() < error, "{}", mean(1));
    assert!((mean(2) - 1.0).abs() < error * 2.0_f64.sqrt(), "{}", mean(2));
    assert!((mean(4) - 3.0).abs() < error * 96.0_f64.sqrt(), "{}", mean(4));
    // Neighbours come from one pair, whose halves must not depend on each other.
    let pairs = arena[..n].chunks(2);
    let product: f64 = pairs.map(|p| f64::from(p[0]) * f64::from(p[1]) / 4e-4).sum();
    assert!((product / (n / 2) as f64).abs() < error * 2.0_f64.sqrt());
}

/// 200 000 values of each: none beyond the bound, and the mean square within 5 standard errors
/// of the distribution's, from the moments of the cut normal (variance 0.973 337, fourth
/// moment 2.680 06) and of the uniform (1/3, 1/5).
#[test]
fn bounded_values_have_their_moments() {
    let n = 200_000;
    let cases = [
        (Init::Truncated { std: 0.5 }, 0.5, 3.0, 0.973_337, 2.680_06),
        (Init::Uniform { bound: 0.25 }, 0.25, 1.0, 1.0 / 3.0, 0.2),
    ];
    for (init, size, bound, square, fourth) in cases {
        let mut layout = Layout::default();
        layout.push("w".into(), &[n], Role::Matrix, init);
        let values = layout.initialize(5);
        let values = values.iter().map(|value| f64::from(*value) / size);
        assert!(values.clone().all(|z| z.abs() <= bound), "{init:?}");
        assert!(values.clone().any(|z| z.abs() > 0.99 * bound), "{init:?}");
        let found = values.map(|z| z * z).sum::<f64>() / n as f64;
        let error = 5.0 * libm::sqrt((fourth - square * square) / n as f64);
        assert!((found - square).abs() < error, "{init:?}: {found}");
    }
    let mut layout = Layout::default();
    let init = Init::Around { mean: 0.95, std: 0.0 };
    layout.push("gain".into(), &[3], Role::Norm, init);
    assert_eq!(layout.initialize(5), [0.95; 3]);
}

/// A tensor's values depend on its name and the seed, not on what lies before it.
#[test]
fn a_tensor_does_not_depend_on_the_others() {
    let layout = two(10);
    let b = layout.find("b.weight").unwrap();
    let mut alone = Layout::default();
    alone.push(b.name.clone(), &b.shape, b.role, b.init);
    assert_eq!(layout.initialize(9)[b.range.clone()], alone.initialize(9));
    assert_ne!(layout.initialize(9)[b.range.clone()], alone.initialize(10));
}

#[test]
#[should_panic(expected = "two parameters are called a.weight")]
fn names_are_unique() {
    two(2).push("a.weight".into(), &[1], Role::Bias, Init::Zeros);
}

/// Names are not compared with all before them: a quarter of a million of one length would take minutes
/// that way.
#[test]
fn very_many_names_are_found() {
    let name = |i: usize| format!("model.layers.{i:06}.self_attn.q_proj.weight");
    let mut layout = Layout::default();
    let count = 1 << 18;
    for i in 0..count {
        assert_eq!(layout.push(name(i), &[2], Role::Bias, Init::Zeros), 2 * i..2 * i + 2);
    }
    for i in (0..count).rev() {
        assert_eq!(layout.find(&name(i)).unwrap().range.start, 2 * i);
    }
    assert!(layout.find(&name(count)).is_none());
    let again = || layout.push(name(count / 2), &[2], Role::Bias, Init::Zeros);
    let again = std::panic::catch_unwind(std::panic::AssertUnwindSafe(again)).unwrap_err();
    let said = again.downcast_ref::<String>().unwrap();
    assert!(said.contains(&name(count / 2)), "{said}");
}
