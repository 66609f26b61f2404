//! The SentencePiece vocabulary of a GGUF file (`tokenizer.ggml.model = llama`) as a `tokenizer.json`.
//!
//! Such a file has pieces with scores and no merges. Text is joined as SentencePiece's BPE joins it: the pair
//! whose piece has the highest score first. As in transformers' `generate_merges`
//! (`convert_slow_tokenizer.py`) every division of a piece into two others is a merge; higher scores come
//! first, then longer left and right parts. Spaces are `▁`, one is put in front of a text, and what no piece
//! has becomes the pieces of its bytes, or the unknown one where there are none.

use super::gguf::{self, Gguf};
use exmy::error::{Error, Result};
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Kinds of tokens, as GGUF numbers them.
const UNKNOWN: f64 = 2.0;
const CONTROL: f64 = 3.0;
const OF_USERS: f64 = 4.0;
const BYTE: f64 = 6.0;

/// What a space is in pieces.
const SPACE: &str = "▁";

fn key(rest: &str) -> String {
    format!("tokenizer.ggml.{rest}")
}

/// The text of a `tokenizer.json`.
///
/// # Errors
/// If the file lacks a part of it, or asks for a normalization of text.
pub(super) fn json(gguf: &Gguf, works: &str) -> Result<Vec<u8>> {
    let missing = |rest: &str| Error::new(format!("there is no key {}", key(rest))).hint(works);
    let tokens = gguf.texts(&key("tokens"))?.ok_or_else(|| missing("tokens"))?;
    let scores = gguf.numbers(&key("scores"))?.ok_or_else(|| missing("scores"))?;
    let kinds = gguf.numbers(&key("token_type"))?.ok_or_else(|| missing("token_type"))?;
    if scores.len() != tokens.len() || kinds.len() != tokens.len() {
        let (tokens, scores, kinds) = (tokens.len(), scores.len(), kinds.len());
        let what = format!("{tokens} tokens have {scores} scores and {kinds} kinds");
        return Err(Error::new(what));
    }
    if gguf.get(&key("precompiled_charsmap")).is_some() {
        let what = format!("{} is not supported", key("precompiled_charsmap"));
        return Err(Error::new(what).hint(works));
    }
    let truth = |rest: &str, default: bool| match gguf.get(&key(rest)) {
        None => Ok(default),
        Some(gguf::MetadataValue::Bool(value)) => Ok(*value),
        Some(_) => Err(Error::new(format!("{} is not true or false", key(rest)))),
    };
    if truth("remove_extra_whitespaces", false)? {
        let what = format!("{} = true is not supported", key("remove_extra_whitespaces"));
        return Err(Error::new(what).hint(works));
    }
    let prefix = truth("add_space_prefix", true)?;
    let vocab: Map<String, Value> =
        tokens.iter().enumerate().map(|(id, token)| (token.clone(), id.into())).collect();
    let of = |wanted: &[f64]| -> Vec<(usize, &String)> {
        let all = tokens.iter().enumerate();
        all.filter(|(id, _)| wanted.contains(&kinds[*id])).collect()
    };
    let added: Vec<Value> = of(&[UNKNOWN, CONTROL, OF_USERS])
        .into_iter()
        .map(|(id, token)| {
            json!({
                "id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": kinds[id] != OF_USERS,
            })
        })
        .collect();
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": SPACE});
    let prepend = json!({"type": "Prepend", "prepend": SPACE});
    let normalizers = if prefix { json!([prepend, replace]) } else { json!([replace]) };
    let mut decoders = vec![
        json!({"type": "Replace", "pattern": {"String": SPACE}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if prefix {
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    let unknown = of(&[UNKNOWN]).first().map(|(_, token)| token.to_string());
    let text = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": null, "post_processor": null,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "BPE", "dropout": null, "unk_token": unknown, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": !of(&[BYTE]).is_empty(),
            "ignore_merges": false, "vocab": vocab, "merges": merges(tokens, scores, kinds),
        },
    });
    Ok(text.to_string().into_bytes())
}

/// The divisions of pieces into two others, in the order in which they are joined.
fn merges(tokens: &[String], scores: &[f64], kinds: &[f64]) -> Vec<[String; 2]> {
    let ids: BTreeMap<&str, usize> =
        tokens.iter().enumerate().map(|(id, token)| (token.as_str(), id)).collect();
    let mut all = Vec::new();
    for (id, piece) in tokens.iter().enumerate() {
        if matches!(kinds[id], UNKNOWN | CONTROL | BYTE) {
            continue;
        }
        let mut own: Vec<_> = piece
            .char_indices()
            .skip(1)
            .filter_map(|(at, _)| {
                let (left, right) = piece.split_at(at);
                Some(([*ids.get(left)?, *ids.get(right)?], [left, right]))
            })
            .collect();
        own.sort_unstable();
        all.extend(own.into_iter().map(|(_, parts)| (scores[id], parts)));
    }
    // Equal ones keep their order.
    let lengths = |parts: &[&str; 2]| parts.map(|part| Reverse(part.chars().count()));
    all.sort_by(|(a, one), (b, other)| {
        b.total_cmp(a).then_with(|| lengths(one).cmp(&lengths(other)))
    });
    all.into_iter().map(|(_, parts)| parts.map(str::to_owned)).collect()
}
