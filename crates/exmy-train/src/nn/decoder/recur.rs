//! Gated linear attention in a block: q|k|v|g|gk, the decay gate's second factor, the recurrence,
//! the norm of each head, the output gate, o (as Flash Linear Attention's `GatedLinearAttention`).

use super::attend::round_columns;
use super::{Config, Norm, Work};
use crate::nn::gla::{
    Shape, decay, decay_backward, gla, gla_backward, swish_gate, swish_gate_backward,
};
use crate::nn::linear::Products;
use crate::nn::parameters::Layout;
use crate::nn::parts::{Affine, Linear, Normed, Pass, gather, grow, scatter};
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

/// What the backward pass reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept<T> {
    /// q|k|v|g|gk.0.
    rows: Vec<T>,
    /// gk.0 alone.
    low: Vec<T>,
    z: Vec<T>,
    alpha: Vec<T>,
    /// What the recurrence writes.
    mixed: Vec<T>,
    normed: Normed<T>,
    gated: Vec<T>,
}

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
                .with_bias(layout, &name("gk_proj.1.bias")),
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

    /// Where the output gate's columns begin.
    const fn gate(&self) -> usize {
        2 * self.keys + self.values
    }

    /// Makes room for a pass.
    pub(super) fn reserve<T: Real>(
        &self,
        (batch, sequence): (usize, usize),
        pass: Pass,
        kept: &mut Kept<T>,
        work: &mut Work<T>,
    ) {
        let n = batch * sequence;
        grow(&mut kept.rows, n * self.stride());
        grow(&mut kept.low, n * self.rank);
        grow(&mut kept.z, n * self.keys);
        grow(&mut kept.alpha, n * self.keys);
        grow(&mut kept.mixed, n * self.values);
        kept.normed.reserve(n * self.heads, self.values / self.heads);
        grow(&mut kept.gated, n * self.values);
        grow(&mut work.scratch, self.shape(batch, sequence).scratch());
        if pass == Pass::Forward {
            return;
        }
        grow(&mut work.d_inner, n * self.values);
        grow(&mut work.d_outer, n * self.stride());
        grow(&mut work.dense[0], n * self.values);
        grow(&mut work.dense[1], n * self.keys.max(self.rank));
        grow(&mut work.low, n * self.rank);
    }

    /// Rounds the columns of queries, keys, values and output gates, or of their gradients.
    fn round<T: Real>(
        &self,
        products: &mut dyn Products<T>,
        gradient: bool,
        rows: &mut [T],
        dense: &mut Vec<T>,
    ) {
        let (keys, values) = (self.keys, self.values);
        for (place, column, width) in [
            (Place::Q, 0, keys),
            (Place::K, keys, keys),
            (Place::V, 2 * keys, values),
            (Place::OutputGate, self.gate(), values),
        ] {
            let columns = (self.stride(), column, width);
            round_columns(products, self.layer, (place, gradient), rows, columns, dense);
        }
    }

    /// `out` (n, d) from the normed stream `x`.
    pub(super) fn forward<T: Real>(
        &self,
        products: &mut dyn Products<T>,
        params: &[T],
        (batch, sequence): (usize, usize),
        x: &[T],
        kept: &mut Kept<T>,
        work: &mut Work<T>,
        out: &mut [T],
    ) {
        let (n, stride, layer) = (batch * sequence, self.stride(), self.layer);
        let shape = self.shape(batch, sequence);
        let rows = &mut kept.rows[..n * stride];
        self.inputs.forward(products, params, x, rows);
        let low = &mut kept.low[..n * self.rank];
        gather(rows, stride, stride - self.rank, self.rank, low);
        let z = &mut kept.z[..n * self.keys];
        self.decay.forward(products, params, low, z);
        products.tensor(layer, Place::DecayGate, false, z, self.keys);
        self.round(products, false, rows, &mut work.dense[0]);
        let alpha = &mut kept.alpha[..n * self.keys];
        decay(z, self.tau, self.least, alpha);
        let mixed = &mut kept.mixed[..n * self.values];
        gla(&shape, rows, stride, alpha, mixed, &mut work.scratch);
        products.tensor(layer, Place::Attention, false, mixed, self.values);
        self.norm.forward(products, params, mixed, &mut kept.normed, &mut work.spare);
        let (normed, gated) = (&kept.normed.y[..mixed.len()], &mut kept.gated[..n * self.values]);
        swish_gate(normed, rows, stride, self.gate(), self.values, gated);
        self.o.forward(products, params, gated, out);
    }

    /// `dx` from `d_out`.
    pub(super) fn backward<T: Real>(
        &self,
        products: &mut dyn Products<T>,
        params: &[T],
        grads: &mut [T],
        (batch, sequence): (usize, usize),
        x: &[T],
        kept: &Kept<T>,
        work: &mut Work<T>,
        d_out: &[T],
        dx: &mut [T],
    ) {
        let (n, stride, layer) = (batch * sequence, self.stride(), self.layer);
        let (shape, values) = (self.shape(batch, sequence), n * self.values);
        let (rows, mixed) = (&kept.rows[..n * stride], &kept.mixed[..values]);
        let (d_gated, d_rows) = (&mut work.d_inner[..values], &mut work.d_outer[..n * stride]);
        self.o.backward(products, params, grads, d_out, &kept.gated[..values], d_gated);
        let (normed, gate) = (&kept.normed.y[..values], self.gate());
        swish_gate_backward(normed, rows, stride, gate, self.values, d_gated, d_rows);
        let [d_mixed, dz] = &mut work.dense;
        let (d_mixed, dz) = (&mut d_mixed[..values], &mut dz[..n * self.keys]);
        let spare = &mut work.spare;
        let kept_norm = &kept.normed;
        self.norm.backward(products, params, grads, mixed, kept_norm, d_gated, d_mixed, spare);
        products.tensor(layer, Place::Attention, true, d_mixed, self.values);
        let alpha = &kept.alpha[..n * self.keys];
        gla_backward(&shape, rows, stride, alpha, d_mixed, d_rows, dz, &mut work.scratch);
        decay_backward(&kept.z[..n * self.keys], self.tau, self.least, dz);
        products.tensor(layer, Place::DecayGate, true, dz, self.keys);
        let (low, d_low) = (&kept.low[..n * self.rank], &mut work.low[..n * self.rank]);
        self.decay.backward(products, params, grads, dz, low, d_low);
        scatter(d_low, self.rank, d_rows, stride, stride - self.rank);
        self.round(products, true, d_rows, &mut work.dense[0]);
        self.inputs.backward(products, params, grads, d_rows, x, dx);
    }
}
