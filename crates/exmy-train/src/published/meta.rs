//! What a GGUF file says of a model's shape, and the order of rows that it has of its own.
//!
//! The keys are those of llama.cpp's `gguf-py/gguf/constants.py` (<https://github.com/ggml-org/llama.cpp>).
//! Its converter writes the queries and keys of the architecture `llama` with the two halves of each head
//! interleaved, the order in which the original Llama rotates neighbours; [`unpermute`] puts the halves back.

use super::family::Shape;
use super::gguf::Gguf;
use super::gguf::blocks::Type;
use crate::nn::decoder::{
    Biases, Config, InitScheme, Mlp, Norm, NormPlace, Position, QkNorm, Scaling,
};
use crate::nn::rope;
use exmy::error::{Error, Result};
use exmy::safetensors::quoted;

const ARCHITECTURE: &str = "general.architecture";

/// Architectures that are read; Mistral and SmolLM2 are `llama`.
const ARCHITECTURES: [&str; 5] = ["gpt2", "llama", "olmo2", "qwen2", "qwen3"];

/// Keys of an architecture that are used or change nothing here.
const KNOWN: [&str; 18] = [
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.factor",
    "rope.scaling.type",
    "rope.scaling.original_context_length",
    "rope.scaling.finetuned",
    "vocab_size",
];

/// The shape that the metadata describe.
///
/// # Errors
/// If a key is missing, or a key or its value is not supported.
pub(super) fn shape(gguf: &Gguf, file: &[u8]) -> Result<Shape> {
    let architecture = gguf.text(ARCHITECTURE)?.unwrap_or_default();
    if !ARCHITECTURES.contains(&architecture) {
        let what = format!("{ARCHITECTURE} = {} is not supported", quoted(architecture));
        return Err(Error::new(what).hint(format!("{} are", ARCHITECTURES.join(", "))));
    }
    let prefix = format!("{architecture}.");
    for key in gguf.keys() {
        if key.strip_prefix(&prefix).is_some_and(|rest| !KNOWN.contains(&rest)) {
            return Err(Error::new(format!("the key {} is not supported", quoted(key))));
        }
    }
    let name = |rest: &str| format!("{prefix}{rest}");
    let number = |rest: &str| gguf.number(&name(rest));
    let size = |rest: &str| -> Result<Option<usize>> {
        let Some(found) = number(rest)? else { return Ok(None) };
        let fits = found >= 1.0 && found <= f64::from(u32::MAX) && found.fract() == 0.0;
        let wrong = || Error::new(format!("{} = {found} is no size", name(rest)));
        fits.then_some(Some(found as usize)).ok_or_else(wrong)
    };
    let needed = |rest: &str| {
        size(rest)?.ok_or_else(|| Error::new(format!("there is no key {}", name(rest))))
    };
    let tensor = |name: &str| gguf.tensors().get(name);
    let table = tensor("token_embd.weight");
    let Some(&[vocab, d_model]) = table.map(|table| &table.shape[..]) else {
        return Err(Error::new("there is no matrix token_embd.weight"));
    };
    let heads = needed("attention.head_count")?;
    let key = size("attention.key_length")?;
    if let (Some(key), Some(value)) = (key, size("attention.value_length")?)
        && key != value
    {
        let what = format!(
            "{} = {value} is not {key}, the length of keys",
            name("attention.value_length")
        );
        return Err(Error::new(what).hint("values as long as keys are supported"));
    }
    let head_dim = key.unwrap_or(d_model / heads);
    if size("rope.dimension_count")?.is_some_and(|rotated| rotated != head_dim) {
        let what =
            format!("{} is not {head_dim}, the size of a head", name("rope.dimension_count"));
        return Err(Error::new(what).hint("rotations of whole heads are supported"));
    }
    let has = |name: &str| tensor(&format!("blk.0.{name}")).is_some();
    let is_gpt2 = architecture == "gpt2";
    let eps =
        if is_gpt2 { "attention.layer_norm_epsilon" } else { "attention.layer_norm_rms_epsilon" };
    let eps = number(eps)?.ok_or_else(|| Error::new(format!("there is no key {}", name(eps))))?;
    let mut config = Config {
        vocab,
        context: needed("context_length")?,
        layers: needed("block_count")?,
        d_model,
        heads,
        kv_heads: size("attention.head_count_kv")?.unwrap_or(heads),
        head_dim: if head_dim.checked_mul(heads) == Some(d_model) { 0 } else { head_dim },
        hidden: needed("feed_forward_length")?,
        norm: if is_gpt2 { Norm::LayerNorm } else { Norm::RmsNorm },
        norm_bias: is_gpt2,
        norm_place: if architecture == "olmo2" { NormPlace::After } else { NormPlace::Before },
        norm_eps: eps,
        qk_norm: match architecture {
            "olmo2" => QkNorm::Full,
            "qwen3" => QkNorm::Head,
            _ => QkNorm::None,
        },
        position: match is_gpt2 {
            true => Position::Learned,
            false => Position::Rope { base: number("rope.freq_base")?.unwrap_or(10_000.0) },
        },
        mlp: if is_gpt2 { Mlp::GeluTanh } else { Mlp::Swiglu },
        tied: tensor("output.weight").is_none(),
        init: InitScheme::Normal,
        rope_scaling: Scaling::None,
        bias: Biases {
            qkv: has("attn_q.bias") || has("attn_qkv.bias"),
            o: has("attn_output.bias"),
            mlp: has("ffn_up.bias"),
        },
        ..Config::default()
    };
    let valid = |config: &Config| config.validate().map_err(Error::from_cause);
    valid(&config)?;
    if let Position::Rope { base } = config.position {
        let plain = rope::frequencies(config.head_dim(), base, Scaling::None);
        config.rope_scaling = scaling(gguf, file, &prefix, &plain)?;
    }
    valid(&config)?;
    Ok(Shape { config, full: size("attention.sliding_window")? })
}

