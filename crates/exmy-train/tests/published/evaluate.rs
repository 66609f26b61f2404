//! Windows and means by hand, and an evaluation against the decoder's own losses.

use super::{data, truth};
use exmy_train::evaluate::{Evaluation, Measures, Window, Windows, shape};
use exmy_train::nn::Cpu;
use exmy_train::nn::decoder::Decoder;
use exmy_train::nn::linear::Unquantized;
use exmy_train::published::Published;
use exmy_train::recipe::Recipe;

#[test]
fn windows_by_hand() {
    let of = |tokens, window, stride| {
        let windows = Windows { window, stride }.of(tokens);
        windows.into_iter().map(|Window { tokens, scored }| (tokens, scored)).collect::<Vec<_>>()
    };
    assert_eq!(of(5, 8, 4), [(0..5, 1..5)]);
    assert_eq!(of(10, 4, 2), [(0..4, 1..4), (2..6, 4..6), (4..8, 6..8), (6..10, 8..10)]);
    assert_eq!(of(9, 4, 3), [(0..4, 1..4), (3..7, 4..7), (6..9, 7..9)]);
    // Without overlap the first token of each window is scored by none.
    assert_eq!(of(7, 3, 3), [(0..3, 1..3), (3..6, 4..6)]);
    assert_eq!(of(1, 3, 3), []);
}

/// Blocks of 1 and 3 tokens with sums 2 and 2: the mean is 1, squares are (2 - 1)² and (2 - 3)², and
/// sqrt(2 / 1 * 2) / 4 = 0.5.
#[test]
fn means_by_hand() {
    let measures = Measures { tokens: vec![1, 3], nats: vec![2.0, 2.0], ..Measures::default() };
    let loss = measures.loss();
    assert_eq!((measures.count(), loss.mean, loss.error), (4, 1.0, 0.5));
    let other = Measures { nats: vec![1.0, 0.0], ..measures.clone() };
    // Differences of 1 and 2: the mean 3/4, squares 1/16 and 1/16.
    let above = measures.loss_above(&other);
    assert_eq!((above.mean, above.error), (0.75, (2.0_f64 / 8.0).sqrt() / 4.0));
}

#[test]
fn an_evaluation_has_the_losses_of_the_decoder() {
    let mut model = Published::open(&data("llama")).unwrap();
    let weights = model.weights(|_| {}).unwrap();
    let (tokens, logits) = truth(&data("llama/truth.safetensors"));
    let recipes: Vec<Recipe> =
        ["f32", "f32", "mxfp4", "mxfp4+input=f32"].map(|name| name.parse().unwrap()).to_vec();
    let windows = Windows { window: 24, stride: 16 }.of(tokens.len());
    let config = shape(model.config(), 24);
    let mut evaluation = Evaluation::new(Cpu::new(), config, weights.clone(), &recipes).unwrap();
    for (number, window) in windows.iter().enumerate() {
        evaluation.block(&tokens, window, number as u64).unwrap();
    }
    let measures: Vec<Measures> = evaluation.measures().cloned().collect();
    let mut decoder = Decoder::<Cpu>::new(config).unwrap();
    for (window, &nats) in windows.iter().zip(&measures[0].nats) {
        let (seen, next) = (window.tokens.start..window.tokens.end - 1, window.tokens.start + 1);
        let mut losses = vec![0.0; seen.len()];
        let targets = &tokens[next..window.tokens.end];
        decoder.losses(&weights, &tokens[seen], targets, 1, &mut Unquantized, &mut losses[..]);
        let scored = &losses[window.scored.start - next..];
        let sum: f64 = scored.iter().map(|&loss| f64::from(loss)).sum();
        assert!((nats / sum - 1.0).abs() < 1e-6, "{nats} {sum}");
    }
    // Of the first window transformers' logits say the same.
    let sum: f64 = (0..23).map(|i| loss(&logits[i * 96..(i + 1) * 96], tokens[i + 1])).sum();
    assert!((measures[0].nats[0] / sum - 1.0).abs() < 1e-5, "{sum}");
    let [first, same, both, weights_only] = &measures[..] else { unreachable!("four recipes") };
    assert_eq!((&first.nats, first.count()), (&same.nats, 39));
    assert_eq!(same.divergence.iter().sum::<f64>(), 0.0);
    assert_eq!((first.mean(&first.agreement).mean, same.mean(&same.agreement).mean), (1.0, 1.0));
    let [both, weights_only] = [both, weights_only].map(|measures| {
        assert!(measures.mean(&measures.agreement).mean < 1.0);
        measures.mean(&measures.divergence).mean
    });
    assert!(both > weights_only && weights_only > 0.0, "{both} {weights_only}");
}

/// The loss in nats of a token, in f64.
#[allow(clippy::disallowed_methods)]
fn loss(logits: &[f32], token: u32) -> f64 {
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit).exp()).sum();
    sum.ln() - f64::from(logits[token as usize])
}
