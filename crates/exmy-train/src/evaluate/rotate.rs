//! QuaRot: the residual stream and the values are rotated, and hot channels are spread over all.
//!
//! "QuaRot: Outlier-Free 4-Bit Inference in Rotated LLMs" (arXiv 2404.00456), sections 4.1 and 4.2, as far as
//! it is a change of the weights:
//!
//! 1. The gain of each norm is multiplied into the columns of the weights that read it, and becomes 1. An RMS
//!    norm without a gain goes with every rotation.
//! 2. The stream is rotated by a random Hadamard matrix Q of its whole width: rows of the embedding and of
//!    the weights that read the stream become `w Q`, columns of those that write it (o, down) and their
//!    biases too.
//! 3. Values are rotated head by head, by a random Hadamard matrix for each block: rows of v within a head,
//!    and the columns of o that read them.
//!
//! The function of the model stays, but for rounding in f32; all is computed in f64 and rounded once.
//!
//! Section 4.1 also rotates what down reads while the model computes, which [`rotate_down`] prepares: the
//! rows of down become `w Q`, Q of the whole hidden width, and the configuration says that a
//! [decoder](crate::nn::decoder) rotates what they read by Q. It goes with every model. The rotation of keys
//! for their cache is a recipe's, `+k:tensor=ht64-f32>mxfp4`.

use crate::nn::decoder::{Config, Mixer, Norm, NormPlace};
use crate::nn::hadamard::{ORDERS, Rotation};
use crate::nn::parameters::Layout;
use core::ops::Range;
use exmy::error::{Error, Result};
use exmy::parallel;
use exmy::random::Stream;

/// The model with a head of its own: what a tied head reads is rotated, and gets the last norm's gain.
///
/// # Panics
/// If `params` have not the model's layout.
pub fn untied(config: &Config, params: Vec<f32>) -> (Config, Vec<f32>) {
    if !config.tied {
        return (*config, params);
    }
    let untied = Config { tied: false, ..*config };
    let (old, new) = (config.layout(), untied.layout());
    assert_eq!(params.len(), old.len(), "parameters have the model's layout");
    let mut all = vec![0.0; new.len()];
    for entry in &new {
        let from = old.find(&entry.name).or_else(|| old.find("model.embed_tokens.weight"));
        let from = from.expect("every decoder has tokens").range.clone();
        all[entry.range.clone()].copy_from_slice(&params[from]);
    }
    (untied, all)
}

/// Rotates a model's parameters; the same seed, the same signs.
///
/// # Errors
/// If the model has norms that do not go with a rotation, a mixer without values, a tied head, or a width of
/// which no Hadamard matrix is known.
///
/// # Panics
/// If `params` have not the layout's length.
pub fn rotate(config: &Config, layout: &Layout, params: &mut [f32], seed: u64) -> Result<()> {
    possible(config)?;
    let (d, hd) = (config.d_model, config.head_dim());
    let of = |(what, n), stream| Rotation::new(n, seed, stream).ok_or_else(|| unknown(what, n));
    let stream = of(("d_model", d), Stream::new("rotation of the stream"))?;
    let find = |name: &str| layout.find(name).map(|entry| entry.range.clone());
    let mut weights = Weights { params, width: d, find: &find };
    for l in 0..config.layers {
        let name = |rest: &str| format!("model.layers.{l}.{rest}");
        let values = of(("head_dim", hd), Stream::new("rotation of values").with(l as u64))?;
        let readers = [
            ("input_layernorm", &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"][..]),
            ("post_attention_layernorm", &["mlp.gate_proj", "mlp.up_proj"][..]),
        ];
        for (norm, readers) in readers {
            let readers: Vec<String> = readers.iter().map(|reader| name(reader)).collect();
            weights.fold(&name(norm), &readers);
            readers
                .iter()
                .for_each(|reader| weights.rotate_rows(&format!("{reader}.weight"), &stream));
        }
        let (v, o) = (name("self_attn.v_proj"), name("self_attn.o_proj"));
        weights.rotate_columns(&v, d, &values);
        weights.rotate_parts(&format!("{o}.weight"), &values);
        weights.rotate_columns(&o, config.query_width(), &stream);
        weights.rotate_columns(&name("mlp.down_proj"), config.hidden, &stream);
    }
    weights.fold("model.norm", &["lm_head".into()]);
    for table in ["lm_head", "model.embed_tokens", "model.embed_positions", "model.sink"] {
        weights.rotate_rows(&format!("{table}.weight"), &stream);
    }
    Ok(())
}

/// Rotates the inputs of every block's down in its weights, by the signs of a seed; the configuration of the
/// model that rotates what down reads while it computes.
///
/// # Errors
/// If it does so already, or no Hadamard matrix of its hidden width is known.
///
/// # Panics
/// If `params` have not the layout's length.
pub fn rotate_down(
    config: &Config,
    layout: &Layout,
    params: &mut [f32],
    seed: u64,
) -> Result<Config> {
    if config.rotate_down.is_some() {
        return Err(Error::new("what down_proj reads is rotated in this model already")
            .hint("leave --rotate-down out: the model does it while it computes"));
    }
    let hidden = config.hidden;
    let rotation = Rotation::of_down(hidden, seed).ok_or_else(|| unknown("hidden", hidden))?;
    let find = |name: &str| layout.find(name).map(|entry| entry.range.clone());
    let mut weights = Weights { params, width: hidden, find: &find };
    for l in 0..config.layers {
        weights.rotate_rows(&format!("model.layers.{l}.mlp.down_proj.weight"), &rotation);
    }
    Ok(Config { rotate_down: Some(seed), ..*config })
}

fn unknown(what: &str, order: usize) -> Error {
    Error::new(format!("{what} is {order}, and no Hadamard matrix of that order is known here"))
        .hint(format!("a width is {ORDERS}: leave the rotation out"))
}

fn possible(config: &Config) -> Result<()> {
    let why = if config.norm != Norm::RmsNorm || config.norm_bias {
        "layer norms subtract a mean, which a rotation changes"
    } else if config.norm_place == NormPlace::After {
        "norms come after what they norm in this model, and their gains cannot leave the stream"
    } else if config.mixer.any(Mixer::Gla, config.layers) {
        "gated linear attention norms what it writes, head by head"
    } else if config.tied {
        "the head is the embedding, and the last norm's gain is the head's alone"
    } else {
        return Ok(());
    };
    Err(Error::new(why).hint("QuaRot's rotations go with Llama, Mistral, Qwen2 and Qwen3"))
}

/// The parameters of a model with their names.
struct Weights<'a> {
    params: &'a mut [f32],
    width: usize,
    find: &'a dyn Fn(&str) -> Option<Range<usize>>,
}

