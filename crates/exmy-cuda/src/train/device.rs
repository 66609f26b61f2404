//! The trait, operation by operation.

use std::borrow::Cow;

use exmy::error::Result;
use exmy::gemm::f32::Output;
use exmy::random::Philox;
use exmy::round::Rounding;
use exmy_train::nn::device::{
    Buffer, Device, Matrix, MatrixMut, NormSteps, Roundings, Slice, SliceMut,
};
use exmy_train::nn::loss::RowLoss;
use exmy_train::nn::optimizer::{Optimizer, Update};
use exmy_train::nn::relu::Function;
use exmy_train::nn::site::Product;
use exmy_train::nn::stopwatch::Way;
use exmy_train::nn::{attention, gla};

use super::memory::{Memory, Scalar, Tokens};
use super::{Cuda, locked};

impl Device for Cuda {
    type Real = f32;
    type Memory = Memory;
    type Owned = Memory;
    type Tokens = Tokens;
    type Scalar = Scalar;

    fn name(&self) -> Option<String> {
        let properties = self.device().properties();
        Some(format!("cuda:{} {}", properties.index, properties.name))
    }

    fn grow(&self, buffer: &mut Buffer<Self>, len: usize) {
        if len > buffer.len() {
            // The old memory goes first, so that both need not fit.
            *buffer = Buffer::default();
            *buffer = Buffer::of(Memory { buffer: self.attempt(|| self.device().zeros(len)) }, len);
        }
    }

    fn buffer(&self, numbers: Vec<f32>) -> Buffer<Self> {
        Buffer::of(
            Memory { buffer: self.attempt(|| self.device().upload(&numbers)) },
            numbers.len(),
        )
    }

