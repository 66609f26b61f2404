//! Which parameters are used together, and how: the linear groups and norms of a decoder, each
//! with its place in the arena.

use core::ops::Range;

use super::attend::Attend;
use super::recur::Recur;
use super::{Config, Mixer, Mlp};
use crate::nn::parameters::Layout;
use crate::nn::parts::{self, Activation, Affine, Linear};
use crate::nn::relu::Function;
use crate::nn::site::Operator;

/// All places of a model.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// The token table, and the sink right behind it.
    pub(super) table: Range<usize>,
    pub(super) positions: Option<Range<usize>>,
    pub(super) blocks: Vec<Block>,
    pub(super) norm: Affine,
    pub(super) head: Linear,
}

/// The places of one block.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) norm1: Affine,
    pub(super) mixer: Mixing,
    pub(super) norm2: Affine,
    pub(super) mlp: parts::Mlp,
}

/// What mixes the tokens of a block.
#[derive(Clone, Debug)]
pub(super) enum Mixing {
    Attend(Attend),
    Recur(Recur),
}

impl Places {
    pub(super) fn new(config: &Config, layout: &Layout) -> Self {
        let find = |name: &str| layout.find(name).map(|entry| entry.range.clone());
        let d = config.d_model;
        let block = |l: usize| {
            let layer = Some(l as u32);
            let name = |rest: &str| format!("model.layers.{l}.{rest}");
            let norm = |rest: &str| {
                Affine::new(layout, layer, &name(rest), d, config.norm, config.norm_eps)
            };
            let linear = |inputs: usize, names: [&str; 2], members: &[(Operator, usize)]| {
                let named = |kind: &str| names.map(|rest| name(&format!("{rest}.{kind}")));
                let ([first, last], [bias, end]) = (named("weight"), named("bias"));
                Linear::new(layout, layer, members, inputs, [&first, &last])
                    .with_bias_of(layout, [&bias, &end])
            };
            let [norm1, norm2] = config.norm_place.names();
            let hidden = config.hidden;
            let (first, up): (_, &[_]) = if config.mlp.is_gated() {
                ("mlp.gate_proj", &[(Operator::Gate, hidden), (Operator::Up, hidden)])
            } else {
                ("mlp.up_proj", &[(Operator::Up, hidden)])
            };
            Block {
                norm1: norm(norm1),
                mixer: match config.mixer.of(l) {
                    Mixer::Attention => Mixing::Attend(Attend::new(config, layout, l)),
                    Mixer::Gla => Mixing::Recur(Recur::new(config, layout, l)),
                },
                norm2: norm(norm2),
                mlp: parts::Mlp {
                    layer,
                    activation: match config.mlp {
                        Mlp::Gelu => Activation::Plain(Function::Gelu),
                        Mlp::GeluTanh => Activation::Plain(Function::GeluTanh),
                        Mlp::Swiglu => Activation::Swiglu,
                        Mlp::Relu => Activation::Plain(Function::Relu),
                        Mlp::SquaredRelu => Activation::Plain(Function::SquaredRelu),
                    },
                    hidden,
                    up: linear(d, [first, "mlp.up_proj"], up),
                    down: linear(hidden, ["mlp.down_proj"; 2], &[(Operator::Down, d)]),
                },
            }
        };
        let tokens = find("model.embed_tokens.weight").expect("every decoder has tokens");
        let end = find("model.sink.weight").map_or(tokens.end, |sink| sink.end);
        let head = if config.tied { "model.embed_tokens.weight" } else { "lm_head.weight" };
        let members = [(Operator::Head, config.vocab)];
        Self {
            table: tokens.start..end,
            positions: find("model.embed_positions.weight"),
            blocks: (0..config.layers).map(block).collect(),
            norm: Affine::new(layout, None, "model.norm", d, config.norm, config.norm_eps),
            head: Linear::new(layout, None, &members, d, [head; 2]),
        }
    }
}
