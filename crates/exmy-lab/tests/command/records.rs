//! Records that were changed from outside are not gone on with, and no picture loses a curve by them.

use crate::bad_input::refused;
use crate::{TINY, assert_same, contents, exmy, run_of, succeed, text_file};
use std::fs;
use std::path::{Path, PathBuf};

/// Trains the tiny network in f32 and MXFP4, with checkpoints of steps 2, 4 and 6; the run in MXFP4.
fn begin(root: &Path, out: &str) -> PathBuf {
    let data = text_file(root);
    let mut command = exmy(&["train", "--data", &data, "--recipe", "f32,mxfp4", "--out", out]);
    let more =
        ["train.steps=6", "record.checkpoint_every=2", "record.keep=3", "record.probe_every=1"];
    let more = more.iter().flat_map(|setting| ["--set", setting]);
    let probes = ["--set", "record.probes=[\"norms\"]", "--quiet"];
    succeed(command.args(TINY).args(more).args(probes).current_dir(root));
    run_of(&root.join(out), "mxfp4-s5")
}

/// The text of a file of lines with another digit in line `at`, from 0.
fn edited(text: &str, at: usize) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let end = lines[at].rfind(|c: char| c.is_ascii_digit()).unwrap();
    let digit = if &lines[at][end..=end] == "1" { "2" } else { "1" };
    lines[at].replace_range(end..=end, digit);
    lines.join("\n") + "\n"
}

/// The text of a summary without its last key.
fn without_digests(summary: &str) -> String {
    let records = summary.find(",\n  \"records\"").unwrap();
    format!("{}\n}}\n", &summary[..records])
}

/// What every command that shows runs says of a damaged one, with the exit code 1.
fn damaged(root: &Path, fault: &str) {
    let commands: [&[&str]; 6] = [
        &["ls", "out"],
        &["compare", "out"],
        &["watch", "out", "--once"],
        &["report", "out"],
        &["plot", "out"],
        &["export", "--jsonl", "all.jsonl", "out"],
    ];
    for command in commands {
        let output = exmy(command).current_dir(root).output().unwrap();
        let (seen, said) =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).into();
        let code = output.status.code();
        assert!(code == Some(1), "{command:?} {fault}: {code:?} {seen}{said}");
        let line = seen.lines().chain(said.lines()).find(|line| line.contains(fault));
        let line = line.unwrap_or_else(|| panic!("{command:?} {fault}: {seen}{said}"));
        assert!(line.contains("mxfp4"), "{command:?}: {line}");
        if command[0] == "ls" {
            assert!(
                seen.lines().any(|line| line.starts_with("mxfp4") && line.ends_with("  damaged"))
            );
        }
    }
}

/// The first lines of a text.
fn first(text: &str, count: usize) -> String {
    text.split_inclusive('\n').take(count).collect()
}

#[test]
fn a_complete_run_without_its_records_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let run = begin(root, "out");
    let resume = ["train", "--quiet", "--resume", "out"];
    for name in ["metrics.jsonl", "probes.jsonl"] {
        let path = run.join(name);
        let text = fs::read_to_string(&path).unwrap();
        let count = text.lines().count();
        let whole = format!("{name} up to step 6 is not as it was written");
        let fault = |metrics: &str| match name {
            "metrics.jsonl" => metrics.to_owned(),
            _ => whole.clone(),
        };
        let cases = [
            (None, format!("{name} is missing"), "summary.json and all checkpoints"),
            (Some(String::new()), format!("{name} is empty"), "summary.json and all checkpoints"),
            (
                Some(first(&text, 4)),
                fault("metrics.jsonl ends at step 3 of 6"),
                "after step 2: --resume",
            ),
            (
                Some(
                    text.lines()
                        .filter(|line| !line.contains("\"step\":3,"))
                        .fold(String::new(), |text, line| text + line + "\n"),
                ),
                fault("metrics.jsonl lacks step 3"),
                "after step 2: --resume",
            ),
            (Some(edited(&text, count - 1)), whole.clone(), "after step 4: --resume"),
            (Some(text.clone() + "{}\n"), whole.clone(), "remove summary.json: --resume"),
        ];
        for (changed, fault, works) in cases {
            match &changed {
                Some(text) => fs::write(&path, text).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            // Also where only the other run is meant: the picture is of both.
            let parts = ["mxfp4-s5", fault.as_str(), "put the file back as it was"];
            refused(root, &resume, &[&parts[..], &[works]].concat());
            let other = ["train", "--quiet", "--resume", "out/f32-s5"];
            refused(root, &other, &["mxfp4-s5", &fault, "loss.svg stays as it was"]);
            // A line that is none is named by its number instead.
            if changed.is_none_or(|text| !text.ends_with("{}\n")) {
                damaged(root, &fault);
            }
        }
        fs::write(&path, text).unwrap();
    }
    // A summary that says something else than its configuration or its metrics, or not what these are.
    let path = run.join("summary.json");
    let text = fs::read_to_string(&path).unwrap();
    for (key, fault) in [
        ("version", "is of version "),
        ("recipe", "recipe is not what config.toml gives"),
        ("seed", "seed is not what config.toml gives"),
        ("lr", "lr is not what config.toml gives"),
        ("parameters", "parameters is not what config.toml gives"),
        ("val_loss", "val_loss is not what metrics.jsonl gives"),
        ("records", "summary.json lacks its key records"),
    ] {
        let key = format!("\"{key}\":");
        let at = text.lines().position(|line| line.contains(&key)).unwrap();
        let other = match key.as_str() {
            "\"version\":" => text.replacen("\"version\": ", "\"version\": 9", 1),
            "\"records\":" => without_digests(&text),
            _ => edited(&text, at),
        };
        fs::write(&path, other).unwrap();
        refused(root, &resume, &["mxfp4-s5", fault]);
        if key != "\"version\":" {
            damaged(root, fault);
        }
    }
    fs::write(&path, text).unwrap();
    let expected = contents(root);
    succeed(exmy(&resume).current_dir(root));
    assert!(contents(root) == expected, "a resume of complete runs changed something");
}

