//! The shape of a decoder: what `[model]` in a run's configuration says.
//!
//! The choices cover GPT-2 (layer norm, learned positions, GELU, tied head; nanoGPT's variant
//! without biases) and Llama (RMS norm, rotary positions, SwiGLU, grouped key heads, untied head);
//! any mixture works. Linear operators have no bias.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::nn::parameters::{Init, Layout, Role};

/// How a row is normalized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// To mean 0 and variance 1 (arXiv 1607.06450): `layer-norm`.
    LayerNorm,
    /// To mean square 1 (arXiv 1910.07467): `rms-norm`.
    RmsNorm,
}

/// How a token knows its place. Text: `learned`, `rope`, `rope:500000`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Position {
    /// A trained vector for each place of the context, added to the token's.
    Learned,
    /// Queries and keys are rotated (see [`crate::nn::rope`]).
    Rope {
        /// The slowest pair of a long head turns once in about 2π times this many tokens.
        base: f64,
    },
}

/// The base of the rotary paper, which `rope` alone stands for.
const ROPE_BASE: f64 = 10_000.0;

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Learned => f.write_str("learned"),
            Self::Rope { base } if *base == ROPE_BASE => f.write_str("rope"),
            Self::Rope { base } => write!(f, "rope:{base}"),
        }
    }
}

impl FromStr for Position {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let base = match text {
            "learned" => return Ok(Self::Learned),
            "rope" => Some(ROPE_BASE),
            _ => text.strip_prefix("rope:").and_then(|base| base.parse().ok()),
        };
        base.map(|base| Self::Rope { base }).ok_or_else(|| {
            ConfigError::new("position", format!("`{text}`"), "`learned`, `rope` or `rope:BASE`")
        })
    }
}

impl TryFrom<String> for Position {
    type Error = ConfigError;

    fn try_from(text: String) -> Result<Self, ConfigError> {
        text.parse()
    }
}

impl From<Position> for String {
    fn from(position: Position) -> Self {
        position.to_string()
    }
}

/// The part of a block between its second norm and the residual stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mlp {
    /// `down(gelu(up(x)))`, the exact GELU (arXiv 1606.08415).
    Gelu,
    /// `down(silu(gate(x)) * up(x))` (arXiv 2002.05202).
    Swiglu,
}

/// How weights start. Norm gains start at 1, biases at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitScheme {
    /// nanoGPT's: N(0, 0.02), the outputs onto the residual stream (o, down) 0.02 / sqrt(2 layers).
    Gpt2,
    /// TinyLlama's: N(0, sqrt(2 / (5 d))), the outputs onto the residual stream
    /// 1 / (sqrt(d) layers). Learned positions, which it lacks, start like its embeddings.
    TinyLlama,
}

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
    /// Query heads; divides `d_model`.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width inside the MLP.
    pub hidden: usize,
    /// Which norm.
    pub norm: Norm,
    /// Whether layer norms have an additive vector.
    pub norm_bias: bool,
    /// Added to the variance or mean square.
    pub norm_eps: f64,
    /// How tokens know their place.
    pub position: Position,
    /// Which MLP.
    pub mlp: Mlp,
    /// Whether the head's weight is the embedding table.
    pub tied: bool,
    /// How weights start.
    pub init: InitScheme,
}

/// Why a [`Config`] is no model: the key, what it holds, what would work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    key: &'static str,
    found: String,
    works: String,
}

impl ConfigError {
    fn new(key: &'static str, found: impl fmt::Display, works: impl Into<String>) -> Self {
        Self { key, found: found.to_string(), works: works.into() }
    }

    /// The key that is wrong.
    pub fn key(&self) -> &'static str {
        self.key
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "model: {} is {}; it must be {}", self.key, self.found, self.works)
    }
}

impl std::error::Error for ConfigError {}

/// No size of a model that a person means exceeds this; products of two sizes then fit a `usize`.
const LARGEST: usize = 1 << 24;

