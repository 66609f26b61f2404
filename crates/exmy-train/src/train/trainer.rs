//! One run in memory: weights, moments and the step that changes them.
//!
//! A step draws its batch by address, sums the gradient of the mean loss, clips it and lets the
//! optimizer move the f32 master weights. Everything in it is a function of (configuration, data, weights,
//! moments, step): no clock, no generator state, no thread count. Files are the business of
//! [`run`](crate::train::run).

use crate::nn::device::{Buffer, Cpu, MatrixMut, Slice};
use crate::nn::model::{self, Batch, Model};
use crate::nn::parameters::{Layout, Role};
use crate::nn::stopwatch::{Part, lap};
use crate::recipe::device::Quantize;
use crate::recipe::state::RecipeState;
use crate::recipe::{Engine, Images, Observer, Phase, Plan, Recipe};
use crate::train::check::{check_fit, check_run};
use crate::train::checkpoint::{Progress, State};
use crate::train::config::{Config, Decay, EVALUATED_ROWS, EVALUATED_WINDOWS};
use crate::train::data::{Batches, Dataset, Tokens, windows};
use crate::train::memory;
use crate::train::optimizer::{Update, clip_scale};
use crate::train::probe::Ending;
use crate::train::profile::MemoryNeed;
use crate::train::ranks::{self, Ranks};
use exmy::error::{Error, Result};
use exmy::random::Stream;
use std::borrow::Cow;
use std::ops::Range;

/// What a training step measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Mean loss of the batch before the update, in the model's [unit](model::Config::loss_unit).
    pub loss: f64,
    /// Learning rate used.
    pub lr: f64,
    /// Global gradient norm before clipping.
    pub grad_norm: f64,
    /// Whether the gradient was scaled down.
    pub clipped: bool,
}

/// Neighbouring parameters that decay alike, as few ranges as possible.
pub fn decay_ranges(layout: &Layout, decay: Decay) -> Vec<(Range<usize>, bool)> {
    let mut ranges: Vec<(Range<usize>, bool)> = Vec::new();
    for entry in layout.iter() {
        let matrix = matches!(entry.role, Role::Matrix | Role::Tokens | Role::Embedding);
        let decays = decay == Decay::All || matrix;
        match ranges.last_mut() {
            Some((range, same)) if *same == decays && range.end == entry.range.start => {
                range.end = entry.range.end;
            }
            _ => ranges.push((entry.range.clone(), decays)),
        }
    }
    ranges
}

/// A network in training on a device.
pub struct Trainer<'a, D: Quantize = Cpu> {
    /// The others, if several devices take the parts of a step. They may read memory of this one until this
    /// ends, so it goes first.
    ranks: Option<Ranks<D>>,
    device: D,
    config: &'a Config,
    data: &'a Dataset,
    layout: Layout,
    /// The whole arena, cut where parameters that decay meet others.
    decay_ranges: Vec<(Range<usize>, bool)>,
    model: Box<dyn Model<D>>,
    recipe: Recipe,
    params: Buffer<D>,
    /// What the optimizer keeps of each parameter; empty where it keeps less.
    moments: [Buffer<D>; 2],
    grads: Buffer<D>,
    progress: Progress,
    plan: Plan,
    images: Images<D>,
    tokens: Vec<u32>,
    targets: Vec<u32>,
    /// Losses of the parts of a step, until they are read.
    losses: Vec<D::Scalar>,
    shadow: Option<Shadow<D>>,
}

/// What a gradient in f32 is made with and left in.
struct Shadow<D: Quantize> {
    plan: Plan,
    images: Images<D>,
    grads: Buffer<D>,
}

impl<'a> Trainer<'a> {
    /// A network with its initial weights, on the CPU.
    ///
    /// # Errors
    /// If the configuration is impossible or does not fit the data.
    pub fn new(config: &'a Config, data: &'a Dataset) -> Result<Self> {
        Self::on(Cpu::new(), config, data)
    }
}

