//! The files of a run by their names, and those that describe it, read.

use super::Summary;
use crate::train::checkpoint;
use crate::train::config::{self, Config, Start};
use crate::train::matching::check_fingerprint;
use crate::train::record::{self, Metrics, read_metrics, split_at};
use exmy::error::{Error, Result};
use exmy::safetensors::given;
use exmy::safetensors::whole::{self, WholeFile};
use exmy::shown::printable_path;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// What would work where a configuration is lost.
pub const ALONE: &str =
    "it alone says what the run is: put it back, or remove the folder and begin anew";

/// One run's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder(PathBuf);

impl Folder {
    /// The run folder at `path`, existing or not.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Its `config.toml`.
    pub fn config_file(&self) -> PathBuf {
        self.0.join("config.toml")
    }

    /// Its `metrics.jsonl`.
    pub fn metrics_file(&self) -> PathBuf {
        self.0.join("metrics.jsonl")
    }

    /// Its `probes.jsonl`; there is none without probes.
    pub fn probes_file(&self) -> PathBuf {
        self.0.join("probes.jsonl")
    }

    /// Its `timing.jsonl`.
    pub fn timing_file(&self) -> PathBuf {
        self.0.join("timing.jsonl")
    }

    /// Its final weights.
    pub fn model_file(&self) -> PathBuf {
        self.0.join("model.safetensors")
    }

    /// The file of its weights: the final ones or, where there are none, its newest checkpoint.
    ///
    /// # Errors
    /// If it has neither, or its checkpoints cannot be listed.
    pub fn weights(&self) -> Result<PathBuf> {
        let (model, checkpoints) = (self.model_file(), self.checkpoints());
        if model.exists() {
            return Ok(model);
        }
        if let Some(&newest) = checkpoint::list(&checkpoints)?.last() {
            return Ok(checkpoint::path(&checkpoints, newest));
        }
        let path = printable_path(&self.0);
        Err(match self.summary_file().exists() {
            true => Error::new(format!("{path} has no weights any more")).hint(format!(
                "put back its model.safetensors or a checkpoint, or train it anew: exmy train --config \
                 {path}/config.toml --out OTHER"
            )),
            false => Error::new(format!("{path} has no weights yet")).hint(format!(
                "its training has not reached a checkpoint: exmy train --resume {path}"
            )),
        })
    }

    /// Its `summary.json`.
    pub fn summary_file(&self) -> PathBuf {
        self.0.join("summary.json")
    }

    /// The folder of its checkpoints.
    pub fn checkpoints(&self) -> PathBuf {
        self.0.join("checkpoints")
    }

    /// The folder of the lines that rollbacks undid.
    pub fn discarded(&self) -> PathBuf {
        self.0.join("discarded")
    }

    /// Creates the folder with its configuration and, for a branch, the other run's checkpoint and
    /// lines up to it. It appears whole: it is put together under another name and renamed. A run that is
    /// there already stays as it is, so that several processes may create one.
    ///
    /// # Errors
    /// If the folder cannot be written, or what a branch begins with cannot be read.
    pub fn create(&self, config: &Config) -> Result<()> {
        let (parent, name) = whole::split(&self.0);
        let staging = whole::create_partial_folder(parent, &name)
            .map_err(|error| Error::io("create", &self.0, error))?;
        let created = Self(staging.clone()).fill(config).and_then(|()| {
            let rename = || whole::rename(&staging, &self.0);
            rename()
                .or_else(|error| {
                    if self.config_file().is_file() || self.metrics_file().exists() {
                        return Err(error);
                    }
                    // Left by a kill before there was anything to lose; earlier versions created it in parts.
                    fs::remove_dir_all(&self.0)?;
                    rename()
                })
                .map_err(|error| Error::io("create", &self.0, error))
        });
        if created.is_err() {
            // The original error is what matters.
            let _ = fs::remove_dir_all(&staging);
        }
        match created {
            // Another process was faster.
            Err(_) if self.config_file().is_file() => Ok(()),
            Err(_) if self.metrics_file().exists() => self.config().map(|_| ()),
            created => created,
        }?;
        whole::remove_partial_folders(parent, &name);
        Ok(())
    }

