//! A run in a folder: it can be killed at any moment and goes on from there to the same bits.
//!
//! | file | holds |
//! |---|---|
//! | `config.toml` | the complete [`Config`], written first |
//! | `metrics.jsonl` | one [`Metrics`] a step |
//! | `probes.jsonl` | what [probes](crate::train::probe) measured, if there are any |
//! | `timing.jsonl` | clocks, threads, SIMD level; the only file that differs between repeats |
//! | `checkpoints/` | weights and optimizer moments, the newest few |
//! | `discarded/` | the lines of steps that a rollback undid, a file each time |
//! | `model.safetensors` | the final weights |
//! | `summary.json` | a [`Summary`]; its presence says that the run is complete |
//!
//! Metrics are made durable before the checkpoint that follows them, so a checkpoint never stands next to
//! metrics that do not reach it. What stands after it is cut off on resume.
//!
//! A rollback ([`trigger`](crate::train::trigger)) removes the checkpoints after the one it goes back to and
//! sets the lines it undoes aside. It cuts the records back to that step and goes on under the changed
//! recipe. What it changed stands in the first line that follows. A kill in between loses the rollback and
//! with it all that came after the checkpoint, so the same steps lead to the same decision again. Only
//! scheduled checkpoints are gone back to, so an interruption changes nothing.

#[doc(hidden)]
pub mod folder;
pub mod intact;
mod lock;
mod resume;

pub use folder::Folder;
pub use lock::{RunLock, is_at_work, lock};
use resume::{initial, restore};

use crate::nn::Cpu;
use crate::recipe::Observer;
use crate::recipe::device::Quantize;
use crate::train::checkpoint;
use crate::train::config::{self, Config};
use crate::train::control::{Control, NextAction};
use crate::train::data::{DataOptions, Dataset};
use crate::train::precision::{self, Span};
use crate::train::probe::Probe;
use crate::train::probing::{self, Probing};
use crate::train::ranks::Ranks;
use crate::train::record::{Digests, Event, Lines, Metrics, Timing, cut_back, split_at};
use crate::train::trainer::Trainer;
use exmy::error::{Error, Result};
use exmy::parallel::awake;
use exmy::safetensors::whole;
use exmy::shown::printable_path;
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::{Duration, Instant};

/// The result of a complete run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Version of the keys.
    pub version: u32,
    /// The recipe's text.
    pub recipe: String,
    /// The run's seed.
    pub seed: u64,
    /// Its peak learning rate.
    pub lr: f64,
    /// Optimizer steps done; fewer than configured if the run diverged.
    pub steps: u64,
    /// Tokens trained on.
    pub tokens: u64,
    /// Trained parameters.
    pub parameters: u64,
    /// Mean training loss over the last tenth of the steps (at least one), in the model's
    /// [unit](crate::nn::model::Config::loss_unit); absent if the run diverged.
    pub train_loss: Option<f64>,
    /// Mean validation loss at the end, in the same unit; absent if the run diverged.
    pub val_loss: Option<f64>,
    /// The same in bits a byte of text, where the manifest of token files says how many bytes a token stands
    /// for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub val_bits_per_byte: Option<f64>,
    /// The step at which the run diverged.
    pub diverged_at: Option<u64>,
    /// Why it counts as diverged.
    pub reason: Option<String>,
    /// What share of the multiplications of linear layers had which formats, and from which step.
    pub precision: Vec<Span>,
    /// The digests of its records; before version 3 they may be absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub records: Option<Digests>,
}

impl Summary {
    /// One that the version before wrote, in the [names of formats](exmy::text::old) of today.
    #[must_use]
    pub fn modern(mut self) -> Self {
        if self.version < config::VERSION {
            self.version = config::VERSION;
            self.recipe = config::share_name(&self.recipe);
            for span in &mut self.precision {
                for shares in [&mut span.forward, &mut span.grad_input, &mut span.grad_weight] {
                    *shares = shares
                        .iter()
                        .map(|(name, share)| (config::share_name(name), *share))
                        .collect();
                }
            }
        }
        self
    }
}

