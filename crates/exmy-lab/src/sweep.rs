//! A grid of runs in one folder, which any number of processes fill.
//!
//! ```text
//! DIR/sweep.json        the runs in order, with their results at the end
//! DIR/table.txt         the same as a table, at the end
//! DIR/loss.svg          their curves, at the end
//! DIR/queue/NAME        runs that nobody has begun,
//! DIR/claims/NAME.I     that shard I works on,
//! DIR/done/NAME         and that are complete
//! DIR/runs/NAME/        one run
//! ```
//!
//! A run is named by its contents, `RECIPE-HASH`, so every process finds the same names by reading
//! the plan. The folder appears at once, with all runs in the queue. A process takes a run by renaming its
//! file from `queue` to `claims`, which on every file system succeeds for one process alone; there is
//! no server, and no process talks to another. A process locks the claims it works on, so that another
//! one of the same index leaves them alone. When a process was killed its claims stay, and the process
//! that is started again with the same index goes on with them; [`Folder::reclaim`] puts
//! them back into the queue for others.
//!
//! Nothing in the folder tells who did what when the sweep is complete: but for `timing.jsonl` it
//! is byte-equal for any number of processes.

mod plan;
mod shard;

pub use plan::{Cell, Plan};
pub use shard::{ParseShardError, Shard};