    /// Writes what a run begins with.
    fn fill(&self, config: &Config) -> Result<()> {
        if config.start.is_branch() {
            self.copy_past(&config.start)?;
        }
        whole::write_whole(&self.config_file(), config::sealed(&config.to_toml()).as_bytes())
    }

    /// Gives a branch its past: the checkpoint it begins with and the lines up to there.
    ///
    /// # Errors
    /// If they cannot be read, are not those that were meant, or cannot be written.
    fn copy_past(&self, start: &Start) -> Result<()> {
        let run = Self::new(&start.run);
        let from = checkpoint::path(&run.checkpoints(), start.step);
        check_fingerprint(&from, &start.fingerprint)?;
        let checkpoints = self.checkpoints();
        fs::create_dir_all(&checkpoints)
            .map_err(|error| Error::io("create", &checkpoints, error))?;
        let to = checkpoint::path(&checkpoints, start.step);
        let copy = || {
            let mut file = WholeFile::create(&to)?;
            io::copy(&mut given::open(&from)?, file.file())?;
            file.finish()
        };
        copy().map_err(|error| Error::io("write", &to, error))?;
        let past = run.past(start.step)?;
        whole::write_whole(&self.metrics_file(), &past)
    }

    /// Its lines of metrics up to its checkpoint of `step`.
    ///
    /// # Errors
    /// If they cannot be read, or are not as they were written.
    pub(in crate::train) fn past(&self, step: u64) -> Result<Vec<u8>> {
        let (past, _) = split_at(&self.metrics_file(), step)?;
        let digests = checkpoint::records(&checkpoint::path(&self.checkpoints(), step))?;
        if digests.is_some_and(|digests| digests.metrics != record::digest(&past)) {
            let path = self.metrics_file();
            return Err(Error::new(format!(
                "{} up to step {step} is not as it was written",
                printable_path(&path)
            ))
            .hint("put the file back as it was, or branch off at an earlier step"));
        }
        Ok(past)
    }

    /// Reads its configuration.
    ///
    /// # Errors
    /// If there is none or it cannot be used.
    pub fn config(&self) -> Result<Config> {
        let path = self.config_file();
        let text = given::text(&path, given::SETTINGS)
            .map_err(|error| Error::io("read", &path, error).hint(ALONE))?;
        if !config::is_as_sealed(&text) {
            let fault = format!("{} is not as it was when the run began", printable_path(&path));
            return Err(Error::new(fault).hint(format!(
                "put it back; other settings are another run: `exmy train --config` begins one with \
                 this file, `--branch {}@STEP` goes on from a checkpoint",
                printable_path(&self.0)
            )));
        }
        Config::from_toml(&text).map_err(|error| {
            let error = Error::new(format!("{}: {error}", printable_path(&path)));
            // What is as it was sealed is whole: it is of another version.
            if config::is_sealed(&text) { error } else { error.hint(ALONE) }
        })
    }

    /// Its summary, if the run is complete.
    ///
    /// # Errors
    /// If the file exists but is not a summary.
    pub fn summary(&self) -> Result<Option<Summary>> {
        Ok(self.written_summary()?.map(Summary::modern))
    }

    /// The same in the names of the version that wrote it.
    pub(super) fn written_summary(&self) -> Result<Option<Summary>> {
        let path = self.summary_file();
        let text = match given::read(&path, given::RESULTS) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(_) if self.0.is_file() => {
                let what = format!("{} is a file, and a run is a folder", printable_path(&self.0));
                return Err(Error::new(what).hint("take the file away, or name another folder"));
            }
            Err(error) => return Err(Error::io("read", &path, error)),
        };
        let summary: Summary = serde_json::from_slice(&text).map_err(|error| {
            Error::new(format!("{} is no summary of a run", printable_path(&path))).because(error).hint(
                "remove it: the run is taken up again at its last checkpoint, and writes it anew",
            )
        })?;
        if summary.version > config::VERSION {
            let what = format!("{} is of version {}", printable_path(&path), summary.version);
            let hint = format!("this program reads versions up to {}", config::VERSION);
            return Err(Error::new(what).hint(hint));
        }
        Ok(Some(summary))
    }

    /// Its metrics so far; none if it has not begun.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn metrics(&self) -> Result<Vec<Metrics>> {
        let path = self.metrics_file();
        if path.exists() { read_metrics(&path) } else { Ok(Vec::new()) }
    }
}
