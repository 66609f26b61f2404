//! The CPU: memory is vectors of numbers, operations are the functions of the layers' modules.
//!
//! An operation has been done when its call returns; nothing can go wrong but a mistake in sizes.

use core::fmt;
use core::marker::PhantomData;
use std::borrow::Cow;

use super::{
    Buffer, Layers, LinearAttention, Matrix, MatrixMut, NormSteps, Norms, Roundings, Slice,
    SliceMut, SoftmaxAttention, Storage, Training,
};
use crate::nn::loss::{self, RowLoss};
use crate::nn::norm::{Norm, layer_norm, layer_norm_backward, rms_norm, rms_norm_backward};
use crate::nn::optimizer::{Optimizer, Update, global_norm};
use crate::nn::real::Real;
use crate::nn::relu::{self, Function};
use crate::nn::site::Product;
use crate::nn::stopwatch::Direction;
use crate::nn::{
    activation, attention, attention::split, bias, embedding, gla, hadamard, normal, rope, steps,
};
use exmy::error::Result;
use exmy::gemm::f32::Output;
use exmy::random::Philox;
use exmy::round::Rounding;

/// The processor that the program runs on, with numbers of type `T`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Cpu<T = f32>(PhantomData<T>);

impl<T> Cpu<T> {
    /// There is but one.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> fmt::Debug for Cpu<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cpu")
    }
}

impl<T: Real> Storage for Cpu<T> {
    type Real = T;
    type Memory = [T];
    type Owned = Vec<T>;
    type Tokens = Vec<u32>;
    type Scalar = f64;

    fn grow(&self, buffer: &mut Buffer<Self>, len: usize) {
        if len <= buffer.len() {
            return;
        }
        let mut numbers = core::mem::take(buffer).into_memory();
        if numbers.is_empty() {
            // Zeros of the system: its pages are first touched by the threads that write to them.
            numbers = vec![T::ZERO; len];
        } else {
            // What was there is lost on other devices, and so in tests.
            let lost = if cfg!(debug_assertions) { T::from_f64(f64::NAN) } else { T::ZERO };
            numbers.clear();
            numbers.reserve_exact(len);
            numbers.resize(len, lost);
        }
        *buffer = numbers.into();
    }

    fn buffer(&self, numbers: Vec<T>) -> Buffer<Self> {
        numbers.into()
    }

    fn read<'a>(&self, from: Slice<'a, Self>) -> Cow<'a, [T]> {
        from.numbers().into()
    }

    fn set_tokens(&self, tokens: &[u32], to: &mut Vec<u32>) {
        to.clear();
        to.extend_from_slice(tokens);
    }

    fn value(&self, scalar: &f64) -> f64 {
        *scalar
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn fill(&self, x: MatrixMut<'_, Self>, value: T) {
        let (cols, stride) = (x.cols(), x.stride());
        if cols == stride {
            return x.into_data().numbers().fill(value);
        }
        let rows = x.rows();
        for row in x.into_data().numbers().chunks_mut(stride.max(1)).take(rows) {
            row[..cols].fill(value);
        }
    }

    fn copy(&self, from: Matrix<'_, Self>, to: MatrixMut<'_, Self>) {
        let (rows, cols) = (from.rows(), from.cols());
        assert_eq!((rows, cols), (to.rows(), to.cols()), "copies have the shape of the original");
        if rows == 0 || cols == 0 {
            return;
        }
        let strides = [from.stride().max(cols), to.stride().max(cols)];
        let (from, to) = (from.data().numbers(), to.into_data().numbers());
        if strides == [cols; 2] {
            return to[..rows * cols].copy_from_slice(&from[..rows * cols]);
        }
        for (from, to) in from.chunks(strides[0]).zip(to.chunks_mut(strides[1])).take(rows) {
            to[..cols].copy_from_slice(&from[..cols]);
        }
    }
}

impl<T: Real> Layers for Cpu<T> {
    fn add_assign(&self, y: SliceMut<'_, Self>, x: Slice<'_, Self>) {
        activation::add_assign(y.numbers(), x.numbers());
    }

    fn matmul(
        &self,
        product: Product,
        left: Matrix<'_, Self>,
        right: Matrix<'_, Self>,
        out: MatrixMut<'_, Self>,
        mode: Output,
    ) {
        let (a, b, out) = (left.view(), right.view(), out.view());
        match product {
            Product::Forward => T::matmul(a, b.t(), out, mode),
            Product::GradInput => T::matmul(a, b, out, mode),
            Product::GradWeight => T::matmul(a.t(), b, out, mode),
        }
    }

    fn add_bias(
        &self,
        rounding: Option<Rounding>,
        rows: SliceMut<'_, Self>,
        bias: Slice<'_, Self>,
    ) {
        bias::add_bias(rounding, rows.numbers(), bias.numbers());
    }

