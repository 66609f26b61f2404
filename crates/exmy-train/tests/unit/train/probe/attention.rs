use crate::train::probe::registry::measured;
use exmy::slice::View;
use exmy_train::nn::site::Place;
use exmy_train::recipe::Observer;
use exmy_train::train::preset::preset;
use exmy_train::train::probe::attention::Attention;

/// Two query heads of width 4 that share a key head; two tokens.
#[test]
fn two_tokens_by_hand() {
    let sizes = "[model]\ncontext = 2\nd_model = 8\nheads = 2\nkv_heads = 1";
    let model = preset("nano").unwrap().overlaid(sizes).unwrap().model;
    let mut probe = Attention::new(&model).unwrap();
    let ln3 = libm::logf(3.0);
    // Logits of the second token: head 0: (0, ln 3), head 1: (0, 0), by 1 / sqrt 4.
    let q = [[0.0; 8], [2.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0]].concat();
    let k = [[0.0; 4], [ln3, 0.0, 0.0, 0.0]].concat();
    probe.place(Some(3), Place::Q, false, View::new(&q, 2, 8));
    probe.place(Some(3), Place::K, false, View::new(&k, 2, 4));
    probe.place(Some(3), Place::Q, true, View::new(&k, 2, 4));
    let values = measured(&mut probe);
    let part = |name: &str| values.parts[format!("layers.3.{name}").as_str()].number().unwrap();
    // Probabilities (1/4, 3/4) and (1/2, 1/2); the first token's are 1.
    let first = 0.25 * libm::log(4.0) + 0.75 * libm::log(4.0 / 3.0);
    let second = libm::log(2.0);
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
    close(part("entropy"), (first + second) / 4.0);
    close(part("entropy_share"), (first + second) / 2.0 / libm::log(2.0));
    close(part("logit_max"), f64::from(ln3) / 4.0);
    close(part("logit_top"), f64::from(ln3));
    close(part("sink"), (0.25 + 0.5) / 2.0);
    // Five zeros and one ln 3: kurtosis of one in six, 4.2 - 3.
    close(part("logit_kurtosis"), 4.0 + 1.0 / 5.0 - 3.0);
    close(values.value.unwrap(), part("entropy"));
}
