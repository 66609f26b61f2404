//! A mistake gets one clear line that says what was given and what would work, exit code 2, and
//! nothing on the disk changes.

#[cfg(target_os = "linux")]
use crate::memory::limited;
use crate::{TINY, assert_same, contents, exmy, run_of, succeed, text_file};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs in `folder`, expects exit code 2 and each of `parts` in the message, and that no file
/// appeared, vanished or changed.
pub(crate) fn refused(folder: &Path, arguments: &[&str], parts: &[&str]) {
    let before = contents(folder);
    let output = exmy(arguments).current_dir(folder).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    for part in parts {
        assert!(message.contains(part), "{arguments:?}: no {part:?} in\n{message}");
    }
    assert!(!message.contains("panicked"), "{message}");
    assert!(message.lines().count() <= 24, "{arguments:?}: more than a screen\n{message}");
    assert!(contents(folder) == before, "{arguments:?} changed the folder");
}

#[test]
fn mistakes_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    text_file(root);
    fs::write(root.join("empty.txt"), "").unwrap();
    fs::write(root.join("short.txt"), "too short").unwrap();
    fs::write(root.join("sh\nort.txt"), "too short").unwrap();
    fs::write(root.join("odd.bin"), [1, 2, 3]).unwrap();
    fs::write(root.join("wrong.toml"), "[train]\nstep = 3\n").unwrap();
    fs::write(root.join("zero.toml"), "train = { steps = 0, lr = 0.0 }\n").unwrap();
    fs::write(root.join("broken.toml"), "[train\n").unwrap();
    fs::write(root.join("plan.toml"), "[grid]\nseed = [1]\n").unwrap();
    fs::write(root.join("model.pt"), b"PK\x03\x04\0\0\x08\x08\0\0archive/data.pkl").unwrap();
    fs::create_dir(root.join("nothing")).unwrap();
    let cases: &[(&[&str], &[&str])] = &[
        (&["--data", "absent.txt"], &["absent.txt", "--data takes"]),
        (&["--data", "empty.txt"], &["empty.txt", "empty"]),
        (&["--data", "nothing"], &["nothing"]),
        (&["--data", "short.txt"], &["short.txt", "64"]),
        (&["--data", "odd.bin"], &["odd.bin"]),
        (&["--data", "text.txt", "--set", "model.context=2000"], &["2000"]),
        (&["--set", "model.context=10000000"], &["model.context = 8 x 10000000", "2^26 tokens"]),
        (&["--recipe", "mxpf8-e4m3"], &["mxpf8-e4m3", "did you mean mxfp8-e4m3"]),
        (&["--recipe", "f32,,bf16"], &["empty name", "single commas"]),
        (&["--recipe", "e8m0"], &["e8m0", "no negative numbers"]),
        (&["--recipe", "e2m1/32:e8m0@cail"], &["cail", "floor"]),
        (&["--recipe", "bf16,bf16"], &["two runs", "bf16-s1"]),
        (&["--preset", "nanno"], &["nanno", "did you mean nano?"]),
        (&["--preset", "zzz"], &["zzz", "the presets are nano, deep"]),
        (&["--set", "train.stps=3"], &["train.stps", "did you mean train.steps?"]),
        (&["--set", "train.steps=many"], &["train.steps", "many"]),
        (&["--set", "train.steps"], &["key=value"]),
        (&["--set", "train.beta1=1.5"], &["train.beta1 = 1.5", "below 1"]),
        (&["--set", "model.heads=5"], &["heads"]),
        (&["--set", "train.schedule=cosinus"], &["cosinus", "cosine"]),
        (&["--steps", "0"], &["train.steps = 0"]),
        (&["--steps", "-1"], &["-1", "--steps"]),
        (&["--steps", "18446744073709551615"], &["train.steps", "2^36"]),
        (&["--set", "train.steps=-1"], &["train.steps=-1"]),
        (&["--set", "train.batch=4611686018427387904"], &["train.batch", "2^26 tokens"]),
        (&["--set", "model.layers=16777216"], &["16777216 layers"]),
        (
            &[
                "--set",
                "model.d_model=8",
                "--set",
                "model.hidden=4",
                "--set",
                "model.layers=100000",
            ],
            &["model.layers = 100000", "at most 2^16"],
        ),
        (&["--set", "model.norm=x"], &["model.norm=x", "layer-norm"]),
        (&["--set", "seed=9223372036854775808"], &["seed = 9223372036854775808", "range"]),
        (&["--set", "=1"], &["names no key"]),
        (&["--config", "zero.toml", "--steps", "10", "--lr", "-1"], &["train.lr = -1"]),
        (&["--lr", "nan"], &["train.lr"]),
        (&["--seed", "99999999999999999999"], &["99999999999999999999"]),
        (&["--threads", "0"], &["--threads"]),
        (&["--config", "absent.toml"], &["absent.toml", "--config takes a TOML file"]),
        (&["--config", "nothing"], &["nothing", "--config takes a TOML file"]),
        (&["--config", "wrong.toml"], &["wrong.toml", "train.step", "did you mean train.steps?"]),
        (&["--config", "broken.toml"], &["broken.toml"]),
        (&["--resume", "absent"], &["absent", "a folder that `exmy train` wrote"]),
        (&["--resume", "text.txt"], &["text.txt", "a folder that `exmy train` wrote"]),
        (&["--resume", "nothing"], &["no run in nothing"]),
        (&["--resume", "nothing", "--steps", "3"], &["--resume", "--steps"]),
        (&["--resume", "nothing", "--branch", "a@3"], &["--resume", "--branch"]),
        (&["--branch", "nothing"], &["nothing", "RUN@STEP"]),
        (&["--branch", "nothing@3"], &["nothing is no run", "config.toml", "runs/0001/f32-s1@500"]),
        (&["--branch", "nothing@3", "--seed", "2"], &["--branch", "--seed"]),
        (&["--init-from", "absent.safetensors"], &["absent.safetensors", "one safetensors file"]),
        (&["--init-from", "nothing"], &["nothing is a folder", "one safetensors file"]),
        (
            &["--init-from", "text.txt"],
            &["text.txt", "no whole safetensors", "another kind of file"],
        ),
        (&["--init-from", "model.pt"], &["model.pt", "is a .pt or .bin file of PyTorch"]),
        (&["--seeds", "0"], &["--seeds"]),
        (&["--lr", "1e-3,1e-3", "--recipe", "f32"], &["two runs", "once"]),
        (&["--set", "train.accumulate=3"], &["train.accumulate = 3", "train.batch = 8"]),
        (&["--set", "record.probes=[\"x\"]"], &["record.probes", "lastbin.gamma"]),
        (
            &["--preset", "proxy", "--set", "record.probes=[\"sharpness\"]"],
            &["record.probes", "the proxy has none"],
        ),
        (&["--set", "stop.loss_rise=-1.0"], &["stop.loss_rise = -1"]),
        (
            &["--set", "when=[{metric=\"los\",above=1.0,then=\"f32\"}]"],
            &["did you mean loss, lr or hot?"],
        ),
        (&["--recipi", "f32"], &["--recipi", "--recipe"]),
        (&["--recipe", "f32 bf16"], &["several recipes", "--recipe f32,bf16"]),
        (&["--set", "record.probes=sharpness"], &["the list []", "record.probes=[\"sharpness\"]"]),
        (&["--set", "at=[{step=3,then=bf16}]"], &["no value of TOML", "--set 'at=[{step=3, then"]),
        (&["--set", "start.step=3"], &["start.step = 3", "start.run", "--branch RUN@STEP"]),
        (&["--steps", "1e30"], &["1e30", "a whole number from 1 to 2^36"]),
        (&["--steps", "1.5"], &["1.5", "a whole number from 1 to 2^36"]),
        (&["--set", "train.steps=1e30"], &["the whole number 600, not 1e30"]),
        (&["--set", "train.steps=10"], &["train.warmup = 30", "`--steps 10`"]),
        (&["--set", "steps=10"], &["no key steps", "did you mean train.steps?"]),
        (&["--set", "record.keep=-1"], &["record.keep = -1 is negative", "above"]),
        (&["--lr", "1e-3;1e-2"], &["1e-3;1e-2", "separated by commas"]),
        (&["--config", "plan.toml"], &["plan.toml has a [grid]", "exmy sweep plan.toml"]),
        (&["--config", "text.txt"], &["line 1 is not TOML", "the line is \"w0 w1", "..."]),
        (&["--data", "sh\nort.txt"], &["sh\\nort.txt: bytes as tokens"]),
        (&["--data", "ab\nsent"], &["ab\\nsent"]),
        (&["--branch", "no\nthing@3"], &["no\\nthing is no run"]),
        (&["--set", "train.st\neps=3"], &["no key train.st\\neps"]),
        (&["--set", "train.steps=x\ny"], &["train.steps=x\\ny"]),
        (&["--out", "text.txt/x"], &["text.txt/x", "name of a new folder"]),
    ];
    for (arguments, parts) in cases {
        let mut whole = vec!["train"];
        whole.extend(*arguments);
        refused(root, &whole, parts);
    }
    if cfg!(target_os = "linux") {
        // Where nobody can make a folder, root among them.
        let train = ["train", "--out", "/proc/x"];
        refused(root, &train, &["cannot create /proc/x:", "name another with --out"]);
        let sweep = ["sweep", "plan.toml", "--out", "/proc/x"];
        refused(root, &sweep, &["cannot create /proc/x:", "name another with --out"]);
    }
    refused(root, &["sweep", "absent.toml"], &["absent.toml", "a plan is a TOML file"]);
    let status = ["sweep", "wrong.toml", "--status"];
    refused(root, &status, &["manifest.json", "runs/wrong", "makes its folder", "--out"]);
    refused(root, &["sample", "nothing"], &["nothing"]);
    refused(root, &["sample", "nothing", "--temperature", "-1"], &["--temperature -1", "0.8"]);
    refused(root, &["sample", "nothing", "--tokens", "-3"], &["'-3' for '--tokens"]);
    refused(root, &["sample", "text.txt"], &["text.txt"]);
    refused(root, &["trian"], &["trian", "train"]);
    // Breaks and colours of what was given are shown.
    let device = "--device=a\nb\u{1b}[31m";
    refused(root, &["train", device], &["'a\\nb\\u{1b}[31m' for '--device"]);
    refused(root, &["train", "--lr", "1,a\nb"], &["'a\\nb' for '--lr"]);
    // However long what was given is, the answer is short, and has its end.
    let (recipe, digits) = ("e4m3fn+".repeat(15_000), "9".repeat(100_000));
    let (word, option) = ("y".repeat(100_000), format!("--{digits}"));
    for (arguments, part) in [
        (&["train", "--recipe", &*recipe][..], "e4m3fn"),
        (&["train", "--steps", &digits], "steps are a whole number"),
        (&["train", "--lr", &format!("{word},1")], "a rate is a number"),
        (&["train", &option], "' found"),
        (&["vectors", &word], "yyy..."),
        (&[&word], "unrecognized subcommand"),
    ] {
        let output = exmy(arguments).current_dir(root).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.len() < 5_000 && said.contains(part), "{} bytes: {said}", said.len());
    }
}

