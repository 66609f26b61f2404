//! What a model asks of the machine that computes it: one trait, implemented by each device.
//!
//! Decoder, proxy and trainer are written once against [`Device`]; only a device looks at the numbers of
//! parameters, activations, gradients and moments. [`Cpu`] is the reference: its operations are the
//! functions of this module's neighbours (`nn::norm`, `nn::attention`, ...), which say what is computed and
//! in which order it is summed. Every device gives exactly these bits.
//!
//! **Orders.** Along a row sums run in sixteen lanes, element `i` in lane `i mod 16`, ascending; lanes are
//! folded by halves (lane `i` plus lane `i + 8`, then 4, 2, 1). Sums over rows are stated at each operation.
//! `exp`, `ln`, `tanh` and the normal distribution are those of [`elementary`](crate::nn::elementary); a
//! product of two numbers is fused with an addition only where that is said.
//!
//! **Time.** Operations take effect in the order of their calls, but a device need not have finished one
//! when the call returns. [`read`](Storage::read), [`value`](Storage::value),
//! [`likeliest`](Training::likeliest) and [`check`](Storage::check) wait.
//!
//! **Failure.** Sizes that do not fit each other are a programmer's error and panic. What can go wrong on a
//! device (no memory left, a device that is lost) is remembered. Later operations do nothing, what is read is
//! zeros, and [`check`](Storage::check) says what happened. A trainer asks once a step.
//!
//! Names: `x` and `y` are input and output of a layer, `dx` and `dy` the gradients of the loss with respect
//! to them. Gradients of activations are overwritten, those of parameters are added to what is there.

mod cpu;
pub mod memory;

pub use cpu::Cpu;
pub use memory::{Buffer, Matrix, MatrixMut, Slice, SliceMut};

use core::borrow::BorrowMut;
use core::fmt::Debug;
use std::borrow::Cow;

use crate::nn::attention;
use crate::nn::gla;
use crate::nn::loss::RowLoss;
use crate::nn::norm::Norm;
use crate::nn::optimizer::{Optimizer, Update};
use crate::nn::real::Real;
use crate::nn::relu::Function;
use crate::nn::site::Product;
use crate::nn::stopwatch::Direction;
use exmy::error::Result;
use exmy::gemm::f32::Output;
use exmy::random::Philox;
use exmy::round::Rounding;
use exmy::slice::View;

/// The rounding to bfloat16 after every step of an operation on its way forward, and on its way back; `None`
/// for the precision of the device's numbers.
pub type Roundings = [Option<Rounding>; 2];

/// How a norm is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NormSteps {
    /// Which norm.
    pub norm: Norm,
    /// Added to the variance or mean square.
    pub eps: f64,
    /// The rounding of the steps forward up to the variance, and of the gain and bias.
    pub head: Option<Rounding>,
    /// The rounding of the other steps forward; there is one wherever the head has one.
    pub tail: Option<Rounding>,
    /// The rounding of the steps back.
    pub back: Option<Rounding>,
}

/// The operations of models, their loss and their optimizer: all of these traits. See the [module](self).
pub trait Device: Layers + Norms + SoftmaxAttention + LinearAttention + Training {}

impl<D: Layers + Norms + SoftmaxAttention + LinearAttention + Training> Device for D {}

