//! Gated linear attention in a block: q|k|v|g|gk, the decay gate's second factor, the recurrence,
//! the norm of each head, the output gate, o (as Flash Linear Attention's `GatedLinearAttention`).

use core::ops::Range;

use super::attend::round_columns;
use super::cached::{Held, Past};
use super::{Config, Norm, Scratch};
use crate::nn::device::{Buffer, Device, Matrix, MatrixMut, Slice, SliceMut, empty};
use crate::nn::gla::{CHUNK, Shape};
use crate::nn::parameters::Layout;
use crate::nn::parts::{Affine, Context, Linear, Normed, Pass};
use crate::nn::real::Real;
use crate::nn::site::{Operator, Place};

/// The places of one block's gated linear attention.
#[derive(Clone, Debug)]
pub(super) struct Recur {
    layer: Option<u32>,
    /// q|k|v|g|gk.0, all reading the normed stream.
    inputs: Linear,
    /// gk.1 with its bias.
    decay: Linear,
    norm: Affine,
    o: Linear,
    heads: usize,
    keys: usize,
    values: usize,
    rank: usize,
    tau: f64,
    /// Smallest logarithm of a decay.
    least: f64,
}

/// Activations that the backward pass reads.
#[derive(Debug)]
pub(super) struct Saved<D: Device> {
    /// q|k|v|g|gk.0.
    rows: Buffer<D>,
    /// gk.0 alone.
    low: Buffer<D>,
    z: Buffer<D>,
    alpha: Buffer<D>,
    /// What the recurrence writes.
    mixed: Buffer<D>,
    normed: Normed<D>,
    gated: Buffer<D>,
}

empty!(Saved { rows, low, z, alpha, mixed, normed, gated });

impl Recur {
    pub(super) fn new(config: &Config, layout: &Layout, l: usize) -> Self {
        let layer = Some(l as u32);
        let name = |rest: &str| format!("model.layers.{l}.attn.{rest}");
        let (d, keys, values) = (config.d_model, config.gla_keys(), config.gla_values());
        let (rank, heads) = (config.gla.gate_rank, config.gla.heads);
        let members = [
            (Operator::Q, keys),
            (Operator::K, keys),
            (Operator::V, values),
            (Operator::OutputGate, values),
            (Operator::DecayDown, rank),
        ];
        let (first, last) = (name("q_proj.weight"), name("gk_proj.0.weight"));
        let (up, o) = (name("gk_proj.1.weight"), name("o_proj.weight"));
        let norm = name("g_norm_swish_gate");
        Self {
            layer,
            inputs: Linear::new(layout, layer, &members, d, [&first, &last]),
            decay: Linear::new(layout, layer, &[(Operator::DecayUp, keys)], rank, [&up, &up])
                .with_bias(layout, [&name("gk_proj.1.bias"); 2]),
            norm: Affine::new(layout, layer, &norm, values / heads, Norm::RmsNorm, config.norm_eps),
            o: Linear::new(layout, layer, &[(Operator::O, d)], values, [&o, &o]),
            heads,
            keys,
            values,
            rank,
            tau: config.gla.gate_tau,
            least: if config.gla.gate_min == 0.0 { f64::NEG_INFINITY } else { config.gla.gate_min },
        }
    }

    fn shape(&self, batch: usize, sequence: usize) -> Shape {
        let (key, value) = (self.keys / self.heads, self.values / self.heads);
        Shape { batch, sequence, heads: self.heads, key, value }
    }

    /// Columns of q|k|v|g|gk.0.
    const fn stride(&self) -> usize {
        2 * self.keys + 2 * self.values + self.rank
    }

    /// The columns of the output gate.
    const fn gate(&self) -> Range<usize> {
        let start = 2 * self.keys + self.values;
        start..start + self.values
    }

