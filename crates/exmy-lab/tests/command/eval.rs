//! `exmy eval` on a small Llama as transformers saved it, with a tokenizer of single characters.

mod memory;
mod mistakes;
mod own;
mod pictures;
mod rules;
mod tokenizers;

use crate::{exmy, printed, row, succeed};
use exmy_train::nn::decoder::Config;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// What a command that is refused says.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = exmy(arguments).current_dir(folder).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    said
}

/// What a command says beside its result.
fn said(folder: &Path, arguments: &[&str]) -> String {
    String::from_utf8(succeed(exmy(arguments).current_dir(folder)).stderr).unwrap()
}

/// The model of exmy-train's tests, and a text.
pub(crate) fn model(folder: &Path) {
    let data =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../exmy-train/tests/published/data/llama");
    let to = folder.join("model");
    fs::create_dir(&to).unwrap();
    for file in ["config.json", "model.safetensors"] {
        fs::copy(data.join(file), to.join(file)).unwrap();
    }
    tokenizer(&to);
    let text: String = (0..40).map(|i| format!("Line {i} of {}.\n", i * i % 17)).collect();
    fs::write(folder.join("text"), text).unwrap();
}

/// Puts bytes in the place of those of a tensor of the model.
fn change(folder: &Path, name: &str, to: impl Fn(&[u8], &Value) -> Vec<u8>) {
    let path = folder.join("model/model.safetensors");
    let mut file = fs::read(&path).unwrap();
    let (length, rest) = file.split_at_mut(8);
    let length = u64::from_le_bytes((&*length).try_into().unwrap()) as usize;
    let (header, data) = rest.split_at_mut(length);
    let header: Value = serde_json::from_slice(header).unwrap();
    let at = range(&header, name);
    let bytes = to(data, &header);
    data[at].copy_from_slice(&bytes);
    fs::write(path, file).unwrap();
}

/// Where a tensor lies in a file's data.
fn range(header: &Value, name: &str) -> std::ops::Range<usize> {
    let at = |i: usize| header[name]["data_offsets"][i].as_u64().unwrap() as usize;
    at(0)..at(1)
}

/// Ties the model's head to its embedding, which it then equals, or not.
fn tie(folder: &Path, tied: bool) {
    let path = folder.join("model/config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    config["tie_word_embeddings"] = tied.into();
    fs::write(&path, config.to_string()).unwrap();
    let own = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../exmy-train/tests/published/data/llama/model.safetensors");
    fs::copy(own, folder.join("model/model.safetensors")).unwrap();
    if tied {
        let table =
            |data: &[u8], header: &Value| data[range(header, "model.embed_tokens.weight")].to_vec();
        change(folder, "lm_head.weight", table);
    }
}

/// Printable characters, a space and a line break: 96 tokens of one byte.
fn tokenizer(folder: &Path) {
    let letters = ('!'..='~').map(String::from).chain(["Ġ".into(), "Ċ".into()]);
    let vocab: serde_json::Map<String, Value> =
        letters.enumerate().map(|(id, letter)| (letter, id.into())).collect();
    let bytes = json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true,
    });
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": bytes, "post_processor": null, "decoder": bytes,
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
    });
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
}

