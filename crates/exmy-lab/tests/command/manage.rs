//! Runs that are divided, switched, rolled back, branched, begun with other weights, and ended.

#[cfg(target_os = "linux")]
use crate::SmallDisk;
use crate::kill::kill_after;
use crate::{TINY, assert_same, contents, exmy, run_of, succeed, text_file};
use exmy::random::{Philox, Stream};
use exmy_train::train::record::{Event, Metrics, read_metrics};
use exmy_train::train::run::{Folder, Summary};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Trains the tiny network on a text in `folder`, with more arguments; the output folder.
fn train(folder: &Path, name: &str, more: &[&str]) -> PathBuf {
    let (data, out) = (text_file(folder), folder.join(name));
    let mut command = exmy(&["train", "--data", &data, "--quiet", "--out"]);
    succeed(command.arg(&out).args(TINY).args(more));
    out
}

fn metrics(run: &Path) -> Vec<Metrics> {
    read_metrics(&run.join("metrics.jsonl")).unwrap()
}

fn summary(run: &Path) -> Summary {
    Folder::new(run).summary().unwrap().unwrap()
}

fn read(run: &Path, file: &str) -> Vec<u8> {
    fs::read(run.join(file)).unwrap()
}

/// The losses of a step's parts make its loss, and the gradients its gradient: with one part what
/// they are without, with several the same up to rounding.
#[test]
fn parts_of_a_step_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let part = |name: &str, parts: &str| {
        let more = ["--recipe", "f32", "--set", parts, "--set", "train.steps=12"];
        run_of(&train(folder.path(), name, &more), "f32-s5")
    };
    let whole = part("whole", "train.accumulate=1");
    for parts in ["2", "4"] {
        let divided = part(parts, &format!("train.accumulate={parts}"));
        let (whole, divided) = (metrics(&whole), metrics(&divided));
        for (a, b) in whole.iter().zip(&divided).skip(1) {
            let near =
                |a: Option<f64>, b: Option<f64>| (a.unwrap() / b.unwrap() - 1.0).abs() < 1e-4;
            assert!(near(a.loss, b.loss) && near(a.grad_norm, b.grad_norm), "{a:?} {b:?}");
            assert_eq!((a.tokens, a.lr), (b.tokens, b.lr));
        }
        assert_eq!(whole.len(), divided.len());
    }
}

/// Parts of a step draw random bits of their own, and everything repeats.
#[test]
fn parts_of_a_step_repeat_for_any_threads() {
    let folder = tempfile::tempdir().unwrap();
    let part = |name: &str, threads: &str| {
        let more = ["--recipe", "mxfp4@sr8", "--set", "train.accumulate=4", "--threads", threads];
        train(folder.path(), name, &more)
    };
    assert_same(&part("one", "1"), &part("two", "2"), "2 threads");
}

