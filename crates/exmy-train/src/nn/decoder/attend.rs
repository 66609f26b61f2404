//! Softmax attention in a block: q|k|v, their norms and rotation, attention, o.

use super::cached::{Held, Past};
use super::{Config, QkNorm, Rope, Scratch};
use crate::nn::attention::Shape;
use crate::nn::device::{Buffer, Device, Matrix, MatrixMut, Slice, SliceMut, empty};
use crate::nn::linear::Products;
use crate::nn::parameters::Layout;
use crate::nn::parts::{Affine, Context, Linear, Normed, Pass};
use crate::nn::site::{Operator, Place};
use crate::nn::stopwatch::Direction;

/// The places of one block's attention.
#[derive(Clone, Debug)]
pub(super) struct Attend {
    layer: Option<u32>,
    qkv: Linear,
    /// Of queries and of keys.
    norms: Option<[Affine; 2]>,
    o: Linear,
}

/// Activations that the backward pass reads.
#[derive(Debug)]
pub(super) struct Saved<D: Device> {
    /// As the attention reads it.
    qkv: Buffer<D>,
    /// Queries and keys before their norms, and their norms.
    raw: [Buffer<D>; 2],
    normed: [Normed<D>; 2],
    /// Of short rows, where a recipe looks at them, and where the device has room; others are formed again.
    probabilities: Buffer<D>,
    /// How many of them the last pass saved.
    saved_elements: usize,
    attended: Buffer<D>,
}

empty!(Saved { qkv, raw, normed, probabilities, saved_elements, attended });

/// What a recipe does to the columns of one kind in rows of q|k|v (or more).
pub(super) fn round_columns<D: Device>(
    cx: &mut Context<'_, D>,
    layer: Option<u32>,
    (place, gradient): (Place, bool),
    mut columns: MatrixMut<'_, D>,
    dense: &mut Buffer<D>,
) {
    if cx.products.rounds(layer, place, gradient) || cx.products.watches() {
        let (rows, width) = (columns.rows(), columns.cols());
        cx.device.grow(dense, rows * width);
        let copy = MatrixMut::new(dense.first_mut(rows * width), rows, width);
        cx.device.copy(columns.read(), copy);
        cx.tensor(layer, place, gradient, dense.first_mut(rows * width), width);
        cx.device.copy(Matrix::new(dense.first(rows * width), rows, width), columns.again());
    }
}

impl Attend {
    pub(super) fn new(config: &Config, layout: &Layout, l: usize) -> Self {
        let layer = Some(l as u32);
        let name = |rest: &str| format!("model.layers.{l}.self_attn.{rest}");
        let (d, hd) = (config.d_model, config.head_dim());
        let (q, kv) = (config.heads * hd, config.kv_heads * hd);
        let members = [(Operator::Q, q), (Operator::K, kv), (Operator::V, kv)];
        let (first, last) = (name("q_proj.weight"), name("v_proj.weight"));
        let (o, o_bias) = (name("o_proj.weight"), name("o_proj.bias"));
        let (q_bias, v_bias) = (name("q_proj.bias"), name("v_proj.bias"));
        let norm = |rest: &str, width: usize| {
            Affine::new(layout, layer, &name(rest), width, config.norm, config.norm_eps)
        };
        Self {
            layer,
            qkv: Linear::new(layout, layer, &members, d, [&first, &last])
                .with_bias_of(layout, [&q_bias, &v_bias]),
            norms: match config.qk_norm {
                QkNorm::None => None,
                QkNorm::Head => Some([norm("q_norm", hd), norm("k_norm", hd)]),
                QkNorm::Full => Some([norm("q_norm", q), norm("k_norm", kv)]),
            },
            o: Linear::new(layout, layer, &[(Operator::O, d)], q, [&o, &o])
                .with_bias_of(layout, [&o_bias, &o_bias]),
        }
    }

    /// The columns of queries and of keys: where they begin, how many they are.
    fn columns(shape: &Shape) -> [(usize, usize); 2] {
        let queries = shape.width();
        [(0, queries), (queries, shape.kv_heads * shape.head_dim)]
    }