fn eval(folder: &Path, arguments: &[&str]) -> Value {
    let text = printed(folder, "eval", &[arguments, &["--data", "text", "--json", "-q"]].concat());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn recipes_are_compared_with_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let arguments = ["model", "--recipe", "f32,f32,mxfp8-e4m3,mxfp4", "--window", "32"];
    let result = eval(folder, &arguments);
    let bytes = fs::metadata(folder.join("text")).unwrap().len();
    // A token is a byte, and the first is scored by none.
    assert_eq!((&result["bytes"], &result["stride"]), (&json!(bytes - 1), &json!(16)));
    let of = |i: usize, key: &str| result["recipes"][i][key].as_f64().unwrap();
    assert_eq!(of(0, "tokens"), (bytes - 1) as f64);
    let nats = of(0, "nats_per_token");
    assert!((of(0, "bits_per_byte") - nats / std::f64::consts::LN_2).abs() < 1e-12);
    assert!((libm::log(of(0, "perplexity")) - nats).abs() < 1e-12);
    for key in ["nats_above_first", "nats_above_first_error", "kl"] {
        assert_eq!(of(1, key), 0.0, "{key}");
    }
    assert_eq!((of(1, "top1_agreement"), of(1, "nats_per_token")), (1.0, nats));
    assert!(0.0 < of(2, "kl") && of(2, "kl") < of(3, "kl"), "{result}");
    assert!(of(3, "top1_agreement") < of(2, "top1_agreement"), "{result}");
    // The same bits again, by one thread, by one layer at a time, and as a table.
    assert_eq!(eval(folder, &[&arguments[..], &["--threads", "1"]].concat()), result);
    assert_eq!(eval(folder, &[&arguments[..], &["--by-layer"]].concat()), result);
    let table = printed(folder, "eval", &[&arguments[..], &["--data", "text", "-q"]].concat());
    assert_eq!(row(&table, "mxfp4")[2], format!("{:.5}", of(3, "nats_per_token")));
    // Fewer tokens, and what is said before the work.
    let mut command =
        exmy(&["eval", "model", "--data", "text", "--recipe", "f32", "--tokens", "9"]);
    let output = succeed(command.current_dir(folder));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("9 tokens in windows of 9") && said.contains("memory"), "{said}");
}

/// Weights that `exmy quantize` wrote and weights that are rounded on the way give the same numbers.
#[test]
fn a_quantized_file_is_what_is_rounded_on_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    for format in ["mxfp4", "nvfp4"] {
        let small = folder.join(format);
        fs::create_dir(&small).unwrap();
        for file in ["config.json", "tokenizer.json"] {
            fs::copy(folder.join("model").join(file), small.join(file)).unwrap();
        }
        let to = small.join("model.safetensors");
        let quantize =
            ["quantize", "model/model.safetensors", to.to_str().unwrap(), "--to", format];
        let but = ["--exclude", "*norm*", "--exclude", "*embed*", "-q"];
        succeed(exmy(&[&quantize[..], &but].concat()).current_dir(folder));
        let both = format!("f32,{format}");
        let on_the_way = eval(folder, &["model", "--recipe", &both, "--weights-only"]);
        let stored = eval(folder, &[format, "--recipe", "f32"]);
        let nats = |result: &Value, i: usize| result["recipes"][i]["nats_per_token"].clone();
        assert_eq!(nats(&stored, 0), nats(&on_the_way, 1), "{format}");
    }
}

