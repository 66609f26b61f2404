use exmy_lab::landscape::{direction, grid, length};
use exmy_train::nn::parameters::{Init, Layout, Role};

fn layout() -> Layout {
    let mut layout = Layout::default();
    let init = Init::Normal { std: 0.3 };
    layout.push("embedding".into(), &[7, 5], Role::Embedding, init);
    layout.push("w".into(), &[4, 6], Role::Matrix, init);
    layout.push("gain".into(), &[5], Role::Norm, Init::Ones);
    layout.push("shift".into(), &[4], Role::Bias, init);
    layout
}

#[test]
fn filters_are_as_long_as_the_weights() {
    let layout = layout();
    let params = layout.initialize(3);
    let d = direction(&layout, &params, 11, 0);
    for (name, filter) in [("embedding", 5), ("w", 6)] {
        let range = layout.find(name).unwrap().range.clone();
        let rows = d[range.clone()].chunks(filter).zip(params[range].chunks(filter));
        for (d, weights) in rows {
            assert!((length(d) / length(weights) - 1.0).abs() < 1e-6);
            // Random, not the weights themselves.
            assert!(d.iter().zip(weights).any(|(d, w)| (d - w).abs() > 0.05));
        }
    }
    let still = layout.find("gain").unwrap().range.start;
    assert!(d[still..].iter().all(|&d| d == 0.0));
}

#[test]
fn directions_are_of_their_seed_and_the_same_for_every_checkpoint() {
    let layout = layout();
    let (early, late) = (layout.initialize(3), layout.initialize(4));
    let d = |params: &[f32], seed, index| direction(&layout, params, seed, index);
    assert_eq!(d(&early, 11, 0), d(&early, 11, 0));
    assert_ne!(d(&early, 11, 0), d(&early, 11, 1));
    assert_ne!(d(&early, 11, 0), d(&early, 12, 0));
    // Only the lengths of the rows differ between checkpoints.
    let (a, b) = (d(&early, 11, 0), d(&late, 11, 0));
    for (a, b) in a[..35].chunks(5).zip(b[..35].chunks(5)) {
        let cosine: f64 = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        assert!((cosine / (length(a) * length(b)) - 1.0).abs() < 1e-6);
    }
    // Two directions are as good as orthogonal to each other and to the weights: 59 values.
    let (a, b) = (d(&early, 11, 0), d(&early, 11, 1));
    let cosine: f64 = a.iter().zip(&b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
    assert!((cosine / (length(&a) * length(&b))).abs() < 0.5);
}

#[test]
fn the_middle_is_the_loss_itself() {
    let layout = layout();
    let params = layout.initialize(3);
    let (first, second) = (direction(&layout, &params, 1, 0), direction(&layout, &params, 1, 1));
    let loss = |p: &[f32]| p.iter().map(|&x| libm::sin(37.0 * f64::from(x))).sum::<f64>();
    let found = grid(&params, &first, &second, 21, 1.0, loss);
    assert_eq!(found.losses.len(), 441);
    assert_eq!(found.centre(), Some(loss(&params)), "to the bit");
    assert_eq!((found.at(0), found.at(220), found.at(440)), ((-1.0, -1.0), (0.0, 0.0), (1.0, 1.0)));
    // alpha = 1, beta = 0 is the first direction added whole.
    let moved: Vec<f32> =
        params.iter().zip(&first).map(|(p, d)| (f64::from(*p) + f64::from(*d)) as f32).collect();
    assert_eq!(found.losses[10 * 21 + 20], loss(&moved));
    assert!(found.minima() > 3, "{} minima of a rough surface", found.minima());
    let one = grid(&params, &first, &second, 1, 1.0, loss);
    assert_eq!((one.centre(), one.at(0)), (Some(loss(&params)), (0.0, 0.0)));
    assert_eq!(grid(&params, &first, &second, 2, 1.0, loss).centre(), None);
}

#[test]
fn a_bowl_has_one_minimum_and_a_hole_none() {
    let bowl = |p: &[f32]| f64::from(p[0] * p[0] + p[1] * p[1]);
    let mut found = grid(&[0.0, 0.0], &[1.0, 0.5], &[-0.5, 1.0], 9, 1.0, bowl);
    assert_eq!(found.minima(), 1);
    assert!(found.is_valley());
    let far = grid(&[9.0, 0.0], &[1.0, 0.0], &[0.0, 1.0], 9, 1.0, bowl);
    assert_eq!((far.minima(), far.is_valley()), (0, false), "a slope");
    // The middle is no number: its neighbours are then the lowest, at the same height.
    found.losses[40] = f64::NAN;
    assert_eq!(found.minima(), 0);
    found.losses[40] = f64::NEG_INFINITY;
    assert_eq!(found.minima(), 0);
    for side in [0, 1, 2] {
        let flat = grid(&[0.0], &[1.0], &[1.0], side, 1.0, |_| 1.0);
        assert_eq!((flat.minima(), flat.is_valley()), (0, false));
    }
}

#[test]
fn pictures_show_the_middle() {
    let bowl = |p: &[f32]| 1.0 + f64::from(p[0] * p[0] + p[1] * p[1]);
    let found = grid(&[0.0, 0.0], &[1.0, 0.0], &[0.0, 1.0], 5, 1.0, bowl);
    for log in [false, true] {
        let svg = found.draw("Loss", "seed 1", "nats/token", log).unwrap().to_svg();
        assert!(svg.contains("loss, nats/token from 1 at 0, 0 to 3 at "), "{svg}");
    }
    assert_eq!(grid(&[], &[], &[], 0, 1.0, |_| 0.0).draw("", "", "", false), None);
    assert!(grid(&[], &[], &[], 1, 1.0, |_| 0.0).draw("", "", "", false).is_some());
}
