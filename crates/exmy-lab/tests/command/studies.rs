//! Studies, reports, pictures and the view of running runs, as their users meet them.

use crate::kill::{kill_after, send};
use crate::{TINY, exmy, heeding_signals, printed, succeed, text_file};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A study of two figures that share runs.
type Study = [&'static str; 7];

/// The smallest: proxies.
const STUDY: Study =
    ["study", "mx-instabilities", "--figure", "F2a,F2b", "--scale", "smoke", "--quiet"];
/// A hundred times the work: language models.
const LANGUAGE: Study =
    ["study", "bit-reduction", "--figure", "BR-6,BR-9", "--scale", "smoke", "--quiet"];

fn study(which: &Study, out: &Path, more: &[&str]) -> String {
    let output = succeed(exmy(which).arg("--out").arg(out).args(more));
    String::from_utf8(output.stdout).unwrap()
}

/// What does not depend on how the runs were made: all files below, but the page with its provenance, clocks
/// and checkpoints.
fn results(out: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![out.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name());
            if path.is_dir() {
                folders.push(path);
            } else if name != "timing.jsonl" && name != "report.html" {
                let relative = path.strip_prefix(out).unwrap().to_owned();
                all.insert(relative, fs::read(&path).unwrap());
            }
        }
    }
    all
}

#[test]
fn a_study_is_the_same_however_its_runs_are_made() {
    is_the_same_however_its_runs_are_made(&STUDY, 6);
}

/// `cargo test --release -p exmy-lab --test command -- --ignored`
#[test]
#[ignore = "a minute or two; the command is above"]
fn a_study_of_language_models_is_the_same_however_its_runs_are_made() {
    is_the_same_however_its_runs_are_made(&LANGUAGE, 8);
}

