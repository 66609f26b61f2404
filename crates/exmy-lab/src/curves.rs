//! The curves of a study's runs in one small file, from which its figures are drawn again without the runs.
//!
//! ```text
//! lines of JSON, compressed by xz:
//! {"version": 3, "study": ..., "scale": ..., "text": {"name": ..., "fingerprint": ..., "vocab": N},
//!  "figures": [...], "runs": N}                                               what the file is
//! {"name": ..., "summary": {...}, "judged": {...}, "steps": [...],            one for each run
//!  "losses": [...], "norms": [...], "probes": {"rho_same": [[50, 0.16], ...]}}
//! ```
//!
//! Of the losses and gradient norms every tenth step is kept, and every step within 200 of a divergence:
//! losses in six digits, gradient norms in five. A kept value is the mean of the steps since the one kept
//! before, so that averages of thinned curves are nearly those of whole ones, spikes in between included.
//! What tables and verdicts need of all steps ([`Judgement`]) is computed before and kept too, as is the
//! run's summary. So verdicts and tables are those of the whole records, byte for byte, and pictures of
//! curves have fewer points. [`thin`](crate::thin) makes sure of the former.
//!
//! Where a figure cannot be drawn without probes, their values are kept as they are, without parts. Weights
//! and checkpoints are not kept, nor is a run's configuration: its name is the hash of that, and the study's
//! own table says what it is. Of the text the first line has what that hash is made of, so the text is not
//! needed either. Version 1 had no text: its runs learned the default one. Version 2 had no probes. One
//! thread compresses, so the file is the same bytes everywhere.

use crate::amounts::counted;
use crate::plot::number::of_digits;
use crate::run_config::{Setting, Text};
use crate::spikes::Judgement;
use crate::statistics::mean;
use crate::study_scale::StudyScale;
use exmy::error::{Error, Result};
use exmy::safetensors::{given, whole};
use exmy::shown::printable_path;
use exmy_train::train::record::Metrics;
use exmy_train::train::run::Summary;
use lzma_rust2::{XzOptions, XzReader, XzWriter};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// The version of the lines.
const VERSION: u32 = 3;

/// Of the steps far from a divergence one in so many is kept.
const EVERY: u64 = 10;

/// All steps are kept that are at most so far from it.
const NEAR: u64 = 200;

/// Memory that a file may ask for to be decompressed, KiB. [`PRESET`] takes 9 MiB.
const MEMORY: u32 = 64 << 10;

/// How hard to compress. The window of 8 MiB holds some three hundred runs; more gains nothing here.
const PRESET: u32 = 6;

/// Bytes of the longest contents: those of a paper's runs are some ten million.
const MOST: u64 = 1 << 30;

/// The first line: what the file is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    version: u32,
    study: String,
    scale: StudyScale,
    text: Option<Text>,
    figures: Vec<String>,
    runs: usize,
}

/// Steps and values of probes by their names.
pub(crate) type Probed = BTreeMap<String, Vec<(u64, f64)>>;

/// A run, thinned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    name: String,
    pub(crate) summary: Summary,
    pub(crate) judged: Judgement,
    steps: Vec<u64>,
    /// A value that was no finite number is absent.
    losses: Vec<Option<f64>>,
    norms: Vec<Option<f64>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) probes: Probed,
}

/// The curves of the runs of some figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    head: Head,
    /// Where they were read, for messages. None of what is under it is a file.
    path: PathBuf,
    runs: BTreeMap<String, Record>,
    /// Their names in the order in which the figures ask for them. What branches off stands behind its
    /// parent, whose beginning it shares.
    order: Vec<String>,
}

/// Whether a step of a run is kept; `last` is its last one.
#[doc(hidden)]
pub fn is_kept(step: u64, diverged: Option<u64>, last: u64) -> bool {
    let is_near = |at: u64| step.abs_diff(at) <= NEAR;
    step.is_multiple_of(EVERY) || step == 1 || step == last || diverged.is_some_and(is_near)
}

/// Significant digits of losses and of gradient norms: more than a picture shows.
const DIGITS: [usize; 2] = [6, 5];

/// The mean of some values, absent if one of them is.
fn rounded_mean(digits: usize, values: &[Option<f64>]) -> Option<f64> {
    let values: Option<Vec<f64>> = values.iter().copied().collect();
    Some(of_digits(digits, mean(&values?)?))
}

