//! The folders' models as llama.cpp's converter would write them: the same logits.
//!
//! Names and keys are those of the package gguf (`gguf.constants`), the order of rows that of its
//! `LlamaModel.permute`.

use super::{data, logits, truth};
use exmy::safetensors::Reader;
use exmy_train::nn::rope::{Scaling, frequencies};
use exmy_train::published::Published;
use std::path::Path;

/// A tensor's name, extents and values.
type Tensor = (String, Vec<usize>, Vec<f32>);

/// A GGUF file of numbers in the metadata and tensors in f32.
fn gguf(architecture: &str, keys: &[(&str, f32)], tensors: &[Tensor]) -> Vec<u8> {
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend((tensors.len() as u64).to_le_bytes());
    file.extend((keys.len() as u64 + 1).to_le_bytes());
    let text = |file: &mut Vec<u8>, text: &str| {
        file.extend((text.len() as u64).to_le_bytes());
        file.extend(text.bytes());
    };
    text(&mut file, "general.architecture");
    file.extend(8_u32.to_le_bytes());
    text(&mut file, architecture);
    for (key, value) in keys {
        text(&mut file, &format!("{architecture}.{key}"));
        // Whole numbers are u32, others f32.
        if value.fract() == 0.0 {
            file.extend(4_u32.to_le_bytes());
            file.extend((*value as u32).to_le_bytes());
        } else {
            file.extend(6_u32.to_le_bytes());
            file.extend(value.to_le_bytes());
        }
    }
    let mut offset = 0_u64;
    for (name, shape, values) in tensors {
        text(&mut file, name);
        file.extend((shape.len() as u32).to_le_bytes());
        shape.iter().rev().for_each(|&extent| file.extend((extent as u64).to_le_bytes()));
        file.extend(0_u32.to_le_bytes());
        file.extend(offset.to_le_bytes());
        offset += (4 * values.len() as u64).next_multiple_of(32);
    }
    for (_, _, values) in tensors {
        file.resize(file.len().next_multiple_of(32), 0);
        values.iter().for_each(|value| file.extend(value.to_le_bytes()));
    }
    file
}

/// A tensor of a folder under its name in GGUF.
fn converted(architecture: &str, name: &str, shape: &[usize], values: Vec<f32>) -> Tensor {
    let plain = name.strip_prefix("model.").or(name.strip_prefix("transformer.")).unwrap_or(name);
    let (stem, kind) = plain.rsplit_once('.').unwrap();
    let part = |stem: &str| match stem {
        "embed_tokens" | "wte" => "token_embd",
        "wpe" => "position_embd",
        "norm" | "ln_f" => "output_norm",
        "lm_head" => "output",
        "input_layernorm" | "ln_1" => "attn_norm",
        "self_attn.q_proj" => "attn_q",
        "self_attn.k_proj" => "attn_k",
        "self_attn.v_proj" => "attn_v",
        "self_attn.o_proj" | "attn.c_proj" => "attn_output",
        "self_attn.q_norm" => "attn_q_norm",
        "self_attn.k_norm" => "attn_k_norm",
        "attn.c_attn" => "attn_qkv",
        "post_attention_layernorm" if architecture == "olmo2" => "post_attention_norm",
        "post_feedforward_layernorm" => "post_ffw_norm",
        "post_attention_layernorm" | "ln_2" => "ffn_norm",
        "mlp.gate_proj" => "ffn_gate",
        "mlp.up_proj" | "mlp.c_fc" => "ffn_up",
        "mlp.down_proj" | "mlp.c_proj" => "ffn_down",
        other => panic!("{other}"),
    };
    let block = stem.strip_prefix("layers.").or(stem.strip_prefix("h."));
    let renamed = match block.and_then(|rest| rest.split_once('.')) {
        Some((layer, rest)) => format!("blk.{layer}.{}.{kind}", part(rest)),
        None => format!("{}.{kind}", part(stem)),
    };
    let (mut shape, mut values) = (shape.to_vec(), values);
    if stem.contains(".c_") && shape.len() == 2 {
        let [rows, cols] = [shape[0], shape[1]];
        let places = (0..cols).flat_map(|j| (0..rows).map(move |i| i * cols + j));
        values = places.map(|at| values[at]).collect();
        shape.reverse();
    }
    let heads = [("q_proj", 4), ("k_proj", 2)].into_iter().find(|(part, _)| stem.ends_with(part));
    if let Some((_, heads)) = heads.filter(|_| architecture == "llama") {
        // reshape(heads, 2, half, width).swapaxes(1, 2)
        let (half, width) = (shape[0] / heads / 2, values.len() / shape[0]);
        let row = |h: usize, i: usize, j: usize| (h * 2 * half + j * half + i) * width;
        let rows = (0..heads).flat_map(|h| (0..half).flat_map(move |i| [(h, i, 0), (h, i, 1)]));
        values = rows.flat_map(|(h, i, j)| values[row(h, i, j)..][..width].to_vec()).collect();
    }
    (renamed, shape, values)
}

