//! The student-teacher residual MLP: a proxy for the stack of a transformer without attention.
//!
//! As in the study of MX training instabilities (arXiv 2506.20752, its synthetic experiments).
//! Student, from `A_0 = x` of width d, for each block:
//!
//! ```text
//! A_k = A_(k-1) + W2_k φ(W1_k LN(A_(k-1))) + c_k        W1 (4 d, d), W2 (d, 4 d), bias c
//! ```
//!
//! with SwiGLU of `round(8 d / 3)` hidden units where φ is gated, and without LN where the norm is
//! off. Teacher: blocks `W2 φ(W1 x)` one after the other, of its own width (d unless said
//! otherwise), without residual, norm or bias, drawn from the run's seed and frozen. Rows
//! `x ~ N(0, I)` and targets `teacher(x) + noise N(0, I)` are drawn by address, so none is ever used
//! twice and every number of a batch depends on (seed, part of the data, row) alone. The loss is the
//! mean of the squared errors over rows and features, or the mean over rows of
//! `KL(softmax(target) || softmax(A_L))`.
//!
//! Products of the student go through a [`Products`] as `layers.K.up_proj` (with `gate_proj`) and
//! `down_proj`, in the order of the [`Decoder`](crate::nn::decoder::Decoder)'s; those of the teacher
//! only where [`Precision::Recipe`] says so, as `teacher.up_proj` and so on.

mod config;
#[doc(hidden)]
pub mod draw;

pub use config::{Activation, Config, Init, Loss, Precision, TeacherActivation};

use crate::nn::activation::add_assign;
use crate::nn::batch::{Batch, Model};
use crate::nn::decoder::{ConfigError, Norm};
use crate::nn::linear::{Products, Unquantized};
use crate::nn::loss;
use crate::nn::parameters::Layout;
use crate::nn::parts::{self, Affine, Linear, Mlp, MlpKept, Normed, Pass, Spare, grow};
use crate::nn::real::{Real, sum_of_three};
use crate::nn::relu::Function;
use crate::nn::site::{Operator, Place};
use exmy::parallel;
use exmy::random::Philox;

/// A student, its teacher and their working memory; the student's parameters and gradients are the
/// caller's.
#[derive(Clone, Debug)]
pub struct Proxy<T: Real> {
    config: Config,
    layout: Layout,
    blocks: Vec<Block>,
    teacher: Vec<Mlp>,
    teacher_params: Vec<T>,
    kept: Kept<T>,
    work: Work<T>,
}

#[derive(Clone, Debug)]
struct Block {
    norm: Option<Affine>,
    mlp: Mlp,
}

/// What the backward pass reads.
#[derive(Clone, Debug, Default)]
struct Kept<T> {
    /// What the memory was made for.
    pass: Pass,
    /// Before each block and after the last; without a backward pass of one block.
    stream: Vec<Vec<T>>,
    norms: Vec<Normed<T>>,
    mlps: Vec<MlpKept<T>>,
    losses: Vec<T>,
}

/// Memory whose contents no other part reads.
#[derive(Clone, Debug, Default)]
struct Work<T> {
    targets: Vec<T>,
    d_stream: Vec<T>,
    d_y: Vec<T>,
    d_x: Vec<T>,
    d_after: Vec<T>,
    d_before: Vec<T>,
    spare: Spare<T>,
}

/// What the blocks of student and teacher have in common.
fn mlp(
    layout: &Layout,
    layer: usize,
    (prefix, operators): (&str, [Operator; 3]),
    activation: parts::Activation,
    hidden: usize,
    width: usize,
) -> Mlp {
    let [gate, up, down] = operators;
    let layer = Some(layer as u32);
    let name = |rest: &str| format!("{prefix}.{rest}.weight");
    let (first, members): (_, &[_]) = match activation {
        parts::Activation::Swiglu => ("gate_proj", &[(gate, hidden), (up, hidden)]),
        _ => ("up_proj", &[(up, hidden)]),
    };
    let (first, last, out) = (name(first), name("up_proj"), name("down_proj"));
    let down = Linear::new(layout, layer, &[(down, width)], hidden, [&out, &out]);
    let bias = format!("{prefix}.down_proj.bias");
    Mlp {
        layer,
        activation,
        hidden,
        up: Linear::new(layout, layer, members, width, [&first, &last]),
        down: if layout.find(&bias).is_some() { down.with_bias(layout, &bias) } else { down },
    }
}

