//! SmoothQuant: the same function, the paper's factors, and less lost where a channel is hot.

use super::evaluate::normed;
use super::{data, farthest, truth};
use exmy_train::evaluate::layers::Layers;
use exmy_train::evaluate::smooth::{factors, smooth};
use exmy_train::evaluate::{Evaluation, Windows};
use exmy_train::nn::Cpu;
use exmy_train::nn::decoder::{Config, Decoder};
use exmy_train::nn::linear::Unquantized;
use exmy_train::published::Published;

pub(super) fn model(family: &str) -> (Config, Vec<f32>, Vec<u32>) {
    let mut model = Published::open(&data(family)).unwrap();
    let weights = model.weights(|_| {}).unwrap();
    (*model.config(), weights, truth(&data(family).join("truth.safetensors")).0)
}

pub(super) fn logits(config: &Config, weights: &[f32], tokens: &[u32]) -> Vec<f32> {
    let mut decoder = Decoder::<Cpu>::new(*config).unwrap();
    decoder.last_logits(weights, tokens, &mut Unquantized).numbers().to_vec()
}

/// `sqrt(4) / sqrt(1)`, `9^0.75 / 16^0.25`, and a channel of zeros.
#[test]
fn factors_by_hand() {
    assert_eq!(factors(&[4.0], &[1.0], 0.5), [2.0]);
    assert!((factors(&[9.0], &[16.0], 0.75)[0] - 27_f64.sqrt() / 2.0).abs() < 1e-12);
    assert_eq!(factors(&[0.0], &[1.0], 0.5), [1e-5]);
}

#[test]
fn the_function_stays() {
    for family in ["gpt2", "llama", "mistral", "qwen2", "qwen3"] {
        let (config, mut weights, tokens) = model(family);
        let before = logits(&config, &weights, &tokens);
        let seen = Layers::of_text(&config, &weights, &tokens).unwrap();
        let old = weights.clone();
        smooth(&config, &config.layout(), &mut weights, &seen, 0.5).unwrap();
        let error = farthest(&logits(&config, &weights, &tokens), &before);
        assert!(error < 2e-5 && weights != old, "{family}: {error:e}");
    }
    for (family, why) in [("olmo2", "norms come after"), ("gla", "by its gates, too")] {
        let (config, mut weights, tokens) = model(family);
        let seen = Layers::of_text(&config, &weights, &tokens).unwrap();
        let error = smooth(&config, &config.layout(), &mut weights, &seen, 0.5).unwrap_err();
        assert!(error.to_string().contains(why), "{family}: {error}");
    }
}

/// The factors of the first norm's channels from what it writes, computed here in f64.
#[test]
fn gains_are_divided_by_the_papers_factors() {
    let (config, old, tokens) = model("llama");
    let (mut new, layout, d) = (old.clone(), config.layout(), config.d_model);
    let seen = Layers::of_text(&config, &old, &tokens).unwrap();
    smooth(&config, &layout, &mut new, &seen, 0.5).unwrap();
    let tensor = |all: &[f32], name: &str| {
        all[layout.find(&format!("model.layers.0.{name}.weight")).unwrap().range.clone()].to_vec()
    };
    let x = normed(&config, &old, &tokens);
    for j in 0..d {
        let most_x = x.iter().map(|row| row[j].abs()).fold(0.0, f64::max);
        let of =
            |name: &str| tensor(&old, name).chunks(d).map(|row| row[j].abs()).fold(0.0, f32::max);
        let most_w = ["q", "k", "v"].map(|one| of(&format!("self_attn.{one}_proj")));
        let factor = (most_x / f64::from(most_w.into_iter().fold(0.0, f32::max))).sqrt();
        let ratio =
            |name: &str, at: usize| f64::from(tensor(&new, name)[at] / tensor(&old, name)[at]);
        let gain = ratio("input_layernorm", j);
        assert!((gain * factor - 1.0).abs() < 1e-5, "channel {j}: {gain} {factor}");
        let column = ratio("self_attn.v_proj", 3 * d + j);
        assert!((column / factor - 1.0).abs() < 1e-5, "channel {j}: {column} {factor}");
    }
}

/// One channel of a norm's output is made 60 times as large, and its readers' columns as much smaller.
#[test]
fn a_hot_channel_costs_less() {
    let (config, mut weights, tokens) = model("llama");
    let (layout, d) = (config.layout(), config.d_model);
    for entry in &layout {
        let rows = weights[entry.range.clone()].chunks_mut(d);
        if entry.name.ends_with("input_layernorm.weight") {
            rows.for_each(|row| row[5] *= 60.0);
        } else if ["q_proj", "k_proj", "v_proj"].iter().any(|name| entry.name.contains(name)) {
            rows.for_each(|row| row[5] /= 60.0);
        }
    }
    let cost = |weights: &[f32]| {
        let recipes = ["f32", "mxfp4"].map(|name| name.parse().unwrap());
        let weights = weights.to_vec();
        let mut evaluation = Evaluation::new(Cpu::new(), config, weights, &recipes).unwrap();
        let windows = Windows { window: tokens.len(), stride: tokens.len() }.of(tokens.len());
        evaluation.block(&tokens, &windows[0], 0, false).unwrap();
        evaluation.measures().last().unwrap().divergence[0]
    };
    let hot = cost(&weights);
    let seen = Layers::of_text(&config, &weights, &tokens).unwrap();
    smooth(&config, &layout, &mut weights, &seen, 0.5).unwrap();
    let smoothed = cost(&weights);
    assert!(smoothed < 0.9 * hot, "{smoothed} {hot}");
}
