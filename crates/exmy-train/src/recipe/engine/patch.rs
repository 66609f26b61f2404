//! Products with hot-channel patches; [`hot`](crate::recipe::hot) has the algebra.
//!
//! The products of a patched forward product are summed as the recipe says. Tensor cores take images with
//! their tensors' scales and all parts rounded to bfloat16. Backward products are patched in f32.

use super::Images;
use crate::nn::device::{Buffer, Matrix, MatrixMut};
use crate::nn::site::Product;
use crate::recipe::device::{Quantize, Source};
use crate::recipe::hot::{Patch, Residual, Terms};
use crate::recipe::sums::Sums;
use crate::recipe::tensor_format::TensorFormat;
use exmy::block::BlockFormat;
use exmy::gemm::f32::Output;
use exmy::quantizer::{Axis, Quantizer, Target};
use exmy::random::{Philox, Stream};

/// An operand of a patched product: rows of channels, before and after rounding.
pub(super) struct Both<'a, D: Quantize> {
    pub(super) numbers: &'a TensorFormat,
    pub(super) before: Matrix<'a, D>,
    pub(super) after: Matrix<'a, D>,
}

impl<D: Quantize> Clone for Both<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Quantize> Copy for Both<'_, D> {}

/// Channels of a product: the list, and how many.
pub(super) type Channels<'a, D> = (&'a <D as crate::nn::Device>::Tokens, usize);

/// Random bits where none are used.
fn none() -> Philox {
    Philox::new(0, Stream::new("unused"))
}

/// What rounding took from some columns, (rows, channels).
pub(super) fn residual<D: Quantize>(
    device: &D,
    images: &mut Images<D>,
    [before, after]: [Matrix<'_, D>; 2],
    (channels, k): Channels<'_, D>,
) -> Buffer<D> {
    let rows = after.rows();
    let mut values = images.take(device, rows * k);
    let out = MatrixMut::new(values.first_mut(rows * k), rows, k);
    device.take_columns(before, Some(after), channels, out);
    values
}

/// Writes to row `row` of `whole`, in front, the largest magnitude of an operand as its tensor scale is
/// found: after what is rounded before.
fn largest<D: Quantize>(
    device: &D,
    images: &mut Images<D>,
    operand: Both<'_, D>,
    whole: &mut Buffer<D>,
    at: usize,
) {
    device.amax(operand.before, whole.part_mut(at..at + 1));
    let Some(cast) = operand.numbers.quantizer.before else { return };
    let first = Quantizer { before: Some(cast), ..Quantizer::NONE };
    let mut one = images.take(device, 1);
    device.copy(Matrix::new(whole.part(at..at + 1), 1, 1), MatrixMut::new(one.first_mut(1), 1, 1));
    let out = MatrixMut::new(whole.part_mut(at..at + 1), 1, 1);
    device.quantize(&first, Matrix::new(one.first(1), 1, 1), Axis::Cols, none(), None, out);
    images.give(one);
}

/// Rounds columns of an operand, (rows, k), to the numbers of a residual, along their rows. Tensor scales are
/// those of the operand.
fn round<D: Quantize>(
    device: &D,
    images: &mut Images<D>,
    values: Buffer<D>,
    (rows, k): (usize, usize),
    to: Residual,
    operand: Both<'_, D>,
) -> Buffer<D> {
    let quantizer = match to {
        Residual::Exact => return values,
        Residual::Bf16 => Quantizer::new(exmy::format::Format::BF16.into()),
        Residual::Same => operand.numbers.quantizer,
    };
    // Residuals are rounded to nearest, whatever the operand's random bits.
    let nearest = quantizer.target.default_rounding();
    let rounding = if quantizer.rounding.is_stochastic() { nearest } else { quantizer.rounding };
    let quantizer = Quantizer { before: None, rounding, ..quantizer };
    let scaled = matches!(quantizer.target, Target::Block(BlockFormat { tensor_scale: true, .. }));
    if !scaled {
        let mut image = images.take(device, rows * k);
        let out = MatrixMut::new(image.first_mut(rows * k), rows, k);
        let x = Matrix::new(values.first(rows * k), rows, k);
        device.quantize(&quantizer, x, Axis::Cols, none(), None, out);
        images.give(values);
        return image;
    }
    // A row of its own blocks behind the others gives the tensor the operand's largest magnitude.
    let place = rows.next_multiple_of(256);
    let len = (place + 1) * k;
    let [mut whole, mut image] = [(); 2].map(|()| images.take(device, len));
    let mut all = MatrixMut::new(whole.first_mut(len), place + 1, k);
    device.fill(all.again(), 0.0);
    device.copy(Matrix::new(values.first(rows * k), rows, k), all.rows_range(0..rows));
    largest(device, images, operand, &mut whole, place * k);
    let (x, out) = (Matrix::new(whole.first(len), place + 1, k), image.first_mut(len));
    device.quantize(&quantizer, x, Axis::Cols, none(), None, MatrixMut::new(out, place + 1, k));
    images.give(values);
    images.give(whole);
    image
}

/// Copies parts of `k` columns side by side to `out`.
fn side_by_side<D: Quantize>(
    device: &D,
    parts: &[&Buffer<D>],
    k: usize,
    mut out: MatrixMut<'_, D>,
) {
    let rows = out.rows();
    for (i, part) in parts.iter().enumerate() {
        let part = Matrix::new(part.first(rows * k), rows, k);
        device.copy(part, out.cols_range(i * k..(i + 1) * k));
    }
}

/// Puts the rows of each part behind those of `buffer`, of `cols` elements each.
fn widen<'b, D: Quantize>(
    device: &D,
    buffer: &'b mut Buffer<D>,
    (rows, cols): (usize, usize),
    parts: &[&Buffer<D>],
    k: usize,
) -> Matrix<'b, D> {
    let wide = cols + k * parts.len();
    device.widen(buffer, rows, cols, wide);
    let mut all = MatrixMut::new(buffer.first_mut(rows * wide), rows, wide);
    side_by_side(device, parts, k, all.cols_range(cols..wide));
    Matrix::new(buffer.first(rows * wide), rows, wide)
}

