//! The probes of a run at work: what they need is computed, what they measure is recorded.

use crate::recipe::device::Quantize;
use crate::recipe::{Observer, Recipe};
use crate::train::config::Config;
use crate::train::data::Dataset;
use crate::train::probe::{self, Line, Lines, Needs, Probe, Snapshot, Values};
use crate::train::record::Metrics;
use crate::train::trainer::Trainer;
use exmy::error::{Error, Result};
use std::borrow::Cow;
use std::path::Path;

/// Sequences whose ends probes see.
const ENDINGS: usize = 32;

/// A probe and where its values go.
struct Recorded {
    probe: Box<dyn Probe>,
    /// Into `metrics.jsonl`, as a rule reads it.
    decides: bool,
    /// Into `probes.jsonl`.
    streams: bool,
}

/// What the probes of a run measure, and `probes.jsonl`.
pub(super) struct Probing<'a, D: Quantize> {
    config: &'a Config,
    probes: Vec<Recorded>,
    /// Open if any probe streams.
    lines: Option<Lines>,
    twin: Option<Trainer<'a, D>>,
}

/// The configuration of a run's twin: all the same, but in f32.
pub(super) fn twin(config: &Config) -> Config {
    let (at, when) = (Vec::new(), Vec::new());
    Config { recipe: Recipe::default(), at, when, ..config.clone() }
}

impl<'a, D: Quantize> Probing<'a, D> {
    /// The probes that a configuration switches on, and others. `probes.jsonl` at `path` is cut back to
    /// `step`; `twin` is what [`twin`] makes of the configuration.
    ///
    /// # Errors
    /// If a probe cannot be made or two have one name, or the file cannot be read or written.
    pub(super) fn open(
        device: &D,
        (config, twin): (&'a Config, &'a Config),
        data: &'a Dataset,
        others: Vec<Box<dyn Probe>>,
        path: &Path,
        step: Option<u64>,
    ) -> Result<Self> {
        let streams = &config.record.probes;
        let rules = config.when.iter().map(|when| &when.metric);
        let rules: Vec<&String> = rules.filter(|name| probe::exists(name)).collect();
        let mut names: Vec<&String> = streams.iter().chain(rules.iter().copied()).collect();
        names.sort();
        names.dedup();
        let mut probes = Vec::new();
        for name in names {
            let probe = probe::by_name(name, &config.model)?;
            let (decides, streams) = (rules.contains(&name), streams.contains(name));
            probes.push(Recorded { probe, decides, streams });
        }
        for probe in others {
            let name = probe.name();
            if probes.iter().any(|known: &Recorded| known.probe.name() == name) {
                return Err(Error::new(format!("two probes are called {name:?}")));
            }
            probes.push(Recorded { probe, decides: false, streams: true });
        }
        let streams = probes.iter().any(|recorded| recorded.streams);
        // A file of probes that are off now is cut back, too.
        let lines = (streams || path.exists()).then(|| Lines::open(path, step)).transpose()?;
        let mut probing = Self { config, probes, lines: lines.map(|(lines, _)| lines), twin: None };
        if probing.needs().twin {
            probing.twin = Some(Trainer::on(device.clone(), twin, data)?);
        }
        Ok(probing)
    }

    /// What any of the probes needs.
    pub(super) fn needs(&self) -> Needs {
        self.probes.iter().fold(Needs::default(), |needs, one| needs.or(one.probe.needs()))
    }

    /// Whether probes measure after `step`.
    pub(super) fn is_due(&self, step: u64) -> bool {
        !self.probes.is_empty() && self.config.record.probes_at(step)
    }

    /// Trains the twin up to `step`; it begins with `initial` if it is beyond.
    pub(super) fn follow(
        &mut self,
        step: u64,
        initial: impl FnOnce() -> Result<Vec<f32>>,
    ) -> Result<()> {
        let Some(twin) = &mut self.twin else { return Ok(()) };
        if twin.progress().step == 0 || twin.progress().step > step {
            twin.begin(initial()?);
        }
        while twin.progress().step < step {
            twin.step(None);
        }
        Ok(())
    }

    /// Who watches a step after which probes measure.
    pub(super) fn observers(&mut self) -> Vec<&mut dyn Observer> {
        self.probes.iter_mut().filter_map(|one| one.probe.observer()).collect()
    }

    /// Measures after the step of `line` and notes the values there and in `probes.jsonl`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn measure(
        &mut self,
        trainer: &mut Trainer<'_, D>,
        line: &mut Metrics,
    ) -> Result<()> {
        if !self.is_due(line.step) {
            return Ok(());
        }
        let needs = self.needs();
        let endings = needs.endings.then(|| trainer.endings(ENDINGS)).flatten();
        // A trainer's gradients are sums over the parts of a divided batch.
        let parts = self.config.train.accumulate as f32;
        let mean = |grads| mean_of_parts(grads, parts);
        let begun = line.step > 0;
        let shadow = trainer.shadow().map(mean);
        let twin = self.twin.as_ref().filter(|_| begun).map(|twin| mean(twin.grads()));
        let (params, grads) = (trainer.params(), mean(trainer.grads()));
        let seen = Snapshot {
            step: line.step,
            model: &self.config.model,
            layout: trainer.layout(),
            params: &params,
            grads: &grads,
            shadow: shadow.as_deref(),
            twin: twin.as_deref(),
            endings: endings.as_deref(),
        };
        for Recorded { probe, decides, streams } in &mut self.probes {
            let mut values = Values::default();
            probe.measure(&seen, &mut values);
            if let (true, Some(value)) = (*decides, values.value) {
                line.probes.insert(probe.name().to_owned(), value);
            }
            if let (true, false, Some(lines)) = (*streams, values.is_empty(), &mut self.lines) {
                lines.push(&Line { step: line.step, probe: probe.name().to_owned(), values })?;
            }
        }
        Ok(())
    }

    /// Makes the recorded values survive a power cut.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.lines.as_mut().map_or(Ok(()), Lines::sync)
    }

    /// The digest of the recorded values, if there are any.
    pub(super) fn digest(&self) -> Option<String> {
        self.lines.as_ref().map(Lines::digest)
    }

    /// Cuts `probes.jsonl` at `path` back to `step` and returns what stood after it.
    ///
    /// # Errors
    /// If the file cannot be read or replaced.
    pub(super) fn cut_back(&mut self, path: &Path, step: u64) -> Result<Vec<u8>> {
        if self.lines.is_none() {
            return Ok(Vec::new());
        }
        self.sync()?;
        let (lines, after) = Lines::open(path, Some(step))?;
        self.lines = Some(lines);
        Ok(after)
    }
}

/// The gradient that a step is made by, of the sum over its parts.
fn mean_of_parts(sum: Cow<'_, [f32]>, parts: f32) -> Cow<'_, [f32]> {
    match parts {
        1.0 => sum,
        _ => Cow::Owned(sum.iter().map(|g| g / parts).collect()),
    }
}
