//! One tensor in its numbers: every mechanism of [`TensorFormat`], one after the other.

use crate::nn::device::{Buffer, Matrix, MatrixMut};
use crate::recipe::device::Quantize;
use crate::recipe::tensor_format::{Prior, TensorFormat};
use exmy::quantizer::{Axis, Quantizer, Target};
use exmy::random::{Philox, Stream};

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

impl Given {
    /// Random bits, for a tensor that is no operand: its blocks run along its rows.
    pub(super) fn bits(random: Philox) -> Self {
        Self { axis: Axis::Cols, random, scale: None, signs: 0, sequence: 0 }
    }
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

/// Writes to `out` the values of `x` in `numbers`; `scratch` is memory to work in.
///
/// # Panics
/// If shapes differ, or a rotation's groups do not fill the axis.
pub(super) fn image<D: Quantize>(
    device: &D,
    numbers: &TensorFormat,
    x: Matrix<'_, D>,
    given: Given,
    scratch: &mut Buffer<D>,
    out: MatrixMut<'_, D>,
) {
    let (rows, cols) = (x.rows(), x.cols());
    let axis = if numbers.across { other(given.axis) } else { given.axis };
    let x = match numbers.prior {
        None => x,
        Some(Prior::Zero) => return device.fill(out, 0.0),
        Some(prior) => {
            device.grow(scratch, rows * cols);
            let dense = MatrixMut::new(scratch.first_mut(rows * cols), rows, cols);
            if let Prior::Quantizer(first) = prior {
                device.quantize(&first, x, axis, given.random, None, dense);
            } else {
                device.copy(x, dense);
            }
            match prior {
                Prior::Clip(clip) => device.clip(clip, scratch.first_mut(rows * cols)),
                Prior::Mask(bits) => device.mask(bits, scratch.first_mut(rows * cols)),
                Prior::Times(factor) => {
                    device.times(factor.value(), scratch.first_mut(rows * cols));
                }
                Prior::Quantizer(_) | Prior::Zero => {}
            }
            Matrix::new(scratch.first(rows * cols), rows, cols)
        }
    };
    let quantizer = quantizer(numbers, given.signs);
    if numbers.by_position {
        let Given { random, sequence, .. } = given;
        return device.quantize_by_position(&quantizer, x, axis, random, sequence, out);
    }
    device.quantize(&quantizer, x, axis, given.random, given.scale, out);
}

/// The tensor just before its last rounding: rounded first, rotated, in the coordinates of its image.
pub(super) fn before<D: Quantize>(
    device: &D,
    numbers: &TensorFormat,
    x: Matrix<'_, D>,
    given: Given,
    scratch: &mut Buffer<D>,
    out: MatrixMut<'_, D>,
) {
    let last = Quantizer { target: Target::None, ..numbers.quantizer };
    let numbers = TensorFormat { quantizer: last, window: 0, by_position: false, ..*numbers };
    image(device, &numbers, x, Given { scale: None, ..given }, scratch, out);
}

/// Copies `x`, with zeros behind its rows and columns.
pub(super) fn padded<D: Quantize>(device: &D, x: Matrix<'_, D>, mut out: MatrixMut<'_, D>) {
    if (x.rows(), x.cols()) != (out.rows(), out.cols()) {
        device.fill(out.again(), 0.0);
    }
    device.copy(x, out.rows_range(0..x.rows()).cols_range(0..x.cols()));
}

/// The seed of a fresh rotation's signs: both operands of a product see the same.
pub(super) fn signs(stream: Stream, seed: u64) -> u64 {
    Philox::new(seed, stream.with(SIGNS)).word(0).into()
}

/// A coordinate behind those of operands.
const SIGNS: u64 = 17;
