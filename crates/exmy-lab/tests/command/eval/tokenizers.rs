//! A tokenizer.json that would give other tokens each time gives the same ones here.

use super::{eval, model, said};
use crate::{exmy, printed, succeed};
use serde_json::{Value, json};
use std::fs;

/// Merges of which a half would be left out at random.
#[test]
fn dropout_is_left_out_and_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let path = folder.join("model/tokenizer.json");
    let mut tokenizer: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    // Of "Line" there is one token in place of two; the embedding has 96.
    tokenizer["model"]["vocab"].as_object_mut().unwrap().remove("~");
    tokenizer["model"]["vocab"]["Li"] = 93.into();
    tokenizer["model"]["merges"] = json!([["L", "i"]]);
    fs::write(&path, tokenizer.to_string()).unwrap();
    let few = ["model", "--recipe", "f32"];
    let plain = eval(folder, &few);
    assert!(!said(folder, &["eval", "model", "--data", "text", "-q"]).contains("dropout"));
    tokenizer["model"]["dropout"] = 0.5.into();
    fs::write(&path, tokenizer.to_string()).unwrap();
    for _ in 0..3 {
        assert_eq!(eval(folder, &few), plain);
    }
    let told = |said: String| said.matches("note: the tokenizer's dropout of 0.5").count();
    let text = ["--calibrate", "text", "--calibrate-tokens", "40"];
    let quantize = ["quantize", "model", "small", "--to", "mxfp4", "--gptq"];
    assert_eq!(told(said(folder, &["eval", "model", "--data", "text", "-q"])), 1);
    assert_eq!(told(said(folder, &["generate", "model", "--prompt", "Line", "--tokens", "1"])), 1);
    assert_eq!(told(said(folder, &[&quantize[..], &text].concat())), 1);
    // What is written is what was read: to other programs it says what it said.
    let written = fs::read(folder.join("small/tokenizer.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), tokenizer);
    let data = |out: &str| {
        let make = ["data", "text", "--out", out, "--tokenizer", "model/tokenizer.json"];
        let made = succeed(exmy(&make).current_dir(folder));
        assert_eq!(told(String::from_utf8(made.stderr).unwrap()), 1);
        fs::read(folder.join(out).join("train.bin")).unwrap()
    };
    assert_eq!(data("once"), data("again"));
    let text = ["model", "--prompt", "Line", "--json", "--tokens", "1", "-q"];
    let generated: Value = serde_json::from_str(&printed(folder, "generate", &text)).unwrap();
    assert_eq!(generated["prompt"].as_array().unwrap().len(), 3);
}
