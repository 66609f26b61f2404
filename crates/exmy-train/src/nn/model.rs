//! What a trainer asks of a model, whatever its family: the [`Decoder`](crate::nn::decoder) of
//! tokens or the student of the [`proxy`].
//!
//! Parameters and gradients are arenas of the trainer's; a model owns its structure, its working
//! memory and, where it has one, the teacher that makes its targets. All of it lies on one
//! [device](super::device).

use serde::{Deserialize, Deserializer, Serialize};

pub use crate::nn::batch::{Batch, Model};

use crate::nn::decoder::{self, ConfigError, Decoder};
use crate::nn::device::{Cpu, Device};
use crate::nn::parameters::Layout;
use crate::nn::proxy::{self, Proxy};

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

    /// Whether MLPs have a gate as well as what goes up.
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

    /// The model on the CPU, as [`build`](Self::build) makes it, which each crate that calls it compiles.
    ///
    /// # Errors
    /// As there.
    pub fn on_cpu(&self, seed: u64) -> Result<Box<dyn Model<Cpu>>, ConfigError> {
        self.build(&Cpu::new(), seed)
    }

    /// The model on a device, with what it draws (a teacher) from `seed`.
    ///
    /// # Errors
    /// If the shape is none.
    pub fn build<D: Device>(
        &self,
        device: &D,
        seed: u64,
    ) -> Result<Box<dyn Model<D>>, ConfigError> {
        let device = device.clone();
        Ok(match self {
            Self::Decoder(config) => Box::new(Decoder::on(device, *config)?),
            Self::Proxy(config) => Box::new(Proxy::on(device, *config, seed)?),
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
