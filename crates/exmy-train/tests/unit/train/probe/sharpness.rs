use exmy::random::{Philox, Stream};
use exmy_train::train::probe::sharpness::{Sharpness, cross_entropy, each, sharpness};
use exmy_train::train::probe::{Ending, Probe, Snapshot, Values};

fn of(logits: &[f32], target: u32) -> Ending {
    Ending { logits: logits.to_vec(), target }
}

/// By 30-digit arithmetic (Python's `decimal`) from the formula above.
#[test]
fn known_values() {
    for (logits, target, eps, expected) in [
        (&[0.0, 0.0][..], 0, 1e-3, 0.059_091_14),
        (&[2.0, -1.0, 0.5, 3.0], 3, 1e-3, 0.154_694_65),
        (&[2.0, -1.0, 0.5, 3.0], 1, 5e-4, 0.051_401_87),
        (&[20.0, -10.0, 5.0, 30.0], 1, 1e-3, 0.102_437_81),
    ] {
        let found = sharpness(&[of(logits, target)], eps).unwrap();
        assert!((found - expected).abs() < 1e-8, "{logits:?}: {found}, not {expected}");
    }
}

/// No vertex of the box is above the one that the formula takes.
#[test]
fn no_vertex_is_higher() {
    let random = Philox::new(1, Stream::new("vertices"));
    let logits: Vec<f32> = (0..12).map(|i| 8.0 * random.uniform(i) as f32 - 4.0).collect();
    let ending = of(&logits, 5);
    let loss = cross_entropy(&ending, |_, _| 0.0);
    let highest = sharpness(&[of(&logits, 5)], 0.1).unwrap();
    for vertex in 0..1_u32 << 12 {
        let moved: Vec<f32> = logits.clone();
        // Exact in f64: the signs are looked up by the logit, all of which differ.
        let sign = |x: f64| {
            let at = moved.iter().position(|&y| f64::from(y) == x).unwrap();
            if vertex >> at & 1 == 1 { 1.0 } else { -1.0 }
        };
        let there = cross_entropy(&ending, |_, x| sign(x) * 0.1 * (x.abs() + 1.0));
        assert!(100.0 * (there - loss) / (1.0 + loss) <= highest + 1e-12);
    }
}

#[test]
fn zero_without_a_box_and_growing_with_it() {
    let endings = [of(&[1.0, 2.0, -3.0], 0), of(&[0.0, -40.0, 7.0], 2)];
    let at = |eps| sharpness(&endings, eps).unwrap();
    assert_eq!(at(0.0), 0.0);
    assert!(0.0 < at(1e-4) && at(1e-4) < at(1e-3) && at(1e-3) < at(1e-2));
    assert_eq!(sharpness(&[], 1e-3), None);
    // The mean of losses, not of sharpnesses.
    let alone = endings.each_ref().map(|e| sharpness(std::slice::from_ref(e), 1e-3).unwrap());
    let mean = (alone[0] + alone[1]) / 2.0;
    assert!((at(1e-3) - mean).abs() > 1e-6);
    assert!((each(&endings, 1e-3) - mean).abs() < 1e-15);
}

/// Where both look, the search ends at most at the vertex, and near it for a small vocabulary.
#[test]
fn the_search_ends_below_the_vertex() {
    use crate::train::probe::registry::{proxy, seen};
    use exmy_train::nn::parameters::Layout;
    let random = Philox::new(5, Stream::new("endings"));
    let endings: Vec<Ending> = (0..1)
        .map(|i| Ending {
            logits: (0..256).map(|j| 6.0 * random.uniform(256 * i + j) as f32 - 3.0).collect(),
            target: 17 * i as u32,
        })
        .collect();
    let (model, layout) = (proxy(), Layout::default());
    let seen = Snapshot { endings: Some(&endings), ..seen(&model, &layout, &[]) };
    let of = |probe: &mut dyn Probe| {
        let mut values = Values::default();
        probe.measure(&seen, &mut values);
        values
    };
    let vertex = of(&mut Sharpness::new("sharpness", None).unwrap()).value.unwrap();
    let found = of(&mut Sharpness::searched("sharpness_lbfgsb", None).unwrap());
    let value = found.value.unwrap();
    assert!(value <= vertex * (1.0 + 1e-9) && value > 0.995 * vertex, "{value} {vertex}");
    assert!(found.parts["iterations"].number().unwrap() <= 10.0);
}
