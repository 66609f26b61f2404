use crate::train::probe::registry::measured;
use exmy::slice::View;
use exmy_train::nn::site::Place;
use exmy_train::recipe::Observer;
use exmy_train::train::preset::preset;
use exmy_train::train::probe::places::{Gates, Logits, Spread};

#[test]
fn spread_by_hand() {
    let mut probe = Spread::default();
    let (x, y) = ([1.0_f32, 2.0, 3.0, 6.0], [5.0_f32; 4]);
    probe.place(Some(1), Place::NormOutput, false, View::new(&x[..2], 1, 2));
    probe.place(Some(1), Place::NormOutput, false, View::new(&x[2..], 1, 2));
    probe.place(Some(1), Place::Residual, false, View::new(&y, 2, 2));
    probe.place(Some(1), Place::Residual, true, View::new(&x, 2, 2));
    probe.place(Some(1), Place::Q, false, View::new(&x, 2, 2));
    let values = measured(&mut probe);
    let part = |name: &str| values.parts[name].number().unwrap();
    assert_eq!(part("layers.1.norm_output.mean"), 3.0);
    assert!((part("layers.1.norm_output.sd") - 3.5_f64.sqrt()).abs() < 1e-12);
    assert_eq!((part("layers.1.residual.mean"), part("layers.1.residual.sd")), (5.0, 0.0));
    assert_eq!(values.parts.len(), 4);
    assert!((values.value.unwrap() - 3.5_f64.sqrt() / 2.0).abs() < 1e-12);
    assert!(measured(&mut probe).is_empty());
}

#[test]
fn gates_by_hand() {
    let mut probe = Gates::new(&preset("gla-micro").unwrap().model).unwrap();
    // Decays below 0.01 are those of z < -73.68, above 0.999 of z > 4.12 ([arXiv 2312.06635] tau).
    let z = View::new(&[-120.0, -73.0, -74.0, 0.0, 4.0, 4.2, 90.0, 1.0], 2, 4);
    probe.place(Some(2), Place::DecayGate, false, z);
    let values = measured(&mut probe);
    let part = |name: &str| values.parts[format!("layers.2.{name}").as_str()].number().unwrap();
    assert_eq!(
        [part("min"), part("max"), part("p001"), part("p999")],
        [-120.0, 90.0, -120.0, 90.0]
    );
    assert_eq!([part("closed"), part("open")], [0.25, 0.25]);
    assert_eq!(values.value, Some(120.0));
    assert!(measured(&mut probe).is_empty());
}

#[test]
fn logits_by_hand() {
    let mut probe = Logits::default();
    // ln(1 + 1) and ln(e^-7 + e^-7) = ln 2 - 7.
    probe.place(None, Place::Logits, false, View::new(&[0.0, 0.0, -7.0, -7.0], 2, 2));
    let values = measured(&mut probe);
    let ln2 = libm::log(2.0);
    let expected = (ln2 * ln2 + (ln2 - 7.0) * (ln2 - 7.0)) / 2.0;
    assert!((values.parts["logsumexp2"].number().unwrap() - expected).abs() < 1e-12);
    assert_eq!(values.value, Some(7.0));
    assert!(measured(&mut probe).is_empty());
}
