//! A grid of runs is the same folder whoever makes it.

use crate::{TINY, assert_same, contents, exmy, succeed, text_file};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A plan of eight tiny runs on a text beside it.
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
                _ => sweep(&plan, &four, &["--shard", &format!("{shard}/4")]),
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
    assert_eq!(fs::read_dir(one.join("done")).unwrap().count(), 8);
    // Once more there is nothing to do, and nothing changes.
    let before = contents(&one);
    succeed(&mut sweep(&plan, &one, &["--quiet"]));
    assert!(contents(&one) == before);
}

/// What a killed process had begun waits for the next one of its number, or to be put back.
#[test]
fn a_killed_process_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path());
    let (expected, out) = (folder.path().join("expected"), folder.path().join("out"));
    succeed(&mut sweep(&plan, &expected, &["--quiet"]));
    let slow = ["--shard", "1/2", "--quiet"];
    let mut child = sweep(&plan, &out, &slow).stdout(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let claims = || fs::read_dir(out.join("claims")).into_iter().flatten().flatten().count();
    while claims() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is claimed");
        sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(claims(), 1);
    let status = || {
        let output = succeed(&mut sweep(&plan, &out, &["--status"]));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(status().contains("1 claimed") && status().contains("shard 1, nobody"), "{}", status());
    // The other half leaves it alone; its own number goes on with it.
    succeed(&mut sweep(&plan, &out, &["--shard", "0/2", "--quiet"]));
    assert_eq!(claims(), 1);
    succeed(&mut sweep(&plan, &out, &slow));
    assert_same(&expected, &out, "killed");
    assert!(status().starts_with("8 done, 0 claimed, 0 not begun"), "{}", status());
    // Put back by hand, and taken by a process that has another share.
    let claim = fs::read_dir(out.join("done")).unwrap().flatten().next().unwrap();
    let name = claim.file_name().into_string().unwrap();
    fs::rename(claim.path(), out.join("claims").join(format!("{name}.7"))).unwrap();
    fs::remove_file(out.join("runs").join(&name).join("summary.json")).unwrap();
    let output = succeed(&mut sweep(&plan, &out, &["--reclaim"]));
    assert_eq!(output.stdout, b"1 put back\n");
    for shard in ["0/2", "1/2"] {
        succeed(&mut sweep(&plan, &out, &["--shard", shard, "--steal", "--quiet"]));
    }
    assert_same(&expected, &out, "put back");
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
    refused(&["--status"], &["sweep.json"]);
    refused(&["--status", "--merge"], &["--status", "--merge"]);
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