/// A switch at step N, and a branch at N under the other recipe, lead to the same bits. A branch that changes
/// nothing repeats the run it left, also where that was switched before.
#[test]
fn a_branch_equals_a_switch_and_a_control_equals_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let rules = root.join("rules.toml");
    fs::write(&rules, "[[at]]\nstep = 20\nthen = \"mxfp4@sr8\"\n").unwrap();
    let keep = ["--set", "record.checkpoint_at=[10, 20, 25]", "--threads", "1"];
    let with = |more: &[&'static str]| -> Vec<&str> { [more, &keep[..]].concat() };
    let plain = run_of(&train(root, "plain", &with(&["--recipe", "bf16"])), "bf16-s5");
    let config = ["--config", rules.to_str().unwrap()];
    let switched = train(root, "switched", &[&with(&["--recipe", "bf16"])[..], &config].concat());
    let switched = run_of(&switched, "bf16-s5");
    assert!(
        metrics(&plain)[..21]
            .iter()
            .map(|m| m.loss)
            .eq(metrics(&switched)[..21].iter().map(|m| m.loss))
    );
    assert!(metrics(&plain)[25].loss != metrics(&switched)[25].loss);
    let event = Event::At { rule: 1, recipe: "mxfp4@sr8".into() };
    assert_eq!(metrics(&switched)[20].events, [event]);
    let branch = |name: &str, from: &Path, step: u64, more: &[&str]| {
        let out = root.join(name);
        let from = format!("{}@{step}", from.to_str().unwrap());
        let mut command = exmy(&["train", "--quiet", "--branch", &from, "--out"]);
        succeed(command.arg(&out).args(more));
        out
    };
    // A checkpoint also says what was recorded before it, and a switch is.
    let state = |run: &Path| {
        let layout = Folder::new(run).config().unwrap().model.layout();
        let path = run.join("checkpoints/step-00000040.safetensors");
        exmy_train::train::checkpoint::load(&path, &layout).unwrap()
    };
    let branched = branch("branched", &plain, 20, &["--recipe", "mxfp4@sr8,bf16"]);
    for (branch, run) in [("mxfp4@sr8-s5", &switched), ("bf16-s5", &plain)] {
        let branch = run_of(&branched, branch);
        assert!(read(&branch, "model.safetensors") == read(run, "model.safetensors"), "{branch:?}");
        assert!(state(&branch) == state(run), "{branch:?}");
    }
    assert!(read(&run_of(&branched, "bf16-s5"), "metrics.jsonl") == read(&plain, "metrics.jsonl"));
    // The control knows the precision of its own steps alone.
    let mut control = summary(&run_of(&branched, "bf16-s5"));
    assert_eq!(control.precision[0].from, 20);
    control.precision[0].from = 0;
    assert_eq!(control, summary(&plain));
    // Before the switch the control will switch, after it it has switched.
    for (step, name) in [(10, "bf16-s5"), (25, "mxfp4@sr8-s5")] {
        let out = branch(&format!("control{step}"), &switched, step, &[]);
        let checkpoint = "checkpoints/step-00000040.safetensors";
        for file in ["model.safetensors", checkpoint, "metrics.jsonl"] {
            assert!(read(&run_of(&out, name), file) == read(&switched, file), "{step}: {file}");
        }
    }
    // A branch is a run: without its result it is made again, from its own folder alone.
    let run = run_of(&branched, "mxfp4@sr8-s5");
    let expected = contents(&run);
    fs::remove_file(run.join("summary.json")).unwrap();
    fs::remove_file(run.join("checkpoints/step-00000040.safetensors")).unwrap();
    fs::rename(&plain, root.join("elsewhere")).unwrap();
    succeed(exmy(&["train", "--quiet", "--resume"]).arg(&run));
    assert!(contents(&run) == expected);
}

/// The rule sees the first loss below its limit; the run goes back and passes the place once more,
/// now under the other recipe.
const ROLLBACK: &str = "[[when]]\nmetric = \"loss\"\nbelow = 2.5\nfor = 4\nthen = \"mxfp4@sr8\"\n\
                        cooldown = 100\nrollback = true\n";

#[test]
fn rules_roll_back_and_what_was_undone_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.toml");
    fs::write(&rules, ROLLBACK).unwrap();
    let more = ["--recipe", "bf16", "--lr", "1e-2", "--set", "record.checkpoint_every=3"];
    let more = [&more[..], &["--set", "record.keep=1"]].concat();
    let plain = run_of(&train(folder.path(), "plain", &more), "bf16-s5");
    let rules = ["--config", rules.to_str().unwrap()];
    let out = run_of(&train(folder.path(), "rolled", &[&more[..], &rules].concat()), "bf16-s5");
    let (before, after) = (metrics(&plain), metrics(&out));
    let since = before.iter().position(|line| line.loss.is_some_and(|loss| loss < 2.5)).unwrap();
    let from = since + 3;
    assert!(since > 3 && from < 40, "a test of nothing: {since}");
    let to = (since - 1) / 3 * 3;
    let undone = read_metrics(&out.join("discarded/rollback-01.jsonl")).unwrap();
    assert_eq!(undone, before[to + 1..=from]);
    assert_eq!(after[..=to], before[..=to]);
    assert_eq!(
        after[to + 1].events,
        [Event::Rollback {
            rule: 1,
            metric: "loss".into(),
            value: before[from].loss,
            from: from as u64,
            to: to as u64,
            recipe: "mxfp4@sr8".into(),
        }]
    );
    assert!(after[to + 1].loss != before[to + 1].loss, "the recipe has not changed");
    assert_eq!(
        after.iter().map(|line| line.step).collect::<Vec<_>>(),
        (0..=40).collect::<Vec<_>>()
    );
    // The same as a switch there, but for what is said about it.
    let at = folder.path().join("at.toml");
    fs::write(&at, format!("[[at]]\nstep = {to}\nthen = \"mxfp4@sr8\"\n")).unwrap();
    let at = ["--config", at.to_str().unwrap()];
    let switched = run_of(&train(folder.path(), "switched", &[&more[..], &at].concat()), "bf16-s5");
    assert!(read(&switched, "model.safetensors") == read(&out, "model.safetensors"));
}

