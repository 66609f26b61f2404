//! What lies in a folder of runs: a line a run, for `exmy ls`.
//!
//! Folders hold thousands of runs, and a record millions of lines. So the records of one run are held at a
//! time, while they are compared with what was written.

use crate::gather::{damage, first_line, losses, run_folders, states_of};
use crate::run_name::RunName;
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy_train::train::record::last_metrics;
use exmy_train::train::run::{Folder, Summary};
use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listed {
    /// Its folder below the one that was asked for, without the hash where that says which one it is.
    pub name: String,
    /// Its folder.
    pub path: PathBuf,
    /// The recipe's text.
    pub recipe: String,
    /// Its seed.
    pub seed: u64,
    /// Its peak learning rate.
    pub lr: f64,
    /// The word for where it stands.
    pub state: &'static str,
    /// Steps done.
    pub step: u64,
    /// Steps it is to do.
    pub steps: u64,
    /// Mean training loss at its end: of the result, or of the last [`AVERAGED`](crate::gather::AVERAGED)
    /// steps.
    pub loss: Option<f64>,
    /// The last validation loss, where it is the result or stands in the end that was read.
    pub val_loss: Option<f64>,
    /// The unit of both.
    pub unit: &'static str,
    /// Seconds since 1970 at which it last recorded something.
    pub modified: Option<u64>,
    /// What is wrong with its records: a file was lost, cut or edited.
    pub damage: Option<String>,
}

/// When a run last recorded something.
fn modified(folder: &Folder) -> Option<u64> {
    let files = [folder.config_file(), folder.metrics_file(), folder.summary_file()];
    let times = files.iter().filter_map(|path| path.metadata().ok()?.modified().ok()).max();
    Some(times?.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// Seconds since a run last recorded something.
pub fn age(listed: &Listed) -> Option<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    listed.modified.map(|then| now.saturating_sub(then))
}

/// A run but for its state, and its result.
fn listed(folder: &Folder, name: String) -> Result<(Listed, Option<Summary>)> {
    let (config, summary) = (folder.config()?, folder.summary()?);
    let path = folder.metrics_file();
    let lines = if path.exists() { last_metrics(&path)? } else { Vec::new() };
    let [loss, val_loss] = losses(summary.as_ref(), &lines);
    let listed = Listed {
        name,
        path: folder.path().to_owned(),
        recipe: config.recipe.to_string(),
        seed: config.seed,
        lr: config.train.lr,
        state: "",
        step: lines.last().map_or(0, |line| line.step),
        steps: config.train.steps,
        loss,
        val_loss,
        unit: config.model.loss_unit(),
        modified: modified(folder),
        damage: damage(folder, &config).unwrap_or_else(|error| Some(first_line(&error))),
    };
    Ok((listed, summary))
}

/// Names without the hash at their end, where no other one is the same.
fn without_hash(runs: &mut [Listed]) {
    let short =
        |name: &String| name.parse().map_or_else(|_| name.clone(), |name: RunName| name.words);
    let names: Vec<String> = runs.iter().map(|run| short(&run.name)).collect();
    let mut counts: HashMap<&String, usize> = HashMap::new();
    names.iter().for_each(|name| *counts.entry(name).or_default() += 1);
    for (run, name) in runs.iter_mut().zip(&names) {
        if counts[name] == 1 {
            run.name.clone_from(name);
        }
    }
}

/// The runs at and below a folder, and what is wrong with those that cannot be read.
///
/// # Errors
/// If the folder cannot be read, or holds no run.
pub fn list(path: &Path) -> Result<(Vec<Listed>, Vec<Error>)> {
    let (mut runs, mut ends) = (Vec::new(), Vec::new());
    let (folders, mut broken) = run_folders(&[path.to_owned()])?;
    for run in folders {
        let below = run.strip_prefix(path).ok().filter(|below| !below.as_os_str().is_empty());
        let name = printable_path(below.unwrap_or(&run));
        let folder = Folder::new(run);
        match listed(&folder, name) {
            Ok((run, summary)) => {
                let has_records = folder.metrics_file().metadata().is_ok_and(|file| file.len() > 0);
                runs.push(run);
                ends.push((folder, summary, has_records));
            }
            Err(error) => broken.push(error),
        }
    }
    let known: Vec<_> =
        ends.iter().map(|(folder, summary, has)| (folder, summary.as_ref(), *has)).collect();
    for (run, state) in runs.iter_mut().zip(states_of(&known)) {
        run.state = state.checked(run.damage.is_some()).word();
    }
    without_hash(&mut runs);
    Ok((runs, broken))
}
