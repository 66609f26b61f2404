use crate::train::probe::registry::{measured, proxy, seen};
use exmy::slice::View;
use exmy_train::nn::parameters::{Init, Layout, Role};
use exmy_train::nn::site::Place;
use exmy_train::train::probe::Values;
use exmy_train::train::probe::last_bin::{last_bin, saturated};
use exmy_train::train::probe::registry::by_name;

/// The bands are those of the paper's table: 1.75 for E4M3, E5M2 and E3M2, 1.875 for E2M3, 1.5
/// for E2M1.
#[test]
fn bands() {
    let band = |name: &str| last_bin(name.parse().unwrap());
    assert_eq!(["e4m3", "e5m2", "e3m2", "e2m3", "e2m1"].map(band), [1.75, 1.75, 1.75, 1.875, 1.5]);
}

#[test]
fn blocks_by_hand() {
    // All of 0.90 to 0.99 lie above 0.875 = 1.75 / 2; one of 1.0 opens the next binade.
    let mut block: Vec<f32> = (0..32).map(|i| 0.90 + 0.0029 * i as f32).collect();
    assert_eq!(saturated(&block, 1.75), 32);
    block[7] = -1.0;
    assert_eq!(saturated(&block, 1.75), 0);
    assert_eq!(saturated(&[0.875; 32], 1.75), 0, "the limit itself is representable");
    assert_eq!(saturated(&[0.0; 32], 1.75), 0);
    // Blocks end with their tensor.
    assert_eq!(saturated(&[vec![1.0; 32], vec![0.95; 3]].concat(), 1.75), 3);
}

#[test]
fn the_share_is_of_all_gains_and_of_gains_alone() {
    let mut layout = Layout::default();
    layout.push("a".into(), &[32], Role::Norm, Init::Ones);
    layout.push("w".into(), &[2, 32], Role::Matrix, Init::Ones);
    layout.push("b".into(), &[96], Role::Norm, Init::Ones);
    let mut params = vec![0.95; layout.len()];
    params[100..].fill(1.0);
    params[70] = 1.0;
    let model = proxy();
    let seen = seen(&model, &layout, &params);
    let share = |name: &str| {
        let mut values = Values::default();
        by_name(name, &model).unwrap().measure(&seen, &mut values);
        values
    };
    // 32 of the first tensor; the second one's first block has four below 1 and is saved by
    // the others.
    let all = share("lastbin.gamma");
    assert_eq!(all.value, Some(0.25));
    assert_eq!(all.parts["a"].number(), Some(1.0));
    assert_eq!(all.parts["b"].number(), Some(0.0));
    assert_eq!(share("lastbin.gamma:e2m3").value, Some(0.25));
    // Two rows of the matrix, the second one saved by its one 1.
    assert_eq!(share("lastbin.weights").value, Some(0.5));
}
/// A block of 1 and 0.95 has nothing in its last bin, one of 0.95 alone all.
#[test]
fn activations_are_of_three_places_and_forward() {
    let mut probe = by_name("lastbin.activations", &proxy()).unwrap();
    let mut show = |layer: Option<u32>, place: Place, gradient: bool, values: &[f32]| {
        let values = View::new(values, 2, values.len() / 2);
        probe.observer().unwrap().place(layer, place, gradient, values);
    };
    // Two rows: as one block nothing would be found.
    show(Some(0), Place::NormOutput, false, &[1.0, 0.95, 0.95, 0.95, 0.95, 0.95]);
    show(Some(1), Place::ActivationOutput, false, &[0.95, -0.95, 1.0, 1.0]);
    // A place that is shown twice counts all it had.
    show(None, Place::Residual, false, &[1.0, 0.0]);
    show(None, Place::Residual, false, &[-0.95, -0.95]);
    // Gradients and other places do not count.
    show(Some(0), Place::NormOutput, true, &[0.95; 64]);
    show(Some(0), Place::Logits, false, &[0.95; 64]);
    let values = measured(&mut *probe);
    let parts: Vec<(&str, f64)> =
        values.parts.iter().map(|(name, part)| (name.as_str(), part.number().unwrap())).collect();
    let expected =
        [("layers.0.norm_output", 0.5), ("layers.1.activation_output", 0.5), ("residual", 0.5)];
    assert_eq!(parts, expected);
    // 3 + 2 + 2 of 6 + 4 + 4.
    assert_eq!(values.value, Some(0.5));
    // The next measurement begins anew.
    probe.observer().unwrap().place(
        None,
        Place::Residual,
        false,
        View::new(&[0.95, 0.95, 0.95], 1, 3),
    );
    let again = measured(&mut *probe);
    assert_eq!((again.value, again.parts.len()), (Some(1.0), 1));
}