/// Killed at any moment, also while it goes back, a run comes to the same files.
#[test]
fn rollbacks_survive_kills() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.toml");
    // Two rules, so that one rollback leads behind another.
    let second = "[[when]]\nmetric = \"loss\"\nbelow = 4.0\nfor = 9\nthen = \"+out=bf16\"\n\
                  rollback = true\ntimes = 1\n";
    fs::write(&rules, format!("{ROLLBACK}{second}")).unwrap();
    let rules = ["--config", rules.to_str().unwrap(), "--threads", "1"];
    let more = ["--recipe", "bf16", "--lr", "1e-2", "--set", "record.checkpoint_every=2"];
    let probes = ["--set", "record.probes=[\"norms\"]", "--set", "record.probe_every=1"];
    let more = [&more[..], &probes, &rules].concat();
    let begun = Instant::now();
    let expected = train(folder.path(), "expected", &more);
    let whole = begun.elapsed();
    let discarded = fs::read_dir(run_of(&expected, "bf16-s5").join("discarded")).unwrap().count();
    assert_eq!(discarded, 4, "a test of nothing");
    let random = Philox::new(2, Stream::new("kill times"));
    let data = text_file(folder.path());
    for attempt in 0..6 {
        let out = folder.path().join(format!("run{attempt}"));
        let name = out.to_str().unwrap();
        let start = ["train", "--data", &data, "--quiet", "--out", name];
        let mut arguments: Vec<&str> = [&start[..], &TINY, &more].concat();
        for again in 0..3 {
            let after = whole.mul_f64(random.uniform(3 * attempt + again));
            kill_after(&arguments, after);
            if out.exists() {
                arguments = vec!["train", "--quiet", "--threads", "1", "--resume", name];
            }
        }
        succeed(&mut exmy(&arguments));
        assert_same(&expected, &out, &format!("attempt {attempt}"));
        fs::remove_dir_all(&out).unwrap();
    }
}

/// Without a checkpoint from before, the run goes back to its beginning.
#[test]
fn a_rollback_may_lead_to_the_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let rules = folder.path().join("rules.toml");
    fs::write(&rules, ROLLBACK).unwrap();
    let config = ["--config", rules.to_str().unwrap(), "--set", "record.checkpoint_every=0"];
    let more = [&["--recipe", "bf16", "--lr", "1e-2"], &config[..]].concat();
    let out = run_of(&train(folder.path(), "rolled", &more), "bf16-s5");
    let switched = train(folder.path(), "switched", &["--recipe", "mxfp4@sr8", "--lr", "1e-2"]);
    let model = read(&run_of(&switched, "mxfp4@sr8-s5"), "model.safetensors");
    assert!(read(&out, "model.safetensors") == model);
}