/// What has no end, or waits for somebody, is not read: the answer comes at once.
#[test]
#[cfg(target_os = "linux")]
fn what_has_no_end_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let data = text_file(root);
    let mut train = vec!["train", "--data", &data, "--recipe", "f32", "--out", "run", "-q"];
    train.extend(TINY);
    train.extend(["--steps", "2", "--set", "record.probes=[\"sharpness\"]"]);
    succeed(exmy(&train).current_dir(root));
    // Next to the folder whose files are compared.
    let odd = tempfile::tempdir().unwrap();
    let place = |name: &str| odd.path().join(name).to_str().unwrap().to_owned();
    let pipe = place("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let sparse = |name: &str, beginning: &[u8]| {
        fs::write(place(name), beginning).unwrap();
        fs::OpenOptions::new().write(true).open(place(name)).unwrap().set_len(64 << 30).unwrap();
        place(name)
    };
    let zeros = sparse("zeros", b"");
    let claim = r#"{"model.norm.weight":
        {"dtype":"F32","shape":[17179869150],"data_offsets":[0,68719476600]}}"#;
    let huge =
        sparse("huge", &[&128_u64.to_le_bytes()[..], format!("{claim:128}").as_bytes()].concat());
    // Help that cannot be written is a result that cannot.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = exmy(&["--help"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write the help"));
    for path in [&*pipe, "/dev/zero"] {
        for command in [
            &["train", "--config", path][..],
            &["train", "--init-from", path],
            &["sweep", path],
            &["verify-tiles", path],
            &["verify-cols", path],
        ] {
            refused(root, command, &[path, "no plain file"]);
        }
    }
    refused(root, &["train", "--config", &zeros], &["zeros", "more than 67108864 bytes"]);
    refused(root, &["train", "--init-from", &zeros], &["zeros", "does not begin with `{`"]);
    let shapes = ["huge", "\"model.norm.weight\" is [17179869150]"];
    refused(root, &["train", "--init-from", &huge], &shapes);
    fs::create_dir(place("texts")).unwrap();
    std::os::unix::fs::symlink(&zeros, place("texts/zeros")).unwrap();
    for name in [&zeros, &place("zeros.bin"), &place("texts")] {
        let _ = std::os::unix::fs::symlink(&zeros, name);
        let (code, said) = limited(root, 1 << 20, &format!("train --data {name} --out new"));
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("is larger than the free memory of 1.0 GiB"), "{said}");
    }
    let checkpoint =
        run_of(&root.join("run"), "f32-s5").join("checkpoints/step-00000040.safetensors");
    fs::remove_file(&checkpoint).unwrap();
    std::os::unix::fs::symlink(&pipe, &checkpoint).unwrap();
    let branch = ["train", "--branch", "run/f32-s5@40", "--steps", "44"];
    let output = exmy(&branch).current_dir(root).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no plain file but a pipe"), "{said}");
    fs::remove_file(&checkpoint).unwrap();
    for name in ["metrics.jsonl", "probes.jsonl", "summary.json", "config.toml"] {
        let file = run_of(&root.join("run"), "f32-s5").join(name);
        let kept = fs::read(&file).unwrap();
        for target in [&*pipe, "/dev/zero", &zeros] {
            fs::remove_file(&file).unwrap();
            std::os::unix::fs::symlink(target, &file).unwrap();
            let code = |arguments: &[&str]| {
                exmy(arguments).current_dir(root).output().unwrap().status.code()
            };
            assert_eq!(code(&["report", "run/f32-s5"]), Some(2), "{name} {target}");
            assert_eq!(code(&["plot", "run/f32-s5"]), Some(2), "{name} {target}");
            // These end, whatever they make of it.
            code(&["watch", "run"]);
            code(&["ls", "run"]);
            code(&["compare", "run"]);
            code(&["export", "--jsonl", "-", "run"]);
            code(&["train", "--resume", "run", "-q"]);
            fs::remove_file(&file).unwrap();
            fs::write(&file, &kept).unwrap();
        }
    }
}

