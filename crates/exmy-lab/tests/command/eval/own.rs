//! Runs of one's own as models of `exmy eval`, `generate`, `quantize` and `sample`.

use super::{eval, model, refused, said};
use crate::{TINY, exmy, printed, succeed, text_file};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A run of bytes, under a recipe.
fn of_bytes(folder: &Path, recipe: &str, out: &str) {
    let data = text_file(folder);
    let train = ["train", "--data", &data, "--recipe", recipe, "--out", out, "--preset", "micro"];
    succeed(exmy(&[&train[..], &TINY, &["-q"]].concat()).current_dir(folder));
}

/// A run of the tokens in a folder, which `exmy data` makes of a text.
fn of_tokens(folder: &Path, text: &str, tokens: &str, out: &str) {
    let data = ["data", text, "--out", tokens, "--vocab", "270"];
    succeed(exmy(&data).current_dir(folder));
    let train = ["train", "--data", tokens, "--recipe", "f32", "--out", out, "--preset", "micro"];
    succeed(exmy(&[&train[..], &TINY, &["-q"]].concat()).current_dir(folder));
}

/// The only run in a folder.
fn run(folder: &Path) -> PathBuf {
    let mut runs = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    runs.find(|path| path.join("config.toml").is_file()).unwrap()
}

fn nats(result: &Value, i: usize) -> f64 {
    result["recipes"][i]["nats_per_token"].as_f64().unwrap()
}

/// A run of one's own is a model, too: it continues a text as `exmy sample` does, and what `exmy quantize`
/// makes of it as Hugging Face has models gives the numbers of the run itself.
#[test]
fn a_run_is_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let data = text_file(folder);
    fs::copy(&data, folder.join("text")).unwrap();
    let bytes = ["train", "--data", &data, "--recipe", "f32", "--out", "bytes"];
    let mut command = exmy(&[&bytes[..], &["--preset", "micro"], &TINY].concat());
    succeed(command.current_dir(folder));
    let same = ["--prompt", "w1 w4", "--tokens", "10", "--temperature", "0"];
    let text = printed(folder, "generate", &[&["bytes", "-q"], &same[..]].concat());
    assert_eq!(text, printed(folder, "sample", &[&["bytes"], &same[..]].concat()));
    let few = ["--tokens", "200", "--window", "16"];
    let run =
        eval(folder, &[&["bytes", "--recipe", "f32,f32", "--mse", "mxfp4"], &few[..]].concat());
    assert_eq!(run["recipes"][0]["tokens"], 199);
    printed(folder, "quantize", &["bytes", "small", "--to", "mxfp4", "--mse", "-q"]);
    let small = eval(folder, &[&["small", "--recipe", "f32"], &few[..]].concat());
    assert_eq!(small["recipes"][0]["nats_per_token"], run["recipes"][1]["nats_per_token"]);
    let tokens = ["data", "text", "--out", "tokens", "--vocab", "257"];
    succeed(exmy(&tokens).current_dir(folder));
    let error = |arguments: &[&str]| {
        let output = exmy(&[&["eval"], arguments].concat()).current_dir(folder).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let own = ["train", "--data", "tokens", "--recipe", "f32", "--out", "own", "--preset", "micro"];
    succeed(exmy(&[&own[..], &TINY].concat()).current_dir(folder));
    let run = eval(folder, &[&["own", "--recipe", "f32,f32", "--mse", "mxfp4"], &few[..]].concat());
    printed(folder, "quantize", &["own", "own-small", "--to", "mxfp4", "--mse", "-q"]);
    let written = eval(folder, &[&["own-small", "--recipe", "f32"], &few[..]].concat());
    assert_eq!(written["recipes"][0]["nats_per_token"], run["recipes"][1]["nats_per_token"]);
    assert_ne!(run["recipes"][0]["nats_per_token"], run["recipes"][1]["nats_per_token"]);
    // A file that was changed, a model without text.
    let weights = fs::read_dir(folder.join("own")).unwrap().flatten();
    let mut weights = weights.map(|file| file.path().join("model.safetensors"));
    let weights = weights.find(|file| file.is_file()).unwrap();
    let mut changed = fs::read(&weights).unwrap();
    *changed.last_mut().unwrap() ^= 1;
    fs::write(&weights, changed).unwrap();
    assert!(error(&["own", "--data", "text"]).contains("damaged"));
    // What has no config.json is named.
    let gpt =
        ["train", "--preset", "gpt-nano", "--data", &data, "--steps", "1", "--out", "gpt", "-q"];
    succeed(exmy(&gpt).current_dir(folder));
    let quantize = ["quantize", "gpt", "gpt-small", "--to", "mxfp4", "--mse"];
    let output = exmy(&quantize).current_dir(folder).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("layer norms, positions that are not rotary, an MLP"), "{said}");
    assert!(!folder.join("gpt-small").exists());
    let proxy = ["train", "--preset", "proxy-nano", "--steps", "1", "--out", "proxy", "-q"];
    succeed(exmy(&proxy).current_dir(folder));
    assert!(error(&["proxy", "--data", "text"]).contains("no language model"));
}