/// A limit that is broken ends the run with its reason; the result names the step.
#[test]
fn a_diverged_run_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--recipe", "f32", "--set", "stop.loss_above=5.0", "--set", "stop.patience=3"];
    let out = run_of(&train(folder.path(), "out", &more), "f32-s5");
    let result = summary(&out);
    assert_eq!((result.diverged_at, result.steps, result.val_loss), (Some(3), 3, None));
    let reason = result.reason.unwrap();
    assert!(reason.starts_with("loss 5.") && reason.ends_with(" above 5"), "{reason}");
    let lines = metrics(&out);
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[3].divergence(), Some(reason.as_str()));
    // It is a result, reported last, and a failure only for those who say so.
    let resume = ["train", "--resume", "out", "-q"];
    for (more, code) in [(&[][..], 0), (&["--fail-on-divergence"], 3)] {
        let mut command = exmy(&resume);
        let output = command.args(more).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{more:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let last = text.lines().last().unwrap();
        assert!(
            last.starts_with("f32-s5-") && last.ends_with(&format!(" diverged: {reason}")),
            "{last}"
        );
    }
    // Not a number, from a learning rate without bounds.
    let more = ["--recipe", "f32", "--lr", "1e30", "--set", "train.clip=0"];
    let result = summary(&run_of(&train(folder.path(), "nan", &more), "f32-s5"));
    assert!(result.diverged_at.is_some() && result.reason.is_some());
}

/// A run that begins with another's weights has its validation loss; what does not fit is listed.
#[test]
fn weights_of_a_file_are_the_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let first = run_of(&train(folder.path(), "first", &["--recipe", "f32"]), "f32-s5");
    let model = first.join("model.safetensors");
    let (data, out) = (text_file(folder.path()), folder.path().join("second"));
    let mut command = exmy(&["train", "--data", &data, "--recipe", "f32", "--out"]);
    command.arg(&out).args(TINY).args(["--steps", "3", "--init-from"]).arg(&model);
    let output = succeed(&mut command);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("12 of 12 parameters from"), "{said}");
    let run = run_of(&out, "f32-s5");
    assert_eq!(metrics(&run)[0].val_loss, metrics(&first)[40].val_loss);
    // One block more: its parameters stay fresh. Another width: refused, and nothing is written.
    let deeper = folder.path().join("deeper");
    let mut command = exmy(&["train", "--data", &data, "--recipe", "f32", "--out"]);
    command.arg(&deeper).args(TINY).args(["--set", "model.layers=2", "--steps", "1"]);
    let output = succeed(command.arg("--init-from").arg(&model));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("not in the file: model.layers.1.mlp.down_proj.weight"), "{said}");
    let mut command = exmy(&["train", "--data", &data, "--recipe", "f32", "--out"]);
    command.arg(folder.path().join("wider")).args(TINY).args(["--set", "model.d_model=64"]);
    let output = command.arg("--init-from").arg(&model).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("\"lm_head.weight\" is [256, 32]"), "{said}");
    assert!(!folder.path().join("wider").exists());
    // Before the first checkpoint the file is still needed, and must be the same one.
    fs::remove_file(run.join("summary.json")).unwrap();
    fs::remove_dir_all(run.join("checkpoints")).unwrap();
    succeed(exmy(&["train", "--quiet", "--resume"]).arg(&run));
    assert_eq!(metrics(&run)[0].val_loss, metrics(&first)[40].val_loss);
    fs::remove_file(run.join("summary.json")).unwrap();
    fs::remove_dir_all(run.join("checkpoints")).unwrap();
    fs::write(&model, "other").unwrap();
    let output = exmy(&["train", "--quiet", "--resume"]).arg(&run).output().unwrap();
    assert!(
        String::from_utf8(output.stderr).unwrap().contains("is not the file the run began with")
    );
}