#[test]
fn lines_before_a_checkpoint_must_be_those_that_were_written() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let run = begin(root, "out");
    let expected = contents(&run);
    let last = run.join("checkpoints/step-00000006.safetensors");
    for file in [&run.join("summary.json"), &last] {
        fs::remove_file(file).unwrap();
    }
    let resume = ["train", "--quiet", "--resume", "out"];
    let branch = ["train", "--quiet", "--branch", "out/mxfp4-s5@4", "--steps", "9", "--out", "b"];
    for name in ["metrics.jsonl", "probes.jsonl"] {
        let path = run.join(name);
        let text = fs::read_to_string(&path).unwrap();
        // The line of step 3.
        let at = text.lines().position(|line| line.starts_with(r#"{"step":3,"#)).unwrap();
        fs::write(&path, edited(&text, at)).unwrap();
        let fault = format!("{name} up to step 4 is not as it was written");
        refused(root, &resume, &[&fault, "remove the checkpoints after step 2: --resume takes"]);
        damaged(root, &fault);
        if name == "metrics.jsonl" {
            refused(root, &branch, &[&fault, "branch off at an earlier step"]);
        }
        // What comes after the checkpoint is made anew in any case.
        let at = text.lines().position(|line| line.starts_with(r#"{"step":5,"#)).unwrap();
        fs::write(&path, edited(&text, at)).unwrap();
    }
    succeed(exmy(&resume).current_dir(root));
    assert!(contents(&run) == expected, "the last two steps are others");
    // What was advised leads to the same run.
    let metrics = run.join("metrics.jsonl");
    fs::write(&metrics, edited(&fs::read_to_string(&metrics).unwrap(), 1)).unwrap();
    refused(root, &resume, &["remove summary.json and all checkpoints: --resume begins"]);
    fs::remove_file(run.join("summary.json")).unwrap();
    fs::remove_dir_all(run.join("checkpoints")).unwrap();
    succeed(exmy(&resume).current_dir(root));
    assert!(contents(&run) == expected, "begun anew");
}

#[test]
fn folders_of_before_there_were_digests_are_read_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let run = begin(root, "out");
    let summary = fs::read_to_string(run.join("summary.json")).unwrap();
    let old = without_digests(&summary).replacen("\"version\": 3", "\"version\": 2", 1);
    fs::write(run.join("summary.json"), old).unwrap();
    let metrics = run.join("metrics.jsonl");
    let text = fs::read_to_string(&metrics).unwrap();
    fs::write(&metrics, edited(&text, 3)).unwrap();
    let output = succeed(exmy(&["train", "--quiet", "--resume", "out"]).current_dir(root));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("note: 1 of 2 runs have no digests") && said.lines().count() == 1,
        "{said}"
    );
    // Steps that are not there are noticed all the same.
    fs::write(&metrics, first(&text, 3)).unwrap();
    refused(root, &["train", "--resume", "out"], &["metrics.jsonl ends at step 2 of 6"]);
    fs::write(&metrics, text).unwrap();
    fs::write(run.join("summary.json"), summary).unwrap();
    let again = begin(root, "again");
    assert_same(&again, &run, "put back");
}

/// Whoever is at work replaces checkpoints while others look: what was there a moment ago is no damage.
#[test]
fn a_checkpoint_that_goes_meanwhile_is_no_damage() {
    use exmy_train::train::run::{Folder, intact};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;
    let folder = tempfile::tempdir().unwrap();
    let run = Folder::new(begin(folder.path(), "out"));
    fs::remove_file(run.summary_file()).unwrap();
    let config = run.config().unwrap();
    let (done, last) = (AtomicBool::new(false), "checkpoints/step-00000006.safetensors");
    let (there, away) = (run.path().join(last), folder.path().join("away"));
    let found = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs::rename(&there, &away).unwrap();
                std::thread::sleep(Duration::from_micros(200));
                fs::rename(&away, &there).unwrap();
                std::thread::sleep(Duration::from_micros(20));
            }
        });
        let looks = (0..3000).map(|_| intact::of_run(&run, &config));
        let found = looks.filter(|found| !matches!(found, Ok(None))).count();
        done.store(true, Ordering::Relaxed);
        found
    });
    assert_eq!(found, 0);
}
