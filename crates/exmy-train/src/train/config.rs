//! The configuration of one run, complete: a folder's `config.toml` is all a resume needs.
//!
//! A configuration is built in layers, each of which may only change keys that exist: a preset, a
//! TOML file (any part of a `config.toml`), and `key=value` settings. Every key always has a value,
//! so what a run did can be read off its file; a value that switches something off is 0.

use crate::nn::decoder::UNWRITTEN;
use crate::nn::model;
use crate::recipe::Recipe;
use crate::train::data::Source;
use crate::train::fingerprint::Fingerprint;
use crate::train::optimizer::{AdamW, Optimizer, Sgd};
use crate::train::probe;
use crate::train::schedule::Schedule;
use crate::train::stop::Stop;
use crate::train::trigger::{self, At, When};
use exmy::error::{Error, Result};
use exmy::shown::printable;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use toml::{Table, Value};

mod old;
mod overlay;

pub use old::{read_table, share_name};
use overlay::overlay;

/// Version of the keys and their meaning. A file of version 2 is [read](read_table), too: it has other
/// [names of formats](exmy::text::old). Former [names of probes](crate::train::old) are read in any version.
pub const VERSION: u32 = 3;

/// Windows of one forward pass of an evaluation; part of the definition where a recipe has scales of
/// whole tensors.
pub const EVALUATED_WINDOWS: usize = 32;

/// As [`EVALUATED_WINDOWS`], rows of the proxy.
pub const EVALUATED_ROWS: usize = 2048;

/// What stands before a configuration's fingerprint, in the last line of a run's `config.toml`.
const SEAL: &str = "# fingerprint of all above: ";

/// The text of a run's `config.toml`: a configuration and, as a comment, its fingerprint.
pub fn sealed(text: &str) -> String {
    format!("{text}{SEAL}{}\n", Fingerprint::of(text.as_bytes()))
}

/// Whether the text of a `config.toml` has a fingerprint.
pub fn is_sealed(text: &str) -> bool {
    text.contains(SEAL)
}

/// Whether the text of a `config.toml` is what was [sealed]. One without a fingerprint is: it was written by
/// hand, or before there were any.
pub fn is_as_sealed(text: &str) -> bool {
    text.rfind(SEAL).is_none_or(|end| text == sealed(&text[..end]))
}

/// Everything that determines a run's bits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// [`VERSION`].
    pub version: u32,
    /// Number formats of the linear layers.
    pub recipe: Recipe,
    /// Seed of the initial weights, the batches and stochastic rounding.
    pub seed: u64,
    /// Text to learn.
    pub data: Data,
    /// Shape of the network.
    pub model: model::Config,
    /// Optimization.
    pub train: Train,
    /// What is measured and kept.
    pub record: Record,
    /// When the run counts as diverged.
    pub stop: Stop,
    /// What the run starts from, if not from fresh weights.
    pub start: Start,
    /// Changes of the recipe at fixed steps.
    #[serde(default)]
    pub at: Vec<At>,
    /// Changes of the recipe that recorded values ask for.
    #[serde(default)]
    pub when: Vec<When>,
}

/// What a run starts from; an empty text is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// A safetensors file whose tensors replace fresh weights of the same name.
    pub weights: String,
    /// The run whose checkpoint this one goes on from; its records up to there are this one's.
    pub run: String,
    /// The step of that checkpoint.
    pub step: u64,
    /// Hash of the file or checkpoint, in hexadecimal; another one is refused.
    pub fingerprint: String,
}

impl Start {
    /// Whether the run goes on from another's checkpoint.
    pub fn is_branch(&self) -> bool {
        !self.run.is_empty()
    }
}

/// Where the text comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// `synthetic` or `recall`, with `:SEED` behind it or not, or the path of a file or folder.
    #[serde(with = "as_text")]
    pub source: Source,
    /// Share of a file's end that is kept for validation.
    pub validation: f64,
    /// Share of the training tokens that are replaced by random ones, the same in every run.
    #[serde(default)]
    pub noise: f64,
    /// Hash of the contents, in hexadecimal; a resume with other contents is refused. Empty until
    /// the data have been read once.
    pub fingerprint: String,
}

