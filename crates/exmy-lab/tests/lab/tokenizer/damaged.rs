//! A `tokenizer.json` that is damaged or lies: an error, or a tokenizer whose every call ends, the same each
//! time. Never a panic, and no memory by a claim.

use super::trained;
use exmy::random::{Philox, Stream};
use exmy_lab::tokenizer::Tokenizer;
use serde_json::{Value, json};

/// One of each kind of model, with what goes before and behind it in published files.
fn kinds() -> Vec<Value> {
    let added = json!([{"id": 0, "content": "<unk>", "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false, "special": true}]);
    let of = |normalizer: Value, before: Value, model: Value, behind: Value, decoder: Value| {
        json!({"version": "1.0", "truncation": {"direction": "Right", "max_length": 3,
                "strategy": "LongestFirst", "stride": 0},
            "padding": {"strategy": {"Fixed": 4}, "direction": "Right", "pad_to_multiple_of": null,
                "pad_id": 0, "pad_type_id": 0, "pad_token": "<unk>"},
            "added_tokens": added, "normalizer": normalizer, "pre_tokenizer": before,
            "post_processor": behind, "decoder": decoder, "model": model})
    };
    let pieces =
        json!({"<unk>": 0, "l": 1, "o": 2, "w": 3, "lo": 4, "low": 5, "\u{2581}": 6, "<0xC3>": 7});
    let level = json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
        "use_regex": true});
    let marks = json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always",
        "split": true});
    let template = json!({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<unk>",
            "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
        "special_tokens": {"<unk>": {"id": "<unk>", "ids": [0], "tokens": ["<unk>"]}}});
    let split = json!({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex":
            "'s|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|\\s+(?!\\S)|\\s+"},
            "behavior": "Isolated", "invert": false}, {"type": "Digits", "individual_digits": true}, level]});
    let replace = json!({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u{2581}"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"}, {"type": "NFKC"}]});
    let back = json!({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String":
            "\u{2581}"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]});
    let bpe = json!({"type": "BPE", "dropout": 0.5, "unk_token": "<unk>", "continuing_subword_prefix": null,
        "end_of_word_suffix": "", "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
        "vocab": pieces, "merges": [["l", "o"], ["lo", "w"]]});
    let unigram = json!({"type": "Unigram", "unk_id": 0, "byte_fallback": false,
        "vocab": [["<unk>", 0.0], ["l", -1.5], ["o", -2.0], ["low", -0.5], ["\u{2581}", -3.0]]});
    let wordpiece = json!({"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100, "vocab": {"<unk>": 0, "low": 1, "##er": 2, "l": 3, "##o": 4}});
    let words = json!({"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0, "low": 1,
        "lower": 2}});
    let bert = json!({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
        "strip_accents": null, "lowercase": true});
    vec![
        of(Value::Null, split, bpe.clone(), level.clone(), level.clone()),
        of(replace, Value::Null, bpe, template, back),
        of(json!({"type": "NFC"}), marks.clone(), unigram, Value::Null, marks),
        of(
            bert,
            json!({"type": "BertPreTokenizer"}),
            wordpiece,
            json!({"type": "BertProcessing",
            "sep": ["<unk>", 0], "cls": ["<unk>", 0]}),
            json!({"type": "WordPiece", "prefix": "##",
            "cleanup": true}),
        ),
        of(
            json!({"type": "Lowercase"}),
            json!({"type": "Whitespace"}),
            words,
            Value::Null,
            Value::Null,
        ),
    ]
}

const TEXT: &str = "low lower  <unk> \u{e9} 1234 it's\n";

/// Uses a tokenizer if there is one; whether there is.
fn used(json: Vec<u8>) -> bool {
    let Ok(tokenizer) = Tokenizer::from_json(json) else { return false };
    if let Ok(tokens) = tokenizer.encode(TEXT) {
        assert_eq!(tokenizer.encode(TEXT).unwrap(), tokens);
        let _ = tokenizer.decode(&tokens);
    }
    let _ = tokenizer.decode(&[0, 3, u32::MAX]);
    true
}

/// Every place of a value, in its order.
fn places(value: &Value, here: &str, all: &mut Vec<String>) {
    all.push(here.to_owned());
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Array(items) => {
            (0..).zip(items).for_each(|(i, item)| places(item, &format!("{here}/{i}"), all));
        }
        Value::Object(items) => {
            items
                .iter()
                .for_each(|(key, item)| places(item, &format!("{here}/{}", escaped(key)), all));
        }
        _ => {}
    }
}

