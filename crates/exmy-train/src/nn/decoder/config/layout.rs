//! Where a decoder's parameters lie, what they are called and how they start.

use super::{Config, InitScheme, Mixer, NormPlace, Position, QkNorm};
use crate::nn::parameters::{Init, Layout, Role};
use exmy::random::{Philox, Stream};

impl NormPlace {
    /// What the two norms of a block are called, that of the mixer and that of the MLP, as Hugging Face's
    /// Llama and OLMo 2 have it.
    pub(in crate::nn::decoder) const fn names(self) -> [&'static str; 2] {
        match self {
            Self::Before => ["input_layernorm", "post_attention_layernorm"],
            Self::After => ["post_attention_layernorm", "post_feedforward_layernorm"],
        }
    }
}

/// Where a weight stands, which decides the size it starts with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A table of vectors, by token or by position.
    Table,
    /// Into a block's inside.
    Inner,
    /// Back onto the residual stream, from this layer.
    Residual(usize),
}

impl Config {
    fn weight_init(&self, kind: Kind, fan_in: usize) -> Init {
        let (d, layers) = (self.d_model as f64, self.layers as f64);
        let residual = matches!(kind, Kind::Residual(_));
        match self.init {
            InitScheme::Normal => Init::Normal { std: 0.02 },
            InitScheme::Gpt2 if residual => Init::Normal { std: 0.02 / libm::sqrt(2.0 * layers) },
            InitScheme::Gpt2 => Init::Normal { std: 0.02 },
            InitScheme::TinyLlama if residual => {
                Init::Normal { std: 1.0 / (libm::sqrt(d) * layers) }
            }
            InitScheme::TinyLlama => Init::Normal { std: libm::sqrt(2.0 / (5.0 * d)) },
            InitScheme::Mitchell => {
                let fan = if kind == Kind::Table { d } else { fan_in as f64 };
                let smaller = match kind {
                    Kind::Residual(layer) => libm::sqrt(2.0 * (layer as f64 + 1.0)),
                    Kind::Table | Kind::Inner => 1.0,
                };
                Init::Truncated { std: 1.0 / libm::sqrt(fan) / smaller }
            }
        }
    }

    /// The arena of the parameters. q, k, v are adjacent (and with them g and gk of gated linear attention),
    /// and so are gate and up, so that a group is one matrix. Biases follow what they belong to, those of a
    /// group all of it, a sink its token table. A tied head has no entry of its own, norms that are not
    /// affine have none.
    ///
    /// # Panics
    /// If the sizes exceed memory's address space, which [`validate`](Self::validate) excludes.
    pub fn layout(&self) -> Layout {
        let (d, hd) = (self.d_model, self.head_dim());
        let mut layout = Layout::default();
        let table = |layout: &mut Layout, name: &str, rows: usize, role: Role| {
            layout.push(name.to_owned(), &[rows, d], role, self.weight_init(Kind::Table, d));
        };
        let gain = match (self.gain_init, self.gain_spread) {
            (1.0, 0.0) => Init::Ones,
            (mean, std) => Init::Around { mean, std },
        };
        let norm = |layout: &mut Layout, name: &str, width: usize| {
            if self.norm_affine {
                layout.push(format!("{name}.weight"), &[width], Role::Norm, gain);
            }
            if self.norm_bias {
                layout.push(format!("{name}.bias"), &[width], Role::NormBias, Init::Zeros);
            }
        };
        table(&mut layout, "model.embed_tokens.weight", self.vocab, Role::Tokens);
        if self.sink {
            table(&mut layout, "model.sink.weight", 1, Role::Embedding);
        }
        if self.position == Position::Learned {
            table(&mut layout, "model.embed_positions.weight", self.context, Role::Embedding);
        }
        for layer in 0..self.layers {
            let block = format!("model.layers.{layer}");
            let matrix = |layout: &mut Layout, name: &str, rows: usize, cols: usize, kind: Kind| {
                let name = format!("{block}.{name}.weight");
                layout.push(name, &[rows, cols], Role::Matrix, self.weight_init(kind, cols));
            };
            let bias = |layout: &mut Layout, name: &str, width: usize| {
                layout.push(format!("{block}.{name}.bias"), &[width], Role::Bias, Init::Zeros);
            };
            let [norm1, norm2] = self.norm_place.names().map(|name| format!("{block}.{name}"));
            if self.norm_place == NormPlace::Before {
                norm(&mut layout, &norm1, d);
            }
            match self.mixer.of(layer) {
                Mixer::Attention => {
                    let (q, kv) = (self.heads * hd, self.kv_heads * hd);
                    matrix(&mut layout, "self_attn.q_proj", q, d, Kind::Inner);
                    matrix(&mut layout, "self_attn.k_proj", kv, d, Kind::Inner);
                    matrix(&mut layout, "self_attn.v_proj", kv, d, Kind::Inner);
                    if self.bias.qkv {
                        bias(&mut layout, "self_attn.q_proj", q);
                        bias(&mut layout, "self_attn.k_proj", kv);
                        bias(&mut layout, "self_attn.v_proj", kv);
                    }
                    let widths = match self.qk_norm {
                        QkNorm::None => None,
                        QkNorm::Head => Some((hd, hd)),
                        QkNorm::Full => Some((q, kv)),
                    };
                    if let Some((q, kv)) = widths {
                        norm(&mut layout, &format!("{block}.self_attn.q_norm"), q);
                        norm(&mut layout, &format!("{block}.self_attn.k_norm"), kv);
                    }
                    matrix(&mut layout, "self_attn.o_proj", d, q, Kind::Residual(layer));
                    if self.bias.o {
                        bias(&mut layout, "self_attn.o_proj", d);
                    }
                }
                Mixer::Gla => {
                    let (keys, values) = (self.gla_keys(), self.gla_values());
                    let rank = self.gla.gate_rank;
                    matrix(&mut layout, "attn.q_proj", keys, d, Kind::Inner);
                    matrix(&mut layout, "attn.k_proj", keys, d, Kind::Inner);
                    matrix(&mut layout, "attn.v_proj", values, d, Kind::Inner);
                    matrix(&mut layout, "attn.g_proj", values, d, Kind::Inner);
                    matrix(&mut layout, "attn.gk_proj.0", rank, d, Kind::Inner);
                    matrix(&mut layout, "attn.gk_proj.1", keys, rank, Kind::Inner);
                    let bias = format!("{block}.attn.gk_proj.1.bias");
                    layout.push(bias, &[keys], Role::Bias, Init::Zeros);
                    // Fused with the gate in Flash Linear Attention, whence its name; always an
                    // RMS norm with a gain, which starts at 1.
                    let name = format!("{block}.attn.g_norm_swish_gate.weight");
                    layout.push(name, &[values / self.gla.heads], Role::Norm, Init::Ones);
                    matrix(&mut layout, "attn.o_proj", d, values, Kind::Residual(layer));
                }
            }
            if self.norm_place == NormPlace::After {
                norm(&mut layout, &norm1, d);
            } else {
                norm(&mut layout, &norm2, d);
            }
            let both = ["mlp.gate_proj", "mlp.up_proj"];
            let up = if self.mlp.is_gated() { &both[..] } else { &both[1..] };
            up.iter().for_each(|name| matrix(&mut layout, name, self.hidden, d, Kind::Inner));
            if self.bias.mlp {
                up.iter().for_each(|name| bias(&mut layout, name, self.hidden));
            }
            matrix(&mut layout, "mlp.down_proj", d, self.hidden, Kind::Residual(layer));
            if self.bias.mlp {
                bias(&mut layout, "mlp.down_proj", d);
            }
            if self.norm_place == NormPlace::After {
                norm(&mut layout, &norm2, d);
            }
        }
        norm(&mut layout, "model.norm", d);
        if !self.tied {
            table(&mut layout, "lm_head.weight", self.vocab, Role::Matrix);
        }
        layout
    }