/// Which parameters decay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// Matrices, the embeddings among them (nanoGPT).
    Matrices,
    /// All parameters (TinyLlama).
    All,
}

/// What moves the parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// AdamW with `beta1`, `beta2` and `eps`; Adam, where nothing decays.
    #[default]
    AdamW,
    /// Stochastic gradient descent with `momentum`.
    Sgd,
}

impl Method {
    /// The word in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AdamW => "adamw",
            Self::Sgd => "sgd",
        }
    }
}

/// Optimization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Train {
    /// Optimizer steps.
    pub steps: u64,
    /// Sequences a step.
    pub batch: usize,
    /// Parts into which a step's sequences are divided, to be held in memory one after the other.
    /// Part i has the i-th `batch / accumulate` sequences; the gradients of the parts' mean losses
    /// are added in order, part by part, and their sum divided.
    pub accumulate: usize,
    /// Peak learning rate.
    pub lr: f64,
    /// Learning rate at the end of a decaying schedule.
    pub lr_min: f64,
    /// `constant`, `cosine`, `wsd` or `wsd:FRACTION`.
    #[serde(with = "as_text")]
    pub schedule: Schedule,
    /// Steps of linear warm-up.
    pub warmup: u64,
    /// What moves the parameters; a file that lacks it means AdamW.
    #[serde(default)]
    pub optimizer: Method,
    /// AdamW's decay of the first moment.
    pub beta1: f64,
    /// AdamW's decay of the second moment.
    pub beta2: f64,
    /// Added to the root of AdamW's second moment.
    pub eps: f64,
    /// What SGD keeps of its buffer from step to step; 0 in a file that lacks it.
    #[serde(default)]
    pub momentum: f64,
    /// Decoupled weight decay, of SGD too.
    pub weight_decay: f64,
    /// What decays.
    pub decay: Decay,
    /// Largest global gradient norm; 0 switches clipping off.
    pub clip: f64,
    /// Factor of the mean squared logarithm of the softmax's normalizer, which is added to the loss of a
    /// model of tokens; 0, and in a file that lacks it: nothing is.
    #[serde(default)]
    pub z_loss: f64,
}

/// What is measured and kept, and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Steps between validation losses; there is always one at the end. 0: only that.
    pub eval_every: u64,
    /// Most windows a validation loss is taken over, evenly spaced; 0: all.
    pub eval_windows: usize,
    /// Steps between checkpoints; there is always one at the end. 0: only that.
    pub checkpoint_every: u64,
    /// Checkpoints kept.
    pub keep: usize,
    /// Further steps with a checkpoint, which is kept whatever `keep` says.
    pub checkpoint_at: Vec<u64>,
    /// Records whose median is what `spike`, `grad_spike` and `[stop]` compare with.
    pub window: usize,
    /// What is measured in addition to losses and norms, by name; see [`probe`].
    #[serde(deserialize_with = "crate::train::old::names")]
    pub probes: Vec<String>,
    /// Steps between measurements of the probes.
    pub probe_every: u64,
}

/// Values whose textual form is also their form in TOML.
mod as_text {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::fmt::Display;
    use std::str::FromStr;

    pub(super) fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Train {
    /// The optimizer of these settings.
    pub fn optimizer(&self) -> Optimizer {
        let Self { beta1, beta2, eps, momentum, weight_decay, .. } = *self;
        match self.optimizer {
            Method::AdamW => Optimizer::AdamW(AdamW { beta1, beta2, eps, weight_decay }),
            Method::Sgd => Optimizer::Sgd(Sgd { momentum, weight_decay }),
        }
    }

    /// These settings for another number of steps; the warm-up shrinks or grows in proportion.
    #[must_use]
    pub fn with_steps(mut self, steps: u64) -> Self {
        let (old, warmup) = (u128::from(self.steps), u128::from(self.warmup));
        let scaled = (warmup * u128::from(steps)).checked_div(old).unwrap_or(warmup);
        self.warmup = u64::try_from(scaled).unwrap_or(u64::MAX).min(steps);
        self.steps = steps;
        self
    }

    /// These settings with another peak learning rate; the final one keeps its ratio to it.
    #[must_use]
    pub fn with_lr(mut self, lr: f64) -> Self {
        if self.lr > 0.0 {
            self.lr_min *= lr / self.lr;
        }
        self.lr = lr;
        self
    }

    /// The learning rate of 0-based `step`.
    pub fn learning_rate(&self, step: u64) -> f64 {
        self.schedule.learning_rate(step, self.steps, self.warmup, self.lr, self.lr_min)
    }
}

impl Record {
    /// Whether a validation loss is due after `step` of `steps`.
    pub fn evaluates(&self, step: u64, steps: u64) -> bool {
        step == steps || (self.eval_every > 0 && step.is_multiple_of(self.eval_every))
    }

