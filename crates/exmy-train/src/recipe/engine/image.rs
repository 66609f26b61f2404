//! One tensor in its numbers: every mechanism of [`TensorFormat`], one after the other.

use crate::recipe::tensor_format::{Prior, TensorFormat};
use crate::recipe::{bump, mask};
use exmy::pool::Pooled;
use exmy::quantizer::{Axis, Quantizer, Target};
use exmy::random::{Philox, Stream};
use exmy::slice::{View, ViewMut};

/// What numbers need besides the tensor.
#[derive(Clone, Copy)]
pub(super) struct Given {
    /// The axis that the product sums along.
    pub(super) axis: Axis,
    /// Random bits by element.
    pub(super) random: Philox,
    /// The scale of a window.
    pub(super) scale: Option<f32>,
    /// The seed of a fresh rotation's signs.
    pub(super) signs: u64,
    /// Rows of a sequence, where rows are tokens of several sequences; else 0.
    pub(super) sequence: usize,
}

/// The quantizer of numbers, its rotation with the signs of this step.
pub(super) fn quantizer(numbers: &TensorFormat, signs: u64) -> Quantizer {
    use exmy::block::hadamard::{Hadamard, Signs};
    let Some(rotation) = numbers.quantizer.rotation.filter(|_| numbers.fresh) else {
        return numbers.quantizer;
    };
    let drawn = Hadamard::new(rotation.size(), Signs::Random(signs)).unwrap_or(rotation);
    let drawn = if rotation.rounds_to_bf16() { drawn } else { drawn.in_f32() };
    Quantizer { rotation: Some(drawn), ..numbers.quantizer }
}

/// The other axis.
fn other(axis: Axis) -> Axis {
    match axis {
        Axis::Cols => Axis::Rows,
        Axis::Rows => Axis::Cols,
    }
}

/// Writes to `out` the values of `x` in `numbers`; `scratch` is room.
///
/// # Panics
/// If shapes differ, or a rotation's groups do not fill the axis.
pub(super) fn image(
    numbers: &TensorFormat,
    x: View<'_, f32>,
    given: Given,
    scratch: &mut Vec<f32>,
    mut out: ViewMut<'_, f32>,
) {
    let (rows, cols) = (x.rows(), x.cols());
    let axis = if numbers.across { other(given.axis) } else { given.axis };
    let x = match numbers.prior {
        None => x,
        Some(Prior::Zero) => {
            let stride = out.row_stride();
            for row in out.data_mut().chunks_mut(stride).take(rows) {
                row[..cols].fill(0.0);
            }
            return;
        }
        Some(Prior::Clip(clip)) => {
            copy(x, scratch);
            clip.apply(scratch);
            View::new(scratch, rows, cols)
        }
        Some(Prior::Mask(bits)) => {
            copy(x, scratch);
            mask::apply(bits, scratch);
            View::new(scratch, rows, cols)
        }
        Some(Prior::Quantizer(first)) => {
            scratch.resize(rows * cols, 0.0);
            first.image_into(x, axis, given.random, ViewMut::new(scratch, rows, cols));
            View::new(scratch, rows, cols)
        }
    };
    let quantizer = quantizer(numbers, given.signs);
    match given.scale {
        _ if numbers.by_position => {
            bump::image_into(&quantizer, x, axis, given.random, given.sequence, out);
        }
        Some(scale) => quantizer.image_with(x, axis, given.random, |_| scale, out),
        None => quantizer.image_into(x, axis, given.random, out),
    }
}

/// The tensor just before its last rounding: rounded first, rotated, in the coordinates of its image.
pub(super) fn before(numbers: &TensorFormat, x: View<'_, f32>, given: Given) -> Pooled<f32> {
    let last = Quantizer { target: Target::None, ..numbers.quantizer };
    let numbers = TensorFormat { quantizer: last, window: 0, by_position: false, ..*numbers };
    let (rows, cols) = (x.rows(), x.cols());
    let mut values = Pooled::zeros(rows * cols);
    let given = Given { scale: None, ..given };
    image(&numbers, x, given, &mut Vec::new(), ViewMut::new(&mut values, rows, cols));
    values
}

/// `x`, row-major.
pub(super) fn copy(x: View<'_, f32>, to: &mut Vec<f32>) {
    to.clear();
    for i in 0..x.rows() {
        match x.row(i) {
            Some(row) => to.extend_from_slice(row),
            None => to.extend((0..x.cols()).map(|j| x.at(i, j))),
        }
    }
}

/// `x` with zeros behind its rows and columns.
pub(super) fn padded(x: View<'_, f32>, rows: usize, cols: usize) -> Pooled<f32> {
    let mut values = Pooled::zeros(rows * cols);
    for (i, row) in values.chunks_mut(cols.max(1)).take(x.rows()).enumerate() {
        match x.row(i) {
            Some(from) => row[..from.len()].copy_from_slice(from),
            None => (0..x.cols()).for_each(|j| row[j] = x.at(i, j)),
        }
    }
    values
}

/// The largest magnitude; NaN if there is one.
pub(super) fn amax(x: View<'_, f32>) -> f32 {
    let mut amax = 0.0_f32;
    for i in 0..x.rows() {
        for j in 0..x.cols() {
            let value = x.at(i, j).abs();
            amax = if value.is_nan() || value > amax { value } else { amax };
            if amax.is_nan() {
                return amax;
            }
        }
    }
    amax
}

/// The seed of a fresh rotation's signs: both operands of a product see the same.
pub(super) fn signs(stream: Stream, seed: u64) -> u64 {
    Philox::new(seed, stream.with(SIGNS)).word(0).into()
}

/// A coordinate behind those of operands.
const SIGNS: u64 = 17;