/// A folder that `exmy quantize` wrote by methods that look at the model, and a model changed on the way,
/// also where the head is tied, and a rotation gives it weights of its own.
#[test]
fn a_model_quantized_by_methods_is_what_is_changed_on_the_way() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let calibrate = ["--calibrate", "text", "--calibrate-tokens", "80"];
    for (i, (tied, methods, rounding, recipe)) in [
        (true, &["--rotate"][..], None, "f32+blocks:weight=mxfp4"),
        (false, &["--rotate", "3", "--smooth", "0.6"], Some("--gptq"), "f32"),
        (true, &["--rotate-down"], None, "f32+blocks:weight=nvfp4"),
        (false, &["--rotate", "--rotate-down", "2"], Some("--gptq"), "f32"),
        (true, &[], Some("--mse"), "f32"),
        (false, &[], None, "f32+blocks:weight=nvfp4"),
    ]
    .into_iter()
    .enumerate()
    {
        tie(folder, tied);
        let (format, out) = (if i == 0 { "mxfp4" } else { "nvfp4" }, format!("small{i}"));
        let text: &[&str] = if rounding == Some("--gptq") { &calibrate } else { &[] };
        let mut arguments = [&["quantize", "model", &out, "--to", format], methods, text].concat();
        arguments.extend(rounding);
        succeed(exmy(&arguments).current_dir(folder));
        let both = format!("f32,{recipe}");
        let mut arguments = [&["model", "--recipe", &both], methods, text].concat();
        arguments.extend(rounding.into_iter().flat_map(|rounding| [rounding, format]));
        let on_the_way = eval(folder, &arguments);
        let stored = eval(folder, &[&out, "--recipe", "f32"]);
        let nats = |result: &Value, i: usize| result["recipes"][i]["nats_per_token"].clone();
        assert_eq!(nats(&stored, 0), nats(&on_the_way, 1), "{methods:?} {rounding:?}");
        assert_ne!(nats(&on_the_way, 0), nats(&on_the_way, 1), "{methods:?} {rounding:?}");
    }
    // A GGUF file becomes a folder of the same shape.
    let gguf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../exmy-train/tests/published/data/blocks.gguf");
    let quantize = ["quantize", gguf.to_str().unwrap(), "of-gguf", "--to", "mxfp8-e4m3", "-q"];
    let quantize = [&quantize[..], &["--rotate-down", "5"]].concat();
    let said = succeed(exmy(&quantize).current_dir(folder)).stdout;
    let said = String::from_utf8(said).unwrap();
    assert!(said.starts_with("of-gguf: ") && said.contains("weights in mxfp8-e4m3"), "{said}");
    let shape = |path: &Path| *exmy_train::published::Published::open(path).unwrap().config();
    let expected = Config { rotate_down: Some(5), ..shape(&gguf) };
    assert_eq!(shape(&folder.join("of-gguf")), expected);
    let stored = ["small3", "--recipe", "f32"];
    let by_layer = eval(folder, &[&stored[..], &["--by-layer"]].concat());
    assert_eq!(by_layer, eval(folder, &stored));
    let safetensors = "model/model.safetensors";
    for (arguments, expected) in [
        (&["model", "small0", "--to", "mxfp4"][..], "is there already"),
        (&["small2", "new", "--to", "mxfp4", "--rotate-down"], "is rotated in this model already"),
        (&[safetensors, "new", "--to", "mxfp4", "--rotate-down"], "looks at a model"),
        (&["model", "new", "--to", "e4m3"], "block formats"),
        (&["model", "new", "--to", "rht16>nvfp4"], "more than a block format"),
        (&["model", "new", "--to", "mxfp4", "--axis", "0"], "IN is a model"),
        (&["model", "new", "--dequantize"], "IN is a model"),
        (&[safetensors, "new", "--to", "mxfp4", "--mse"], "looks at a model"),
        (&["model", "new", "--to", "mxfp4", "--smooth", "7", "--calibrate", "text"], "from 0 to 1"),
        (&["model", "new", "--to", "mxfp4", "--gptq", "--calibrate", "none"], "cannot read none"),
    ] {
        let arguments = [&["quantize"], arguments].concat();
        let output = exmy(&arguments).current_dir(folder).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains(expected), "{error}");
        assert!(!folder.join("new").exists(), "{arguments:?}");
    }
}

/// The head, in the format of the blocks or in one of its own; where it is the embedding, that stays.
#[test]
fn a_head_is_quantized_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    for (i, (tied, head, method, recipe)) in [
        (true, "--head", None, "f32+weight=mxfp4"),
        (false, "--head=mxfp8-e4m3", None, "f32+weight=mxfp4+lm_head:weight=mxfp8-e4m3"),
        (true, "--head=nvfp4", Some("--mse"), "f32+lm_head:weight=nvfp4"),
    ]
    .into_iter()
    .enumerate()
    {
        tie(folder, tied);
        let out = format!("small{i}");
        let mut arguments = vec!["quantize", "model", &out, "--to", "mxfp4", head];
        arguments.extend(method);
        let said = succeed(exmy(&arguments).current_dir(folder)).stdout;
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("14 weights in mxfp4, the head's in "), "{said}");
        let both = format!("f32,{recipe}");
        let mut arguments = vec!["model", "--recipe", &both];
        arguments.extend(method.into_iter().flat_map(|method| [method, "mxfp4"]));
        let on_the_way = eval(folder, &arguments);
        let stored = eval(folder, &[&out, "--recipe", "f32"]);
        let nats = |result: &Value, i: usize| result["recipes"][i]["nats_per_token"].clone();
        assert_eq!(nats(&stored, 0), nats(&on_the_way, 1), "{head}");
        assert_ne!(nats(&on_the_way, 0), nats(&on_the_way, 1), "{head}");
    }
    let safetensors = "model/model.safetensors";
    for (arguments, expected) in [
        (&["model", "new", "--to", "mxfp4", "--head=e4m3"][..], "--head=e4m3 has no blocks"),
        (&["model", "new", "--to", "mxfp4", "--head", "nvfp4"], "--head=mxfp8-e4m3"),
        (&[safetensors, "new", "--to", "mxfp4", "--head"], "--head looks at a model"),
    ] {
        let output = exmy(&[&["quantize"], arguments].concat()).current_dir(folder).output();
        let output = output.unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains(expected), "{error}");
        assert!(!folder.join("new").exists(), "{arguments:?}");
    }
}

