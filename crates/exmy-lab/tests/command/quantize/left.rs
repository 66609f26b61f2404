//! What `exmy quantize` leaves when it cannot write, is interrupted or killed.

use super::{model, parts, run, sparse, table};
use crate::{exmy, heeding_signals, succeed};
use exmy::random::{Philox, Stream};
use exmy::safetensors::Reader;
use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A device that is full, and one that is no file.
#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_written_is_told() {
    let folder = tempfile::tempdir().unwrap();
    model(&folder.path().join("in"));
    let output = run(folder.path(), &["in", "/dev/full", "--to", "mxfp4"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(message.contains("/dev/full is no plain file"), "{message}");
    // The limit of a process on the size of its files stands for a full disk. With SIGXFSZ
    // ignored, writing beyond it fails as it does there.
    let program = env!("CARGO_BIN_EXE_exmy");
    let script = format!("trap '' XFSZ; ulimit -f 1; exec {program} quantize in out --to mxfp4");
    let mut limited = std::process::Command::new("sh");
    sparse(&folder.path().join("in"), 1 << 20);
    let output = limited.args(["-c", &script]).current_dir(&folder).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("cannot write out"), "{message}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "the part of a file was left");
}

/// The signal of that limit ends the process at once: what was written keeps a name that says it is
/// a part, and the next run removes it.
#[test]
#[cfg(target_os = "linux")]
fn a_signal_leaves_no_file_that_looks_whole() {
    let folder = tempfile::tempdir().unwrap();
    sparse(&folder.path().join("in"), 1 << 20);
    let program = env!("CARGO_BIN_EXE_exmy");
    let script = format!("ulimit -c 0; ulimit -f 8; exec {program} quantize in out --to mxfp4");
    let mut limited = std::process::Command::new("sh");
    let output = limited.args(["-c", &script]).current_dir(&folder).output().unwrap();
    assert_eq!(output.status.code(), None, "not ended by a signal");
    let names = || -> Vec<String> {
        let entries = fs::read_dir(&folder).unwrap().flatten();
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    };
    assert!(!folder.path().join("out").exists());
    let parts = names().iter().filter(|name| name.starts_with(".partial-out-")).count();
    assert_eq!((parts, names().len()), (1, 2));
    table(folder.path(), &["in", "out", "--to", "mxfp4"]);
    let mut left = names();
    left.sort_unstable();
    assert_eq!(left, ["in", "out"]);
}

#[test]
fn killed_at_any_time_the_output_is_whole_or_absent() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    sparse(&folder.join("in"), 1 << 23);
    let arguments = ["quantize", "in", "out", "--to", "e4m3fn", "--quiet", "--threads", "1"];
    let begun = Instant::now();
    succeed(exmy(&arguments).current_dir(folder));
    let whole = begun.elapsed();
    let expected = fs::read(folder.join("out")).unwrap();
    let random = Philox::new(1, Stream::new("kill times"));
    let mut inside = 0;
    for attempt in 0..40 {
        let _ = fs::remove_file(folder.join("out"));
        let mut command = exmy(&arguments);
        let mut child = command
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        sleep(whole.mul_f64(random.uniform(attempt)));
        child.kill().unwrap();
        child.wait().unwrap();
        inside += usize::from(parts(folder) > 0);
        if let Ok(found) = fs::read(folder.join("out")) {
            assert!(found == expected, "a part of a file stands where a whole one is expected");
        }
        if attempt >= 5 && inside > 0 {
            break;
        }
    }
    assert!(inside > 0, "no kill hit the writing");
    succeed(exmy(&arguments).current_dir(folder));
    assert_eq!(parts(folder), 0, "what kills left is removed by the next run");
    assert!(fs::read(folder.join("out")).unwrap() == expected);
}

#[test]
#[cfg(unix)]
fn interrupted_it_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    sparse(&folder.join("in"), 1 << 27);
    let quantize = ["quantize", "in", "out", "--to", "e4m3fn", "--threads", "1"];
    let mut command = heeding_signals(&quantize);
    let child = command.current_dir(folder).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while parts(folder) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not begin");
        sleep(Duration::from_millis(1));
    }
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(message.contains("stopped; out was not written"), "{message}");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
}

/// The file is there when its table cannot be shown.
#[test]
#[cfg(target_os = "linux")]
fn a_full_stdout_says_that_the_file_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    model(&folder.join("in"));
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = exmy(&["quantize", "in", "out", "--to", "mxfp4"]);
    let output = command.current_dir(folder).stdout(full).stderr(Stdio::piped()).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("out is whole, and the table could not be shown"), "{message}");
    assert!(Reader::open(folder.join("out")).is_ok());
}