#[test]
fn a_folder_that_holds_a_run_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let data = text_file(root);
    let mut command = exmy(&["train", "--data", &data, "--recipe", "f32", "--out", "out"]);
    succeed(command.args(TINY).args(["--set", "train.steps=3"]).current_dir(root));
    let again = ["train", "--data", "text.txt", "--recipe", "bf16", "--out", "out"];
    refused(root, &again, &["out already holds a run", "--resume out"]);
    let run = run_of(&root.join("out"), "f32-s5");
    let other = ["train", "--data", "text.txt", "--recipe", "bf16", "--out", run.to_str().unwrap()];
    refused(root, &other, &["already holds a run"]);
    refused(root, &["train", "--out", "text.txt"], &["text.txt"]);
}

#[test]
fn changed_data_and_damaged_checkpoints_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let data = text_file(root);
    let mut command = exmy(&["train", "--data", &data, "--recipe", "f32", "--out", "out"]);
    succeed(command.args(TINY).args(["--set", "train.steps=3"]).current_dir(root));
    let run = run_of(&root.join("out"), "f32-s5");
    fs::remove_file(run.join("summary.json")).unwrap();
    let checkpoint = run.join("checkpoints/step-00000003.safetensors");
    let whole = fs::read(&checkpoint).unwrap();
    fs::write(&checkpoint, &whole[..whole.len() / 2]).unwrap();
    refused(root, &["train", "--resume", "out"], &["step-00000003", "no whole safetensors"]);
    fs::write(&checkpoint, &whole).unwrap();
    fs::write(&data, "another text, ".repeat(400)).unwrap();
    refused(root, &["train", "--resume", "out"], &["not those the run began with"]);
}

