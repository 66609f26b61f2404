//! Requests to end are heard by every command: while it waits for its input, and while nobody reads what it
//! says. What a training step or a checkpoint makes of them is in [`kill`](crate::kill).

use crate::kill::send;
use crate::{TINY, exmy, heeding_signals, printed, succeed, text_file};
use nix::libc;
use nix::pty::{OpenptyResult, openpty};
use nix::unistd::ttyname;
use std::collections::BTreeSet;
use std::fs;
use std::io::{PipeReader, PipeWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Every command, with arguments by which it ends neither at once nor without a word: it waits for what it
/// reads, or for somebody who reads what it writes.
const COMMANDS: [&str; 28] = [
    "train --data text.txt --out trained",
    "sweep plan.toml --out swept",
    "study bit-reduction --scale small --figure BR-1 --data text.txt --out studied",
    "report runs --out -",
    "report runs --follow --port 0",
    "plot runs --out -",
    "watch runs",
    "ls runs",
    "compare runs",
    "export --jsonl - runs",
    "device",
    "data text.txt --out tokens --vocab 400",
    "eval model --data text --recipe f32",
    "generate model --prompt a --tokens 1000",
    "formats e4m3fn",
    "sample runs --tokens 100000",
    "quantize runs/RUN/model.safetensors small.safetensors --to mxfp4",
    "inspect runs/RUN/model.safetensors",
    "convert --from f32 --to e4m3fn",
    "compute e4m3fn_mul",
    "conformance p3109",
    "verify e4m3fn_mul",
    "vectors f32_mulAdd --level 2",
    "verify-cols -",
    "verify-tiles - --model hopper",
    "fill-tiles DATA/wgmma_m64n8k32_f32_e4m3_e4m3.tiles filled.tiles --model hopper",
    "explain-mma hopper:e4m3fn -a 1 -b 1",
    "--help",
];

/// A folder with what these need.
fn prepare(folder: &Path) {
    crate::eval::model(folder);
    let data = text_file(folder);
    let train = ["train", "--data", &data, "--recipe", "f32", "--quiet", "--out", "runs"];
    succeed(exmy(&train).args(TINY).args(["--set", "train.steps=2"]).current_dir(folder));
    let plan =
        "data.source = \"text.txt\"\npreset = \"nano\"\n[grid]\nrecipe = [\"f32\"]\nseed = [1]\n";
    fs::write(folder.join("plan.toml"), plan).unwrap();
}

/// A pipe that takes no byte more.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (unread, mut full) = std::io::pipe().unwrap();
    full.write_all(&[b' '; 1 << 16]).unwrap();
    (unread, full)
}

/// Whether a process has begun to listen: Linux says that it no longer takes SIGTERM as others do.
fn listens(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() >> 14 & 1 == 1
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(100), "{what}");
        sleep(Duration::from_millis(5));
    }
}

/// Ended with the test, also with one that fails.
struct Waiting(Child, String);

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The exit code, once it is there.
fn ended(child: &mut Waiting) -> Option<i32> {
    let mut end = None;
    until(&format!("{} was not heard", child.1), || {
        end = child.0.try_wait().unwrap();
        end.is_some()
    });
    end.and_then(|end| end.code())
}

#[test]
fn every_command_ends_with_the_code_of_its_signal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    prepare(folder);
    let run = crate::run_of(&folder.join("runs"), "f32-s5");
    let run = run.file_name().unwrap().to_str().unwrap();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/h200");
    let (_unread, full) = full_pipe();
    let pipe = || Stdio::from(full.try_clone().unwrap());
    // Some at a time: all together would be slow to begin.
    for (part, commands) in COMMANDS.chunks(9).enumerate() {
        let mut waiting = Vec::new();
        for (i, command) in commands.iter().enumerate() {
            let words: Vec<String> = command
                .split(' ')
                .map(|word| word.replace("RUN", run).replace("DATA", data))
                .collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            // One of the others in turn.
            let other = [("-HUP", 129), ("-INT", 130)][(part + i) % 2];
            for (signal, code) in [("-TERM", 143), other] {
                let mut command = heeding_signals(&words);
                command.current_dir(folder).stdin(Stdio::piped()).stdout(pipe()).stderr(pipe());
                let what = format!("{signal} to exmy {}", words.join(" "));
                waiting.push((Waiting(command.spawn().unwrap(), what), signal, code));
            }
        }
        for (child, ..) in &waiting {
            until(&format!("{} is not listening", child.1), || listens(&child.0));
        }
        // Into their work.
        sleep(Duration::from_millis(200));
        for (child, signal, _) in &mut waiting {
            assert_eq!(child.0.try_wait().unwrap(), None, "{}: it was over", child.1);
            send(&child.0, signal);
        }
        for (mut child, _, code) in waiting {
            assert_eq!(ended(&mut child), Some(code), "{}", child.1);
        }
    }
}

/// Under `nohup` the program outlives its terminal.
#[test]
fn a_hangup_that_is_ignored_stays_ignored() {
    let script = format!("trap '' HUP; exec {} compute e4m3fn_mul", env!("CARGO_BIN_EXE_exmy"));
    let mut command = std::process::Command::new("sh");
    let child = command.args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
    let mut child = Waiting(child, "exmy compute".into());
    until("it is not listening", || listens(&child.0));
    send(&child.0, "-HUP");
    sleep(Duration::from_millis(100));
    assert_eq!(child.0.try_wait().unwrap(), None);
    send(&child.0, "-TERM");
    assert_eq!(ended(&mut child), Some(143));
}

/// A terminal that nobody reads, as that of a connection which hangs: what the program would take away from
/// it stays.
#[test]
fn a_terminal_that_takes_nothing_keeps_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let OpenptyResult { master: _unread, slave } = openpty(None, None).unwrap();
    let name = ttyname(&slave).unwrap();
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let mut full = fs::OpenOptions::new().write(true).custom_flags(flags).open(name).unwrap();
    while full.write(&[b' '; 1 << 10]).is_ok() {}
    // Its plan takes many seconds.
    let study = ["study", "nvfp4-outliers", "--scale", "small", "--plan"];
    let mut command = heeding_signals(&[&study[..], &["--data", &data]].concat());
    command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
    let child = command.stderr(Stdio::from(slave)).spawn().unwrap();
    let mut child = Waiting(child, "a study".into());
    until("it is not listening", || listens(&child.0));
    // Into the bar that it cannot draw.
    sleep(Duration::from_millis(800));
    assert_eq!(child.0.try_wait().unwrap(), None);
    send(&child.0, "-TERM");
    assert_eq!(ended(&mut child), Some(143));
}

/// So that a new command does not go without.
#[test]
fn the_list_of_commands_is_whole() {
    let help = printed(Path::new("."), "--help", &[]);
    let listed = help.split_once("Commands:\n").unwrap().1.split("\n\n").next().unwrap();
    let named = listed.lines().filter_map(|line| line.strip_prefix("  "));
    let named = named.filter(|line| line.starts_with(char::is_alphabetic));
    let named: BTreeSet<&str> = named.map(|line| line.split(' ').next().unwrap()).collect();
    let tried = COMMANDS.map(|command| command.split(' ').next().unwrap());
    let mut tried = BTreeSet::from(tried);
    assert!(tried.remove("--help") && tried.insert("help"));
    assert_eq!(tried, named);
}
