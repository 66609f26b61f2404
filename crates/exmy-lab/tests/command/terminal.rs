//! What a person sees on a terminal: the program is begun on one of a given width, and its output is read
//! back.

use crate::{TINY, exmy, skipped, text_file};
use nix::pty::{OpenptyResult, Winsize, openpty};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs in a folder on a terminal with so many columns, and types Ctrl-C when it has shown `until`; the exit
/// code, what was shown until then, and what after. `None` where the program that makes terminals is missing.
fn on_terminal(
    (folder, columns): (&Path, u16),
    arguments: &[&str],
    until: Option<&str>,
) -> Option<(i32, String, String)> {
    let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let OpenptyResult { master, slave } = openpty(&size, None).unwrap();
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", "env", "--default-signal", env!("CARGO_BIN_EXE_exmy")]);
    let [input, output, errors] = [(); 3].map(|()| Stdio::from(slave.try_clone().unwrap()));
    command.args(arguments).current_dir(folder).env("TERM", "xterm").env_remove("EXMY_SIMD");
    let Ok(mut child) = command.stdin(input).stdout(output).stderr(errors).spawn() else {
        skipped("setsid");
        return None;
    };
    drop((command, slave));
    let (mut master, mut seen, mut typed) = (File::from(master), Vec::new(), None);
    let mut part = [0; 4096];
    // The end of a terminal is an error.
    while let Ok(count @ 1..) = master.read(&mut part) {
        seen.extend_from_slice(&part[..count]);
        let has = |until: &str| String::from_utf8_lossy(&seen).contains(until);
        if typed.is_none() && until.is_some_and(has) {
            master.write_all(b"\x03").unwrap();
            typed = Some(seen.len());
        }
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (before, after) = seen.split_at(typed.unwrap_or(seen.len()));
    Some((child.wait().unwrap().code().unwrap(), text(before), text(after)))
}

/// The echo of Ctrl-C would stand in the next line, and the bar's own would stay.
#[test]
fn a_bar_is_gone_after_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let long = ["train", "--data", &data, "--recipe", "f32"];
    let train = [&long[..], &TINY, &["--set", "train.steps=100000"]].concat();
    let study = ["study", "bit-reduction", "--scale", "small", "--figure", "BR-1", "--data", &data];
    for (arguments, until) in [(&train[..], "loss "), (&study[..], " steps")] {
        for columns in [40, 80] {
            let place = (folder.path(), columns);
            let Some((code, before, after)) = on_terminal(place, arguments, Some(until)) else {
                return;
            };
            assert_eq!(code, 130, "{columns} columns: {}", before.len());
            assert!(!after.contains("^C"), "{after:?}");
            let (bars, said) = after.split_once("stopped").unwrap_or_else(|| panic!("{after:?}"));
            // It is cleared in its own line: what was drawn of it has no other after it.
            assert!(bars.ends_with("\r\u{1b}[2K"), "{bars:?}");
            assert!(!bars.contains('\n') && !said.contains('━'), "{after:?}");
        }
    }
}

/// Forty columns have room for every number, and the name of a run says its rate where rates differ.
#[test]
fn narrow_terminals_have_whole_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let train = ["train", "--data", &data, "--recipe", "f32,mxfp8-e4m3", "--lr", "1e-3,2e-3"];
    let train = [&train[..], &TINY, &["--set", "train.steps=40"]].concat();
    let Some((code, seen, _)) = on_terminal((folder.path(), 40), &train, None) else { return };
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("2/4 f32 lr 2e-3, se… "), "{seen}");
    let lines = seen.split(['\n', '\r']).map(|line| line.replace("\u{1b}[2K", ""));
    let long: Vec<String> = lines.filter(|line| line.trim_end().chars().count() > 40).collect();
    assert!(long.iter().all(|line| line.starts_with("curves: ")), "{long:#?}");
    for line in seen.split('\r').filter(|line| line.contains("loss ") && line.contains("40 ")) {
        let last = line.trim_end().rsplit(' ').next().unwrap_or_default();
        assert!(!last.contains('…'), "{line}");
    }
    for head in ["\n  val loss    ", "\n  tokens/s    "] {
        assert_eq!(seen.matches(head).count(), 4, "{seen}");
    }
    // Where nothing is typed and no terminal is, nothing changes.
    let whole = exmy(&train).current_dir(folder.path()).output().unwrap();
    let table = String::from_utf8(whole.stdout).unwrap();
    assert!(table.contains("recipe      lr    train loss"), "{table}");
}

/// Before a plan can be said, a step of each kind of run is timed, and no terminal is silent that long.
#[test]
fn a_plan_says_what_it_is_waiting_for() {
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let study = ["study", "bit-reduction", "--scale", "smoke", "--figure", "BR-1", "--plan"];
    let arguments = [&study[..], &["--data", &data]].concat();
    let Some((code, seen, _)) = on_terminal((folder.path(), 100), &arguments, None) else { return };
    assert_eq!(code, 0, "{seen}");
    let (waiting, plan) = seen.split_once("figure  runs").unwrap_or_else(|| panic!("{seen:?}"));
    assert!(waiting.contains("timing a step of each kind of run "), "{waiting:?}");
    // None is done yet when it is said first, and no line of it is left.
    assert!(waiting.contains(" 0/"), "{waiting:?}");
    assert!(waiting.ends_with("\r\u{1b}[2K") && plan.contains("to do"), "{seen:?}");
}