/// The mean loss of the last tenth of the steps, at least one; `None` where there is no loss.
fn tail_loss(lines: &[Metrics]) -> Option<f64> {
    let trained = lines.iter().filter(|line| line.step > 0);
    let losses: Vec<f64> = trained.filter_map(|line| line.loss).collect();
    let tail = &losses[losses.len() - losses.len().div_ceil(10)..];
    (!tail.is_empty()).then(|| tail.iter().sum::<f64>() / tail.len() as f64)
}

/// What [`train`] reports while it works.
pub trait Watch {
    /// Before the first step: what follows is kept if it is ended by the answer to [`step`](Self::step).
    fn begin(&mut self) {}
    /// After every step; returning `false` asks for a clean stop with a checkpoint.
    fn step(&mut self, metrics: &Metrics, steps: u64) -> bool;
    /// Before something that takes a while and is not a step.
    fn phase(&mut self, what: &str);
}

/// How a call of [`train`] ended, and its speed.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The result, or `None` if the run was stopped on request, of this process or of another rank.
    pub summary: Option<Summary>,
    /// Steps done in this call.
    pub steps: u64,
    /// Seconds in training steps, evaluation and files excluded.
    pub train_seconds: f64,
    /// Tokens trained on in this call.
    pub tokens: u64,
}

/// Reads the data a configuration names, and notes or checks their fingerprint.
///
/// # Errors
/// If the data cannot be read or used, or are not those the run began with.
pub fn load_data(config: &mut Config) -> Result<Dataset> {
    load(config, "the run began with", "put the old data back, or begin a new run")
}

/// As [`load_data`], of a rank that was sent a configuration by rank 0.
pub(super) fn load_data_of_rank_0(config: &mut Config) -> Result<Dataset> {
    load(
        config,
        "of rank 0",
        "all ranks read the same files: compare what this path holds there and here",
    )
}

/// Reads the data a configuration names; if they are not `whose`, `hint` says what to do.
fn load(config: &mut Config, whose: &str, hint: &str) -> Result<Dataset> {
    if config.model.decoder().is_none() {
        return Ok(Dataset::drawn());
    }
    let options =
        DataOptions { validation_fraction: config.data.validation, ..DataOptions::default() };
    let data = Dataset::load(&config.data.source, &options).map_err(Error::from_cause)?;
    let fingerprint = format!("{:016x}", data.fingerprint);
    if config.data.fingerprint.is_empty() {
        config.data.fingerprint = fingerprint;
    } else if config.data.fingerprint != fingerprint {
        return Err(Error::new(format!(
            "the data in {} are not those {whose}",
            config.data.source
        ))
        .hint(hint));
    }
    Ok(data)
}

/// Begins or continues the run in `folder` until it is complete or `watch` stops it.
///
/// # Errors
/// If the folder's files cannot be read or written, or do not belong together.
pub fn train(folder: &Folder, data: &Dataset, watch: &mut dyn Watch) -> Result<Outcome> {
    train_probed(folder, data, watch, Vec::new())
}

/// As [`train`], with probes in addition to those that the configuration names. They measure every
/// `record.probe_every` steps, and change nothing; a resume is to be given the same ones.
///
/// # Errors
/// As [`train`], and if two probes have one name.
pub fn train_probed(
    folder: &Folder,
    data: &Dataset,
    watch: &mut dyn Watch,
    probes: Vec<Box<dyn Probe>>,
) -> Result<Outcome> {
    let config = folder.config()?;
    if let Some(summary) = folder.summary()? {
        intact::check(folder, &config)?;
        let none = Outcome { summary: None, steps: 0, train_seconds: 0.0, tokens: 0 };
        return Ok(Outcome { summary: Some(summary), ..none });
    }
    let held = lock(folder)?.ok_or_else(|| {
        Error::new(format!("{} is being trained", printable_path(folder.path())))
            .hint("another process works on it; wait for it or stop it")
    })?;
    train_on(&Cpu::new(), Job::new(folder, data, watch, &held).with_probes(probes))
}

