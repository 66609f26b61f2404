//! Steps of training of every family under every kind of recipe, to be compared between devices.

use crate::nn::Cpu;
use crate::nn::parameters::Entry;
use crate::recipe::device::Quantize;
use crate::train::config::Config;
use crate::train::preset::preset;
use crate::train::run::load_data;
use crate::train::trainer::Trainer;
use exmy::error::Result;

use super::{Output, bits};

/// A model of each family, small and of ragged sizes: a preset and what is changed of it. Together they have
/// every choice that a decoder has and that another operation or another order of operations follows from.
pub const FAMILIES: [(&str, &str, &str); 7] = [
    (
        "llama",
        "nano",
        "[model]\nlayers = 2\nd_model = 64\nheads = 4\nkv_heads = 2\nhidden = 96\ncontext = 33\n\
         [train]\nbatch = 6\naccumulate = 2",
    ),
    (
        "gpt",
        "nanogpt-cpu",
        "[model]\nlayers = 2\nd_model = 64\nheads = 2\nkv_heads = 2\nhidden = 160\ncontext = 40\n\
         [train]\nbatch = 4",
    ),
    (
        "gla",
        "gla-mini",
        "[model]\nlayers = 2\nd_model = 64\nhidden = 96\ncontext = 37\nheads = 2\nkv_heads = 2\n\
         [model.gla]\nheads = 2\n[train]\nbatch = 3",
    ),
    (
        "proxy",
        "proxy",
        "[model]\nlayers = 2\nwidth = 64\nvalidation_rows = 96\n[train]\nbatch = 96",
    ),
    // Norms after what they norm, over all queries and all keys.
    (
        "olmo2",
        "nano",
        "[model]\nd_model = 48\nheads = 3\nkv_heads = 3\nhidden = 88\ncontext = 35\n\
         norm_place = 'after'\nqk_norm = 'full'\n[train]\nbatch = 4\nz_loss = 1e-4",
    ),
    // Qwen2's biases, Qwen3's norms and heads, Llama 3.1's positions: pairs of all three kinds.
    (
        "qwen",
        "nano",
        "[model]\nd_model = 48\nheads = 4\nkv_heads = 2\nhead_dim = 20\nhidden = 72\ncontext = 39\n\
         qk_norm = 'head'\nrope_scaling = 'llama3:8:1:4:64'\nbias = { qkv = true }\n[train]\nbatch = 4",
    ),
    // All its biases, the other GELU, a place to rest on, a head of its own; a layer of the other mixer.
    (
        "gpt2",
        "gpt-nano",
        "[model]\nd_model = 48\nheads = 3\nkv_heads = 3\nhidden = 152\ncontext = 41\nlayers = 3\n\
         mlp = 'gelu-tanh'\nnorm_bias = true\nsink = true\ntied = false\nmixer = 'attention,gla'\n\
         bias = { qkv = true, o = true, mlp = true }\n[model.gla]\nheads = 2\n[train]\nbatch = 4",
    ),
];

/// Recipes of all kinds: formats, block formats, stochastic rounding, masks, factors, rounded steps, windows,
/// rotations and hot channels.
pub const RECIPES: [&str; 12] = [
    "f32",
    "bf16",
    "e5m2@rtz",
    "e4m3@sr8",
    "mxfp8-mix",
    "mxfp4",
    "nvfp4",
    "bitred-e8m3+input=bf16>e8m4@odd+output=times1.0877>>bf16",
    "mxpaper-e4m3",
    "msamp-o1",
    "nv-nvfp4",
    "chon",
];

/// Recipes of Hopper's tensor cores: block formats, scales of whole tensors, rotations without whole groups,
/// hot channels, windows, codes with one scale.
pub const TENSOR_CORES: [&str; 5] = [
    "mxfp8-e4m3+sums=hopper:bf16",
    "nv-nvfp4+sums=hopper:bf16",
    "chon+sums=hopper:bf16",
    "msamp-o1+sums=hopper:bf16",
    "e4m3/tensor:e8m0@rceil+sums=hopper:e4m3",
];

/// The configuration of a family under a recipe.
///
/// # Errors
/// If a preset has changed so that these sizes do not go with it.
pub fn config((_, name, changes): (&str, &str, &str), recipe: &str) -> Result<Config> {
    let mut config = preset(name)?.overlaid(changes)?.with_setting(&format!("recipe={recipe}"))?;
    config.train = config.train.with_steps(10);
    config.record.eval_windows = 4;
    Ok(config)
}

/// Trains so many steps on the CPU, as [`run`].
///
/// # Errors
/// If the configuration is impossible.
pub fn run_on_cpu(config: &Config, name: &str, steps: usize) -> Result<Vec<Output>> {
    run(&Cpu::new(), config, name, steps)
}

/// Trains so many steps, and evaluates: losses, gradient norms, and each tensor's gradient, weights and
/// moments.
///
/// # Errors
/// If the configuration is impossible, or the device fails.
pub fn run<D: Quantize>(
    device: &D,
    config: &Config,
    name: &str,
    steps: usize,
) -> Result<Vec<Output>> {
    let mut config = config.clone();
    let data = load_data(&mut config)?;
    if let Some(model) = config.model.decoder_mut() {
        model.vocab = model.vocab.max(data.vocab);
    }
    let mut trainer = Trainer::on(device.clone(), &config, &data)?;
    let mut outputs = Vec::new();
    let mut keep = |what: String, numbers| {
        let name = format!("{name}, {steps} steps: {what}");
        outputs.push(Output { name, kernels: Vec::new(), numbers });
    };
    for number in 1..=steps {
        let step = trainer.step(None);
        keep(format!("loss of step {number}, bits of f64"), bits(step.loss));
        keep(format!("gradient norm of step {number}, bits of f64"), bits(step.grad_norm));
    }
    keep("validation loss, bits of f64".into(), bits(trainer.validation_loss()));
    trainer.check()?;
    let state = trainer.state();
    let all = [
        ("gradient", trainer.grads()),
        ("weights", state.params),
        ("first moment", state.m),
        ("second moment", state.v),
    ];
    // An optimizer has two moments, one or none.
    for (what, numbers) in all.into_iter().filter(|(_, numbers)| !numbers.is_empty()) {
        for Entry { name, shape, range, .. } in config.model.layout().iter() {
            keep(format!("{what} of {name} {shape:?}"), numbers[range.clone()].to_vec());
        }
    }
    Ok(outputs)
}