    /// Fresh parameters under `seed`, hot channels planted ([`Self::plant`]).
    pub fn initialize(&self, seed: u64) -> Vec<f32> {
        let mut params = self.layout().initialize(seed);
        self.plant(&mut params, &self.hot(seed), self.hot_scale);
        params
    }

    /// Makes channels hot in parameters of this model, which goes on computing the same function.
    ///
    /// A hot channel `j` is the same in every layer, since outlier channels of trained networks are.
    /// `scale` multiplies element `j` of the gain (and bias) of the norms before the mixers, the
    /// MLPs and an untied head. It divides column `j` of each weight that reads them. A power of two changes
    /// no bit of what the model gives in a binary floating-point format whose range it does not leave.
    ///
    /// # Panics
    /// If there is no such channel, or the parameters are not those of [`Self::layout`].
    pub fn plant(&self, params: &mut [f32], channels: &[usize], scale: f64) {
        if channels.is_empty() {
            return;
        }
        let layout = self.layout();
        let mut multiply = |name: &str, factor: f64| {
            let Some(entry) = layout.find(name) else { return };
            // A gain is one row.
            for row in params[entry.range.clone()].chunks_exact_mut(self.d_model) {
                for &channel in channels {
                    row[channel] = (f64::from(row[channel]) * factor) as f32;
                }
            }
        };
        let mut plant = |norm: &str, readers: &[String]| {
            multiply(&format!("{norm}.weight"), scale);
            multiply(&format!("{norm}.bias"), scale);
            for reader in readers {
                multiply(&format!("{reader}.weight"), 1.0 / scale);
            }
        };
        for layer in 0..self.layers {
            let name = |rest: &str| format!("model.layers.{layer}.{rest}");
            let readers: &[&str] = match self.mixer.of(layer) {
                Mixer::Attention => &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
                Mixer::Gla => {
                    &["attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.g_proj", "attn.gk_proj.0"]
                }
            };
            let readers: Vec<_> = readers.iter().map(|reader| name(reader)).collect();
            plant(&name("input_layernorm"), &readers);
            let readers = ["mlp.gate_proj", "mlp.up_proj"].map(name);
            plant(&name("post_attention_layernorm"), &readers);
        }
        if !self.tied {
            plant("model.norm", &["lm_head".to_owned()]);
        }
    }

    /// The planted channels, ascending.
    pub fn hot(&self, seed: u64) -> Vec<usize> {
        let philox = Philox::new(seed, Stream::new("hot channels"));
        let mut left: Vec<usize> = (0..self.d_model).collect();
        let mut hot: Vec<usize> = (0..self.hot_channels.min(self.d_model))
            .map(|i| left.swap_remove(philox.below(i as u64, left.len() as u64) as usize))
            .collect();
        hot.sort_unstable();
        hot
    }
}
