//! Runs listed, compared and exported.

use crate::{TINY, exmy, printed, run_of, skipped, succeed, text_file};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Trains two recipes for a few steps, with a probe, into `runs`.
fn trained(root: &Path) {
    let data = text_file(root);
    let train = ["train", "--data", &data, "--recipe", "f32,mxfp4", "--quiet", "--out", "runs"];
    let more = ["--set", "train.steps=8", "--set", "record.probes=[\"norms\"]"];
    succeed(exmy(&train).args(TINY).args(more).current_dir(root));
}

/// The exit code, stdout and stderr of a command in a folder.
fn said(root: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = exmy(arguments).current_dir(root).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn json(root: &Path, arguments: &[&str]) -> Value {
    let text = printed(root, arguments[0], &arguments[1..]);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn runs_are_listed_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    assert!(said(root, &["ls"]).2.contains("there is no folder runs here"));
    trained(root);
    let run = run_of(&root.join("runs"), "mxfp4-s5");
    let summary: Value =
        serde_json::from_slice(&fs::read(run.join("summary.json")).unwrap()).unwrap();
    let listed = json(root, &["ls", "--json"]);
    let (f32, mxfp4) = (&listed["runs"][0], &listed["runs"][1]);
    assert_eq!((&f32["recipe"], &mxfp4["recipe"]), (&"f32".into(), &"mxfp4".into()));
    assert_eq!(
        (&mxfp4["loss"], &mxfp4["val_loss"]),
        (&summary["train_loss"], &summary["val_loss"])
    );
    assert_eq!((&mxfp4["state"], &mxfp4["step"]), (&"complete".into(), &8.into()));
    assert_eq!(listed["left_out"], Value::Array(vec![]));
    let table = printed(root, "ls", &[]);
    let line = table.lines().find(|line| line.starts_with("mxfp4-s5 ")).unwrap();
    assert!(line.contains("  mxfp4   complete     5      8  "), "{table}");

    let found = json(root, &["compare", "runs/f32-s5", "runs/mxfp4-s5", "--json"]);
    let (first, other) = (&found["runs"][0], &found["runs"][1]);
    let base = first["val_loss"].as_f64().unwrap();
    let gap = (summary["val_loss"].as_f64().unwrap() / base - 1.0) * 100.0;
    assert_eq!((&first["gap_percent"], &other["gap_percent"]), (&Value::Null, &gap.into()));
    // The initial weights are the same, and so are the first batches.
    assert_eq!(other["records"]["state"], "differ");
    assert_eq!(other["records"]["step"], 0, "{other}");
    let keys: Vec<&Value> =
        found["configuration"].as_array().unwrap().iter().map(|of| &of["key"]).collect();
    assert_eq!(keys, ["recipe"]);
    let same = printed(root, "compare", &["runs/f32-s5", "runs"]);
    assert!(same.contains(&format!("{gap:+.2} %")), "{same}");
    let one = said(root, &["compare", "runs/f32-s5"]);
    assert!(one.0 == Some(2) && one.2.contains("two are compared at least"), "{one:?}");

    // A run that is cut short is under way or stopped, and a changed record is said.
    let other = root.join("other");
    succeed(Command::new("cp").arg("-r").arg(run_of(&root.join("runs"), "f32-s5")).arg(&other));
    fs::remove_file(other.join("summary.json")).unwrap();
    let text = fs::read_to_string(other.join("metrics.jsonl")).unwrap();
    let short: String = text.lines().take(4).map(|line| format!("{line}\n")).collect();
    fs::write(other.join("metrics.jsonl"), short).unwrap();
    let (code, text, error) = said(root, &["ls", "other"]);
    assert!(code == Some(1) && text.contains("  3/8  "), "{text}");
    let damage = "metrics.jsonl ends at step 3 of 8";
    assert!(
        error.contains(&format!("damaged: other: {damage}\n1 run of other is damaged")),
        "{error}"
    );
    let (code, text, _) = said(root, &["ls", "other", "--json"]);
    let value: Value = serde_json::from_str(&text).unwrap();
    let cut = &value["runs"][0];
    assert_eq!((code, &cut["state"], &cut["damage"]), (Some(1), &"stopped".into(), &damage.into()));
    let (code, text, _) = said(root, &["compare", "runs/f32-s5", "other"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("damaged: metrics.jsonl ends at step 3 of 8"), "{text}");
    fs::remove_dir_all(other.join("checkpoints")).unwrap();
    let text = printed(root, "compare", &["runs/f32-s5", "other"]);
    assert!(text.contains("  not up to 3") && text.contains("all keys"), "{text}");
    // The losses before the first step say nothing of a format.
    assert!(text.contains("2 other") && !text.contains('%'), "{text}");

    // One that cannot be read hides none of the others.
    fs::write(run.join("config.toml"), "no\u{1b}[31m").unwrap();
    let (code, text, error) = said(root, &["ls"]);
    assert_eq!((code, text.matches("complete").count()), (Some(1), 1), "{text}");
    assert!(error.contains("left out: ") && !error.contains('\u{1b}'), "{error}");
    let (code, text, _) = said(root, &["ls", "--json"]);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, value["left_out"].as_array().unwrap().len()), (Some(1), 1), "{text}");
}

