//! An output folder: one run folder per recipe, learning rate and seed, `summary.json` and `loss.svg`.
//!
//! The folder appears at once, with every run's configuration in it: it is put together under a
//! temporary name and renamed. From then on a kill at any moment loses at most the steps since the
//! last checkpoint, and [`open`] finds every planned run. `summary.json` lists the runs in their
//! order from the beginning and gets their results at the end; like all files but `timing.jsonl` it
//! holds no clock value, so repeats are byte-equal.

use crate::loss_figure;
use exmy::error::{Error, Result};
use exmy::safetensors::given;
use exmy::safetensors::whole::{self, PARTIAL};
use exmy_train::train::config::{Config, VERSION};
use exmy_train::train::data::Source;
use exmy_train::train::run::{Folder, Summary, intact};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The contents of an output folder's `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// Version of the keys.
    pub version: u32,
    /// What the data are, in words.
    pub data: String,
    /// Nats per token of the text's own source on the validation text, where it is known.
    pub reference: Option<f64>,
    /// The runs, the one the others are compared with first.
    pub runs: Vec<Entry>,
}

/// One run of a [`Comparison`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name of its folder.
    pub folder: String,
    /// Its result; absent until it is complete.
    pub result: Option<Summary>,
}

/// An output folder on disk.
#[derive(Clone, Debug)]
pub struct OutFolder {
    path: PathBuf,
    comparison: Comparison,
    /// The one run that is meant, where somebody named a run folder.
    only: Option<String>,
}

/// A name in characters every file system takes.
pub(crate) fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.@+=".contains(c) { c } else { '_' };
    name.chars().map(plain).collect()
}

/// The name of a run's folder: recipe, learning rate if there are several, and seed.
fn folder_name(config: &Config, several_lrs: bool) -> String {
    let recipe = plain(&config.recipe.to_string());
    let lr = if several_lrs { format!("-lr{:e}", config.train.lr) } else { String::new() };
    format!("{recipe}{lr}-s{}", config.seed)
}

/// Whether not all of some values are the same.
pub fn differ<T: PartialEq>(values: impl IntoIterator<Item = T>) -> bool {
    let mut values = values.into_iter();
    let first = values.next();
    values.any(|value| Some(value) != first)
}

/// The first of `runs/0001`, `runs/0002`, ... that does not exist.
pub fn next_free(parent: &Path) -> PathBuf {
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let taken = fs::read_dir(parent).into_iter().flatten().flatten().filter_map(number).max();
    parent.join(format!("{:04}", taken.unwrap_or(0) + 1))
}

/// Creates `path` with a run folder for each configuration.
///
/// # Errors
/// If `path` exists and is not an empty folder, two configurations would share a folder, or
/// something cannot be written; then nothing is left behind.
pub fn create(
    path: &Path,
    configs: &[Config],
    data: &str,
    reference: Option<f64>,
) -> Result<OutFolder> {
    refuse_used(path)?;
    let several_lrs = differ(configs.iter().map(|config| config.train.lr));
    let names: Vec<_> = configs.iter().map(|c| folder_name(c, several_lrs)).collect();
    let mut seen = HashSet::new();
    if let Some(twice) = names.iter().find(|name| !seen.insert(*name)) {
        return Err(Error::new(format!("two runs would both be called {twice}"))
            .hint("name each recipe, learning rate and seed once"));
    }
    let runs = names.into_iter().map(|folder| Entry { folder, result: None }).collect();
    let comparison = Comparison { version: VERSION, data: data.into(), reference, runs };
    let (parent, name) = whole::split(path);
    fs::create_dir_all(parent).map_err(|error| {
        Error::io("create", parent, error).hint("name another folder with --out")
    })?;
    remove_abandoned(parent);
    let staging = parent.join(format!("{PARTIAL}{}-{name}", std::process::id()));
    let stage = || -> Result<()> {
        fs::create_dir(&staging).map_err(|error| {
            Error::io("create", path, error)
                .hint("its folder takes no new ones; name another with --out")
        })?;
        for (config, entry) in configs.iter().zip(&comparison.runs) {
            Folder::new(staging.join(&entry.folder)).create(config)?;
        }
        write_summary(&staging, &comparison)?;
        // Fails if another process was faster: a folder with contents is never replaced.
        fs::rename(&staging, path).map_err(|error| {
            refuse_used(path).err().unwrap_or_else(|| Error::io("create", path, error))
        })?;
        whole::sync_folder(parent).map_err(|error| Error::io("create", path, error))
    };
    stage().inspect_err(|_| {
        // The original error is what matters.
        let _ = fs::remove_dir_all(&staging);
    })?;
    Ok(OutFolder { path: path.to_owned(), comparison, only: None })
}