impl Config {
    /// Whether these sizes make a model.
    ///
    /// # Errors
    /// Names the first key that does not fit, what it holds and what would work.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let sizes = [
            ("vocab", self.vocab),
            ("context", self.context),
            ("layers", self.layers),
            ("d_model", self.d_model),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("hidden", self.hidden),
        ];
        for (key, size) in sizes {
            if size == 0 || size > LARGEST {
                return Err(ConfigError::new(key, size, format!("from 1 to {LARGEST}")));
            }
        }
        if !self.d_model.is_multiple_of(self.heads) {
            let works = divisors(self.d_model);
            let works = format!("a divisor of d_model = {}: {works}", self.d_model);
            return Err(ConfigError::new("heads", self.heads, works));
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            let works = format!("a divisor of heads = {}: {}", self.heads, divisors(self.heads));
            return Err(ConfigError::new("kv_heads", self.kv_heads, works));
        }
        if !(self.norm_eps > 0.0 && self.norm_eps < 1.0) {
            return Err(ConfigError::new("norm_eps", self.norm_eps, "above 0 and below 1"));
        }
        if self.norm == Norm::RmsNorm && self.norm_bias {
            return Err(ConfigError::new("norm_bias", true, "false with norm = \"rms-norm\""));
        }
        if let Position::Rope { base } = self.position {
            if !(base >= 1.0 && base.is_finite()) {
                let works = "learned, or rope with a finite base of at least 1";
                return Err(ConfigError::new("position", self.position, works));
            }
            if !self.head_dim().is_multiple_of(2) {
                let works = format!(
                    "such that d_model / heads is even for position = \"rope\" \
                     (it is {} / {} = {})",
                    self.d_model,
                    self.heads,
                    self.head_dim()
                );
                return Err(ConfigError::new("heads", self.heads, works));
            }
        }
        let tables = (self.vocab + self.context) as u128 * self.d_model as u128;
        let all = (self.block_weights() as u128) * self.layers as u128 + 2 * tables;
        if all > 1 << 40 {
            let works = "fewer: the model would have more than 2^40 parameters";
            return Err(ConfigError::new("layers", self.layers, works));
        }
        Ok(())
    }

    /// Elements of a head.
    pub const fn head_dim(&self) -> usize {
        self.d_model / self.heads
    }

    /// Output features of the group q|k|v.
    pub const fn qkv_outputs(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.head_dim()
    }

    /// Output features of the group gate|up, or of up alone.
    pub const fn mlp_outputs(&self) -> usize {
        match self.mlp {
            Mlp::Gelu => self.hidden,
            Mlp::Swiglu => 2 * self.hidden,
        }
    }

    /// Weights of the linear operators of one block.
    const fn block_weights(&self) -> usize {
        self.d_model * (self.qkv_outputs() + self.d_model + self.mlp_outputs() + self.hidden)
    }

    /// Weights of all linear operators, the head's included whether tied or not.
    pub const fn linear_parameters(&self) -> usize {
        self.layers * self.block_weights() + self.d_model * self.vocab
    }

    /// Multiplications and additions that training on one token takes, at full context: 6 per
    /// weight of a linear operator (2 each for forward, `grad_input`, `grad_weight`), and for the
    /// two products of attention, which see (context + 1) / 2 positions in the mean, 6 per position,
    /// head dimension and product. Norms, activations and the optimizer are not counted.
    pub const fn flops_per_token(&self) -> u64 {
        let attention = self.layers as u64 * self.d_model as u64 * (self.context as u64 + 1);
        6 * (self.linear_parameters() as u64 + attention)
    }

    /// The arena of the parameters. q, k, v are adjacent, and so are gate and up, so that a group
    /// is one matrix; a norm's bias follows its gain. A tied head has no entry of its own.
    ///
    /// # Panics
    /// If the sizes exceed memory's address space, which [`validate`](Self::validate) excludes.
    pub fn layout(&self) -> Layout {
        let (d, hd) = (self.d_model, self.head_dim());
        let (plain, residual) = match self.init {
            InitScheme::Gpt2 => (0.02, 0.02 / libm::sqrt(2.0 * self.layers as f64)),
            InitScheme::TinyLlama => {
                let d = d as f64;
                (libm::sqrt(2.0 / (5.0 * d)), 1.0 / (libm::sqrt(d) * self.layers as f64))
            }
        };
        let mut layout = Layout::default();
        let table = |layout: &mut Layout, name: &str, rows: usize, role: Role| {
            layout.push(name.to_owned(), &[rows, d], role, Init::Normal { std: plain });
        };
        let norm = |layout: &mut Layout, name: &str| {
            layout.push(format!("{name}.weight"), &[d], Role::Norm, Init::Ones);
            if self.norm_bias {
                layout.push(format!("{name}.bias"), &[d], Role::Bias, Init::Zeros);
            }
        };
        table(&mut layout, "model.embed_tokens.weight", self.vocab, Role::Embedding);
        if self.position == Position::Learned {
            table(&mut layout, "model.embed_positions.weight", self.context, Role::Embedding);
        }
        for layer in 0..self.layers {
            let block = format!("model.layers.{layer}");
            let matrix = |layout: &mut Layout, name: &str, rows: usize, cols: usize, std: f64| {
                let name = format!("{block}.{name}.weight");
                layout.push(name, &[rows, cols], Role::Matrix, Init::Normal { std });
            };
            norm(&mut layout, &format!("{block}.input_layernorm"));
            matrix(&mut layout, "self_attn.q_proj", self.heads * hd, d, plain);
            matrix(&mut layout, "self_attn.k_proj", self.kv_heads * hd, d, plain);
            matrix(&mut layout, "self_attn.v_proj", self.kv_heads * hd, d, plain);
            matrix(&mut layout, "self_attn.o_proj", d, self.heads * hd, residual);
            norm(&mut layout, &format!("{block}.post_attention_layernorm"));
            if self.mlp == Mlp::Swiglu {
                matrix(&mut layout, "mlp.gate_proj", self.hidden, d, plain);
            }
            matrix(&mut layout, "mlp.up_proj", self.hidden, d, plain);
            matrix(&mut layout, "mlp.down_proj", d, self.hidden, residual);
        }
        norm(&mut layout, "model.norm");
        if !self.tied {
            table(&mut layout, "lm_head.weight", self.vocab, Role::Matrix);
        }
        layout
    }
}