/// As weights of a model are, to nearest if no method is named.
#[test]
fn weights_of_a_run_are_rounded_to_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    of_bytes(folder, "f32", "bytes");
    fs::copy(folder.join("text.txt"), folder.join("text")).unwrap();
    printed(folder, "quantize", &["bytes", "small", "--to", "mxfp4", "-q"]);
    assert!(folder.join("small/tokenizer.json").is_file());
    let few = ["--tokens", "200", "--window", "16"];
    let both = ["bytes", "--recipe", "f32,f32+blocks:weight=mxfp4"];
    let on_the_way = eval(folder, &[&both[..], &few].concat());
    let stored = eval(folder, &[&["small", "--recipe", "f32"], &few[..]].concat());
    assert_eq!(nats(&stored, 0), nats(&on_the_way, 1));
    assert_ne!(nats(&stored, 0), nats(&on_the_way, 0));
    let error = refused(folder, &["quantize", "bytes", "new", "--to", "mxfp4", "--axis", "0"]);
    assert!(error.contains("IN is a model"), "{error}");
}

/// The tokenizer is the one that the run was trained by, or nothing is computed; where its data were moved,
/// the one that is named.
#[test]
fn a_run_has_the_tokenizer_of_its_data() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    of_bytes(folder, "f32", "bytes");
    of_tokens(folder, "text.txt", "tokens", "own");
    let other = ["data", "text", "--out", "other", "--vocab", "270"];
    succeed(exmy(&other).current_dir(folder));
    let [letters, own, other] =
        ["model/tokenizer.json", "tokens/tokenizer.json", "other/tokenizer.json"];
    let few = ["--tokens", "9"];
    for command in ["eval", "generate", "sample", "quantize"] {
        let rest: &[&str] = match command {
            "eval" => &["--data", "text", "--recipe", "f32", "--tokens", "9"],
            "quantize" => &["new", "--to", "mxfp4"],
            _ => &["--prompt", "abc", "--tokens", "9"],
        };
        let of = |run: &'static str, tokenizer: &'static str| {
            [&[command, run], rest, &["--tokenizer", tokenizer]].concat()
        };
        for (run, tokenizer, found, whose) in [
            ("bytes", letters, "96 of them", "256 of the bytes of text"),
            ("own", letters, "96 of them", "270 of the tokenizer.json beside its data"),
            ("own", other, "270 of them", "270 of the tokenizer.json beside its data"),
            ("bytes", own, "has 270 tokens", "the model 256"),
        ] {
            let error = refused(folder, &of(run, tokenizer));
            assert!(error.contains(found) && error.contains(whose), "{command} {run}: {error}");
        }
        assert!(!folder.join("new").exists());
        succeed(exmy(&of("own", own)).current_dir(folder));
    }
    fs::remove_dir_all(folder.join("new")).unwrap();
    fs::rename(folder.join("tokens"), folder.join("moved")).unwrap();
    // Without its data a model is written without a tokenizer, or with the one that is named.
    let quantize = ["quantize", "own", "new", "--to", "mxfp4", "--mse"];
    let note = said(folder, &quantize);
    let parts = ["no tokenizer.json is written", "is beside its data", "--tokenizer FILE"];
    assert!(parts.iter().all(|part| note.contains(part)), "{note}");
    assert!(!folder.join("new/tokenizer.json").exists());
    fs::remove_dir_all(folder.join("new")).unwrap();
    let gptq = ["quantize", "own", "new", "--to", "mxfp4", "--gptq", "--calibrate", "text"];
    let gptq = [&gptq[..], &["--calibrate-tokens", "40"]].concat();
    assert!(refused(folder, &gptq).contains("by --tokenizer FILE"));
    assert!(!folder.join("new").exists());
    let moved = "moved/tokenizer.json";
    let note = said(folder, &[&gptq[..], &["--tokenizer", moved]].concat());
    assert!(note.contains("no tokenizer.json beside its data that would tell"), "{note}");
    let written = fs::read(folder.join("new/tokenizer.json")).unwrap();
    assert_eq!(written, fs::read(folder.join(moved)).unwrap());
    assert!(
        refused(folder, &[&["eval", "own", "--data", "text"], &few[..]].concat())
            .contains("by --tokenizer FILE")
    );
}

