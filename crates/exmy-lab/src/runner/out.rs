//! A folder of `exmy train` or `exmy sweep`: its runs, its manifest, its table and its picture.
//!
//! A folder of `exmy train` appears at once, with every run's configuration in it: it is put together under a
//! temporary name and renamed. From then on a kill at any moment loses at most the steps since the
//! last checkpoint, and [`OutFolder::open`] finds every planned run. The plan of a sweep stays with its user,
//! so each of its runs is created when it begins.

use super::labels::{conditions, labelled};
use super::manifest::{Entry, Kind, Manifest};
use super::{Plan, Run, content_name, plain};
use crate::loss_figure;
use crate::run_name::RunName;
use crate::standing;
use crate::table;
use exmy::error::{Error, Result};
use exmy::safetensors::whole;
use exmy::shown::printable_path;
use exmy_train::train::config::Config;
use exmy_train::train::run::{self, Folder, intact};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder on disk.
#[derive(Clone, Debug)]
pub struct OutFolder {
    path: PathBuf,
    manifest: Manifest,
    /// The one run that is meant, where somebody named a run folder.
    only: Option<String>,
}

/// How far the runs of a folder are, by the names of their folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Complete runs.
    pub done: Vec<String>,
    /// Runs that a process is seen to work on.
    pub at_work: Vec<String>,
    /// Runs that were begun, and nobody is seen at work.
    pub stopped: Vec<String>,
    /// Runs that nobody has begun.
    pub fresh: Vec<String>,
}

/// Characters of a recipe in the name of a folder of `exmy train`.
const RECIPE: usize = 80;

/// The name of the folder of a run of `exmy train`: recipe, learning rate if there are several, seed, and the
/// hash of everything.
pub fn folder_name(config: &Config, several_lrs: bool) -> String {
    let recipe: String = plain(&config.recipe.to_string()).chars().take(RECIPE).collect();
    let lr = if several_lrs { format!("-lr{:e}", config.train.lr) } else { String::new() };
    content_name((&format!("{recipe}{lr}-s{}", config.seed), usize::MAX), config, "")
}

/// The path that is meant: itself or, where nothing has this name, the only one that has a run's hash behind
/// it. A folder on the way may lack its hash as well, so that files of a run are found.
pub fn find_run(path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() || path.exists() {
        return path.to_owned();
    }
    let (parent, name) = whole::split(path);
    let is_shorter = parent.as_os_str().len() < path.as_os_str().len();
    let parent = if is_shorter { find_run(parent) } else { parent.to_owned() };
    if parent.join(&name).exists() {
        return parent.join(name);
    }
    let is_meant = |entry: &fs::DirEntry| {
        let found = entry.file_name();
        let found = found.to_str().and_then(|found| found.parse::<RunName>().ok());
        found.is_some_and(|found| found.words == name)
    };
    let mut found = fs::read_dir(parent).into_iter().flatten().flatten().filter(is_meant);
    match (found.next(), found.next()) {
        (Some(one), None) => one.path(),
        _ => path.to_owned(),
    }
}

/// The first of `runs/0001`, `runs/0002`, ... that does not exist.
pub fn next_free(parent: &Path) -> PathBuf {
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let taken = fs::read_dir(parent).into_iter().flatten().flatten().filter_map(number).max();
    parent.join(format!("{:04}", taken.unwrap_or(0) + 1))
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
            Some(_) if holds_runs(path) => {
                let path = printable_path(path);
                Err(Error::new(format!("{path} already holds a run")).hint(format!(
                    "continue it with --resume {path}, or give the name of a new folder"
                )))
            }
            Some(_) => Err(Error::new(format!("the folder {} is not empty", printable_path(path)))
                .hint("give the name of a new folder")),
        },
    }
}

fn holds_runs(path: &Path) -> bool {
    ["manifest.json", "summary.json", "sweep.json", "config.toml"]
        .iter()
        .any(|name| path.join(name).exists())
}

/// Fills a folder under another name and renames it, so that it appears at once; nothing is left if that
/// fails. Of several processes that do so the first one's stands.
fn put_together(path: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let (parent, name) = whole::split(path);
    fs::create_dir_all(parent).map_err(|error| {
        Error::io("create", parent, error).hint("name another folder with --out")
    })?;
    let staging = whole::create_partial_folder(parent, &name).map_err(|error| {
        Error::io("create", path, error)
            .hint("its folder takes no new ones; name another with --out")
    })?;
    let filled = fill(&staging).and_then(|()| {
        // A folder with contents is never replaced.
        whole::rename(&staging, path).map_err(|error| Error::io("create", path, error))
    });
    filled.map_err(|error| {
        let _ = fs::remove_dir_all(&staging);
        // A faster process took away what this one had begun.
        refuse_used(path).err().unwrap_or(error)
    })?;
    whole::remove_partial_folders(parent, &name);
    Ok(())
}