/// The checksum of a record, bit by bit.
fn masked(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    (!crc).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The messages of an event file.
fn messages(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_at(8);
        let (of_length, rest) = rest.split_at(4);
        assert_eq!(masked(length).to_le_bytes(), of_length);
        let length = u64::from_le_bytes(length.try_into().unwrap()) as usize;
        let (message, rest) = rest.split_at(length);
        assert_eq!(masked(message).to_le_bytes(), rest[..4]);
        all.push(message);
        bytes = &rest[4..];
    }
    all
}

/// A field of a protocol buffer: its number, and its bytes or the number that it holds.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let (number, length) = match key & 7 {
            0 => (varint(&mut bytes), 0),
            1 => (0, 8),
            2 => (0, varint(&mut bytes) as usize),
            5 => (0, 4),
            other => panic!("wire type {other}"),
        };
        all.push((key >> 3, number, &bytes[..length]));
        bytes = &bytes[length..];
    }
    all
}

/// Steps, tags and values of an event file.
fn scalars(bytes: &[u8]) -> Vec<(u64, String, f32)> {
    let mut all = Vec::new();
    for (i, message) in messages(bytes).into_iter().enumerate() {
        let event = fields(message);
        if i == 0 {
            assert!(event.contains(&(3, 0, b"brain.Event:2")), "{event:?}");
            continue;
        }
        let step = event.iter().find(|field| field.0 == 2).unwrap().1;
        let wall = event.iter().find(|field| field.0 == 1).unwrap().2;
        assert_eq!(f64::from_le_bytes(wall.try_into().unwrap()), step as f64);
        let summary = event.iter().find(|field| field.0 == 5).unwrap().2;
        for (_, _, value) in fields(summary) {
            let [(1, _, tag), (2, _, number)] = fields(value)[..] else { panic!("{value:?}") };
            let number = f32::from_le_bytes(number.try_into().unwrap());
            all.push((step, String::from_utf8(tag.to_vec()).unwrap(), number));
        }
    }
    all
}

