use crate::train::probe::registry::{proxy, seen};
use exmy::slice::View;
use exmy_train::nn::parameters::{Init, Layout, Role};
use exmy_train::nn::site::Place;
use exmy_train::recipe::Observer;
use exmy_train::train::preset::preset;
use exmy_train::train::probe::weights::{Gamma, Norms, Swiglu};
use exmy_train::train::probe::{Probe, Values};

#[test]
fn tensors_by_hand() {
    let mut layout = Layout::default();
    layout.push("n.weight".into(), &[3], Role::Norm, Init::Ones);
    layout.push("w".into(), &[1, 2], Role::Matrix, Init::Ones);
    layout.push("n.bias".into(), &[2], Role::NormBias, Init::Zeros);
    layout.push("w.bias".into(), &[1], Role::Bias, Init::Zeros);
    let (model, params) = (proxy(), [1.0, 2.0, 6.0, 3.0, -4.0, 0.5, -1.5, 0.0]);
    let seen = seen(&model, &layout, &params);
    let part = |values: &Values, name: &str| values.parts[name].number().unwrap();
    let mut values = Values::default();
    Norms.measure(&seen, &mut values);
    assert_eq!((part(&values, "w.grad"), part(&values, "w.weight")), (5.0, 5.0));
    assert_eq!(values.value, Some(68.5_f64.sqrt()));
    let mut values = Values::default();
    Gamma.measure(&seen, &mut values);
    assert_eq!(
        ["mean", "min", "max"].map(|name| part(&values, &format!("n.weight.{name}"))),
        [3.0, 1.0, 6.0]
    );
    assert!((part(&values, "n.weight.sd") - (14.0_f64 / 3.0).sqrt()).abs() < 1e-12);
    // Betas of norms, not other biases, and not in the value.
    assert_eq!((part(&values, "n.bias.mean"), part(&values, "n.bias.sd")), (-0.5, 1.0));
    assert_eq!((values.value, values.parts.len()), (Some(3.0), 8));
}

#[test]
fn gates_by_hand() {
    let mut layout = Layout::default();
    layout.push("a.gate_proj.weight".into(), &[2, 2], Role::Matrix, Init::Ones);
    layout.push("a.up_proj.weight".into(), &[2, 2], Role::Matrix, Init::Ones);
    // Units: opposite directions (1), and at right angles (0).
    let (model, params) = (proxy(), [1.0, 1.0, 0.0, 5.0, -2.0, -2.0, 3.0, 0.0]);
    let mut probe = Swiglu::new(&preset("nano").unwrap().model).unwrap();
    // Gate 1, 2; up 4, 2: correlation -1.
    probe.place(Some(0), Place::ActivationInput, false, View::new(&[1.0, 4.0, 2.0, 2.0], 2, 2));
    probe.place(Some(0), Place::ActivationOutput, false, View::new(&[1.0, -3.0], 2, 1));
    let mut values = Values::default();
    probe.measure(&seen(&model, &layout, &params), &mut values);
    let part = |name: &str| values.parts[format!("layers.0.{name}").as_str()].number().unwrap();
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
    close(part("cos_mean"), 0.5);
    close(part("cos_p99"), 1.0);
    close(part("cos_high"), 0.5);
    close(part("correlation"), -1.0);
    close(part("tail_kurtosis"), -2.0);
    close(part("tail_top"), 3.0);
    close(values.value.unwrap(), 0.5);
    close(values.parts["null"].number().unwrap(), (1.0 / core::f64::consts::PI).sqrt());
}
