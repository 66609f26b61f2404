//! The decoder-only transformer: forward, backward, loss.
//!
//! Pre-norm blocks as in GPT-2 and Llama, `h += o(mixer(norm1(h)))`, `h += down(act(norm2(h)))`, or as in
//! OLMo 2 with norms after what they norm, `h += norm1(o(mixer(h)))`, `h += norm2(down(act(h)))`; a last
//! norm, the head. The mixer of each layer is softmax attention or gated linear attention. Every product of a
//! linear operator goes through a [`Products`], in this order. Forward: for each layer q|k|v and o (gated
//! linear attention: q|k|v|g|gk.0, gk.1, o), gate|up (or up), down; then the head. Backward: the head, then
//! from the last layer to the first down, gate|up, and those of the mixer from the last to the first; of each
//! first `grad_input`, then `grad_weight`. The residual stream, attention, norms and activations are in the
//! device's numbers, except that every tensor that has a [`Place`] is shown to [`Products::tensor`], and its
//! gradient too.
//!
//! What the backward pass reads is saved per layer: the stream before each norm, each norm's output and
//! statistics, the MLP's pre-activations and activations. Of softmax attention these are q|k|v (rotated),
//! short rows' probabilities and the output; of gated linear attention all its projections, the decays, and
//! the recurrence's output, also normed and gated. These buffers are allocated at the first step of a size
//! and reused; afterwards a step in `f32` allocates nothing. A pass that no backward pass follows takes the
//! memory of one layer, in which one comes after the other, and in place of the other kind's.

mod attend;
mod cached;
#[doc(hidden)]
pub mod config;
mod evaluate;
mod pieces;
mod places;
mod recur;

pub use cached::{Cache, cache_bytes};
pub use config::{
    Biases, Config, ConfigError, Gla, InitScheme, Mixer, Mixers, Mlp, Norm, NormPlace, Position,
    QkNorm, Scaling,
};
pub(crate) use config::{UNWRITTEN, size};
pub use pieces::Piece;

use crate::nn::attention::Shape;
use crate::nn::batch::{Batch, Model};
use crate::nn::device::{Buffer, Cpu, Device, Matrix, MatrixMut, Slice, SliceMut, empty};
use crate::nn::device_rotation::DeviceRotation;
use crate::nn::hadamard::Rotation;
use crate::nn::linear::Products;
use crate::nn::parameters::Layout;
use crate::nn::parts::{Context, MlpSaved, Normed, Params, Pass, Spare};
use crate::nn::real::Real;
use crate::nn::rope;
use crate::nn::site::Place;
use places::{Mixing, Places};

/// A model's structure and working memory on a device; parameters and gradients are the caller's.
#[derive(Debug)]
pub struct Decoder<D: Device = Cpu> {
    device: D,
    config: Config,
    layout: Layout,
    places: Places,
    rope: Option<Rope<D>>,
    /// What down reads is rotated by this.
    rotation: Option<DeviceRotation<D>>,
    /// Of [`Model::set_z_loss`].
    z_loss: D::Real,
    saved: Saved<D>,
    work: Scratch<D>,
}

/// What turns what down reads, where a model has it.
pub(crate) fn device_rotation<D: Device>(device: &D, config: &Config) -> Option<DeviceRotation<D>> {
    Some(DeviceRotation::new(device, &Rotation::of_down(config.hidden, config.rotate_down?)?))
}

/// Rotations of queries and keys, where a model has them.
#[derive(Debug)]
struct Rope<D: Device> {
    /// Cosines and sines, (context, half a head).
    tables: [Buffer<D>; 2],
}

/// Activations that the backward pass reads.
#[derive(Debug)]
struct Saved<D: Device> {
    /// What the memory was made for.
    pass: Pass,
    /// The tokens with the sink in its place, as the host and as the device has them.
    tokens: Vec<u32>,
    listed: D::Tokens,
    targets: D::Tokens,
    /// The residual stream: before each norm of each block, and before the last one.
    stream: Vec<Buffer<D>>,
    layers: Vec<Layer<D>>,
    norm: Normed<D>,
    logits: Buffer<D>,
    losses: Buffer<D>,
}