/// Recipes times rates times seeds in one call: as many runs, one table.
#[test]
fn seeds_rates_and_recipes_in_one_call() {
    let folder = tempfile::tempdir().unwrap();
    let (data, out) = (text_file(folder.path()), folder.path().join("out"));
    let mut command =
        exmy(&["train", "--data", &data, "--recipe", "f32,mxfp4", "--quiet", "--out"]);
    command.arg(&out).args(TINY).args(["--seeds", "3", "--lr", "1e-3,1e-2", "--steps", "6"]);
    let output = succeed(&mut command);
    let table = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<&str>> = table.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(lines[1][..3], ["recipe", "lr", "seeds"]);
    let starts: Vec<_> = lines[2..6].iter().map(|line| line[..3].join(" ")).collect();
    assert_eq!(starts, ["f32 1e-3 3", "f32 1e-2 3", "mxfp4 1e-3 3", "mxfp4 1e-2 3"]);
    assert_eq!(fs::read_dir(&out).unwrap().flatten().filter(|e| e.path().is_dir()).count(), 12);
    let mut losses: Vec<f64> = Vec::new();
    for seed in 5..8 {
        losses.push(summary(&run_of(&out, &format!("mxfp4-lr1e-2-s{seed}"))).val_loss.unwrap());
    }
    let mean = losses.iter().sum::<f64>() / 3.0;
    assert_eq!(lines[5][4], format!("{mean:.4}"), "{table}");
    // The same run on its own has the same bits.
    let alone = folder.path().join("alone");
    let mut command = exmy(&["train", "--data", &data, "--recipe", "mxfp4", "--quiet", "--out"]);
    command.arg(&alone).args(TINY).args(["--set", "seed=6", "--lr", "1e-2", "--steps", "6"]);
    succeed(&mut command);
    let (one, other) = (run_of(&alone, "mxfp4-s6"), run_of(&out, "mxfp4-lr1e-2-s6"));
    assert!(contents(&one) == contents(&other));
}

/// A full disk ends the run with one line; when there is space again it goes on to the same bits.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::new(folder.path()) else { return };
    let more = ["--recipe", "mxfp4@sr8", "--set", "record.checkpoint_every=5"];
    let expected = train(folder.path(), "expected", &more);
    let (data, out) = (text_file(folder.path()), disk.0.join("out"));
    let mut command = exmy(&["train", "--data", &data, "--quiet", "--out"]);
    let output = command.arg(&out).args(TINY).args(more).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("No space left on device") && !said.contains("panicked"), "{said}");
    disk.grow();
    succeed(exmy(&["train", "--quiet", "--resume"]).arg(&out));
    assert_same(&expected, &out, "after a full disk");
}

/// On a narrow terminal progress is one line that is written over, whatever the recipe's name.
#[test]
#[cfg(target_os = "linux")]
fn progress_fits_forty_columns() {
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let recipe = "mxfp4+last1:o_proj=bf16+out=bf16,bf16";
    let mut words = vec![env!("CARGO_BIN_EXE_exmy"), "train", "--data", &data, "--recipe", recipe];
    words.extend(TINY);
    let line = format!("stty cols 40 rows 24; {} --out out", words.join(" "));
    let mut command = std::process::Command::new("script");
    let output = command.args(["-qec", &line, "/dev/null"]).current_dir(&folder).output();
    let Ok(output) = output else {
        crate::skipped("command `script`, which imitates a terminal");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("/40 ") && said.contains("…"), "no progress in {said}");
    // What moves up writes over more than one line.
    assert!(!said.contains("\x1b[1A"), "{said}");
}

/// Readers of stdout and stderr that go away end neither the work nor its records, and a result that
/// cannot be written is reported.
#[cfg(unix)]
#[test]
fn nobody_need_read_what_is_said() {
    use std::process::Stdio;
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let begin = |name: &str, more: &[&str]| {
        let mut command = exmy(&["train", "--data", &data, "--recipe", "f32,mxfp4", "--profile"]);
        command.arg("--out").arg(folder.path().join(name)).args(TINY).args(more);
        command
    };
    let rule = r#"at=[{step=3,then="bf16"}]"#;
    let mut child = begin("unread", &["--set", rule])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    succeed(&mut begin("read", &["--set", rule]));
    assert_same(&folder.path().join("read"), &folder.path().join("unread"), "unread");

    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let output = begin("full", &["--set", rule]).stdout(full).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("cannot write the result"), "{text}");
    assert_same(&folder.path().join("read"), &folder.path().join("full"), "full");
}
