//! Products with hot-channel patches; [`hot`](crate::recipe::hot) has the algebra.
//!
//! The products of a patched forward product are summed as the recipe says. Tensor cores take images with
//! their tensors' scales and all parts rounded to bfloat16. Backward products are patched in f32.

use super::side::Side;
use super::{Engine, Images, PATCHED, SUMS};
use crate::nn::device::{Buffer, Matrix, MatrixMut};
use crate::nn::site::{Operand, Product, Site};
use crate::recipe::device::{Quantize, Source};
use crate::recipe::hot::{Count, Patch, Residual, Terms};
use crate::recipe::state::Hot;
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
pub(super) type Channels<'a, D> = (&'a <D as crate::nn::device::Storage>::Tokens, usize);

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

impl<D: Quantize> Engine<'_, D> {
    /// The patch of an operator at this step, if it takes any channels.
    pub(super) fn patch(&self, site: Site) -> Option<Patch> {
        let none = [Some(Count::Channels(0)), Some(Count::Percent(0))];
        self.plan.patch(self.phase.step(), site).filter(|patch| !none.contains(&patch.count))
    }

    /// Lists the hot channels of an operator's forward product for the device, chosen anew where that is due;
    /// how many they are.
    fn choose(&mut self, device: &D, site: Site, patch: &Patch, both: [Both<'_, D>; 2]) -> usize {
        let known = self.images.memory.hot.get(&site);
        let due = match self.phase.trains() {
            Some(step) => patch.is_due(step, known.map(|hot| hot.step)),
            None => known.is_none(),
        };
        if !due && known.is_some() {
            return self.chosen(device, site);
        }
        let sums = |operand: usize, residual: bool| {
            let Both { before, after, .. } = both[operand];
            let (x, minus) = if residual { (before, Some(after)) } else { (after, None) };
            device.column_sums(x, minus, patch.squares())
        };
        let mut scores = patch.scores(both.map(|one| one.before.rows()), sums);
        if let Some(hot) = known.filter(|hot| patch.average && hot.average.len() == scores.len()) {
            let averaged = hot.average.iter().zip(&scores);
            scores = averaged.map(|(old, new)| 0.9 * old + 0.1 * new).collect();
        }
        let channels = patch.choose(&scores);
        let count = channels.len();
        device.set_tokens(&channels, &mut self.images.channels);
        if let Some(step) = self.phase.trains() {
            let average = if patch.average { scores } else { Vec::new() };
            self.images.memory.hot.insert(site, Hot { step, channels, average });
        }
        count
    }

    /// Lists the hot channels of an operator that were chosen last; how many they are.
    fn chosen(&mut self, device: &D, site: Site) -> usize {
        let Images { memory, channels, .. } = &mut *self.images;
        let hot = memory.hot.get(&site).map_or(&[][..], |hot| &hot.channels);
        device.set_tokens(hot, channels);
        hot.len()
    }

    /// The forward product of a member with a patch.
    pub(super) fn patched(
        &mut self,
        device: &D,
        site: Site,
        patch: &Patch,
        sides: [Side<'_, D>; 2],
        y: MatrixMut<'_, D>,
    ) {
        let members = [(site.operator, y.cols())];
        let mut buffers = [&mut self.images.left, &mut self.images.right].map(std::mem::take);
        let [left, right] = &mut buffers;
        let xq = self.image(device, site.layer, &members, &sides[0], left);
        let wq = self.image(device, site.layer, &members, &sides[1], right);
        let numbers = [Operand::Input, Operand::Weight]
            .map(|operand| self.numbers(site, Product::Forward, operand));
        let x = Both { numbers: &numbers[0], before: sides[0].tensor, after: xq };
        let w = Both { numbers: &numbers[1], before: sides[1].tensor, after: wq };
        let k = self.choose(device, site, patch, [x, w]);
        let channels = std::mem::take(&mut self.images.channels);
        let parts = Parts::new(device, self.images, patch, (&channels, k), [x, w]);
        let inputs = xq.cols();
        // An operand that nothing rounds has no image yet.
        for ((buffer, side), numbers) in buffers.iter_mut().zip(sides).zip(&numbers) {
            if numbers.is_none() {
                let (rows, cols) = (side.tensor.rows(), side.tensor.cols());
                device.grow(buffer, rows * cols);
                let copy = MatrixMut::new(buffer.first_mut(rows * cols), rows, cols);
                device.copy(side.tensor, copy);
            }
        }
        let product = Product::Forward;
        let random = [SUMS, PATCHED].map(|operand| self.random(site, product, operand));
        let sums = self.plan.sums(self.phase.step(), site, product);
        let how = (patch, sums.map(|sums| (sums, random)));
        forward(device, self.images, how, &parts, buffers.each_mut(), inputs, y);
        parts.give(self.images);
        self.images.channels = channels;
        [self.images.left, self.images.right] = buffers;
    }

    /// Adds to a backward product of one operator what the rounding of its `other` operand took from the hot
    /// channels: `out` is the product's, `gradient` and `other` its operands.
    pub(super) fn add_residual(
        &mut self,
        device: &D,
        site: Site,
        [gradient, other]: [Side<'_, D>; 2],
        out: MatrixMut<'_, D>,
    ) {
        let product = gradient.product;
        let width = gradient.tensor.cols();
        let members = [(site.operator, width)];
        let k = self.chosen(device, site);
        let sizes = [gradient, other].map(|side| side.tensor.rows() * side.tensor.cols());
        let mut buffers = sizes.map(|size| self.images.take(device, size));
        let [left, right] = &mut buffers;
        let observer = self.observer.take();
        let gq = self.image(device, site.layer, &members, &gradient, left);
        let after = self.image(device, site.layer, &members, &other, right);
        self.observer = observer;
        let channels = std::mem::take(&mut self.images.channels);
        let residual = self.residual(device, site, &other, after, (&channels, k));
        let right = Matrix::new(residual.first(after.rows() * k), after.rows(), k);
        add_columns(device, self.images, product, [gq, right], (&channels, k), out);
        self.images.channels = channels;
        self.images.give(residual);
        buffers.into_iter().for_each(|buffer| self.images.give(buffer));
    }

    /// What rounding took from some columns of an operand of a backward product, in the coordinates and the
    /// shape of its image.
    fn residual(
        &mut self,
        device: &D,
        site: Site,
        side: &Side<'_, D>,
        after: Matrix<'_, D>,
        channels: Channels<'_, D>,
    ) -> Buffer<D> {
        let numbers = self.numbers(site, side.product, side.operand);
        let place = (side.product, side.operand, side.axis);
        let given = self.given(device, &numbers, site, place, side.tensor);
        let before = self.before(device, &numbers, side.tensor, given, after);
        let of_before =
            Matrix::new(before.first(after.rows() * after.cols()), after.rows(), after.cols());
        let residual = residual(device, self.images, [of_before, after], channels);
        self.images.give(before);
        residual
    }
}