/// Memory of a device, and when what was asked of it is done.
pub trait Storage: Clone + Debug + Send + 'static {
    /// What numbers are: f32, or f64 where gradients are checked.
    type Real: Real;
    /// Memory as it is borrowed: `[f32]` on the CPU.
    type Memory: ?Sized;
    /// Memory as it is owned: `Vec<f32>` on the CPU. The default has no element.
    type Owned: BorrowMut<Self::Memory> + Default + Send;
    /// A list of tokens or of channels, in the device's memory; the default is empty.
    type Tokens: Default + Debug + Send;
    /// A number that may not be known yet.
    type Scalar;

    /// What people call it; `None` for the processor.
    fn name(&self) -> Option<String> {
        None
    }

    /// Makes a buffer at least `len` elements long. It may lose its contents; new elements of a buffer that
    /// was empty are zeros. It never shrinks.
    fn grow(&self, buffer: &mut Buffer<Self>, len: usize);

    /// A buffer of these numbers.
    fn buffer(&self, numbers: Vec<Self::Real>) -> Buffer<Self>;

    /// Numbers as the host sees them.
    fn read<'a>(&self, from: Slice<'a, Self>) -> Cow<'a, [Self::Real]>;

    /// A list of tokens, over the one that is there.
    fn set_tokens(&self, tokens: &[u32], to: &mut Self::Tokens);

    /// The number, once it is known.
    fn value(&self, scalar: &Self::Scalar) -> f64;

    /// Waits for all operations.
    ///
    /// # Errors
    /// The first thing that went wrong on this device.
    fn check(&self) -> Result<()>;

    /// A matrix as the host sees it.
    fn read_matrix<'a>(&self, from: Matrix<'a, Self>) -> Host<'a, Self::Real> {
        let (rows, cols, stride) = (from.rows(), from.cols(), from.stride());
        Host { numbers: self.read(from.data()), rows, cols, stride }
    }

    /// Whether so many more elements, which could be computed again instead, would leave memory for all else.
    fn fits_in_memory(&self, _elements: usize) -> bool {
        false
    }

    /// Sets all elements.
    fn fill(&self, x: MatrixMut<'_, Self>, value: Self::Real);

    /// Copies all elements; the matrices have one shape and may have different strides.
    fn copy(&self, from: Matrix<'_, Self>, to: MatrixMut<'_, Self>);
}

/// Products, biases, activations, rotations and embeddings.
pub trait Layers: Storage {
    /// `y += x`, elementwise.
    fn add_assign(&self, y: SliceMut<'_, Self>, x: Slice<'_, Self>);

    /// One of the [three products](crate::nn::site), of matrices as they are stored, without rounding:
    /// `left rightᵀ` (forward), `left right` (`grad_input`), `leftᵀ right` (`grad_weight`), over `out` or
    /// added to it. Sums in f32 have the order of [`exmy::gemm::f32`].
    fn matmul(
        &self,
        product: Product,
        left: Matrix<'_, Self>,
        right: Matrix<'_, Self>,
        out: MatrixMut<'_, Self>,
        mode: Output,
    );

    /// Adds a bias to each row, `rows += bias`; with a rounding to bfloat16 of the bias before and of the
    /// sums after.
    fn add_bias(&self, rounding: Option<Rounding>, rows: SliceMut<'_, Self>, bias: Slice<'_, Self>);

    /// Adds the sum of the rows of `dy` to `d_bias`: one chain a column, rows ascending, from what `d_bias`
    /// holds. With a rounding to bfloat16 of `dy` before the chain starts at 0, and its end is rounded and
    /// added.
    fn bias_backward(
        &self,
        rounding: Option<Rounding>,
        dy: Slice<'_, Self>,
        d_bias: SliceMut<'_, Self>,
    );

    /// `y = f(x)`, elementwise ([`relu`](crate::nn::relu), [`activation`](crate::nn::activation)).
    fn activate(
        &self,
        function: Function,
        roundings: Roundings,
        x: Slice<'_, Self>,
        y: SliceMut<'_, Self>,
    );

    /// Backward of [`activate`](Self::activate) in place: `d` comes in as dy and leaves as dx.
    fn activate_backward(
        &self,
        function: Function,
        roundings: Roundings,
        x: Slice<'_, Self>,
        d: SliceMut<'_, Self>,
    );

    /// `y = silu(gate) up`, rows gate|up of twice `hidden` elements.
    fn swiglu(
        &self,
        roundings: Roundings,
        gate_up: Slice<'_, Self>,
        hidden: usize,
        y: SliceMut<'_, Self>,
    );