    /// Makes memory large enough for a pass.
    pub(super) fn reserve<D: Device>(
        &self,
        device: &D,
        (batch, sequence): (usize, usize),
        pass: Pass,
        saved: &mut Saved<D>,
        work: &mut Scratch<D>,
    ) {
        let n = batch * sequence;
        device.grow(&mut saved.rows, n * self.stride());
        device.grow(&mut saved.low, n * self.rank);
        device.grow(&mut saved.z, n * self.keys);
        device.grow(&mut saved.alpha, n * self.keys);
        device.grow(&mut saved.mixed, n * self.values);
        saved.normed.reserve(device, n * self.heads, self.values / self.heads);
        device.grow(&mut saved.gated, n * self.values);
        device.grow(&mut work.scratch, device.gla_scratch(&self.shape(batch, sequence)));
        if pass == Pass::Forward {
            return;
        }
        device.grow(&mut work.d_inner, n * self.values);
        device.grow(&mut work.d_outer, n * self.stride());
        device.grow(&mut work.dense[0], n * self.values);
        device.grow(&mut work.dense[1], n * self.keys.max(self.rank));
        device.grow(&mut work.low, n * self.rank);
    }

    /// Rounds the columns of queries, keys, values and output gates, or of their gradients.
    fn round<D: Device>(
        &self,
        cx: &mut Context<'_, D>,
        gradient: bool,
        rows: &mut MatrixMut<'_, D>,
        dense: &mut Buffer<D>,
    ) {
        let (keys, values) = (self.keys, self.values);
        for (place, columns) in [
            (Place::Q, 0..keys),
            (Place::K, keys..2 * keys),
            (Place::V, 2 * keys..2 * keys + values),
            (Place::OutputGate, self.gate()),
        ] {
            let columns = rows.cols_range(columns);
            round_columns(cx, self.layer, (place, gradient), columns, dense);
        }
    }

    /// `out` (n, d) from the normed stream `x`.
    pub(super) fn forward<D: Device>(
        &self,
        cx: &mut Context<'_, D>,
        (batch, sequence): (usize, usize),
        x: Slice<'_, D>,
        saved: &mut Saved<D>,
        work: &mut Scratch<D>,
        past: Option<Past<'_, D>>,
        out: SliceMut<'_, D>,
    ) {
        let (n, stride, layer) = (batch * sequence, self.stride(), self.layer);
        let (device, shape) = (cx.device, self.shape(batch, sequence));
        let values = n * self.values;
        self.inputs.forward(cx, x, saved.rows.first_mut(n * stride));
        let mut rows = MatrixMut::new(saved.rows.first_mut(n * stride), n, stride);
        let low = MatrixMut::new(saved.low.first_mut(n * self.rank), n, self.rank);
        device.copy(rows.read().cols_range(stride - self.rank..stride), low);
        let mut z = saved.z.first_mut(n * self.keys);
        self.decay.forward(cx, saved.low.first(n * self.rank), z.again());
        cx.tensor(layer, Place::DecayGate, false, z.again(), self.keys);
        self.round(cx, false, &mut rows, &mut work.dense[0]);
        let mut alpha = saved.alpha.first_mut(n * self.keys);
        device.decay(z.read(), self.tau, self.least, alpha.again());
        let mut mixed = saved.mixed.first_mut(values);
        let rows = rows.read();
        match past {
            Some(past) => self.go_on(device, past, rows, alpha.read(), work, mixed.again()),
            None => {
                let (mut none, scratch) = (Buffer::default(), work.scratch.all_mut());
                let (y, none) = (mixed.again(), none.all_mut());
                device.gla(&shape, rows.data(), stride, alpha.read(), y, none, scratch);
            }
        }
        cx.tensor(layer, Place::Attention, false, mixed.again(), self.values);
        self.norm.forward(cx, mixed.read(), &mut saved.normed, &mut work.spare);
        let (normed, gates) = (saved.normed.y.first(values), rows.cols_range(self.gate()));
        device.swish_gate(normed, gates, saved.gated.first_mut(values));
        self.o.forward(cx, saved.gated.first(values), out);
    }

