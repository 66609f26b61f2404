//! The lines a run leaves behind.
//!
//! `metrics.jsonl` has one JSON object a line: step 0 for what is measured before training, then
//! one per optimizer step. It holds nothing that depends on clocks, threads or the host, so repeats
//! of a run are byte-equal; those things go to `timing.jsonl`. The keys and their version are
//! described in `docs/records.md`. Lines are buffered and become durable with each checkpoint; a
//! resume cuts the file back to the checkpoint's step, and with it whatever a kill tore off.

use crate::train::digest::Digest;
use crate::train::memory;
use crate::train::old;
use exmy::error::{Error, Result};
use exmy::safetensors::{given, whole};
use exmy::shown::printable_path;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Something that happened at a step, in addition to its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// A rule of `[[at]]` changed the recipe of the steps that follow.
    At {
        /// Which rule, from 1.
        rule: usize,
        /// The recipe from here on.
        recipe: String,
    },
    /// A rule of `[[when]]` changed the recipe of the steps that follow.
    When {
        /// Which rule, from 1.
        rule: usize,
        /// What it watches.
        metric: String,
        /// The value it acted on; absent if that was no finite number.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        value: Option<f64>,
        /// The recipe from here on.
        recipe: String,
    },
    /// The run came back here: it had reached step `from`, where a rule of `[[when]]` acted. Stands
    /// in the first line after the checkpoint; the recipe changed before that line's step.
    Rollback {
        /// Which rule, from 1.
        rule: usize,
        /// What it watches.
        metric: String,
        /// The value it acted on; absent if that was no finite number.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        value: Option<f64>,
        /// The step it acted at.
        from: u64,
        /// The step of the checkpoint.
        to: u64,
        /// The recipe from the checkpoint on.
        recipe: String,
    },
    /// The run ended here.
    Diverged {
        /// What was measured, and which limit it broke.
        reason: String,
    },
}

/// What happened, in words.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value =
            |value: &Option<f64>| value.map_or_else(|| "not finite".into(), |v| v.to_string());
        match self {
            Self::At { recipe, .. } => write!(f, "recipe {recipe}, as planned"),
            Self::When { metric, value: v, recipe, .. } => {
                write!(f, "{metric} {}: recipe {recipe}", value(v))
            }
            Self::Rollback { metric, value: v, from, recipe, .. } => {
                write!(f, "back from step {from}, {metric} {}: recipe {recipe}", value(v))
            }
            Self::Diverged { reason } => write!(f, "diverged: {reason}"),
        }
    }
}

/// One line of `metrics.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Optimizer steps done, this one included; 0 before the first.
    pub step: u64,
    /// Tokens trained on so far.
    pub tokens: u64,
    /// Mean training loss of this step's batch before its update: nats per token, of
    /// the proxy the mean squared error.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub loss: Option<f64>,
    /// Mean validation loss after this step, in the same unit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub val_loss: Option<f64>,
    /// Learning rate of this step.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lr: Option<f64>,
    /// Global gradient norm before clipping.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub grad_norm: Option<f64>,
    /// Whether the norm exceeded the limit, so that the gradient was scaled down.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clipped: Option<bool>,
    /// What else happened.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub events: Vec<Event>,
    /// What probes measured after this step, each under its name of today, as well as the keys above.
    #[serde(flatten, deserialize_with = "old::values")]
    pub probes: BTreeMap<String, f64>,
}

impl Metrics {
    /// Why the run ended at this step, if it diverged.
    pub fn divergence(&self) -> Option<&str> {
        self.events.iter().find_map(|event| match event {
            Event::Diverged { reason } => Some(reason.as_str()),
            _ => None,
        })
    }

    /// Whether the run ended at this step because it diverged.
    pub fn diverged(&self) -> bool {
        self.divergence().is_some()
    }
}

/// One line of `timing.jsonl`: the only place for clocks and hosts.
#[derive(Clone, Debug, Serialize)]
pub struct Timing {
    /// Optimizer steps done.
    pub step: u64,
    /// Seconds spent in training steps since this process began, evaluation and files excluded.
    pub train_seconds: f64,
    /// Tokens trained on per second of `train_seconds`.
    pub tokens_per_second: f64,
    /// Threads of the pool.
    pub threads: usize,
    /// SIMD level in force.
    pub simd: &'static str,
    /// What trained, where it was not the processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// [`Digest`]s of a run's records up to some step: they show whether a file is still what was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Digests {
    /// Of the bytes of `metrics.jsonl`.
    pub metrics: String,
    /// Of those of `probes.jsonl`; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub probes: Option<String>,
}

/// The digest of some lines as records have it.
pub(in crate::train) fn digest(lines: &[u8]) -> String {
    format!("{:016x}", Digest::of(lines, 0))
}

/// An append-only file of JSON lines.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    file: BufWriter<File>,
    /// Of all that the file holds.
    digest: Digest,
}

impl Lines {
    /// Opens `path` for appending, creating it if absent.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn append(path: &Path) -> Result<Self> {
        // Who opens a pipe waits for somebody to read from it.
        let open = || OpenOptions::new().create(true).append(true).open(path);
        let file = given::check(path).and_then(|()| open());
        let file = file.map_err(|error| Error::io("open", path, error))?;
        let mut digest = Digest::new(0);
        digest.feed(&bytes(path)?);
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), digest })
    }

    /// The digest of the lines so far.
    pub fn digest(&self) -> String {
        format!("{:016x}", self.digest.finish())
    }

    /// Adds a line.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn push(&mut self, line: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_string(line)
            .map_err(|error| Error::new("cannot write a record").because(error))?;
        text.push('\n');
        self.digest.feed(text.as_bytes());
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|error| Error::io("append to", &self.path, error))
    }

    /// Makes all lines so far survive a power cut.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn sync(&mut self) -> Result<()> {
        let done = self.file.flush().and_then(|()| self.file.get_ref().sync_data());
        done.map_err(|error| Error::io("write", &self.path, error))
    }
}