fn tensors(architecture: &str, folder: &Path) -> Vec<Tensor> {
    let mut reader = Reader::open(folder.join("model.safetensors")).unwrap();
    let entries = reader.header().entries().to_vec();
    let each = entries.iter().map(|entry| {
        let values = reader.read_f32(&entry.name).unwrap();
        converted(architecture, &entry.name, &entry.shape, values)
    });
    each.collect()
}

const SIZES: [(&str, f32); 6] = [
    ("context_length", 64.0),
    ("embedding_length", 32.0),
    ("block_count", 2.0),
    ("attention.head_count", 4.0),
    ("rope.freq_base", 10_000.0),
    ("vocab_size", 96.0),
];

const LLAMA: [(&str, f32); 2] = [("feed_forward_length", 48.0), ("attention.head_count_kv", 2.0)];
const EPS: &str = "attention.layer_norm_rms_epsilon";

#[test]
fn every_architecture_has_the_logits_of_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let of_heads = ["attention.key_length", "attention.value_length"].map(|key| (key, 16.0));
    let of_gpt2 = [("attention.layer_norm_epsilon", 1e-5), ("feed_forward_length", 128.0)];
    for (family, architecture, more) in [
        ("llama", "llama", [&LLAMA[..], &[(EPS, 1e-6)]].concat()),
        ("mistral", "llama", [&LLAMA[..], &[(EPS, 1e-6)]].concat()),
        ("qwen2", "qwen2", [&LLAMA[..], &[(EPS, 1e-6)]].concat()),
        ("qwen3", "qwen3", [&LLAMA[..], &[(EPS, 1e-6)], &of_heads].concat()),
        ("olmo2", "olmo2", [&LLAMA[..], &[(EPS, 1e-5)]].concat()),
        ("gpt2", "gpt2", of_gpt2.to_vec()),
    ] {
        let (tokens, expected) = truth(&data(family).join("truth.safetensors"));
        let keys = [&SIZES[..], &more].concat();
        let file = gguf(architecture, &keys, &tensors(architecture, &data(family)));
        let path = folder.path().join(format!("{family}.gguf"));
        std::fs::write(&path, file).unwrap();
        let error = super::farthest(&logits(&path, &tokens), &expected);
        assert!(error < 1e-5, "{family}: {error:e}");
    }
}

/// Llama 3's slowed rotations come as a tensor of divisors.
#[test]
fn divisors_of_llama3_are_its_scaling() {
    let scaling = Scaling::Llama3 { factor: 32.0, low: 1.0, high: 4.0, context: 8192.0 };
    let divisors = |scaling| -> Vec<f32> {
        let [plain, slowed] = [Scaling::None, scaling].map(|scaling| frequencies(8, 5e5, scaling));
        plain.iter().zip(&slowed).map(|(plain, slowed)| (plain / slowed) as f32).collect()
    };
    let folder = tempfile::tempdir().unwrap();
    let open = |divisors: Vec<f32>| {
        let mut tensors = tensors("llama", &data("llama"));
        tensors.push(("rope_freqs.weight".into(), vec![4], divisors));
        let mut keys = [&SIZES[..], &LLAMA, &[(EPS, 1e-6)]].concat();
        keys.iter_mut().filter(|key| key.0 == "rope.freq_base").for_each(|key| key.1 = 500_000.0);
        let path = folder.path().join("model.gguf");
        std::fs::write(&path, gguf("llama", &keys, &tensors)).unwrap();
        Published::open(&path).map(|model| model.config().rope_scaling)
    };
    // 500000^(-1/4) turns 49 times in 8192 tokens, 500000^(-1/2) 1.8 times, 500000^(-3/4) 0.07 times.
    let found = divisors(scaling);
    assert!(found[1] == 1.0 && found[2] > 1.0 && found[2] < 32.0 && found[3] == 32.0, "{found:?}");
    assert_eq!(open(divisors(scaling)).map_err(|error| error.to_string()), Ok(scaling));
    let error = open(divisors(Scaling::Linear { factor: 2.0 })).unwrap_err().to_string();
    assert!(error.contains("rope_freqs.weight"), "{error}");
}