/// A tokenizer that is damaged, or another model's, is told by its name; nothing is written.
#[test]
fn a_wrong_tokenizer_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let own = folder.join("model/tokenizer.json");
    let good = fs::read_to_string(&own).unwrap();
    let of = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
    of("cut.json", &good[..good.len() / 2]);
    of("twice.json", &good.replace("\"b\":65", "\"b\":64"));
    of("text.json", &good.replace("\"b\":65", "\"b\":\"65\""));
    of("large.json", &good.replace("\"b\":65", "\"b\":4294967295"));
    of("more.json", &good.replace("\"b\":65", "\"b\":65,\"more\":96"));
    let quantize = ["quantize", "model", "new", "--to", "mxfp4", "--tokenizer"];
    let evaluate = ["eval", "model", "--data", "text", "--recipe", "f32", "--tokenizer"];
    let generate = ["generate", "model", "--prompt", "abc", "--tokenizer"];
    let fails = |arguments: &[&str], expected: &str| {
        let output = exmy(arguments).current_dir(folder).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains(expected), "{error}");
        assert!(!error.contains("panicked") && !folder.join("new").exists(), "{error}");
    };
    for name in ["cut.json", "twice.json", "text.json"] {
        let expected = format!("{name} is no tokenizer");
        for command in [&quantize[..], &evaluate, &generate] {
            fails(&[command, &[name]].concat(), &expected);
        }
    }
    let large = "large.json has tokens up to 4294967295, and the model 96 tokens";
    fails(&[&quantize[..], &["large.json"]].concat(), large);
    fails(&[&generate[..], &["large.json"]].concat(), "gives token 4294967295");
    fails(&[&quantize[..], &["more.json"]].concat(), "more.json has tokens up to 96, and");
    // The model's own: what this program cannot read is copied.
    fs::copy(folder.join("cut.json"), &own).unwrap();
    fails(&evaluate[..6], "model/tokenizer.json is none");
    let output = succeed(exmy(&quantize[..5]).current_dir(folder));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("tokenizer.json is a copy"), "{said}");
    assert_eq!(fs::read(folder.join("new/tokenizer.json")).unwrap(), fs::read(own).unwrap());
}

/// Options that are rules of recipes, and leave the first alone.
#[test]
fn keys_and_values_and_sums_have_formats_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let costs = |arguments: &[&str]| {
        let result = eval(folder, &[&["model", "--tokens", "64"], arguments].concat());
        let of = |i: usize| result["recipes"][i]["kl"].as_f64().unwrap();
        assert_eq!(of(0), 0.0, "{result}");
        (result["recipes"][1]["recipe"].as_str().unwrap().to_owned(), of(1))
    };
    let (name, coarse) = costs(&["--recipe", "f32,f32", "--kv", "e2m1"]);
    assert!(name.contains("k:tensor=e2m1") && name.contains("v:tensor=e2m1"), "{name}");
    let (_, fine) = costs(&["--recipe", "f32,f32", "--kv", "e4m3"]);
    assert!(coarse > fine && fine > 0.0, "{coarse} {fine}");
    let (name, sums) = costs(&["--recipe", "f32,f32", "--sums", "fma:bf16"]);
    assert!(name.ends_with("sums=fma:bf16") && sums > 0.0, "{name}: {sums}");
}