/// Creates the next free of `parent/0001`, `parent/0002`, ..., also when other processes do so at
/// the same time.
///
/// # Errors
/// As [`create`].
pub fn create_numbered(
    parent: &Path,
    configs: &[Config],
    data: &str,
    reference: Option<f64>,
) -> Result<OutFolder> {
    loop {
        let path = next_free(parent);
        match create(&path, configs, data, reference) {
            // Somebody else has taken the number meanwhile; the next one is higher.
            Err(_) if path.exists() => {}
            result => return result,
        }
    }
}

/// Removes folders that a killed process had not finished putting together. Their names hold the
/// process; where it cannot be told whether it still lives, nothing is removed.
fn remove_abandoned(parent: &Path) {
    let processes = Path::new("/proc");
    if !processes.join("self").exists() {
        return;
    }
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(PARTIAL));
        let process = rest.and_then(|rest| rest.split_once('-')?.0.parse::<u32>().ok());
        if process.is_some_and(|id| !processes.join(id.to_string()).exists()) {
            // It was never begun; that it stays if this fails harms nobody.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// An output folder may exist only if it is empty.
///
/// # Errors
/// If it holds anything, or is not a folder.
pub fn refuse_used(path: &Path) -> Result<()> {
    match fs::read_dir(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("use", path, error).hint("give the name of a new folder")),
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) if path.join("summary.json").exists() || path.join("config.toml").exists() => {
                Err(Error::new(format!("{} already holds a run", path.display())).hint(format!(
                    "continue it with --resume {}, or give the name of a new folder",
                    path.display()
                )))
            }
            Some(_) => Err(Error::new(format!("the folder {} is not empty", path.display()))
                .hint("give the name of a new folder")),
        },
    }
}

fn write_summary(folder: &Path, comparison: &Comparison) -> Result<()> {
    let mut text = serde_json::to_string_pretty(comparison)
        .map_err(|error| Error::new("cannot write the summary").because(error))?;
    text.push('\n');
    whole::write_whole(&folder.join("summary.json"), text.as_bytes())
}

/// Finds what can be resumed at `path`: an output folder, the output folders directly below it, a
/// single run folder, or run folders without the `summary.json` that once listed them.
///
/// # Errors
/// If there is none, or one cannot be read.
pub fn open(path: &Path) -> Result<Vec<OutFolder>> {
    if path.join("config.toml").is_file() {
        return Ok(vec![open_run(path)?]);
    }
    if path.join("summary.json").is_file() {
        return Ok(vec![read(path)?]);
    }
    let entries = fs::read_dir(path).map_err(|error| {
        Error::io("open", path, error).hint("give a folder that `exmy train` wrote")
    })?;
    if path.join("sweep.json").is_file() {
        return Err(Error::new(format!("{} is the folder of a sweep", path.display())).hint(
            format!(
                "its runs are below {0}/runs; `exmy sweep PLAN --out {0}` goes on with it",
                path.display()
            ),
        ));
    }
    let mut below: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    below.sort();
    let holds = |name: &'static str| move |folder: &&PathBuf| folder.join(name).is_file();
    let runs: Vec<_> = below.iter().filter(holds("config.toml")).collect();
    if !runs.is_empty() {
        let entry = |run: &&PathBuf| Entry { folder: whole::split(run).1, result: None };
        let runs = runs.iter().map(entry).collect();
        let comparison =
            Comparison { version: VERSION, data: String::new(), reference: None, runs };
        return Ok(vec![OutFolder { path: path.to_owned(), comparison, only: None }]);
    }
    let folders: Vec<_> = below.iter().filter(holds("summary.json")).collect();
    if folders.is_empty() {
        return Err(Error::new(format!("there is no run in {}", path.display()))
            .hint("give a folder that `exmy train` wrote, for example runs/0001"));
    }
    folders.into_iter().map(|folder| read(folder)).collect()
}

/// A run folder, as a part of the output folder that lists it or on its own.
fn open_run(path: &Path) -> Result<OutFolder> {
    let whole = fs::canonicalize(path).map_err(|error| Error::io("open", path, error))?;
    let (parent, name) = whole::split(&whole);
    let listed = |out: &OutFolder| out.comparison.runs.iter().any(|entry| entry.folder == name);
    if parent.join("summary.json").is_file()
        && let Ok(mut out) = read(parent)
        && listed(&out)
    {
        out.only = Some(name);
        return Ok(out);
    }
    let runs = vec![Entry { folder: ".".into(), result: None }];
    let comparison = Comparison { version: VERSION, data: String::new(), reference: None, runs };
    Ok(OutFolder { path: path.to_owned(), comparison, only: Some(".".into()) })
}

