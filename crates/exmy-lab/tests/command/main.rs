//! The program `exmy` as its users meet it: whole runs in temporary folders.

mod bad_input;
mod columns;
mod compute;
mod convert;
#[cfg(feature = "tokenizers")]
mod data;
mod determinism;
mod device;
#[cfg(feature = "tokenizers")]
mod eval;
mod follow;
mod formats;
mod inspect;
mod kill;
mod manage;
#[cfg(target_os = "linux")]
mod memory;
mod names;
mod pages;
mod probes;
mod quantize;
mod ranks;
mod records;
mod reports;
mod runs;
mod sample;
#[cfg(all(target_os = "linux", feature = "tokenizers"))]
mod signals;
mod studies;
mod sweep;
#[cfg(target_os = "linux")]
mod terminal;
mod units;
mod vectors;
mod verify;
mod watch;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;

/// The program, with what a test needs of the environment.
fn exmy(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_exmy"));
    command.args(arguments).env_remove("EXMY_SIMD");
    command
}

/// The program with no signal ignored, where whoever started the tests has some ignored (`nohup`).
fn heeding_signals(arguments: &[&str]) -> Command {
    if !cfg!(target_os = "linux") {
        return exmy(arguments);
    }
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_exmy")]).args(arguments);
    command.env_remove("EXMY_SIMD");
    command
}

/// Says that a check is left out because something optional is not on this machine. `.ci/run` names the file
/// that collects these lines, and counts them.
fn skipped(missing: &str) {
    let line = format!("skipped: no {missing}\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("EXMY_SKIPPED") {
        let mut file = fs::File::options().append(true).create(true).open(path).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
}

/// Runs to the end, which must be good.
fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    output
}

/// What a command that must end well prints, run in a folder.
fn printed(folder: &Path, command: &str, arguments: &[&str]) -> String {
    let whole: Vec<&str> = [command].iter().chain(arguments).copied().collect();
    String::from_utf8(succeed(exmy(&whole).current_dir(folder)).stdout).unwrap()
}

/// The folder of a run of `exmy train`, without the hash at the end of its name.
fn run_of(out: &Path, name: &str) -> PathBuf {
    exmy_lab::runner::find_run(&out.join(name))
}

/// The words of a table's row that begins with `name`.
fn row<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    let line = table.lines().find(|line| line.split_whitespace().next() == Some(name));
    line.unwrap_or_else(|| panic!("no {name} in\n{table}")).split_whitespace().collect()
}

/// Starts with `input` on stdin, written by a thread of its own while the output is read, or a full pipe
/// would stop both. The program may stop reading early.
fn fed(arguments: &[&str], input: &[u8]) -> (Child, JoinHandle<()>) {
    let mut command = exmy(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    (child, writer)
}

/// Runs with `input` on stdin: exit code, stdout, stderr.
fn with_input(arguments: &[&str], input: &[u8]) -> (i32, String, String) {
    let (child, writer) = fed(arguments, input);
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code().expect("ended by a signal");
    let stderr = text(&output.stderr);
    assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    (code, text(&output.stdout), stderr)
}

/// Starts with a reader of the output that goes away after one line; the exit code and stderr.
fn cut_off(arguments: &[&str], input: &[u8]) -> (i32, String, String) {
    use std::io::{BufRead, BufReader, Read};
    let (mut child, writer) = fed(arguments, input);
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    writer.join().unwrap();
    (child.wait().unwrap().code().expect("ended by a signal"), line, stderr)
}

/// A network that trains in a fraction of a second, stochastic rounding included.
const TINY: [&str; 22] = [
    "--set",
    "model.layers=1",
    "--set",
    "model.d_model=32",
    "--set",
    "model.hidden=64",
    "--set",
    "model.context=16",
    "--set",
    "train.batch=4",
    "--set",
    "record.eval_windows=8",
    "--set",
    "record.eval_every=7",
    "--set",
    "record.keep=2",
    "--set",
    "train.warmup=2",
    "--set",
    "train.steps=40",
    "--seed",
    "5",
];

/// A text of 4 kB without a period that windows could share.
fn text_file(folder: &Path) -> String {
    let path = folder.join("text.txt");
    let words: Vec<String> = (0..800_u32).map(|i| format!("w{} ", i * i % 97)).collect();
    fs::write(&path, words.concat()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A file system that is taken away however the test ends.
#[cfg(target_os = "linux")]
struct SmallDisk(std::path::PathBuf);

#[cfg(target_os = "linux")]
impl SmallDisk {
    fn mount(place: &Path, options: &str) -> bool {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(place);
        command.output().is_ok_and(|output| output.status.success())
    }

    /// Of 300 kB; `None` where none may be mounted.
    fn new(folder: &Path) -> Option<Self> {
        let place = folder.join("disk");
        fs::create_dir(&place).unwrap();
        if Self::mount(&place, "size=300k") {
            return Some(Self(place));
        }
        skipped("right to mount a file system");
        None
    }

    /// Makes space.
    fn grow(&self) {
        assert!(Self::mount(&self.0, "remount,size=32m"));
    }
}

#[cfg(target_os = "linux")]
impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Every file below `folder` but `timing.jsonl`, by its path, with its contents.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, folder: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(root, &path, files);
            } else if entry.file_name() != "timing.jsonl" {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let mut files = BTreeMap::new();
    walk(folder, folder, &mut files);
    files
}

/// Compares two output folders byte for byte and names the first file that differs.
fn assert_same(expected: &Path, got: &Path, what: &str) {
    let (expected, got) = (contents(expected), contents(got));
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&expected), names(&got), "{what}: other files");
    for (name, bytes) in &expected {
        assert!(*bytes == got[name], "{what}: {name} differs");
    }
}