impl<T: Real> Proxy<T> {
    /// A student of this shape with the teacher of `seed`.
    ///
    /// # Errors
    /// If the shape is none; see [`Config::validate`].
    pub fn new(config: Config, seed: u64) -> Result<Self, ConfigError> {
        config.validate()?;
        let (layout, d) = (config.layout(), config.width);
        let activation = match config.activation {
            Activation::Gelu => parts::Activation::Gelu,
            Activation::Swiglu => parts::Activation::Swiglu,
            Activation::Relu => parts::Activation::Plain(Function::Relu),
            Activation::Linear => parts::Activation::Plain(Function::Linear),
        };
        let block = |k: usize| {
            let prefix = format!("model.layers.{k}");
            let norm = |name: &str| {
                Affine::new(&layout, Some(k as u32), name, d, Norm::LayerNorm, config.norm_eps)
            };
            let operators = [Operator::Gate, Operator::Up, Operator::Down];
            let names = (&*format!("{prefix}.mlp"), operators);
            Block {
                norm: config.norm.then(|| norm(&format!("{prefix}.input_layernorm"))),
                mlp: mlp(&layout, k, names, activation, config.hidden(), d),
            }
        };
        let blocks = (0..config.layers).map(block).collect();
        let teachers = config.teacher_layout();
        let activation = match config.teacher_activation {
            TeacherActivation::Student => activation,
            TeacherActivation::Gelu => parts::Activation::Gelu,
            TeacherActivation::Swiglu => parts::Activation::Swiglu,
            TeacherActivation::Relu => parts::Activation::Plain(Function::Relu),
            TeacherActivation::Linear => parts::Activation::Plain(Function::Linear),
            TeacherActivation::Tanh => parts::Activation::Plain(Function::Tanh),
        };
        let teacher = |k: usize| {
            let operators = [Operator::TeacherGate, Operator::TeacherUp, Operator::TeacherDown];
            let names = (&*format!("teacher.layers.{k}"), operators);
            mlp(&teachers, k, names, activation, config.teacher_hidden(), d)
        };
        let params = teachers.initialize(seed);
        Ok(Self {
            blocks,
            teacher: (0..config.teacher_depth()).map(teacher).collect(),
            teacher_params: params.iter().map(|&x| T::from_f64(f64::from(x))).collect(),
            config,
            layout,
            kept: Kept::default(),
            work: Work::default(),
        })
    }

    /// The shape.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The targets that the last pass was compared with, (rows, width).
    pub fn targets(&self) -> &[T] {
        &self.work.targets
    }

    /// Draws rows and targets.
    fn draw(&mut self, batch: &Batch<'_>, pass: Pass, products: &mut dyn Products<T>) -> usize {
        let Batch::Drawn { seed, stream, first, rows } = *batch else {
            panic!("the proxy draws its rows, it has no use for {batch:?}");
        };
        let d = self.config.width;
        let (n, start) = (rows * d, first * d as u64);
        self.reserve(rows, pass);
        let Self { kept, work, teacher, teacher_params, config, .. } = self;
        // The teacher works in what the student is going to write.
        let Kept { stream: passing, mlps, .. } = kept;
        let [x, next, ..] = &mut passing[..] else { unreachable!("there is a block") };
        let (x, next, inside) = (&mut x[..n], &mut next[..n], &mut mlps[0]);
        draw::normals(x, start, &Philox::new(seed, stream.with(0)));
        let products = match config.teacher_precision {
            Precision::F32 => &mut Unquantized as &mut dyn Products<T>,
            Precision::Recipe => products,
        };
        work.targets.clear();
        work.targets.extend_from_slice(x);
        for block in teacher {
            inside.reserve(block, rows);
            block.forward(products, teacher_params, rows, &work.targets, inside, next);
            work.targets.copy_from_slice(next);
        }
        if config.noise > 0.0 {
            let (size, philox) = (T::from_f64(config.noise), Philox::new(seed, stream.with(1)));
            let add = |target: &mut T, noise| *target += size * noise;
            draw::with_normals(&mut work.targets, start, &philox, add);
        }
        rows
    }

    /// Makes every buffer large enough for `rows`.
    fn reserve(&mut self, rows: usize, pass: Pass) {
        let n = rows * self.config.width;
        let Self { kept, work, blocks, .. } = self;
        if kept.pass != pass {
            // Evaluations are of more rows than steps; the memory of both is not needed at once.
            (*kept, *work) = (Kept { pass, ..Kept::default() }, Work::default());
        }
        let layers = if pass == Pass::Training { blocks.len() } else { 1 };
        kept.stream.resize_with(layers + 1, Vec::new);
        kept.stream.iter_mut().for_each(|buffer| grow(buffer, n));
        kept.norms.resize_with(layers, Normed::default);
        kept.mlps.resize_with(layers, MlpKept::default);
        for (k, block) in blocks.iter().enumerate() {
            let at = pass.memory(k);
            if block.norm.is_some() {
                kept.norms[at].reserve(rows, self.config.width);
            }
            kept.mlps[at].reserve(&block.mlp, rows);
            if pass == Pass::Training {
                grow(&mut work.d_after, rows * block.mlp.hidden);
                grow(&mut work.d_before, rows * block.mlp.d_before());
            }
        }
        grow(&mut kept.losses, rows);
        if pass == Pass::Training {
            for buffer in [&mut work.d_stream, &mut work.d_y, &mut work.d_x] {
                grow(buffer, n);
            }
        }
    }