/// However its runs are made, a study gives the same bytes: at once, by two shards, after a kill.
fn is_the_same_however_its_runs_are_made(which: &Study, runs: usize) {
    let study = |out: &Path, more: &[&str]| study(which, out, more);
    let (one, two) = which[3].split_once(',').unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (whole, shared, killed) =
        (folder.path().join("whole"), folder.path().join("shared"), folder.path().join("killed"));
    let begun = Instant::now();
    let said = study(&whole, &["--threads", "1"]);
    let time = begun.elapsed();
    assert!(
        said.lines().count() == 2
            && said.contains(one)
            && said.contains("runs of this scale judge nothing"),
        "{said}"
    );
    let expected = results(&whole);
    let count = |end: &str| expected.keys().filter(|path| path.ends_with(end)).count();
    assert_eq!(count("summary.json"), runs, "some are in both");
    let drawn = [format!("{one}-1.svg"), format!("{one}-1.csv"), "plan.toml".into()];
    assert!(drawn.iter().all(|name| count(name) == 1));
    let page = fs::read_to_string(whole.join("report.html")).unwrap();
    assert!(page.contains(&format!("id=\"{two}\"")) && page.contains("--threads 1"), "provenance");

    for shard in ["0/2", "1/2"] {
        assert_eq!(study(&shared, &["--shard", shard]), "");
    }
    assert!(!shared.join("report.html").exists());
    assert_eq!(study(&shared, &["--threads", "2"]), said);
    assert!(results(&shared) == expected);

    // What was damaged is refused, and says what to do.
    let run = fs::read_dir(shared.join("runs")).unwrap().next().unwrap().unwrap().path();
    let metrics = fs::read(run.join("metrics.jsonl")).unwrap();
    let line = metrics.iter().position(|&byte| byte == b'\n').unwrap();
    fs::write(run.join("metrics.jsonl"), &metrics[..=line]).unwrap();
    let refused = || {
        let output = exmy(which).arg("--out").arg(&shared).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains("remove this folder"), "{text}");
        text
    };
    refused();
    fs::write(run.join("metrics.jsonl"), &metrics).unwrap();
    // So are probes whose last lines are missing, and all of them.
    let runs = fs::read_dir(shared.join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let probes = runs.map(|run| run.join("probes.jsonl")).find(|path| path.exists()).unwrap();
    let lines = fs::read_to_string(&probes).unwrap();
    let first: String = lines.split_inclusive('\n').take(3).collect();
    for (text, words) in [
        (first.as_str(), ["probes.jsonl up to step ", " is not as it was written"]),
        ("", ["probes.jsonl", "is empty"]),
    ] {
        fs::write(&probes, text).unwrap();
        let said = refused();
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }

    let start = [&which[..], &["--out", killed.to_str().unwrap()]].concat();
    kill_after(&start, time / 3);
    // A kill while the folder of a run is made leaves it under another name, and that is no run.
    let runs = killed.join("runs");
    let run = fs::read_dir(whole.join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let run = run.filter(|run| run.to_string_lossy().contains("e4m3")).max().unwrap();
    let name = run.file_name().unwrap().to_str().unwrap();
    let _ = fs::remove_dir_all(runs.join(name));
    let half_made = runs.join(format!(".partial-1-{name}"));
    fs::create_dir_all(&half_made).unwrap();
    fs::copy(run.join("config.toml"), half_made.join("config.toml")).unwrap();
    assert_eq!(study(&killed, &[]), said);
    assert!(results(&killed) == expected);
}

/// A second call trains nothing, and writes the report elsewhere if that is wanted.
#[test]
fn a_second_call_only_draws() {
    let folder = tempfile::tempdir().unwrap();
    let (runs, report) = (folder.path().join("runs"), folder.path().join("report"));
    let one = ["study", "mx-instabilities", "--figure", "t3", "--out"];
    let said = succeed(exmy(&one).arg(&runs).arg("--report").arg(&report)).stdout;
    assert!(String::from_utf8(said).unwrap().starts_with("T3"));
    assert!(report.join("report.html").is_file() && report.join("tables/T3-1.csv").is_file());
    let plan = succeed(exmy(&STUDY).arg("--plan").arg("--out").arg(&runs)).stdout;
    let plan = String::from_utf8(plan).unwrap();
    let row: Vec<&str> = plan.lines().last().unwrap().split_whitespace().collect();
    assert_eq!((row[..2].join(" "), row[2]), ("to do".to_owned(), "6"), "{plan}");
    study(&STUDY, &runs, &[]);
    let stamp = || fs::metadata(runs.join("runs")).unwrap().modified().unwrap();
    let before = stamp();
    let plan = succeed(exmy(&STUDY).arg("--plan").arg("--out").arg(&runs)).stdout;
    let plan = String::from_utf8(plan).unwrap();
    let row: Vec<&str> = plan.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(row, ["to", "do", "0", "-", "-"], "{plan}");
    let said = study(&STUDY, &runs, &[]);
    assert_eq!(stamp(), before);

    // Nor does one that draws from curves, in a folder without runs.
    let file = folder.path().join("curves.xz");
    let curves = file.to_str().unwrap();
    study(&STUDY, &runs, &["--save-curves", curves]);
    let bytes = fs::read(&file).unwrap();
    study(&STUDY, &runs, &["--save-curves", curves]);
    assert!(fs::read(&file).unwrap() == bytes);
    let drawn = folder.path().join("drawn");
    let from = ["study", "mx-instabilities", "--quiet", "--curves", curves];
    let again = succeed(exmy(&from).arg("--out").arg(&drawn)).stdout;
    assert_eq!(String::from_utf8(again).unwrap(), said);
    assert!(!drawn.join("runs").exists());
    let (whole, drawn) = (results(&runs), results(&drawn));
    let is_exact = |path: &&PathBuf| path.starts_with("tables") || path.ends_with("plan.toml");
    assert!(whole.keys().filter(is_exact).all(|path| whole[path] == drawn[path]));
    assert_eq!(drawn.keys().filter(is_exact).count(), 5);
    let page = fs::read_to_string(folder.path().join("drawn/report.html")).unwrap();
    assert!(page.contains("curves have every 10th step"));
    for (more, part) in [
        (["--figure", "F2a,T3"], "no curves for T3"),
        (["--scale", "small"], "curves of scale smoke, not small"),
    ] {
        let output = exmy(&from).args(more).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && text.contains(part), "{text}");
    }

    // What curves lack is trained, and written with them.
    let (more, both) = (folder.path().join("more"), folder.path().join("both.xz"));
    let added = [&from[..], &["--figure", "F2a,F2b,F3", "--out", more.to_str().unwrap()]].concat();
    let plan = succeed(exmy(&added).arg("--plan")).stdout;
    let plan = String::from_utf8(plan).unwrap();
    let row: Vec<&str> = plan.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(row[..3], ["to", "do", "3"], "{plan}");
    succeed(exmy(&added).arg("--shard").arg("0/1"));
    assert_eq!(fs::read_dir(more.join("runs")).unwrap().count(), 3);
    let again = ["--figure", "F2a"];
    succeed(exmy(&from).args(again).arg("--save-curves").arg(&both).arg("--out").arg(&more));
    assert!(fs::read(&both).unwrap() == bytes, "what the curves have of other figures stays");

    // A file of other runs is not lost, and nothing is trained before that is known. A figure that curves
    // cannot draw is left out.
    let part = ["study", "mx-instabilities", "--scale", "smoke", "--quiet", "--save-curves"];
    let one = |figure: &str, file: &Path, out: &str| {
        let out = folder.path().join(out);
        exmy(&part).arg(file).args(["--figure", figure]).arg("--out").arg(out).output().unwrap()
    };
    for (file, message) in [(&both, "that would be lost"), (&more.join("x/y.xz"), "no folder")] {
        let output = one("F2b", file, "other");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && text.contains(message), "{text}");
        assert!(!folder.path().join("other").exists());
    }
    let left = folder.path().join("left.xz");
    let output = one("F3", &left, "left");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && text.contains("F3 is not in"), "{text}");
    assert!(text.contains("there is nothing to draw") && !left.exists(), "{text}");
    fs::write(&file, "mine").unwrap();
    let output = exmy(&STUDY).arg("--save-curves").arg(&file).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && text.contains("would be lost"), "{text}");
}