/// A run that this process has [locked](lock), and what trains it.
pub struct Job<'a> {
    pub(crate) folder: &'a Folder,
    pub(crate) data: &'a Dataset,
    watch: &'a mut dyn Watch,
    probes: Vec<Box<dyn Probe>>,
}

impl<'a> Job<'a> {
    /// With the probes that its configuration names.
    pub fn new(
        folder: &'a Folder,
        data: &'a Dataset,
        watch: &'a mut dyn Watch,
        _: &'a RunLock,
    ) -> Self {
        Self { folder, data, watch, probes: Vec::new() }
    }

    /// With others in addition, as [`train_probed`].
    #[must_use]
    pub fn with_probes(self, probes: Vec<Box<dyn Probe>>) -> Self {
        Self { probes, ..self }
    }

    /// Where the run is.
    pub const fn folder(&self) -> &'a Folder {
        self.folder
    }
}

/// As [`train_probed`], on a device. The run's files are the same bytes on every device.
///
/// # Errors
/// As [`train_probed`], and what goes wrong on the device; the last checkpoint stands.
pub fn train_on<D: Quantize>(device: &D, job: Job<'_>) -> Result<Outcome> {
    train_among(None, device, job)
}

/// As [`train_on`], as the first of several [ranks](crate::train::ranks). The run's files are the same bytes
/// for any number of them.
///
/// # Errors
/// As [`train_on`], and what goes wrong on another rank.
pub fn train_among<D: Quantize>(
    ranks: Option<Ranks<D>>,
    device: &D,
    Job { folder, data, watch, probes }: Job<'_>,
) -> Result<Outcome> {
    let config = folder.config()?;
    let twin = probing::twin(&config);
    let mut run = Run::open((device, ranks), folder, (&config, &twin), data, probes)?;
    watch.begin();
    let finished = run.advance(watch)?;
    let summary = if finished { Some(run.finish(watch)?) } else { None };
    let (steps, tokens, train_seconds) = (run.steps, run.tokens, run.busy.as_secs_f64());
    Ok(Outcome { summary, steps, train_seconds, tokens })
}

/// A run with its files open.
struct Run<'a, D: Quantize> {
    folder: &'a Folder,
    config: &'a Config,
    trainer: Trainer<'a, D>,
    probing: Probing<'a, D>,
    control: Control<'a>,
    metrics: Lines,
    timing: Lines,
    /// Time in training steps, and what they did, since this process began.
    busy: Duration,
    steps: u64,
    tokens: u64,
    diverged: bool,
    /// The rollbacks so far, and those that the next line is to report.
    rollbacks: Vec<Event>,
    pending: Vec<Event>,
}