/// A flipped bit anywhere in a checkpoint, and any change of `config.toml`, is an error that says what to do.
/// Without the damaged file the run comes to the same bits.
#[test]
fn flipped_bits_and_edited_settings_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let data = text_file(root);
    let begin = |out: &str| {
        let mut command = exmy(&["train", "--data", &data, "--recipe", "mxfp4@sr8", "--out", out]);
        let more = ["--set", "train.steps=4", "--set", "record.checkpoint_every=2"];
        succeed(command.args(TINY).args(more).current_dir(root));
        run_of(&root.join(out), "mxfp4@sr8-s5")
    };
    let (expected, run) = (begin("expected"), begin("out"));
    let model = run.join("model.safetensors");
    let flipped = |file: &Path, at: usize, arguments: &[&str], parts: &[&str]| {
        let whole = fs::read(file).unwrap();
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(file, &bytes).unwrap();
        refused(root, arguments, parts);
        fs::write(file, &whole).unwrap();
    };
    // Numbers that something reads; not the header, which has names as well.
    let length = fs::read(&model).unwrap().len();
    let sample = ["sample", "out/mxfp4@sr8-s5", "--tokens", "3"];
    let from = ["train", "--data", "text.txt", "--init-from", model.to_str().unwrap()];
    let from = [&from[..], &["--recipe", "f32", "--out", "begun"], &TINY].concat();
    for at in [length / 2, length - 1] {
        flipped(&model, at, &sample, &["model.safetensors is damaged"]);
        flipped(&model, at, &from, &["model.safetensors is damaged", "copy it again"]);
    }
    fs::remove_file(&model).unwrap();
    fs::remove_file(run.join("summary.json")).unwrap();
    let checkpoint = run.join("checkpoints/step-00000004.safetensors");
    let resume = ["train", "--resume", "out"];
    let branch = ["train", "--branch", "out/mxfp4@sr8-s5@4", "--out", "b", "--steps", "9"];
    let length = fs::read(&checkpoint).unwrap().len();
    for i in 0..40 {
        let at = i * (length - 1) / 39;
        flipped(
            &checkpoint,
            at,
            &resume,
            &["step-00000004.safetensors", "remove it: the run goes"],
        );
    }
    flipped(&checkpoint, length - 9, &branch, &["step-00000004", "damaged", "another step"]);
    let config = run.join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    for (old, new) in
        [("warmup = 2", "warmup = 1"), ("steps = 4", "steps = 6"), ("above: ", "above: 0")]
    {
        assert!(text.contains(old), "{text}");
        fs::write(&config, text.replacen(old, new, 1)).unwrap();
        refused(root, &resume, &["config.toml is not as it was", "put it back", "--branch"]);
    }
    fs::write(&config, &text).unwrap();
    fs::remove_file(&checkpoint).unwrap();
    succeed(exmy(&resume).current_dir(root));
    assert_same(&expected, &run, "the checkpoint before");
}

