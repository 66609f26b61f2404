//! The shape of a decoder: what `[model]` in a run's configuration says.
//!
//! The choices cover
//! * GPT-2: layer norm, learned positions, GELU by the hyperbolic tangent, biases, tied head; nanoGPT's
//!   variant without biases and with the exact GELU;
//! * Llama, Mistral: RMS norm, rotary positions, SwiGLU, grouped key heads, untied head;
//! * OLMo: layer norm without bias, also over all queries and all keys; OLMo 2: RMS norms after what they
//!   norm;
//! * Qwen2: Llama with biases of q, k, v; Qwen3: RMS norm over each head's queries and keys, heads of a size
//!   of their own;
//! * the gated linear attention of Flash Linear Attention.
//!
//! Any mixture works, each layer with the mixer that [`Mixers`] gives it.

#[doc(hidden)]
pub mod check;
mod choices;
mod layout;

pub use crate::nn::norm::Norm;
pub use crate::nn::rope::Scaling;
pub use check::ConfigError;
pub(crate) use check::size;
pub use choices::{Biases, InitScheme, Mixer, Mixers, Mlp, NormPlace, Position, QkNorm};

use serde::{Deserialize, Serialize};

/// The shape of a decoder-only transformer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Number of tokens there are.
    pub vocab: usize,
    /// The longest sequence.
    pub context: usize,
    /// Number of blocks.
    pub layers: usize,
    /// Width of the residual stream.
    pub d_model: usize,
    /// Query heads of softmax attention; divides `d_model` where `head_dim` is not given.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Elements of a head of softmax attention; 0: `d_model / heads`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub head_dim: usize,
    /// Width inside the MLP.
    pub hidden: usize,
    /// What mixes the tokens of each layer.
    #[serde(default)]
    pub mixer: Mixers,
    /// Which norm.
    pub norm: Norm,
    /// Where a block has its norms.
    #[serde(default, skip_serializing_if = "is_default")]
    pub norm_place: NormPlace,
    /// Whether norms have a gain.
    #[serde(default = "yes")]
    pub norm_affine: bool,
    /// Whether layer norms have an additive vector.
    pub norm_bias: bool,
    /// Added to the variance or mean square.
    pub norm_eps: f64,
    /// Whether queries and keys are normalized before they are rotated.
    #[serde(default)]
    pub qk_norm: QkNorm,
    /// How tokens know their place.
    pub position: Position,
    /// Whether a learned vector stands in place of every sequence's first token, a place that
    /// attention can rest on.
    #[serde(default)]
    pub sink: bool,
    /// Which MLP.
    pub mlp: Mlp,
    /// Whether the head's weight is the embedding table.
    pub tied: bool,
    /// How weights start.
    pub init: InitScheme,
    /// Mean of the gains of norms at the start.
    #[serde(default = "one")]
    pub gain_init: f64,
    /// Standard deviation of the gains of norms at the start.
    #[serde(default)]
    pub gain_spread: f64,
    /// Channels planted hot: their gains start `hot_scale` times as large, the columns of the
    /// weights that read them as much smaller, so that the function is the same.
    #[serde(default)]
    pub hot_channels: usize,
    /// By how much; a power of two changes no bit of the function.
    #[serde(default = "sixteen")]
    pub hot_scale: f64,
    /// How rotations are slowed down for a long context: `none`, `linear:FACTOR`,
    /// `llama3:FACTOR:LOW:HIGH:CONTEXT`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rope_scaling: Scaling,
    /// Which linear operators have a bias.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bias: Biases,
    /// The layers of gated linear attention.
    #[serde(default)]
    pub gla: Gla,
    /// The seed of a rotation of what the MLPs' last products read, done while the model computes: its
    /// weights were made for it. Published models have it; none is trained.
    #[serde(skip)]
    pub rotate_down: Option<u64>,
}

/// The keys of choices that came later, with their defaults. They are not written where they have these: a
/// run's name is a hash of what is written.
pub(crate) const UNWRITTEN: &str = "head_dim = 0\nnorm_place = 'before'\nrope_scaling = 'none'\n\
                                    bias = { qkv = false, o = false, mlp = false }";

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn yes() -> bool {
    true
}

fn one() -> f64 {
    1.0
}

fn sixteen() -> f64 {
    16.0
}

