//! How a run begins, or goes on from its newest checkpoint.
//!
//! Records are cut back to that checkpoint, so that what follows has the bytes that it would have had
//! without the stop.

use super::{Folder, Run, intact};
use crate::recipe::device::Quantize;
use crate::train::check::check_run;
use crate::train::checkpoint::{self, Progress};
use crate::train::config::Config;
use crate::train::control::Control;
use crate::train::data::Dataset;
use crate::train::matching;
use crate::train::probe::Probe;
use crate::train::probing::Probing;
use crate::train::ranks::Ranks;
use crate::train::record::{Event, Lines, Metrics, cut_back};
use crate::train::trainer::Trainer;
use exmy::error::{Error, Result};
use exmy::parallel::awake;
use exmy::safetensors::whole;
use exmy::shown::printable_path;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Loads the checkpoint of a step.
pub(super) fn restore<D: Quantize>(
    trainer: &mut Trainer<'_, D>,
    folder: &Folder,
    config: &Config,
    step: u64,
) -> Result<()> {
    let path = checkpoint::path(&folder.checkpoints(), step);
    let (state, progress) = checkpoint::load(&path, trainer.layout()).map_err(|error| {
        error.hint(
            "put it and config.toml back as they were, or remove it: the run goes on from the \
             checkpoint before",
        )
    })?;
    let tokens = step * (config.train.batch * config.model.context()) as u64;
    if progress != (Progress { step, tokens }) {
        return Err(Error::new(format!(
            "{} says it is of step {} after {} tokens, not of step {step} after {tokens}",
            printable_path(&path),
            progress.step,
            progress.tokens
        ))
        .hint("it belongs to another run, or config.toml was changed"));
    }
    if !state.is_of(&config.train.optimizer()) {
        return Err(Error::new(format!(
            "{} has not the moments of train.optimizer = {}",
            printable_path(&path),
            config.train.optimizer.name()
        ))
        .hint("config.toml was changed; put it back as it was"));
    }
    trainer.restore(state, progress);
    Ok(())
}

/// The initial weights of a run that is no branch.
pub(super) fn initial(config: &Config) -> Result<Vec<f32>> {
    let mut params = config.model.initialize(config.seed);
    if !config.start.weights.is_empty() {
        let (path, layout) = (Path::new(&config.start.weights), config.model.layout());
        matching::check_fingerprint(path, &config.start.fingerprint)?;
        matching::load_matching(path, &layout, &mut params)?;
    }
    Ok(params)
}

impl<'a, D: Quantize> Run<'a, D> {
    /// Loads the newest checkpoint, cuts the records back to it and removes what a kill left.
    pub(super) fn open(
        (device, ranks): (&D, Option<Ranks<D>>),
        folder: &'a Folder,
        (config, twin): (&'a Config, &'a Config),
        data: &'a Dataset,
        probes: Vec<Box<dyn Probe>>,
    ) -> Result<Self> {
        let checkpoints = folder.checkpoints();
        if checkpoint::list(&checkpoints)?.is_empty() {
            check_run(config, data)?;
        }
        let mut trainer = Trainer::lead(device.clone(), config, data, ranks)?;
        fs::create_dir_all(&checkpoints)
            .map_err(|error| Error::io("create", &checkpoints, error))?;
        whole::remove_partial(folder.path())?;
        whole::remove_partial(&checkpoints)?;
        if folder.discarded().exists() {
            whole::remove_partial(&folder.discarded())?;
        }
        let newest = checkpoint::list(&checkpoints)?.last().copied();
        match newest {
            Some(step) => {
                restore(&mut trainer, folder, config, step)?;
                intact::check(folder, config)?;
            }
            None if config.start.is_branch() => {
                let error = format!("{} has no checkpoint", printable_path(folder.path()));
                return Err(Error::new(error).hint(format!(
                    "it began with that of step {} of {}; branch off anew",
                    config.start.step, config.start.run
                )));
            }
            None if config.start.weights.is_empty() => {}
            None => trainer.begin(initial(config)?),
        }
        cut_back(&folder.metrics_file(), newest)?;
        let lines = folder.metrics()?;
        let mut control = Control::new(config);
        lines.iter().try_for_each(|line| control.replay(line))?;
        let events = lines.iter().flat_map(|line| &line.events);
        let rollbacks = events.filter(|e| matches!(e, Event::Rollback { .. })).cloned().collect();
        let mut run = Self {
            folder,
            config,
            trainer,
            probing: {
                let path = folder.probes_file();
                Probing::open(device, (config, twin), data, probes, &path, newest)?
            },
            control,
            metrics: Lines::append(&folder.metrics_file())?,
            timing: Lines::append(&folder.timing_file())?,
            busy: Duration::ZERO,
            steps: 0,
            tokens: 0,
            diverged: lines.last().is_some_and(Metrics::diverged),
            rollbacks,
            pending: Vec::new(),
        };
        if newest.is_none() {
            let val_loss = Some(awake(|| run.trainer.validation_loss()));
            let mut line = Metrics { val_loss, ..Metrics::default() };
            run.probing.measure(&mut run.trainer, &mut line)?;
            line.events = run.control.decide(&line, None)?.events;
            run.metrics.push(&line)?;
        }
        Ok(run)
    }
}
