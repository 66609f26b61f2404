//! Models as others publish them, against transformers and gguf: `scripts/published-models.py` made the data,
//! and `tests/peers/flash_linear.py` that of `gla`, by Flash Linear Attention's recurrence.

mod blocks;
mod converted;
mod damaged;
mod evaluate;
mod generate;
mod gptq;
mod rotate;
mod search;
mod smooth;

use exmy::safetensors::{Dtype, Outline, Reader, Writer};
use exmy_train::nn::Cpu;
use exmy_train::nn::decoder::Decoder;
use exmy_train::nn::linear::Unquantized;
use exmy_train::published::Published;
use exmy_train::published::family;
use std::fs;
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/published/data").join(name)
}

/// Tokens and logits that transformers recorded.
fn truth(path: &Path) -> (Vec<u32>, Vec<f32>) {
    let mut reader = Reader::open(path).unwrap();
    let mut bytes = Vec::new();
    reader.read_into("tokens", &mut bytes).unwrap();
    let tokens = bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    (tokens, reader.read_f32("logits").unwrap())
}

fn logits(model: &Path, tokens: &[u32]) -> Vec<f32> {
    let mut model = Published::open(model).unwrap();
    let weights = model.weights(|_| {}).unwrap();
    let mut decoder = Decoder::<Cpu>::new(*model.config()).unwrap();
    let states = decoder.states(&weights, tokens, 1, &mut Unquantized).numbers().to_vec();
    decoder.logits_of(&weights, &states[..], &mut Unquantized).numbers().to_vec()
}

/// The largest difference of two lists of logits.
#[track_caller]
fn farthest(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Logits are up to 6; sums of two blocks of width 32 in another order differ by some 1e-6.
#[test]
fn families_have_the_logits_of_transformers() {
    for family in ["gla", "gpt2", "llama", "llama3", "mistral", "olmo2", "qwen2", "qwen3"] {
        let folder = data(family);
        let (tokens, expected) = truth(&folder.join("truth.safetensors"));
        let error = farthest(&logits(&folder, &tokens), &expected);
        assert!(error < 1e-5, "{family}: {error:e}");
    }
}

#[test]
fn a_gguf_of_all_types_has_the_logits_of_transformers() {
    let (tokens, expected) = truth(&data("blocks.safetensors"));
    let error = farthest(&logits(&data("blocks.gguf"), &tokens), &expected);
    assert!(error < 1e-5, "{error:e}");
}

/// The same model in two files with an index.
#[test]
fn several_files_are_one_model() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(data("llama/config.json"), folder.path().join("config.json")).unwrap();
    let mut reader = Reader::open(data("llama/model.safetensors")).unwrap();
    let entries = reader.header().entries().to_vec();
    let mut map = serde_json::Map::new();
    for (part, entries) in entries.chunks(entries.len().div_ceil(2)).enumerate() {
        let name = format!("model-0000{}-of-00002.safetensors", part + 1);
        let outlines: Vec<Outline> = entries
            .iter()
            .map(|entry| Outline::new(&*entry.name, Dtype::BF16, &entry.shape[..]))
            .collect();
        let mut writer =
            Writer::create(folder.path().join(&name), &outlines, Default::default()).unwrap();
        for entry in entries {
            let mut bytes = Vec::new();
            reader.read_into(&entry.name, &mut bytes).unwrap();
            writer.write(&entry.name, &bytes).unwrap();
            map.insert(entry.name.clone(), name.clone().into());
        }
        writer.finish().unwrap();
    }
    let index = serde_json::json!({"metadata": {}, "weight_map": map}).to_string();
    fs::write(folder.path().join("model.safetensors.index.json"), index).unwrap();
    let (tokens, _) = truth(&data("llama/truth.safetensors"));
    assert_eq!(logits(folder.path(), &tokens), logits(&data("llama"), &tokens));
    let outside = serde_json::json!({"weight_map": {"w": "../model.safetensors"}}).to_string();
    fs::write(folder.path().join("model.safetensors.index.json"), outside).unwrap();
    let error = Published::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("\"w\"") && error.contains("same folder"), "{error}");
}

/// A configuration of a family with one key changed or added.
fn with(family: &str, key: &str, value: serde_json::Value) -> String {
    with_all(family, serde_json::json!({key: value}))
}