    fn bias_backward(
        &self,
        rounding: Option<Rounding>,
        dy: Slice<'_, Self>,
        d_bias: SliceMut<'_, Self>,
    ) {
        bias::bias_backward(rounding, dy.numbers(), d_bias.numbers());
    }

    fn activate(
        &self,
        function: Function,
        [forward, _]: Roundings,
        x: Slice<'_, Self>,
        y: SliceMut<'_, Self>,
    ) {
        let (x, y) = (x.numbers(), y.numbers());
        match (function, forward) {
            (Function::Gelu, Some(rounding)) => steps::gelu(rounding, x, y),
            _ => {
                relu::apply(function, x, y);
                steps::round_all(forward, y);
            }
        }
    }

    fn activate_backward(
        &self,
        function: Function,
        [forward, back]: Roundings,
        x: Slice<'_, Self>,
        d: SliceMut<'_, Self>,
    ) {
        let (x, d) = (x.numbers(), d.numbers());
        match (function, forward) {
            (Function::Gelu, Some(forward)) => steps::gelu_backward((forward, back), x, d),
            _ => {
                relu::apply_backward(function, x, d);
                steps::round_all(back, d);
            }
        }
    }

    fn swiglu(
        &self,
        [forward, back]: Roundings,
        gate_up: Slice<'_, Self>,
        hidden: usize,
        y: SliceMut<'_, Self>,
    ) {
        let (gate_up, y) = (gate_up.numbers(), y.numbers());
        match forward {
            // What the backward pass reads is rounded with that: the product itself takes its input as it
            // rounds it.
            Some(forward) => steps::swiglu((forward, back), gate_up, hidden, y),
            None => activation::swiglu(gate_up, hidden, y),
        }
    }

    fn swiglu_backward(
        &self,
        [forward, back]: Roundings,
        gate_up: Slice<'_, Self>,
        hidden: usize,
        dy: Slice<'_, Self>,
        d_gate_up: SliceMut<'_, Self>,
    ) {
        let (gate_up, dy, d) = (gate_up.numbers(), dy.numbers(), d_gate_up.numbers());
        match forward {
            Some(forward) => steps::swiglu_backward((forward, back), gate_up, hidden, dy, d),
            None => {
                activation::swiglu_backward(gate_up, hidden, dy, d);
                steps::round_all(back, d);
            }
        }
    }

