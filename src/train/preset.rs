//! Named starting points: a network and how to train it, sized for a CPU.
//!
//! `nano`, `deep`, `micro` (Llama blocks) and `gpt-nano` (its GPT-2 twin) are small enough that the
//! effect of a number format shows in minutes. `nanogpt-cpu` is the small-Shakespeare configuration
//! of nanoGPT's README for a CPU (<https://github.com/karpathy/nanoGPT>), on bytes.

use crate::error::{Error, Result};
use crate::nn::decoder::{self, InitScheme, Mlp, Norm, Position};
use crate::recipe::Recipe;
use crate::text::Nearest;
use crate::train::config::{Config, Data, Decay, Record, Start, Train, VERSION};
use crate::train::data::Source;
use crate::train::schedule::Schedule;
use crate::train::stop::Stop;

/// A preset's name and what it is, for listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// What is typed.
    pub name: &'static str,
    /// One line for people.
    pub about: &'static str,
}

/// All presets, the default first.
pub const PRESETS: [Preset; 5] = [
    Preset { name: "nano", about: "Llama blocks: 2 layers, d 64, context 64 (121 k parameters)" },
    Preset { name: "deep", about: "Llama blocks: 8 layers, d 48, context 64" },
    Preset {
        name: "micro",
        about: "Llama blocks: 4 layers, d 128, context 128 (0.8 M parameters)",
    },
    Preset { name: "gpt-nano", about: "GPT-2 blocks: 2 layers, d 64, context 64" },
    Preset {
        name: "nanogpt-cpu",
        about: "nanoGPT's CPU example: 4 layers, d 128, context 64, 2000 steps (0.8 M parameters)",
    },
];

/// The shape of a Llama-style network: RMSNorm, RoPE, one key-value head, SwiGLU, untied head.
fn llama(layers: usize, d_model: usize, hidden: usize, context: usize) -> decoder::Config {
    decoder::Config {
        vocab: 256,
        context,
        layers,
        d_model,
        heads: 4,
        kv_heads: 1,
        hidden,
        norm: Norm::RmsNorm,
        norm_bias: false,
        norm_eps: 1e-5,
        position: Position::Rope { base: 10_000.0 },
        mlp: Mlp::Swiglu,
        tied: false,
        init: InitScheme::TinyLlama,
        ..decoder::Config::default()
    }
}

/// The shape of a GPT-2-style network as nanoGPT has it: LayerNorm without bias, learned positions,
/// GELU, tied head.
fn gpt(layers: usize, d_model: usize, context: usize) -> decoder::Config {
    decoder::Config {
        vocab: 256,
        context,
        layers,
        d_model,
        heads: 4,
        kv_heads: 4,
        hidden: 4 * d_model,
        norm: Norm::LayerNorm,
        norm_bias: false,
        norm_eps: 1e-5,
        position: Position::Learned,
        mlp: Mlp::Gelu,
        tied: true,
        init: InitScheme::Gpt2,
        ..decoder::Config::default()
    }
}

/// The configuration of a preset, for byte tokens, recipe `f32`, seed 1.
///
/// # Errors
/// If there is no such preset; the nearest names are given.
pub fn preset(name: &str) -> Result<Config> {
    let steps = 600;
    let mut config = Config {
        version: VERSION,
        recipe: Recipe::default(),
        seed: 1,
        data: Data { source: Source::default(), validation: 0.1, fingerprint: String::new() },
        model: llama(2, 64, 176, 64),
        train: Train {
            steps,
            batch: 8,
            accumulate: 1,
            lr: 1e-3,
            lr_min: 1e-4,
            schedule: Schedule::Cosine,
            warmup: steps / 20,
            beta1: 0.9,
            beta2: 0.95,
            eps: 1e-8,
            weight_decay: 0.1,
            decay: Decay::Matrices,
            clip: 1.0,
        },
        record: Record {
            eval_every: 100,
            eval_windows: 4096,
            checkpoint_every: 100,
            keep: 2,
            checkpoint_at: Vec::new(),
            window: 50,
            probes: Vec::new(),
            probe_every: 1,
        },
        stop: Stop::default(),
        start: Start::default(),
        at: Vec::new(),
        when: Vec::new(),
    };
    match name {
        "nano" => {}
        "deep" => config.model = llama(8, 48, 128, 64),
        "micro" => config.model = llama(4, 128, 344, 128),
        "gpt-nano" => config.model = gpt(2, 64, 64),
        "nanogpt-cpu" => {
            config.model = gpt(4, 128, 64);
            config.train =
                Train { steps: 2000, batch: 12, warmup: 100, beta2: 0.99, ..config.train };
            config.record.eval_every = 500;
            config.record.checkpoint_every = 500;
            config.record.eval_windows = 0;
        }
        _ => {
            let names = PRESETS.map(|preset| preset.name);
            let error = Error::new(format!("there is no preset {name:?}"));
            let near = Nearest::new(name, names);
            return Err(match near.names() {
                [] => error.hint(format!("the presets are {}", names.join(", "))),
                _ => error.hint(format!("did you mean {near}?")),
            });
        }
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_possible_and_survives_its_toml() {
        for Preset { name, .. } in PRESETS {
            let config = preset(name).unwrap();
            config.validate().unwrap();
            assert_eq!(Config::from_toml(&config.to_toml()).unwrap(), config, "{name}");
        }
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let error = preset("nanno").unwrap_err().to_string();
        assert_eq!(error, "there is no preset \"nanno\"\n  did you mean nano?");
    }
}