    /// Whether a checkpoint is due after `step` of `steps`.
    pub fn checkpoints(&self, step: u64, steps: u64) -> bool {
        step == steps
            || (self.checkpoint_every > 0 && step.is_multiple_of(self.checkpoint_every))
            || self.checkpoint_at.contains(&step)
    }

    /// Whether probes measure after `step`.
    pub fn probes_at(&self, step: u64) -> bool {
        step.is_multiple_of(self.probe_every.max(1))
    }
}

impl Config {
    /// Reads a complete configuration, as written by [`to_toml`](Self::to_toml).
    ///
    /// # Errors
    /// If the text is not TOML, a key is missing, unknown or of another type, or a value is
    /// impossible.
    pub fn from_toml(text: &str) -> Result<Self> {
        let config = Self::from_table(read_table(text)?)?;
        config.validate()?;
        Ok(config)
    }

    fn from_table(table: Table) -> Result<Self> {
        if let Some(version) = table.get("version").and_then(Value::as_integer)
            && version != i64::from(VERSION)
        {
            return Err(Error::new(format!(
                "the configuration has version {version}, this program reads versions {} and {VERSION}",
                VERSION - 1
            )));
        }
        table.try_into().map_err(|error: toml::de::Error| Error::new(printable(error.message())))
    }

    /// The complete configuration as TOML.
    ///
    /// # Panics
    /// If [`validate`](Self::validate) refuses the configuration.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("every field has a TOML form")
    }

    /// This configuration with the keys of a partial TOML text replaced. Values that are
    /// impossible together are left to [`validate`](Self::validate), so that keys can be changed
    /// one after the other.
    ///
    /// # Errors
    /// If a key does not exist or its value is of another kind.
    pub fn overlaid(&self, text: &str) -> Result<Self> {
        let changes = read_table(text)?;
        let mut table = self.all_keys();
        overlay(&mut table, changes, "")?;
        Self::from_table(table)
    }

    /// This configuration with one key, written `section.key=value`, replaced; see
    /// [`overlaid`](Self::overlaid).
    ///
    /// # Errors
    /// If there is no `=`, no such key, or the value is of another kind.
    pub fn with_setting(&self, setting: &str) -> Result<Self> {
        let (path, value) = setting.split_once('=').ok_or_else(|| {
            Error::new(format!("{setting:?} is not a setting"))
                .hint("write key=value, for example train.lr=1e-3")
        })?;
        let (path, value) = (path.trim(), value.trim());
        if path.is_empty() {
            return Err(Error::new(format!("{setting:?} names no key"))
                .hint("write key=value, for example train.lr=1e-3"));
        }
        let parsed = format!("x = {value}").parse::<Table>().ok();
        let parsed =
            parsed.and_then(|mut table| if table.len() == 1 { table.remove("x") } else { None });
        if parsed.is_none() && value.starts_with(['[', '{', '"', '\'']) && !self.is_word(path) {
            let what = format!("{}: {} is no value of TOML", printable(setting), printable(value));
            return Err(Error::new(what).hint(
                "words in lists and tables stand in quotes, and a shell takes these away unless all is \
                 in single ones: --set 'at=[{step=3, then=\"bf16\"}]'",
            ));
        }
        let mut value = parsed.unwrap_or_else(|| Value::String(value.to_owned()));
        let mut changes = Table::new();
        for (depth, key) in path.rsplit('.').enumerate() {
            if depth > 0 {
                value = Value::Table(std::mem::take(&mut changes));
            }
            changes.insert(key.to_owned(), value.clone());
        }
        let mut table = self.all_keys();
        let in_words = |error: Error| Error::new(format!("{}: {error}", printable(setting)));
        overlay(&mut table, changes, "").map_err(in_words)?;
        Self::from_table(table).map_err(in_words)
    }