empty!(Saved { pass, tokens, listed, targets, stream, layers, norm, logits, losses });

#[derive(Debug)]
struct Layer<D: Device> {
    norm1: Normed<D>,
    attend: attend::Saved<D>,
    recur: recur::Saved<D>,
    norm2: Normed<D>,
    mlp: MlpSaved<D>,
    /// What the mixer and the MLP write, where norms come after them.
    inner: [Buffer<D>; 2],
}

empty!(Layer { norm1, attend, recur, norm2, mlp, inner });

/// Memory whose contents no other part reads.
#[derive(Debug)]
struct Scratch<D: Device> {
    /// For attention.
    scratch: Buffer<D>,
    /// Gradient of the residual stream.
    d_stream: Buffer<D>,
    /// Gradient of a norm's output, then of its input.
    d_norm: [Buffer<D>; 2],
    /// Gradient of what enters o or down.
    d_inner: Buffer<D>,
    /// Gradient of q|k|v or gate|up.
    d_outer: Buffer<D>,
    /// Columns of rows, dense.
    dense: [Buffer<D>; 2],
    /// Gradient of what the decay gate's first factor writes.
    low: Buffer<D>,
    /// Gradient of the scores, where a recipe looks at it.
    d_scores: Buffer<D>,
    /// Of gated linear attention that goes on: q|k|v, decays and outputs from the last whole chunk on.
    since: [Buffer<D>; 3],
    spare: Spare<D>,
}

empty!(Scratch { scratch, d_stream, d_norm, d_inner, d_outer, dense, low, d_scores, since, spare });

impl<T: Real> Decoder<Cpu<T>> {
    /// A model of this shape on the CPU.
    ///
    /// # Errors
    /// If the shape is none; see [`Config::validate`].
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        Self::on(Cpu::new(), config)
    }
}

impl<D: Device> Decoder<D> {
    /// A model of this shape on a device.
    ///
    /// # Errors
    /// If the shape is none; see [`Config::validate`].
    pub fn on(device: D, config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        let layout = config.layout();
        let rope = match config.position {
            Position::Rope { base } if config.mixer.any(Mixer::Attention, config.layers) => {
                let frequencies = rope::frequencies(config.head_dim(), base, config.rope_scaling);
                let tables = rope::tables(config.context, &frequencies);
                Some(Rope { tables: tables.map(|table| device.buffer(table)) })
            }
            Position::Learned | Position::None | Position::Rope { .. } => None,
        };
        Ok(Self {
            places: Places::new(&config, &layout),
            config,
            layout,
            rope,
            rotation: device_rotation(&device, &config),
            z_loss: D::Real::ZERO,
            saved: Saved::default(),
            work: Scratch::default(),
            device,
        })
    }

