//! A grid of runs is the same folder whoever makes it.

use crate::{TINY, assert_same, contents, exmy, succeed, text_file};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A plan of eight tiny runs on a text in the same folder.
fn plan(folder: &Path) -> PathBuf {
    let data = text_file(folder);
    let mut text = format!("data.source = {data:?}\n");
    for setting in TINY.iter().filter(|word| word.contains('=')) {
        text += &format!("{setting}\n");
    }
    text += "[grid]\nrecipe = [\"f32\", \"mxfp4@sr8\"]\nlr = [1e-3, 1e-2]\nseed = [1, 2]\n";
    let path = folder.join("plan.toml");
    fs::write(&path, text).unwrap();
    path
}

fn sweep(plan: &Path, out: &Path, more: &[&str]) -> std::process::Command {
    let mut command = exmy(&["sweep", "--threads", "1"]);
    command.arg(plan).arg("--out").arg(out).args(more);
    for variable in ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"] {
        command.env_remove(variable);
    }
    command
}

/// A plan with a run that memory will not do for is refused whole, before there is a folder.
#[test]
#[cfg(unix)]
fn too_little_memory_is_refused_before_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let grid = "[grid]\nrecipe = [\"f32\"]\nseed = [1]\n\"train.batch\" = [2, 1048576]\n";
    let text = format!("preset = \"nano\"\nsteps = 2\n{grid}");
    fs::write(folder.path().join("plan.toml"), text).unwrap();
    let mut command = std::process::Command::new("sh");
    // 1 GB of addresses; a step of 2^20 sequences takes many times that.
    let limited = "ulimit -v 1000000; exec \"$@\"";
    command.args(["-c", limited, "sh", env!("CARGO_BIN_EXE_exmy"), "sweep", "plan.toml"]);
    let output = command.args(["--threads", "1"]).current_dir(&folder).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let parts = ["error: f32-", "the run may need up to", "--set train.accumulate="];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    let found = (output.status.code(), folder.path().join("runs").exists());
    assert_eq!(found, (Some(2), false), "{said}");
}

