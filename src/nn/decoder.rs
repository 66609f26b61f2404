//! The decoder-only transformer: forward, backward, loss.
//!
//! Pre-norm blocks as in GPT-2 and Llama: `h += o(attention(norm1(h)))`, `h += down(act(norm2(h)))`,
//! a last norm, the head. Every product of a linear operator goes through a [`Products`], in this
//! order. Forward: for each layer q|k|v, o, gate|up (or up), down; then the head. Backward: the
//! head, then from the last layer to the first down, gate|up, o, q|k|v; of each first `grad_input`,
//! then `grad_weight`. The residual stream, attention, norms and activations are in `T`.
//!
//! What the backward pass reads is kept per layer: the stream before each norm, each norm's output
//! and statistics, q|k|v (rotated), the probabilities, the attention's output, the MLP's
//! pre-activations and activations. These buffers are allocated at the first step of a size and
//! reused; afterwards a step allocates only short lists: how work is divided, and the
//! partial sums of norm gradients.

mod config;
mod places;

pub use config::{Config, ConfigError, InitScheme, Mlp, Norm, Position};

use core::ops::Range;

use crate::nn::activation::{add_assign, gelu, gelu_backward, swiglu, swiglu_backward};
use crate::nn::attention::{Shape, attention, attention_backward};
use crate::nn::embedding::{embed, embed_backward};
use crate::nn::linear::Products;
use crate::nn::loss;
use crate::nn::parameters::Layout;
use crate::nn::real::Real;
use crate::nn::rope::Rope;
use places::{Normed, Places};

/// A model's structure and working memory; parameters and gradients are the caller's.
#[derive(Clone, Debug)]
pub struct Decoder<T: Real> {
    config: Config,
    layout: Layout,
    places: Places,
    rope: Option<Rope<T>>,
    kept: Kept<T>,
    work: Work<T>,
}

/// Activations that the backward pass reads.
#[derive(Clone, Debug, Default)]
struct Kept<T> {
    /// The residual stream: before each norm of each block, and before the last one.
    stream: Vec<Vec<T>>,
    layers: Vec<Layer<T>>,
    norm: Normed<T>,
    logits: Vec<T>,
    losses: Vec<T>,
}

#[derive(Clone, Debug, Default)]
struct Layer<T> {
    norm1: Normed<T>,
    qkv: Vec<T>,
    probabilities: Vec<T>,
    attention: Vec<T>,
    norm2: Normed<T>,
    before: Vec<T>,
    after: Vec<T>,
}

/// Memory whose contents no other part reads.
#[derive(Clone, Debug, Default)]
struct Work<T> {
    /// For attention.
    scratch: Vec<T>,
    /// Gradient of the residual stream.
    d_stream: Vec<T>,
    /// Gradient of a norm's output, then of its input.
    d_norm: [Vec<T>; 2],
    /// Gradient of what enters o or down.
    d_inner: Vec<T>,
    /// Gradient of q|k|v or gate|up.
    d_outer: Vec<T>,
}

/// Grows `buffer` to at least `len`; never shrinks, so that steps of two sizes do not alternate
/// between allocations.
fn grow<T: Real>(buffer: &mut Vec<T>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, T::ZERO);
    }
}