/// The shape of a layer of gated linear attention (arXiv 2312.06635), with the defaults of Flash
/// Linear Attention.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Gla {
    /// Heads.
    pub heads: usize,
    /// Width of all keys together as a part of `d_model`.
    pub expand_k: f64,
    /// Width of all values together as a part of `d_model`.
    pub expand_v: f64,
    /// Rank of the decay gate's weight.
    pub gate_rank: usize,
    /// The decay is `sigmoid(z)^(1 / gate_tau)`.
    pub gate_tau: f64,
    /// Smallest logarithm of a decay; 0: none.
    pub gate_min: f64,
}

impl Default for Gla {
    fn default() -> Self {
        Self {
            heads: 4,
            expand_k: 0.5,
            expand_v: 1.0,
            gate_rank: 16,
            gate_tau: 16.0,
            gate_min: 0.0,
        }
    }
}

impl Default for Config {
    /// A Llama of two layers for bytes.
    fn default() -> Self {
        Self {
            vocab: 256,
            context: 64,
            layers: 2,
            d_model: 64,
            heads: 4,
            kv_heads: 1,
            head_dim: 0,
            hidden: 176,
            mixer: Mixers::default(),
            norm: Norm::RmsNorm,
            norm_place: NormPlace::Before,
            norm_affine: true,
            norm_bias: false,
            norm_eps: 1e-5,
            qk_norm: QkNorm::None,
            position: Position::Rope { base: 10_000.0 },
            sink: false,
            mlp: Mlp::Swiglu,
            tied: false,
            init: InitScheme::TinyLlama,
            gain_init: 1.0,
            gain_spread: 0.0,
            hot_channels: 0,
            hot_scale: 16.0,
            rope_scaling: Scaling::None,
            bias: Biases::default(),
            gla: Gla::default(),
            rotate_down: None,
        }
    }
}

impl Config {
    /// Elements of a head of softmax attention.
    pub const fn head_dim(&self) -> usize {
        if self.head_dim == 0 { self.d_model / self.heads } else { self.head_dim }
    }

    /// Width of all query heads, and of what softmax attention writes.
    pub const fn query_width(&self) -> usize {
        self.heads * self.head_dim()
    }

    /// Output features of the group q|k|v of softmax attention.
    pub const fn qkv_outputs(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.head_dim()
    }

    /// Width of all keys, and of all queries, of gated linear attention.
    pub const fn gla_keys(&self) -> usize {
        (self.d_model as f64 * self.gla.expand_k) as usize
    }

    /// Width of all values of gated linear attention.
    pub const fn gla_values(&self) -> usize {
        (self.d_model as f64 * self.gla.expand_v) as usize
    }

    /// Output features of the group q|k|v|g|gk of gated linear attention.
    pub const fn gla_outputs(&self) -> usize {
        2 * self.gla_keys() + 2 * self.gla_values() + self.gla.gate_rank
    }

    /// Output features of the group gate|up, or of up alone.
    pub const fn mlp_outputs(&self) -> usize {
        if self.mlp.is_gated() { 2 * self.hidden } else { self.hidden }
    }

    /// Weights of the linear operators of one block.
    const fn block_weights(&self, mixer: Mixer) -> usize {
        let mixing = match mixer {
            Mixer::Attention => self.d_model * (self.qkv_outputs() + self.query_width()),
            Mixer::Gla => {
                self.d_model * (self.gla_outputs() + self.gla_values())
                    + self.gla.gate_rank * self.gla_keys()
            }
        };
        mixing + self.d_model * (self.mlp_outputs() + self.hidden)
    }

    /// Weights of all linear operators, the head's included whether tied or not.
    pub fn linear_parameters(&self) -> usize {
        let blocks = (0..self.layers).map(|layer| self.block_weights(self.mixer.of(layer)));
        blocks.sum::<usize>() + self.d_model * self.vocab
    }

    /// Multiplications and additions that training on one token takes, at full context.
    ///
    /// A linear operator has 6 per weight: 2 each for forward, `grad_input` and `grad_weight`. Each of
    /// the two products of attention has 6 per position and head dimension, and sees
    /// (context + 1) / 2 positions in the mean. Gated linear attention has 6 per element of the state
    /// for what goes in, and as many for what is read. Norms, activations and the optimizer are not
    /// counted.
    pub fn flops_per_token(&self) -> u64 {
        let mixing = |layer| match self.mixer.of(layer) {
            Mixer::Attention => self.query_width() as u64 * (self.context as u64 + 1),
            Mixer::Gla => 2 * self.gla_keys() as u64 * (self.gla_values() / self.gla.heads) as u64,
        };
        6 * (self.linear_parameters() as u64 + (0..self.layers).map(mixing).sum::<u64>())
    }
}