fn read(path: &Path) -> Result<OutFolder> {
    let file = path.join("summary.json");
    let text =
        given::read(&file, given::RESULTS).map_err(|error| Error::io("read", &file, error))?;
    let comparison = serde_json::from_slice(&text).map_err(|error| {
        Error::new(format!("{} is no list of runs", file.display()))
            .because(error)
            .hint("remove it: --resume finds the runs without it, and writes it anew")
    })?;
    Ok(OutFolder { path: path.to_owned(), comparison, only: None })
}

impl OutFolder {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its runs' folders, in order.
    pub fn folders(&self) -> Vec<Folder> {
        let runs = &self.comparison.runs;
        runs.iter().map(|entry| Folder::new(self.path.join(&entry.folder))).collect()
    }

    /// Whether run `index` is to be trained: all are, unless one was named.
    pub fn is_meant(&self, index: usize) -> bool {
        self.only.as_ref().is_none_or(|name| *name == self.comparison.runs[index].folder)
    }

    /// What `summary.json` says.
    pub fn comparison(&self) -> &Comparison {
        &self.comparison
    }

    /// Collects the results of complete runs into `summary.json` and draws `loss.svg` of all that
    /// have begun.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn conclude(&mut self) -> Result<()> {
        let folders = self.folders();
        for (entry, folder) in self.comparison.runs.iter_mut().zip(&folders) {
            entry.result = folder.summary()?;
        }
        if self.only.as_deref() == Some(".") {
            // A run on its own has no folder around it to write to.
            return Ok(());
        }
        for file in ["summary.json", "loss.svg"] {
            whole::remove_abandoned(&self.path.join(file));
        }
        write_summary(&self.path, &self.comparison)?;
        let configs = folders.iter().map(Folder::config).collect::<Result<Vec<_>>>()?;
        let several_seeds = differ(configs.iter().map(|config| config.seed));
        let several_lrs = differ(configs.iter().map(|config| config.train.lr));
        let mut curves = Vec::new();
        for (folder, config) in folders.iter().zip(&configs) {
            let mut name = config.recipe.to_string();
            if several_lrs {
                name += &format!(" lr {:e}", config.train.lr);
            }
            if several_seeds {
                name += &format!(" s{}", config.seed);
            }
            // A picture is not replaced by one that shows less.
            if let Ok(Some(fault)) = intact::of_run(folder, config) {
                let (picture, run) = (self.path.join("loss.svg"), folder.path().display());
                return Err(Error::new(format!(
                    "{run}: {fault}; {} stays as it was",
                    picture.display()
                ))
                .hint("put the file back as it was; --resume then draws all curves"));
            }
            curves.push(loss_figure::Curve { name, metrics: folder.metrics()? });
        }
        let conditions = configs.first().map(conditions).unwrap_or_default();
        let unit = configs.first().map_or("", |config| config.model.loss_unit());
        let svg = loss_figure::draw(unit, &conditions, self.comparison.reference, &curves);
        whole::write_whole(&self.path.join("loss.svg"), svg.as_bytes())
    }
}

/// Under which conditions the runs were made, in a few words.
pub(crate) fn conditions(config: &Config) -> String {
    let source = match &config.data.source {
        Source::Path(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        synthetic => synthetic.to_string(),
    };
    let parameters = config.model.layout().len() as f64 / 1e3;
    format!("{source}, {parameters:.0} k parameters, seed {}", config.seed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use exmy_train::train::preset::preset;

    #[test]
    fn folder_names_are_plain() {
        let name = |text: &str, several_lrs| {
            let config = preset("nano").unwrap();
            let config = Config { recipe: text.parse().unwrap(), seed: 3, ..config };
            folder_name(&config, several_lrs)
        };
        assert_eq!(name("mxfp8-e4m3", false), "mxfp8-e4m3-s3");
        assert_eq!(name("e2m1/16:e8m0", false), "e2m1_16_e8m0-s3");
        assert_eq!(name("f32", true), "f32-lr1e-3-s3");
    }

    #[test]
    fn the_next_number_is_above_all_others() {
        let parent = tempfile::tempdir().unwrap();
        assert_eq!(next_free(parent.path()).file_name().unwrap(), "0001");
        for name in ["0001", "0007", "notes"] {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        assert_eq!(next_free(parent.path()).file_name().unwrap(), "0008");
        assert_eq!(next_free(&parent.path().join("absent")).file_name().unwrap(), "0001");
    }

    #[test]
    fn a_used_folder_is_refused_and_untouched() {
        let parent = tempfile::tempdir().unwrap();
        fs::write(parent.path().join("config.toml"), "x").unwrap();
        let error = create(parent.path(), &[], "", None).unwrap_err().to_string();
        assert!(error.contains("already holds a run"), "{error}");
        assert_eq!(fs::read(parent.path().join("config.toml")).unwrap(), b"x");
    }
}
