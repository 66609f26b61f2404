//! Softmax attention in a block: q|k|v, their norms and rotation, attention, o.

use super::{Config, QkNorm, Work};
use crate::nn::attention::{Shape, attention, attention_backward, split};
use crate::nn::linear::Products;
use crate::nn::parameters::Layout;
use crate::nn::parts::{Affine, Linear, Normed, Pass, gather, grow, scatter};
use crate::nn::real::Real;
use crate::nn::rope::Rope;
use crate::nn::site::{Operator, Place};

/// The places of one block's attention.
#[derive(Clone, Debug)]
pub(super) struct Attend {
    layer: Option<u32>,
    qkv: Linear,
    /// Of queries and of keys.
    norms: Option<[Affine; 2]>,
    o: Linear,
}

/// What the backward pass reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept<T> {
    /// As the attention reads it.
    qkv: Vec<T>,
    /// Queries and keys before their norms, and their norms.
    raw: [Vec<T>; 2],
    normed: [Normed<T>; 2],
    /// Of short rows, and where a recipe looks at them; others are formed again.
    probabilities: Vec<T>,
    attended: Vec<T>,
}

/// What a recipe does to the columns of one kind in rows of q|k|v (or more).
pub(super) fn round_columns<T: Real>(
    products: &mut dyn Products<T>,
    layer: Option<u32>,
    (place, gradient): (Place, bool),
    rows: &mut [T],
    (stride, column, width): (usize, usize, usize),
    dense: &mut Vec<T>,
) {
    if products.rounds(layer, place, gradient) || products.watches() {
        let len = rows.len() / stride * width;
        grow(dense, len);
        gather(rows, stride, column, width, &mut dense[..len]);
        products.tensor(layer, place, gradient, &mut dense[..len], width);
        scatter(&dense[..len], width, rows, stride, column);
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
        let o = name("o_proj.weight");
        let norm = |rest: &str, width: usize| {
            Affine::new(layout, layer, &name(rest), width, config.norm, config.norm_eps)
        };
        Self {
            layer,
            qkv: Linear::new(layout, layer, &members, d, [&first, &last]),
            norms: match config.qk_norm {
                QkNorm::None => None,
                QkNorm::Head => Some([norm("q_norm", hd), norm("k_norm", hd)]),
                QkNorm::Full => Some([norm("q_norm", q), norm("k_norm", kv)]),
            },
            o: Linear::new(layout, layer, &[(Operator::O, d)], q, [&o, &o]),
        }
    }

    /// The columns of queries and of keys: where they begin, how many they are.
    fn columns(shape: &Shape) -> [(usize, usize); 2] {
        let queries = shape.width();
        [(0, queries), (queries, shape.kv_heads * shape.head_dim)]
    }

    /// Makes room for a pass over `shape`.
    pub(super) fn reserve<T: Real>(
        &self,
        shape: &Shape,
        pass: Pass,
        kept: &mut Kept<T>,
        work: &mut Work<T>,
    ) {
        let n = shape.batch * shape.sequence;
        grow(&mut kept.qkv, n * shape.qkv_width());
        grow(&mut kept.attended, n * shape.width());
        grow(&mut work.scratch, shape.scratch());
        if let Some(norms) = &self.norms {
            for (i, (_, width)) in Self::columns(shape).into_iter().enumerate() {
                grow(&mut kept.raw[i], n * width);
                kept.normed[i].reserve(n * width / norms[i].width(), norms[i].width());
                if pass == Pass::Training {
                    work.dense.iter_mut().for_each(|dense| grow(dense, n * width));
                }
            }
        }
        if pass == Pass::Training {
            grow(&mut work.d_inner, n * shape.width());
            grow(&mut work.d_outer, n * shape.qkv_width());
        }
    }

    /// Elements of the probabilities that are kept for the backward pass: those of short rows.
    ///
    /// Up to eight times a head's width they are at most half of what a layer keeps beside them, and
    /// forming them again would take a twentieth of a step.
    fn kept_probabilities(shape: &Shape) -> usize {
        if shape.row() <= 8 * shape.head_dim { shape.probabilities() } else { 0 }
    }

    /// Rounds the columns of queries, keys and values, or of their gradients.
    fn round<T: Real>(
        &self,
        products: &mut dyn Products<T>,
        shape: &Shape,
        gradient: bool,
        rows: &mut [T],
        dense: &mut Vec<T>,
    ) {
        let [q, k] = Self::columns(shape);
        let v = (k.0 + k.1, k.1);
        for (place, (column, width)) in [(Place::Q, q), (Place::K, k), (Place::V, v)] {
            let columns = (shape.qkv_width(), column, width);
            round_columns(products, self.layer, (place, gradient), rows, columns, dense);
        }
    }

    /// Whether the products of the attention have operands of their own precision.
    fn is_split<T: Real>(&self, products: &mut dyn Products<T>) -> bool {
        let rounds = |place, gradient| products.rounds(self.layer, place, gradient);
        let places = [Place::Scores, Place::Probabilities];
        places.into_iter().any(|place| rounds(place, false) || rounds(place, true))
    }

    /// `out` (n, d) from the normed stream `x`.
    pub(super) fn forward<T: Real>(
        &self,
        products: &mut dyn Products<T>,
        params: &[T],
        shape: &Shape,
        rope: Option<&Rope<T>>,
        x: &[T],
        pass: Pass,
        kept: &mut Kept<T>,
        work: &mut Work<T>,
        out: &mut [T],
    ) {
        let (n, stride, layer) = (shape.batch * shape.sequence, shape.qkv_width(), self.layer);
        let qkv = &mut kept.qkv[..n * stride];
        self.qkv.forward(products, params, x, qkv);
        if let Some(norms) = &self.norms {
            for (i, (column, width)) in Self::columns(shape).into_iter().enumerate() {
                let (raw, normed) = (&mut kept.raw[i][..n * width], &mut kept.normed[i]);
                gather(qkv, stride, column, width, raw);
                norms[i].forward(products, params, raw, normed, &mut work.spare);
                scatter(&normed.y[..n * width], width, qkv, stride, column);
            }
        }
        if let Some(rope) = rope {
            rope.forward(qkv, stride, shape.heads + shape.kv_heads, shape.sequence);
        }
        self.round(products, shape, false, qkv, &mut work.dense[0]);
        let attended = &mut kept.attended[..n * shape.width()];
        if self.is_split(products) {
            grow(&mut kept.probabilities, shape.probabilities());
            let probabilities = &mut kept.probabilities[..shape.probabilities()];
            split::scores(shape, qkv, probabilities);
            products.tensor(layer, Place::Scores, false, probabilities, shape.row());
            split::softmax(shape, probabilities);
            products.tensor(layer, Place::Probabilities, false, probabilities, shape.row());
            split::values(shape, qkv, probabilities, attended);
        } else {
            let len = if pass == Pass::Training { Self::kept_probabilities(shape) } else { 0 };
            grow(&mut kept.probabilities, len);
            attention(shape, qkv, attended, &mut kept.probabilities[..len], &mut work.scratch);
        }
        products.tensor(layer, Place::Attention, false, attended, shape.width());
        self.o.forward(products, params, attended, out);
    }

    /// `dx` from `d_out`.
    pub(super) fn backward<T: Real>(
        &self,
        products: &mut dyn Products<T>,
        params: &[T],
        grads: &mut [T],
        shape: &Shape,
        rope: Option<&Rope<T>>,
        x: &[T],
        kept: &Kept<T>,
        work: &mut Work<T>,
        d_out: &[T],
        dx: &mut [T],
    ) {
        let (n, stride, layer) = (shape.batch * shape.sequence, shape.qkv_width(), self.layer);
        let d_attended = &mut work.d_inner[..n * shape.width()];
        let attended = &kept.attended[..n * shape.width()];
        self.o.backward(products, params, grads, d_out, attended, d_attended);
        products.tensor(layer, Place::Attention, true, d_attended, shape.width());
        let qkv = &kept.qkv[..n * stride];
        let d_qkv = &mut work.d_outer[..n * stride];
        if self.is_split(products) {
            let probabilities = &kept.probabilities[..shape.probabilities()];
            grow(&mut work.d_scores, shape.probabilities());
            let d_scores = &mut work.d_scores[..shape.probabilities()];
            split::values_backward(shape, qkv, probabilities, d_attended, d_qkv, d_scores);
            products.tensor(layer, Place::Probabilities, true, d_scores, shape.row());
            split::softmax_backward(shape, probabilities, d_scores);
            products.tensor(layer, Place::Scores, true, d_scores, shape.row());
            split::scores_backward(shape, qkv, d_scores, d_qkv);
        } else {
            let probabilities = &kept.probabilities[..Self::kept_probabilities(shape)];
            attention_backward(shape, qkv, probabilities, d_attended, d_qkv, &mut work.scratch);
        }
        self.round(products, shape, true, d_qkv, &mut work.dense[0]);
        if let Some(rope) = rope {
            rope.backward(d_qkv, stride, shape.heads + shape.kv_heads, shape.sequence);
        }
        if let Some(norms) = &self.norms {
            for (i, (column, width)) in Self::columns(shape).into_iter().enumerate() {
                let [dy, dx] = &mut work.dense;
                let (dy, dx) = (&mut dy[..n * width], &mut dx[..n * width]);
                gather(d_qkv, stride, column, width, dy);
                let (raw, normed) = (&kept.raw[i][..n * width], &kept.normed[i]);
                norms[i].backward(products, params, grads, raw, normed, dy, dx, &mut work.spare);
                scatter(dx, width, d_qkv, stride, column);
            }
        }
        self.qkv.backward(products, params, grads, d_qkv, x, dx);
    }
}