impl<T: Real> Decoder<T> {
    /// A model of this shape.
    ///
    /// # Errors
    /// If the shape is none; see [`Config::validate`].
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        let layout = config.layout();
        let rope = match config.position {
            Position::Learned => None,
            Position::Rope { base } => Some(Rope::new(config.context, config.head_dim(), base)),
        };
        Ok(Self {
            places: Places::new(&config, &layout),
            config,
            layout,
            rope,
            kept: Kept::default(),
            work: Work::default(),
        })
    }

    /// The shape.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The table of the parameter arena.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The mean loss in nats of predicting `targets` from `tokens`, each `batch` sequences one
    /// after the other; adds its gradient to `grads`, which has the layout of `params`.
    ///
    /// # Panics
    /// If `params` or `grads` have not the layout's length, `targets` not the length of `tokens`,
    /// `tokens` is not `batch` sequences of one to `context` tokens, or a token is not below
    /// `vocab`.
    pub fn forward_backward(
        &mut self,
        params: &[T],
        grads: &mut [T],
        tokens: &[u32],
        targets: &[u32],
        batch: usize,
        products: &mut dyn Products<T>,
    ) -> f64 {
        assert_eq!(grads.len(), self.layout.len(), "gradients have the layout of the parameters");
        assert_eq!(tokens.len(), targets.len(), "every token has one target");
        let shape = self.forward(params, tokens, batch, products);
        self.logits(params, 0..tokens.len(), products);
        let (n, vocab) = (tokens.len(), self.config.vocab);
        let scale = T::from_f64(1.0 / n as f64);
        let Kept { logits, losses, .. } = &mut self.kept;
        loss::cross_entropy(
            &mut logits[..n * vocab],
            vocab,
            targets,
            Some(scale),
            &mut losses[..n],
        );
        let mean = loss::mean(&losses[..n]);
        self.backward(params, grads, tokens, &shape, products);
        mean
    }

    /// The loss in nats of each token, without gradients.
    ///
    /// # Panics
    /// As [`forward_backward`](Self::forward_backward), and if `losses` has not one element a token.
    pub fn losses(
        &mut self,
        params: &[T],
        tokens: &[u32],
        targets: &[u32],
        batch: usize,
        products: &mut dyn Products<T>,
        losses: &mut [T],
    ) {
        assert_eq!(tokens.len(), targets.len(), "every token has one target");
        assert_eq!(tokens.len(), losses.len(), "every token has one loss");
        self.forward(params, tokens, batch, products);
        self.logits(params, 0..tokens.len(), products);
        let vocab = self.config.vocab;
        let logits = &mut self.kept.logits[..tokens.len() * vocab];
        loss::cross_entropy(logits, vocab, targets, None, losses);
    }

    /// The logits, one a token of the vocabulary, of what follows one sequence.
    ///
    /// # Panics
    /// If `params` has not the layout's length, `tokens` is not one to `context` tokens, or a token
    /// is not below `vocab`.
    pub fn last_logits(
        &mut self,
        params: &[T],
        tokens: &[u32],
        products: &mut dyn Products<T>,
    ) -> &[T] {
        self.forward(params, tokens, 1, products);
        self.logits(params, tokens.len() - 1..tokens.len(), products);
        &self.kept.logits[..self.config.vocab]
    }

    fn shape(&self, batch: usize, tokens: usize) -> Shape {
        let Config { context, heads, kv_heads, .. } = self.config;
        assert!(
            batch > 0 && tokens > 0 && tokens.is_multiple_of(batch) && tokens / batch <= context,
            "{tokens} tokens are not {batch} sequences of 1 to {context} tokens"
        );
        let head_dim = self.config.head_dim();
        Shape { batch, sequence: tokens / batch, heads, kv_heads, head_dim }
    }

    /// Makes every buffer large enough for a step of `shape`.
    fn reserve(&mut self, shape: &Shape) {
        let Config { layers, d_model, hidden, vocab, .. } = self.config;
        let (n, qkv) = (shape.batch * shape.sequence, shape.qkv_width());
        let (inner, outer) = (shape.width().max(hidden), qkv.max(self.config.mlp_outputs()));
        let Self { kept, work, config, .. } = self;
        let norm = |buffers: &mut Normed<T>| {
            grow(&mut buffers.y, n * d_model);
            grow(&mut buffers.mean, n);
            grow(&mut buffers.rstd, n);
        };
        kept.stream.resize_with(2 * layers + 1, Vec::new);
        kept.stream.iter_mut().for_each(|buffer| grow(buffer, n * d_model));
        kept.layers.resize_with(layers, Layer::default);
        for layer in &mut kept.layers {
            norm(&mut layer.norm1);
            norm(&mut layer.norm2);
            grow(&mut layer.qkv, n * qkv);
            grow(&mut layer.probabilities, shape.probabilities());
            grow(&mut layer.attention, n * shape.width());
            grow(&mut layer.before, n * config.mlp_outputs());
            grow(&mut layer.after, n * hidden);
        }
        norm(&mut kept.norm);
        grow(&mut kept.logits, n * vocab);
        grow(&mut kept.losses, n);
        grow(&mut work.scratch, shape.scratch());
        grow(&mut work.d_stream, n * d_model);
        work.d_norm.iter_mut().for_each(|buffer| grow(buffer, n * d_model));
        grow(&mut work.d_inner, n * inner);
        grow(&mut work.d_outer, n * outer);
    }

    /// Up to and including the last norm.
    fn forward(
        &mut self,
        params: &[T],
        tokens: &[u32],
        batch: usize,
        products: &mut dyn Products<T>,
    ) -> Shape {
        assert_eq!(params.len(), self.layout.len(), "parameters have the model's layout");
        let shape = self.shape(batch, tokens.len());
        self.reserve(&shape);
        let Self { config, places, rope, kept, work, .. } = self;
        let (n, d) = (tokens.len(), config.d_model);
        let stream = &mut kept.stream;
        let positions = places.positions.clone().map(|range| &params[range]);
        let table = &params[places.tokens.clone()];
        embed(tokens, table, positions, shape.sequence, &mut stream[0][..n * d]);
        for (l, (block, kept)) in places.blocks.iter().zip(&mut kept.layers).enumerate() {
            let [x, middle, y] = &mut stream[2 * l..2 * l + 3] else { unreachable!() };
            let (x, middle, y) = (&x[..n * d], &mut middle[..n * d], &mut y[..n * d]);

            block.norm1.forward(config, params, x, &mut kept.norm1);
            let qkv = &mut kept.qkv[..n * shape.qkv_width()];
            block.qkv.forward(products, params, &kept.norm1.y[..n * d], qkv);
            if let Some(rope) = rope {
                let heads = shape.heads + shape.kv_heads;
                rope.forward(qkv, shape.qkv_width(), heads, shape.sequence);
            }
            let attended = &mut kept.attention[..n * shape.width()];
            let probabilities = &mut kept.probabilities[..shape.probabilities()];
            let scratch = &mut work.scratch[..shape.scratch()];
            attention(&shape, qkv, attended, probabilities, scratch);
            block.o.forward(products, params, attended, middle);
            add_assign(middle, x);

            block.norm2.forward(config, params, middle, &mut kept.norm2);
            let before = &mut kept.before[..n * config.mlp_outputs()];
            block.up.forward(products, params, &kept.norm2.y[..n * d], before);
            let after = &mut kept.after[..n * config.hidden];
            match config.mlp {
                Mlp::Gelu => gelu(before, after),
                Mlp::Swiglu => swiglu(before, config.hidden, after),
            }
            block.down.forward(products, params, after, y);
            add_assign(y, middle);
        }
        let last = &stream[2 * config.layers][..n * d];
        places.norm.forward(config, params, last, &mut kept.norm);
        shape
    }

    /// The logits of the given tokens of the batch, from the last norm's output.
    fn logits(&mut self, params: &[T], tokens: Range<usize>, products: &mut dyn Products<T>) {
        let Config { d_model, vocab, .. } = self.config;
        let x = &self.kept.norm.y[tokens.start * d_model..tokens.end * d_model];
        let logits = &mut self.kept.logits[..tokens.len() * vocab];
        self.places.head.forward(products, params, x, logits);
    }

    /// From the gradient of the logits, which lies in their place, to those of all parameters.
    fn backward(
        &mut self,
        params: &[T],
        grads: &mut [T],
        tokens: &[u32],
        shape: &Shape,
        products: &mut dyn Products<T>,
    ) {
        let Self { config, places, rope, kept, work, .. } = self;
        let (n, d) = (tokens.len(), config.d_model);
        let [d_y, d_x] = &mut work.d_norm;
        let (d_y, d_x) = (&mut d_y[..n * d], &mut d_x[..n * d]);
        let d_stream = &mut work.d_stream[..n * d];

        let d_logits = &kept.logits[..n * config.vocab];
        places.head.backward(products, params, grads, d_logits, &kept.norm.y[..n * d], d_y);
        let last = &kept.stream[2 * config.layers][..n * d];
        places.norm.backward(config, params, grads, last, &kept.norm, d_y, d_stream);
        for (l, (block, layer)) in places.blocks.iter().zip(&kept.layers).enumerate().rev() {
            let (x, middle) = (&kept.stream[2 * l][..n * d], &kept.stream[2 * l + 1][..n * d]);

            let d_after = &mut work.d_inner[..n * config.hidden];
            let after = &layer.after[..n * config.hidden];
            block.down.backward(products, params, grads, d_stream, after, d_after);
            let before = &layer.before[..n * config.mlp_outputs()];
            let d_before = match config.mlp {
                Mlp::Gelu => {
                    gelu_backward(before, d_after);
                    &*d_after
                }
                Mlp::Swiglu => {
                    let d_before = &mut work.d_outer[..n * config.mlp_outputs()];
                    swiglu_backward(before, config.hidden, d_after, d_before);
                    &*d_before
                }
            };
            block.up.backward(products, params, grads, d_before, &layer.norm2.y[..n * d], d_y);
            block.norm2.backward(config, params, grads, middle, &layer.norm2, d_y, d_x);
            add_assign(d_stream, d_x);

            let d_attended = &mut work.d_inner[..n * shape.width()];
            let attended = &layer.attention[..n * shape.width()];
            block.o.backward(products, params, grads, d_stream, attended, d_attended);
            let qkv = &layer.qkv[..n * shape.qkv_width()];
            let d_qkv = &mut work.d_outer[..n * shape.qkv_width()];
            let probabilities = &layer.probabilities[..shape.probabilities()];
            let scratch = &mut work.scratch[..shape.scratch()];
            attention_backward(shape, qkv, probabilities, d_attended, d_qkv, scratch);
            if let Some(rope) = rope {
                let heads = shape.heads + shape.kv_heads;
                rope.backward(d_qkv, shape.qkv_width(), heads, shape.sequence);
            }
            block.qkv.backward(products, params, grads, d_qkv, &layer.norm1.y[..n * d], d_y);
            block.norm1.backward(config, params, grads, x, &layer.norm1, d_y, d_x);
            add_assign(d_stream, d_x);
        }
        // The positions lie right behind the tokens.
        let split = places.tokens.end;
        let (head, tail) = grads.split_at_mut(split);
        let d_positions = places.positions.clone().map(|r| &mut tail[..r.len()]);
        let d_table = &mut head[places.tokens.clone()];
        embed_backward(tokens, d_stream, shape.sequence, d_table, d_positions);
    }
}
