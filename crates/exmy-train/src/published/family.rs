//! `config.json` of Hugging Face's models as the shape of a decoder.
//!
//! Every key is either used, known to change nothing in a forward pass, or an error that names it. Defaults
//! of keys that a file lacks are those of the family's class in `transformers`, of `gla` that of Flash Linear
//! Attention (<https://github.com/fla-org/flash-linear-attention>, `GLAConfig`).

use crate::nn::decoder::{
    Biases, Config, Gla, InitScheme, Mixer, Mixers, Mlp, Norm, NormPlace, Position, QkNorm, Scaling,
};
use exmy::error::{Error, Result};
use exmy::safetensors::quoted;
use serde_json::{Map, Value};

/// A model's shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// The decoder; its context is the longest that the file promises.
    pub config: Config,
    /// The longest sequence of which every token sees all before it, where the model attends through a
    /// sliding window.
    pub full: Option<usize>,
}

/// The families that are read, as `model_type` has them.
pub const FAMILIES: [&str; 7] = ["gla", "gpt2", "llama", "mistral", "olmo2", "qwen2", "qwen3"];

/// The key of this project's own: what `down_proj` reads is to be rotated by signs of this seed, as its
/// weights were.
pub const ROTATE_DOWN: &str = "exmy_rotate_down";

/// Keys that change nothing in a forward pass in f32.
const IGNORED: [&str; 32] = [
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "attn_implementation",
    "attn_pdrop",
    "bos_token_id",
    "dtype",
    "embd_pdrop",
    "eos_token_id",
    "gradient_checkpointing",
    "id2label",
    "initializer_range",
    "is_llama_config",
    "label2id",
    "model_type",
    "n_ctx",
    "output_attentions",
    "output_hidden_states",
    "pad_token_id",
    "reorder_and_upcast_attn",
    "resid_pdrop",
    "return_dict",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "use_cache",
];

/// Keys of `gla` that change nothing in a forward pass in f32 without a convolution.
const FUSED: [&str; 7] = [
    "conv_bias",
    "conv_size",
    "fuse_cross_entropy",
    "fuse_linear_cross_entropy",
    "fuse_norm",
    "fuse_swiglu",
    "use_l2warp",
];

/// The keys of a file that are yet to be looked at.
struct Keys(Map<String, Value>);

fn wrong(key: &str, found: &Value, works: &str) -> Error {
    let found: String = found.to_string().chars().take(60).collect();
    Error::new(format!("config.json: {key} = {found} is not supported")).hint(works.to_owned())
}

impl Keys {
    /// The value of a key; `null` is none.
    fn take(&mut self, key: &str) -> Option<Value> {
        self.0.remove(key).filter(|value| !value.is_null())
    }