/// What a stopped study has trained is not lost with its folder.
#[cfg(unix)]
#[test]
fn a_stopped_study_leaves_curves_to_which_the_rest_is_added() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let save = |file: &str| ["--save-curves".to_owned(), path(file).to_str().unwrap().to_owned()];
    succeed(exmy(&STUDY).args(save("all.xz")).arg("--out").arg(path("all")));
    let mut child = heeding_signals(&[&STUDY[..], &["--threads", "1"]].concat())
        .args(save("half.xz"))
        .arg("--out")
        .arg(path("half"))
        .spawn()
        .unwrap();
    let begun = || {
        let runs = fs::read_dir(path("half").join("runs")).into_iter().flatten();
        runs.flatten().any(|run| run.path().join("summary.json").exists())
    };
    while !begun() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    send(&child, "-TERM");
    let code = child.wait().unwrap().code();
    assert!(matches!(code, Some(143 | 0)), "{code:?}");
    let half = fs::metadata(path("half.xz")).unwrap().len();
    assert!(code == Some(0) || half < fs::metadata(path("all.xz")).unwrap().len());
    fs::remove_dir_all(path("half")).unwrap();
    let rest = ["--curves", path("half.xz").to_str().unwrap()].map(str::to_owned);
    succeed(exmy(&STUDY).args(rest).args(save("both.xz")).arg("--out").arg(path("rest")));
    assert!(fs::read(path("both.xz")).unwrap() == fs::read(path("all.xz")).unwrap());
}

#[test]
fn mistakes_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let empty = empty.to_str().unwrap();
    for (arguments, parts) in [
        (vec!["study", "bit-redaction"], vec!["bit-redaction", "bit-reduction"]),
        (vec!["study", "bit-reduction", "--figure", "E1"], vec!["no figure \"E1\"", "BR-1"]),
        (vec!["study", "bit-reduction", "--scale", "tiny"], vec!["tiny", "smoke"]),
        (vec!["study", "bit-reduction", "--data", "no.txt", "--figure", "BR-3"], vec!["no.txt"]),
        (vec!["study", "bit-reduction", "--shard", "3/2"], vec!["3/2", "I/N"]),
        (vec!["study", "bit-reduction", "--figure", "BR-3,"], vec!["empty name", "single commas"]),
        (vec!["study", "--figure", "BR-6"], vec!["none is named", "bit-reduction"]),
        (vec!["study", "--scale", "smoke"], vec!["--scale", "none is named", "bit-reduction"]),
        (vec!["study", "--out", "x"], vec!["--out", "none is named"]),
        (vec!["report", "nowhere"], vec!["nowhere", "exmy train"]),
        (vec!["report", empty], vec!["holds no run", "config.toml"]),
        (vec!["plot", empty, "--what", "loss"], vec!["holds no run"]),
        (vec!["watch", empty], vec!["holds no run"]),
    ] {
        let output = exmy(&arguments).current_dir(folder.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{arguments:?}: {text}");
    }
    let twice = ["bit-reduction", "--figure", "BR-3, BR-4,br-3", "--plan"];
    let plan = printed(folder.path(), "study", &twice);
    let lines = plan.lines().filter(|line| line.starts_with("BR-"));
    assert_eq!(lines.count(), 2, "{plan}");
    let list = printed(folder.path(), "study", &[]);
    assert!(list.contains("BR-6") && list.contains("arXiv 2405.18710"), "{list}");
}