/// A text beside tokens that were made of it is no less bytes.
#[test]
fn a_text_may_lie_beside_its_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    text_file(folder);
    succeed(exmy(&["data", "text.txt", "--out", "both", "--vocab", "270"]).current_dir(folder));
    fs::rename(folder.join("text.txt"), folder.join("both/text.txt")).unwrap();
    let train = ["train", "--data", "both/text.txt", "--recipe", "f32", "--out", "bytes"];
    let train = [&train[..], &["--preset", "micro"], &TINY, &["-q"]].concat();
    succeed(exmy(&train).current_dir(folder));
    let sample = ["sample", "bytes", "--prompt", "w1", "--tokens", "3"];
    succeed(exmy(&sample).current_dir(folder));
    assert!(!said(folder, &["quantize", "bytes", "small", "--to", "mxfp4"]).contains("tokenizer"));
    // Its other half: one of the token files is named.
    let train = ["train", "--data", "both/train.bin", "--recipe", "f32", "--out", "own"];
    let train = [&train[..], &["--preset", "micro"], &TINY, &["-q"]].concat();
    succeed(exmy(&train).current_dir(folder));
    printed(folder, "quantize", &["own", "own-small", "--to", "mxfp4", "-q"]);
    let [made, written] = ["both/tokenizer.json", "own-small/tokenizer.json"]
        .map(|name| fs::read(folder.join(name)).unwrap());
    assert!(made == written);
}

/// A call that was killed leaves a part of the folder behind, which the next one of that name removes.
#[test]
fn what_a_killed_call_left_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    of_bytes(folder, "f32", "bytes");
    let [left, other] = [".partial-1-small", ".partial-1-other"].map(|name| folder.join(name));
    for part in [&left, &other] {
        fs::create_dir(part).unwrap();
        fs::write(part.join("model.safetensors"), "half").unwrap();
    }
    printed(folder, "quantize", &["bytes", "small", "--to", "mxfp4", "-q"]);
    assert!(!left.exists() && other.exists());
}