impl Record {
    /// A run with what all of its steps say.
    pub(crate) fn of(
        name: String,
        summary: Summary,
        metrics: &[Metrics],
        judged: Judgement,
    ) -> Self {
        let (diverged, last) = (judged.verdict.diverged, summary.steps);
        let (mut steps, mut losses, mut norms) = (Vec::new(), Vec::new(), Vec::new());
        let (mut loss, mut norm) = (Vec::new(), Vec::new());
        for line in metrics.iter().filter(|line| line.step > 0) {
            loss.push(line.loss);
            norm.push(line.grad_norm);
            if is_kept(line.step, diverged, last) {
                steps.push(line.step);
                losses.push(rounded_mean(DIGITS[0], &std::mem::take(&mut loss)));
                norms.push(rounded_mean(DIGITS[1], &std::mem::take(&mut norm)));
            }
        }
        Self { name, summary, judged, steps, losses, norms, probes: Probed::new() }
    }

    /// Whether the lists belong together.
    fn is_sound(&self) -> bool {
        let count = self.steps.len();
        let ascend = self.steps.windows(2).all(|pair| pair[0] < pair[1]);
        ascend && self.losses.len() == count && self.norms.len() == count
    }

    pub(crate) fn metrics(&self) -> Vec<Metrics> {
        let per_step = self.summary.tokens / self.summary.steps.max(1);
        let line = |((&step, &loss), &grad_norm): ((&u64, &Option<f64>), &Option<f64>)| Metrics {
            step,
            tokens: step.saturating_mul(per_step),
            loss,
            grad_norm,
            ..Metrics::default()
        };
        self.steps.iter().zip(&self.losses).zip(&self.norms).map(line).collect()
    }
}

impl Curves {
    /// Those of some runs, in the order in which the figures ask for them, without a figure.
    pub(crate) fn new(study: &str, setting: &Setting, runs: Vec<Record>) -> Self {
        let order: Vec<String> = runs.iter().map(|run| run.name.clone()).collect();
        let runs: BTreeMap<_, _> = runs.into_iter().map(|run| (run.name.clone(), run)).collect();
        let (scale, text) = (setting.scale, Some(setting.text()));
        let (study, count) = (study.to_owned(), runs.len());
        let figures = Vec::new();
        let head = Head { version: VERSION, study, scale, text, figures, runs: count };
        Self { head, path: PathBuf::from("curves"), runs, order }
    }

