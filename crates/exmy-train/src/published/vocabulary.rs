//! The tokenizer of a GGUF file as a `tokenizer.json` of Hugging Face.
//!
//! The file has the tokens, their kinds, and the merges of byte-level BPE; how text is divided into words it
//! says by a name, `tokenizer.ggml.pre`, whose meaning is in llama.cpp's `src/llama-vocab.cpp`
//! (<https://github.com/ggml-org/llama.cpp>). Those whose regular expressions are known here are written as
//! the pre-tokenizers that the models' own `tokenizer.json` have.

use super::gguf::Gguf;
use super::sentencepiece;
use exmy::error::{Error, Result};
use exmy::safetensors::quoted;
use serde_json::{Map, Value, json};

/// The kinds of tokens that are taken out of a text before it is divided: control tokens and those of users.
const CONTROL: f64 = 3.0;
const OF_USERS: f64 = 4.0;

/// Words of Llama 3 (and OLMo 2), and those of Qwen2 with single digits.
fn words(digits: &str) -> String {
    let (ends, letters) = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)", "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+");
    let (others, spaces) = (" ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*", "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+");
    [ends, letters, digits, others, spaces].join("|")
}

/// Normalizer, pre-tokenizer and whether whole words are tokens without merges.
fn division(pre: &str) -> Option<(Value, Value, bool)> {
    let bytes = |regex: bool| {
        json!({
            "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
            "use_regex": regex,
        })
    };
    let split = |digits: &str| {
        let pattern = json!({"Regex": words(digits)});
        let split =
            json!({"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": false});
        json!({"type": "Sequence", "pretokenizers": [split, bytes(false)]})
    };
    let digits = json!({"type": "Digits", "individual_digits": true});
    Some(match pre {
        "gpt-2" | "default" => (Value::Null, bytes(true), false),
        "smollm" => {
            let both = json!({"type": "Sequence", "pretokenizers": [digits, bytes(true)]});
            (Value::Null, both, false)
        }
        "llama-bpe" | "llama3" => (Value::Null, split("\\p{N}{1,3}"), true),
        "dbrx" => (Value::Null, split("\\p{N}{1,3}"), false),
        "qwen2" => (json!({"type": "NFC"}), split("\\p{N}"), false),
        _ => return None,
    })
}

/// The text of a `tokenizer.json`.
///
/// # Errors
/// If the file has no such tokenizer, or it is not supported.
pub fn json(gguf: &Gguf) -> Result<Vec<u8>> {
    let works = "name a tokenizer.json by --tokenizer FILE";
    let key = |rest: &str| format!("tokenizer.ggml.{rest}");
    let model = gguf.text(&key("model"))?.unwrap_or_default();
    if model == "llama" {
        return sentencepiece::json(gguf, works);
    }
    if model != "gpt2" {
        let what = format!("{} = {} is not supported", key("model"), quoted(model));
        let hint = format!("gpt2 (byte-level BPE) and llama (SentencePiece) are; {works}");
        return Err(Error::new(what).hint(hint));
    }
    let pre = gguf.text(&key("pre"))?.unwrap_or("default");
    let Some((normalizer, pre_tokenizer, whole)) = division(pre) else {
        let what = format!("{} = {} is not supported", key("pre"), quoted(pre));
        return Err(Error::new(what).hint(works));
    };
    let missing = |rest: &str| Error::new(format!("there is no key {}", key(rest))).hint(works);
    let tokens = gguf.texts(&key("tokens"))?.ok_or_else(|| missing("tokens"))?;
    let merges = gguf.texts(&key("merges"))?.ok_or_else(|| missing("merges"))?;
    let kinds = gguf.numbers(&key("token_type"))?.unwrap_or_default();
    let vocab: Map<String, Value> =
        tokens.iter().enumerate().map(|(id, token)| (token.clone(), id.into())).collect();
    let added: Vec<Value> = tokens
        .iter()
        .zip(kinds)
        .enumerate()
        .filter(|(_, (_, kind))| matches!(**kind, CONTROL | OF_USERS))
        .map(|(id, (token, kind))| {
            json!({
                "id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": *kind == CONTROL,
            })
        })
        .collect();
    let decoder = json!({
        "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true,
    });
    let text = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": null, "decoder": decoder,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": whole,
            "vocab": vocab, "merges": merges,
        },
    });
    Ok(text.to_string().into_bytes())
}