    /// This configuration with the keys that are not written.
    fn all_keys(&self) -> Table {
        let mut table = self.to_table();
        if let (Some(_), Some(Value::Table(model))) = (self.model.decoder(), table.get_mut("model"))
        {
            let unwritten = UNWRITTEN.parse::<Table>().expect("a constant that is TOML");
            for (key, value) in unwritten {
                model.entry(key).or_insert(value);
            }
        }
        table
    }

    /// Whether the value of a key is a text, which may look like anything.
    fn is_word(&self, path: &str) -> bool {
        let table = Value::Table(self.to_table());
        let found = path.split('.').try_fold(&table, |value, key| value.get(key));
        found.is_some_and(|value| value.is_str() || path == "recipe")
    }

    /// It as the values of its TOML form.
    ///
    /// # Panics
    /// If [`validate`](Self::validate) refuses the configuration.
    pub fn to_table(&self) -> Table {
        Table::try_from(self).expect("every field has a TOML form")
    }

    /// Refuses values with which no run is possible.
    ///
    /// # Errors
    /// Names the key, its value and what would work.
    pub fn validate(&self) -> Result<()> {
        self.model.validate().map_err(Error::from_cause)?;
        let train = &self.train;
        let refuse = |key: &str, value: String, hint: &str| {
            Err(Error::new(format!("{key} = {value} is impossible")).hint(hint))
        };
        // More would not fit a machine's memory, and products of sizes must not wrap.
        const MOST_TOKENS: usize = 1 << 26;
        let fits = |count: usize| {
            count.checked_mul(self.model.context()).is_some_and(|n| n <= MOST_TOKENS)
        };
        if train.batch == 0 {
            return refuse("train.batch", "0".into(), "at least 1 sequence");
        }
        if !fits(train.batch) {
            let sizes = format!("{} x {}", train.batch, self.model.context());
            return refuse("train.batch x model.context", sizes, "at most 2^26 tokens a step");
        }
        const MOST_PARAMETERS: u64 = 1 << 33;
        let (parameters, value) = match &self.model {
            model::Config::Decoder(sizes) => {
                let d = sizes.d_model as u64;
                let width = d.saturating_mul((sizes.d_model + sizes.hidden) as u64);
                let tables = (sizes.vocab as u64 + sizes.context as u64).saturating_mul(d);
                let value = format!(
                    "{} layers of d_model {}, hidden {}, vocab {}",
                    sizes.layers, sizes.d_model, sizes.hidden, sizes.vocab
                );
                (width.saturating_mul(sizes.layers as u64).saturating_add(tables), value)
            }
            model::Config::Proxy(sizes) => {
                let value = format!("{} layers of width {}", sizes.layers, sizes.width);
                (sizes.linear_parameters() as u64, value)
            }
        };
        if parameters > MOST_PARAMETERS {
            return refuse("model", value, "at most some 2^33 parameters, 100 GiB with moments");
        }
        // Each layer has tensors with names of their own, compared with which narrow layers are small.
        const MOST_LAYERS: usize = 1 << 16;
        let layers = match &self.model {
            model::Config::Decoder(sizes) => sizes.layers,
            model::Config::Proxy(sizes) => sizes.layers.max(sizes.teacher_depth()),
        };
        const MOST_STEPS: u64 = 1 << 36;
        let divides = train.accumulate > 0 && train.batch.is_multiple_of(train.accumulate);
        let divisor = format!("a divisor of train.batch = {}", train.batch);
        let below_1 = |value: f64| ((0.0..1.0).contains(&value), "from 0 to below 1");
        let finite =
            |value: f64| (value.is_finite() && value >= 0.0, "a finite number, not negative");
        let (data, window) = (&self.data, self.record.window);
        let (noise, share) =
            (below_1(data.noise).0, data.validation > 0.0 && data.validation < 1.0);
        let rows: [(&str, &dyn Display, (bool, &str)); 16] = [
            (
                "train.steps",
                &train.steps,
                ((1..=MOST_STEPS).contains(&train.steps), "from 1 to 2^36"),
            ),
            ("train.accumulate", &train.accumulate, (divides, &divisor)),
            ("record.window", &window, ((1..=1 << 16).contains(&window), "from 1 to 65536")),
            ("model.layers", &layers, (layers <= MOST_LAYERS, "at most 2^16")),
            ("seed", &self.seed, (self.seed >> 63 == 0, "below 2^63, the numbers TOML can hold")),
            ("train.beta1", &train.beta1, below_1(train.beta1)),
            ("train.beta2", &train.beta2, below_1(train.beta2)),
            ("train.momentum", &train.momentum, below_1(train.momentum)),
            ("data.noise", &data.noise, (noise, "a share of the tokens below 1, for example 0.1")),
            ("data.validation", &data.validation, (share, "between 0 and 1, for example 0.1")),
            ("train.lr", &train.lr, finite(train.lr)),
            ("train.lr_min", &train.lr_min, finite(train.lr_min)),
            ("train.eps", &train.eps, finite(train.eps)),
            ("train.weight_decay", &train.weight_decay, finite(train.weight_decay)),
            ("train.clip", &train.clip, finite(train.clip)),
            ("train.z_loss", &train.z_loss, finite(train.z_loss)),
        ];
        if let Some((key, value, (_, hint))) = rows.iter().find(|(.., (works, _))| !works) {
            return refuse(key, value.to_string(), hint);
        }
        let rules = self.when.iter().map(|when| &when.metric);
        let of_rules = rules.filter(|name| probe::exists(name)).map(|name| ("when", name));
        let wanted = self.record.probes.iter().map(|name| ("record.probes", name));
        for (key, name) in wanted.chain(of_rules) {
            // The reason with what would work stands below the key that asks for it.
            let probe = probe::by_name(name, &self.model)
                .map_err(|error| Error::new(format!("{key} = {name:?}: {error}")))?;
            if probe.needs().twin && self.start.is_branch() {
                let hint = "a branch has no twin, which begins with the run's own weights; leave it \
                            out, or begin a run";
                return refuse(key, format!("{name:?}"), hint);
            }
        }
        let (key, value, unset, hint) = match train.optimizer {
            Method::AdamW => {
                let hint = "AdamW has train.beta1; momentum is that of train.optimizer=sgd";
                ("train.momentum", train.momentum, 0.0, hint)
            }
            Method::Sgd => {
                let hint = "SGD has train.momentum; beta1 is that of train.optimizer=adamw";
                ("train.beta1", train.beta1, AdamW::default().beta1, hint)
            }
        };
        if value != unset {
            return refuse(key, value.to_string(), hint);
        }
        if train.z_loss != 0.0 && self.model.decoder().is_none() {
            let hint = "0: it is of the logits of a model of tokens; the proxy has none";
            return refuse("train.z_loss", train.z_loss.to_string(), hint);
        }
        if !self.start.is_branch() && self.start.step != 0 {
            let hint = "it is a step of start.run, which is empty; --branch RUN@STEP sets both";
            return refuse("start.step", self.start.step.to_string(), hint);
        }
        if self.start.is_branch() && !self.start.weights.is_empty() {
            let hint = "a branch has the weights of its checkpoint";
            return refuse("start.weights", format!("{:?}", self.start.weights), hint);
        }
        if train.warmup > train.steps {
            let value = train.warmup.to_string();
            let hint = format!(
                "at most train.steps = {0}; `steps` of a plan and `--steps {0}` make the warm-up \
                 shorter with the run",
                train.steps
            );
            return refuse("train.warmup", value, &hint);
        }
        self.stop.validate()?;
        let steps = self.train.steps;
        trigger::validate(&self.recipe, (&self.at, &self.when), &self.model.layout(), steps)
    }
}
