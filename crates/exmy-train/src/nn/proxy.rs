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

pub use crate::nn::loss::RowLoss as Loss;
pub use config::{Activation, Config, Init, Precision, TeacherActivation};

use crate::nn::batch::{Batch, Model};
use crate::nn::decoder::{ConfigError, Norm};
use crate::nn::device::{Buffer, Cpu, Device, Matrix, MatrixMut, Slice, SliceMut, empty};
use crate::nn::linear::{Products, Unquantized};
use crate::nn::parameters::Layout;
use crate::nn::parts::{self, Affine, Context, Linear, Mlp, MlpSaved, Normed, Pass, Spare};
use crate::nn::real::Real;
use crate::nn::relu::Function;
use crate::nn::site::{Operator, Place};
use exmy::random::Philox;

/// A student, its teacher and their working memory on a device; the student's parameters and gradients are
/// the caller's.
#[derive(Debug)]
pub struct Proxy<D: Device = Cpu> {
    device: D,
    config: Config,
    layout: Layout,
    blocks: Vec<Block>,
    teacher: Vec<Mlp>,
    teacher_params: Buffer<D>,
    saved: Saved<D>,
    work: Scratch<D>,
}

#[derive(Clone, Debug)]
struct Block {
    norm: Option<Affine>,
    mlp: Mlp,
}

/// Activations that the backward pass reads.
#[derive(Debug)]
struct Saved<D: Device> {
    /// What the memory was made for.
    pass: Pass,
    /// Before each block and after the last; without a backward pass of one block.
    stream: Vec<Buffer<D>>,
    norms: Vec<Normed<D>>,
    mlps: Vec<MlpSaved<D>>,
    losses: Buffer<D>,
}

empty!(Saved { pass, stream, norms, mlps, losses });

/// Memory whose contents no other part reads.
#[derive(Debug)]
struct Scratch<D: Device> {
    /// Numbers of the targets.
    len: usize,
    targets: Buffer<D>,
    d_stream: Buffer<D>,
    d_y: Buffer<D>,
    d_x: Buffer<D>,
    d_after: Buffer<D>,
    d_before: Buffer<D>,
    spare: Spare<D>,
}

empty!(Scratch { len, targets, d_stream, d_y, d_x, d_after, d_before, spare });

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
        down: down.with_bias_of(layout, [&bias; 2]),
    }
}

impl<T: Real> Proxy<Cpu<T>> {
    /// A student of this shape with the teacher of `seed`, on the CPU.
    ///
    /// # Errors
    /// If the shape is none; see [`Config::validate`].
    pub fn new(config: Config, seed: u64) -> Result<Self, ConfigError> {
        Self::on(Cpu::new(), config, seed)
    }
}

