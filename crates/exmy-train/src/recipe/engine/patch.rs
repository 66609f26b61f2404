//! Products with hot-channel patches; [`hot`](crate::recipe::hot) has the algebra.

use crate::recipe::hot::{Patch, Residual, Terms};
use crate::recipe::tensor_format::TensorFormat;
use exmy::block::BlockFormat;
use exmy::gemm::f32::{Output, matmul};
use exmy::pool::Pooled;
use exmy::quantizer::{Axis, Quantizer, Target};
use exmy::random::{Philox, Stream};
use exmy::slice::{View, ViewMut};

/// An operand of a patched product: rows of channels, before and after rounding.
#[derive(Clone, Copy)]
pub(super) struct Both<'a> {
    pub(super) numbers: &'a TensorFormat,
    pub(super) before: View<'a, f32>,
    pub(super) after: View<'a, f32>,
}

/// Some columns of a matrix, row-major.
pub(super) fn columns(x: View<'_, f32>, channels: &[u32]) -> Pooled<f32> {
    let mut all = Pooled::with_capacity(x.rows() * channels.len());
    for i in 0..x.rows() {
        all.extend(channels.iter().map(|&j| x.at(i, j as usize)));
    }
    all
}

/// What rounding took from some columns.
pub(super) fn residual(operand: Both<'_>, channels: &[u32]) -> Pooled<f32> {
    let (mut before, after) = (columns(operand.before, channels), columns(operand.after, channels));
    before.iter_mut().zip(after.iter()).for_each(|(before, after)| *before -= after);
    before
}

/// The largest magnitude of an operand as its tensor scale is found: after what is rounded before.
fn largest(operand: Both<'_>) -> f32 {
    let amax = [super::image::amax(operand.before)];
    let Some(cast) = operand.numbers.quantizer.before else { return amax[0] };
    let first = Quantizer { before: Some(cast), ..Quantizer::NONE };
    let (random, mut rounded) = (Philox::new(0, Stream::new("unused")), [0.0]);
    first.image_into(View::new(&amax, 1, 1), Axis::Cols, random, ViewMut::new(&mut rounded, 1, 1));
    rounded[0]
}

/// Rounds columns of an operand to the numbers of a residual, along their rows. `tensor` is the operand's
/// largest magnitude, which its tensor scale is of.
pub(super) fn round(
    values: &mut Pooled<f32>,
    rows: usize,
    to: Residual,
    operand: &TensorFormat,
    tensor: f32,
) {
    let cols = values.len() / rows.max(1);
    if cols == 0 {
        return;
    }
    let quantizer = match to {
        Residual::Exact => return,
        Residual::Bf16 => Quantizer::new(exmy::format::Format::BF16.into()),
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
    let mut whole = Pooled::zeros(all * cols);
    whole[..rows * cols].copy_from_slice(values);
    if all > rows {
        whole[place * cols] = tensor;
    }
    let mut image = Pooled::zeros(all * cols);
    let view = View::new(&whole, all, cols);
    quantizer.image_into(view, Axis::Cols, random, ViewMut::new(&mut image, all, cols));
    values.copy_from_slice(&image[..rows * cols]);
}

/// Rows of each part, side by side.
fn beside(parts: &[&[f32]], rows: usize, k: usize) -> Pooled<f32> {
    let mut all = Pooled::with_capacity(rows * k * parts.len());
    for i in 0..rows {
        parts.iter().for_each(|part| all.extend_from_slice(&part[i * k..(i + 1) * k]));
    }
    all
}

/// Puts the rows of each part behind those of `buffer`, of `cols` elements each, in its own memory:
/// a second image would be the largest tensor of a layer.
fn widen<'b>(buffer: &'b mut Vec<f32>, cols: usize, parts: &[&[f32]], k: usize) -> View<'b, f32> {
    let (rows, wide) = (buffer.len() / cols, cols + k * parts.len());
    buffer.reserve_exact(rows * (wide - cols));
    buffer.resize(rows * wide, 0.0);
    // The last row first: where a row goes, those before it are not.
    for i in (0..rows).rev() {
        buffer.copy_within(i * cols..(i + 1) * cols, i * wide);
        let places = buffer[i * wide + cols..(i + 1) * wide].chunks_exact_mut(k);
        for (place, part) in places.zip(parts) {
            place.copy_from_slice(&part[i * k..(i + 1) * k]);
        }
    }
    View::new(buffer, rows, wide)
}

