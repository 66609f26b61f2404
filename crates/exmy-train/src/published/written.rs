//! The `config.json` of a model whose file has none: [`family`] the other way round.

use super::family;
use crate::nn::decoder::{Config, Mixer, Mlp, Norm, NormPlace, Position, QkNorm, Scaling};
use exmy::error::{Error, Result};
use serde_json::{Value, json};

/// The keys of a Llama or one of those that differ from it in a few choices.
///
/// # Errors
/// If they would not be read as this shape: it is of another family.
pub fn keys(config: &Config) -> Result<Value> {
    let family = match (config.norm_place, config.qk_norm, config.bias.qkv, config.bias.o) {
        (NormPlace::After, ..) => "olmo2",
        (_, QkNorm::Head, ..) => "qwen3",
        (.., true, false) => "qwen2",
        _ => "llama",
    };
    let Position::Rope { base } = config.position else { return Err(other(config)) };
    let scaling = match config.rope_scaling {
        Scaling::None => Value::Null,
        Scaling::Linear { factor } => json!({ "rope_type": "linear", "factor": factor }),
        Scaling::Llama3 { factor, low, high, context } => json!({
            "rope_type": "llama3",
            "factor": factor,
            "low_freq_factor": low,
            "high_freq_factor": high,
            "original_max_position_embeddings": context,
        }),
    };
    let keys = json!({
        "model_type": family,
        "vocab_size": config.vocab,
        "hidden_size": config.d_model,
        "intermediate_size": config.hidden,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim(),
        "max_position_embeddings": config.context,
        "hidden_act": "silu",
        "rms_norm_eps": config.norm_eps,
        "rope_theta": base,
        "rope_scaling": scaling,
        "attention_bias": config.bias.o,
        "mlp_bias": config.bias.mlp,
        "tie_word_embeddings": config.tied,
    });
    let read = family::read(keys.to_string().as_bytes()).map_err(|_| other(config))?;
    // A model that attends through a window says so elsewhere.
    if read.config == *config { Ok(keys) } else { Err(other(config)) }
}

fn other(config: &Config) -> Error {
    let has = [
        (
            "layers of gated linear attention",
            (0..config.layers).any(|i| config.mixer.of(i) == Mixer::Gla),
        ),
        ("layer norms", config.norm != Norm::RmsNorm),
        ("norms without gains", !config.norm_affine),
        ("positions that are not rotary", !matches!(config.position, Position::Rope { .. })),
        ("an MLP that is not SwiGLU", config.mlp != Mlp::Swiglu),
        ("a sink", config.sink),
    ];
    let has: Vec<&str> = has.iter().filter(|(_, has)| *has).map(|(what, _)| *what).collect();
    let what = if has.is_empty() { "this combination of choices".into() } else { has.join(", ") };
    Error::new(format!("no config.json of the family of Llama has {what}"))
        .hint("models are written whose config.json is there, and Llama, Qwen2, Qwen3 and OLMo 2")
}