/// Where the final weights are gone, those of the newest checkpoint are taken, and it is said.
#[test]
fn a_run_without_final_weights_is_its_newest_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    of_bytes(folder, "f32", "bytes");
    fs::copy(folder.join("text.txt"), folder.join("text")).unwrap();
    let evaluate = ["bytes", "--recipe", "f32", "--tokens", "100", "--window", "16"];
    let before = eval(folder, &evaluate);
    let quantize = |out| {
        printed(folder, "quantize", &["bytes", out, "--to", "mxfp4", "-q"]);
        fs::read(folder.join(out).join("model.safetensors")).unwrap()
    };
    let small = quantize("small");
    let own = run(&folder.join("bytes"));
    fs::remove_file(own.join("model.safetensors")).unwrap();
    assert_eq!(eval(folder, &evaluate), before);
    assert_eq!(quantize("again"), small);
    let text = ["--prompt", "w1 w4", "--tokens", "10", "--temperature", "0"];
    let note = said(folder, &[&["generate", "bytes", "-q"], &text[..]].concat());
    assert!(note.contains("no final weights") && note.contains("step-00000040"), "{note}");
    assert_eq!(
        printed(folder, "generate", &[&["bytes", "-q"], &text[..]].concat()),
        printed(folder, "sample", &[&["bytes"], &text[..]].concat())
    );
    fs::remove_dir_all(own.join("checkpoints")).unwrap();
    for command in [&["eval", "bytes", "--data", "text"][..], &["sample", "bytes"]] {
        let error = refused(folder, command);
        assert!(error.contains("no weights any more") && error.contains("--config"), "{error}");
        assert!(!error.contains("--resume"), "{error}");
    }
}

/// `exmy generate` takes the numbers that it is told, as `exmy eval` does, and says which the run had.
#[test]
fn a_text_of_a_run_says_which_recipe_it_takes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    of_bytes(folder, "mxfp8-e4m3", "bytes");
    let text = ["--prompt", "w1 w4", "--tokens", "10", "--temperature", "0"];
    let generate = [&["generate", "bytes"], &text[..]].concat();
    let note = said(folder, &generate);
    assert!(note.contains("recipe   f32; the run's own") && note.contains("mxfp8-e4m3"), "{note}");
    let own = [&generate[..], &["--recipe", "mxfp8-e4m3"]].concat();
    assert!(!said(folder, &own).contains("recipe   "));
    assert_eq!(
        printed(folder, "generate", &own[1..]),
        printed(folder, "sample", &[&["bytes"], &text[..]].concat())
    );
    let proxy = ["train", "--preset", "proxy-nano", "--steps", "1", "--out", "proxy", "-q"];
    succeed(exmy(&[&proxy[..], &["--recipe", "f32"]].concat()).current_dir(folder));
    for command in [&["sample", "proxy"][..], &["generate", "proxy", "--prompt", "a"]] {
        let error = refused(folder, command);
        assert!(error.contains("holds no language model") && error.contains("a proxy"), "{error}");
    }
}

/// What changes all recipes but the first is refused where there is no other, and a rotation of keys that
/// does not fit them says which does.
#[test]
fn options_that_would_change_nothing_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let calibrate = ["--calibrate", "text", "--calibrate-tokens", "40"];
    for options in [
        &["--mse", "mxfp4"][..],
        &["--rotate"],
        &["--rotate-down"],
        &["--weights-only"],
        &["--kv", "mxfp4"],
        &["--sums", "fma:bf16"],
        &[&["--gptq", "mxfp4"], &calibrate[..]].concat(),
        &[&["--smooth"], &calibrate[..]].concat(),
    ] {
        let alone = [&["eval", "model", "--data", "text", "--recipe", "f32"], options].concat();
        let error = refused(folder, &alone);
        let parts = [options[0], "but the first", "--recipe f32,f32"];
        assert!(parts.iter().all(|part| error.contains(part)), "{options:?}: {error}");
    }
    let parts = ["model", "--sensitivity", "mxfp4", "--weights-only", "--tokens", "20"];
    assert_eq!(eval(folder, &parts)["recipes"].as_array().unwrap().len(), 11);
    of_bytes(folder, "f32", "bytes");
    for (run, heads, fits) in [("bytes", "8", "ht8"), ("model", "16", "ht16")] {
        let kv = ["--recipe", "f32,f32", "--kv", "ht64-f32>mxfp4", "--tokens", "20"];
        let error = refused(folder, &[&["eval", run, "--data", "text"], &kv[..]].concat());
        let parts = [format!("the {heads} numbers"), format!("{fits} in place of ht64")];
        assert!(parts.iter().all(|part| error.contains(part)), "{run}: {error}");
    }
}
