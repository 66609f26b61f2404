//! What pages and pictures replace: what is of their own making, and nothing else.

use crate::{TINY, exmy, printed, run_of, succeed, text_file};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A figure without runs, and one that trains ten in seconds.
const STUDY: [&str; 5] = ["study", "bit-reduction", "--scale", "smoke", "--figure"];

/// Runs in `folder`, which must end well; what it prints.
fn shown(folder: &Path, arguments: &[&str]) -> String {
    let output = succeed(exmy(arguments).current_dir(folder));
    String::from_utf8(output.stderr).unwrap()
}

/// Runs in `folder`, which must end as a mistake of the caller's that names all `parts`.
fn refused(folder: &Path, arguments: &[&str], parts: &[&str]) {
    let output = exmy(arguments).current_dir(folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    for part in parts {
        assert!(text.contains(part), "{arguments:?}: no {part:?} in {text}");
    }
}

fn study<'a>(figures: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&STUDY[..], &[figures], more].concat()
}

/// A run of the tiny network in `runs`.
fn trained(folder: &Path) {
    let data = text_file(folder);
    let train = ["train", "--data", &data, "--quiet", "--recipe", "f32", "--out", "runs"];
    succeed(exmy(&train).args(TINY).current_dir(folder));
}

/// The folders of the runs of a study.
fn runs(out: &Path) -> Vec<PathBuf> {
    let runs = fs::read_dir(out.join("runs")).into_iter().flatten().flatten();
    runs.map(|entry| entry.path()).collect()
}

#[test]
fn only_pages_and_pictures_of_ones_own_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    trained(root);
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
    for _ in 0..2 {
        shown(root, &["report", "runs"]);
        shown(root, &["plot", "runs"]);
        shown(root, &["plot", "runs", "--out", "runs/loss.svg"]);
    }
    write("mine.html", "<title>mine</title>");
    write("mine.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"><path class=\"exmy\"/></svg>");
    write("empty.svg", "");
    for (command, name, what) in
        [("report", "mine.html", "no page"), ("plot", "mine.svg", "no picture")]
    {
        let before = read(name);
        let other = name.replace("mine", "mine-2");
        refused(root, &[command, "runs", "--out", name], &[name, what, "would be lost", &other]);
        assert_eq!(read(name), before);
        shown(root, &[command, "runs", "--out", &other]);
    }
    shown(root, &["plot", "runs", "--out", "empty.svg"]);
    // Before anything is read, also where the page is not named.
    write("runs/plot.svg", "mine");
    refused(root, &["plot", "runs", "--what", "nothing"], &["runs/plot.svg is no picture"]);
    // Nor is what has the name of a picture that a command draws by itself, also behind a link.
    for link in [false, true] {
        let picture = root.join("runs/loss.svg");
        fs::remove_file(&picture).unwrap();
        match link {
            false => fs::copy(root.join("mine.svg"), &picture).map(drop).unwrap(),
            true => std::os::unix::fs::symlink("../mine-2.svg", &picture).unwrap(),
        }
        let before = read("runs/loss.svg");
        let output = exmy(&["train", "--resume", "runs", "-q"]).current_dir(root).output().unwrap();
        let [seen, said] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        let what = if link { "is a symbolic link" } else { "is no picture of exmy" };
        assert!(said.contains(&format!("runs/loss.svg {what} and stays as it is")), "{said}");
        assert!(said.contains("`exmy train --resume` then writes"), "{said}");
        assert!(seen.contains("gap") && !seen.contains("curves:"), "{seen}");
        assert_eq!((output.status.code(), read("runs/loss.svg")), (Some(1), before), "{said}");
    }
    fs::remove_file(root.join("runs/loss.svg")).unwrap();
    shown(root, &["train", "--resume", "runs", "-q"]);
    assert!(read("runs/loss.svg").contains("class=\"exmy\""));
    // A study's page took a night.
    fs::remove_file(root.join("runs/report.html")).unwrap();
    shown(root, &study("BR-3", &["--out", "s", "--report", "runs"]));
    let page = read("runs/report.html");
    refused(root, &["report", "runs"], &["the report of a study", "--out runs/report-2.html"]);
    assert_eq!(read("runs/report.html"), page);
    shown(root, &study("BR-3", &["--out", "s", "--report", "runs"]));
    // Whatever its heading, an overview is none.
    let title = page.split("<h1>").nth(1).unwrap().split("</h1>").next().unwrap();
    fs::create_dir(root.join("t")).unwrap();
    shown(root, &["report", "runs", "--title", title, "--out", "t/report.html"]);
    refused(
        root,
        &study("BR-3", &["--out", "s", "--report", "t"]),
        &["no report of bit-reduction"],
    );
}