/// The same with several keys.
fn with_all(family: &str, keys: serde_json::Value) -> String {
    let text = fs::read(data(family).join("config.json")).unwrap();
    let mut config: serde_json::Value = serde_json::from_slice(&text).unwrap();
    keys.as_object().unwrap().iter().for_each(|(key, value)| config[key] = value.clone());
    match family::read(config.to_string().as_bytes()) {
        Ok(shape) => format!("{shape:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_is_not_supported_is_named() {
    use serde_json::json;
    for (family, key, value) in [
        ("llama", "model_type", json!("mamba")),
        ("llama", "quantization_config", json!({"quant_method": "gptq"})),
        ("llama", "hidden_act", json!("gelu")),
        ("llama", "rope_scaling", json!({"rope_type": "yarn", "factor": 4.0})),
        ("llama", "partial_rotary_factor", json!(0.5)),
        ("llama", "num_key_value_heads", json!(3)),
        ("llama", "hidden_size", json!("32")),
        ("llama", "vocab_size", json!(-1)),
        ("llama", "exmy_rotate_down", json!(true)),
        ("qwen2", "layer_types", json!(["chunked_attention"])),
        ("gpt2", "scale_attn_by_inverse_layer_idx", json!(true)),
        ("gpt2", "activation_function", json!("silu")),
        ("gla", "attn_mode", json!("parallel")),
        ("gla", "num_kv_heads", json!(1)),
        ("gla", "feature_map", json!("elu")),
        ("gla", "use_short_conv", json!(true)),
        ("gla", "use_output_gate", json!(false)),
        ("gla", "gate_logit_normalizer", json!(8)),
        ("gla", "gate_low_rank_dim", json!(8)),
        ("gla", "hidden_act", json!("powlu")),
        ("gla", "clamp_min", json!(0.0)),
        ("gla", "expand_k", json!(0.51)),
        ("gla", "attn", json!({"layers": [1], "num_heads": 2})),
        ("gla", "attnres_block_size", json!(2)),
        ("gla", "rope_theta", json!(10_000.0)),
    ] {
        let error = with(family, key, value);
        let ours = if key == "num_key_value_heads" { "kv_heads" } else { key };
        assert!(error.contains("config.json") && error.contains(ours), "{error}");
    }
    assert!(with("llama", "use_cache", json!(false)).contains("Shape"));
    // Two thirds of four widths of 32, up to 256.
    assert!(with("gla", "intermediate_size", json!(null)).contains("hidden: 256"));
    assert!(with("gla", "attn_mode", json!("fused_recurrent")).contains("Shape"));
    assert!(with("mistral", "sliding_window", json!(16)).contains("full: Some(16)"));
    assert!(with("gpt2", "exmy_rotate_down", json!(7)).contains("rotate_down: Some(7)"));
}

/// Two keys may say how rotations are slowed down. transformers 5.24.0 takes `rope_scaling` where both are
/// there.
#[test]
fn two_ways_to_scale_rotations_must_agree() {
    use serde_json::json;
    let (linear, default) =
        (json!({"rope_type": "linear", "factor": 2.0}), json!({"rope_type": "default"}));
    let of = |old, new| with_all("llama", json!({"rope_scaling": old, "rope_parameters": new}));
    for (old, new) in [(&linear, &default), (&default, &linear)] {
        let error = of(old, new);
        assert!(error.contains("rope_parameters = ") && error.contains("rope_scaling"), "{error}");
    }
    for shape in [of(&linear, &linear), of(&json!(null), &linear), of(&linear, &json!(null))] {
        assert!(shape.contains("Linear { factor: 2.0 }"), "{shape}");
    }
}

/// As Qwen2Config of transformers: blocks from `max_window_layers` on have the window, from 28 on where it is
/// not said.
#[test]
fn a_window_that_no_block_has_limits_nothing() {
    use serde_json::json;
    let of = |first| {
        with_all(
            "qwen2",
            json!({
                "use_sliding_window": true, "sliding_window": 4, "layer_types": null,
                "max_window_layers": first,
            }),
        )
    };
    for (first, full) in
        [(json!(1), "full: Some(4)"), (json!(2), "full: None"), (json!(null), "full: None")]
    {
        let shape = of(first);
        assert!(shape.contains(full), "{shape}");
    }
}

#[test]
fn a_missing_or_an_unknown_tensor_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(data("llama/model.safetensors"), folder.path().join("model.safetensors")).unwrap();
    let open = |key: &str, value: serde_json::Value| {
        let text = fs::read(data("llama/config.json")).unwrap();
        let mut config: serde_json::Value = serde_json::from_slice(&text).unwrap();
        config[key] = value;
        fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
        Published::open(folder.path()).unwrap_err().to_string()
    };
    let error = open("num_hidden_layers", 3.into());
    assert!(error.contains("model.layers.2."), "{error}");
    let error = open("num_hidden_layers", (1 << 24).into());
    assert!(error.contains("16777216 layers"), "{error}");
    let error = open("num_hidden_layers", 1.into());
    assert!(error.contains("\"model.layers.1."), "{error}");
    let error = open("intermediate_size", 64.into());
    assert!(error.contains("mlp."), "{error}");
}

/// Some 100 sums of width 576 lie between a token and its logits, which are up to 30.
#[test]
#[ignore = "needs a model of 94 MiB: scripts/smollm2.py"]
fn real_model_has_the_logits_of_transformers() {
    let [model, folder] = ["EXMY_MODEL", "EXMY_TRUTH"].map(|name| std::env::var(name).unwrap());
    let path = Path::new(&folder).join("truth.safetensors");
    let (tokens, expected) = truth(&path);
    let exact = Reader::open(&path).unwrap().read_f32("exact").unwrap();
    let ours = logits(Path::new(&model), &tokens);
    println!("exmy from transformers in f32: {:e}", farthest(&ours, &expected));
    println!("exmy from transformers in f64: {:e}", farthest(&ours, &exact));
    assert!(farthest(&ours, &expected) < 1e-4);
}