/// Any runs as a page, as a picture, as lines.
#[test]
fn any_runs_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let probes = "record.probes=[\"sharpness\",\"norms\"]";
    let train = ["train", "--data", &data, "--quiet", "--recipe", "f32,mxfp4", "--out", "runs"];
    let more = ["--set", probes, "--set", "record.probe_every=5"];
    succeed(exmy(&train).args(TINY).args(more).current_dir(folder.path()));
    printed(folder.path(), "report", &["runs"]);
    let page = fs::read_to_string(folder.path().join("runs/report.html")).unwrap();
    for part in ["mxfp4", "gradient norm", "id=\"sharpness\"", "complete", "record.probes", "<svg"]
    {
        assert!(page.contains(part) || page.contains(&part.replace("record.", "")), "{part}");
    }
    let made = page.split("How this was made</h2>").nth(1).unwrap();
    for part in [env!("CARGO_PKG_VERSION"), "SIMD level", "2 runs, ", "exmy report runs"] {
        assert!(made.contains(part), "{part}: {made}");
    }
    let what = ["runs", "--what", "loss,sharpness,norms/model.norm.weight.grad", "--out", "-"];
    let svg = printed(folder.path(), "plot", &what);
    assert!(svg.starts_with("<svg") && svg.contains("norms/model.norm.weight.grad"));
    let output =
        exmy(&["plot", "runs", "--what", "fi"]).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("no run has recorded \"fi\" as a number") && text.contains("sharpness"),
        "{text}"
    );
    let what = ["plot", "runs", "--what", "norms/model.norm.weight"];
    let output = exmy(&what).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("norms/lm_head.weight.grad"), "{text}");
    let seen = printed(folder.path(), "watch", &["runs", "--once"]);
    assert!(seen.ends_with("\n2 runs: 2 complete\n"), "{seen}");
    let line = seen.lines().find(|line| line.starts_with("mxfp4")).unwrap();
    assert!(line.ends_with("complete"), "{seen}");
    // Each number in its column, below its head.
    let at =
        |what: &str| -> Vec<usize> { seen.lines().filter_map(|line| line.find(what)).collect() };
    let (steps, states) = (at("40/40"), at("complete"));
    assert!(steps.len() == 2 && steps[0] == steps[1], "{seen}");
    assert_eq!(states[..2], [at("state")[0]; 2], "{seen}");
    assert!(printed(folder.path(), "watch", &["--help"]).contains("into a pipe or a file"));
}

