use exmy_lab::measure::{Probed, capped, of_inputs, of_parts};
use exmy_train::nn::site::{Operand, Operator};
use exmy_train::train::probe::{Key, Line, Values};

#[test]
fn parts_are_picked_by_what_they_are_of() {
    let picked = |probed: Probed, texts: &[&str]| -> Vec<bool> {
        texts.iter().map(|&text| probed.has(&Key::from(text))).collect()
    };
    let texts = [
        "layers.0.q_proj.input",
        "layers.0.k_proj.input",
        "layers.0.q_proj.weight",
        "layers.0.q_proj.input.channels_max",
        "lm_head.weight",
        "lm_head.input",
    ];
    let kurtosis = of_inputs("", "kurtosis", "");
    assert_eq!(picked(kurtosis, &texts), [true, false, false, false, false, false]);
    let of_weights = of_parts("", "kurtosis", "").of_operand(Operand::Weight);
    assert_eq!(picked(of_weights, &texts), [false, false, true, false, false, false]);
    let texts = ["layers.0.gk_proj.1.output.top", "layers.0.g_proj.output.top", "layers.0.max"];
    let top = of_parts("", "channels", "output.top").of_operator(Operator::DecayUp);
    assert_eq!(picked(top, &texts), [true, false, false]);
    assert_eq!(picked(of_parts("", "gates", "max"), &texts), [false, false, true]);
}

/// A name that no probe has is a mistake, and not a column without numbers.
#[test]
fn a_statistic_that_is_not_there_is_an_error() {
    let mut values = Values::default();
    values.part("layers.0.q_proj.input.rms_p99", 3.0);
    values.part("layers.1.q_proj.input.rms_p99", 5.0);
    let lines = [Line { step: 7, probe: "spikes".into(), values }];
    let of = |statistic| of_inputs("", "spikes", statistic).of_lines(&lines);
    assert_eq!(of("rms_p99").unwrap(), [(7.0, 4.0)]);
    let error = of("rms_p9").unwrap_err().to_string();
    for part in ["`spikes` has no `rms_p9`", "layers.0.q_proj.input.rms_p99, layers.1"] {
        assert!(error.contains(part), "{error}");
    }
    // One that diverged before the first measurement has none.
    assert_eq!(of_inputs("", "spikes", "rms_p9").of_lines(&[]).unwrap(), []);
}

#[test]
fn a_run_that_diverged_counts_as_a_guess() {
    assert_eq!(capped(1.2, 256), 1.2);
    for diverged in [f64::INFINITY, f64::NAN, 7.0] {
        assert!((capped(diverged, 256) - 5.545).abs() < 1e-3);
    }
}