/// The name of a folder acts on no terminal and on no page.
#[test]
#[cfg(unix)]
fn names_of_folders_are_shown_and_not_obeyed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    trained(root);
    let name = "\u{1b}[31mX\u{202e}\u{9b}\n";
    fs::rename(root.join("runs"), root.join(name)).unwrap();
    let resume = ["train", "--resume", name];
    for arguments in [&resume[..], &["report", name], &["plot", name], &["watch", name]] {
        let output = succeed(exmy(arguments).current_dir(root));
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{arguments:?}: {text:?}");
        assert!(
            arguments[0] == "watch" || text.contains("\\u{1b}[31mX\\u{202e}\\u{9b}\\n"),
            "{text}"
        );
    }
    for file in ["report.html", "plot.svg"] {
        let text = fs::read_to_string(root.join(name).join(file)).unwrap();
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{file}");
    }
    let seen = printed(root, "watch", &[name]);
    assert!(seen.ends_with("\n1 run: 1 complete\n"), "{seen}");
    // Also in JSON, which says the same; a comparison is of two.
    let run = run_of(&root.join(name), "f32-s5");
    succeed(Command::new("cp").arg("-r").arg(&run).arg(root.join(name).join("copy")));
    for arguments in [
        &["ls", name, "--json"][..],
        &["compare", name, "--json"],
        &["export", "--jsonl", "-", name],
    ] {
        let text = printed(root, arguments[0], &arguments[1..]);
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{arguments:?}: {text:?}");
        // What is escaped is what was there.
        let first = text.split_inclusive('\n').next().unwrap();
        let whole = if arguments[0] == "export" { first } else { &text };
        let value: serde_json::Value = serde_json::from_str(whole).unwrap();
        if arguments[0] != "export" {
            let path = value["runs"][0]["path"].as_str().unwrap();
            assert!(path.starts_with(name), "{path:?}");
        }
    }
}

#[test]
fn files_that_no_page_claims_are_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for name in ["plan.toml", "figures/BR-3-1.svg", "tables/BR-3-1.csv", "tables/BR-3-runs.csv"] {
        let out = root.join("s");
        fs::create_dir_all(out.join(name).parent().unwrap()).unwrap();
        fs::write(out.join(name), "mine").unwrap();
        refused(
            root,
            &study("BR-3", &["--out", "s"]),
            &[name, "would be lost", "no report of bit-reduction", "another folder"],
        );
        assert_eq!(fs::read_to_string(out.join(name)).unwrap(), "mine");
        fs::remove_dir_all(out).unwrap();
    }
    // Files with other names lose nothing.
    let names =
        ["tables/BR-30-1.csv", "tables/BR-3-01.csv", "tables/BR-3-.csv", "tables/notes.csv"];
    fs::create_dir_all(root.join("s/tables")).unwrap();
    names.iter().for_each(|name| fs::write(root.join("s").join(name), "mine").unwrap());
    for _ in 0..2 {
        shown(root, &study("BR-3", &["--out", "s"]));
    }
    names.iter().for_each(|name| assert_eq!(fs::read(root.join("s").join(name)).unwrap(), b"mine"));
}

/// A page that another process has put there meanwhile stays, and what was trained is not lost. Who meets
/// another process at a run waits for it.
#[test]
fn what_came_while_runs_were_trained_stays() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let all = study("BR-15", &["--out", "s", "--report", "r", "--quiet"]);
    let mut command = exmy(&all);
    let child = command.current_dir(root).stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
    let begun = Instant::now();
    while runs(&root.join("s")).is_empty() {
        assert!(begun.elapsed().as_secs() < 60);
        sleep(Duration::from_millis(5));
    }
    fs::create_dir_all(root.join("r")).unwrap();
    fs::write(root.join("r/report.html"), "<title>mine</title>").unwrap();
    let output = child.unwrap().wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for part in ["would be lost", "the runs are kept", "--report DIR"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(fs::read(root.join("r/report.html")).unwrap(), b"<title>mine</title>");
    assert!(!root.join("r/plan.toml").exists() && !root.join("r/tables/BR-15-1.csv").exists());
    let again = study("BR-15", &["--out", "s", "--quiet"]);
    shown(root, &again);
    // What cannot be written in the end says so, too.
    let picture = root.join("s/figures/BR-15-1.svg");
    fs::remove_file(&picture).unwrap();
    fs::create_dir(&picture).unwrap();
    refused(root, &again, &["BR-15-1.svg", "the runs are kept", "--report DIR"]);
    fs::remove_dir(&picture).unwrap();
    shown(root, &again);

    let run = &runs(&root.join("s"))[0];
    fs::remove_file(run.join("summary.json")).unwrap();
    let held = File::open(run.join("config.toml")).unwrap();
    held.lock().unwrap();
    let mut command = exmy(&study("BR-15", &["--out", "s"]));
    let mut child =
        command.current_dir(root).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(said.any(|line| line == "waits for other processes, which work on 1 run"));
    drop(held);
    assert!(said.any(|line| line.starts_with("report: ")));
    assert!(child.wait().unwrap().success());
    fs::remove_dir_all(run).unwrap();
    fs::write(run, "").unwrap();
    refused(root, &again, &["is a file, and a run is a folder", "take the file away"]);
}

