//! `exmy data`: token files that training takes, and what becomes of a call that is killed.

use crate::kill::kill_after;
use crate::{TINY, assert_same, exmy, printed, succeed};
use exmy::random::{Philox, Stream};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// A text of so many lines, in documents of some.
fn text(folder: &Path, lines: u64) -> String {
    let line = |i: u64| {
        let end = if i % 9 == 8 { "<|endoftext|>\n" } else { "" };
        format!("w{} of the {} and e{}\n{end}", i * i % 997, i % 31, i % 7)
    };
    let path = folder.join("text.txt");
    fs::write(&path, (0..lines).map(line).collect::<String>()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn token_files_are_trained_on() {
    let folder = tempfile::tempdir().unwrap();
    text(folder.path(), 900);
    let run = |command: &str, arguments: &[&str]| printed(folder.path(), command, arguments);
    let table = run("data", &["text.txt", "--out", "tokens", "--vocab", "400", "--quiet"]);
    let part = |split| -> Vec<String> {
        let line = table.lines().find(|line| line.starts_with(split)).unwrap();
        line.split("  ")
            .filter(|cell| !cell.is_empty())
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    let [train, validation] = [part("training"), part("validation")];
    let tokens = |part: &[String]| part[1].replace(' ', "").parse::<u64>().unwrap();
    let length = |name: &str| fs::metadata(folder.path().join("tokens").join(name)).unwrap().len();
    assert_eq!(length("train.bin"), 2 * tokens(&train));
    assert_eq!(length("val.bin"), 2 * tokens(&validation));
    assert!(table.contains("vocabulary of 400 tokens; 100 documents in 1 files"), "{table}");

    let train = |more: &[&str]| {
        let mut arguments = vec!["--data", "tokens", "--recipe", "f32", "--out", "runs", "--quiet"];
        arguments.extend(TINY);
        arguments.extend(more);
        run("train", &arguments)
    };
    let shown = train(&[]);
    // Nats a token, over ln 2 and the bytes of text that a token of validation stands for.
    let head: Vec<&str> =
        shown.lines().find(|line| line.starts_with("recipe")).unwrap().split("  ").collect();
    assert!(head.iter().any(|cell| cell.trim() == "val bits/byte"), "{shown}");
    let row: Vec<&str> = crate::row(&shown, "f32");
    let [loss, bits] = [row[2], row[3]].map(|cell| cell.parse::<f64>().unwrap());
    let per_token: f64 = validation[3].parse().unwrap();
    assert!(
        (bits - loss / std::f64::consts::LN_2 / per_token).abs() < 1e-3,
        "{bits} bits, {loss} nats, {shown}"
    );

    // The tokenizer beside the data makes text of tokens; a changed one is refused.
    let sampled = run("sample", &["runs", "--prompt", "w1 of é", "--tokens", "30"]);
    assert!(sampled.starts_with("w1 of é") && sampled.len() > 30, "{sampled}");
    let path = folder.path().join("tokens/tokenizer.json");
    let json = fs::read_to_string(&path).unwrap();
    fs::write(&path, json + " ").unwrap();
    let output = exmy(&["sample", "runs"]).current_dir(&folder).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("not the one of tokens.json"));
}

/// Killed at random moments until it comes to its end, it has the bytes of a call that nobody disturbed.
#[test]
fn killed_and_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let text = text(folder.path(), 6_000);
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (expected, killed) = (out("expected"), out("killed"));
    let arguments =
        |out: &str| ["data", &text, "--out", out, "--vocab", "500", "--quiet"].map(str::to_owned);
    let call = |out: &str| arguments(out);
    let begun = Instant::now();
    succeed(exmy(&[]).args(call(&expected)));
    let whole = begun.elapsed();
    let random = Philox::new(3, Stream::new("kill times"));
    for i in 0..8 {
        let call = call(&killed);
        let call: Vec<&str> = call.iter().map(String::as_str).collect();
        kill_after(&call, whole.mul_f64(random.uniform(i)).max(Duration::from_millis(1)));
    }
    succeed(exmy(&[]).args(call(&killed)));
    assert_same(Path::new(&expected), Path::new(&killed), "killed");
}

#[test]
fn a_mistake_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let text = text(folder.path(), 10);
    let said = |arguments: &[&str]| {
        let output = exmy(arguments).current_dir(&folder).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(&["data", &text]).contains("--out <DIR>"));
    assert!(said(&["data", "lost.txt", "--out", "o"]).contains("lost.txt"));
    assert!(said(&["data", &text, "--out", "o", "--vocab", "9"]).contains("257"));
    let both = ["data", &text, "--out", "o", "--vocab", "300", "--tokenizer", "t.json"];
    assert!(said(&both).contains("cannot be used with"));
    succeed(exmy(&["data", &text, "--out", "o", "--vocab", "260", "-q"]).current_dir(&folder));
    let path = folder.path().join("o/val.bin");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[2..]).unwrap();
    let message = said(&["train", "--data", "o", "--out", "r"]);
    assert!(message.contains("val.bin") && message.contains("cut off"), "{message}");
}