/// No file of another kind is overwritten by a slip, and what cannot be written is said before runs are
/// trained.
#[test]
#[cfg(unix)]
fn nothing_is_lost_to_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let train = ["train", "--data", &data, "--quiet", "--recipe", "f32", "--out", "runs"];
    succeed(exmy(&train).args(TINY).current_dir(folder.path()));
    let mut runs =
        fs::read_dir(folder.path().join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let config = runs.find(|path| path.is_dir()).unwrap().join("config.toml");
    let before = fs::read(&config).unwrap();
    fs::write(folder.path().join("file"), "mine").unwrap();
    let socket = folder.path().join("socket.svg");
    let _socket = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    fs::create_dir(folder.path().join("other")).unwrap();
    fs::write(folder.path().join("other/report.html"), "<title>mine</title>").unwrap();
    let study = ["study", "bit-reduction", "--figure", "BR-3", "--scale", "smoke", "--out", "s"];
    let of = |more: [&'static str; 2]| [&study[..], &more].concat();
    let config = config.to_str().unwrap();
    for (arguments, parts) in [
        (vec!["plot", "runs", "--out", config], vec!["an SVG", "config.svg"]),
        (vec!["plot", "runs", "--out", "loss.png"], vec!["an SVG", "loss.svg"]),
        (vec!["plot", "runs", "--out", "/dev/null"], vec!["an SVG"]),
        (vec!["plot", "runs", "--out", "socket.svg"], vec!["socket.svg", "no plain file"]),
        (vec!["report", "runs", "--out", config], vec!["an HTML page", "config.html"]),
        (
            vec!["report", "runs", "--out", "n/a.html"],
            vec!["n/a.html", "folder n does not", "mkdir"],
        ),
        (vec!["plot", "runs", "--out", "n/m/a.svg"], vec!["folder n/m does not", "mkdir -p n/m"]),
        (vec!["plot", "runs", "--out", "file/a.svg"], vec!["folder file is a file", "--out"]),
        (
            vec!["plot", "runs", "--what", "loss,,lr"],
            vec!["\"loss,,lr\" has an empty name", "commas"],
        ),
        (vec!["plot", "runs", "--what", "loss,"], vec!["empty name", "none at the end"]),
        (vec!["report", "file"], vec!["file is a file", "folders of runs"]),
        (vec!["plot", "file"], vec!["file is a file"]),
        (vec!["watch", "nowhere"], vec!["nowhere does not exist", "folders of runs"]),
        (of(["--report", "file"]), vec!["file is a file", "another folder"]),
        (of(["--report", "other"]), vec!["no report of bit-reduction", "would be lost"]),
    ] {
        let output = exmy(&arguments).current_dir(folder.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{arguments:?}: {text}");
    }
    assert_eq!(fs::read(config).unwrap(), before);
    assert!(!fs::metadata(&socket).unwrap().is_file(), "a device in its place would be lost, too");
    assert_eq!(fs::read(folder.path().join("file")).unwrap(), b"mine");
    assert!(!folder.path().join("s").exists(), "runs were trained for a report that cannot be");
    // One of the same study is drawn anew.
    let again = ["--report", "s"];
    for _ in 0..2 {
        succeed(exmy(&of(again)).arg("--quiet").current_dir(folder.path()));
    }
}

/// One broken run is reported and hides none of the others.
#[test]
fn a_broken_run_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let data = text_file(folder.path());
    let train = ["train", "--data", &data, "--quiet", "--recipe", "f32", "--out"];
    let run = |name: &str| {
        let out = format!("runs/{name}");
        let norms = ["--set", "record.probes=[\"norms\"]"];
        succeed(exmy(&train).arg(&out).args(TINY).args(norms).current_dir(folder.path()));
        let below = fs::read_dir(folder.path().join(out)).unwrap();
        below.map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap()
    };
    let runs = ["1", "2", "3", "4", "5"].map(run);
    fs::write(runs[0].join("config.toml"), "not a config").unwrap();
    fs::write(runs[1].join("probes.jsonl"), "not a line\n").unwrap();
    let metrics = fs::read_to_string(runs[2].join("metrics.jsonl")).unwrap();
    let begin: String = metrics.lines().take(2).map(|line| format!("{line}\n")).collect();
    fs::write(runs[2].join("metrics.jsonl"), begin).unwrap();
    fs::remove_file(runs[3].join("probes.jsonl")).unwrap();
    let page = ["report", "runs", "--out", "page.html"];
    for arguments in [&page[..], &["plot", "runs", "--out", "loss.svg"]] {
        let output = exmy(arguments).current_dir(folder.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(folder.path().join(arguments.last().unwrap()).exists(), "the others are drawn");
        assert_eq!(text.matches("left out: ").count(), 4, "{text}");
        assert!(text.contains("4 runs are damaged and were left out"), "{text}");
        assert!(text.contains("config.toml") && text.contains("probes.jsonl line 1"), "{text}");
        assert!(text.contains("metrics.jsonl ends at step 1 of 40"), "{text}");
        assert!(text.contains("probes.jsonl is missing"), "{text}");
    }
    let output = exmy(&["watch", "runs", "--once"]).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("4 runs: 1 complete, 3 damaged") && text.contains("config.toml"),
        "{text}"
    );
    assert_eq!(text.matches("metrics.jsonl ends at step 1 of 40").count(), 1, "{text}");
    assert_eq!(text.matches("probes.jsonl is missing").count(), 1, "{text}");
    let read = || fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(read().contains("4 runs that cannot be read are left out: "), "the page says so, too");
    // What is there may show more of them, and stays.
    let before = read();
    assert_eq!(exmy(&page).current_dir(folder.path()).status().unwrap().code(), Some(1));
    assert!(read() == before);
    fs::remove_file(folder.path().join("page.html")).unwrap();
    // So is one that has records and lost its configuration.
    let config = fs::read(runs[3].join("config.toml")).unwrap();
    fs::remove_file(runs[3].join("config.toml")).unwrap();
    for arguments in [&page[..], &["watch", "runs", "--once"]] {
        let output = exmy(arguments).current_dir(folder.path()).output().unwrap();
        let text = [output.stderr, output.stdout].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(
            text.contains("runs/4/f32-s5-") && text.contains("/config.toml: No such file"),
            "{text}"
        );
    }
    assert!(read().contains("4 runs that cannot be read") && read().contains("runs/4/f32-s5"));
    fs::write(runs[3].join("config.toml"), config).unwrap();
    // What is no text is reported as what is no record.
    fs::write(runs[2].join("metrics.jsonl"), b"\xff\n").unwrap();
    let output = exmy(&page).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("metrics.jsonl") && text.contains("changed from outside"), "{text}");
    // Nothing is left.
    fs::remove_dir_all(&runs[4]).unwrap();
    fs::remove_dir_all(&runs[3]).unwrap();
    fs::remove_dir_all(&runs[2]).unwrap();
    let output = exmy(&page).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
