//! Named starting points: a network and how to train it.
//!
//! Some are sized for a CPU, so that the effect of a number format shows in minutes: `nano`, `deep`,
//! `micro`, `mini` (Llama blocks), `gpt-nano` (their GPT-2 twin), `olmo-micro`, `sa-micro` and its twin
//! in gated linear attention `gla-micro`, `proxy`. `nanogpt-cpu` is the small-Shakespeare
//! configuration of nanoGPT's README for a CPU (<https://github.com/karpathy/nanoGPT>), on bytes.
//!
//! The others have the shapes, and as far as they are known the training, of published experiments;
//! the numbers of parameters are tested.
//! * `gpt2-124m` is nanoGPT's `train_gpt2.py`.
//! * `llama-120m` and `llama-7b` are TinyLlama's and Llama 2's as arXiv 2405.18710 trained them.
//! * `olmo-lN` are the models of N layers, width 64 N, of arXiv 2506.20752 with the steps of its
//!   smallest budget (2e17 operations by 6 N D).
//! * `gla-...` and `sa-...` are Flash Linear Attention's
//!   (<https://github.com/fla-org/flash-linear-attention>), `qwen3-1.7b` is Qwen3's.
//! * `proxy-...` are the student-teacher experiments of arXiv 2506.20752.

use crate::nn::decoder::{self, Gla, InitScheme, Mixer, Mixers, Mlp, Norm, Position, QkNorm};
use crate::nn::{model, proxy};
use crate::recipe::Recipe;
use crate::train::config::{Config, Data, Decay, Method, Record, Start, Train, VERSION};
use crate::train::data::Source;
use crate::train::schedule::Schedule;
use crate::train::stop::Stop;
use exmy::error::{Error, Result};
use exmy::text::Nearest;

/// A preset's name and what it is, for listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// What is typed.
    pub name: &'static str,
    /// One line for people.
    pub about: &'static str,
}

/// All presets, the default first. `olmo-lN` is any number of layers.
pub const PRESETS: [Preset; 31] = [
    Preset { name: "nano", about: "Llama blocks: 2 layers, d 64, context 64 (121 k parameters)" },
    Preset { name: "deep", about: "Llama blocks: 8 layers, d 48, context 64" },
    Preset {
        name: "micro",
        about: "Llama blocks: 4 layers, d 128, context 128 (0.8 M parameters)",
    },
    Preset { name: "mini", about: "Llama blocks: 6 layers, d 192, context 256 (2.5 M parameters)" },
    Preset { name: "gpt-nano", about: "GPT-2 blocks: 2 layers, d 64, context 64" },
    Preset {
        name: "nanogpt-cpu",
        about: "nanoGPT's CPU example: 4 layers, d 128, context 64, 2000 steps (0.8 M parameters)",
    },
    Preset { name: "olmo-micro", about: "OLMo blocks: 4 layers, d 128, context 128" },
    Preset {
        name: "sa-micro",
        about: "softmax twin of gla-micro: 4 layers, d 128, 4 key heads, context 128",
    },
    Preset { name: "gla-nano", about: "gated linear attention: 2 layers, d 64, context 64" },
    Preset {
        name: "gla-micro",
        about: "gated linear attention: 4 layers, d 128, context 128 (0.9 M parameters)",
    },
    Preset {
        name: "gla-mini",
        about: "gated linear attention: 6 layers, d 192, context 256 (2.8 M parameters)",
    },
    Preset {
        name: "proxy",
        about: "student-teacher MLP: 2 blocks, width 128, batch 256, 1000 steps",
    },
    Preset {
        name: "proxy-nano",
        about: "student-teacher MLP: 4 blocks, width 64, batch 256, 1500 steps",
    },
    Preset {
        name: "proxy-mx",
        about: "the MX study's unstable one: 4 blocks, width 512, batch 2048, lr 6e-4, 9000 steps",
    },
    Preset {
        name: "proxy-ln-fix",
        about: "the MX study's norm fixes: 3 blocks, width 512, batch 2048, lr 5e-4, 11000 steps",
    },
    Preset { name: "gpt2-124m", about: "nanoGPT's GPT-2 (124.4 M parameters)" },
    Preset { name: "llama-120m", about: "TinyLlama's 120M (120.2 M parameters)" },
    Preset { name: "llama-7b", about: "Llama 2 7B (6.74 G parameters)" },
    Preset { name: "olmo-l4", about: "OLMo of the MX study, d 256 (19.5 M parameters)" },
    Preset { name: "olmo-l8", about: "OLMo of the MX study, d 512 (57.9 M parameters)" },
    Preset { name: "olmo-l11", about: "OLMo of the MX study, d 704 (110.5 M parameters)" },
    Preset { name: "olmo-l16", about: "OLMo of the MX study, d 1024 (266.9 M parameters)" },
    Preset { name: "olmo-l22", about: "OLMo of the MX study, d 1408 (613.6 M parameters)" },
    Preset { name: "olmo-l32", about: "OLMo of the MX study, d 2048 (1.74 G parameters)" },
    Preset { name: "gla-340m", about: "gated linear attention, d 1024 (374.5 M parameters)" },
    Preset { name: "gla-1.3b", about: "gated linear attention, d 2048 (1.37 G parameters)" },
    Preset { name: "gla-7b", about: "gated linear attention, d 4096 (6.8 G parameters)" },
    Preset { name: "sa-340m", about: "Llama blocks as gla-340m's baseline" },
    Preset { name: "sa-1.3b", about: "Llama blocks as gla-1.3b's baseline" },
    Preset { name: "sa-7b", about: "Llama blocks as gla-7b's baseline, 8 key heads" },
    Preset { name: "qwen3-1.7b", about: "Qwen3: norms of queries and keys (1.72 G parameters)" },
];