#[test]
fn a_page_of_fewer_figures_tells_what_it_replaces() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let both = study("BR-3,BR-4", &["--out", "s"]);
    for _ in 0..2 {
        let text = shown(root, &both);
        assert!(!text.contains("replaces"), "{text}");
    }
    // Of what is drawn again nothing older stays, of the rest everything.
    let files =
        ["tables/BR-3-9.csv", "figures/BR-3-9.svg", "tables/BR-4-9.csv", "tables/notes-9.csv"];
    files.iter().for_each(|name| fs::write(root.join("s").join(name), "old").unwrap());
    // Earlier versions wrote none, and the page says it.
    fs::remove_file(root.join("s/manifest.json")).unwrap();
    let text = shown(root, &study("BR-3", &["--out", "s"]));
    for part in ["replaces s/report.html of 2 figures by one of 1 figure;", "of BR-4 stay"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(files.map(|name| root.join("s").join(name).exists()), [false, false, true, true]);
    assert!(root.join("s/tables/BR-3-1.csv").exists() && root.join("s/tables/BR-4-1.csv").exists());
    // A page of another scale may have taken a night.
    let page = fs::read(root.join("s/report.html")).unwrap();
    let small = ["study", "bit-reduction", "--figure", "BR-3", "--out", "s"];
    let words = ["is a report of 1 figure at scale smoke", "one at scale small", "--report"];
    refused(root, &small, &words);
    assert_eq!(fs::read(root.join("s/report.html")).unwrap(), page);
    shown(root, &[&small[..], &["--report", "other"]].concat());
}

/// What cannot be written is said before anything is trained.
#[test]
fn a_report_that_cannot_be_written_is_told_first() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::write(root.join("file"), "").unwrap();
    fs::create_dir_all(root.join("taken")).unwrap();
    fs::write(root.join("taken/figures"), "").unwrap();
    for place in ["file/r", "taken"] {
        let all = study("BR-15", &["--out", "s", "--report", place]);
        refused(root, &all, &[&format!("cannot create {place}"), "--report"]);
        assert!(!root.join("s").exists(), "runs were trained for a report that cannot be");
    }
}

/// Copies of a run, each a run of its own.
fn copies(root: &Path, run: &Path, count: usize) {
    for i in 0..count {
        let copy = root.join(format!("many/{i:03}"));
        fs::create_dir_all(&copy).unwrap();
        for name in ["config.toml", "metrics.jsonl", "summary.json"] {
            fs::copy(run.join(name), copy.join(name)).unwrap();
        }
    }
}

/// What only a late one of many runs has recorded is offered, and drawn; what is left out is said.
#[test]
fn many_runs_are_drawn_by_those_that_have_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    trained(root);
    let run = fs::read_dir(root.join("runs")).unwrap().map(|entry| entry.unwrap().path());
    copies(root, &run.into_iter().find(|path| path.is_dir()).unwrap(), 36);
    let data = text_file(root);
    let late = ["train", "--data", &data, "--quiet", "--recipe", "f32", "--out", "many/late"];
    let probe = ["--set", "record.probes=[\"sharpness\"]", "--set", "record.probe_every=5"];
    succeed(exmy(&late).args(TINY).args(probe).current_dir(root));
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let text = shown(root, &["plot", "many", "--what", "sharpness", "--out", "sharpness.svg"]);
    assert!(text.contains("1 of 37 runs has recorded sharpness\n"), "{text}");
    assert!(read("sharpness.svg").contains("1 of 37 runs has recorded sharpness"));
    // The name that the probe had before.
    shown(root, &["plot", "many", "--what", "phi", "--out", "phi.svg"]);
    assert_eq!(read("phi.svg"), read("sharpness.svg"));
    let text = shown(root, &["plot", "many", "--what", "loss,lr", "--out", "loss.svg"]);
    assert_eq!(text.matches("the first 36 of 37 runs\n").count(), 1, "{text}");
    assert!(read("loss.svg").contains("the first 36 of 37 runs"));
    shown(root, &["report", "many", "--out", "page.html"]);
    let page = read("page.html");
    assert!(
        page.contains("id=\"sharpness\"") && page.contains("1 of 37 runs has recorded sharpness")
    );
}

/// Curves that are not to be compared are on one axis only with a word about it.
#[test]
fn runs_that_differ_in_more_than_their_recipe_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    trained(root);
    let train = ["train", "--quiet", "--recipe", "mxfp4", "--out", "other"];
    succeed(exmy(&train).args(TINY).args(["--set", "train.steps=20"]).current_dir(root));
    let said = "the runs also differ in data.source, train.steps";
    for (command, out) in [("report", "a.html"), ("plot", "a.svg")] {
        let text = shown(root, &[command, "runs", "other", "--out", out]);
        assert!(text.contains(&format!("{said}\n")), "{text}");
        let drawn = fs::read_to_string(root.join(out)).unwrap();
        // A subtitle may be broken into lines; it stands unbroken in the description of the picture.
        assert!(drawn.contains(said), "{drawn}");
        let text = shown(root, &[command, "runs", "--out", out]);
        assert!(!text.contains("differ"), "{text}");
    }
}