impl Weights<'_> {
    /// Multiplies the gain of a norm into what reads it.
    fn fold(&mut self, norm: &str, readers: &[String]) {
        let Some(gain) = (self.find)(&format!("{norm}.weight")) else { return };
        let gains = self.params[gain.clone()].to_vec();
        for range in readers.iter().filter_map(|reader| (self.find)(&format!("{reader}.weight"))) {
            for row in self.params[range].chunks_exact_mut(gains.len()) {
                row.iter_mut().zip(&gains).for_each(|(w, gain)| *w *= gain);
            }
        }
        self.params[gain].fill(1.0);
    }

    /// Rotates rows of the stream's width.
    fn rotate_rows(&mut self, name: &str, rotation: &Rotation) {
        self.rotate_by(name, self.width, rotation);
    }

    /// Rotates each part of a rotation's length.
    fn rotate_parts(&mut self, name: &str, rotation: &Rotation) {
        self.rotate_by(name, rotation.width(), rotation);
    }

    fn rotate_by(&mut self, name: &str, width: usize, rotation: &Rotation) {
        let Some(range) = (self.find)(name) else { return };
        parallel::for_each_chunk(&mut self.params[range], 64 * width, |_, rows| {
            let mut numbers = vec![0.0; width];
            for row in rows.chunks_exact_mut(width) {
                numbers.iter_mut().zip(&*row).for_each(|(x, w)| *x = (*w).into());
                rotation.apply(&mut numbers);
                row.iter_mut().zip(&numbers).for_each(|(w, x)| *w = *x as f32);
            }
        });
    }

    /// Rotates the outputs of an operator with so many inputs, each group of a rotation's length, and its
    /// bias.
    fn rotate_columns(&mut self, operator: &str, inputs: usize, rotation: &Rotation) {
        if let Some(range) = (self.find)(&format!("{operator}.weight")) {
            let n = rotation.width();
            parallel::for_each_chunk(&mut self.params[range], n * inputs, |_, group| {
                let mut numbers = vec![0.0; n];
                for j in 0..inputs {
                    let column = group.iter().skip(j).step_by(inputs);
                    numbers.iter_mut().zip(column).for_each(|(x, w)| *x = (*w).into());
                    rotation.apply(&mut numbers);
                    let column = group.iter_mut().skip(j).step_by(inputs);
                    column.zip(&numbers).for_each(|(w, x)| *w = *x as f32);
                }
            });
        }
        self.rotate_parts(&format!("{operator}.bias"), rotation);
    }
}
