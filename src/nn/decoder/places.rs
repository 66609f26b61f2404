//! Which parameters are used together, and how: the linear groups and norms of a decoder, each
//! with its place in the arena.

use core::ops::Range;

use super::{Config, Mlp, Norm};
use crate::nn::linear::{Group, Products};
use crate::nn::norm::{layer_norm, layer_norm_backward, rms_norm, rms_norm_backward};
use crate::nn::parameters::Layout;
use crate::nn::real::Real;
use crate::nn::site::Operator;
use crate::view::{View, ViewMut};

/// All places of a model.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) tokens: Range<usize>,
    /// Right behind the tokens.
    pub(super) positions: Option<Range<usize>>,
    pub(super) blocks: Vec<Block>,
    pub(super) norm: Affine,
    pub(super) head: Linear,
}

/// The places of one block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) norm1: Affine,
    pub(super) qkv: Linear,
    pub(super) o: Linear,
    pub(super) norm2: Affine,
    /// gate|up, or up alone.
    pub(super) up: Linear,
    pub(super) down: Linear,
}

impl Places {
    pub(super) fn new(config: &Config, layout: &Layout) -> Self {
        let find = |name: &str| layout.find(name).map(|entry| entry.range.clone());
        let get = |name: &str| find(name).expect("an entry that `Config::layout` writes");
        let affine = |name: &str| Affine {
            gain: get(&format!("{name}.weight")),
            bias: find(&format!("{name}.bias")),
        };
        let block = |layer: usize| {
            let name = |rest: &str| format!("model.layers.{layer}.{rest}");
            // From the first member's first row to the last member's last.
            let linear = |inputs: usize, names: [&str; 2], members: &[(Operator, usize)]| {
                let [first, last] = names.map(|rest| get(&name(&format!("{rest}.weight"))));
                let weight = first.start..last.end;
                Linear { layer: Some(layer as u32), members: members.into(), inputs, weight }
            };
            let Config { d_model, heads, kv_heads, hidden, .. } = *config;
            let (hd, inner) = (config.head_dim(), heads * config.head_dim());
            let qkv =
                [(Operator::Q, inner), (Operator::K, kv_heads * hd), (Operator::V, kv_heads * hd)];
            let (first, up): (_, &[_]) = match config.mlp {
                Mlp::Gelu => ("mlp.up_proj", &[(Operator::Up, hidden)]),
                Mlp::Swiglu => {
                    ("mlp.gate_proj", &[(Operator::Gate, hidden), (Operator::Up, hidden)])
                }
            };
            Block {
                norm1: affine(&name("input_layernorm")),
                qkv: linear(d_model, ["self_attn.q_proj", "self_attn.v_proj"], &qkv),
                o: linear(inner, ["self_attn.o_proj"; 2], &[(Operator::O, d_model)]),
                norm2: affine(&name("post_attention_layernorm")),
                up: linear(d_model, [first, "mlp.up_proj"], up),
                down: linear(hidden, ["mlp.down_proj"; 2], &[(Operator::Down, d_model)]),
            }
        };
        let tokens = get("model.embed_tokens.weight");
        Self {
            positions: find("model.embed_positions.weight"),
            blocks: (0..config.layers).map(block).collect(),
            norm: affine("model.norm"),
            head: Linear {
                layer: None,
                members: [(Operator::Head, config.vocab)].into(),
                inputs: config.d_model,
                weight: find("lm_head.weight").unwrap_or_else(|| tokens.clone()),
            },
            tokens,
        }
    }
}

/// A group of linear operators and the place of its weight.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    layer: Option<u32>,
    members: Box<[(Operator, usize)]>,
    inputs: usize,
    weight: Range<usize>,
}

impl Linear {
    fn group(&self) -> Group<'_> {
        Group { layer: self.layer, members: &self.members }
    }

    /// `y` (n, out) from `x` (n, in).
    pub(super) fn forward<T: Real>(
        &self,
        products: &mut dyn Products<T>,
        params: &[T],
        x: &[T],
        y: &mut [T],
    ) {
        let group = self.group();
        let (n, outputs) = (x.len() / self.inputs, group.outputs());
        let weight = View::new(&params[self.weight.clone()], outputs, self.inputs);
        let x = View::new(x, n, self.inputs);
        products.forward(&group, x, weight, ViewMut::new(y, n, outputs));
    }

    /// `dx` (n, in) from `g` (n, out), then the weight's gradient added to its place in `grads`.
    pub(super) fn backward<T: Real>(
        &self,
        products: &mut dyn Products<T>,
        params: &[T],
        grads: &mut [T],
        g: &[T],
        x: &[T],
        dx: &mut [T],
    ) {
        let group = self.group();
        let (n, outputs) = (x.len() / self.inputs, group.outputs());
        let weight = View::new(&params[self.weight.clone()], outputs, self.inputs);
        let g = View::new(g, n, outputs);
        products.grad_input(&group, g, weight, ViewMut::new(dx, n, self.inputs));
        let dw = ViewMut::new(&mut grads[self.weight.clone()], outputs, self.inputs);
        products.grad_weight(&group, g, View::new(x, n, self.inputs), dw);
    }
}

/// A norm's output and statistics.
#[derive(Clone, Debug, Default)]
pub(super) struct Normed<T> {
    pub(super) y: Vec<T>,
    pub(super) mean: Vec<T>,
    pub(super) rstd: Vec<T>,
}

/// The places of a norm's gain and bias.
#[derive(Clone, Debug)]
pub(super) struct Affine {
    gain: Range<usize>,
    /// Right behind the gain.
    bias: Option<Range<usize>>,
}

impl Affine {
    pub(super) fn forward<T: Real>(
        &self,
        config: &Config,
        params: &[T],
        x: &[T],
        out: &mut Normed<T>,
    ) {
        let n = x.len() / self.gain.len();
        let gain = &params[self.gain.clone()];
        let eps = T::from_f64(config.norm_eps);
        let (y, rstd) = (&mut out.y[..x.len()], &mut out.rstd[..n]);
        match config.norm {
            Norm::LayerNorm => {
                let bias = self.bias.clone().map(|range| &params[range]);
                layer_norm(x, gain, bias, eps, y, &mut out.mean[..n], rstd);
            }
            Norm::RmsNorm => rms_norm(x, gain, eps, y, rstd),
        }
    }

    /// `dx` from `dy`; the gradients of gain and bias are added to their places in `grads`.
    pub(super) fn backward<T: Real>(
        &self,
        config: &Config,
        params: &[T],
        grads: &mut [T],
        x: &[T],
        kept: &Normed<T>,
        dy: &[T],
        dx: &mut [T],
    ) {
        let n = x.len() / self.gain.len();
        let gain = &params[self.gain.clone()];
        let (d_gain, rest) = grads[self.gain.start..].split_at_mut(self.gain.len());
        let rstd = &kept.rstd[..n];
        match config.norm {
            Norm::LayerNorm => {
                let d_bias = self.bias.clone().map(|range| &mut rest[..range.len()]);
                layer_norm_backward(x, gain, &kept.mean[..n], rstd, dy, dx, d_gain, d_bias);
            }
            Norm::RmsNorm => rms_norm_backward(x, gain, rstd, dy, dx, d_gain),
        }
    }
}