/// What a calibration text changes: by SmoothQuant not the function of the model but what rounding makes of
/// it, by GPTQ the weights, which recipes leave alone then. The first recipe has the model as it is.
#[test]
fn a_model_is_calibrated_by_a_text() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let nats = |more: &[&str]| {
        let few = ["model", "--tokens", "48", "--recipe", "f32,f32,mxfp4"];
        let result = eval(folder, &[&few, more].concat());
        [0, 1, 2].map(|i| result["recipes"][i]["nats_per_token"].as_f64().unwrap())
    };
    let (plain, smoothed) = (nats(&[]), nats(&["--smooth", "--calibrate", "text"]));
    let far = |a: f64, b: f64| (a - b).abs();
    assert_eq!(smoothed[0], plain[0]);
    assert!((1e-12..1e-5).contains(&far(plain[1], smoothed[1])), "{plain:?} {smoothed:?}");
    assert!(far(plain[2], smoothed[2]) > 1e-4, "{plain:?} {smoothed:?}");
    let rotated = nats(&["--rotate"]);
    assert_eq!(rotated[0], plain[0]);
    assert!((1e-12..1e-5).contains(&far(plain[1], rotated[1])), "{plain:?} {rotated:?}");
    assert!(far(plain[2], rotated[2]) > 1e-4, "{plain:?} {rotated:?}");
    let turned = nats(&["--rotate-down"]);
    assert_eq!(turned[0], plain[0]);
    assert!((1e-12..1e-5).contains(&far(plain[1], turned[1])), "{plain:?} {turned:?}");
    assert!(far(plain[2], turned[2]) > 1e-4, "{plain:?} {turned:?}");
    let rounded = nats(&["--gptq", "mxfp4", "--calibrate", "text"]);
    assert_eq!(rounded[0], plain[0]);
    assert!(far(rounded[1], plain[0]) > 1e-4 && far(rounded[2], plain[2]) > 1e-4, "{rounded:?}");
}