/// What is multiplied beside the images: residuals and images of the patch's channels.
pub(super) struct Parts {
    k: usize,
    residuals: [Pooled<f32>; 2],
    images: [Pooled<f32>; 2],
}

impl Parts {
    /// Of `x` and `w`.
    pub(super) fn new(patch: &Patch, channels: &[u32], x: Both<'_>, w: Both<'_>) -> Self {
        let k = channels.len();
        if k == 0 {
            return Self { k, residuals: Default::default(), images: Default::default() };
        }
        let part = |operand: Both<'_>, residual_part: bool| {
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
            let tensor = largest(operand);
            round(&mut values, operand.before.rows(), to, operand.numbers, tensor);
            values
        };
        let of_both = |residual_part| [x, w].map(|operand| part(operand, residual_part));
        Self { k, residuals: of_both(true), images: of_both(false) }
    }

    /// Those of the left and of the right operand, in the order of their products, and how many.
    fn terms(&self, terms: Terms) -> ([[&[f32]; 3]; 2], usize) {
        let ([rx, rw], [qx, qw]) = (&self.residuals, &self.images);
        let ([rx, rw], [qx, qw]): ([&[f32]; 2], [&[f32]; 2]) = ([rx, rw], [qx, qw]);
        match terms {
            _ if self.k == 0 => ([[&[]; 3]; 2], 0),
            Terms::Input => ([[rx, &[], &[]], [qw, &[], &[]]], 1),
            Terms::Weight => ([[qx, &[], &[]], [rw, &[], &[]]], 1),
            Terms::Both => ([[rx, qx, &[]], [qw, rw, &[]]], 2),
            Terms::Full => ([[rx, qx, rx], [qw, rw, rw]], 3),
            Terms::Literal => ([[rx, &[], &[]], [rw, &[], &[]]], 1),
        }
    }
}

/// `y = x wᵀ` with the patch, of images with `inputs` columns that are overwritten.
pub(super) fn forward(
    patch: &Patch,
    parts: &Parts,
    [x, w]: [&mut Vec<f32>; 2],
    inputs: usize,
    mut y: ViewMut<'_, f32>,
) {
    let (tokens, outputs, k) = (y.rows(), y.cols(), parts.k);
    let ([left, right], count) = parts.terms(patch.terms);
    let (left, right) = (&left[..count], &right[..count]);
    if patch.single && k > 0 {
        let (left, right) = (widen(x, inputs, left, k), widen(w, inputs, right, k));
        return matmul(left, right.t(), y, Output::Overwrite);
    }
    let (x, w) = (View::new(x, tokens, inputs), View::new(w, outputs, inputs));
    matmul(x, w.t(), y.reborrow(), Output::Overwrite);
    if k > 0 {
        let cols = k * left.len();
        let (left, right) = (beside(left, tokens, k), beside(right, outputs, k));
        let (left, right) = (View::new(&left, tokens, cols), View::new(&right, outputs, cols));
        matmul(left, right.t(), y, Output::Accumulate);
    }
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
    let mut patch = Pooled::zeros(rows * k);
    matmul(a, b, ViewMut::new(&mut patch, rows, k), Output::Overwrite);
    let stride = out.row_stride();
    let data = out.data_mut();
    for (i, row) in patch.chunks(k).enumerate() {
        for (&channel, value) in channels.iter().zip(row) {
            data[i * stride + channel as usize] += value;
        }
    }
}