impl<'a, D: Quantize> Trainer<'a, D> {
    /// A network with its initial weights, on a device.
    ///
    /// # Errors
    /// If the configuration is impossible or does not fit the data.
    pub fn on(device: D, config: &'a Config, data: &'a Dataset) -> Result<Self> {
        check_run(config, data)?;
        Self::with(device, config, data, true)
    }

    /// The same with the other ranks of its run, of which this is the first.
    ///
    /// # Errors
    /// As [`on`](Self::on), and if a step has fewer parts than there are ranks.
    pub fn lead(
        device: D,
        config: &'a Config,
        data: &'a Dataset,
        ranks: Option<Ranks<D>>,
    ) -> Result<Self> {
        if let Some(ranks) = &ranks {
            ranks::divides(config, ranks.size())?;
        }
        Ok(Self { ranks, ..Self::with(device, config, data, true)? })
    }

    /// What takes the parts of another rank than the first. It never updates weights, so it has no moments;
    /// and they come with each step, so it draws none. (Drawing GPT-2's 124 million on one thread took five
    /// seconds, for which rank 0 waited in its first step.)
    pub(in crate::train) fn member(
        device: D,
        config: &'a Config,
        data: &'a Dataset,
        ranks: Ranks<D>,
    ) -> Result<Self, (Error, Ranks<D>)> {
        match Self::with(device, config, data, false) {
            Ok(trainer) => Ok(Self { ranks: Some(ranks), ..trainer }),
            Err(error) => Err((error, ranks)),
        }
    }

    fn with(device: D, config: &'a Config, data: &'a Dataset, leads: bool) -> Result<Self> {
        check_fit(config, data)?;
        let numbers = MemoryNeed::of_run(config).kept() / 4;
        memory::ensure(numbers as usize, "weights, gradients and moments")?;
        let model = config.model.build(&device, config.seed);
        let mut model = model.map_err(Error::from_cause)?;
        model.set_z_loss(config.train.z_loss);
        let layout = config.model.layout();
        let plan = config.recipe.settled(&layout, config.train.steps)?;
        let params = match leads {
            true => device.buffer(config.model.initialize(config.seed)),
            false => zeros(&device, layout.len()),
        };
        let kept = if leads { config.train.optimizer().moments().len() } else { 0 };
        let grads = zeros(&device, params.len());
        let read = config.train.batch * config.model.context();
        Ok(Self {
            config,
            data,
            decay_ranges: decay_ranges(&layout, config.train.decay),
            layout,
            model,
            recipe: config.recipe.clone(),
            moments: moments(&device, kept, params.len()),
            params,
            grads,
            progress: Progress { step: 0, tokens: 0 },
            plan,
            images: Images::default(),
            tokens: vec![0; read],
            targets: vec![0; read],
            losses: Vec::with_capacity(config.train.accumulate),
            shadow: None,
            ranks: None,
            device,
        })
    }

    /// Names and places of the parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The recipe, settled for this model: its shares of multiplications, its switches.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What trains.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// What people call all that trains; `None` for the processor alone.
    pub fn devices(&self) -> Option<String> {
        let own = self.device.name();
        match &self.ranks {
            None => own,
            Some(ranks) => {
                let own = own.unwrap_or_else(|| "cpu".to_owned());
                Some(format!("{own}, rank 0 of {}", ranks.size()))
            }
        }
    }

    /// Waits for the device.
    ///
    /// # Errors
    /// The first thing that went wrong on it; what this trainer says since then means nothing.
    pub fn check(&self) -> Result<()> {
        self.device.check()
    }

    /// What went wrong between the ranks of a run, if there are several; what this trainer says since then
    /// means nothing.
    ///
    /// # Errors
    /// That.
    pub fn check_ranks(&mut self) -> Result<()> {
        self.ranks.as_mut().map_or(Ok(()), Ranks::check)
    }