/// What is multiplied as well as the images: residuals and images of the patch's channels.
pub(super) struct Parts<D: Quantize> {
    k: usize,
    residuals: [Buffer<D>; 2],
    images: [Buffer<D>; 2],
}

impl<D: Quantize> Parts<D> {
    /// Of `x` and `w`.
    pub(super) fn new(
        device: &D,
        images: &mut Images<D>,
        patch: &Patch,
        (channels, k): Channels<'_, D>,
        both: [Both<'_, D>; 2],
    ) -> Self {
        if k == 0 {
            return Self { k, residuals: Default::default(), images: Default::default() };
        }
        let mut part = |operand: Both<'_, D>, residual_part: bool| {
            let Both { before, after, .. } = operand;
            let rows = before.rows();
            let values = if residual_part {
                residual(device, images, [before, after], (channels, k))
            } else {
                let mut values = images.take(device, rows * k);
                let out = MatrixMut::new(values.first_mut(rows * k), rows, k);
                device.take_columns(after, None, channels, out);
                values
            };
            // Whole groups keep their codes and scales; single channels are quantized again.
            let to = match (residual_part, patch.single, patch.blocks) {
                (true, ..) => patch.residual,
                (false, true, true) => Residual::Exact,
                (false, true, false) => Residual::Same,
                (false, false, _) if patch.residual == Residual::Exact => Residual::Exact,
                (false, false, _) => Residual::Bf16,
            };
            round(device, images, values, (rows, k), to, operand)
        };
        let residuals = both.map(|operand| part(operand, true));
        Self { k, residuals, images: both.map(|operand| part(operand, false)) }
    }

    /// Gives the memory back.
    pub(super) fn give(self, images: &mut Images<D>) {
        let all = self.residuals.into_iter().chain(self.images);
        all.filter(|buffer| !buffer.is_empty()).for_each(|buffer| images.give(buffer));
    }