/// What happens inside of the model, and its parts by what they cost; each with its picture.
#[test]
fn operators_are_looked_at_and_parts_are_ranked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let few = ["model", "--tokens", "48", "--out", "picture.svg"];
    let picture = || fs::read_to_string(folder.join("picture.svg")).unwrap();
    let recipes = ["--recipe", "f32,mxfp4,f32+layer1=mxfp4"];
    let inside = eval(folder, &[&few[..], &recipes, &["--layers"]].concat());
    assert!(picture().contains("inside of a model"));
    let of = |i: usize| inside["recipes"][i]["layers"].as_array().unwrap();
    let names = |i: usize| of(i).iter().map(|of| of["site"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!((of(1).len(), names(1)[0], names(1)[14]), (15, "layers.0.q_proj", "lm_head"));
    // f32 loses nothing, so a ratio to its noise is no number.
    assert!(of(0).iter().all(|of| of["error"] == 0.0 && of["input"]["sqnr_db"].is_null()));
    assert!(of(1).iter().all(|of| of["error"].as_f64().unwrap() > 0.01), "{inside}");
    let drift = |i: usize| inside["recipes"][i]["drift"].as_array().unwrap().clone();
    assert_eq!((drift(0), &drift(2)[0]), (vec![json!(0.0), json!(0.0)], &json!(0.0)));
    assert!(drift(2)[1].as_f64().unwrap() > 0.0);
    let parts = |each: &str| {
        let ranked =
            eval(folder, &[&few[..], &["--sensitivity", "mxfp4", "--each", each]].concat());
        ranked["recipes"].as_array().unwrap()[1..].to_vec()
    };
    let ranked = parts("layer");
    let mut names: Vec<&str> = ranked.iter().map(|row| row["part"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["layer0", "layer1", "lm_head"]);
    let costs: Vec<f64> = ranked.iter().map(|row| row["kl"].as_f64().unwrap()).collect();
    assert!(costs.is_sorted_by(|a, b| a >= b) && costs[2] > 0.0, "{costs:?}");
    let own = ranked.iter().find(|row| row["part"] == "layer1").unwrap();
    assert_eq!(own["kl"], inside["recipes"][2]["kl"]);
    assert!(picture().contains("one part costs in mxfp4"));
    // A map has cells of one operator of one block each; the head is none.
    assert_eq!(parts("site").len(), 15);
    let map = picture();
    assert!(map.contains("gate_proj") && !map.contains("lm_head"), "{map}");
}

/// A text that goes on by a cache: the same for the same seed, ended by what ends it.
#[test]
fn a_text_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    let run = |arguments: &[&str]| {
        let tokens: &[&str] =
            if arguments.contains(&"--tokens") { &[] } else { &["--tokens", "12"] };
        let all = [&["model", "--prompt", "Line 1 of", "-q"], tokens, arguments].concat();
        printed(folder, "generate", &all)
    };
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_str(&run(&[&["--json", "--endless"], arguments].concat())).unwrap()
    };
    let greedy = json(&["--temperature", "0"]);
    assert_eq!(
        (&greedy["ended_by"], greedy["prompt"].as_array().unwrap().len()),
        (&json!("tokens"), 9)
    );
    assert_eq!(greedy["tokens"].as_array().unwrap().len(), 12);
    let text = greedy["text"].as_str().unwrap();
    assert_eq!(run(&["--temperature", "0", "--endless"]), format!("Line 1 of{text}\n"));
    let drawn = |seed: &str| json(&["--seed", seed])["tokens"].clone();
    assert_eq!((drawn("1") == drawn("1"), drawn("1") == drawn("2")), (true, false));
    // A token is a character. The text ends before the first place of either text.
    let [third, fifth] = [2, 4].map(|i| text.chars().nth(i).unwrap().to_string());
    let stopped = json(&["--temperature", "0", "--stop", &fifth, "--stop", &third]);
    let before = text.find(&third).unwrap().min(text.find(&fifth).unwrap());
    assert_eq!((&stopped["text"], &stopped["ended_by"]), (&json!(text[..before]), &json!("stop")));
    // The model's own end is a token that is not shown; its context has 64.
    fs::write(folder.join("model/generation_config.json"), {
        json!({"eos_token_id": [95, greedy["tokens"][3]]}).to_string()
    })
    .unwrap();
    let ended = run(&["--temperature", "0", "--json"]);
    let ended: Value = serde_json::from_str(&ended).unwrap();
    let end = greedy["tokens"].as_array().unwrap();
    let end = end.iter().position(|token| token == &end[3]).unwrap();
    assert_eq!(
        ended["tokens"].as_array().unwrap()[..],
        greedy["tokens"].as_array().unwrap()[..end]
    );
    assert_eq!(ended["ended_by"], "the model's end");
    let long = json(&["--tokens", "200", "--recipe", "mxfp4", "--kv", "mxfp8-e4m3"]);
    assert_eq!(
        (&long["ended_by"], long["tokens"].as_array().unwrap().len()),
        (&json!("context"), 64 - 9 + 1)
    );
    for (arguments, expected) in [
        (&["--temperature", "-1"][..], "0.8"),
        (&["--stop", ""], "--stop is empty"),
        (&["--recipe", "mxfp9"], "mxfp9"),
        (&["--recipe", "f32+scores:tensor=bf16"], "rounds scores"),
    ] {
        let all = [&["generate", "model", "--prompt", "a"], arguments].concat();
        let output = exmy(&all).current_dir(folder).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains(expected), "{error}");
    }
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(folder);
    fs::write(folder.join("short"), "a").unwrap();
    fs::write(folder.join("bad.gguf"), b"GGUF\x03\0\0\0").unwrap();
    let error = |arguments: &[&str]| {
        let output = exmy(&[&["eval"], arguments].concat()).current_dir(folder).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for (arguments, expected) in [
        (&["model", "--data", "none"][..], "cannot read none"),
        (&["none", "--data", "text"], "cannot read none"),
        (&["bad.gguf", "--data", "text"], "bad.gguf"),
        (&["model", "--data", "short"], "score none"),
        (&["model", "--data", "text", "--tokens", "1"], "--tokens takes two or more of its"),
        (&["model", "--data", "text", "--window", "65"], "from 2 to 64"),
        (&["model", "--data", "text", "--window", "8", "--stride", "9"], "from 1 to 8"),
        (&["model", "--data", "text", "--recipe", "mxfp9"], "mxfp9"),
        (&["model", "--data", "text", "--tokenizer", "text"], "no tokenizer"),
        (&["model", "--data", "text", "--recipe", "f32,"], "empty"),
        (
            &["model", "--data", "text", "--recipe", "f32,bf16", "--sensitivity", "mxfp4"],
            "2 recipes",
        ),
        (&["model", "--data", "text", "--sensitivity", "mxfp9"], "mxfp9"),
        (&["model", "--data", "text", "--out", "picture.png"], "picture.svg"),
        (&["model", "--data", "text", "--smooth", "2", "--calibrate", "text"], "from 0 to 1"),
        (&["model", "--data", "text", "--gptq", "bf16", "--calibrate", "text"], "a block format"),
        (&["model", "--data", "text", "--mse", "bf16"], "a block format"),
        (&["model", "--data", "text", "--calibrate", "text"], "--smooth or --gptq"),
    ] {
        let error = error(arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