    /// Backward of [`swiglu`](Self::swiglu).
    fn swiglu_backward(
        &self,
        roundings: Roundings,
        gate_up: Slice<'_, Self>,
        hidden: usize,
        dy: Slice<'_, Self>,
        d_gate_up: SliceMut<'_, Self>,
    );

    /// Rotates the first heads of each row by the tabulated angles ([`rope`](crate::nn::rope)), or back.
    /// `sizes` are the row's width, the number of heads, and half a head; cosines and sines are (context,
    /// half a head).
    fn rotate(
        &self,
        x: SliceMut<'_, Self>,
        sizes: [usize; 3],
        sequence: usize,
        tables: [Slice<'_, Self>; 2],
        direction: Direction,
    );

    /// Signs and sums of a rotation by a Hadamard matrix ([`butterflies`](crate::nn::hadamard::butterflies)).
    fn butterflies(&self, x: SliceMut<'_, Self>, signs: Slice<'_, Self>, part: usize);

    /// Rows of a table by token, positions added ([`embedding`](crate::nn::embedding)).
    fn embed(
        &self,
        tokens: &Self::Tokens,
        table: Slice<'_, Self>,
        positions: Option<Slice<'_, Self>>,
        sequence: usize,
        y: SliceMut<'_, Self>,
    );

    /// Adds rows of `dy` to the rows of the table that their tokens name, in ascending token position.
    fn embed_backward(
        &self,
        tokens: &Self::Tokens,
        dy: Slice<'_, Self>,
        d_table: SliceMut<'_, Self>,
    );

    /// Adds rows of `dy`, of `width` elements, to those of their positions, sequences ascending.
    fn positions_backward(
        &self,
        dy: Slice<'_, Self>,
        width: usize,
        sequence: usize,
        d_positions: SliceMut<'_, Self>,
    );
}

/// Norms of rows.
pub trait Norms: Storage {
    /// Normalizes rows of `gain.len()` elements ([`norm`](crate::nn::norm), with roundings
    /// [`steps`](crate::nn::steps)). `mean` and `rstd` have an element a row for the backward pass; steps
    /// that are rounded leave them alone, and RMS norms the mean.
    fn norm(
        &self,
        steps: &NormSteps,
        x: Slice<'_, Self>,
        gain: Slice<'_, Self>,
        bias: Option<Slice<'_, Self>>,
        y: SliceMut<'_, Self>,
        statistics: [SliceMut<'_, Self>; 2],
    );

    /// Backward of [`norm`](Self::norm). Sums over rows: blocks of [`ROW_BLOCK`](crate::nn::norm::ROW_BLOCK)
    /// rows, each from 0, ascending; the blocks' sums are added to `d_gain` and `d_bias` in ascending order.
    fn norm_backward(
        &self,
        steps: &NormSteps,
        x: Slice<'_, Self>,
        gain: Slice<'_, Self>,
        statistics: [Slice<'_, Self>; 2],
        dy: Slice<'_, Self>,
        dx: SliceMut<'_, Self>,
        d_gain: SliceMut<'_, Self>,
        d_bias: Option<SliceMut<'_, Self>>,
    );
}

/// Softmax attention, whole or step by step.
pub trait SoftmaxAttention: Storage {
    /// Elements of working memory that attention asks for.
    fn attention_scratch(&self, shape: &attention::Shape) -> usize;

    /// Causal softmax attention ([`attention`]); saves the probabilities up to each row's own position,
    /// unless their slice is empty.
    fn attention(
        &self,
        shape: &attention::Shape,
        qkv: Slice<'_, Self>,
        y: SliceMut<'_, Self>,
        probabilities: SliceMut<'_, Self>,
        scratch: SliceMut<'_, Self>,
    );

    /// Attention of a sequence's last tokens to all of it ([`attention::attention_cached`]).
    fn attention_cached(
        &self,
        shape: &attention::Shape,
        qkv: Slice<'_, Self>,
        cache: Slice<'_, Self>,
        y: SliceMut<'_, Self>,
    );

    /// Backward of [`attention`](Self::attention), with the probabilities that it saved, or none.
    fn attention_backward(
        &self,
        shape: &attention::Shape,
        qkv: Slice<'_, Self>,
        probabilities: Slice<'_, Self>,
        dy: Slice<'_, Self>,
        dqkv: SliceMut<'_, Self>,
        scratch: SliceMut<'_, Self>,
    );

    /// Scores `q kᵀ / sqrt(head_dim)` up to each row's own position, else 0: a dot in sixteen lanes, without
    /// fused multiply-adds. These and the five that follow are attention for recipes that round what passes
    /// between its steps.
    fn scores(&self, shape: &attention::Shape, qkv: Slice<'_, Self>, s: SliceMut<'_, Self>);

    /// Scores into probabilities, in place.
    fn softmax(&self, shape: &attention::Shape, s: SliceMut<'_, Self>);

    /// Sums of the values, weighted by probabilities: a chain of fused multiply-adds a column, positions
    /// ascending.
    fn weigh(
        &self,
        shape: &attention::Shape,
        qkv: Slice<'_, Self>,
        p: Slice<'_, Self>,
        y: SliceMut<'_, Self>,
    );

    /// Backward of [`weigh`](Self::weigh): dV into `dqkv`, whose other columns become 0, and dP.
    fn weigh_backward(
        &self,
        shape: &attention::Shape,
        qkv: Slice<'_, Self>,
        p: Slice<'_, Self>,
        dy: Slice<'_, Self>,
        dqkv: SliceMut<'_, Self>,
        dp: SliceMut<'_, Self>,
    );

    /// Backward of [`softmax`](Self::softmax): dP into the gradient of the scores, in place.
    fn softmax_backward(&self, shape: &attention::Shape, p: Slice<'_, Self>, d: SliceMut<'_, Self>);

    /// Backward of [`scores`](Self::scores): dQ and dK into `dqkv`.
    fn scores_backward(
        &self,
        shape: &attention::Shape,
        qkv: Slice<'_, Self>,
        ds: Slice<'_, Self>,
        dqkv: SliceMut<'_, Self>,
    );
}

/// Gated linear attention, its decays and the gate behind it.
pub trait LinearAttention: Storage {
    /// Elements of working memory that gated linear attention asks for.
    fn gla_scratch(&self, shape: &gla::Shape) -> usize;

    /// The recurrence of gated linear attention ([`gla::gla`]), of rows of `stride` elements; from states and
    /// to states, or from zero if there are none.
    fn gla(
        &self,
        shape: &gla::Shape,
        qkv: Slice<'_, Self>,
        stride: usize,
        alpha: Slice<'_, Self>,
        y: SliceMut<'_, Self>,
        states: SliceMut<'_, Self>,
        scratch: SliceMut<'_, Self>,
    );

    /// Backward of [`gla`](Self::gla), from zero: the columns q|k|v of `dqkv` and the gradients of the
    /// decays' logarithms are overwritten.
    fn gla_backward(
        &self,
        shape: &gla::Shape,
        qkv: Slice<'_, Self>,
        stride: usize,
        alpha: Slice<'_, Self>,
        dy: Slice<'_, Self>,
        dqkv: SliceMut<'_, Self>,
        dga: SliceMut<'_, Self>,
        scratch: SliceMut<'_, Self>,
    );

    /// Decays of their gates ([`gla::decay`]).
    fn decay(&self, z: Slice<'_, Self>, tau: f64, least: f64, alpha: SliceMut<'_, Self>);

    /// Backward of [`decay`](Self::decay), in place.
    fn decay_backward(&self, z: Slice<'_, Self>, tau: f64, least: f64, d: SliceMut<'_, Self>);

    /// `y = x silu(gates)`, elementwise.
    fn swish_gate(&self, x: Slice<'_, Self>, gates: Matrix<'_, Self>, y: SliceMut<'_, Self>);

    /// Backward of [`swish_gate`](Self::swish_gate): `d` comes in as dy and leaves as dx, the gradient of the
    /// gates is written to `d_gates`.
    fn swish_gate_backward(
        &self,
        x: Slice<'_, Self>,
        gates: Matrix<'_, Self>,
        d: SliceMut<'_, Self>,
        d_gates: MatrixMut<'_, Self>,
    );
}

/// Losses, normal numbers and the optimizer.
pub trait Training: Storage {
    /// The cross-entropy of each row of logits ([`loss`](crate::nn::loss)). With `[scale, z]` the logits
    /// become the gradient of `scale` times the sum of losses and z-losses, else they stay.
    fn cross_entropy(
        &self,
        logits: SliceMut<'_, Self>,
        vocab: usize,
        targets: &Self::Tokens,
        scale: Option<[Self::Real; 2]>,
        losses: SliceMut<'_, Self>,
    );

    /// The loss of each row of `a` against that of `y`, of `width` elements.
    fn row_loss(
        &self,
        loss: RowLoss,
        a: Slice<'_, Self>,
        y: Slice<'_, Self>,
        width: usize,
        losses: SliceMut<'_, Self>,
    );

    /// The gradient with respect to `a` of the mean of [`row_loss`](Self::row_loss)'s losses.
    fn row_loss_backward(
        &self,
        loss: RowLoss,
        a: Slice<'_, Self>,
        y: Slice<'_, Self>,
        width: usize,
        da: SliceMut<'_, Self>,
    );

    /// Where each row of logits is largest ([`loss::likeliest`](crate::nn::loss::likeliest)); waits.
    fn likeliest(&self, logits: Slice<'_, Self>, vocab: usize) -> Vec<u32>;

    /// The mean of losses, summed in f64 from the first to the last.
    fn mean(&self, losses: Slice<'_, Self>) -> Self::Scalar;

    /// Elements `start..` of the generator's sequence of normal numbers ([`normal`](crate::nn::normal)), or
    /// with `size` that many times them added to what is there.
    fn normals(&self, x: SliceMut<'_, Self>, start: u64, philox: &Philox, size: Option<Self::Real>);

    /// The Euclidean norm: squares summed in f64, in chunks of [`CHUNK`](crate::nn::optimizer::CHUNK)
    /// elements, each in sixteen lanes; chunk sums added in ascending order.
    fn global_norm(&self, grads: Slice<'_, Self>) -> Self::Scalar;

    /// One update of an optimizer; moments that it does not keep are empty.
    fn update(
        &self,
        optimizer: &Optimizer,
        at: &Update,
        params: SliceMut<'_, Self>,
        grads: Slice<'_, Self>,
        moments: [SliceMut<'_, Self>; 2],
    );
}

/// `Default` of structs that hold nothing yet: a derived one would ask it of the device, too.
macro_rules! empty {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl<D: $crate::nn::device::Device> Default for $name<D> {
            fn default() -> Self {
                Self { $($field: Default::default()),* }
            }
        }
    };
}
pub(crate) use empty;

/// A matrix that was read by the host.
#[derive(Debug)]
pub struct Host<'a, T: Clone> {
    numbers: Cow<'a, [T]>,
    rows: usize,
    cols: usize,
    stride: usize,
}

impl<T: Copy> Host<'_, T> {
    /// The numbers.
    ///
    /// # Panics
    /// Never: a matrix is read whole.
    pub fn view(&self) -> View<'_, T> {
        let Self { numbers, rows, cols, stride } = self;
        View::with_strides(numbers, (*rows, *cols), (*stride, 1))
            .expect("a matrix that was read whole")
    }
}