/// The shape of a Llama-style network: RMSNorm, RoPE, one key-value head, SwiGLU, untied head.
fn llama(layers: usize, d_model: usize, hidden: usize, context: usize) -> decoder::Config {
    decoder::Config { layers, d_model, hidden, context, ..decoder::Config::default() }
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

/// OLMo as the MX study has it: layer norms without bias, over all queries and all keys too, RoPE,
/// GELU, untied head.
fn olmo(layers: usize, d_model: usize, heads: usize, context: usize) -> decoder::Config {
    decoder::Config {
        vocab: 256,
        context,
        layers,
        d_model,
        heads,
        kv_heads: heads,
        hidden: 4 * d_model,
        norm: Norm::LayerNorm,
        qk_norm: QkNorm::Full,
        mlp: Mlp::Gelu,
        init: InitScheme::Mitchell,
        ..decoder::Config::default()
    }
}

/// Flash Linear Attention's Llama, of `heads` heads.
fn softmax(layers: usize, d_model: usize, hidden: usize, heads: usize) -> decoder::Config {
    decoder::Config {
        layers,
        d_model,
        heads,
        kv_heads: heads,
        hidden,
        context: 128,
        norm_eps: 1e-6,
        init: InitScheme::Normal,
        ..decoder::Config::default()
    }
}

/// Flash Linear Attention's gated linear attention.
fn gla(layers: usize, d_model: usize, hidden: usize, heads: usize) -> decoder::Config {
    decoder::Config {
        mixer: Mixers::all(Mixer::Gla),
        position: Position::None,
        gla: Gla { heads, ..Gla::default() },
        ..softmax(layers, d_model, hidden, heads)
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
        data: Data {
            source: Source::default(),
            validation: 0.1,
            noise: 0.0,
            fingerprint: String::new(),
        },
        model: llama(2, 64, 176, 64).into(),
        train: Train {
            steps,
            batch: 8,
            accumulate: 1,
            lr: 1e-3,
            lr_min: 1e-4,
            schedule: Schedule::Cosine,
            warmup: steps / 20,
            optimizer: Method::AdamW,
            beta1: 0.9,
            beta2: 0.95,
            eps: 1e-8,
            momentum: 0.0,
            weight_decay: 0.1,
            decay: Decay::Matrices,
            clip: 1.0,
            z_loss: 0.0,
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
    let Config { model, train, record, .. } = &mut config;
    match name {
        "nano" => {}
        "deep" => *model = llama(8, 48, 128, 64).into(),
        "micro" => *model = llama(4, 128, 344, 128).into(),
        "mini" => *model = llama(6, 192, 512, 256).into(),
        "gpt-nano" => *model = gpt(2, 64, 64).into(),
        "nanogpt-cpu" => {
            *model = gpt(4, 128, 64).into();
            set_steps(train, 2000, 100);
            (train.batch, train.beta2) = (12, 0.99);
            (record.eval_every, record.checkpoint_every, record.eval_windows) = (500, 500, 0);
        }
        "olmo-micro" => *model = olmo(4, 128, 4, 128).into(),
        "sa-micro" => *model = softmax(4, 128, 352, 4).into(),
        "gla-nano" => {
            *model = decoder::Config { context: 64, ..gla(2, 64, 192, 2) }.into();
            set_steps(train, 300, 15);
        }
        "gla-micro" => *model = gla(4, 128, 352, 4).into(),
        "gla-mini" => {
            *model = decoder::Config { context: 256, ..gla(6, 192, 512, 4) }.into();
            set_steps(train, 1500, 75);
        }
        "proxy" => train_proxy(&mut config, (2, 128), 256, 5e-3, 1000),
        "proxy-nano" => train_proxy(&mut config, (4, 64), 256, 1e-3, 1500),
        "proxy-mx" => train_proxy(&mut config, (4, 512), 2048, 6e-4, 9000),
        "proxy-ln-fix" => train_proxy(&mut config, (3, 512), 2048, 5e-4, 11_000),
        "gpt2-124m" => {
            let sizes = gpt(12, 768, 1024);
            *model = decoder::Config { vocab: 50_304, heads: 12, kv_heads: 12, ..sizes }.into();
            set_steps(train, 600_000, 2000);
            (train.batch, train.accumulate, train.lr, train.lr_min) = (480, 40, 6e-4, 6e-5);
            published(record);
        }
        "llama-120m" | "llama-7b" => {
            let sizes = match name {
                "llama-120m" => decoder::Config { heads: 12, ..llama(12, 768, 2048, 2048) },
                _ => decoder::Config { heads: 32, kv_heads: 32, ..llama(32, 4096, 11_008, 4096) },
            };
            *model = decoder::Config { vocab: 32_000, ..sizes }.into();
            set_steps(train, if name == "llama-7b" { 5000 } else { 1_430_512 }, 2000);
            (train.batch, train.accumulate, train.lr, train.lr_min) = (512, 64, 4e-4, 4e-5);
            train.decay = Decay::All;
            published(record);
        }
        "gla-340m" | "gla-1.3b" | "gla-7b" | "sa-340m" | "sa-1.3b" | "sa-7b" => {
            let sizes = match name {
                "gla-340m" => gla(24, 1024, 2816, 4),
                "gla-1.3b" => gla(24, 2048, 5632, 4),
                "gla-7b" => gla(32, 4096, 11_008, 16),
                "sa-340m" => softmax(24, 1024, 2816, 16),
                "sa-1.3b" => softmax(24, 2048, 5632, 32),
                _ => decoder::Config { kv_heads: 8, ..softmax(32, 4096, 11_008, 32) },
            };
            *model = decoder::Config { vocab: 32_000, context: 2048, ..sizes }.into();
            train_fla(train);
            published(record);
        }
        "qwen3-1.7b" => {
            *model = decoder::Config {
                vocab: 151_936,
                context: 2048,
                kv_heads: 8,
                qk_norm: QkNorm::Head,
                position: Position::Rope { base: 1e6 },
                tied: true,
                ..softmax(28, 2048, 6144, 16)
            }
            .into();
            train_fla(train);
            published(record);
        }
        _ if olmo_layers(name).is_some() => {
            let layers = olmo_layers(name).unwrap_or(1);
            let sizes = olmo(layers, 64 * layers, layers, 512);
            *model = decoder::Config { vocab: 32_000, ..sizes }.into();
            (train.batch, train.accumulate) = (512, 64);
            let operations = 6.0 * model.layout().len() as f64 * (512.0 * 512.0);
            let steps = (2e17 / operations) as u64;
            set_steps(train, steps.max(1), steps / 5);
            (train.lr, train.lr_min, train.weight_decay, train.eps) = (2e-4, 2e-5, 0.0, 1e-15);
            published(record);
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

/// N of `olmo-lN`, as far as the study's grid goes.
fn olmo_layers(name: &str) -> Option<usize> {
    let number = name.strip_prefix("olmo-l")?;
    number.parse().ok().filter(|n: &usize| (1..=40).contains(n) && n.to_string() == number)
}

fn set_steps(train: &mut Train, steps: u64, warmup: u64) {
    (train.steps, train.warmup) = (steps, warmup);
}

/// The training of Flash Linear Attention's GLA-340M.
fn train_fla(train: &mut Train) {
    set_steps(train, 20_480, 1024);
    (train.batch, train.accumulate) = (32, 8);
    (train.lr, train.lr_min, train.eps) = (3e-4, 3e-5, 1e-15);
}

/// Records for runs of many steps.
fn published(record: &mut Record) {
    (record.eval_every, record.checkpoint_every) = (1000, 1000);
}

/// The training of the student-teacher experiments: Adam, constant rate, nothing clipped.
fn train_proxy(
    config: &mut Config,
    (layers, width): (usize, usize),
    batch: usize,
    lr: f64,
    steps: u64,
) {
    let shape = proxy::Config { layers, width, ..proxy::Config::default() };
    config.model = model::Config::Proxy(shape);
    let train = &mut config.train;
    set_steps(train, steps, 0);
    (train.batch, train.lr, train.lr_min, train.schedule) = (batch, lr, lr, Schedule::Constant);
    (train.beta1, train.beta2, train.eps) = (0.9, 0.999, 1e-8);
    (train.weight_decay, train.clip) = (0.0, 0.0);
    config.record.eval_every = 200;
    config.record.checkpoint_every = 500;
    config.record.eval_windows = 0;
}