#[test]
fn whole_ones_are_tokenizers() {
    for kind in kinds() {
        let tokenizer = Tokenizer::from_json(kind.to_string().into_bytes()).unwrap();
        assert!(!tokenizer.encode(TEXT).unwrap().is_empty(), "{kind}");
    }
}

/// A value in the place of another one of the file, or of one that no file has.
#[test]
fn changed_values_never_panic() {
    let odd = json!([null, true, -1, 0, 1, 4294967295_u64, u64::MAX, 1e300, -0.5, "", "a", "\u{0}", "(a+)+$",
        "(?=)", "[", [], {}, [[]], ["l", "o"], {"type": "Sequence"}, {"String": ""}, {"Regex": ""}]);
    let odd = odd.as_array().unwrap();
    let philox = Philox::new(6, Stream::new("damaged"));
    let mut opened = 0;
    for (k, kind) in kinds().into_iter().enumerate() {
        let mut all = Vec::new();
        places(&kind, "", &mut all);
        for trial in 0..500 {
            let draw = |i: u64, below: usize| {
                philox.below((k as u64 * 500 + trial) * 16 + i, below as u64) as usize
            };
            let mut changed = kind.clone();
            for i in 0..1 + trial % 2 {
                let new = match draw(8 * i, 2) {
                    0 => odd[draw(8 * i + 1, odd.len())].clone(),
                    _ => kind.pointer(&all[draw(8 * i + 1, all.len())]).unwrap().clone(),
                };
                if let Some(old) = changed.pointer_mut(&all[draw(8 * i + 2, all.len())]) {
                    *old = new;
                }
            }
            opened += u32::from(used(changed.to_string().into_bytes()));
        }
    }
    assert!((100..2000).contains(&opened), "{opened}: too few or too many to say something");
}

/// Bytes in the place of others, and ends.
#[test]
fn changed_bytes_never_panic() {
    const BYTES: &[u8] = b"0123456789-.e\"{}[]:,\\u ntfal\x00\xFF";
    let philox = Philox::new(7, Stream::new("damaged"));
    let mut opened = 0;
    let texts = kinds().into_iter().map(|kind| kind.to_string().into_bytes());
    let texts: Vec<_> = texts.chain([trained(&["low low lower"], 300).json().to_vec()]).collect();
    for trial in 0..1500 {
        let mut damaged = texts[trial as usize % texts.len()].clone();
        for i in 0..1 + trial % 3 {
            let at = philox.below(8 * trial + 2 * i, damaged.len() as u64) as usize;
            damaged[at] = BYTES[philox.below(8 * trial + 2 * i + 1, BYTES.len() as u64) as usize];
        }
        if trial % 10 == 9 {
            damaged.truncate(philox.below(8 * trial + 7, damaged.len() as u64) as usize);
        }
        opened += u32::from(used(damaged));
    }
    assert!((50..1400).contains(&opened), "{opened}: too few or too many to say something");
}

/// What would take all memory, or all of the stack, is an error.
#[test]
fn claims_are_errors() {
    let error =
        |file: &Value| Tokenizer::from_json(file.to_string().into_bytes()).unwrap_err().to_string();
    for (place, steps) in [("normalizer", "normalizers"), ("decoder", "decoders")] {
        for pattern in [json!({"String": "l"}), json!({"String": ""}), json!({"Regex": "l"})] {
            let mut file = kinds().remove(0);
            let double = json!({"type": "Replace", "pattern": pattern, "content": "ll"});
            file[place] = json!({"type": "Sequence", steps: vec![double.clone(); 64]});
            let error = error(&file);
            assert!(error.contains(&format!("its {place} makes a text up to")), "{error}");
            file[place] = json!({"type": "Sequence", steps: vec![double; 3]});
            assert!(used(file.to_string().into_bytes()), "{file}");
        }
    }
    for (open, close) in
        [("[", "]"), ("{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[", "]}}")]
    {
        let deep = open.repeat(100_000) + &close.repeat(100_000);
        assert!(Tokenizer::from_json(deep.into_bytes()).is_err());
    }
    // Numbers of tokens take no memory.
    let mut file = kinds().remove(0);
    file["model"]["vocab"]["w"] = u32::MAX.into();
    assert!(used(file.to_string().into_bytes()));
}