    /// Refuses to write where something stands that would be lost: what is not [`Curves`] of the same study,
    /// or curves of runs or figures that are not `written`.
    ///
    /// # Errors
    /// If it does, if what stands there cannot be read, or if its folder is missing.
    pub fn check(study: &str, path: &Path, written: impl Fn(&str) -> bool) -> Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let what = format!("there is no folder {} for curves", printable_path(folder));
            return Err(Error::new(what).hint("make it first, or name another file"));
        }
        if !path.exists() {
            return Ok(());
        }
        let file = printable_path(path);
        let standing = Self::read(study, path).map_err(|_| {
            Error::new(format!("{file} is no file of this study's curves, and would be lost"))
                .hint("name another file, or take it away")
        })?;
        let figures: Vec<&str> = standing.head.figures.iter().map(String::as_str).collect();
        let figures: Vec<&str> = figures.into_iter().filter(|id| !written(id)).collect();
        match standing.order.iter().filter(|name| !written(name)).count() {
            0 if figures.is_empty() => Ok(()),
            lost => {
                let runs = counted(lost as u64, "run");
                let lost = if lost > 0 { runs } else { figures.join(", ") };
                let what = format!("{file} has {lost} that would be lost: here are others");
                Err(Error::new(what).hint(
                    "--curves FILE with --save-curves FILE adds to it, at its scale; or name another file",
                ))
            }
        }
    }

    /// Writes them.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let bytes = self.compressed().map_err(|error| Error::io("write", path, error))?;
        whole::write_whole(path, &bytes)
    }

    fn compressed(&self) -> io::Result<Vec<u8>> {
        let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(PRESET))?;
        let mut line = |mut text: Vec<u8>| {
            text.push(b'\n');
            writer.write_all(&text)
        };
        line(serde_json::to_vec(&self.head)?)?;
        for name in &self.order {
            line(serde_json::to_vec(&self.runs[name])?)?;
        }
        writer.finish()
    }

    /// Reads those of a study.
    ///
    /// # Errors
    /// If the file is none of its curves, or is damaged.
    pub fn read(study: &str, path: &Path) -> Result<Self> {
        let file = given::open(path).map_err(|error| {
            Error::io("read", path, error)
                .hint("curves are written by `exmy study --save-curves FILE`")
        })?;
        let fault = |what: String| {
            Error::new(format!("{} {what}", printable_path(path)))
                .hint("curves are written by `exmy study --save-curves FILE`; put the file back as it was")
        };
        let text = XzReader::new_mem_limit(BufReader::new(file), false, MEMORY);
        let mut lines = BufReader::new(text.take(MOST)).split(b'\n');
        let mut next = || {
            lines.next().transpose().map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => fault("is cut off".into()),
                _ => fault(format!("is no .xz file, or is damaged: {error}")),
            })
        };
        let head = next()?.unwrap_or_default();
        let head: Head = serde_json::from_slice(&head)
            .map_err(|error| fault("has no curves of a study".into()).because(error))?;
        if head.version > VERSION {
            let hint = format!("this program reads versions up to {VERSION}");
            return Err(fault(format!("is of version {}", head.version)).hint(hint));
        }
        if head.study != study {
            return Err(fault(format!("has curves of {}, not of {}", head.study, study))
                .hint(format!("exmy study {} --curves FILE draws them", head.study)));
        }
        let (mut runs, mut order) = (BTreeMap::new(), Vec::new());
        while let Some(line) = next()? {
            let record: Record = serde_json::from_slice(&line).map_err(|error| {
                fault(format!("is damaged at run {}", order.len() + 1)).because(error)
            })?;
            if !record.is_sound() {
                return Err(fault(format!(
                    "is damaged: the lists of {} differ in length",
                    record.name
                )));
            }
            order.push(record.name.clone());
            runs.insert(record.name.clone(), record);
        }
        if runs.len() != head.runs {
            return Err(fault(format!("has {} of {} runs", runs.len(), head.runs)));
        }
        Ok(Self { head, path: path.to_owned(), runs, order })
    }

    /// How large the runs are.
    pub fn scale(&self) -> StudyScale {
        self.head.scale
    }

    /// What all of them have in common; absent where the file does not say which text they learned.
    ///
    /// # Errors
    /// If the text's name is none of a source.
    pub fn setting(&self) -> Result<Option<Setting>> {
        self.head.text.as_ref().map(|text| Setting::known(self.scale(), text)).transpose()
    }

    /// The figures that can be drawn.
    pub fn figures(&self) -> &[String] {
        &self.head.figures
    }

    /// The names of the runs.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.order.iter()
    }

    /// How many runs there are.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// What a reader of pictures has to know.
    pub(crate) fn words() -> String {
        format!(
            "Drawn from thinned records, without the runs themselves: curves have every {EVERY}th step, as \
             the mean of {EVERY}, and every step within {NEAR} of a divergence. Verdicts and tables are of \
             all steps."
        )
    }

    /// A run by its name.
    pub(crate) fn run(&self, name: &str) -> Option<&Record> {
        self.runs.get(name)
    }

    /// Says that a figure can be drawn.
    pub(crate) fn draw(&mut self, figure: &str) {
        self.head.figures.push(figure.to_owned());
    }

    /// Takes runs away.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.order.retain(|name| is_kept(name));
        self.runs.retain(|name, _| is_kept(name));
        self.head.runs = self.runs.len();
    }

    /// Adds the runs that others have besides, and if they have other figures what they have of probes.
    pub(crate) fn add(&mut self, others: &Self) {
        let draws_more = others.head.figures.iter().any(|id| !self.head.figures.contains(id));
        for name in &others.order {
            let other = &others.runs[name];
            match self.runs.get_mut(name) {
                Some(run) if draws_more && run.probes.is_empty() => {
                    run.probes.clone_from(&other.probes);
                }
                Some(_) => {}
                None => {
                    self.runs.insert(name.clone(), other.clone());
                    self.order.push(name.clone());
                }
            }
        }
        self.head.runs = self.runs.len();
    }

    /// Keeps what probes measured in a run, too.
    pub(crate) fn keep_probes(&mut self, name: &str, probes: Probed) {
        if let Some(run) = self.runs.get_mut(name) {
            run.probes = probes;
        }
    }

    /// Where they were read.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