    /// From the rows to the losses of each.
    fn forward(&mut self, params: &[T], rows: usize, products: &mut dyn Products<T>) {
        assert_eq!(params.len(), self.layout.len(), "parameters have the model's layout");
        let d = self.config.width;
        let n = rows * d;
        let Self { config, kept, work, blocks, .. } = self;
        let pass = kept.pass;
        for (k, block) in blocks.iter().enumerate() {
            let at = pass.memory(k);
            let (before, after) = kept.stream.split_at_mut(at + 1);
            let (x, y) = (&before[at][..n], &mut after[0][..n]);
            let inside = match &block.norm {
                Some(norm) => {
                    norm.forward(products, params, x, &mut kept.norms[at], &mut work.spare);
                    &kept.norms[at].y[..n]
                }
                None => x,
            };
            block.mlp.forward(products, params, rows, inside, &mut kept.mlps[at], y);
            add_assign(y, x);
            products.tensor(Some(k as u32), Place::Residual, false, y, d);
            if pass == Pass::Forward {
                kept.stream.swap(0, 1);
            }
        }
        let output = &kept.stream[pass.memory(blocks.len())][..n];
        let per_width = T::ONE / T::from_f64(d as f64);
        let targets = &work.targets;
        if config.loss == Loss::Kl {
            return loss::divergence(output, targets, d, &mut kept.losses[..rows]);
        }
        const ROWS: usize = 64;
        parallel::for_each_chunk(&mut kept.losses[..rows], ROWS, |chunk, losses| {
            let rows = output.chunks_exact(d).zip(targets.chunks_exact(d)).skip(chunk * ROWS);
            for (loss, (a, y)) in losses.iter_mut().zip(rows) {
                *loss = per_width * sum_of_three(a, y, a, |a, y, _| (a - y) * (a - y));
            }
        });
    }

    /// From the losses to the gradients of all parameters.
    fn backward(
        &mut self,
        params: &[T],
        grads: &mut [T],
        rows: usize,
        products: &mut dyn Products<T>,
    ) {
        let d = self.config.width;
        let n = rows * d;
        let Self { config, kept, work, blocks, .. } = self;
        let Work { targets, d_stream, d_y, d_x, d_after, d_before, spare, .. } = work;
        let (d_stream, d_y, d_x) = (&mut d_stream[..n], &mut d_y[..n], &mut d_x[..n]);
        let output = &kept.stream[blocks.len()][..n];
        match config.loss {
            Loss::Mse => {
                let scale = T::from_f64(2.0 / n as f64);
                for ((g, &a), &y) in d_stream.iter_mut().zip(output).zip(&*targets) {
                    *g = (a - y) * scale;
                }
            }
            Loss::Kl => {
                let scale = T::from_f64(1.0 / rows as f64);
                loss::divergence_backward(output, targets, d, scale, d_stream);
            }
        }
        for (k, block) in blocks.iter().enumerate().rev() {
            let x = &kept.stream[k][..n];
            products.tensor(Some(k as u32), Place::Residual, true, d_stream, d);
            let inside = block.norm.as_ref().map_or(x, |_| &kept.norms[k].y[..n]);
            let buffers = [&mut d_after[..], &mut d_before[..]];
            let kept_mlp = &kept.mlps[k];
            let mlp = &block.mlp;
            mlp.backward(products, params, grads, rows, inside, kept_mlp, d_stream, buffers, d_y);
            match &block.norm {
                Some(norm) => {
                    let kept = &kept.norms[k];
                    norm.backward(products, params, grads, x, kept, d_y, d_x, spare);
                    add_assign(d_stream, d_x);
                }
                None => add_assign(d_stream, d_y),
            }
        }
    }
}

impl<T: Real> Model<T> for Proxy<T> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn forward_backward(
        &mut self,
        params: &[T],
        grads: &mut [T],
        batch: &Batch<'_>,
        products: &mut dyn Products<T>,
    ) -> f64 {
        assert_eq!(grads.len(), self.layout.len(), "gradients have the layout of the parameters");
        let rows = self.draw(batch, Pass::Training, products);
        self.forward(params, rows, products);
        let mean = loss::mean(&self.kept.losses[..rows]);
        self.backward(params, grads, rows, products);
        mean
    }

    fn losses(
        &mut self,
        params: &[T],
        batch: &Batch<'_>,
        products: &mut dyn Products<T>,
        losses: &mut [T],
    ) {
        let rows = self.draw(batch, Pass::Forward, products);
        assert_eq!(rows, losses.len(), "every row has one loss");
        self.forward(params, rows, products);
        losses.copy_from_slice(&self.kept.losses[..rows]);
    }
}