/// Files of a run that are missing or damaged are named, with what helps; and that helps.
#[test]
fn missing_and_damaged_records_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let data = text_file(root);
    let mut command = exmy(&["train", "--data", &data, "--recipe", "f32", "--out", "out"]);
    // Numbers of steps and lists of rates as people write them.
    let more = ["--steps", "1e1", "--lr", "1e-3, 1e-2"];
    succeed(command.args(TINY).args(more).current_dir(root));
    let out = root.join("out");
    let run = run_of(&out, "f32-lr1e-2-s5");
    let before = contents(&out);
    let resume = ["train", "--quiet", "--resume", "out"];
    let summary = "{\"version\":2,";
    for (file, text, parts) in [
        (
            out.join("manifest.json"),
            Some(summary),
            ["manifest.json is no list of runs", "remove it"],
        ),
        (run.join("summary.json"), Some(summary), ["summary.json is no summary", "remove it"]),
        (run.join("metrics.jsonl"), Some("{\n"), ["metrics.jsonl line 1", "put it back"]),
        (run.join("config.toml"), Some("[x"), ["config.toml: line 1 is not TOML", "\"[x\""]),
        (run.join("config.toml"), None, ["config.toml", "put it back"]),
    ] {
        let whole = fs::read(&file).unwrap();
        match text {
            Some(text) => fs::write(&file, text).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        refused(root, &resume, &parts);
        if parts[1] == "remove it" {
            fs::remove_file(&file).unwrap();
            succeed(exmy(&resume).current_dir(root));
            let again = contents(&run);
            let name = run.file_name().unwrap().to_str().unwrap();
            assert!(again["summary.json"] == before[&format!("{name}/summary.json")]);
        }
        fs::write(&file, &whole).unwrap();
    }
    succeed(exmy(&resume).current_dir(root));
    assert!(contents(&out) == before);
    refused(root, &["train", "--resume", "text.txt"], &["text.txt", "a folder that"]);
}

