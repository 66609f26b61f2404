//! What a trainer asks of a model, whatever its family: the [`Decoder`](crate::nn::decoder) of
//! tokens or the student of the [`proxy`].
//!
//! Parameters and gradients are arenas of the trainer's; a model owns its structure, its working
//! memory and, where it has one, the teacher that makes its targets.

use serde::{Deserialize, Deserializer, Serialize};

use crate::nn::decoder::{self, ConfigError, Decoder};
use crate::nn::linear::Products;
use crate::nn::parameters::Layout;
use crate::nn::proxy::{self, Proxy};
use crate::nn::real::Real;
use exmy::random::Stream;

/// What one pass is over.
#[derive(Clone, Copy, Debug)]
pub enum Batch<'a> {
    /// Sequences of tokens, one after the other, and the token that follows each.
    Tokens {
        /// What is read.
        tokens: &'a [u32],
        /// What is predicted.
        targets: &'a [u32],
        /// How many sequences of equal length they are.
        sequences: usize,
    },
    /// Rows that the model draws by address and labels by its teacher.
    Drawn {
        /// Seed of the run.
        seed: u64,
        /// Which part of the data.
        stream: Stream,
        /// The first row of that part.
        first: u64,
        /// How many rows.
        rows: usize,
    },
}

impl Batch<'_> {
    /// Losses of this batch: one a token, or one a row.
    pub const fn len(&self) -> usize {
        match self {
            Self::Tokens { tokens, .. } => tokens.len(),
            Self::Drawn { rows, .. } => *rows,
        }
    }

    /// Whether there is nothing in it.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A model in training.
pub trait Model<T: Real>: Send {
    /// The table of the parameter arena.
    fn layout(&self) -> &Layout;

    /// The mean loss of `batch`; adds its gradient to `grads`, which has the layout of `params`.
    ///
    /// # Panics
    /// If the lengths do not fit the layout, or `batch` is not of the model's kind and sizes.
    fn forward_backward(
        &mut self,
        params: &[T],
        grads: &mut [T],
        batch: &Batch<'_>,
        products: &mut dyn Products<T>,
    ) -> f64;

    /// The loss of each token or row of `batch`, without gradients.
    ///
    /// # Panics
    /// As [`forward_backward`](Self::forward_backward), and if `losses` has not [`Batch::len`]
    /// elements.
    fn losses(
        &mut self,
        params: &[T],
        batch: &Batch<'_>,
        products: &mut dyn Products<T>,
        losses: &mut [T],
    );

    /// From now on gradients are those of the loss plus `coefficient` times the mean square of the
    /// logarithm of the softmax's normalizer, where the model has a softmax over tokens; the losses
    /// that are returned stay without.
    fn set_z_loss(&mut self, _coefficient: f64) {}

    /// The logits of what follows one sequence; `None` of a model that reads no tokens.
    ///
    /// # Panics
    /// As [`Decoder::last_logits`].
    fn last_logits(
        &mut self,
        _params: &[T],
        _tokens: &[u32],
        _products: &mut dyn Products<T>,
    ) -> Option<&[T]> {
        None
    }
}

/// `[model]` of a configuration: the key `family`, `decoder` unless said otherwise, and the keys
/// of that family.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "family", rename_all = "kebab-case")]
pub enum Config {
    /// A decoder-only language model.
    Decoder(decoder::Config),
    /// The student-teacher residual MLP.
    Proxy(proxy::Config),
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        use toml::{Table, Value};
        let mut table = Table::deserialize(deserializer)?;
        let family = table.remove("family").unwrap_or_else(|| Value::String("decoder".into()));
        let read = match family.as_str() {
            Some("decoder") => table.try_into().map(Self::Decoder),
            Some("proxy") => table.try_into().map(Self::Proxy),
            _ => {
                let works = "family of models; there are decoder, proxy";
                return Err(D::Error::custom(format!("{family} is no {works}")));
            }
        };
        read.map_err(|error: toml::de::Error| {
            let message = error.message();
            let wrong_family = if message.contains("field") {
                format!(" (of the family {family}; another has other keys and presets)")
            } else {
                String::new()
            };
            D::Error::custom(format!("{message}{wrong_family}"))
        })
    }
}

impl Config {
    /// Whether these sizes make a model.
    ///
    /// # Errors
    /// Names the first key that does not fit, what it holds and what would work.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::Decoder(config) => config.validate(),
            Self::Proxy(config) => config.validate(),
        }
    }

    /// Whether MLPs have a gate beside what goes up.
    pub fn is_gated(&self) -> bool {
        match self {
            Self::Decoder(config) => config.mlp == decoder::Mlp::Swiglu,
            Self::Proxy(config) => config.activation == proxy::Activation::Swiglu,
        }
    }

    /// The arena of the parameters.
    pub fn layout(&self) -> Layout {
        match self {
            Self::Decoder(config) => config.layout(),
            Self::Proxy(config) => config.layout(),
        }
    }

    /// Fresh parameters under `seed`.
    pub fn initialize(&self, seed: u64) -> Vec<f32> {
        match self {
            Self::Decoder(config) => config.initialize(seed),
            Self::Proxy(config) => config.layout().initialize(seed),
        }
    }

    /// The model, with what it draws (a teacher) from `seed`.
    ///
    /// # Errors
    /// If the shape is none.
    pub fn build<T: Real>(&self, seed: u64) -> Result<Box<dyn Model<T>>, ConfigError> {
        Ok(match self {
            Self::Decoder(config) => Box::new(Decoder::new(*config)?),
            Self::Proxy(config) => Box::new(Proxy::new(*config, seed)?),
        })
    }

    /// Tokens of a sequence; a row of the proxy counts as one token.
    pub const fn context(&self) -> usize {
        match self {
            Self::Decoder(config) => config.context,
            Self::Proxy(_) => 1,
        }
    }

    /// What a loss is in.
    pub const fn loss_unit(&self) -> &'static str {
        match self {
            Self::Decoder(_) => "nats per token",
            Self::Proxy(config) => match config.loss {
                proxy::Loss::Mse => "mean squared error",
                proxy::Loss::Kl => "nats per row",
            },
        }
    }

    /// Blocks.
    pub const fn layers(&self) -> usize {
        match self {
            Self::Decoder(config) => config.layers,
            Self::Proxy(config) => config.layers,
        }
    }

    /// The shape of a model of tokens.
    pub const fn decoder(&self) -> Option<&decoder::Config> {
        match self {
            Self::Decoder(config) => Some(config),
            Self::Proxy(_) => None,
        }
    }

    /// The shape of a model of tokens, to be changed.
    pub const fn decoder_mut(&mut self) -> Option<&mut decoder::Config> {
        match self {
            Self::Decoder(config) => Some(config),
            Self::Proxy(_) => None,
        }
    }

    /// Multiplications and additions that training on one token, or row, takes, those of the proxy's
    /// teacher among them.
    pub fn flops_per_token(&self) -> u64 {
        match self {
            Self::Decoder(config) => config.flops_per_token(),
            Self::Proxy(config) => config.flops_per_row(),
        }
    }
}

impl From<decoder::Config> for Config {
    fn from(config: decoder::Config) -> Self {
        Self::Decoder(config)
    }
}

impl From<proxy::Config> for Config {
    fn from(config: proxy::Config) -> Self {
        Self::Proxy(config)
    }
}