    fn rotate(
        &self,
        x: SliceMut<'_, Self>,
        [width, heads, half]: [usize; 3],
        sequence: usize,
        tables: [Slice<'_, Self>; 2],
        direction: Direction,
    ) {
        rope::rotate(
            x.numbers(),
            [width, heads, half],
            sequence,
            tables.map(Slice::numbers),
            direction,
        );
    }

    fn butterflies(&self, x: SliceMut<'_, Self>, signs: Slice<'_, Self>, part: usize) {
        hadamard::butterflies(x.numbers(), signs.numbers(), part);
    }

    fn embed(
        &self,
        tokens: &Vec<u32>,
        table: Slice<'_, Self>,
        positions: Option<Slice<'_, Self>>,
        sequence: usize,
        y: SliceMut<'_, Self>,
    ) {
        let positions = positions.map(Slice::numbers);
        embedding::embed(tokens, table.numbers(), positions, sequence, y.numbers());
    }

    fn embed_backward(&self, tokens: &Vec<u32>, dy: Slice<'_, Self>, d_table: SliceMut<'_, Self>) {
        embedding::embed_backward(tokens, dy.numbers(), d_table.numbers());
    }

    fn positions_backward(
        &self,
        dy: Slice<'_, Self>,
        width: usize,
        sequence: usize,
        d_positions: SliceMut<'_, Self>,
    ) {
        embedding::positions_backward(dy.numbers(), width, sequence, d_positions.numbers());
    }
}

impl<T: Real> Norms for Cpu<T> {
    fn norm(
        &self,
        steps: &NormSteps,
        x: Slice<'_, Self>,
        gain: Slice<'_, Self>,
        bias: Option<Slice<'_, Self>>,
        y: SliceMut<'_, Self>,
        [mean, rstd]: [SliceMut<'_, Self>; 2],
    ) {
        let NormSteps { norm, eps, head, tail, .. } = *steps;
        let (x, gain, y) = (x.numbers(), gain.numbers(), y.numbers());
        let bias = bias.map(Slice::numbers);
        if tail.is_some() {
            return steps::norm(norm, [head, tail], x, gain, bias, eps, y);
        }
        let (eps, rstd) = (T::from_f64(eps), rstd.numbers());
        match norm {
            Norm::LayerNorm => layer_norm(x, gain, bias, eps, y, mean.numbers(), rstd),
            Norm::RmsNorm => rms_norm(x, gain, eps, y, rstd),
        }
    }

    fn norm_backward(
        &self,
        steps: &NormSteps,
        x: Slice<'_, Self>,
        gain: Slice<'_, Self>,
        [mean, rstd]: [Slice<'_, Self>; 2],
        dy: Slice<'_, Self>,
        dx: SliceMut<'_, Self>,
        d_gain: SliceMut<'_, Self>,
        d_bias: Option<SliceMut<'_, Self>>,
    ) {
        let NormSteps { norm, eps, head, tail, back } = *steps;
        let (x, gain, dy) = (x.numbers(), gain.numbers(), dy.numbers());
        let (dx, d_gain, d_bias) = (dx.numbers(), d_gain.numbers(), d_bias.map(SliceMut::numbers));
        if tail.is_some() || back.is_some() {
            let roundings = ([head, tail], back);
            return steps::norm_backward(norm, roundings, x, gain, eps, dy, dx, d_gain, d_bias);
        }
        let rstd = rstd.numbers();
        match norm {
            Norm::LayerNorm => {
                layer_norm_backward(x, gain, mean.numbers(), rstd, dy, dx, d_gain, d_bias);
            }
            Norm::RmsNorm => rms_norm_backward(x, gain, rstd, dy, dx, d_gain),
        }
    }
}

impl<T: Real> SoftmaxAttention for Cpu<T> {
    fn attention_scratch(&self, shape: &attention::Shape) -> usize {
        shape.scratch()
    }

    fn attention(
        &self,
        shape: &attention::Shape,
        qkv: Slice<'_, Self>,
        y: SliceMut<'_, Self>,
        probabilities: SliceMut<'_, Self>,
        scratch: SliceMut<'_, Self>,
    ) {
        let (probabilities, scratch) = (probabilities.numbers(), scratch.numbers());
        attention::attention(shape, qkv.numbers(), y.numbers(), probabilities, scratch);
    }

    fn attention_cached(
        &self,
        shape: &attention::Shape,
        qkv: Slice<'_, Self>,
        cache: Slice<'_, Self>,
        y: SliceMut<'_, Self>,
    ) {
        attention::attention_cached(shape, qkv.numbers(), cache.numbers(), y.numbers());
    }

    fn attention_backward(
        &self,
        shape: &attention::Shape,
        qkv: Slice<'_, Self>,
        probabilities: Slice<'_, Self>,
        dy: Slice<'_, Self>,
        dqkv: SliceMut<'_, Self>,
        scratch: SliceMut<'_, Self>,
    ) {
        let (qkv, probabilities, dy) = (qkv.numbers(), probabilities.numbers(), dy.numbers());
        let (dqkv, scratch) = (dqkv.numbers(), scratch.numbers());
        attention::attention_backward(shape, qkv, probabilities, dy, dqkv, scratch);
    }

    fn scores(&self, shape: &attention::Shape, qkv: Slice<'_, Self>, s: SliceMut<'_, Self>) {
        split::scores(shape, qkv.numbers(), s.numbers());
    }

    fn softmax(&self, shape: &attention::Shape, s: SliceMut<'_, Self>) {
        split::softmax(shape, s.numbers());
    }

    fn weigh(
        &self,
        shape: &attention::Shape,
        qkv: Slice<'_, Self>,
        p: Slice<'_, Self>,
        y: SliceMut<'_, Self>,
    ) {
        split::values(shape, qkv.numbers(), p.numbers(), y.numbers());
    }

    fn weigh_backward(
        &self,
        shape: &attention::Shape,
        qkv: Slice<'_, Self>,
        p: Slice<'_, Self>,
        dy: Slice<'_, Self>,
        dqkv: SliceMut<'_, Self>,
        dp: SliceMut<'_, Self>,
    ) {
        let (qkv, p, dy) = (qkv.numbers(), p.numbers(), dy.numbers());
        split::values_backward(shape, qkv, p, dy, dqkv.numbers(), dp.numbers());
    }

    fn softmax_backward(
        &self,
        shape: &attention::Shape,
        p: Slice<'_, Self>,
        d: SliceMut<'_, Self>,
    ) {
        split::softmax_backward(shape, p.numbers(), d.numbers());
    }

    fn scores_backward(
        &self,
        shape: &attention::Shape,
        qkv: Slice<'_, Self>,
        ds: Slice<'_, Self>,
        dqkv: SliceMut<'_, Self>,
    ) {
        split::scores_backward(shape, qkv.numbers(), ds.numbers(), dqkv.numbers());
    }
}

impl<T: Real> LinearAttention for Cpu<T> {
    fn gla_scratch(&self, shape: &gla::Shape) -> usize {
        shape.scratch()
    }

    fn gla(
        &self,
        shape: &gla::Shape,
        qkv: Slice<'_, Self>,
        stride: usize,
        alpha: Slice<'_, Self>,
        y: SliceMut<'_, Self>,
        states: SliceMut<'_, Self>,
        scratch: SliceMut<'_, Self>,
    ) {
        let (qkv, alpha) = (qkv.numbers(), alpha.numbers());
        let (y, states, scratch) = (y.numbers(), states.numbers(), scratch.numbers());
        gla::gla(shape, qkv, stride, alpha, y, states, scratch);
    }

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
    ) {
        let (qkv, alpha, dy) = (qkv.numbers(), alpha.numbers(), dy.numbers());
        let (dqkv, dga, scratch) = (dqkv.numbers(), dga.numbers(), scratch.numbers());
        gla::gla_backward(shape, qkv, stride, alpha, dy, dqkv, dga, scratch);
    }

    fn decay(&self, z: Slice<'_, Self>, tau: f64, least: f64, alpha: SliceMut<'_, Self>) {
        gla::decay(z.numbers(), tau, least, alpha.numbers());
    }

    fn decay_backward(&self, z: Slice<'_, Self>, tau: f64, least: f64, d: SliceMut<'_, Self>) {
        gla::decay_backward(z.numbers(), tau, least, d.numbers());
    }

    fn swish_gate(&self, x: Slice<'_, Self>, gates: Matrix<'_, Self>, y: SliceMut<'_, Self>) {
        gla::swish_gate(x.numbers(), gates.view(), y.numbers());
    }

    fn swish_gate_backward(
        &self,
        x: Slice<'_, Self>,
        gates: Matrix<'_, Self>,
        d: SliceMut<'_, Self>,
        d_gates: MatrixMut<'_, Self>,
    ) {
        gla::swish_gate_backward(x.numbers(), gates.view(), d.numbers(), d_gates.view());
    }
}

impl<T: Real> Training for Cpu<T> {
    fn cross_entropy(
        &self,
        logits: SliceMut<'_, Self>,
        vocab: usize,
        targets: &Vec<u32>,
        scale: Option<[T; 2]>,
        losses: SliceMut<'_, Self>,
    ) {
        let scale = scale.map(|[scale, z]| (scale, z));
        loss::cross_entropy_and_z(logits.numbers(), vocab, targets, scale, losses.numbers());
    }

