//! The choices a model is put together from, each with its word in a configuration.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ConfigError;
use crate::nn::rope::Scaling;

/// Whether queries and keys are normalized, by the model's [`Norm`](crate::nn::norm::Norm), before they are
/// rotated (arXiv 2302.05442).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QkNorm {
    /// They are not.
    #[default]
    None,
    /// Each head by itself, with one gain of the head's size for all heads (Qwen3).
    Head,
    /// All heads of a token together (OLMo).
    Full,
}

/// Where a block has its norms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NormPlace {
    /// Before the mixer and before the MLP, `h += mlp(norm(h))` (GPT-2, Llama).
    #[default]
    Before,
    /// After them, `h += norm(mlp(h))` (OLMo 2, arXiv 2501.00656).
    After,
}

/// Which linear operators add a bias to their products. A gated linear attention has those of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Biases {
    /// Those of queries, keys and values of softmax attention (Qwen2).
    pub qkv: bool,
    /// The output of softmax attention.
    pub o: bool,
    /// Those of the MLP (GPT-2, which has all).
    pub mlp: bool,
}

/// How a token knows its place. Text: `learned`, `rope`, `rope:500000`, `none`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Position {
    /// A trained vector for each place of the context, added to the token's.
    Learned,
    /// Queries and keys of softmax attention are rotated (see [`crate::nn::rope`]).
    Rope {
        /// The slowest pair of a long head turns once in about 2π times this many tokens.
        base: f64,
    },
    /// Not at all, except by causality or by the decay of gated linear attention.
    None,
}

/// The base of the rotary paper, which `rope` alone stands for.
const ROPE_BASE: f64 = 10_000.0;

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Learned => f.write_str("learned"),
            Self::Rope { base } if *base == ROPE_BASE => f.write_str("rope"),
            Self::Rope { base } => write!(f, "rope:{base}"),
            Self::None => f.write_str("none"),
        }
    }
}

impl FromStr for Position {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let base = match text {
            "learned" => return Ok(Self::Learned),
            "none" => return Ok(Self::None),
            "rope" => Some(ROPE_BASE),
            _ => text.strip_prefix("rope:").and_then(|base| base.parse().ok()),
        };
        base.map(|base| Self::Rope { base }).ok_or_else(|| {
            let works = "`learned`, `rope`, `rope:BASE` or `none`";
            ConfigError::new("position", format!("`{text}`"), works)
        })
    }
}

impl fmt::Display for Scaling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Linear { factor } => write!(f, "linear:{factor}"),
            Self::Llama3 { factor, low, high, context } => {
                write!(f, "llama3:{factor}:{low}:{high}:{context}")
            }
        }
    }
}

impl FromStr for Scaling {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let mut words = text.split(':');
        let kind = words.next();
        let numbers: Option<Vec<f64>> = words.map(|word| word.parse().ok()).collect();
        match (kind, numbers.as_deref()) {
            (Some("none"), Some([])) => Ok(Self::None),
            (Some("linear"), Some(&[factor])) => Ok(Self::Linear { factor }),
            (Some("llama3"), Some(&[factor, low, high, context])) => {
                Ok(Self::Llama3 { factor, low, high, context })
            }
            _ => {
                let works = "`none`, `linear:FACTOR` or `llama3:FACTOR:LOW:HIGH:CONTEXT`";
                Err(ConfigError::new("rope_scaling", format!("`{text}`"), works))
            }
        }
    }
}

/// The conversions that serde takes by way of the text form.
macro_rules! by_text {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = ConfigError;

            fn try_from(text: String) -> Result<Self, ConfigError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.to_string()
            }
        }
    };
}

by_text!(Position);
by_text!(Mixers);
by_text!(Scaling);

/// The part of a block between its second norm and the residual stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mlp {
    /// `down(gelu(up(x)))`, the exact GELU (arXiv 1606.08415).
    Gelu,
    /// `down(gelu(up(x)))`, GELU by the hyperbolic tangent (GPT-2).
    GeluTanh,
    /// `down(relu(up(x)))`.
    Relu,
    /// `down(relu(up(x))²)` (arXiv 2109.08668).
    SquaredRelu,
    /// `down(silu(gate(x)) * up(x))` (arXiv 2002.05202).
    Swiglu,
}

impl Mlp {
    /// Whether a gate of its own multiplies what goes up.
    pub const fn is_gated(self) -> bool {
        matches!(self, Self::Swiglu)
    }
}

/// What lets a layer's tokens see each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mixer {
    /// Causal softmax attention ([`crate::nn::attention`]).
    Attention,
    /// Gated linear attention ([`crate::nn::gla`]).
    Gla,
}

/// The mixer of each layer. Text: `attention`, `gla`, or a list that is repeated over the layers,
/// `gla,gla,attention`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mixers {
    /// Length of the list, from 1 to 64.
    period: u8,
    /// Bit i: the i-th of the list is gated linear attention.
    gla: u64,
}

impl Mixers {
    /// The mixer of a layer, from 0.
    pub const fn of(self, layer: usize) -> Mixer {
        if self.gla >> (layer % self.period as usize) & 1 == 1 {
            Mixer::Gla
        } else {
            Mixer::Attention
        }
    }

    /// Whether some of the first `layers` layers has this mixer.
    pub fn any(self, mixer: Mixer, layers: usize) -> bool {
        (0..layers.min(64)).any(|layer| self.of(layer) == mixer)
    }

    /// The same mixer in every layer.
    pub const fn all(mixer: Mixer) -> Self {
        Self { period: 1, gla: matches!(mixer, Mixer::Gla) as u64 }
    }
}

impl Default for Mixers {
    /// `attention`.
    fn default() -> Self {
        Self::all(Mixer::Attention)
    }
}

impl fmt::Display for Mixers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for layer in 0..usize::from(self.period) {
            f.write_str(if layer > 0 { "," } else { "" })?;
            f.write_str(match self.of(layer) {
                Mixer::Attention => "attention",
                Mixer::Gla => "gla",
            })?;
        }
        Ok(())
    }
}

impl FromStr for Mixers {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let wrong = || {
            let works = "`attention`, `gla`, or a list of at most 64 of them, repeated over the \
                         layers: `gla,gla,attention`";
            ConfigError::new("mixer", format!("`{text}`"), works)
        };
        let mut mixers = Self { period: 0, gla: 0 };
        for word in text.split(',') {
            if mixers.period == 64 {
                return Err(wrong());
            }
            match word.trim() {
                "attention" => {}
                "gla" => mixers.gla |= 1 << mixers.period,
                _ => return Err(wrong()),
            }
            mixers.period += 1;
        }
        Ok(mixers)
    }
}

/// How weights start. Biases start at 0, gains of norms as `gain_init` and `gain_spread` say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitScheme {
    /// nanoGPT's: N(0, 0.02), the outputs onto the residual stream (o, down) 0.02 / sqrt(2 layers).
    Gpt2,
    /// TinyLlama's: N(0, sqrt(2 / (5 d))), the outputs onto the residual stream
    /// 1 / (sqrt(d) layers). Learned positions, which it lacks, start like its embeddings.
    TinyLlama,
    /// OLMo's: normal values cut at three standard deviations of 1 / sqrt(fan in), the outputs onto
    /// the residual stream of layer l, from 0, smaller by sqrt(2 (l + 1)). Tables have a fan of d.
    Mitchell,
    /// N(0, 0.02) for everything, as Flash Linear Attention and Hugging Face have it: `normal`.
    Normal,
}