    /// Makes memory large enough for a pass over `shape`.
    pub(super) fn reserve<D: Device>(
        &self,
        device: &D,
        shape: &Shape,
        pass: Pass,
        saved: &mut Saved<D>,
        work: &mut Scratch<D>,
    ) {
        let n = shape.batch * shape.sequence;
        device.grow(&mut saved.qkv, n * shape.qkv_width());
        device.grow(&mut saved.attended, n * shape.width());
        device.grow(&mut work.scratch, device.attention_scratch(shape));
        if let Some(norms) = &self.norms {
            for (i, (_, width)) in Self::columns(shape).into_iter().enumerate() {
                device.grow(&mut saved.raw[i], n * width);
                saved.normed[i].reserve(device, n * width / norms[i].width(), norms[i].width());
                if pass == Pass::Training {
                    work.dense.iter_mut().for_each(|dense| device.grow(dense, n * width));
                }
            }
        }
        if pass == Pass::Training {
            device.grow(&mut work.d_inner, n * shape.width());
            device.grow(&mut work.d_outer, n * shape.qkv_width());
        }
    }

    /// Elements of the probabilities that a pass saves for the backward pass, given those it has memory for.
    ///
    /// Up to eight times a head's width they are at most half of what else a layer saves, and
    /// forming them again would take a twentieth of a step. Longer rows are saved where the device has room.
    fn saved_probabilities<D: Device>(device: &D, shape: &Shape, pass: Pass, held: usize) -> usize {
        let (all, short) = (shape.probabilities(), shape.row() <= 8 * shape.head_dim);
        let saves = pass == Pass::Training && (short || held >= all || device.fits_in_memory(all));
        if saves { all } else { 0 }
    }

    /// Rounds the columns of queries, keys and values, or of their gradients.
    fn round<D: Device>(
        &self,
        cx: &mut Context<'_, D>,
        shape: &Shape,
        gradient: bool,
        rows: &mut MatrixMut<'_, D>,
        dense: &mut Buffer<D>,
    ) {
        let [q, k] = Self::columns(shape);
        let v = (k.0 + k.1, k.1);
        for (place, (column, width)) in [(Place::Q, q), (Place::K, k), (Place::V, v)] {
            let columns = rows.cols_range(column..column + width);
            round_columns(cx, self.layer, (place, gradient), columns, dense);
        }
    }

    /// Whether the products of the attention have operands of their own precision.
    fn is_split<D: Device>(&self, products: &dyn Products<D>) -> bool {
        let rounds = |place, gradient| products.rounds(self.layer, place, gradient);
        let places = [Place::Scores, Place::Probabilities];
        places.into_iter().any(|place| rounds(place, false) || rounds(place, true))
    }

    /// Rotates queries and keys in rows of q|k|v, or their gradients back; of tokens behind so many others.
    fn rotate<D: Device>(
        device: &D,
        shape: &Shape,
        (rope, past): (Option<&Rope<D>>, usize),
        rows: SliceMut<'_, D>,
        direction: Direction,
    ) {
        let Some(Rope { tables: [cos, sin] }) = rope else { return };
        let heads = shape.heads + shape.kv_heads;
        let sizes = [shape.qkv_width(), heads, shape.head_dim / 2];
        let tables = [cos, sin].map(|table| table.part(past * sizes[2]..table.len()));
        device.rotate(rows, sizes, shape.sequence, tables, direction);
    }

    /// `out` (n, d) from the normed stream `x`.
    pub(super) fn forward<D: Device>(
        &self,
        cx: &mut Context<'_, D>,
        shape: &Shape,
        rope: Option<&Rope<D>>,
        x: Slice<'_, D>,
        pass: Pass,
        saved: &mut Saved<D>,
        work: &mut Scratch<D>,
        past: Option<Past<'_, D>>,
        out: SliceMut<'_, D>,
    ) {
        let (n, stride, layer) = (shape.batch * shape.sequence, shape.qkv_width(), self.layer);
        let (device, probabilities) = (cx.device, shape.probabilities());
        let mut qkv = saved.qkv.first_mut(n * stride);
        self.qkv.forward(cx, x, qkv.again());
        if let Some(norms) = &self.norms {
            let mut rows = MatrixMut::new(qkv.again(), n, stride);
            for (i, (column, width)) in Self::columns(shape).into_iter().enumerate() {
                let columns = column..column + width;
                let (raw, normed) = (&mut saved.raw[i], &mut saved.normed[i]);
                let dense = MatrixMut::new(raw.first_mut(n * width), n, width);
                device.copy(rows.read().cols_range(columns.clone()), dense);
                norms[i].forward(cx, raw.first(n * width), normed, &mut work.spare);
                let dense = Matrix::new(normed.y.first(n * width), n, width);
                device.copy(dense, rows.cols_range(columns));
            }
        }
        let before = past.as_ref().map_or(0, |past| past.tokens);
        Self::rotate(device, shape, (rope, before), qkv.again(), Direction::Forward);
        let mut rows = MatrixMut::new(qkv.again(), n, stride);
        self.round(cx, shape, false, &mut rows, &mut work.dense[0]);
        let (qkv, mut attended) = (qkv.read(), saved.attended.first_mut(n * shape.width()));
        let cache = past.map(|Past { held: Held { rows, .. }, tokens }| {
            let kv = Matrix::new(qkv, n, stride).cols_range(shape.width()..stride);
            let (width, len) = (kv.cols(), (tokens + n) * kv.cols());
            let new = rows.part_mut(tokens * width..len);
            device.copy(kv, MatrixMut::new(new, n, width));
            rows.first(len)
        });
        if let Some(cache) = cache.filter(|_| before > 0) {
            device.attention_cached(shape, qkv, cache, attended.again());
        } else if self.is_split(cx.products) {
            device.grow(&mut saved.probabilities, probabilities);
            let mut p = saved.probabilities.first_mut(probabilities);
            device.scores(shape, qkv, p.again());
            cx.tensor(layer, Place::Scores, false, p.again(), shape.row());
            device.softmax(shape, p.again());
            cx.tensor(layer, Place::Probabilities, false, p.again(), shape.row());
            device.weigh(shape, qkv, p.read(), attended.again());
        } else {
            let held = saved.probabilities.len();
            saved.saved_elements = Self::saved_probabilities(device, shape, pass, held);
            device.grow(&mut saved.probabilities, saved.saved_elements);
            let (p, scratch) =
                (saved.probabilities.first_mut(saved.saved_elements), work.scratch.all_mut());
            device.attention(shape, qkv, attended.again(), p, scratch);
        }
        cx.tensor(layer, Place::Attention, false, attended.again(), shape.width());
        self.o.forward(cx, attended.read(), out);
    }