    /// Whether another rank of the run was asked to end.
    pub(in crate::train) fn is_asked_to_stop(&self) -> bool {
        self.ranks.as_ref().is_some_and(Ranks::is_asked_to_stop)
    }

    /// The weights.
    pub fn params(&self) -> Cow<'_, [f32]> {
        self.device.read(self.params.all())
    }

    /// Weights, moments, and what the recipe remembers.
    pub fn state(&self) -> State<'_> {
        let [m, v] = &self.moments;
        let [params, m, v] = [&self.params, m, v].map(|arena| self.device.read(arena.all()));
        State { params, m, v, memory: Cow::Borrowed(&self.images.memory) }
    }

    /// What it learns.
    pub fn data(&self) -> &'a Dataset {
        self.data
    }

    /// Steps and tokens so far.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// The gradient of the last step, before clipping; zeros before the first.
    ///
    /// With `train.accumulate` above 1 it is the sum over the parts.
    pub fn grads(&self) -> Cow<'_, [f32]> {
        self.device.read(self.grads.all())
    }

    /// Begins with these weights, at step 0.
    ///
    /// # Panics
    /// If they were laid out for another model.
    pub fn begin(&mut self, params: Vec<f32>) {
        assert_eq!(params.len(), self.layout.len(), "weights of another model");
        let kept = self.config.train.optimizer().moments().len();
        self.moments = moments(&self.device, kept, params.len());
        self.params = self.device.buffer(params);
        self.images.memory = RecipeState::default();
        self.progress = Progress { step: 0, tokens: 0 };
    }

    /// The steps and evaluations that follow are made under `recipe`. What the one before remembers
    /// stays: windows and hot channels are read where the new one asks for them.
    ///
    /// # Errors
    /// If the recipe does not go with the model.
    pub fn set_recipe(&mut self, recipe: &Recipe) -> Result<()> {
        if self.recipe != *recipe {
            self.plan = recipe.settled(&self.layout, self.config.train.steps)?;
            self.recipe = recipe.clone();
        }
        Ok(())
    }

    /// Goes on from a checkpoint.
    ///
    /// # Panics
    /// If the state was laid out for another model, or its moments are another optimizer's.
    pub fn restore(&mut self, state: State<'_>, progress: Progress) {
        assert_eq!(state.params.len(), self.layout.len(), "a state of another model");
        let optimizer = self.config.train.optimizer();
        assert!(state.is_of(&optimizer), "moments of another optimizer than {optimizer:?}");
        let State { params, m, v, memory } = state;
        let buffer = |numbers: Cow<'_, [f32]>| self.device.buffer(numbers.into_owned());
        let [params, m, v] = [params, m, v].map(buffer);
        (self.params, self.moments) = (params, [m, v]);
        self.images.memory = memory.into_owned();
        self.progress = progress;
    }

    /// The mean losses of the parts of the step's batch, and the sum of their gradients: in f32 wherever a
    /// recipe could round, if it is the shadow.
    fn gradient(&mut self, shadow: bool, observer: &mut Option<&mut dyn Observer>) {
        let Config { train, model, seed, .. } = self.config;
        let step = self.progress.step;
        let (plan, images, grads) = match &mut self.shadow {
            Some(own) if shadow => (&own.plan, &mut own.images, &mut own.grads),
            _ => (&self.plan, &mut self.images, &mut self.grads),
        };
        let (len, parts) = (grads.len(), train.accumulate);
        // Others take no part in a shadow.
        let mut ranks = self.ranks.as_mut().filter(|_| !shadow);
        self.device.fill(MatrixMut::new(grads.all_mut(), 1, len), 0.0);
        if let Some(ranks) = &mut ranks {
            // The zeros come before the sums of other ranks.
            ranks.wait_for(&self.device);
        }
        let groups = ranks.as_ref().map_or_else(Vec::new, |_| self.layout.groups());
        let later = ranks.is_some() && plan.changes(step, &images.memory);
        let rows = train.batch / parts;
        let part_len = rows * model.context();
        self.losses.clear();
        let texts = self.tokens.chunks(part_len).zip(self.targets.chunks(part_len));
        for (part, (tokens, targets)) in (0..).zip(texts) {
            if ranks.as_ref().is_some_and(|ranks| !ranks.takes(part as usize)) {
                continue;
            }
            let mut chain =
                ranks.as_mut().map(|ranks| ranks.chain((part as usize, parts), &groups));
            let phase = match part {
                0 => Phase::Train(step),
                _ => Phase::TrainPart { step, part },
            };
            let sequence = model.decoder().map_or(0, |decoder| decoder.context);
            let mut engine = Engine::new(plan, *seed, phase, images).with_sequences_of(sequence);
            if let (0, Some(observer)) = (part, observer.as_deref_mut()) {
                engine = engine.observed(observer);
            }
            let batch = match model.decoder() {
                Some(_) => Batch::Tokens { tokens, targets, sequences: rows },
                None => {
                    let stream = Stream::new("proxy batch").with(step);
                    Batch::Drawn { seed: *seed, stream, first: part * rows as u64, rows }
                }
            };
            if let Some(chain) = &mut chain {
                engine = engine.chained(chain);
            }
            let (params, grads) = (self.params.all(), grads.all_mut());
            self.losses.push(self.model.forward_backward(params, grads, &batch, &mut engine));
            if let (true, 0, Some(ranks)) = (later, part, &mut ranks) {
                ranks.tell_memory(&images.memory);
            }
        }
        if let Some(ranks) = ranks {
            ranks.collect(&self.device, parts, grads);
        }
    }

    /// The ranks of its run, if there are several.
    pub(in crate::train) fn ranks(&mut self) -> Option<&mut Ranks<D>> {
        self.ranks.as_mut()
    }

    /// Lets the other ranks begin a step.
    fn begin_ranks(&mut self) {
        let step = self.progress.step;
        let Some(ranks) = &mut self.ranks else { return };
        let memory = &self.images.memory;
        let later = self.plan.changes(step, memory);
        ranks.begin(&self.device, (step, self.recipe.to_string()), (memory, later), &self.params);
    }

    /// Goes to a step that rank 0 has begun, with its weights.
    ///
    /// # Errors
    /// If the recipe does not go with the model.
    pub(in crate::train) fn join(&mut self, step: u64, recipe: &Recipe) -> Result<()> {
        self.set_recipe(recipe)?;
        self.progress.step = step;
        if let Some(ranks) = &mut self.ranks {
            ranks.take_weights(&self.device, &mut self.params);
        }
        Ok(())
    }

    /// Takes this rank's parts of the step, with what the recipe remembers; their losses.
    pub(in crate::train) fn take_parts(&mut self, memory: RecipeState) -> Vec<f64> {
        self.images.memory = memory;
        self.draw();
        self.gradient(false, &mut None);
        self.losses.iter().map(|loss| self.device.value(loss)).collect()
    }

    /// The batch of the step.
    fn draw(&mut self) {
        let Config { train, model, seed, .. } = self.config;
        let step = self.progress.step;
        let (tokens, targets) = (&mut self.tokens, &mut self.targets);
        let _drawing = lap(Part::Batch);
        if let Some(decoder) = model.decoder() {
            let (batch, context) = (train.batch, decoder.context);
            let batches = Batches::new(&self.data.train);
            let batches =
                batches.spoiled(self.config.data.noise, decoder.vocab.min(self.data.vocab));
            batches.fill(*seed, step, batch, context, tokens, targets);
        }
    }

    /// The sum of the losses of all parts of the step, from the first to the last.
    fn loss_of_parts(&mut self) -> f64 {
        let add = |sum, loss| sum + loss;
        let own = self.losses.iter().map(|loss| self.device.value(loss));
        let Some(ranks) = &mut self.ranks else { return own.fold(0.0, add) };
        let mut all = vec![0.0; self.config.train.accumulate];
        all.iter_mut().step_by(ranks.size()).zip(own).for_each(|(loss, own)| *loss = own);
        ranks.add_losses(&mut all);
        all.into_iter().fold(0.0, add)
    }

    /// Whether the next steps also leave the gradient of f32 at the same weights and batch. Nothing
    /// else is changed by it.
    ///
    /// # Errors
    /// If f32 does not go with the model.
    pub fn cast_shadow(&mut self, wanted: bool) -> Result<()> {
        if wanted && self.shadow.is_none() {
            let plan = Recipe::default().settled(&self.layout, self.config.train.steps)?;
            let grads = zeros(&self.device, self.layout.len());
            self.shadow = Some(Shadow { plan, images: Images::default(), grads });
        } else if !wanted {
            self.shadow = None;
        }
        Ok(())
    }

    /// The last step's gradient in f32, if it was [wanted](Self::cast_shadow).
    pub fn shadow(&self) -> Option<Cow<'_, [f32]>> {
        self.shadow.as_ref().map(|shadow| self.device.read(shadow.grads.all()))
    }

    /// Up to `count` ends of windows, evenly spaced over the validation text, under the recipe in force;
    /// `None` of a model that reads no tokens. What the recipe remembers stays as it is.
    pub fn endings(&mut self, count: usize) -> Option<Vec<Ending>> {
        let context = self.config.model.decoder()?.context;
        let windows = windows(&self.data.validation, context);
        let used = count.min(windows.len());
        let (mut tokens, mut targets) = (vec![0; context], vec![0; context]);
        let mut images = Images::default();
        images.memory.clone_from(&self.images.memory);
        let mut endings = Vec::with_capacity(used);
        for i in 0..used {
            windows.fill(i * windows.len() / used, 1, &mut tokens, &mut targets);
            let phase = Phase::Evaluate { step: self.progress.step, pass: i as u64 };
            let mut engine = Engine::new(&self.plan, self.config.seed, phase, &mut images)
                .with_sequences_of(context);
            let logits = self.model.last_logits(self.params.all(), &tokens, &mut engine)?;
            let logits = self.device.read(logits).into_owned();
            endings.push(Ending { logits, target: targets[context - 1] });
        }
        Some(endings)
    }

    /// One optimizer step; `observer` sees the first part of its batch.
    pub fn step(&mut self, mut observer: Option<&mut dyn Observer>) -> Step {
        let Config { train, model, .. } = self.config;
        let step = self.progress.step;
        self.begin_ranks();
        self.draw();
        let parts = train.accumulate;
        // The shadow comes first: losses are those of the last pass.
        if self.shadow.is_some() {
            self.gradient(true, &mut None);
        }
        self.gradient(false, &mut observer);
        let norm = self.device.global_norm(self.grads.all());
        let grad_norm = || self.device.value(&norm) / parts as f64;
        let clips = train.clip > 0.0;
        // Without clipping nothing is waited for before the update has been asked for.
        let clip = if clips { clip_scale(grad_norm(), train.clip) } else { 1.0 };
        // One rounding each: of 1 / parts, and of its product with the clipping factor.
        let scale = clip * (1.0 / parts as f64) as f32;
        let lr = train.learning_rate(step);
        let optimizer = train.optimizer();
        for (range, decays) in &self.decay_ranges {
            let own = |moment: usize| {
                if optimizer.moments().len() > moment { range.clone() } else { 0..0 }
            };
            let [m, v] = &mut self.moments;
            self.device.update(
                &optimizer,
                &Update { t: step + 1, lr, decay: *decays, grad_scale: scale },
                self.params.part_mut(range.clone()),
                self.grads.part(range.clone()),
                [m.part_mut(own(0)), v.part_mut(own(1))],
            );
        }
        let grad_norm = grad_norm();
        let loss = self.loss_of_parts() / parts as f64;
        self.progress.step += 1;
        self.progress.tokens += (train.batch * model.context()) as u64;
        Step { loss, lr, grad_norm, clipped: clips && grad_norm > train.clip }
    }

    /// Mean loss over the validation windows, or over the proxy's validation rows.
    pub fn validation_loss(&mut self) -> f64 {
        match self.config.model {
            model::Config::Decoder(decoder) => {
                self.mean_loss(decoder.context, &self.data.validation)
            }
            model::Config::Proxy(proxy) => self.drawn_loss(proxy.validation_rows),
        }
    }

    /// Mean loss over `rows` rows that are the same for every step, at most `record.eval_windows`.
    fn drawn_loss(&mut self, rows: usize) -> f64 {
        const ROWS: usize = EVALUATED_ROWS;
        let Config { seed, record, .. } = self.config;
        let used = if record.eval_windows == 0 { rows } else { rows.min(record.eval_windows) };
        let (step, stream) = (self.progress.step, Stream::new("proxy validation"));
        let (mut sum, mut losses) = (0.0, zeros(&self.device, ROWS.min(used)));
        for first in (0..used).step_by(ROWS) {
            let rows = ROWS.min(used - first);
            let phase = Phase::Evaluate { step, pass: (first / ROWS) as u64 };
            let mut engine = Engine::new(&self.plan, *seed, phase, &mut self.images);
            let batch = Batch::Drawn { seed: *seed, stream, first: first as u64, rows };
            let params = self.params.all();
            self.model.losses(params, &batch, &mut engine, losses.first_mut(rows));
            sum += self.sum(losses.first(rows));
        }
        sum / used as f64
    }

    /// Mean loss over non-overlapping windows of `text`, at most `record.eval_windows` of them,
    /// evenly spaced; the forward products are quantized as in training.
    fn mean_loss(&mut self, context: usize, text: &Tokens) -> f64 {
        let Config { seed, record, .. } = self.config;
        let windows = windows(text, context);
        let used = match record.eval_windows {
            0 => windows.len(),
            most => windows.len().min(most),
        };
        const ROWS: usize = EVALUATED_WINDOWS;
        let step = self.progress.step;
        let (mut sum, mut first) = (0.0, 0);
        let mut losses = zeros(&self.device, ROWS * context);
        let (mut tokens, mut targets) = (vec![0; ROWS * context], vec![0; ROWS * context]);
        while first < used {
            let rows = ROWS.min(used - first);
            let len = rows * context;
            let (tokens, targets) = (&mut tokens[..len], &mut targets[..len]);
            let places = tokens.chunks_mut(context).zip(targets.chunks_mut(context));
            for (window, (tokens, targets)) in (first..).zip(places) {
                windows.fill(window * windows.len() / used, 1, tokens, targets);
            }
            let phase = Phase::Evaluate { step, pass: (first / ROWS) as u64 };
            let mut engine =
                Engine::new(&self.plan, *seed, phase, &mut self.images).with_sequences_of(context);
            let params = self.params.all();
            let batch = Batch::Tokens { tokens, targets, sequences: rows };
            self.model.losses(params, &batch, &mut engine, losses.first_mut(len));
            sum += self.sum(losses.first(len));
            first += rows;
        }
        sum / (used * context) as f64
    }

    /// The sum of losses in f64, from the first to the last.
    fn sum(&self, losses: Slice<'_, D>) -> f64 {
        self.device.read(losses).iter().map(|&loss| f64::from(loss)).sum::<f64>()
    }
}

fn zeros<D: Quantize>(device: &D, len: usize) -> Buffer<D> {
    let mut buffer = Buffer::default();
    device.grow(&mut buffer, len);
    buffer
}

/// The moments of an optimizer that keeps so many, at its start.
fn moments<D: Quantize>(device: &D, kept: usize, len: usize) -> [Buffer<D>; 2] {
    [0, 1].map(|moment| zeros(device, if kept > moment { len } else { 0 }))
}
