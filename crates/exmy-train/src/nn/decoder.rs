//! The decoder-only transformer: forward, backward, loss.
//!
//! Pre-norm blocks as in GPT-2 and Llama: `h += o(mixer(norm1(h)))`, `h += down(act(norm2(h)))`,
//! a last norm, the head; the mixer of each layer is softmax attention or gated linear attention.
//! Every product of a linear operator goes through a [`Products`], in this order. Forward: for each
//! layer q|k|v and o (gated linear attention: q|k|v|g|gk.0, gk.1, o), gate|up (or up), down; then
//! the head. Backward: the head, then from the last layer to the first down, gate|up, and those of
//! the mixer from the last to the first; of each first `grad_input`, then `grad_weight`. The
//! residual stream, attention, norms and activations are in `T`, except that every tensor that has
//! a [`Place`] is shown to [`Products::tensor`], and its gradient too.
//!
//! What the backward pass reads is kept per layer: the stream before each norm, each norm's output
//! and statistics, q|k|v (rotated), short rows' probabilities, the attention's output (gated linear
//! attention: all its projections, the decays, the recurrence's output, normed and gated), the MLP's
//! pre-activations and activations. These buffers are allocated at the first step of a size and
//! reused; afterwards a step in `f32` allocates nothing. A pass that no backward pass follows takes
//! the memory of one layer, in which one comes after the other, and in place of the other kind's.

mod attend;
#[doc(hidden)]
pub mod config;
mod places;
mod recur;

pub(crate) use config::size;
pub use config::{
    Config, ConfigError, Gla, InitScheme, Mixer, Mixers, Mlp, Norm, Position, QkNorm,
};

use core::ops::Range;

use crate::nn::activation::add_assign;
use crate::nn::attention::Shape;
use crate::nn::batch::{Batch, Model};
use crate::nn::embedding::{embed, embed_backward};
use crate::nn::linear::Products;
use crate::nn::loss;
use crate::nn::parameters::Layout;
use crate::nn::parts::{MlpKept, Normed, Pass, Spare, grow};
use crate::nn::real::Real;
use crate::nn::rope::Rope;
use crate::nn::site::Place;
use places::{Mixing, Places};

/// A model's structure and working memory; parameters and gradients are the caller's.
#[derive(Clone, Debug)]
pub struct Decoder<T: Real> {
    config: Config,
    layout: Layout,
    places: Places,
    rope: Option<Rope<T>>,
    /// Of [`Model::set_z_loss`].
    z_loss: T,
    kept: Kept<T>,
    work: Work<T>,
}

