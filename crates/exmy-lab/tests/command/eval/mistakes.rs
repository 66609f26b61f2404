//! What `exmy eval` and its kin say of what cannot be, or would mean nothing.

use super::{change, eval, model, range, refused, said, tie};
use crate::{printed, row};
use serde_json::{Value, json};
use std::fs;

/// A token is a byte: bits a byte are nats a token in bits, also of windows whose first token none scores.
#[test]
fn bits_are_of_the_bytes_that_are_scored() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    for (stride, unscored) in [("31", 1), ("32", 4)] {
        let few = ["--tokens", "97", "--window", "32", "--stride", stride];
        let result = eval(folder, &[&["model", "--recipe", "f32"], &few[..]].concat());
        let of = |key: &str| result["recipes"][0][key].as_f64().unwrap();
        assert_eq!(
            (of("tokens"), &result["bytes"]),
            (f64::from(97 - unscored), &json!(97 - unscored))
        );
        let bits = of("nats_per_token") / std::f64::consts::LN_2;
        assert!((of("bits_per_byte") - bits).abs() < 1e-12, "{result}");
    }
}

/// A file that cannot be written is refused before the model is read.
#[test]
fn a_picture_that_cannot_be_written_is_told_first() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("folder.svg")).unwrap();
    let unwritable = if cfg!(target_os = "linux") { "/proc/x.svg" } else { "none/x.svg" };
    for (out, expected) in [("folder.svg", "is a folder"), (unwritable, "x.svg")] {
        let error = refused(folder, &["eval", "no-model", "--data", "none", "--out", out]);
        assert!(error.contains(expected) && !error.contains("no-model"), "{error}");
    }
}

/// Of logits that are no numbers nothing is said to agree.
#[test]
fn logits_that_are_no_numbers_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    change(folder, "model.norm.weight", |_, header| {
        vec![0xFF; range(header, "model.norm.weight").len()]
    });
    let few = ["model", "--tokens", "40", "--recipe", "f32,mxfp4"];
    let result = eval(folder, &few);
    for i in [0, 1] {
        let of = |key: &str| &result["recipes"][i][key];
        for key in ["top1_agreement", "top1_agreement_error", "kl", "nats_per_token"] {
            assert_eq!(of(key), &Value::Null, "{key}: {result}");
        }
    }
    let all = [&few[..], &["--data", "text", "-q"]].concat();
    assert_eq!(row(&printed(folder, "eval", &all), "mxfp4").last().unwrap(), &"-");
    let said = said(folder, &[&["eval"], &all[..]].concat());
    assert!(said.contains("warning: under mxfp4 logits are NaN"), "{said}");
}

/// A head in the file that is not the embedding is the model's, whatever the configuration says.
#[test]
fn a_head_of_its_own_is_not_tied() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let found = || {
        let result = eval(folder, &["model", "--tokens", "40", "--recipe", "f32"]);
        (result["parameters"].clone(), result["recipes"][0]["nats_per_token"].clone())
    };
    let own = found();
    let config = folder.join("model/config.json");
    tie(folder, true);
    let (tied, equal) = (fs::read(&config).unwrap(), found());
    assert!(equal.0.as_u64() < own.0.as_u64() && equal.1 != own.1, "{equal:?} {own:?}");
    tie(folder, false);
    fs::write(&config, tied).unwrap();
    assert_eq!(found(), own);
    // And what is written of it says so.
    printed(folder, "quantize", &["model", "small", "--to", "mxfp4", "-q"]);
    let written: Value =
        serde_json::from_slice(&fs::read(folder.join("small/config.json")).unwrap()).unwrap();
    assert_eq!(written["tie_word_embeddings"], false);
}

/// A calibration by the text that is scored is told, and the results name it.
#[test]
fn the_text_that_calibrates_is_another() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    fs::copy(folder.join("text"), folder.join("copy")).unwrap();
    fs::write(folder.join("other"), "Another text, of some more letters.").unwrap();
    let few = ["model", "--tokens", "20", "--recipe", "f32,f32", "--smooth", "--calibrate"];
    for (text, is_same) in [("text", true), ("copy", true), ("other", false)] {
        let all = [&["eval"], &few[..], &[text, "--data", "text", "-q"]].concat();
        assert_eq!(said(folder, &all).contains("begins as --data does"), is_same, "{text}");
    }
    let result = eval(folder, &[&few[..], &["other"]].concat());
    assert_eq!((&result["calibrate"], &result["calibrate_tokens"]), (&json!("other"), &json!(35)));
}

/// What is no model, and what a model cannot be written as.
#[test]
fn other_files_and_layouts_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let tensors = refused(folder, &["eval", "model/model.safetensors", "--data", "text"]);
    assert!(tensors.contains("name the folder with its config.json: model"), "{tensors}");
    if cfg!(unix) {
        let device = refused(folder, &["eval", "/dev/null", "--data", "text"]);
        assert!(device.contains("/dev/null is neither a file nor a folder"), "{device}");
    }
    // Sizes that are not those of the weights: of a folder of Hugging Face no key of a run is named.
    let config = folder.join("model/config.json");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("\"vocab_size\": 96", "\"vocab_size\": 97")).unwrap();
    let sizes = refused(folder, &["eval", "model", "--data", "text"]);
    let parts = ["[96, 32]", "[97, 32]", "set vocab_size, hidden_size", "model/config.json"];
    assert!(parts.iter().all(|part| sizes.contains(part)), "{sizes}");
    assert!(!sizes.contains("[model]"), "{sizes}");
    fs::write(&config, text).unwrap();
    // Before anything is calibrated.
    let quantize = ["quantize", "model", "new", "--to", "nvfp4", "--layout", "gpt-oss"];
    let error = refused(folder, &[&quantize[..], &["--gptq", "--calibrate", "none"]].concat());
    assert!(error.contains("gpt-oss") && !error.contains("none"), "{error}");
    let none = ["generate", "model", "--prompt", "Line", "--tokens", "0"];
    let said = said(folder, &none);
    assert!(said.contains("prompt   4 tokens; 0 drawn; ended by"), "{said}");
}