impl OutFolder {
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
    ) -> Result<Self> {
        refuse_used(path)?;
        let (keys, values) = labelled(configs);
        let several_lrs = keys.iter().any(|key| key == "lr");
        let names: Vec<_> = configs.iter().map(|c| folder_name(c, several_lrs)).collect();
        let mut seen = HashSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(*name)) {
            return Err(Error::new(format!("two runs would both be called {twice}"))
                .hint("name each recipe, learning rate and seed once"));
        }
        let entry = |(folder, values)| Entry { folder, values, result: None };
        let runs = names.into_iter().zip(values).map(entry).collect();
        let kind = Kind::Train { data: data.to_owned(), reference };
        let manifest = Manifest::new(kind, keys, runs);
        put_together(path, |staging| {
            for (config, entry) in configs.iter().zip(&manifest.runs) {
                Folder::new(staging.join(&entry.folder)).create(config)?;
            }
            manifest.write(staging)
        })?;
        Ok(Self { path: path.to_owned(), manifest, only: None })
    }

    /// Creates the next free of `parent/0001`, `parent/0002`, ..., also when other processes do so at
    /// the same time.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_numbered(
        parent: &Path,
        configs: &[Config],
        data: &str,
        reference: Option<f64>,
    ) -> Result<Self> {
        loop {
            let path = next_free(parent);
            match Self::create(&path, configs, data, reference) {
                // Somebody else has taken the number meanwhile; the next one is higher.
                Err(_) if path.exists() => {}
                result => return result,
            }
        }
    }

    /// The folder of a sweep at `path`; its manifest is written if it is not there.
    ///
    /// # Errors
    /// If it cannot be created, or holds something else.
    pub fn of_sweep(path: &Path, plan: &Plan) -> Result<Self> {
        let entry = |(run, values): (&Run, &Vec<String>)| {
            let folder = format!("runs/{}", run.name);
            Entry { folder, values: values.clone(), result: None }
        };
        let entries: Vec<Entry> = plan.runs.iter().zip(&plan.values).map(entry).collect();
        let planned = |entries: &[Entry]| -> Vec<String> {
            // The hash at the end says all; the words before it may have been written otherwise.
            let hash = |entry: &Entry| {
                let folder = &entry.folder;
                folder.parse().map_or_else(|_| folder.clone(), |name: RunName| name.hash)
            };
            entries.iter().map(hash).collect()
        };
        if Manifest::read(path)?.is_none() {
            let manifest = Manifest::new(Kind::Sweep, plan.keys.clone(), entries.clone());
            if entries.iter().any(|entry| path.join(&entry.folder).is_dir()) {
                // Somebody removed the manifest alone.
                manifest.write(path)?;
            } else {
                refuse_used(path)
                    .and_then(|()| put_together(path, |staging| manifest.write(staging)))
                    // Another process may have been faster.
                    .or_else(|error| Manifest::read(path)?.map(|_| ()).ok_or(error))?;
            }
        }
        let found = Manifest::read(path)?;
        let is_this = |found: &Manifest| planned(&found.runs) == planned(&entries);
        let manifest = found.filter(is_this).ok_or_else(|| {
            Error::new(format!("{} is the folder of another plan", printable_path(path)))
                .hint("name another folder with --out; a changed plan is another plan")
        })?;
        if path.join("sweep.json").exists() {
            manifest.write(path)?;
        }
        Ok(Self { path: path.to_owned(), manifest, only: None })
    }

    /// The folder of a sweep at `path`.
    ///
    /// # Errors
    /// If there is none.
    pub fn read_sweep(path: &Path) -> Result<Self> {
        match Manifest::read(path)? {
            Some(manifest) if manifest.kind == Kind::Sweep => {
                Ok(Self { path: path.to_owned(), manifest, only: None })
            }
            _ => Err(Error::new(format!(
                "no manifest.json of a sweep is in {}",
                printable_path(path)
            ))
            .hint("`exmy sweep` of the plan makes its folder; --out names another")),
        }
    }

    /// Finds what can be resumed at `path`: an output folder, the output folders directly below it, a
    /// single run folder, or run folders without the manifest that once listed them.
    ///
    /// # Errors
    /// If there is none, or one cannot be read.
    pub fn open(path: &Path) -> Result<Vec<Self>> {
        let path = &find_run(path);
        if path.join("config.toml").is_file() {
            return Ok(vec![Self::of_run(path)?]);
        }
        let entries = fs::read_dir(path).map_err(|error| {
            Error::io("open", path, error).hint("give a folder that `exmy train` wrote")
        })?;
        if let Some(out) = Self::read(path)? {
            return Ok(vec![out]);
        }
        let mut below: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        below.retain(|path| !whole::is_partial(path));
        below.sort();
        let runs: Vec<_> = below.iter().filter(|path| path.join("config.toml").is_file()).collect();
        if !runs.is_empty() {
            let configs = runs.iter().map(|run| Folder::new(*run).config());
            let (keys, values) = labelled(&configs.collect::<Result<Vec<_>>>()?);
            let entry = |(run, values): (&&PathBuf, Vec<String>)| Entry {
                folder: whole::split(run).1,
                values,
                result: None,
            };
            let runs = runs.iter().zip(values).map(entry).collect();
            let kind = Kind::Train { data: String::new(), reference: None };
            let manifest = Manifest::new(kind, keys, runs);
            return Ok(vec![Self { path: path.to_owned(), manifest, only: None }]);
        }
        let outs = below.iter().filter(|path| path.is_dir() && holds_runs(path));
        let outs = outs.filter_map(|path| Self::read(path).transpose());
        let outs = outs.collect::<Result<Vec<_>>>()?;
        if outs.is_empty() {
            return Err(Error::new(format!("there is no run in {}", printable_path(path)))
                .hint("give a folder that `exmy train` wrote, for example runs/0001"));
        }
        Ok(outs)
    }

    /// The folder of `exmy train` at `path`, if it is one.
    fn read(path: &Path) -> Result<Option<Self>> {
        let Some(manifest) = Manifest::read(path)? else { return Ok(None) };
        let command = match &manifest.kind {
            Kind::Train { .. } => {
                return Ok(Some(Self { path: path.to_owned(), manifest, only: None }));
            }
            Kind::Sweep => format!("`exmy sweep PLAN --out {}`", printable_path(path)),
            Kind::Study { study, .. } => {
                format!("`exmy study {study} --out {}`", printable_path(path))
            }
        };
        let what = if manifest.kind == Kind::Sweep { "sweep" } else { "study" };
        Err(Error::new(format!("{} is the folder of a {what}", printable_path(path)))
            .hint(format!("{command} goes on with it")))
    }

    /// A run folder, as a part of the output folder that lists it or on its own.
    fn of_run(path: &Path) -> Result<Self> {
        let whole = fs::canonicalize(path).map_err(|error| Error::io("open", path, error))?;
        let (parent, name) = whole::split(&whole);
        if let Ok(Some(mut out)) = Self::read(parent)
            && out.manifest.runs.iter().any(|entry| entry.folder == name)
        {
            out.only = Some(name);
            return Ok(out);
        }
        let (keys, values) = labelled(&[Folder::new(path).config()?]);
        let entry = |values| Entry { folder: ".".into(), values, result: None };
        let kind = Kind::Train { data: String::new(), reference: None };
        let manifest = Manifest::new(kind, keys, values.into_iter().map(entry).collect());
        Ok(Self { path: path.to_owned(), manifest, only: Some(".".into()) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its runs' folders, in order.
    pub fn folders(&self) -> Vec<Folder> {
        let runs = &self.manifest.runs;
        runs.iter().map(|entry| Folder::new(self.path.join(&entry.folder))).collect()
    }

    /// Whether run `index` is to be trained: all are, unless one was named.
    pub fn is_meant(&self, index: usize) -> bool {
        self.only.as_ref().is_none_or(|name| *name == self.manifest.runs[index].folder)
    }

    /// What it is, with the results that were collected.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// How far its runs are.
    ///
    /// # Errors
    /// If a result cannot be read.
    pub fn status(&self) -> Result<Status> {
        let mut status = Status::default();
        for (entry, folder) in self.manifest.runs.iter().zip(self.folders()) {
            let group = match folder.summary()? {
                Some(_) => &mut status.done,
                None if run::is_at_work(&folder) => &mut status.at_work,
                None if folder.config_file().is_file() => &mut status.stopped,
                None => &mut status.fresh,
            };
            group.push(entry.folder.clone());
        }
        Ok(status)
    }

    /// The results so far: what heads the labels, those of each run, and a row for all of the same.
    pub fn rows(&self) -> (Vec<&str>, Vec<Vec<String>>, Vec<table::Row>) {
        let (header, labels) = self.manifest.labels();
        let runs = self.manifest.runs.iter().zip(&labels).map(|(entry, labels)| table::Run {
            labels: labels.clone(),
            result: entry.result.clone(),
        });
        let rows = table::rows(&runs.collect::<Vec<_>>());
        (header, labels, rows)
    }

    /// The [`rows`](Self::rows) as text.
    pub fn table(&self) -> String {
        let (header, _, rows) = self.rows();
        table::text(&header, &rows)
    }

    /// Collects the results of complete runs into `manifest.json` and draws `loss.svg` of all that
    /// have begun; a sweep also gets its `table.txt`. What stands there and is of another making stays as it
    /// is, and what is returned says so.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn conclude(&mut self) -> Result<Vec<Error>> {
        let folders = self.folders();
        for (entry, folder) in self.manifest.runs.iter_mut().zip(&folders) {
            entry.result = folder.summary()?;
        }
        if self.only.as_deref() == Some(".") {
            // A run on its own has no folder around it to write to.
            return Ok(Vec::new());
        }
        // A study's page may have come meanwhile.
        self.manifest.page = Manifest::read(&self.path)?.and_then(|manifest| manifest.page);
        self.manifest.write(&self.path)?;
        let mut unwritten = Vec::new();
        if self.manifest.kind == Kind::Sweep {
            unwritten.extend(self.write("table.txt", &self.table())?);
        }
        let mut curves = Vec::new();
        let mut first = None;
        for (entry, folder) in self.manifest.runs.iter().zip(&folders) {
            if self.manifest.kind == Kind::Sweep && !folder.config_file().is_file() {
                continue;
            }
            let config = folder.config()?;
            // A picture is not replaced by one that shows less.
            if let Ok(Some(fault)) = intact::of_run(folder, &config) {
                let (picture, run) = (self.path.join(PICTURE), printable_path(folder.path()));
                return Err(Error::new(format!(
                    "{run}: {fault}; {} stays as it was",
                    printable_path(&picture)
                ))
                .hint("put the file back as it was; --resume then draws all curves"));
            }
            let (name, seed) = (self.manifest.title(entry), config.seed);
            curves.push(loss_figure::Curve { name, seed, metrics: folder.metrics()? });
            first.get_or_insert(config);
        }
        let seeds = curves.iter().map(|curve| curve.seed).collect();
        let under = first.as_ref().map(|config| conditions(config, &seeds)).unwrap_or_default();
        let unit = first.as_ref().map_or("", |config| config.model.loss_unit());
        let reference = match &self.manifest.kind {
            Kind::Train { reference, .. } => *reference,
            _ => None,
        };
        let picture = loss_figure::draw(unit, &under, reference, &curves);
        unwritten.extend(self.write(PICTURE, &picture)?);
        Ok(unwritten)
    }

    /// Where the picture is, if it is there.
    pub fn picture(&self) -> Option<PathBuf> {
        let path = self.path.join(PICTURE);
        (path.is_file() && matches!(other(&path), Ok(None))).then_some(path)
    }

    /// Writes a file, or says why it is not.
    fn write(&self, name: &str, text: &str) -> Result<Option<Error>> {
        let path = self.path.join(name);
        if let Some(what) = other(&path)? {
            let shown = printable_path(&path);
            let again = match self.manifest.kind {
                Kind::Sweep => "exmy sweep --merge",
                _ => "exmy train --resume",
            };
            return Ok(Some(
                Error::new(format!(
                    "{shown} {what} and stays as it is: that of these runs is not written"
                ))
                .hint(format!("give it another name; `{again}` then writes what belongs there")),
            ));
        }
        whole::remove_abandoned(&path);
        whole::write_whole(&path, text.as_bytes()).map(|()| None)
    }
}

/// The name of the picture.
const PICTURE: &str = "loss.svg";

/// What a picture or a table that stands there is, if it is not an earlier one. A link was put there by
/// somebody, and what it leads to is not these runs'.
fn other(path: &Path) -> Result<Option<&'static str>> {
    match path.extension().is_some_and(|found| found == "svg") {
        _ if path.is_symlink() => Ok(Some("is a symbolic link")),
        true => standing::lost_picture(path),
        false => standing::lost(path, table::is_table, "is no table of exmy"),
    }
}