    /// `dx` from `d_out`.
    pub(super) fn backward<D: Device>(
        &self,
        cx: &mut Context<'_, D>,
        grads: &mut SliceMut<'_, D>,
        shape: &Shape,
        rope: Option<&Rope<D>>,
        x: Slice<'_, D>,
        saved: &Saved<D>,
        work: &mut Scratch<D>,
        d_out: Slice<'_, D>,
        dx: SliceMut<'_, D>,
    ) {
        let (n, stride, layer) = (shape.batch * shape.sequence, shape.qkv_width(), self.layer);
        let (device, probabilities) = (cx.device, shape.probabilities());
        let mut d_attended = work.d_inner.first_mut(n * shape.width());
        let attended = saved.attended.first(n * shape.width());
        self.o.backward(cx, grads, d_out, attended, d_attended.again());
        cx.tensor(layer, Place::Attention, true, d_attended.again(), shape.width());
        let (qkv, dy) = (saved.qkv.first(n * stride), d_attended.read());
        let mut d_qkv = work.d_outer.first_mut(n * stride);
        if self.is_split(cx.products) {
            let p = saved.probabilities.first(probabilities);
            device.grow(&mut work.d_scores, probabilities);
            let mut ds = work.d_scores.first_mut(probabilities);
            device.weigh_backward(shape, qkv, p, dy, d_qkv.again(), ds.again());
            cx.tensor(layer, Place::Probabilities, true, ds.again(), shape.row());
            device.softmax_backward(shape, p, ds.again());
            cx.tensor(layer, Place::Scores, true, ds.again(), shape.row());
            device.scores_backward(shape, qkv, ds.read(), d_qkv.again());
        } else {
            let p = saved.probabilities.first(saved.saved_elements);
            let scratch = work.scratch.all_mut();
            device.attention_backward(shape, qkv, p, dy, d_qkv.again(), scratch);
        }
        let mut rows = MatrixMut::new(d_qkv.again(), n, stride);
        self.round(cx, shape, true, &mut rows, &mut work.dense[0]);
        Self::rotate(device, shape, (rope, 0), d_qkv.again(), Direction::Backward);
        if let Some(norms) = &self.norms {
            let mut rows = MatrixMut::new(d_qkv.again(), n, stride);
            for (i, (column, width)) in Self::columns(shape).into_iter().enumerate() {
                let columns = column..column + width;
                let [dy, dx] = &mut work.dense;
                let (mut dy, mut dx) = (dy.first_mut(n * width), dx.first_mut(n * width));
                let dense = MatrixMut::new(dy.again(), n, width);
                device.copy(rows.read().cols_range(columns.clone()), dense);
                let (raw, normed) = (saved.raw[i].first(n * width), &saved.normed[i]);
                norms[i].backward(cx, grads, raw, normed, dy, dx.again(), &mut work.spare);
                device.copy(Matrix::new(dx.read(), n, width), rows.cols_range(columns));
            }
        }
        self.qkv.backward(cx, grads, d_qkv.read(), x, dx);
    }
}
