use exmy_train::nn::site::{Operand, Operator, Place, Product, Site};
use exmy_train::train::probe::{Key, Of};

#[test]
fn texts_are_read_as_what_they_name() {
    let site = |layer, operator| Site { layer, operator };
    let (q, head) = (site(Some(3), Operator::Q), site(None, Operator::Head));
    let decay = site(Some(12), Operator::DecayUp);
    let teacher = site(Some(0), Operator::TeacherUp);
    let (forward, input) = (Some(Product::Forward), Some(Operand::Input));
    let tensor = |name: &str| Of::Tensor(name.into());
    for (text, of, statistic) in [
        ("bound", Of::Network, "bound"),
        ("layers.3.entropy", Of::Layer(3), "entropy"),
        ("layers.3.q_proj.overlap", q.into(), "overlap"),
        ("layers.3.q_proj.forward.error", Of::Operator(q, forward, None), "error"),
        ("layers.3.q_proj.forward.input.mse", Of::Operator(q, forward, input), "mse"),
        ("layers.3.q_proj.input", Of::Operator(q, None, input), ""),
        ("layers.3.q_proj.output.top", q.into(), "output.top"),
        ("layers.12.gk_proj.1.output.top", decay.into(), "output.top"),
        ("layers.0.teacher.up_proj.input", Of::Operator(teacher, None, input), ""),
        ("lm_head.input.rms_p99", Of::Operator(head, None, input), "rms_p99"),
        ("layers.3.residual.sd", Of::Place(Some(3), Place::Residual), "sd"),
        ("norm_output", Of::Place(None, Place::NormOutput), ""),
        ("model.norm.weight", tensor("model.norm.weight"), ""),
        (
            "model.layers.3.mlp.up_proj.weight.weight",
            tensor("model.layers.3.mlp.up_proj.weight"),
            "weight",
        ),
        ("layers.3.norm.weight.mean", tensor("layers.3.norm.weight"), "mean"),
    ] {
        let key = Key::from(text);
        assert_eq!((key.of(), key.statistic()), (&of, statistic), "{text}");
        assert_eq!((Key::new(of, statistic), key.as_str()), (key.clone(), text));
    }
}

#[test]
fn biases_are_told_from_weights() {
    let is_bias = |text: &str| Key::from(text).of().is_bias();
    assert!(is_bias("layers.3.norm.bias.mean") && is_bias("model.norm.bias"));
    assert!(!is_bias("layers.3.norm.weight.mean") && !is_bias("layers.3.bias"));
}

#[test]
fn every_text_stays_what_it_is() {
    for text in ["", ".", "layers.", "layers.3.", "layers.03.q_proj.input", "a.weights.b"] {
        let key = Key::from(text);
        assert_eq!((key.of(), key.statistic()), (&Of::Network, text));
        assert_eq!(serde_json::to_string(&key).unwrap(), format!("{text:?}"));
    }
}