    /// What the recurrence writes of tokens behind others. Its chunks are those of the whole sequence, to the
    /// same bits: what is held are the states behind the last whole chunk, and the tokens since.
    fn go_on<D: Device>(
        &self,
        device: &D,
        Past { held: Held { rows, decays, states }, tokens }: Past<'_, D>,
        new: Matrix<'_, D>,
        alpha: Slice<'_, D>,
        work: &mut Scratch<D>,
        mixed: SliceMut<'_, D>,
    ) {
        if tokens == 0 {
            let len = states.len();
            device.fill(MatrixMut::new(states.all_mut(), 1, len), D::Real::ZERO);
        }
        let (n, since) = (new.rows(), tokens % CHUNK);
        let (all, shape) = (since + n, self.shape(1, since + n));
        let (left, width) = (all % CHUNK, shape.qkv_width());
        let [joined, joined_decays, y] = &mut work.since;
        for (held, new, joined, width) in [
            (rows, new.cols_range(0..width), &mut *joined, width),
            (decays, Matrix::new(alpha, n, self.keys), &mut *joined_decays, self.keys),
        ] {
            device.grow(joined, all * width);
            let mut joined = MatrixMut::new(joined.first_mut(all * width), all, width);
            let before = Matrix::new(held.first(since * width), since, width);
            device.copy(before, joined.rows_range(0..since));
            device.copy(new, joined.rows_range(since..all));
            let held = MatrixMut::new(held.first_mut(left * width), left, width);
            device.copy(joined.read().rows_range(all - left..all), held);
        }
        device.grow(y, all * self.values);
        device.grow(&mut work.scratch, device.gla_scratch(&shape));
        let (rows, alpha) = (joined.first(all * width), joined_decays.first(all * self.keys));
        let mut outputs = y.first_mut(all * self.values);
        let (states, scratch) = (states.all_mut(), work.scratch.all_mut());
        device.gla(&shape, rows, width, alpha, outputs.again(), states, scratch);
        let outputs = Matrix::new(outputs.read(), all, self.values).rows_range(since..all);
        device.copy(outputs, MatrixMut::new(mixed, n, self.values));
    }

    /// `dx` from `d_out`.
    pub(super) fn backward<D: Device>(
        &self,
        cx: &mut Context<'_, D>,
        grads: &mut SliceMut<'_, D>,
        (batch, sequence): (usize, usize),
        x: Slice<'_, D>,
        saved: &Saved<D>,
        work: &mut Scratch<D>,
        d_out: Slice<'_, D>,
        dx: SliceMut<'_, D>,
    ) {
        let (n, stride, layer) = (batch * sequence, self.stride(), self.layer);
        let (device, shape) = (cx.device, self.shape(batch, sequence));
        let (values, low) = (n * self.values, n * self.rank);
        let (rows, mixed) = (saved.rows.first(n * stride), saved.mixed.first(values));
        let mut d_gated = work.d_inner.first_mut(values);
        let mut d_rows = MatrixMut::new(work.d_outer.first_mut(n * stride), n, stride);
        self.o.backward(cx, grads, d_out, saved.gated.first(values), d_gated.again());
        let gates = Matrix::new(rows, n, stride).cols_range(self.gate());
        let (normed, d_gates) = (saved.normed.y.first(values), d_rows.cols_range(self.gate()));
        device.swish_gate_backward(normed, gates, d_gated.again(), d_gates);
        let [d_mixed, dz] = &mut work.dense;
        let (mut d_mixed, mut dz) = (d_mixed.first_mut(values), dz.first_mut(n * self.keys));
        let spare = &mut work.spare;
        self.norm.backward(cx, grads, mixed, &saved.normed, d_gated, d_mixed.again(), spare);
        cx.tensor(layer, Place::Attention, true, d_mixed.again(), self.values);
        let alpha = saved.alpha.first(n * self.keys);
        device.gla_backward(
            &shape,
            rows,
            stride,
            alpha,
            d_mixed.read(),
            d_rows.again().into_data(),
            dz.again(),
            work.scratch.all_mut(),
        );
        device.decay_backward(saved.z.first(n * self.keys), self.tau, self.least, dz.again());
        cx.tensor(layer, Place::DecayGate, true, dz.again(), self.keys);
        let mut d_low = work.low.first_mut(low);
        self.decay.backward(cx, grads, dz.read(), saved.low.first(low), d_low.again());
        let low = Matrix::new(d_low.read(), n, self.rank);
        device.copy(low, d_rows.cols_range(stride - self.rank..stride));
        self.round(cx, true, &mut d_rows, &mut work.dense[0]);
        self.inputs.backward(cx, grads, d_rows.read().data(), x, dx);
    }
}