#[test]
fn four_processes_leave_what_one_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let (one, four) = (folder.path().join("one"), folder.path().join("four"));
    let table = succeed(&mut sweep(&plan, &one, &["--quiet"])).stdout;
    let children: Vec<_> = (0..4)
        .map(|shard| {
            let mut command = match shard {
                // As Slurm, as Kubernetes, and by hand.
                0 => sweep(&plan, &four, &[]),
                1 => sweep(&plan, &four, &["--shard", "/4"]),
                2 => sweep(&plan, &four, &["--shard", "2/4", "--jobs", "2"]),
                _ => sweep(&plan, &four, &["--shard", "3/4"]),
            };
            if shard == 0 {
                command.env("SLURM_ARRAY_TASK_ID", "1").env("SLURM_ARRAY_TASK_MIN", "1");
                command.env("SLURM_ARRAY_TASK_COUNT", "4");
            }
            if shard == 1 {
                command.env("JOB_COMPLETION_INDEX", "1");
            }
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    // The last one to end has merged, unless two ended at once.
    let merged = succeed(&mut exmy(&["sweep", "x", "--merge", "--out", four.to_str().unwrap()]));
    assert_eq!(merged.stdout, table);
    assert_same(&one, &four, "four processes");
    let table = String::from_utf8(table).unwrap();
    assert_eq!(table.lines().count(), 5, "{table}");
    assert!(table.starts_with("recipe     lr     seeds"), "{table}");
    assert_eq!(fs::read(one.join("table.txt")).unwrap(), table.as_bytes());
    assert_eq!(fs::read_dir(one.join("runs")).unwrap().count(), 8);
    // Once more there is nothing to do, and nothing changes.
    let before = contents(&one);
    succeed(&mut sweep(&plan, &one, &["--quiet"]));
    assert!(contents(&one) == before);
}

/// What a killed process had begun is free at once, and goes on from its last checkpoint.
#[test]
fn a_killed_process_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let (expected, out) = (folder.path().join("expected"), folder.path().join("out"));
    succeed(&mut sweep(&plan, &expected, &["--quiet"]));
    let slow = ["--shard", "1/2", "--quiet"];
    let mut child = sweep(&plan, &out, &slow).stdout(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let runs = || fs::read_dir(out.join("runs")).into_iter().flatten().flatten().count();
    while runs() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is begun");
        sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let status = || {
        let output = succeed(&mut sweep(&plan, &out, &["--status"]));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(status().contains("0 at work") && status().contains("not begun"), "{}", status());
    // The other half leaves it alone, unless it is asked to take what is left.
    succeed(&mut sweep(&plan, &out, &["--shard", "0/2", "--quiet"]));
    assert!(status().starts_with("4 done"), "{}", status());
    succeed(&mut sweep(&plan, &out, &["--shard", "0/2", "--steal", "--quiet"]));
    assert_same(&expected, &out, "taken over");
    assert!(status().starts_with("8 done, 0 at work, 0 stopped, 0 not begun"), "{}", status());
}

/// Processes of one index share its runs: none takes what another works on, none fails, and the
/// folder is as one process leaves it.
#[test]
fn one_index_twice_is_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let (one, twice) = (folder.path().join("one"), folder.path().join("twice"));
    succeed(&mut sweep(&plan, &one, &["--quiet"]));
    let children: Vec<_> = (0..3)
        .map(|_| {
            let mut command = sweep(&plan, &twice, &["--quiet", "--steal"]);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    // Who only looks disturbs nobody.
    let status = || sweep(&plan, &twice, &["--status"]).output().unwrap();
    while !twice.join("manifest.json").is_file() {
        sleep(Duration::from_millis(1));
    }
    for _ in 0..20 {
        assert!(status().status.success());
    }
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(status().stdout.starts_with(b"8 done, 0 at work, 0 stopped, 0 not begun"));
    succeed(&mut sweep(&plan, &twice, &["--merge"]));
    assert_same(&one, &twice, "one index twice");
}

/// Results and lists that somebody removed are made again, and folders that a copy left out.
#[test]
fn what_is_lost_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let out = folder.path().join("out");
    succeed(&mut sweep(&plan, &out, &["--quiet"]));
    let expected = contents(&out);
    let run = fs::read_dir(out.join("runs")).unwrap().flatten().next().unwrap().path();
    let summary = run.join("summary.json");
    fs::write(&summary, "{").unwrap();
    let output = sweep(&plan, &out, &["--merge"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("summary.json is no summary") && said.contains("remove it"), "{said}");
    fs::remove_file(&summary).unwrap();
    fs::remove_file(out.join("manifest.json")).unwrap();
    succeed(&mut sweep(&plan, &out, &["--quiet"]));
    assert!(contents(&out) == expected);
    fs::remove_file(&summary).unwrap();
    let output = succeed(&mut sweep(&plan, &out, &["--status"]));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.starts_with("7 done, 0 at work, 1 stopped") && said.contains("step 40\n"),
        "{said}"
    );
    fs::write(out.join("manifest.json"), "{").unwrap();
    let output = sweep(&plan, &out, &["--status"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("manifest.json is no list of runs") && said.contains("remove it"),
        "{said}"
    );
    fs::remove_file(out.join("manifest.json")).unwrap();
    succeed(&mut sweep(&plan, &out, &["--quiet"]));
    assert!(contents(&out) == expected);
    // What is of another making stays, and the exit code says so.
    fs::write(out.join("table.txt"), "my notes").unwrap();
    let output = sweep(&plan, &out, &["--quiet"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("table.txt is no table of exmy and stays as it is"), "{said}");
    assert!(said.contains("`exmy sweep --merge` then writes"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(fs::read(out.join("table.txt")).unwrap(), b"my notes");
    fs::remove_file(out.join("table.txt")).unwrap();
    succeed(&mut sweep(&plan, &out, &["--merge"]));
    assert!(contents(&out) == expected);
    let resume = exmy(&["train", "--resume", out.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8(resume.stderr).unwrap();
    assert!(said.contains("is the folder of a sweep") && said.contains("exmy sweep"), "{said}");
}

/// A full disk ends the process that meets it; when there is space the same call comes to the same folder.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = crate::SmallDisk::new(folder.path()) else { return };
    let plan = plan(folder.path());
    let (expected, out) = (folder.path().join("expected"), disk.0.join("out"));
    succeed(&mut sweep(&plan, &expected, &["--quiet"]));
    let output = sweep(&plan, &out, &["--quiet"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("No space left on device") && !said.contains("panicked"), "{said}");
    disk.grow();
    succeed(&mut sweep(&plan, &out, &["--quiet"]));
    assert_same(&expected, &out, "after a full disk");
}

/// Killed while it merges, a sweep has whole files, and the next merge leaves nothing else.
#[test]
fn merges_survive_kills() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let out = folder.path().join("out");
    succeed(&mut sweep(&plan, &out, &["--quiet"]));
    let expected = contents(&out);
    let begun = Instant::now();
    succeed(&mut sweep(&plan, &out, &["--merge"]));
    let whole = begun.elapsed();
    for i in 0..20 {
        let mut child = sweep(&plan, &out, &["--merge"]).stdout(Stdio::null()).spawn().unwrap();
        sleep(whole.mul_f64(f64::from(i) / 20.0));
        child.kill().unwrap();
        child.wait().unwrap();
        let left = contents(&out);
        for (name, bytes) in left.iter().filter(|(name, _)| !name.contains(".partial-")) {
            assert!(*bytes == expected[name], "{name} after {i}");
        }
    }
    succeed(&mut sweep(&plan, &out, &["--merge"]));
    assert!(contents(&out) == expected);
}

#[test]
fn mistakes_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let out = folder.path().join("out");
    let refused = |more: &[&str], parts: &[&str]| {
        let output = sweep(&plan, &out, more).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{more:?}: {said}");
    };
    refused(&["--shard", "4/4"], &["4/4", "I/N"]);
    refused(&["--status"], &["manifest.json"]);
    refused(&["--status", "--merge"], &["--status", "--merge"]);
    refused(&["--status", "--jobs", "2"], &["--status", "--jobs"]);
    refused(&["--jobs", "0"], &["1 to 1024"]);
    refused(&["--jobs", "2", "--device", "cpu,cpu"], &["--jobs 2", "one run at a time"]);
    assert!(!out.exists());
    // A folder of something else.
    fs::create_dir(&out).unwrap();
    fs::write(out.join("notes"), "").unwrap();
    refused(&[], &["out"]);
    fs::remove_dir_all(&out).unwrap();
    let text = fs::read_to_string(&plan).unwrap();
    fs::write(&plan, text.replace("seed = [1, 2]", "seed = [1]\nsteps = [1]")).unwrap();
    succeed(&mut sweep(&plan, &out, &["--quiet"]));
    fs::write(&plan, text).unwrap();
    refused(&[], &["folder of another plan"]);
}