    fn size(&mut self, key: &str) -> Result<Option<usize>> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let size = value.as_u64().and_then(|size| usize::try_from(size).ok());
        size.filter(|&size| size > 0)
            .map(Some)
            .ok_or_else(|| wrong(key, &value, "a whole number above 0"))
    }

    fn seed(&mut self, key: &str) -> Result<Option<u64>> {
        let Some(value) = self.take(key) else { return Ok(None) };
        value.as_u64().map(Some).ok_or_else(|| wrong(key, &value, "a seed, a whole number"))
    }

    fn needed(&mut self, key: &str) -> Result<usize> {
        self.size(key)?.ok_or_else(|| Error::new(format!("config.json has no key {key}")))
    }

    fn number(&mut self, key: &str) -> Result<Option<f64>> {
        let Some(value) = self.take(key) else { return Ok(None) };
        value.as_f64().map(Some).ok_or_else(|| wrong(key, &value, "a number"))
    }

    fn truth(&mut self, key: &str, default: bool) -> Result<bool> {
        let Some(value) = self.take(key) else { return Ok(default) };
        value.as_bool().ok_or_else(|| wrong(key, &value, "true or false"))
    }

    /// Refuses any value of a key but this one.
    fn only(&mut self, key: &str, allowed: &Value) -> Result<()> {
        match self.take(key) {
            Some(value) if value != *allowed => {
                Err(wrong(key, &value, &format!("{allowed} is, as a file without the key has it")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what nobody looked at.
    fn end(mut self) -> Result<()> {
        self.0.retain(|key, value| !(value.is_null() || IGNORED.contains(&key.as_str())));
        let Some((key, value)) = self.0.iter().next() else { return Ok(()) };
        Err(wrong(&quoted(key), value, "remove the key if it changes nothing in a forward pass"))
    }
}

/// The shape that a `config.json` describes.
///
/// # Errors
/// If it is no JSON object, lacks a key, or has a key or value that is not supported.
pub fn read(text: &[u8]) -> Result<Shape> {
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| Error::new("config.json is no JSON").because(error))?;
    let Value::Object(keys) = value else {
        return Err(Error::new("config.json is no object of JSON"));
    };
    let mut keys = Keys(keys);
    let family = keys.take("model_type");
    let family = family.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut shape = match family.as_str() {
        "gla" => gla(&mut keys)?,
        "gpt2" => gpt2(&mut keys)?,
        _ if FAMILIES.contains(&family.as_str()) => llama(&mut keys, &family)?,
        _ => {
            let what = format!("config.json: model_type = {} is not supported", quoted(&family));
            return Err(Error::new(what).hint(format!("{} are", FAMILIES.join(", "))));
        }
    };
    shape.config.rotate_down = keys.seed(ROTATE_DOWN)?;
    keys.end()?;
    shape.config.validate().map_err(|error| Error::new(format!("config.json: {error}")))?;
    Ok(shape)
}

/// Llama and those that differ from it in a few choices.
fn llama(keys: &mut Keys, family: &str) -> Result<Shape> {
    let (d_model, heads) = (keys.needed("hidden_size")?, keys.needed("num_attention_heads")?);
    let (tied, eps, context) = match family {
        "olmo2" => (false, 1e-5, 2048),
        "qwen2" | "qwen3" => (false, 1e-6, 32_768),
        "mistral" => (false, 1e-6, 4096 * 32),
        _ => (false, 1e-6, 2048),
    };
    let attention = keys.truth("attention_bias", false)?;
    keys.only("hidden_act", &"silu".into())?;
    keys.only("pretraining_tp", &1.into())?;
    keys.only("rope_interleaved", &false.into())?;
    keys.only("clip_qkv", &Value::Null)?;
    let head_dim = keys.size("head_dim")?.unwrap_or(if family == "qwen3" { 128 } else { 0 });
    let context = keys.size("max_position_embeddings")?.unwrap_or(context);
    let (base, rope_scaling) = rotations(keys)?;
    let config = Config {
        vocab: keys.needed("vocab_size")?,
        context,
        layers: keys.needed("num_hidden_layers")?,
        d_model,
        heads,
        kv_heads: keys.size("num_key_value_heads")?.unwrap_or(heads),
        // Not given where it is what it would be without: a run of this shape then has the usual name.
        head_dim: if head_dim.checked_mul(heads) == Some(d_model) { 0 } else { head_dim },
        hidden: keys.needed("intermediate_size")?,
        norm: Norm::RmsNorm,
        norm_place: if family == "olmo2" { NormPlace::After } else { NormPlace::Before },
        norm_eps: keys.number("rms_norm_eps")?.unwrap_or(eps),
        qk_norm: match family {
            "olmo2" => QkNorm::Full,
            "qwen3" => QkNorm::Head,
            _ => QkNorm::None,
        },
        position: Position::Rope { base },
        mlp: Mlp::Swiglu,
        tied: keys.truth("tie_word_embeddings", tied)?,
        init: InitScheme::Normal,
        rope_scaling,
        bias: Biases {
            qkv: attention || family == "qwen2",
            o: attention,
            mlp: keys.truth("mlp_bias", false)?,
        },
        ..Config::default()
    };
    let window = keys.size("sliding_window")?;
    // Qwen's blocks from the 29th on have the window, where nothing else is said; Mistral's all.
    let from = if family.starts_with("qwen") { 28 } else { 0 };
    let from = keys.size("max_window_layers")?.unwrap_or(from);
    let slides = keys.truth("use_sliding_window", family == "mistral")? && from < config.layers;
    let kinds = keys.take("layer_types");
    let full = match kinds {
        None => window.filter(|_| slides),
        Some(kinds) => sliding(&kinds, window)?,
    };
    Ok(Shape { config, full })
}

/// The sliding window of `layer_types`, if one of them has it.
fn sliding(kinds: &Value, window: Option<usize>) -> Result<Option<usize>> {
    let works = "a list of full_attention and sliding_attention is";
    let mut slides = false;
    for kind in kinds.as_array().ok_or_else(|| wrong("layer_types", kinds, works))? {
        match kind.as_str() {
            Some("full_attention") => {}
            Some("sliding_attention") => slides = true,
            _ => return Err(wrong("layer_types", kind, works)),
        }
    }
    match (slides, window) {
        (false, _) => Ok(None),
        (true, Some(window)) => Ok(Some(window)),
        (true, None) => Err(wrong("layer_types", kinds, "sliding_attention needs sliding_window")),
    }
}

/// Base and scaling of rotations, from `rope_theta` and `rope_scaling` or, as later files have it, from
/// `rope_parameters`.
fn rotations(keys: &mut Keys) -> Result<(f64, Scaling)> {
    let mut base = keys.number("rope_theta")?;
    let mut found: Option<(Scaling, Value)> = None;
    for key in ["rope_scaling", "rope_parameters"] {
        let Some(value) = keys.take(key) else { continue };
        let Value::Object(of) = value else {
            return Err(wrong(key, &value, "an object of JSON or null is"));
        };
        let shown = Value::Object(of.clone());
        let mut of = Keys(of);
        base = of.number("rope_theta")?.or(base);
        let kind = of.take("rope_type").or(of.take("type"));
        of.0.remove("type");
        let number = |of: &mut Keys, name: &str| {
            of.number(name)?.ok_or_else(|| wrong(key, &shown, &format!("{name} is needed")))
        };
        let scaling = match kind.as_ref().and_then(Value::as_str) {
            None | Some("default") => Scaling::None,
            Some("linear") => Scaling::Linear { factor: number(&mut of, "factor")? },
            Some("llama3") => Scaling::Llama3 {
                factor: number(&mut of, "factor")?,
                low: number(&mut of, "low_freq_factor")?,
                high: number(&mut of, "high_freq_factor")?,
                context: number(&mut of, "original_max_position_embeddings")?,
            },
            Some(_) => return Err(wrong(key, &shown, "the types default, linear and llama3 are")),
        };
        of.only("partial_rotary_factor", &1.0.into())?;
        of.end().map_err(|error| Error::new(format!("config.json: {key}")).because(error))?;
        match &found {
            Some((other, said)) if *other != scaling => {
                let works = format!("what rope_scaling says is, and that is {said}");
                return Err(wrong(key, &shown, &works));
            }
            _ => found = Some((scaling, shown)),
        }
    }
    let scaling = found.map_or(Scaling::None, |found| found.0);
    keys.only("partial_rotary_factor", &1.0.into())?;
    Ok((base.unwrap_or(10_000.0), scaling))
}

/// Flash Linear Attention's GLA.
fn gla(keys: &mut Keys) -> Result<Shape> {
    let form = keys.take("attn_mode").unwrap_or_else(|| "chunk".into());
    let forms = ["chunk", "fused_chunk", "fused_recurrent"];
    if !form.as_str().is_some_and(|form| forms.contains(&form)) {
        return Err(wrong(
            "attn_mode",
            &form,
            &format!("{} are, to the same end", forms.join(", ")),
        ));
    }
    for key in ["use_output_gate", "elementwise_affine", "use_gk"] {
        keys.only(key, &true.into())?;
    }
    for key in ["use_short_conv", "use_gv"] {
        keys.only(key, &false.into())?;
    }
    for key in ["hidden_act", "gate_fn"] {
        keys.only(key, &"swish".into())?;
    }
    for key in ["feature_map", "attn", "attnres_block_size"] {
        keys.only(key, &Value::Null)?;
    }
    // The layer knows these two, but a model does not hand them on.
    for key in ["gate_logit_normalizer", "gate_low_rank_dim"] {
        keys.only(key, &16.into())?;
    }
    // How it is computed, what is minimized, and the convolution that is not there.
    for key in FUSED {
        keys.take(key);
    }
    let d_model = keys.needed("hidden_size")?;
    let heads = keys.size("num_heads")?.unwrap_or(4);
    keys.only("num_kv_heads", &heads.into())?;
    // As GatedMLP: two thirds of so many widths, up to the next multiple of 256.
    let ratio = keys.number("hidden_ratio")?.unwrap_or(4.0);
    let thirds = (d_model as f64 * ratio * 2.0 / 3.0) as usize;
    let hidden = keys.size("intermediate_size")?;
    let hidden = hidden.unwrap_or(thirds.checked_next_multiple_of(256).unwrap_or(usize::MAX));
    let least = keys.number("clamp_min")?;
    if let Some(least) = least.filter(|least| *least >= 0.0) {
        let works = "a number below 0, or null for none, is: decays are below 1";
        return Err(wrong("clamp_min", &least.into(), works));
    }
    let gla = Gla::default();
    let config = Config {
        vocab: keys.needed("vocab_size")?,
        context: keys.size("max_position_embeddings")?.unwrap_or(2048),
        layers: keys.needed("num_hidden_layers")?,
        d_model,
        heads,
        kv_heads: heads,
        hidden,
        mixer: Mixers::all(Mixer::Gla),
        norm: Norm::RmsNorm,
        norm_eps: keys.number("norm_eps")?.unwrap_or(1e-6),
        position: Position::None,
        mlp: Mlp::Swiglu,
        tied: keys.truth("tie_word_embeddings", false)?,
        init: InitScheme::Normal,
        gla: Gla {
            heads,
            expand_k: keys.number("expand_k")?.unwrap_or(gla.expand_k),
            expand_v: keys.number("expand_v")?.unwrap_or(gla.expand_v),
            gate_min: least.unwrap_or(gla.gate_min),
            ..gla
        },
        ..Config::default()
    };
    Ok(Shape { config, full: None })
}

fn gpt2(keys: &mut Keys) -> Result<Shape> {
    let (d_model, heads) = (keys.needed("n_embd")?, keys.needed("n_head")?);
    keys.only("scale_attn_weights", &true.into())?;
    keys.only("scale_attn_by_inverse_layer_idx", &false.into())?;
    keys.only("add_cross_attention", &false.into())?;
    let function = keys.take("activation_function").unwrap_or_else(|| "gelu_new".into());
    let mlp = match function.as_str() {
        Some("gelu_new" | "gelu_pytorch_tanh") => Mlp::GeluTanh,
        Some("gelu") => Mlp::Gelu,
        Some("relu") => Mlp::Relu,
        _ => {
            let works = "gelu_new, gelu_pytorch_tanh, gelu and relu are";
            return Err(wrong("activation_function", &function, works));
        }
    };
    let config = Config {
        vocab: keys.needed("vocab_size")?,
        context: keys.size("n_positions")?.unwrap_or(1024),
        layers: keys.needed("n_layer")?,
        d_model,
        heads,
        kv_heads: heads,
        hidden: keys.size("n_inner")?.unwrap_or(d_model.saturating_mul(4)),
        norm: Norm::LayerNorm,
        norm_bias: true,
        norm_eps: keys.number("layer_norm_epsilon")?.unwrap_or(1e-5),
        position: Position::Learned,
        mlp,
        tied: keys.truth("tie_word_embeddings", true)?,
        init: InitScheme::Gpt2,
        bias: Biases { qkv: true, o: true, mlp: true },
        ..Config::default()
    };
    Ok(Shape { config, full: None })
}
