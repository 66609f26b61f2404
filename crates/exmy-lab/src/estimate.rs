//! What a plan will cost before it begins: operations, and minutes on this machine.
//!
//! Of each kind of run (model, batch, recipe, what probes need) two steps are trained and the second is
//! timed, on one thread as runs are. A kind whose step is beyond a few GFLOP is not tried but taken at the
//! rate of the slowest kind that was. Evaluations and checkpoints are left out, so it is an estimate from
//! below, good to a factor of one and a half.

use crate::run_config::RunConfig;
use exmy::error::Result;
use exmy::parallel;
use exmy_train::train::config::Config;
use exmy_train::train::data::Dataset;
use exmy_train::train::probe;
use exmy_train::train::trainer::Trainer;
use std::collections::{HashMap, HashSet};
use std::time::Instant;

/// Operations of a step beyond which it is not tried.
const MOST: f64 = 2e10;
/// Operations a second where nothing could be tried: a core of 2023 with vectors of 256 bits.
const USUAL: f64 = 3e10;

/// What some runs cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// How many they are.
    pub runs: usize,
    /// Floating-point operations of training.
    pub flops: f64,
    /// Seconds on one thread.
    pub seconds: f64,
}

/// Times steps of kinds of runs, each once.
#[derive(Debug)]
pub struct Estimate<'a> {
    data: &'a Dataset,
    /// Seconds a step, by kind.
    known: HashMap<String, Option<f64>>,
    /// The lowest rate seen.
    rate: Option<f64>,
}

/// What a run's speed depends on.
pub(crate) fn kind(config: &Config) -> String {
    let train = &config.train;
    format!("{:?} {} {} {}", config.model, train.batch, train.accumulate, config.recipe)
}

/// Operations of a step.
fn operations(run: &RunConfig) -> f64 {
    run.flops() / run.steps().max(1) as f64
}

/// How many times the step itself what probes need takes, on average over steps.
fn factor(run: &RunConfig) -> f64 {
    let record = &run.config.record;
    let (mut shadow, mut twin) = (false, false);
    for name in &record.probes {
        if let Ok(probe) = probe::by_name(name, &run.config.model) {
            shadow |= probe.needs().shadow;
            twin |= probe.needs().twin;
        }
    }
    1.0 + f64::from(u8::from(twin)) + f64::from(u8::from(shadow)) / record.probe_every.max(1) as f64
}

impl<'a> Estimate<'a> {
    /// For runs that learn `data`.
    pub fn new(data: &'a Dataset) -> Self {
        Self { data, known: HashMap::new(), rate: None }
    }

    /// How many kinds of these runs have steps that are still to be tried.
    pub fn untried(&self, runs: &[RunConfig]) -> usize {
        let kinds = runs.iter().filter(|run| operations(run) <= MOST);
        let kinds = kinds.map(|run| kind(&run.config));
        kinds.filter(|kind| !self.known.contains_key(kind)).collect::<HashSet<_>>().len()
    }

    fn step(&mut self, run: &RunConfig) -> Result<Option<f64>> {
        let key = kind(&run.config);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let flops = operations(run);
        let drawn = Dataset::drawn();
        let data = if run.config.model.decoder().is_some() { self.data } else { &drawn };
        let time = || -> Result<f64> {
            let mut trainer = Trainer::new(&run.config, data)?;
            trainer.step(None);
            let begun = Instant::now();
            trainer.step(None);
            Ok(begun.elapsed().as_secs_f64())
        };
        let seconds = if flops > MOST {
            None
        } else {
            let timed = parallel::with_threads(1, time);
            let seconds =
                timed.map_err(|e| exmy::error::Error::new("cannot start threads").because(e))??;
            let rate = flops / seconds;
            self.rate = Some(self.rate.map_or(rate, |known: f64| known.min(rate)));
            Some(seconds)
        };
        self.known.insert(key, seconds);
        Ok(seconds)
    }

    /// What these runs cost together.
    ///
    /// # Errors
    /// If one cannot be trained.
    pub fn of(&mut self, runs: &[RunConfig]) -> Result<Cost> {
        for run in runs {
            self.step(run)?;
        }
        let rate = self.rate.unwrap_or(USUAL);
        let mut cost = Cost::default();
        for run in runs {
            let step = self.step(run)?;
            cost.runs += 1;
            cost.flops += run.flops();
            let seconds = step.map_or(run.flops() / rate, |step| step * run.steps() as f64);
            cost.seconds += seconds * factor(run);
        }
        Ok(cost)
    }
}
