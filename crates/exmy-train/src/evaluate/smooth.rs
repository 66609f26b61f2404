//! SmoothQuant: hot channels of inputs become a matter of the weights.
//!
//! "SmoothQuant: Accurate and Efficient Post-Training Quantization for Large Language Models" (arXiv
//! 2211.10438), section 4. The input of q, k, v and that of the MLP are what a norm writes. Channel j of it
//! is divided by `s_j = max|X_j|^a / max|W_j|^(1 - a)`, and column j of the weights that read it is
//! multiplied by the same. Division is done in the norm's gain (and bias), so the function of the model stays
//! as it is, but for rounding in f32. `X_j` is channel j in a calibration text, `W_j` column j of all weights
//! that read it; `a` is the migration strength, 0.5 in the paper for most models. As in the authors' code
//! (<https://github.com/mit-han-lab/smoothquant>, `smoothquant/smooth.py`) maxima of weights and the factors
//! are 1e-5 at least. o and down read what no norm writes, and stay.

use super::layers::Layers;
use crate::nn::decoder::{Config, Mixer, NormPlace};
use crate::nn::parameters::Layout;
use crate::nn::site::{Operator, Site};
use exmy::error::{Error, Result};

/// The least of a column of weights, and of a factor.
const LEAST: f64 = 1e-5;

/// The operators that read a block's first norm, and its second.
const READERS: [&[Operator]; 2] =
    [&[Operator::Q, Operator::K, Operator::V], &[Operator::Gate, Operator::Up]];

/// The factor of each channel, from the largest magnitudes of inputs and of weights.
pub fn factors(inputs: &[f64], weights: &[f64], strength: f64) -> Vec<f64> {
    let factor = |(x, w): (&f64, &f64)| {
        (libm::pow(*x, strength) / libm::pow(w.max(LEAST), 1.0 - strength)).max(LEAST)
    };
    inputs.iter().zip(weights).map(factor).collect()
}

/// Changes a model's parameters by what was found in a calibration text.
///
/// # Errors
/// If the model has no norms before its linear operators, or gates that read them, too.
///
/// # Panics
/// If `params` have not the layout's length, or `seen` is of another model.
pub fn smooth(
    config: &Config,
    layout: &Layout,
    params: &mut [f32],
    seen: &Layers,
    strength: f64,
) -> Result<()> {
    if config.norm_place == NormPlace::After {
        return Err(Error::new(
            "norms come after what they norm in this model, not before q, k, v",
        )
        .hint("SmoothQuant changes the norms before linear operators: leave it out"));
    }
    if config.mixer.any(Mixer::Gla, config.layers) {
        return Err(Error::new("the norms of gated linear attention are read by its gates, too")
            .hint("SmoothQuant changes what reads a norm where that is q, k, v: leave it out"));
    }
    for layer in 0..config.layers {
        let norms = ["input_layernorm", "post_attention_layernorm"];
        for (norm, readers) in norms.into_iter().zip(READERS) {
            let name = |rest: &str| format!("model.layers.{layer}.{rest}");
            let part = |operator: Operator| match operator {
                Operator::Gate | Operator::Up => "mlp",
                _ => "self_attn",
            };
            let weights: Vec<_> = readers
                .iter()
                .filter_map(|&one| layout.find(&name(&format!("{}.{one}.weight", part(one)))))
                .map(|entry| entry.range.clone())
                .collect();
            let reads =
                |site: Site| site.layer == Some(layer as u32) && readers.contains(&site.operator);
            let input = seen.linears().find(|(site, _)| reads(*site));
            let inputs = input.expect("every operator was seen").1.input.channels();
            let width = inputs.len();
            let mut most = vec![0.0_f64; width];
            for row in weights.iter().flat_map(|range| params[range.clone()].chunks(width)) {
                most.iter_mut().zip(row).for_each(|(most, w)| *most = most.max(w.abs().into()));
            }
            let factors = factors(inputs, &most, strength);
            for range in weights {
                for row in params[range].chunks_mut(factors.len()) {
                    row.iter_mut().zip(&factors).for_each(|(w, s)| *w = (f64::from(*w) * s) as f32);
                }
            }
            for kind in ["weight", "bias"] {
                let Some(entry) = layout.find(&name(&format!("{norm}.{kind}"))) else { continue };
                let gain = &mut params[entry.range.clone()];
                gain.iter_mut().zip(&factors).for_each(|(g, s)| *g = (f64::from(*g) / s) as f32);
            }
        }
    }
    Ok(())
}
