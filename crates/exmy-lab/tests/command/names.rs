//! Names and other texts of whoever calls, or of files, as messages show them: what they ask of a terminal is
//! not done, and they break no line.

use crate::{TINY, exmy, succeed, text_file};
use std::fs;

/// Configurations of a run with a mistake in which a line breaks.
const CONFIGURATIONS: [&str; 9] = [
    r#""a\nof" = 1"#,
    r#"recipe = "a\nof""#,
    r#"preset = "a\nof""#,
    "[model]\n\"a\\nof\" = 1",
    "[train]\noptimizer = \"a\\nof\"",
    "[train]\nsteps = \"a\\nof\"",
    "[[when]]\nmetric = \"a\\nof\"\nabove = 1\nthen = \"bf16\"",
    "[[at]]\nstep = 1\nthen = { \"a\\nof\" = 1 }",
    "[data]\nsource = \"a\\nof\"",
];

/// And of plans.
const PLANS: [&str; 4] = [
    "[grid]\n\"a\\nof\" = [1]",
    "[grid]\nseed = \"a\\nof\"",
    "[grid]\nlr = [\"a\\nof\"]",
    r#"grid = "a\nof""#,
];

/// Linux file names are bytes; records are text.
#[test]
#[cfg(target_os = "linux")]
fn a_path_that_is_not_utf8_is_named() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join(OsStr::from_bytes(b"te\xFFxt.txt"));
    fs::write(&data, "a text, ".repeat(400)).unwrap();
    for option in ["--data", "--out"] {
        let output = exmy(&["train", option]).arg(&data).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("not UTF-8"), "{message}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// What is asked of the terminal in a name is shown and not obeyed, also by the parser of arguments.
#[test]
fn odd_arguments_are_shown() {
    for arguments in [["a\n\u{9b}b", "--x"], ["train", "--\u{202e}\n"], ["formats", "--x=\n\u{9b}"]]
    {
        let output = exmy(&arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(!said.contains(['\u{9b}', '\u{202e}']), "{said}");
    }
    let output = exmy(&["a\n\u{9b}b"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("a\\n\\u{9b}b"), "{said}");
}

/// No message breaks its line at a name, whatever it is the name of and whatever is wrong with it.
#[test]
fn names_break_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let data = text_file(root);
    let odd = "odd\n\u{9b}name";
    let train = ["train", "--data", &data, "--steps", "2", "--recipe", "f32", "-q", "--out", odd];
    succeed(exmy(&train).args(TINY).current_dir(root));
    fs::write(root.join("file\nof"), "no = [ content").unwrap();
    fs::create_dir(root.join("empty\nof")).unwrap();
    for (i, text) in CONFIGURATIONS.iter().chain(&PLANS).enumerate() {
        fs::write(root.join(format!("{i}.toml")), text).unwrap();
    }
    let configs = (0..CONFIGURATIONS.len()).map(|i| format!("train --config {i}.toml"));
    let all = CONFIGURATIONS.len() + PLANS.len();
    let plans = (0..all).map(|i| format!("sweep {i}.toml --out none"));
    let commands = [
        "train --out ODD",
        "train --resume ODD/loss.svg",
        "train --resume empty",
        "train --config file",
        "train --config ODD",
        "train --init-from ODD",
        "train --init-from file",
        "train --branch ODD@1",
        "train --data empty",
        "train --data file",
        "train --data file,none",
        "train --recipe ODD",
        "train --set ODD=1",
        "train --set train.steps=ODD",
        "sweep file",
        "sweep ODD",
        "study ODD",
        "study mx-instabilities --out file",
        "report file",
        "report empty",
        "report ODD --out ODD",
        "report ODD --out none/x.html",
        "report ODD --out file",
        "plot ODD --out file",
        "plot ODD --out none/x.svg",
        "plot file",
        "watch file --once",
        "watch empty --once",
        "ls file",
        "ls empty",
        "compare file",
        "compare ODD",
        "export --jsonl ODD ODD",
        "export --jsonl none/a.jsonl ODD",
        "export --tensorboard file ODD",
        "export --tensorboard none empty",
        "sample file",
        "sample empty",
        "inspect file",
        "inspect empty",
        "quantize file none --to e4m3fn",
        "quantize empty none --to e4m3fn",
        "formats ODD",
        "convert --from ODD",
        "compute ODD",
        "vectors ODD",
        "verify ODD",
        "verify-cols file",
        "verify-cols empty",
        "verify-tiles file",
        "verify-tiles empty",
        "fill-tiles file none",
        "fill-tiles empty none",
        "explain-mma ODD",
        "explain-mma ODD.toml -a 1 -b 1",
        "verify-tiles file --model ODD.toml",
    ];
    let mut wrong = Vec::new();
    for command in commands.map(str::to_owned).into_iter().chain(configs).chain(plans) {
        let names = |word: &str| {
            let word = word.replace("ODD", odd);
            ["file", "empty", "none"]
                .iter()
                .fold(word, |word, name| word.replace(name, &format!("{name}\nof")))
        };
        let arguments: Vec<String> = command.split(' ').map(names).collect();
        let output = exmy(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
            .current_dir(root)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let obeyed = |line: &str| line.starts_with("of") || line.starts_with("\\u{9b}name");
        if output.status.code() != Some(2) || said.contains('\u{9b}') || said.lines().any(obeyed) {
            wrong.push(format!("{command}: {:?}\n{said}", output.status.code()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
