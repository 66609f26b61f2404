//! QuaRot's rotations: Hadamard matrices, the same function, and hot channels that are none any more.

use super::smooth::{logits, model};
use super::{data, farthest};
use exmy::random::Stream;
use exmy_train::evaluate::hadamard::Rotation;
use exmy_train::evaluate::layers::Layers;
use exmy_train::evaluate::rotate::{rotate, untied};
use exmy_train::evaluate::{Evaluation, Windows};
use exmy_train::nn::Cpu;
use exmy_train::published::Published;

/// Of each kind: Sylvester's, Paley's two, and products. Rows are orthogonal and have one magnitude.
#[test]
fn rotations_are_hadamard_matrices() {
    let of = |n: usize| Rotation::new(n, 3, Stream::new("test"));
    for n in [1, 2, 4, 64, 12, 20, 24, 28, 36, 44, 60, 76, 140, 576, 896] {
        let rotation = of(n).unwrap_or_else(|| panic!("{n}"));
        let row = |i: usize| {
            let mut x = vec![0.0; n];
            x[i] = 1.0;
            rotation.apply(&mut x);
            x
        };
        let rows: Vec<Vec<f64>> = (0..n).map(row).collect();
        for (i, a) in rows.iter().enumerate() {
            assert!(a.iter().all(|x| (x.abs() * (n as f64).sqrt() - 1.0).abs() < 1e-12), "{n}");
            for (j, b) in rows.iter().enumerate().take(i + 1) {
                let dot: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-12, "{n}: {i} {j}");
            }
        }
    }
    // No order but 1, 2 and multiples of 4; of 92 no prime gives one.
    assert!([0, 3, 6, 10, 18, 92].into_iter().all(|n| of(n).is_none()));
    let signs = |seed| {
        let mut x = [1.0; 64];
        Rotation::new(64, seed, Stream::new("test")).unwrap().apply(&mut x);
        x
    };
    assert!(signs(1) == signs(1) && signs(1) != signs(2));
}

#[test]
fn the_function_stays() {
    for family in ["llama", "llama3", "mistral", "qwen2", "qwen3"] {
        let (config, weights, tokens) = model(family);
        let before = logits(&config, &weights, &tokens);
        let (config, mut weights) = untied(&config, weights);
        assert_eq!(logits(&config, &weights, &tokens), before, "{family}");
        let old = weights.clone();
        rotate(&config, &config.layout(), &mut weights, 1).unwrap();
        let error = farthest(&logits(&config, &weights, &tokens), &before);
        assert!(error < 1e-5, "{family}: {error:e}");
        // Nothing stays but norms over queries and keys, and biases of what does not write the stream.
        for entry in &config.layout() {
            let same = weights[entry.range.clone()] == old[entry.range.clone()];
            let stays = [
                "q_norm",
                "k_norm",
                "q_proj.bias",
                "k_proj.bias",
                "gate_proj.bias",
                "up_proj.bias",
            ];
            assert_eq!(same, stays.iter().any(|name| entry.name.contains(name)), "{}", entry.name);
        }
    }
    for (family, why) in
        [("olmo2", "norms come after"), ("gpt2", "layer norms"), ("gla", "gated linear")]
    {
        let (config, weights, _) = model(family);
        let (config, mut weights) = untied(&config, weights);
        let error = rotate(&config, &config.layout(), &mut weights, 1).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}

/// A channel of the stream that is hot in every token, as real checkpoints have them.
#[test]
fn a_hot_channel_is_spread() {
    let (config, mut weights, tokens) = model("llama");
    let (layout, d) = (config.layout(), config.d_model);
    let table = layout.find("model.embed_tokens.weight").unwrap().range.clone();
    weights[table].chunks_mut(d).for_each(|row| row[5] = 40.0 * row[3]);
    let before = logits(&config, &weights, &tokens);
    let hot = |weights: &[f32]| -> Vec<f64> {
        let seen = Layers::of_text(&config, weights, &tokens).unwrap();
        let first = seen.linears().find(|(site, _)| site.to_string() == "layers.0.q_proj").unwrap();
        vec![first.1.input.over_median(), first.1.input.kurtosis()]
    };
    // A scale a token, as QuaRot has them: blocks of 32 shut a hot channel in.
    let cost = |weights: &[f32]| {
        let recipes = ["f32", "f32+input=e2m1/row:e8m0"].map(|name| name.parse().unwrap());
        let mut evaluation =
            Evaluation::new(Cpu::new(), config, weights.to_vec(), &recipes).unwrap();
        let windows = Windows { window: tokens.len(), stride: tokens.len() }.of(tokens.len());
        evaluation.block(&tokens, &windows[0], 0, false).unwrap();
        evaluation.measures().last().unwrap().divergence[0]
    };
    let (was, lost) = (hot(&weights), cost(&weights));
    rotate(&config, &layout, &mut weights, 1).unwrap();
    let error = farthest(&logits(&config, &weights, &tokens), &before);
    assert!(error < 1e-4, "{error:e}");
    let (is, loses) = (hot(&weights), cost(&weights));
    assert!(is[0] < 0.5 * was[0] && is[1] < 0.2 * was[1], "{was:?} {is:?}");
    assert!(loses < 0.8 * lost, "{lost} {loses}");
    let model = Published::open(&data("llama")).unwrap();
    assert!(!model.config().tied, "a test of nothing");
}