/// How rotations are slowed down. Llama 3's converter writes what each pair's angle is divided by as a
/// tensor; the numbers of its configuration, but for the factor, have been the same in all releases, and
/// nothing else is read.
fn scaling(gguf: &Gguf, file: &[u8], prefix: &str, plain: &[f64]) -> Result<Scaling> {
    if let Some(tensor) = gguf.tensors().get("rope_freqs.weight") {
        let mut divisors = vec![0.0; plain.len()];
        let fits = tensor.shape == [plain.len()] && tensor.dtype == Type::F32;
        if fits {
            tensor.dtype.dequantize(&file[tensor.range.clone()], &mut divisors);
        }
        let factor = divisors.iter().copied().fold(0.0_f32, f32::max).into();
        let scaling = Scaling::Llama3 { factor, low: 1.0, high: 4.0, context: 8192.0 };
        let is_llama3 = fits
            && plain.iter().zip(&divisors).all(|(&plain, &divisor)| {
                let expected = plain / scaling.of(plain);
                (f64::from(divisor) / expected - 1.0).abs() < 1e-5
            });
        if is_llama3 {
            return Ok(scaling);
        }
        let what = "the tensor rope_freqs.weight is not supported: it is not Llama 3's";
        return Err(Error::new(what).hint("read the model from its folder of Hugging Face"));
    }
    let key = format!("{prefix}rope.scaling.type");
    match gguf.text(&key)? {
        None | Some("none") => Ok(Scaling::None),
        Some("linear") => {
            let factor = gguf.number(&format!("{prefix}rope.scaling.factor"))?.unwrap_or(1.0);
            Ok(Scaling::Linear { factor })
        }
        Some(other) => Err(Error::new(format!("{key} = {} is not supported", quoted(other)))
            .hint("none and linear are")),
    }
}

/// Puts the halves of the heads of queries and keys back, where the file has them interleaved.
pub(super) fn unpermute(gguf: &Gguf, name: &str, config: &Config, values: &mut [f32]) {
    let heads = match name.rsplit('.').nth(1) {
        Some("q_proj") => config.heads,
        Some("k_proj") => config.kv_heads,
        _ => return,
    };
    if !matches!(gguf.text(ARCHITECTURE), Ok(Some("llama"))) {
        return;
    }
    let half = config.head_dim() / 2;
    let width = values.len() / (heads * 2 * half);
    for head in values.chunks_exact_mut(2 * half * width) {
        let interleaved = head.to_vec();
        for (row, from) in interleaved.chunks_exact(width).enumerate() {
            let to = row % 2 * half + row / 2;
            head[to * width..(to + 1) * width].copy_from_slice(from);
        }
    }
}