/// The divisors of a size, for the person who must choose one.
fn divisors(size: usize) -> String {
    let all: Vec<_> = (1..=size.min(1 << 12)).filter(|n| size.is_multiple_of(*n)).collect();
    all.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nano() -> Config {
        Config {
            vocab: 256,
            context: 64,
            layers: 4,
            d_model: 128,
            heads: 4,
            kv_heads: 4,
            hidden: 512,
            norm: Norm::LayerNorm,
            norm_bias: false,
            norm_eps: 1e-5,
            position: Position::Learned,
            mlp: Mlp::Gelu,
            tied: true,
            init: InitScheme::Gpt2,
        }
    }

    /// Counted by hand: 256*128 + 64*128 + 4*(2*128 + 4*128*128 + 2*128*512) + 128, and the linear
    /// operators 4*(4*128*128 + 2*128*512) + 256*128.
    #[test]
    fn sizes_by_hand() {
        let config = nano();
        assert_eq!(config.layout().len(), 828_544);
        assert_eq!(config.linear_parameters(), 819_200);
        assert_eq!(config.flops_per_token(), 6 * (819_200 + 4 * 128 * 65));
        // TinyLlama's 120M configuration: 12 layers, d 768, 12 heads of which one key head.
        let llama = Config {
            vocab: 32_000,
            context: 2048,
            layers: 12,
            d_model: 768,
            heads: 12,
            kv_heads: 1,
            hidden: 2048,
            norm: Norm::RmsNorm,
            position: Position::Rope { base: 10_000.0 },
            mlp: Mlp::Swiglu,
            tied: false,
            init: InitScheme::TinyLlama,
            ..config
        };
        assert_eq!(llama.validate(), Ok(()));
        let block = 768 * (768 + 2 * 64) + 768 * 768 + 3 * 768 * 2048 + 2 * 768;
        assert_eq!(llama.layout().len(), 2 * 32_000 * 768 + 12 * block + 768);
    }

    #[test]
    fn groups_are_adjacent_and_named_as_llama() {
        let config = Config { mlp: Mlp::Swiglu, norm_bias: true, kv_heads: 2, ..nano() };
        let layout = config.layout();
        let range = |name: &str| layout.find(name).map(|entry| entry.range.clone()).unwrap();
        let pairs = [
            ("self_attn.q_proj.weight", "self_attn.k_proj.weight"),
            ("self_attn.k_proj.weight", "self_attn.v_proj.weight"),
            ("mlp.gate_proj.weight", "mlp.up_proj.weight"),
            ("input_layernorm.weight", "input_layernorm.bias"),
        ];
        for layer in 0..4 {
            for (first, second) in pairs {
                let [first, second] = [first, second].map(|n| format!("model.layers.{layer}.{n}"));
                assert_eq!(range(&first).end, range(&second).start, "{first}");
            }
        }
        assert_eq!(layout.find("model.layers.1.self_attn.k_proj.weight").unwrap().shape, [64, 128]);
        assert_eq!(layout.find("lm_head.weight"), None);
        let mut end = 0;
        for entry in &layout {
            assert_eq!(entry.range.start, end, "{}", entry.name);
            assert_eq!(entry.range.len(), entry.shape.iter().product::<usize>());
            end = entry.range.end;
        }
    }

    #[test]
    fn wrong_sizes_are_answered_with_what_would_work() {
        let answer = |config: Config| config.validate().unwrap_err().to_string();
        assert_eq!(
            answer(Config { heads: 5, ..nano() }),
            "model: heads is 5; it must be a divisor of d_model = 128: 1, 2, 4, 8, 16, 32, 64, 128"
        );
        assert_eq!(
            answer(Config { kv_heads: 3, ..nano() }),
            "model: kv_heads is 3; it must be a divisor of heads = 4: 1, 2, 4"
        );
        let rope = Position::Rope { base: 10_000.0 };
        let odd = answer(Config { d_model: 12, position: rope, ..nano() });
        assert!(odd.contains("12 / 4 = 3"), "{odd}");
        assert!(answer(Config { context: 0, ..nano() }).contains("context is 0"));
        assert!(answer(Config { norm_eps: f64::NAN, ..nano() }).contains("norm_eps"));
        let norm = Config { norm: Norm::RmsNorm, norm_bias: true, ..nano() };
        assert!(answer(norm).contains("norm_bias is true"));
        let huge = Config { layers: LARGEST, d_model: LARGEST, hidden: LARGEST, ..nano() };
        assert!(answer(huge).contains("2^40"));
    }

    #[test]
    fn text_form_reads_back() {
        let config = Config { position: Position::Rope { base: 500_000.0 }, ..nano() };
        let text = toml::to_string(&config).unwrap();
        assert!(text.contains("position = \"rope:500000\"\n"), "{text}");
        assert!(text.contains("norm = \"layer-norm\"\n"), "{text}");
        assert_eq!(toml::from_str::<Config>(&text).unwrap(), config);
        let error = toml::from_str::<Config>(&format!("{text}head = 3\n")).unwrap_err();
        assert!(error.to_string().contains("unknown field `head`"), "{error}");
        let error = "alibi".parse::<Position>().unwrap_err().to_string();
        assert!(error.contains("`alibi`") && error.contains("rope:BASE"), "{error}");
    }
}