    fn row_loss(
        &self,
        loss: RowLoss,
        a: Slice<'_, Self>,
        y: Slice<'_, Self>,
        width: usize,
        losses: SliceMut<'_, Self>,
    ) {
        let (a, y, losses) = (a.numbers(), y.numbers(), losses.numbers());
        match loss {
            RowLoss::Mse => loss::squared_error(a, y, width, losses),
            RowLoss::Kl => loss::divergence(a, y, width, losses),
        }
    }

    fn row_loss_backward(
        &self,
        loss: RowLoss,
        a: Slice<'_, Self>,
        y: Slice<'_, Self>,
        width: usize,
        da: SliceMut<'_, Self>,
    ) {
        let (a, y, da) = (a.numbers(), y.numbers(), da.numbers());
        match loss {
            RowLoss::Mse => {
                let scale = T::from_f64(2.0 / a.len() as f64);
                loss::squared_error_backward(a, y, scale, da);
            }
            RowLoss::Kl => {
                let scale = T::from_f64(1.0 / (a.len() / width) as f64);
                loss::divergence_backward(a, y, width, scale, da);
            }
        }
    }

    fn likeliest(&self, logits: Slice<'_, Self>, vocab: usize) -> Vec<u32> {
        loss::likeliest(logits.numbers(), vocab)
    }

    fn mean(&self, losses: Slice<'_, Self>) -> f64 {
        loss::mean(losses.numbers())
    }

    fn normals(&self, x: SliceMut<'_, Self>, start: u64, philox: &Philox, size: Option<T>) {
        match size {
            None => normal::normals(x.numbers(), start, philox),
            Some(size) => normal::add_normals(x.numbers(), start, philox, size),
        }
    }

    fn global_norm(&self, grads: Slice<'_, Self>) -> f64 {
        global_norm(grads.numbers())
    }

    fn update(
        &self,
        optimizer: &Optimizer,
        at: &Update,
        params: SliceMut<'_, Self>,
        grads: Slice<'_, Self>,
        moments: [SliceMut<'_, Self>; 2],
    ) {
        let moments = moments.map(SliceMut::numbers);
        optimizer.step(at, params.numbers(), grads.numbers(), moments);
    }
}