/// A step's checkpoint with another step inside belongs to another run.
#[test]
fn a_checkpoint_of_another_step_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let data = text_file(root);
    let mut command = exmy(&["train", "--data", &data, "--recipe", "f32", "--out", "out"]);
    succeed(
        command
            .args(TINY)
            .args(["--set", "train.steps=4"])
            .args(["--set", "record.checkpoint_every=2"])
            .current_dir(root),
    );
    let run = run_of(&root.join("out"), "f32-s5");
    fs::remove_file(run.join("summary.json")).unwrap();
    let file = |step: u32| run.join(format!("checkpoints/step-0000000{step}.safetensors"));
    fs::copy(file(2), file(4)).unwrap();
    refused(root, &["train", "--resume", "out"], &["step-00000004", "of step 2"]);
}

#[test]
fn a_level_this_machine_lacks_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for (word, shown) in [
        ("avx9", "avx9: "),
        ("neon", "neon: "),
        ("", ": "),
        ("a\nb\u{1b}[31m", "a\\nb\\u{1b}[31m: "),
    ] {
        let mut command = exmy(&["train", "--steps", "3", "--out", "out"]);
        let output = command.env("EXMY_SIMD", word).current_dir(&folder).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let message = String::from_utf8_lossy(&output.stderr);
        let begin = format!("error: EXMY_SIMD={shown}");
        assert!(message.starts_with(&begin) && message.contains("scalar"), "{message}");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

/// Two recipes into one folder.
fn exmy_both(data: &str, more: &[&str], out: &str) -> Command {
    let mut command = exmy(&["train", "--data", data, "--quiet", "--threads", "1", "--out", out]);
    command.args(TINY).args(more).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Jobs started at the same time get folders of their own, and one folder has one writer.
#[test]
fn processes_do_not_share_folders() {
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let start = |more: &[&str]| {
        let mut command = exmy(&["train", "--data", &data, "--recipe", "f32", "--quiet"]);
        command.args(TINY).args(["--threads", "1"]).args(more).current_dir(&folder);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let jobs: Vec<_> = (0..4).map(|_| start(&[])).collect();
    for job in jobs {
        assert!(job.wait_with_output().unwrap().status.success());
    }
    let expected = folder.path().join("runs/0001");
    for number in ["0002", "0003", "0004"] {
        assert_same(&expected, &folder.path().join("runs").join(number), number);
    }
    let jobs = [start(&["--out", "one"]), start(&["--out", "one"])];
    let outputs = jobs.map(|job| job.wait_with_output().unwrap());
    assert_eq!(outputs.iter().filter(|output| output.status.success()).count(), 1);
    let loser = outputs.iter().find(|output| !output.status.success()).unwrap();
    assert!(String::from_utf8_lossy(&loser.stderr).contains("already holds a run"));
    assert_same(&expected, &folder.path().join("one"), "one");

    // Two that go on with the same two runs share them, and the last one to end draws the picture.
    let two = ["--recipe", "f32,bf16", "--set", "train.steps=600"];
    let both = |out: &str| exmy_both(&data, &two, out).current_dir(&folder).spawn().unwrap();
    assert!(both("alone").wait().unwrap().success());
    let mut begun = both("shared");
    while !folder.path().join("shared").exists() {
        std::thread::yield_now();
    }
    begun.kill().unwrap();
    begun.wait().unwrap();
    let resume = || {
        let mut command = exmy(&["train", "--resume", "shared", "--quiet", "--threads", "1"]);
        command.current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let said = [resume(), resume()].map(|child| {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        said
    });
    let shared = said.iter().filter(|said| said.contains("another process is at")).count();
    assert!(shared <= 1, "{said:?}");
    assert_same(&folder.path().join("alone"), &folder.path().join("shared"), "shared");

    let mut long = start(&["--out", "long", "--set", "train.steps=100000"]);
    let metrics = || run_of(&folder.path().join("long"), "f32-s5").join("metrics.jsonl");
    while !metrics().exists() {
        std::thread::yield_now();
    }
    let resume = exmy(&["train", "--resume", "long"]).current_dir(&folder).output().unwrap();
    long.kill().unwrap();
    long.wait().unwrap();
    assert_eq!(resume.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&resume.stderr).contains("is being trained"));
}