use crate::compare::conditions;
use crate::loss_figure;
use crate::table;
use exmy::error::{Error, Result};
use exmy::safetensors::given;
use exmy::safetensors::whole::{self, PARTIAL};
use exmy_train::train::config::{Config, VERSION};
use exmy_train::train::data::Dataset;
use exmy_train::train::run::{self, Outcome, Summary, Watch};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The contents of `sweep.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Version of the keys.
    pub version: u32,
    /// The keys of the grid, the recipe first and the seed last.
    pub keys: Vec<String>,
    /// The runs, in the order of the grid: the last key changes fastest.
    pub runs: Vec<Entry>,
}

/// One run of a [`Sweep`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its folder below `runs`.
    pub name: String,
    /// The values of the keys.
    pub values: Vec<String>,
    /// Its result; absent until it is complete.
    pub result: Option<Summary>,
}

/// How far a sweep is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Runs that nobody has begun.
    pub queued: Vec<String>,
    /// Runs that are claimed, with the index of the shard, and whether a process is seen at work.
    pub claimed: Vec<(String, u64, bool)>,
    /// Complete runs.
    pub done: Vec<String>,
    /// Those among them whose result is gone; [`Folder::work`] takes them up again.
    pub lost: Vec<String>,
}

/// The folders of a sweep's folder.
const PARTS: [&str; 4] = ["queue", "claims", "done", "runs"];

/// What [`Folder::work`] tells while it works.
pub trait Progress {
    /// Before a run: its place among all, and its configuration; the result watches it.
    fn begin(&mut self, index: usize, count: usize, config: &Config) -> Box<dyn Watch + '_>;
    /// After it.
    fn end(&mut self, outcome: &Outcome);
}

/// A sweep's folder.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    sweep: Sweep,
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        // Some ways to copy folders leave out empty ones.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|e| Error::io("read the folder", folder, e))?,
    };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Renames, and says whether the file was still there.
fn take(from: &Path, to: &Path) -> Result<bool> {
    match fs::rename(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("rename", from, error)),
    }
}

/// Locks a claim, unless another process of the same index works on it or it was put back.
fn hold(claim: &Path) -> Result<Option<fs::File>> {
    match whole::hold(claim) {
        // It may have been done between the opening and the lock.
        Ok(held) => Ok(held.filter(|_| claim.is_file())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("open", claim, error)),
    }
}

impl Folder {
    /// The folder of `plan` at `path`; it is created if it is not there.
    ///
    /// # Errors
    /// If it cannot be created, or holds something else.
    pub fn open(path: &Path, plan: &Plan) -> Result<Self> {
        let entry = |cell: &Cell| Entry {
            name: cell.name.clone(),
            values: cell.values.clone(),
            result: None,
        };
        let runs = plan.cells.iter().map(entry).collect();
        let sweep = Sweep { version: VERSION, keys: plan.keys.clone(), runs };
        let folder = Self { path: path.to_owned(), sweep };
        let planned = |sweep: &Sweep| -> Vec<String> {
            sweep.runs.iter().map(|entry| entry.name.clone()).collect()
        };
        let other = || {
            Error::new(format!("{} is the folder of another plan", path.display()))
                .hint("name another folder with --out; a changed plan is another plan")
        };
        if !path.join("sweep.json").is_file() {
            // Somebody may have removed it alone.
            let Status { queued, claimed, done, .. } = folder.status()?;
            let claimed = claimed.into_iter().map(|(name, ..)| name);
            let mut names: Vec<_> = queued.into_iter().chain(claimed).chain(done).collect();
            let mut wanted = planned(&folder.sweep);
            names.sort_unstable();
            wanted.sort_unstable();
            // With names there is a list, too, if another process put the folder together meanwhile.
            match names.is_empty() {
                true => folder.create()?,
                false if path.join("sweep.json").is_file() => {}
                false if names == wanted => folder.write_json(path, &folder.sweep)?,
                false => return Err(other()),
            }
        }
        let found = Self::read(path)?;
        if planned(&found.sweep) != planned(&folder.sweep) {
            return Err(other());
        }
        for part in PARTS {
            let part = path.join(part);
            fs::create_dir_all(&part).map_err(|error| Error::io("create", &part, error))?;
        }
        Ok(folder)
    }

    /// The sweep in the folder at `path`.
    ///
    /// # Errors
    /// If there is none.
    pub fn read(path: &Path) -> Result<Self> {
        let file = path.join("sweep.json");
        let text = given::read(&file, given::RESULTS).map_err(|error| {
            let error = Error::io("read", &file, error);
            error.hint("`exmy sweep` of the plan makes its folder; --out names another")
        })?;
        let sweep = serde_json::from_slice(&text).map_err(|error| {
            Error::new(format!("{} is no list of runs", file.display()))
                .because(error)
                .hint("remove it: `exmy sweep` of the plan writes it anew")
        })?;
        Ok(Self { path: path.to_owned(), sweep })
    }

    /// Puts the folder together under another name and renames it: if several processes do so at
    /// once, the first one's stands.
    fn create(&self) -> Result<()> {
        let (parent, name) = whole::split(&self.path);
        fs::create_dir_all(parent).map_err(|error| {
            Error::io("create", parent, error).hint("name another folder with --out")
        })?;
        // Processes of several hosts may have the same number.
        let mut number = std::process::id();
        let staging = loop {
            let staging = parent.join(format!("{PARTIAL}{number}-{name}"));
            match fs::create_dir(&staging) {
                Ok(()) => break staging,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => {
                    return Err(Error::io("create", &self.path, error)
                        .hint("its folder takes no new ones; name another with --out"));
                }
            }
        };
        let stage = || -> Result<()> {
            for part in PARTS {
                let path = staging.join(part);
                fs::create_dir(&path).map_err(|error| Error::io("create", &path, error))?;
            }
            for entry in &self.sweep.runs {
                let path = staging.join("queue").join(&entry.name);
                fs::write(&path, "").map_err(|error| Error::io("write", &path, error))?;
            }
            self.write_json(&staging, &self.sweep)
        };
        let staged = stage().and_then(|()| {
            let renamed = fs::rename(&staging, &self.path);
            // A folder with contents is never replaced.
            match renamed {
                Err(error) if !self.path.join("sweep.json").is_file() => {
                    Err(Error::io("create", &self.path, error).hint("name a new folder with --out"))
                }
                _ => Ok(()),
            }
        });
        // Of the slower process, or after an error, which is what matters.
        let _ = fs::remove_dir_all(&staging);
        staged
    }

    fn write_json(&self, folder: &Path, sweep: &Sweep) -> Result<()> {
        let mut text = serde_json::to_string_pretty(sweep)
            .map_err(|error| Error::new("cannot write the results").because(error))?;
        text.push('\n');
        whole::write_whole(&folder.join("sweep.json"), text.as_bytes())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of a run.
    pub fn run(&self, name: &str) -> run::Folder {
        run::Folder::new(self.path.join("runs").join(name))
    }

    fn queued(&self, name: &str) -> PathBuf {
        self.path.join("queue").join(name)
    }

    fn done(&self, name: &str) -> PathBuf {
        self.path.join("done").join(name)
    }

    /// Whether a run counts as complete and has no result.
    fn is_lost(&self, name: &str) -> bool {
        self.done(name).is_file() && !self.run(name).summary_file().is_file()
    }

    fn claim(&self, name: &str, shard: u64) -> PathBuf {
        self.path.join("claims").join(format!("{name}.{shard}"))
    }

    /// Trains the runs of `shard` that nobody has begun or that its index has claimed before; with
    /// `steal` then whatever others have not begun. `data` gives the data of a configuration.
    /// The result says whether it came to its end: `false` if `progress` asked to stop.
    ///
    /// # Errors
    /// If files cannot be read or written, or a run cannot be trained.
    pub fn work(
        &self,
        plan: &Plan,
        shard: Shard,
        steal: bool,
        progress: &mut dyn Progress,
    ) -> Result<bool> {
        let count = plan.cells.len();
        let own = |index: &usize| *index as u64 % shard.count() == shard.index();
        let others = (0..count).filter(|index| steal && !own(index));
        let order: Vec<usize> = (0..count).filter(own).chain(others).collect();
        let mut loaded: Option<(Config, Dataset)> = None;
        for index in order {
            let cell = &plan.cells[index];
            let claim = self.claim(&cell.name, shard.index());
            let taken = claim.is_file()
                || take(&self.queued(&cell.name), &claim)?
                || (self.is_lost(&cell.name) && take(&self.done(&cell.name), &claim)?);
            if !taken {
                continue;
            }
            let Some(_held) = hold(&claim)? else { continue };
            let folder = self.begin(cell)?;
            let data = match loaded.take() {
                Some((config, data)) if config.data == cell.config.data => data,
                _ => run::load_data(&mut cell.config.clone())?,
            };
            let outcome = {
                let mut watch = progress.begin(index, count, &cell.config);
                run::train(&folder, &data, &mut *watch)?
            };
            progress.end(&outcome);
            loaded = Some((cell.config.clone(), data));
            if outcome.summary.is_none() {
                // Somebody else may go on with it.
                take(&claim, &self.queued(&cell.name))?;
                return Ok(false);
            }
            take(&claim, &self.done(&cell.name))?;
        }
        Ok(true)
    }

    /// The run's folder with its configuration.
    fn begin(&self, cell: &Cell) -> Result<run::Folder> {
        let folder = self.run(&cell.name);
        if !folder.config_file().is_file() {
            if folder.path().exists() {
                // Left by a kill before there was anything to lose.
                fs::remove_dir_all(folder.path())
                    .map_err(|error| Error::io("remove", folder.path(), error))?;
            }
            folder.create(&cell.config)?;
        }
        Ok(folder)
    }

    /// How far the sweep is.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn status(&self) -> Result<Status> {
        let claimed = names(&self.path.join("claims"))?;
        let claimed = claimed.iter().filter_map(|claim| {
            let (name, shard) = claim.rsplit_once('.')?;
            let at_work = whole::is_held(&self.path.join("claims").join(claim))
                || run::is_at_work(&self.run(name));
            Some((name.to_owned(), shard.parse().ok()?, at_work))
        });
        let done = names(&self.path.join("done"))?;
        Ok(Status {
            claimed: claimed.collect(),
            queued: names(&self.path.join("queue"))?,
            lost: done.iter().filter(|name| self.is_lost(name)).cloned().collect(),
            done,
        })
    }

    /// Puts claims at which nobody is seen at work back into the queue; says how many.
    ///
    /// # Errors
    /// If the folder cannot be read or changed.
    pub fn reclaim(&self) -> Result<usize> {
        let (mut count, queue) = (0, self.path.join("queue"));
        fs::create_dir_all(&queue).map_err(|error| Error::io("create", &queue, error))?;
        for (name, shard, at_work) in self.status()?.claimed {
            if !at_work && take(&self.claim(&name, shard), &self.queued(&name))? {
                count += 1;
            }
        }
        Ok(count)
    }

    /// Collects the results into `sweep.json`, `table.txt` and `loss.svg`; the table is the result.
    ///
    /// # Errors
    /// If files cannot be read or written.
    pub fn merge(&self) -> Result<String> {
        let mut sweep = self.sweep.clone();
        let mut curves = Vec::new();
        let mut first = None;
        for entry in &mut sweep.runs {
            let folder = self.run(&entry.name);
            if !folder.config_file().is_file() {
                continue;
            }
            entry.result = folder.summary()?;
            if first.is_none() {
                first = Some(folder.config()?);
            }
            curves.push(loss_figure::Curve {
                name: entry.values.join(" "),
                metrics: folder.metrics()?,
            });
        }
        let seeds = usize::from(sweep.keys.last().is_some_and(|key| key == "seed"));
        let labels = sweep.keys.len() - seeds;
        let runs: Vec<table::Run> = sweep
            .runs
            .iter()
            .map(|entry| table::Run {
                labels: entry.values[..labels].to_vec(),
                result: entry.result.clone(),
            })
            .collect();
        let header: Vec<&str> = sweep.keys[..labels].iter().map(String::as_str).collect();
        let text = table::text(&header, &table::rows(&runs));
        let unit = first.as_ref().map_or("", |config: &Config| config.model.loss_unit());
        let under = first.as_ref().map(conditions).unwrap_or_default();
        let svg = loss_figure::draw(unit, &under, None, &curves);
        for file in ["loss.svg", "table.txt", "sweep.json"] {
            whole::remove_abandoned(&self.path.join(file));
        }
        whole::write_whole(&self.path.join("loss.svg"), svg.as_bytes())?;
        whole::write_whole(&self.path.join("table.txt"), text.as_bytes())?;
        self.write_json(&self.path, &sweep)?;
        Ok(text)
    }
}