#[test]
fn records_are_exported() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    trained(root);
    let run = run_of(&root.join("runs"), "f32-s5");
    let name = run.file_name().unwrap().to_str().unwrap();
    let read = |file: &Path| -> Vec<Value> {
        let text = fs::read_to_string(file).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    printed(root, "export", &["--tensorboard", "board", "runs"]);
    let events = root.join("board").join(name).join("events.out.tfevents.0.exmy");
    let found = scalars(&fs::read(&events).unwrap());
    let metrics = read(&run.join("metrics.jsonl"));
    for tag in ["loss", "val_loss", "lr", "grad_norm"] {
        let of = |line: &Value| Some((line["step"].as_u64()?, line[tag].as_f64()? as f32));
        let expected: Vec<_> = metrics.iter().filter_map(of).collect();
        let found = found.iter().filter(|(_, name, _)| name == tag);
        assert_eq!(found.map(|of| (of.0, of.2)).collect::<Vec<_>>(), expected, "{tag}");
        assert!(!expected.is_empty(), "{tag}");
    }
    let probe = &read(&run.join("probes.jsonl"))[0];
    let (part, value) = probe["parts"].as_object().unwrap().iter().next().unwrap();
    let value = value.as_f64().unwrap() as f32;
    let of_probe = (probe["step"].as_u64().unwrap(), format!("norms/{part}"), value);
    assert!(found.contains(&of_probe), "{of_probe:?}");

    // As lines; the first run's are those of its file, with what says whose they are.
    printed(root, "export", &["--jsonl", "all.jsonl", "runs"]);
    let lines = read(&root.join("all.jsonl"));
    assert_eq!(lines.len(), 2 * metrics.len());
    for (line, expected) in lines.iter().zip(&metrics) {
        assert_eq!(
            (&line["run"], &line["recipe"], &line["seed"]),
            (&"f32".into(), &"f32".into(), &5.into())
        );
        for key in ["step", "tokens", "loss", "val_loss", "clipped"] {
            assert_eq!(line[key], expected[key]);
        }
    }
    assert!(lines.iter().any(|line| line[format!("norms/{part}")].is_number()));
    let shown = printed(root, "export", &["--jsonl", "-", "runs"]);
    assert_eq!(shown, fs::read_to_string(root.join("all.jsonl")).unwrap());

    // Again: the same bytes, nothing next to them.
    let before = fs::read(&events).unwrap();
    printed(root, "export", &["--tensorboard", "board", "runs"]);
    assert!(fs::read(&events).unwrap() == before);
    assert_eq!(fs::read_dir(events.parent().unwrap()).unwrap().count(), 1);

    let own = run.join("metrics.jsonl");
    for (arguments, part) in [
        (&["export", "runs"][..], "--tensorboard"),
        (&["export", "--jsonl", "a.csv", "runs"], "name it a.jsonl"),
        (&["export", "--jsonl", own.to_str().unwrap(), "runs"], "a run's own record"),
        (&["export", "--jsonl", "none/a.jsonl", "runs"], "none/a.jsonl"),
        (&["export", "--tensorboard", "text.txt", "runs"], "text.txt is a file"),
        (&["export", "--tensorboard", "b", "none"], "none does not exist"),
    ] {
        let (code, _, error) = said(root, arguments);
        assert!(code == Some(2) && error.contains(part), "{arguments:?}: {error}");
    }
    // What was changed since is left out, and said.
    fs::write(&own, fs::read_to_string(&own).unwrap().replacen("\"loss\":", "\"loss\":1", 1))
        .unwrap();
    let (code, text, error) = said(root, &["export", "--jsonl", "-", "runs"]);
    assert_eq!((code, text.lines().count()), (Some(1), metrics.len()), "{error}");
    assert!(error.contains("left out: ") && error.contains("metrics.jsonl"), "{error}");
}

/// TensorBoard itself reads what was written, where it is installed.
#[test]
fn tensorboard_reads_event_files() {
    const SCRIPT: &str = "
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
board = EventAccumulator(sys.argv[1]); board.Reload()
for tag in board.Tags()['scalars']:
    for event in board.Scalars(tag): print(tag, event.step, repr(event.value))
";
    let python = std::env::var_os("EXMY_PYTHON").unwrap_or_else(|| "python3".into());
    let has = Command::new(&python).args(["-c", "import tensorboard"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        skipped("Python with TensorBoard");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    trained(folder.path());
    printed(folder.path(), "export", &["--tensorboard", "board", "runs/f32-s5"]);
    let run = run_of(&folder.path().join("runs"), "f32-s5");
    let board = folder.path().join("board").join(run.file_name().unwrap());
    let output = succeed(Command::new(&python).args(["-c", SCRIPT]).arg(&board));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut read = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let value: f64 = words[2].parse().unwrap();
        read.insert((words[1].parse::<u64>().unwrap(), words[0].to_owned()), value as f32);
    }
    let bytes = fs::read(board.join("events.out.tfevents.0.exmy")).unwrap();
    let own = scalars(&bytes).into_iter().map(|(step, tag, value)| ((step, tag), value));
    assert_eq!(read, own.collect());
}