impl<D: Quantize> Run<'_, D> {
    /// Trains until the last step, divergence or a stop; says whether the run is at its end.
    fn advance(&mut self, watch: &mut dyn Watch) -> Result<bool> {
        let (steps, record) = (self.config.train.steps, &self.config.record);
        while self.trainer.progress().step < steps && !self.diverged {
            self.trainer.set_recipe(self.control.recipe())?;
            let next = self.trainer.progress().step + 1;
            let measures = self.probing.is_due(next);
            self.trainer.cast_shadow(measures && self.probing.needs().shadow)?;
            let begun = Instant::now();
            let measured = if measures {
                let mut observers = self.probing.observers();
                let observer =
                    (!observers.is_empty()).then_some(&mut observers as &mut dyn Observer);
                awake(|| self.trainer.step(observer))
            } else {
                awake(|| self.trainer.step(None))
            };
            self.trainer.check()?;
            self.trainer.check_ranks()?;
            self.probing.follow(next, || initial(self.config))?;
            self.busy += begun.elapsed();
            let progress = self.trainer.progress();
            self.steps += 1;
            self.tokens += (self.config.train.batch * self.config.model.context()) as u64;
            let mut line = Metrics {
                step: progress.step,
                tokens: progress.tokens,
                loss: Some(measured.loss),
                lr: Some(measured.lr),
                grad_norm: Some(measured.grad_norm),
                clipped: Some(measured.clipped),
                events: std::mem::take(&mut self.pending),
                ..Metrics::default()
            };
            let mut broken = None;
            if !(measured.loss.is_finite() && measured.grad_norm.is_finite()) {
                let (loss, norm) = (measured.loss, measured.grad_norm);
                broken = Some(format!("loss {loss}, gradient norm {norm}"));
                // JSON has no word for what is not finite; the event holds it.
                (line.loss, line.grad_norm) = (None, None);
            } else {
                self.probing.measure(&mut self.trainer, &mut line)?;
                if record.evaluates(progress.step, steps) {
                    watch.phase("validating");
                    let loss = awake(|| self.trainer.validation_loss());
                    match loss.is_finite() {
                        true => line.val_loss = Some(loss),
                        false => broken = Some(format!("validation loss {loss}")),
                    }
                }
            }
            let decision = self.control.decide(&line, broken.as_deref())?;
            line.events.extend(decision.events);
            self.diverged = decision.verdict == NextAction::Stop;
            self.metrics.push(&line)?;
            let goes_on = watch.step(&line, steps) && !self.trainer.is_asked_to_stop();
            if let NextAction::RollBack { since, event } = decision.verdict {
                self.roll_back(since, event)?;
                if !goes_on {
                    return Ok(false);
                }
                continue;
            }
            let stops = !goes_on && progress.step < steps && !self.diverged;
            if stops || self.diverged || record.checkpoints(progress.step, steps) {
                self.checkpoint(!stops)?;
            }
            if stops {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Goes back to the newest scheduled checkpoint from before `since`, or to the beginning.
    fn roll_back(&mut self, since: u64, event: Event) -> Result<()> {
        self.metrics.sync()?;
        let (folder, start) = (self.folder, &self.config.start);
        let checkpoints = folder.checkpoints();
        let steps = checkpoint::list(&checkpoints)?;
        let target = steps.into_iter().rfind(|&step| {
            let scheduled = self.config.record.checkpoints(step, self.config.train.steps);
            step < since && (scheduled || start.is_branch() && step == start.step)
        });
        if target.is_none() && start.is_branch() {
            return Err(Error::new(
                "the rollback leads to before the branch, which has no checkpoint",
            )
            .hint("branch off earlier, or keep more checkpoints"));
        }
        let to = target.unwrap_or(0);
        let (_, undone) = split_at(&folder.metrics_file(), to)?;
        let discarded = folder.discarded();
        fs::create_dir_all(&discarded).map_err(|error| Error::io("create", &discarded, error))?;
        let name = format!("rollback-{:02}.jsonl", self.rollbacks.len() + 1);
        // Before any line is cut: no checkpoint stands next to records that do not reach it.
        checkpoint::remove(&checkpoints, |step| step > to)?;
        let unseen = self.probing.cut_back(&folder.probes_file(), to)?;
        if !unseen.is_empty() {
            let name = format!("rollback-{:02}.probes.jsonl", self.rollbacks.len() + 1);
            whole::write_whole(&discarded.join(name), &unseen)?;
        }
        whole::write_whole(&discarded.join(name), &undone)?;
        cut_back(&folder.metrics_file(), Some(to))?;
        self.metrics = Lines::append(&folder.metrics_file())?;
        match target {
            Some(step) => restore(&mut self.trainer, folder, self.config, step)?,
            None => self.trainer.begin(initial(self.config)?),
        }
        self.control = Control::new(self.config);
        let lines = folder.metrics()?;
        lines.iter().try_for_each(|line| self.control.replay(line))?;
        // Changes of rollbacks from steps that are undone now are still wanted.
        let known = |event: &Event| lines.iter().any(|line| line.events.contains(event));
        let mut pending: Vec<Event> =
            self.rollbacks.iter().filter(|event| !known(event)).cloned().collect();
        pending.push(event);
        for event in &mut pending {
            self.control.rolled_back(event)?;
        }
        if let Some(Event::Rollback { to: place, recipe, .. }) = pending.last_mut() {
            (*place, *recipe) = (to, self.control.recipe().to_string());
        }
        self.rollbacks.extend(pending.last().cloned());
        self.pending = pending;
        Ok(())
    }

    /// The digests of the records so far.
    fn digests(&self) -> Digests {
        Digests { metrics: self.metrics.digest(), probes: self.probing.digest() }
    }

    /// Makes the records durable, then the checkpoint; a scheduled one removes what it replaces.
    fn checkpoint(&mut self, scheduled: bool) -> Result<()> {
        self.metrics.sync()?;
        self.probing.sync()?;
        let (progress, seconds) = (self.trainer.progress(), self.busy.as_secs_f64());
        self.timing.push(&Timing {
            step: progress.step,
            train_seconds: seconds,
            tokens_per_second: self.tokens as f64 / seconds,
            threads: exmy::parallel::threads(),
            simd: exmy::simd::level().name(),
            device: self.trainer.devices(),
        })?;
        self.timing.sync()?;
        let folder = self.folder.checkpoints();
        let (layout, state) = (self.trainer.layout(), self.trainer.state());
        self.trainer.check()?;
        checkpoint::save_recorded(&folder, layout, &state, progress, Some(self.digests()))?;
        if scheduled { self.prune() } else { Ok(()) }
    }

    /// Removes what the newest checkpoint, which is a scheduled one, replaces.
    fn prune(&self) -> Result<()> {
        let (folder, progress) = (self.folder.checkpoints(), self.trainer.progress());
        let (record, steps) = (&self.config.record, self.config.train.steps);
        let is_scheduled = |step| step == progress.step || record.checkpoints(step, steps);
        // A rollback that is in the air needs the newest one from before what it looks at.
        let needed = match self.control.suspicion() {
            Some(since) => checkpoint::list(&folder)?
                .into_iter()
                .rfind(|&step| step < since && is_scheduled(step)),
            None => None,
        };
        checkpoint::prune(&folder, record.keep, is_scheduled, |step| {
            needed == Some(step) || record.checkpoint_at.contains(&step)
        })
    }

    /// Writes the final weights and, last of all, the summary.
    fn finish(&mut self, watch: &mut dyn Watch) -> Result<Summary> {
        watch.phase("writing the model");
        // A kill may have come between the last checkpoint and what it replaces.
        self.prune()?;
        let lines = self.folder.metrics()?;
        let last = lines.last();
        let progress = self.trainer.progress();
        let val_loss = last.and_then(|line| line.val_loss);
        let bits =
            |loss| Some(loss / std::f64::consts::LN_2 / self.trainer.data().bytes_per_token?);
        let summary = Summary {
            version: config::VERSION,
            recipe: self.config.recipe.to_string(),
            seed: self.config.seed,
            lr: self.config.train.lr,
            steps: progress.step,
            tokens: progress.tokens,
            parameters: self.trainer.layout().len() as u64,
            train_loss: if self.diverged { None } else { tail_loss(&lines) },
            val_loss,
            val_bits_per_byte: val_loss.and_then(bits),
            diverged_at: self.diverged.then_some(progress.step),
            reason: last.and_then(Metrics::divergence).map(str::to_owned),
            precision: precision::spans(self.config, &lines, progress.step)?,
            records: Some(self.digests()),
        };
        let model = self.folder.model_file();
        let params = self.trainer.params();
        self.trainer.check()?;
        checkpoint::save_model(&model, self.trainer.layout(), &params)?;
        let mut text = serde_json::to_string_pretty(&summary)
            .map_err(|error| Error::new("cannot write the summary").because(error))?;
        text.push('\n');
        whole::write_whole(&self.folder.summary_file(), text.as_bytes())?;
        Ok(summary)
    }
}