    /// Those of the left and of the right operand, in the order of their products, and how many.
    fn terms(&self, terms: Terms) -> ([[&Buffer<D>; 3]; 2], usize) {
        let ([rx, rw], [qx, qw]) = (&self.residuals, &self.images);
        match terms {
            _ if self.k == 0 => ([[rx; 3], [rw; 3]], 0),
            Terms::Input => ([[rx; 3], [qw; 3]], 1),
            Terms::Weight => ([[qx; 3], [rw; 3]], 1),
            Terms::Both => ([[rx, qx, qx], [qw, rw, rw]], 2),
            Terms::Full => ([[rx, qx, rx], [qw, rw, rw]], 3),
            Terms::Literal => ([[rx; 3], [rw; 3]], 1),
        }
    }
}

/// How the products of a patched forward product are summed; a stochastic accumulator has words of its own in
/// each.
pub(super) type Summed = Option<(Sums, [Philox; 2])>;

/// `y = a bᵀ`, or that added to `y`, the product of the patch.
fn sum<D: Quantize>(
    device: &D,
    images: &mut Images<D>,
    summed: Summed,
    [a, b]: [Matrix<'_, D>; 2],
    mut y: MatrixMut<'_, D>,
    mode: Output,
) {
    let product = Product::Forward;
    match summed {
        None => device.matmul(product, a, b, y, mode),
        Some((Sums::Steps(sum), random)) => {
            let random = random[usize::from(mode == Output::Accumulate)];
            device.sums(sum, random, product, a, b, y.again(), mode);
        }
        Some((Sums::Cores(cores), _)) => {
            let source = |matrix| Source { matrix, quantizer: Quantizer::NONE, random: none() };
            let packed = &mut images.packed;
            device.pack(packed, Some(cores), product, &[source(a)], &[source(b)]);
            device.multiply(packed, y, mode, None);
        }
    }
}

/// `y = x wᵀ` with the patch, of images with `inputs` columns that are overwritten.
pub(super) fn forward<D: Quantize>(
    device: &D,
    images: &mut Images<D>,
    (patch, summed): (&Patch, Summed),
    parts: &Parts<D>,
    [x, w]: [&mut Buffer<D>; 2],
    inputs: usize,
    mut y: MatrixMut<'_, D>,
) {
    let (tokens, outputs, k) = (y.rows(), y.cols(), parts.k);
    let ([left, right], count) = parts.terms(patch.terms);
    let (left, right) = (&left[..count], &right[..count]);
    if patch.single && k > 0 {
        let left = widen(device, x, (tokens, inputs), left, k);
        let right = widen(device, w, (outputs, inputs), right, k);
        return sum(device, images, summed, [left, right], y, Output::Overwrite);
    }
    let x = Matrix::new(x.first(tokens * inputs), tokens, inputs);
    let w = Matrix::new(w.first(outputs * inputs), outputs, inputs);
    sum(device, images, summed, [x, w], y.again(), Output::Overwrite);
    if k > 0 {
        let cols = k * count;
        let [mut a, mut b] = [tokens, outputs].map(|rows| images.take(device, rows * cols));
        side_by_side(device, left, k, MatrixMut::new(a.first_mut(tokens * cols), tokens, cols));
        side_by_side(device, right, k, MatrixMut::new(b.first_mut(outputs * cols), outputs, cols));
        let left = Matrix::new(a.first(tokens * cols), tokens, cols);
        let right = Matrix::new(b.first(outputs * cols), outputs, cols);
        sum(device, images, summed, [left, right], y, Output::Accumulate);
        images.give(a);
        images.give(b);
    }
}

/// Adds a product to the columns `channels` of `out`; its right operand has one column a channel.
pub(super) fn add_columns<D: Quantize>(
    device: &D,
    images: &mut Images<D>,
    product: Product,
    [left, right]: [Matrix<'_, D>; 2],
    (channels, k): Channels<'_, D>,
    out: MatrixMut<'_, D>,
) {
    if k == 0 {
        return;
    }
    let rows = out.rows();
    let mut patch = images.take(device, rows * k);
    let sums = MatrixMut::new(patch.first_mut(rows * k), rows, k);
    device.matmul(product, left, right, sums, Output::Overwrite);
    device.add_to_columns(Matrix::new(patch.first(rows * k), rows, k), channels, out);
    images.give(patch);
}