    fn read<'a>(&self, from: Slice<'a, Self>) -> Cow<'a, [f32]> {
        let mut numbers = vec![0.0; from.len()];
        if let Some(buffer) = &from.memory().buffer {
            self.attempt(|| buffer.read_part(from.start(), &mut numbers));
        }
        numbers.into()
    }

    fn set_tokens(&self, tokens: &[u32], to: &mut Tokens) {
        let words = to.arrange(tokens);
        self.attempt(|| to.upload(self.device(), &words));
    }

    fn value(&self, scalar: &Scalar) -> f64 {
        let mut number = [0.0];
        if let Some(scalar) = &scalar.0 {
            self.attempt(|| scalar.read(&mut number));
        }
        number[0]
    }

    fn check(&self) -> Result<()> {
        self.attempt(|| self.device().synchronize());
        match &*locked(&self.shared.failure) {
            Some(error) => Err(error.clone().into()),
            None => Ok(()),
        }
    }

    fn fill(&self, x: MatrixMut<'_, Self>, value: f32) {
        self.set_matrix(x, value);
    }

    fn copy(&self, from: Matrix<'_, Self>, to: MatrixMut<'_, Self>) {
        self.copy_matrix(from, to);
    }

    fn add_assign(&self, y: SliceMut<'_, Self>, x: Slice<'_, Self>) {
        self.sum_into(y, x);
    }

    fn matmul(
        &self,
        product: Product,
        left: Matrix<'_, Self>,
        right: Matrix<'_, Self>,
        out: MatrixMut<'_, Self>,
        mode: Output,
    ) {
        self.product(product, left, right, out, mode, None, false);
    }

    fn add_bias(
        &self,
        rounding: Option<Rounding>,
        rows: SliceMut<'_, Self>,
        bias: Slice<'_, Self>,
    ) {
        self.bias(rounding, rows, bias);
    }

    fn bias_backward(
        &self,
        rounding: Option<Rounding>,
        dy: Slice<'_, Self>,
        d_bias: SliceMut<'_, Self>,
    ) {
        self.bias_back(rounding, dy, d_bias);
    }

    fn norm(
        &self,
        steps: &NormSteps,
        x: Slice<'_, Self>,
        gain: Slice<'_, Self>,
        bias: Option<Slice<'_, Self>>,
        y: SliceMut<'_, Self>,
        statistics: [SliceMut<'_, Self>; 2],
    ) {
        self.norm_rows(steps, x, gain, bias, y, statistics);
    }

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
    ) {
        self.norm_rows_backward(steps, x, gain, statistics, dy, dx, d_gain, d_bias);
    }

    fn activate(
        &self,
        function: Function,
        roundings: Roundings,
        x: Slice<'_, Self>,
        y: SliceMut<'_, Self>,
    ) {
        self.function(function, roundings, x, y);
    }

    fn activate_backward(
        &self,
        function: Function,
        roundings: Roundings,
        x: Slice<'_, Self>,
        d: SliceMut<'_, Self>,
    ) {
        self.function_back(function, roundings, x, d);
    }

    fn swiglu(
        &self,
        roundings: Roundings,
        gate_up: Slice<'_, Self>,
        hidden: usize,
        y: SliceMut<'_, Self>,
    ) {
        self.gated(roundings, gate_up, hidden, y);
    }

    fn swiglu_backward(
        &self,
        roundings: Roundings,
        gate_up: Slice<'_, Self>,
        hidden: usize,
        dy: Slice<'_, Self>,
        d_gate_up: SliceMut<'_, Self>,
    ) {
        self.gated_back(roundings, gate_up, hidden, dy, d_gate_up);
    }

    fn rotate(
        &self,
        x: SliceMut<'_, Self>,
        sizes: [usize; 3],
        sequence: usize,
        tables: [Slice<'_, Self>; 2],
        way: Way,
    ) {
        let sign = if way == Way::Forward { 1.0 } else { -1.0 };
        self.turn(x, sizes, sequence, tables, sign);
    }

    fn butterflies(&self, x: SliceMut<'_, Self>, signs: Slice<'_, Self>, part: usize) {
        self.butterfly(x, signs, part);
    }

    fn has_room(&self, elements: usize) -> bool {
        let (free, total) =
            (self.attempt(|| self.device().free_memory()), self.device().properties().memory);
        free.is_some_and(|free| free.saturating_sub(4 * elements) >= total / 4 * 3)
    }

    fn attention_scratch(&self, shape: &attention::Shape) -> usize {
        Self::attention_memory(shape)
    }

    fn attention(
        &self,
        shape: &attention::Shape,
        qkv: Slice<'_, Self>,
        y: SliceMut<'_, Self>,
        probabilities: SliceMut<'_, Self>,
        scratch: SliceMut<'_, Self>,
    ) {
        self.attention_forward(shape, qkv, y, probabilities, scratch);
    }

    fn attention_cached(
        &self,
        shape: &attention::Shape,
        qkv: Slice<'_, Self>,
        cache: Slice<'_, Self>,
        y: SliceMut<'_, Self>,
    ) {
        self.attention_of_cache(shape, qkv, cache, y);
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
        self.attention_back(shape, qkv, probabilities, dy, dqkv, scratch);
    }

    fn scores(&self, shape: &attention::Shape, qkv: Slice<'_, Self>, s: SliceMut<'_, Self>) {
        self.split_scores(shape, qkv, s);
    }

    fn softmax(&self, shape: &attention::Shape, s: SliceMut<'_, Self>) {
        self.split_softmax(shape, s);
    }

    fn weigh(
        &self,
        shape: &attention::Shape,
        qkv: Slice<'_, Self>,
        p: Slice<'_, Self>,
        y: SliceMut<'_, Self>,
    ) {
        self.split_values(shape, qkv, p, y);
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
        self.split_values_backward(shape, qkv, p, dy, dqkv, dp);
    }

    fn softmax_backward(
        &self,
        shape: &attention::Shape,
        p: Slice<'_, Self>,
        d: SliceMut<'_, Self>,
    ) {
        self.split_softmax_backward(shape, p, d);
    }

    fn scores_backward(
        &self,
        shape: &attention::Shape,
        qkv: Slice<'_, Self>,
        ds: Slice<'_, Self>,
        dqkv: SliceMut<'_, Self>,
    ) {
        self.split_scores_backward(shape, qkv, ds, dqkv);
    }

    fn gla_scratch(&self, shape: &gla::Shape) -> usize {
        self.gla_memory(shape)
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
        self.gla_forward(shape, (qkv, stride), alpha, [y, states, scratch]);
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
        self.gla_back(shape, (qkv, stride), alpha, dy, [dqkv, dga, scratch]);
    }

    fn decay(&self, z: Slice<'_, Self>, tau: f64, least: f64, alpha: SliceMut<'_, Self>) {
        self.decays(z, [tau, least], alpha);
    }

    fn decay_backward(&self, z: Slice<'_, Self>, tau: f64, least: f64, d: SliceMut<'_, Self>) {
        self.decays_back(z, [tau, least], d);
    }

    fn swish_gate(&self, x: Slice<'_, Self>, gates: Matrix<'_, Self>, y: SliceMut<'_, Self>) {
        self.swish(x, gates, y);
    }

    fn swish_gate_backward(
        &self,
        x: Slice<'_, Self>,
        gates: Matrix<'_, Self>,
        d: SliceMut<'_, Self>,
        d_gates: MatrixMut<'_, Self>,
    ) {
        self.swish_back(x, gates, d, d_gates);
    }

    fn embed(
        &self,
        tokens: &Tokens,
        table: Slice<'_, Self>,
        positions: Option<Slice<'_, Self>>,
        sequence: usize,
        y: SliceMut<'_, Self>,
    ) {
        self.embedded(tokens, table, positions, sequence, y);
    }

    fn embed_backward(&self, tokens: &Tokens, dy: Slice<'_, Self>, d_table: SliceMut<'_, Self>) {
        self.embedded_back(tokens, dy, d_table);
    }

    fn positions_backward(
        &self,
        dy: Slice<'_, Self>,
        width: usize,
        sequence: usize,
        d_positions: SliceMut<'_, Self>,
    ) {
        if !dy.is_empty() {
            self.positions_back(dy, sequence * width, d_positions);
        }
    }

    fn cross_entropy(
        &self,
        logits: SliceMut<'_, Self>,
        vocab: usize,
        targets: &Tokens,
        scale: Option<[f32; 2]>,
        losses: SliceMut<'_, Self>,
    ) {
        self.entropy(logits, vocab, targets, scale, losses);
    }

    fn row_loss(
        &self,
        loss: RowLoss,
        a: Slice<'_, Self>,
        y: Slice<'_, Self>,
        width: usize,
        losses: SliceMut<'_, Self>,
    ) {
        self.losses(loss, [a, y], width, losses);
    }

    fn likeliest(&self, logits: Slice<'_, Self>, vocab: usize) -> Vec<u32> {
        self.largest(logits, vocab)
    }

    fn row_loss_backward(
        &self,
        loss: RowLoss,
        a: Slice<'_, Self>,
        y: Slice<'_, Self>,
        width: usize,
        da: SliceMut<'_, Self>,
    ) {
        self.losses_back(loss, [a, y], width, da);
    }

    fn mean(&self, losses: Slice<'_, Self>) -> Scalar {
        self.mean_of(losses)
    }

    fn normals(&self, x: SliceMut<'_, Self>, start: u64, philox: &Philox, size: Option<f32>) {
        self.drawn(x, start, philox, size);
    }

    fn global_norm(&self, grads: Slice<'_, Self>) -> Scalar {
        self.norm_of(grads)
    }

    fn update(
        &self,
        optimizer: &Optimizer,
        at: &Update,
        params: SliceMut<'_, Self>,
        grads: Slice<'_, Self>,
        moments: [SliceMut<'_, Self>; 2],
    ) {
        self.step(optimizer, at, params, grads, moments);
    }
}
