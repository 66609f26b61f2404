use exmy_train::train::sample::{Options, draw};

const OPTIONS: Options = Options { temperature: 1.0, top_k: 0, seed: 0 };

#[test]
fn draws_follow_the_probabilities() {
    // Probabilities 0.2, 0.5, 0.3; the likeliest comes first in the cumulative order.
    // ln 0.2, ln 0.5, ln 0.3
    let logits = [-1.609_438, -std::f32::consts::LN_2, -1.203_973];
    let token = |uniform| draw(&logits, OPTIONS, uniform);
    assert_eq!([token(0.0), token(0.49), token(0.51), token(0.79)], [1, 1, 2, 2]);
    assert_eq!([token(0.81), token(0.999)], [0, 0]);
}

#[test]
fn temperature_and_top_k_narrow_the_choice() {
    let logits = [1.0, 3.0, 2.0];
    assert_eq!(draw(&logits, Options { temperature: 0.0, ..OPTIONS }, 0.999), 1);
    assert_eq!(draw(&logits, Options { top_k: 2, ..OPTIONS }, 0.999), 2);
    assert_eq!(draw(&logits, Options { top_k: 1, ..OPTIONS }, 0.999), 1);
}
