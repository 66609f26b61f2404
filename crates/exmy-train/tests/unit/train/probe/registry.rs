use exmy::quantizer::{Axis, Quantizer};
use exmy::slice::View;
use exmy_train::nn::model;
use exmy_train::nn::parameters::Layout;
use exmy_train::nn::site::{Operand, Operator, Product, Site};
use exmy_train::recipe::Rounded;
use exmy_train::train::preset::preset;
use exmy_train::train::probe::registry::{ALL, by_name, find};
use exmy_train::train::probe::{Probe, Snapshot, Values};

pub(crate) fn proxy() -> model::Config {
    preset("proxy").unwrap().model
}

/// What a probe of weights sees.
pub(crate) fn seen<'a>(
    model: &'a model::Config,
    layout: &'a Layout,
    params: &'a [f32],
) -> Snapshot<'a> {
    let (shadow, twin, endings) = (None, None, None);
    Snapshot { step: 3, model, layout, params, grads: params, shadow, twin, endings }
}

/// What a probe measures of what it was shown alone.
pub(crate) fn measured(probe: &mut dyn Probe) -> Values {
    let (model, layout, mut values) = (proxy(), Layout::default(), Values::default());
    probe.measure(&seen(&model, &layout, &[]), &mut values);
    values
}

/// The input of `layers.1.q_proj`'s forward product, rounded by what `quantizer` says.
pub(crate) fn operand<'a>(
    quantizer: &str,
    before: View<'a, f32>,
    after: View<'a, f32>,
) -> Rounded<'a> {
    Rounded {
        site: Site { layer: Some(1), operator: Operator::Q },
        product: Product::Forward,
        operand: Operand::Input,
        quantizer: match quantizer {
            "f32" => Quantizer::NONE,
            name => name.parse().unwrap(),
        },
        clip: None,
        axis: Axis::Cols,
        before,
        after,
    }
}

/// Whoever looks for lines that are missing asks for those of steady probes alone.
#[test]
fn probes_that_compare_are_not_steady() {
    let steady = |name: &str| find(name).map(|entry| entry.steady);
    assert_eq!(["hot:16", "sharpness:5e-4", "lastbin.gamma:e2m3"].map(steady), [Some(true); 3]);
    assert_eq!(["rounding", "gamma", "rho_same", "cos_traj"].map(steady), [Some(false); 4]);
    assert_eq!(steady("hotter"), None);
}

#[test]
fn every_name_makes_its_probe_and_wrong_ones_say_what_there_is() {
    let (decoder, proxy) = (preset("nano").unwrap().model, proxy());
    let linear = preset("gla-micro").unwrap().model;
    let bare = preset("proxy").unwrap().overlaid("model.norm = false").unwrap().model;
    for entry in ALL {
        let model = if entry.name == "gates" { &linear } else { &decoder };
        let made = by_name(entry.name, model).unwrap();
        assert_eq!(made.name(), entry.name);
        assert!(!entry.measures.is_empty() && !entry.cost.is_empty());
        if entry.argument.is_empty() {
            let error = by_name(&format!("{}:1", entry.name), &decoder).err().unwrap();
            assert!(error.to_string().contains("takes no argument"), "{error}");
        }
    }
    assert_eq!(by_name("lastbin.gamma:e2m3", &proxy).unwrap().name(), "lastbin.gamma:e2m3");
    for (name, expected) in [
        ("lastbin.gama", "no probe \"lastbin.gama\""),
        ("lastbin.gamma:e8m0", "e8m0 has no sign"),
        ("lastbin.gamma:e99", "e99"),
        ("sharpness:-1", "-1"),
        ("phi_lbfgsb:0", "no number of iterations"),
    ] {
        let error = by_name(name, &decoder).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for (name, model, expected) in [
        ("sharpness", &proxy, "the proxy has none"),
        ("logits", &proxy, "the proxy has none"),
        ("gamma", &bare, "the gains of norms; the model has none"),
        ("lastbin.gamma", &bare, "the gains of norms; the model has none"),
        ("attention", &linear, "no softmax attention"),
        ("gates", &decoder, "no gated linear attention"),
        ("swiglu", &preset("gpt-nano").unwrap().model, "no gate"),
    ] {
        let error = by_name(name, model).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