impl<D: Device> Proxy<D> {
    /// A student of this shape with the teacher of `seed`, on a device.
    ///
    /// # Errors
    /// If the shape is none; see [`Config::validate`].
    pub fn on(device: D, config: Config, seed: u64) -> Result<Self, ConfigError> {
        config.validate()?;
        let (layout, d) = (config.layout(), config.width);
        let activation = match config.activation {
            Activation::Gelu => parts::Activation::Plain(Function::Gelu),
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
            TeacherActivation::Gelu => parts::Activation::Plain(Function::Gelu),
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
            teacher_params: {
                let numbers = params.iter().map(|&x| D::Real::from_f64(f64::from(x)));
                device.buffer(numbers.collect())
            },
            config,
            layout,
            saved: Saved::default(),
            work: Scratch::default(),
            device,
        })
    }

    /// The shape.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The targets that the last pass was compared with, (rows, width).
    pub fn targets(&self) -> Slice<'_, D> {
        self.work.targets.first(self.work.len)
    }

    /// Draws rows and targets.
    fn draw(&mut self, batch: &Batch<'_>, pass: Pass, products: &mut dyn Products<D>) -> usize {
        let Batch::Drawn { seed, stream, first, rows } = *batch else {
            panic!("the proxy draws its rows, it has no use for {batch:?}");
        };
        let d = self.config.width;
        let (n, start) = (rows * d, first * d as u64);
        self.reserve(rows, pass);
        let Self { device, saved, work, teacher, teacher_params, config, .. } = self;
        // The teacher works in what the student is going to write.
        let Saved { stream: passing, mlps, .. } = saved;
        let [x, next, ..] = &mut passing[..] else { unreachable!("there is a block") };
        let (mut x, mut next, inside) = (x.first_mut(n), next.first_mut(n), &mut mlps[0]);
        device.normals(x.again(), start, &Philox::new(seed, stream.with(0)), None);
        let products = match config.teacher_precision {
            Precision::F32 => &mut Unquantized as &mut dyn Products<D>,
            Precision::Recipe => products,
        };
        let cx = &mut Context { device: &*device, products, params: teacher_params.all().into() };
        work.len = n;
        device.grow(&mut work.targets, n);
        let mut targets = work.targets.first_mut(n);
        let copy = |from: Slice<'_, D>, to: SliceMut<'_, D>| {
            device.copy(Matrix::new(from, 1, n), MatrixMut::new(to, 1, n));
        };
        copy(x.read(), targets.again());
        for block in teacher {
            inside.reserve(device, block, rows);
            block.forward(cx, rows, targets.read(), None, inside, next.again());
            copy(next.read(), targets.again());
        }
        if config.noise > 0.0 {
            let size = D::Real::from_f64(config.noise);
            device.normals(targets, start, &Philox::new(seed, stream.with(1)), Some(size));
        }
        rows
    }

    /// Makes every buffer large enough for `rows`.
    fn reserve(&mut self, rows: usize, pass: Pass) {
        let n = rows * self.config.width;
        let Self { device, saved, work, blocks, .. } = self;
        if saved.pass != pass {
            // Evaluations are of more rows than steps; the memory of both is not needed at once.
            (*saved, *work) = (Saved { pass, ..Saved::default() }, Scratch::default());
        }
        let layers = if pass == Pass::Training { blocks.len() } else { 1 };
        saved.stream.resize_with(layers + 1, Buffer::default);
        saved.stream.iter_mut().for_each(|buffer| device.grow(buffer, n));
        saved.norms.resize_with(layers, Normed::default);
        saved.mlps.resize_with(layers, MlpSaved::default);
        for (k, block) in blocks.iter().enumerate() {
            let at = pass.memory(k);
            if block.norm.is_some() {
                saved.norms[at].reserve(device, rows, self.config.width);
            }
            saved.mlps[at].reserve(device, &block.mlp, rows);
            if pass == Pass::Training {
                device.grow(&mut work.d_after, rows * block.mlp.hidden);
                device.grow(&mut work.d_before, rows * block.mlp.d_before());
            }
        }
        device.grow(&mut saved.losses, rows);
        if pass == Pass::Training {
            for buffer in [&mut work.d_stream, &mut work.d_y, &mut work.d_x] {
                device.grow(buffer, n);
            }
        }
    }

    /// From the rows to the losses of each.
    fn forward(&mut self, params: Slice<'_, D>, rows: usize, products: &mut dyn Products<D>) {
        assert_eq!(params.len(), self.layout.len(), "parameters have the model's layout");
        let d = self.config.width;
        let n = rows * d;
        let Self { device, config, saved, work, blocks, .. } = self;
        let cx = &mut Context { device: &*device, products, params: params.into() };
        let pass = saved.pass;
        for (k, block) in blocks.iter().enumerate() {
            let at = pass.memory(k);
            let (before, after) = saved.stream.split_at_mut(at + 1);
            let (x, mut y) = (before[at].first(n), after[0].first_mut(n));
            let inside = match &block.norm {
                Some(norm) => {
                    norm.forward(cx, x, &mut saved.norms[at], &mut work.spare);
                    saved.norms[at].y.first(n)
                }
                None => x,
            };
            block.mlp.forward(cx, rows, inside, None, &mut saved.mlps[at], y.again());
            device.add_assign(y.again(), x);
            cx.tensor(Some(k as u32), Place::Residual, false, y, d);
            if pass == Pass::Forward {
                saved.stream.swap(0, 1);
            }
        }
        let output = saved.stream[pass.memory(blocks.len())].first(n);
        let losses = saved.losses.first_mut(rows);
        device.row_loss(config.loss, output, work.targets.first(n), d, losses);
    }

    /// From the losses to the gradients of all parameters.
    fn backward(
        &mut self,
        params: Slice<'_, D>,
        grads: &mut SliceMut<'_, D>,
        rows: usize,
        products: &mut dyn Products<D>,
    ) {
        let d = self.config.width;
        let n = rows * d;
        let Self { device, config, saved, work, blocks, .. } = self;
        let cx = &mut Context { device: &*device, products, params: params.into() };
        let Scratch { targets, d_stream, d_y, d_x, d_after, d_before, spare, .. } = work;
        let (mut d_stream, mut d_y) = (d_stream.first_mut(n), d_y.first_mut(n));
        let mut d_x = d_x.first_mut(n);
        let output = saved.stream[blocks.len()].first(n);
        device.row_loss_backward(config.loss, output, targets.first(n), d, d_stream.again());
        for (k, block) in blocks.iter().enumerate().rev() {
            let x = saved.stream[k].first(n);
            cx.tensor(Some(k as u32), Place::Residual, true, d_stream.again(), d);
            let inside = block.norm.as_ref().map_or(x, |_| saved.norms[k].y.first(n));
            let buffers = [d_after.all_mut(), d_before.all_mut()];
            let (mlp, g, to) = (&block.mlp, d_stream.read(), d_y.again());
            mlp.backward(cx, grads, rows, inside, &saved.mlps[k], g, buffers, to);
            match &block.norm {
                Some(norm) => {
                    let (saved, to) = (&saved.norms[k], d_x.again());
                    norm.backward(cx, grads, x, saved, d_y.again(), to, spare);
                    device.add_assign(d_stream.again(), d_x.read());
                }
                None => device.add_assign(d_stream.again(), d_y.read()),
            }
        }
    }
}

impl<D: Device> Model<D> for Proxy<D> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn forward_backward(
        &mut self,
        params: Slice<'_, D>,
        mut grads: SliceMut<'_, D>,
        batch: &Batch<'_>,
        products: &mut dyn Products<D>,
    ) -> D::Scalar {
        assert_eq!(grads.len(), self.layout.len(), "gradients have the layout of the parameters");
        let rows = self.draw(batch, Pass::Training, products);
        self.forward(params, rows, products);
        let mean = self.device.mean(self.saved.losses.first(rows));
        self.backward(params, &mut grads, rows, products);
        mean
    }

    fn losses(
        &mut self,
        params: Slice<'_, D>,
        batch: &Batch<'_>,
        products: &mut dyn Products<D>,
        losses: SliceMut<'_, D>,
    ) {
        let rows = self.draw(batch, Pass::Forward, products);
        assert_eq!(rows, losses.len(), "every row has one loss");
        self.forward(params, rows, products);
        let own = Matrix::new(self.saved.losses.first(rows), 1, rows);
        self.device.copy(own, MatrixMut::new(losses, 1, rows));
    }
}