    /// The shape.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Changes what turns the inputs of down for another.
    pub(crate) fn swap_rotation(&mut self, other: &mut Option<DeviceRotation<D>>) {
        core::mem::swap(&mut self.rotation, other);
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
    /// `tokens` is not `batch` sequences of one to `context` tokens, a token is not below
    /// `vocab`, or the configuration has `rotate_down`.
    pub fn forward_backward<'a>(
        &mut self,
        params: impl Into<Slice<'a, D>>,
        grads: impl Into<SliceMut<'a, D>>,
        tokens: &[u32],
        targets: &[u32],
        batch: usize,
        products: &mut dyn Products<D>,
    ) -> D::Scalar {
        let (params, mut grads) = (params.into(), grads.into());
        assert!(self.rotation.is_none(), "a model that rotates what down reads is not trained");
        assert_eq!(grads.len(), self.layout.len(), "gradients have the layout of the parameters");
        let shape = self.forward(params, tokens, batch, Pass::Training, products, None);
        self.logits(params, 0..tokens.len(), products);
        self.list_targets(tokens, targets);
        let (n, vocab) = (tokens.len(), self.config.vocab);
        let scale = D::Real::from_f64(1.0 / n as f64);
        let Saved { logits, losses, targets, .. } = &mut self.saved;
        self.device.grow(losses, n);
        self.device.cross_entropy(
            logits.first_mut(n * vocab),
            vocab,
            targets,
            Some([scale, self.z_loss]),
            losses.first_mut(n),
        );
        let mean = self.device.mean(losses.first(n));
        self.backward(params, &mut grads, &shape, products);
        mean
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

    /// Checks the targets of some tokens and lists them for the device.
    fn list_targets(&mut self, tokens: &[u32], targets: &[u32]) {
        assert_eq!(tokens.len(), targets.len(), "every token has one target");
        let vocab = self.config.vocab;
        if let Some(target) = targets.iter().find(|&&target| target as usize >= vocab) {
            panic!("target {target} is outside the vocabulary of {vocab}");
        }
        self.device.set_tokens(targets, &mut self.saved.targets);
    }

    /// Makes every buffer large enough for a pass over `shape`.
    fn reserve(&mut self, shape: &Shape, pass: Pass) {
        let Config { layers, d_model, norm_place, .. } = self.config;
        let n = shape.batch * shape.sequence;
        let Self { device, saved, work, places, .. } = self;
        if saved.pass != pass {
            // Evaluations are of more sequences than steps; the memory of both is not needed at once.
            (*saved, *work) = (Saved { pass, ..Saved::default() }, Scratch::default());
        }
        let layers = if pass == Pass::Training { layers } else { 1 };
        saved.stream.resize_with(2 * layers + 1, Buffer::default);
        saved.stream.iter_mut().for_each(|buffer| device.grow(buffer, n * d_model));
        saved.layers.resize_with(layers, Layer::default);
        for (l, block) in places.blocks.iter().enumerate() {
            let layer = &mut saved.layers[pass.memory(l)];
            layer.norm1.reserve(device, n, d_model);
            layer.norm2.reserve(device, n, d_model);
            if norm_place == NormPlace::After {
                layer.inner.iter_mut().for_each(|inner| device.grow(inner, n * d_model));
            }
            match &block.mixer {
                Mixing::Attend(attend) => {
                    attend.reserve(device, shape, pass, &mut layer.attend, work);
                }
                Mixing::Recur(recur) => {
                    let sizes = (shape.batch, shape.sequence);
                    recur.reserve(device, sizes, pass, &mut layer.recur, work);
                }
            }
            layer.mlp.reserve(device, &block.mlp, n);
            if pass == Pass::Training {
                device.grow(&mut work.d_inner, n * block.mlp.hidden);
                device.grow(&mut work.d_outer, n * block.mlp.d_before());
            }
        }
        saved.norm.reserve(device, n, d_model);
        if pass == Pass::Training {
            device.grow(&mut work.d_stream, n * d_model);
            work.d_norm.iter_mut().for_each(|buffer| device.grow(buffer, n * d_model));
        }
    }

    /// Up to and including the last norm; of one sequence that goes on where a cache ends, if there is one.
    fn forward(
        &mut self,
        params: Slice<'_, D>,
        tokens: &[u32],
        batch: usize,
        pass: Pass,
        products: &mut dyn Products<D>,
        mut cache: Option<&mut Cache<D>>,
    ) -> Shape {
        assert_eq!(params.len(), self.layout.len(), "parameters have the model's layout");
        let (params, shape) = (params.into(), self.shape(batch, tokens.len()));
        let past = cache.as_ref().map_or(0, |cache| cache.tokens());
        self.reserve(&shape, pass);
        self.embed(params, tokens, &shape, past, products);
        for l in 0..self.config.layers {
            let past = cache.as_mut().map(|cache| cache.layer(l));
            self.block(params, l, &shape, pass, past, products);
        }
        self.last_norm(params, tokens.len(), pass, products);
        shape
    }

    /// The stream's beginning, from tokens behind so many others.
    fn embed(
        &mut self,
        params: Params<'_, D>,
        tokens: &[u32],
        shape: &Shape,
        past: usize,
        products: &mut dyn Products<D>,
    ) {
        let Self { device, config, places, saved, .. } = self;
        let cx = &mut Context { device: &*device, products, params };
        let (n, d, vocab) = (tokens.len(), config.d_model, config.vocab as u32);
        if let Some(token) = tokens.iter().find(|&&token| token >= vocab) {
            panic!("token {token} is outside the vocabulary of {vocab}");
        }
        saved.tokens.clear();
        saved.tokens.extend_from_slice(tokens);
        if config.sink && past == 0 {
            saved.tokens.iter_mut().step_by(shape.sequence).for_each(|first| *first = vocab);
        }
        device.set_tokens(&saved.tokens, &mut saved.listed);
        let positions = places.positions.clone();
        let positions = positions.map(|range| params.part(range.start + past * d..range.end));
        let table = params.part(places.table.clone());
        let embedded = saved.stream[0].first_mut(n * d);
        device.embed(&saved.listed, table, positions, shape.sequence, embedded);
        cx.tensor(None, Place::Embedding, false, saved.stream[0].first_mut(n * d), d);
    }

    /// The stream through one block.
    fn block(
        &mut self,
        params: Params<'_, D>,
        l: usize,
        shape: &Shape,
        pass: Pass,
        past: Option<cached::Past<'_, D>>,
        products: &mut dyn Products<D>,
    ) {
        let Self { device, config, places, rope, rotation, saved, work, .. } = self;
        let cx = &mut Context { device: &*device, products, params };
        let (n, d, rope) = (shape.batch * shape.sequence, config.d_model, rope.as_ref());
        let after = config.norm_place == NormPlace::After;
        let (stream, block) = (&mut saved.stream, &places.blocks[l]);
        let layer = Some(l as u32);
        let saved = &mut saved.layers[pass.memory(l)];
        let first = 2 * pass.memory(l);
        let [x, middle, y] = &mut stream[first..first + 3] else { unreachable!() };
        let x = x.first(n * d);
        let (mut middle, mut y) = (middle.first_mut(n * d), y.first_mut(n * d));

        let [inner1, inner2] = &mut saved.inner;
        let (input, mut output) = if after {
            (x, inner1.first_mut(n * d))
        } else {
            block.norm1.forward(cx, x, &mut saved.norm1, &mut work.spare);
            (saved.norm1.y.first(n * d), middle.again())
        };
        match &block.mixer {
            Mixing::Attend(attend) => {
                let (saved, out) = (&mut saved.attend, output.again());
                attend.forward(cx, shape, rope, input, pass, saved, work, past, out);
            }
            Mixing::Recur(recur) => {
                let (sizes, saved) = ((shape.batch, shape.sequence), &mut saved.recur);
                recur.forward(cx, sizes, input, saved, work, past, output.again());
            }
        }
        if after {
            block.norm1.forward(cx, output.read(), &mut saved.norm1, &mut work.spare);
            copy(device, saved.norm1.y.first(n * d), middle.again());
        }
        device.add_assign(middle.again(), x);
        cx.tensor(layer, Place::Residual, false, middle.again(), d);

        let (input, mut output) = if after {
            (middle.read(), inner2.first_mut(n * d))
        } else {
            block.norm2.forward(cx, middle.read(), &mut saved.norm2, &mut work.spare);
            (saved.norm2.y.first(n * d), y.again())
        };
        block.mlp.forward(cx, n, input, rotation.as_ref(), &mut saved.mlp, output.again());
        if after {
            block.norm2.forward(cx, output.read(), &mut saved.norm2, &mut work.spare);
            copy(device, saved.norm2.y.first(n * d), y.again());
        }
        device.add_assign(y.again(), middle.read());
        cx.tensor(layer, Place::Residual, false, y, d);
        if pass == Pass::Forward {
            stream.swap(0, 2);
        }
    }

    /// What the last norm makes of the stream's end.
    fn last_norm(
        &mut self,
        params: Params<'_, D>,
        n: usize,
        pass: Pass,
        products: &mut dyn Products<D>,
    ) {
        let Self { device, config, places, saved, work, .. } = self;
        let cx = &mut Context { device: &*device, products, params };
        let last = saved.stream[2 * pass.memory(config.layers)].first(n * config.d_model);
        places.norm.forward(cx, last, &mut saved.norm, &mut work.spare);
    }

    /// From the gradient of the logits, which lies in their place, to those of all parameters.
    fn backward(
        &mut self,
        params: Slice<'_, D>,
        grads: &mut SliceMut<'_, D>,
        shape: &Shape,
        products: &mut dyn Products<D>,
    ) {
        let Self { device, config, places, rope, saved, work, .. } = self;
        let cx = &mut Context { device: &*device, products, params: params.into() };
        let (n, d, rope) = (saved.tokens.len(), config.d_model, rope.as_ref());
        let after = config.norm_place == NormPlace::After;
        // Taken out, so that the rest of the working memory can be lent whole.
        let [mut d_y_buffer, mut d_x_buffer] = core::mem::take(&mut work.d_norm);
        let mut d_stream_buffer = core::mem::take(&mut work.d_stream);
        {
            let (mut d_y, mut d_x) = (d_y_buffer.first_mut(n * d), d_x_buffer.first_mut(n * d));
            let mut d_stream = d_stream_buffer.first_mut(n * d);
            let mut d_logits = saved.logits.first_mut(n * config.vocab);
            cx.tensor(None, Place::Logits, true, d_logits.again(), config.vocab);
            let y = saved.norm.y.first(n * d);
            // The gradient of a tied head is the token table's, which ends with this pass.
            let late = config.tied && cx.products.sums_are_late();
            if config.tied {
                places.head.input_backward(cx, d_logits.read(), d_y.again());
                if !late {
                    cx.products.sum_begins(device, grads.again(), places.table.clone());
                    places.head.weight_backward(cx, grads, d_logits.read(), y);
                }
            } else {
                places.head.backward(cx, grads, d_logits.read(), y, d_y.again());
            }
            let (last, spare) = (saved.stream[2 * config.layers].first(n * d), &mut work.spare);
            let (norm, to) = (&places.norm, d_stream.again());
            norm.backward(cx, grads, last, &saved.norm, d_y.again(), to, spare);
            for (l, (block, layer)) in places.blocks.iter().zip(&saved.layers).enumerate().rev() {
                let at = Some(l as u32);
                let [x, middle] = [2 * l, 2 * l + 1].map(|i| saved.stream[i].first(n * d));

                cx.tensor(at, Place::Residual, true, d_stream.again(), d);
                let [inner1, inner2] = layer.inner.each_ref();
                let (norm, normed) = (&block.norm2, &layer.norm2);
                let inside = [work.d_inner.all_mut(), work.d_outer.all_mut()];
                let (mlp, saved) = (&block.mlp, &layer.mlp);
                if after {
                    copy(device, d_stream.read(), d_y.again());
                    let (of, spare) = (inner2.first(n * d), &mut work.spare);
                    norm.backward(cx, grads, of, normed, d_y.again(), d_x.again(), spare);
                    let (g, to) = (d_x.read(), d_y.again());
                    mlp.backward(cx, grads, n, middle, saved, g, inside, to);
                    device.add_assign(d_stream.again(), d_y.read());
                } else {
                    let (y, g) = (normed.y.first(n * d), d_stream.read());
                    mlp.backward(cx, grads, n, y, saved, g, inside, d_y.again());
                    let (to, spare) = (d_x.again(), &mut work.spare);
                    norm.backward(cx, grads, middle, normed, d_y.again(), to, spare);
                    device.add_assign(d_stream.again(), d_x.read());
                }

                cx.tensor(at, Place::Residual, true, d_stream.again(), d);
                let (norm, normed) = (&block.norm1, &layer.norm1);
                if after {
                    copy(device, d_stream.read(), d_y.again());
                    let (of, spare) = (inner1.first(n * d), &mut work.spare);
                    norm.backward(cx, grads, of, normed, d_y.again(), d_x.again(), spare);
                }
                let (y, g, to) = match after {
                    true => (x, d_x.read(), d_y.again()),
                    false => (normed.y.first(n * d), d_stream.read(), d_y.again()),
                };
                match &block.mixer {
                    Mixing::Attend(attend) => {
                        attend.backward(cx, grads, shape, rope, y, &layer.attend, work, g, to);
                    }
                    Mixing::Recur(recur) => {
                        let sizes = (shape.batch, shape.sequence);
                        recur.backward(cx, grads, sizes, y, &layer.recur, work, g, to);
                    }
                }
                if after {
                    device.add_assign(d_stream.again(), d_y.read());
                    continue;
                }
                let (to, spare) = (d_x.again(), &mut work.spare);
                norm.backward(cx, grads, x, normed, d_y.again(), to, spare);
                device.add_assign(d_stream.again(), d_x.read());
            }
            cx.tensor(None, Place::Embedding, true, d_stream.again(), d);
            let g = d_stream.read();
            if late || !config.tied {
                cx.products.sum_begins(device, grads.again(), places.table.clone());
            }
            if late {
                places.head.weight_backward(cx, grads, d_logits.read(), y);
            }
            device.embed_backward(&saved.listed, g, grads.part(places.table.clone()));
            cx.products.sum_ends(device, grads.read(), places.table.clone());
            if let Some(positions) = places.positions.clone() {
                cx.products.sum_begins(device, grads.again(), positions.clone());
                device.positions_backward(g, d, shape.sequence, grads.part(positions.clone()));
                cx.products.sum_ends(device, grads.read(), positions);
            }
        }
        work.d_norm = [d_y_buffer, d_x_buffer];
        work.d_stream = d_stream_buffer;
    }
}

/// Copies as many numbers as there are.
fn copy<D: Device>(device: &D, from: Slice<'_, D>, to: SliceMut<'_, D>) {
    let len = from.len();
    device.copy(Matrix::new(from, 1, len), MatrixMut::new(to, 1, len));
}

impl<D: Device> Model<D> for Decoder<D> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn set_z_loss(&mut self, coefficient: f64) {
        self.z_loss = D::Real::from_f64(coefficient);
    }

    fn forward_backward(
        &mut self,
        params: Slice<'_, D>,
        mut grads: SliceMut<'_, D>,
        batch: &Batch<'_>,
        products: &mut dyn Products<D>,
    ) -> D::Scalar {
        let Batch::Tokens { tokens, targets, sequences } = *batch else {
            panic!("a decoder reads tokens, not {batch:?}");
        };
        self.forward_backward(params, grads.again(), tokens, targets, sequences, products)
    }

    fn losses(
        &mut self,
        params: Slice<'_, D>,
        batch: &Batch<'_>,
        products: &mut dyn Products<D>,
        losses: SliceMut<'_, D>,
    ) {
        let Batch::Tokens { tokens, targets, sequences } = *batch else {
            panic!("a decoder reads tokens, not {batch:?}");
        };
        self.losses(params, tokens, targets, sequences, products, losses);
    }

    fn last_logits(
        &mut self,
        params: Slice<'_, D>,
        tokens: &[u32],
        products: &mut dyn Products<D>,
    ) -> Option<Slice<'_, D>> {
        Some(Self::last_logits(self, params, tokens, products))
    }
}
