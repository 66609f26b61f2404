//! Products with hot-channel patches; [`hot`](crate::recipe::hot) has the algebra.

use crate::block::BlockFormat;
use crate::gemm::f32::{Output, matmul};
use crate::quantizer::{Axis, Quantizer, Target};
use crate::random::{Philox, Stream};
use crate::recipe::hot::{Patch, Residual, Terms};
use crate::recipe::numbers::Numbers;
use crate::view::{View, ViewMut};

/// An operand of a patched product: rows of channels, before and after rounding.
#[derive(Clone, Copy)]
pub(super) struct Both<'a> {
    pub(super) numbers: &'a Numbers,
    pub(super) before: View<'a, f32>,
    pub(super) after: View<'a, f32>,
}

/// Some columns of a matrix, row-major.
pub(super) fn columns(x: View<'_, f32>, channels: &[u32]) -> Vec<f32> {
    let rows = 0..x.rows();
    rows.flat_map(|i| channels.iter().map(move |&j| x.at(i, j as usize))).collect()
}

/// What rounding took from some columns.
pub(super) fn residual(operand: Both<'_>, channels: &[u32]) -> Vec<f32> {
    let (mut before, after) = (columns(operand.before, channels), columns(operand.after, channels));
    before.iter_mut().zip(after).for_each(|(before, after)| *before -= after);
    before
}

/// Rounds columns of an operand to the numbers of a residual, along their rows. `tensor` is the operand's
/// largest magnitude, which its tensor scale is of.
pub(super) fn round(
    values: &mut Vec<f32>,
    rows: usize,
    to: Residual,
    operand: &Numbers,
    tensor: f32,
) {
    let cols = values.len() / rows.max(1);
    if cols == 0 {
        return;
    }
    let quantizer = match to {
        Residual::Exact => return,
        Residual::Bf16 => Quantizer::new(crate::format::Format::BF16.into()),
        Residual::Same => operand.quantizer,
    };
    // Residuals are rounded to nearest, whatever the operand's random bits.
    let random = Philox::new(0, Stream::new("unused"));
    let nearest = quantizer.target.default_rounding();
    let rounding = if quantizer.rounding.is_stochastic() { nearest } else { quantizer.rounding };
    let quantizer = Quantizer { before: None, rounding, ..quantizer };
    let scaled = matches!(quantizer.target, Target::Block(BlockFormat { tensor_scale: true, .. }));
    // A row of its own blocks behind the others gives the tensor the operand's largest magnitude.
    let place = rows.next_multiple_of(256);
    let all = if scaled { place + 1 } else { rows };
    values.resize(all * cols, 0.0);
    if all > rows {
        values[place * cols] = tensor;
    }
    let mut image = vec![0.0; all * cols];
    let view = View::new(values, all, cols);
    quantizer.image_into(view, Axis::Cols, random, ViewMut::new(&mut image, all, cols));
    image.truncate(rows * cols);
    *values = image;
}

/// Rows of `base` and then those of each part, side by side.
fn beside(base: View<'_, f32>, parts: &[&[f32]], k: usize) -> Vec<f32> {
    let rows = base.rows();
    let mut all = Vec::with_capacity(rows * (base.cols() + k * parts.len()));
    for i in 0..rows {
        match base.row(i) {
            Some(row) => all.extend_from_slice(row),
            None => all.extend((0..base.cols()).map(|j| base.at(i, j))),
        }
        for part in parts {
            all.extend_from_slice(&part[i * k..(i + 1) * k]);
        }
    }
    all
}

/// `y = x wᵀ` with the patch on `channels`.
pub(super) fn forward(
    patch: &Patch,
    channels: &[u32],
    x: Both<'_>,
    w: Both<'_>,
    mut y: ViewMut<'_, f32>,
) {
    let k = channels.len();
    if k == 0 {
        return matmul(x.after, w.after.t(), y, Output::Overwrite);
    }
    let (tokens, outputs) = (x.before.rows(), w.before.rows());
    let part = |operand: Both<'_>, rows, residual_part: bool| {
        let mut values = if residual_part {
            residual(operand, channels)
        } else {
            columns(operand.after, channels)
        };
        // Whole groups keep their codes and scales; single channels are quantized again.
        let to = match (residual_part, patch.single, patch.blocks) {
            (true, ..) => patch.residual,
            (false, true, true) => Residual::Exact,
            (false, true, false) => Residual::Same,
            (false, false, _) if patch.residual == Residual::Exact => Residual::Exact,
            (false, false, _) => Residual::Bf16,
        };
        let tensor = super::image::amax(operand.before);
        round(&mut values, rows, to, operand.numbers, tensor);
        values
    };
    let (rx, rw) = (part(x, tokens, true), part(w, outputs, true));
    let (qx, qw) = (part(x, tokens, false), part(w, outputs, false));
    let (left, right): (Vec<&[f32]>, Vec<&[f32]>) = match patch.terms {
        Terms::Input => (vec![&rx], vec![&qw]),
        Terms::Weight => (vec![&qx], vec![&rw]),
        Terms::Both => (vec![&rx, &qx], vec![&qw, &rw]),
        Terms::Full => (vec![&rx, &qx, &rx], vec![&qw, &rw, &rw]),
        Terms::Literal => (vec![&rx], vec![&rw]),
    };
    if patch.single {
        let (left, right) = (beside(x.after, &left, k), beside(w.after, &right, k));
        let cols = left.len() / tokens;
        let (left, right) = (View::new(&left, tokens, cols), View::new(&right, outputs, cols));
        return matmul(left, right.t(), y, Output::Overwrite);
    }
    matmul(x.after, w.after.t(), y.reborrow(), Output::Overwrite);
    let cols = k * left.len();
    let empty = |rows| View::new(&[], rows, 0);
    let (left, right) = (beside(empty(tokens), &left, k), beside(empty(outputs), &right, k));
    let (left, right) = (View::new(&left, tokens, cols), View::new(&right, outputs, cols));
    matmul(left, right.t(), y, Output::Accumulate);
}

/// Adds `a b` to the columns `channels` of `out`; b has one column a channel.
pub(super) fn add_columns(
    a: View<'_, f32>,
    b: View<'_, f32>,
    channels: &[u32],
    out: &mut ViewMut<'_, f32>,
) {
    let (rows, k) = (a.rows(), channels.len());
    if k == 0 {
        return;
    }
    let mut patch = vec![0.0; rows * k];
    matmul(a, b, ViewMut::new(&mut patch, rows, k), Output::Overwrite);
    let stride = out.row_stride();
    let data = out.data();
    for (i, row) in patch.chunks(k).enumerate() {
        for (&channel, value) in channels.iter().zip(row) {
            data[i * stride + channel as usize] += value;
        }
    }
}