/// How long the lines up to `step` are in the text of `metrics.jsonl`, and what is wrong where they do not
/// reach it.
pub(in crate::train) fn reach(text: &[u8], step: u64) -> (usize, Option<String>) {
    let (mut kept, mut next) = (0, 0);
    let whole = text.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"));
    for line in whole {
        if next > step {
            break;
        }
        let Ok(Metrics { step: found, .. }) = serde_json::from_slice(line) else { break };
        // A line a step: what follows a gap is not what the rules saw.
        let fault = match found.checked_sub(next) {
            Some(0) => None,
            Some(1) => Some(format!("lacks step {next}")),
            Some(_) => Some(format!("lacks steps {next} to {}", found - 1)),
            None => Some(format!("has step {found} behind step {}", next - 1)),
        };
        if fault.is_some() {
            return (kept, fault);
        }
        (kept, next) = (kept + line.len(), next + 1);
    }
    (kept, (next <= step).then(|| format!("ends at step {} of {step}", next.saturating_sub(1))))
}

/// The length of the lines up to `step` in the text of `metrics.jsonl`, which is at `path`.
fn length(path: &Path, text: &[u8], step: u64) -> Result<usize> {
    match reach(text, step) {
        (kept, None) => Ok(kept),
        (_, Some(what)) => {
            let what =
                format!("{} {what}, and a checkpoint is of step {step}", printable_path(path));
            Err(Error::new(what)
                .hint("the file was changed from outside; remove the newer checkpoints and resume"))
        }
    }
}

/// The bytes of a file of lines; none where there is no file.
pub(in crate::train) fn bytes(path: &Path) -> Result<Vec<u8>> {
    match given::lines(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(unreadable(path, error)),
    }
}

/// Cuts `metrics.jsonl` back to the lines up to `step`, dropping a torn last line; `None` drops
/// every line.
///
/// # Errors
/// If the file cannot be read or replaced, or does not reach `step`.
pub fn cut_back(path: &Path, step: Option<u64>) -> Result<()> {
    let text = bytes(path)?;
    let kept = step.map_or(Ok(0), |step| length(path, &text, step))?;
    if kept < text.len() || text.is_empty() {
        whole::write_whole(path, &text[..kept])?;
    }
    Ok(())
}

/// The lines of `metrics.jsonl` up to `step` and those after it, as they stand.
///
/// # Errors
/// If the file cannot be read or does not reach `step`.
pub fn split_at(path: &Path, step: u64) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut text = bytes(path)?;
    let kept = length(path, &text, step)?;
    let after = text.split_off(kept);
    Ok((text, after))
}

/// What would work where records are none.
pub(crate) const CHANGED: &str =
    "the file was changed from outside: put it back, or remove the run's folder";

/// Reads `metrics.jsonl`, ignoring a torn last line.
///
/// # Errors
/// If the file cannot be read or a whole line is not a record.
pub fn read_metrics(path: &Path) -> Result<Vec<Metrics>> {
    parsed(path, &given::lines(path).map_err(|error| unreadable(path, error))?)
}

/// The last lines of `metrics.jsonl`, as many as there are in some ten thousand bytes and at least one. To
/// see how far a run is, one need not read all of it.
///
/// # Errors
/// As [`read_metrics`].
pub fn last_metrics(path: &Path) -> Result<Vec<Metrics>> {
    let end = |most: usize| -> io::Result<(Vec<u8>, bool)> {
        let mut file = given::open(path)?;
        let from = file.metadata()?.len().saturating_sub(most as u64);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(most as u64).read_to_end(&mut bytes)?;
        Ok((bytes, from == 0))
    };
    for most in [1 << 16, given::LINE] {
        let (bytes, is_all) = end(most).map_err(|error| unreadable(path, error))?;
        // The first one may lack its beginning.
        let begin = if is_all { Some(0) } else { bytes.iter().position(|&byte| byte == b'\n') };
        let lines = begin.map_or(&[][..], |at| &bytes[at + usize::from(!is_all)..]);
        if is_all || lines.contains(&b'\n') {
            // What is wrong is named by its line in the file.
            return parsed(path, lines).or_else(|_| read_metrics(path));
        }
    }
    let what = format!("it has a line of more than {} bytes, and records have none", given::LINE);
    Err(unreadable(path, io::Error::new(ErrorKind::FileTooLarge, what)))
}

/// The error of a record that cannot be read.
pub(crate) fn unreadable(path: &Path, error: io::Error) -> Error {
    let odd = matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::FileTooLarge);
    let error = Error::io("read", path, error);
    if odd { error.hint(CHANGED) } else { error }
}

/// The whole lines of the record at `path`; what stands behind the last one was torn off.
pub(crate) fn parsed<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<Vec<T>> {
    let lines = text.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"));
    // What the lines become: each itself, with a node for its probes and their names.
    let count = text.iter().filter(|&&byte| byte == b'\n').count();
    let numbers = (count * (size_of::<T>() + 512) + 2 * text.len()) / 4;
    memory::ensure(numbers, &format!("the lines of {}", printable_path(path)))?;
    let read = |(i, line)| {
        serde_json::from_slice(line).map_err(|error| {
            let place = format!("{} line {}", printable_path(path), i + 1);
            Error::new(place).because(error).hint(CHANGED)
        })
    };
    lines.enumerate().map(read).collect()
}
