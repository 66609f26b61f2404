//! What earlier versions wrote in place of a manifest: `summary.json` of a folder of `exmy train`,
//! `sweep.json` and files that stood for the state of each run, and pages of studies that said by their text
//! what they are.

use super::labels::labelled;
use super::manifest::{Entry, Kind, Manifest};
use exmy::error::{Error, Result};
use exmy::safetensors::given;
use exmy::shown::printable_path;
use exmy_train::train::run::{Folder, Summary};
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// `summary.json`; each run has a folder of its own recipe's name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Comparison {
    #[expect(dead_code, reason = "there was one")]
    version: u32,
    data: String,
    reference: Option<f64>,
    runs: Vec<Compared>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Compared {
    folder: String,
    result: Option<Summary>,
}

/// `sweep.json`; the runs lay below `runs`, as they do now.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sweep {
    #[expect(dead_code, reason = "there was one")]
    version: u32,
    keys: Vec<String>,
    runs: Vec<Swept>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Swept {
    name: String,
    values: Vec<String>,
    result: Option<Summary>,
}

/// Folders of empty files that said who worked on which run of a sweep.
const STATES: [&str; 3] = ["queue", "claims", "done"];

fn list<T: for<'a> Deserialize<'a>>(file: &Path, remedy: &str) -> Result<Option<T>> {
    if !file.is_file() {
        return Ok(None);
    }
    let text = given::read(file, given::RESULTS).map_err(|error| Error::io("read", file, error))?;
    let found = serde_json::from_slice(&text).map_err(|error| {
        Error::new(format!("{} is no list of runs", printable_path(file)))
            .because(error)
            .hint(remedy)
    })?;
    Ok(Some(found))
}

/// What a folder of an earlier version is.
pub(super) fn read(path: &Path) -> Result<Option<Manifest>> {
    let remedy = "remove it: `exmy sweep` of the plan writes it anew";
    if let Some(Sweep { keys, runs, .. }) = list(&path.join("sweep.json"), remedy)? {
        let entry = |Swept { name, values, result }| Entry {
            folder: format!("runs/{name}"),
            values,
            result,
        };
        let runs = runs.into_iter().map(entry).collect();
        let mut found = Manifest::new(Kind::Sweep, keys, runs);
        found.modernize();
        return Ok(Some(found));
    }
    let file = path.join("summary.json");
    if path.join("config.toml").is_file() || path.join("metrics.jsonl").is_file() {
        // It is the result of one run.
        return Ok(None);
    }
    let remedy = "remove it: --resume finds the runs without it, and writes the list anew";
    let Some(Comparison { data, reference, runs, .. }) = list(&file, remedy)? else {
        return Ok(None);
    };
    let configs = runs.iter().map(|run| Folder::new(path.join(&run.folder)).config());
    let (keys, values) = labelled(&configs.collect::<Result<Vec<_>>>()?);
    let entry = |(Compared { folder, result }, values)| {
        let result = result.map(Summary::modern);
        Entry { folder, values, result }
    };
    let runs = runs.into_iter().zip(values).map(entry).collect();
    Ok(Some(Manifest::new(Kind::Train { data, reference }, keys, runs)))
}

/// Removes lists of runs that a manifest has taken the place of, and nothing that is none. That one stays if
/// this fails harms nobody.
pub(super) fn remove(path: &Path) {
    let (sweep, summary) = (path.join("sweep.json"), path.join("summary.json"));
    if matches!(list::<Sweep>(&sweep, ""), Ok(Some(_))) {
        for state in STATES {
            let _ = fs::remove_dir_all(path.join(state));
        }
        let _ = fs::remove_file(sweep);
    }
    if matches!(list::<Comparison>(&summary, ""), Ok(Some(_))) {
        let _ = fs::remove_file(summary);
    }
}