/// Activations that the backward pass reads.
#[derive(Clone, Debug, Default)]
struct Kept<T> {
    /// What the memory was made for.
    pass: Pass,
    /// The tokens with the sink in its place.
    tokens: Vec<u32>,
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
    attend: attend::Kept<T>,
    recur: recur::Kept<T>,
    norm2: Normed<T>,
    mlp: MlpKept<T>,
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
    /// Columns of rows, dense.
    dense: [Vec<T>; 2],
    /// Gradient of what the decay gate's first factor writes.
    low: Vec<T>,
    /// Gradient of the scores, where a recipe looks at it.
    d_scores: Vec<T>,
    spare: Spare<T>,
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
            Position::Rope { base } if config.mixer.any(Mixer::Attention, config.layers) => {
                Some(Rope::new(config.context, config.head_dim(), base))
            }
            Position::Learned | Position::None | Position::Rope { .. } => None,
        };
        Ok(Self {
            places: Places::new(&config, &layout),
            config,
            layout,
            rope,
            z_loss: T::ZERO,
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
        let shape = self.forward(params, tokens, batch, Pass::Training, products);
        self.logits(params, 0..tokens.len(), products);
        let (n, vocab) = (tokens.len(), self.config.vocab);
        let scale = T::from_f64(1.0 / n as f64);
        let Kept { logits, losses, .. } = &mut self.kept;
        grow(losses, n);
        loss::cross_entropy_and_z(
            &mut logits[..n * vocab],
            vocab,
            targets,
            Some((scale, self.z_loss)),
            &mut losses[..n],
        );
        let mean = loss::mean(&losses[..n]);
        self.backward(params, grads, &shape, products);
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
        self.forward(params, tokens, batch, Pass::Forward, products);
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
        let mut seen = tokens.to_vec();
        if self.config.sink && seen.len() < self.config.context {
            // The sink takes the place of the first token: here of one that is put in front.
            seen.insert(0, 0);
        }
        self.forward(params, &seen, 1, Pass::Forward, products);
        self.logits(params, seen.len() - 1..seen.len(), products);
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

    /// Makes every buffer large enough for a pass over `shape`.
    fn reserve(&mut self, shape: &Shape, pass: Pass) {
        let Config { layers, d_model, .. } = self.config;
        let n = shape.batch * shape.sequence;
        let Self { kept, work, places, .. } = self;
        if kept.pass != pass {
            // Evaluations are of more sequences than steps; the memory of both is not needed at once.
            (*kept, *work) = (Kept { pass, ..Kept::default() }, Work::default());
        }
        let layers = if pass == Pass::Training { layers } else { 1 };
        kept.stream.resize_with(2 * layers + 1, Vec::new);
        kept.stream.iter_mut().for_each(|buffer| grow(buffer, n * d_model));
        kept.layers.resize_with(layers, Layer::default);
        for (l, block) in places.blocks.iter().enumerate() {
            let layer = &mut kept.layers[pass.memory(l)];
            layer.norm1.reserve(n, d_model);
            layer.norm2.reserve(n, d_model);
            match &block.mixer {
                Mixing::Attend(attend) => attend.reserve(shape, pass, &mut layer.attend, work),
                Mixing::Recur(recur) => {
                    let sizes = (shape.batch, shape.sequence);
                    recur.reserve(sizes, pass, &mut layer.recur, work);
                }
            }
            layer.mlp.reserve(&block.mlp, n);
            if pass == Pass::Training {
                grow(&mut work.d_inner, n * block.mlp.hidden);
                grow(&mut work.d_outer, n * block.mlp.d_before());
            }
        }
        kept.norm.reserve(n, d_model);
        if pass == Pass::Training {
            grow(&mut work.d_stream, n * d_model);
            work.d_norm.iter_mut().for_each(|buffer| grow(buffer, n * d_model));
        }
    }

    /// Up to and including the last norm.
    fn forward(
        &mut self,
        params: &[T],
        tokens: &[u32],
        batch: usize,
        pass: Pass,
        products: &mut dyn Products<T>,
    ) -> Shape {
        assert_eq!(params.len(), self.layout.len(), "parameters have the model's layout");
        let shape = self.shape(batch, tokens.len());
        self.reserve(&shape, pass);
        let Self { config, places, rope, kept, work, .. } = self;
        let (n, d, rope) = (tokens.len(), config.d_model, rope.as_ref());
        let vocab = config.vocab as u32;
        if let Some(token) = tokens.iter().find(|&&token| token >= vocab) {
            panic!("token {token} is outside the vocabulary of {vocab}");
        }
        kept.tokens.clear();
        kept.tokens.extend_from_slice(tokens);
        if config.sink {
            kept.tokens.iter_mut().step_by(shape.sequence).for_each(|first| *first = vocab);
        }
        let stream = &mut kept.stream;
        let positions = places.positions.clone().map(|range| &params[range]);
        let table = &params[places.table.clone()];
        embed(&kept.tokens, table, positions, shape.sequence, &mut stream[0][..n * d]);
        products.tensor(None, Place::Embedding, false, &mut stream[0][..n * d], d);
        for (l, block) in places.blocks.iter().enumerate() {
            let layer = Some(l as u32);
            let kept = &mut kept.layers[pass.memory(l)];
            let first = 2 * pass.memory(l);
            let [x, middle, y] = &mut stream[first..first + 3] else { unreachable!() };
            let (x, middle, y) = (&x[..n * d], &mut middle[..n * d], &mut y[..n * d]);

            block.norm1.forward(products, params, x, &mut kept.norm1, &mut work.spare);
            let normed = &kept.norm1.y[..n * d];
            match &block.mixer {
                Mixing::Attend(attend) => {
                    let kept = &mut kept.attend;
                    attend
                        .forward(products, params, &shape, rope, normed, pass, kept, work, middle);
                }
                Mixing::Recur(recur) => {
                    let (sizes, kept) = ((shape.batch, shape.sequence), &mut kept.recur);
                    recur.forward(products, params, sizes, normed, kept, work, middle);
                }
            }
            add_assign(middle, x);
            products.tensor(layer, Place::Residual, false, middle, d);

            block.norm2.forward(products, params, middle, &mut kept.norm2, &mut work.spare);
            let normed = &kept.norm2.y[..n * d];
            block.mlp.forward(products, params, n, normed, &mut kept.mlp, y);
            add_assign(y, middle);
            products.tensor(layer, Place::Residual, false, y, d);
            if pass == Pass::Forward {
                stream.swap(0, 2);
            }
        }
        let last = &stream[2 * pass.memory(config.layers)][..n * d];
        places.norm.forward(products, params, last, &mut kept.norm, &mut work.spare);
        shape
    }

    /// The logits of the given tokens of the batch, from the last norm's output.
    fn logits(&mut self, params: &[T], tokens: Range<usize>, products: &mut dyn Products<T>) {
        let Config { d_model, vocab, .. } = self.config;
        grow(&mut self.kept.logits, tokens.len() * vocab);
        let x = &self.kept.norm.y[tokens.start * d_model..tokens.end * d_model];
        let logits = &mut self.kept.logits[..tokens.len() * vocab];
        self.places.head.forward(products, params, x, logits);
        products.tensor(None, Place::Logits, false, logits, vocab);
    }

    /// From the gradient of the logits, which lies in their place, to those of all parameters.
    fn backward(
        &mut self,
        params: &[T],
        grads: &mut [T],
        shape: &Shape,
        products: &mut dyn Products<T>,
    ) {
        let Self { config, places, rope, kept, work, .. } = self;
        let (n, d, rope) = (kept.tokens.len(), config.d_model, rope.as_ref());
        // Taken out, so that the rest of the working memory can be lent whole.
        let [mut d_y, mut d_x] = core::mem::take(&mut work.d_norm);
        let mut d_stream_buffer = core::mem::take(&mut work.d_stream);
        let d_stream = &mut d_stream_buffer[..n * d];
        {
            let (d_y, d_x) = (&mut d_y[..n * d], &mut d_x[..n * d]);
            let d_logits = &mut kept.logits[..n * config.vocab];
            products.tensor(None, Place::Logits, true, d_logits, config.vocab);
            places.head.backward(products, params, grads, d_logits, &kept.norm.y[..n * d], d_y);
            let (last, spare) = (&kept.stream[2 * config.layers][..n * d], &mut work.spare);
            let norm = &places.norm;
            norm.backward(products, params, grads, last, &kept.norm, d_y, d_stream, spare);
            for (l, (block, kept_layer)) in places.blocks.iter().zip(&kept.layers).enumerate().rev()
            {
                let layer = Some(l as u32);
                let (x, middle) = (&kept.stream[2 * l][..n * d], &kept.stream[2 * l + 1][..n * d]);

                products.tensor(layer, Place::Residual, true, d_stream, d);
                let inside = [&mut work.d_inner[..], &mut work.d_outer[..]];
                let (y, kept_mlp) = (&kept_layer.norm2.y[..n * d], &kept_layer.mlp);
                let mlp = &block.mlp;
                mlp.backward(products, params, grads, n, y, kept_mlp, d_stream, inside, d_y);
                let (norm, kept_norm) = (&block.norm2, &kept_layer.norm2);
                let spare = &mut work.spare;
                norm.backward(products, params, grads, middle, kept_norm, d_y, d_x, spare);
                add_assign(d_stream, d_x);

                products.tensor(layer, Place::Residual, true, d_stream, d);
                let y = &kept_layer.norm1.y[..n * d];
                match &block.mixer {
                    Mixing::Attend(attend) => {
                        let kept = &kept_layer.attend;
                        attend.backward(
                            products, params, grads, shape, rope, y, kept, work, d_stream, d_y,
                        );
                    }
                    Mixing::Recur(recur) => {
                        let (sizes, kept) = ((shape.batch, shape.sequence), &kept_layer.recur);
                        recur
                            .backward(products, params, grads, sizes, y, kept, work, d_stream, d_y);
                    }
                }
                let (norm, kept_norm) = (&block.norm1, &kept_layer.norm1);
                let spare = &mut work.spare;
                norm.backward(products, params, grads, x, kept_norm, d_y, d_x, spare);
                add_assign(d_stream, d_x);
            }
        }
        products.tensor(None, Place::Embedding, true, d_stream, d);
        // The positions lie behind the table.
        let (head, tail) = grads.split_at_mut(places.table.end);
        let d_positions = places.positions.clone().map(|r| &mut tail[..r.len()]);
        let d_table = &mut head[places.table.clone()];
        embed_backward(&kept.tokens, d_stream, shape.sequence, d_table, d_positions);
        work.d_norm = [d_y, d_x];
        work.d_stream = d_stream_buffer;
    }
}

impl<T: Real> Model<T> for Decoder<T> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn set_z_loss(&mut self, coefficient: f64) {
        self.z_loss = T::from_f64(coefficient);
    }

    fn forward_backward(
        &mut self,
        params: &[T],
        grads: &mut [T],
        batch: &Batch<'_>,
        products: &mut dyn Products<T>,
    ) -> f64 {
        let Batch::Tokens { tokens, targets, sequences } = *batch else {
            panic!("a decoder reads tokens, not {batch:?}");
        };
        self.forward_backward(params, grads, tokens, targets, sequences, products)
    }

    fn losses(
        &mut self,
        params: &[T],
        batch: &Batch<'_>,
        products: &mut dyn Products<T>,
        losses: &mut [T],
    ) {
        let Batch::Tokens { tokens, targets, sequences } = *batch else {
            panic!("a decoder reads tokens, not {batch:?}");
        };
        self.losses(params, tokens, targets, sequences, products, losses);
    }

    fn last_logits(
        &mut self,
        params: &[T],
        tokens: &[u32],
        products: &mut dyn Products<T>,
    ) -> Option<&[T]> {
        Some(Self::last_logits(self, params, tokens, products))
    }
}
