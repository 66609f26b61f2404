//! The three products of a linear layer under a recipe.
//!
//! Each operand is rounded to its numbers' image, the images are multiplied, and the result is rounded to
//! the recipe's output format. Where both operands are rounded, the order of summation is that of
//! [`gemm::fast`](exmy::gemm::fast), else that of [`gemm::f32`](exmy::gemm::f32). Tensor formats that are a
//! quantizer and nothing more are packed as they are rounded, and their tensor scales multiply the sums
//! ([`fast`] has the details). Images of any other numbers are in f32. A patched forward product has the
//! order of [`gemm::f32`](exmy::gemm::f32), too. Where a recipe says how a product is summed ([`Sums`]),
//! images are multiplied in that order; tensor cores multiply what is packed, as `fast` does. The blocks of
//! an operand run along the reduction axis of the product it enters, so one tensor has different images in
//! different products:
//!
//! | product | operands | reduction over |
//! |---|---|---|
//! | `forward` (fprop) | X (tokens x in), W (out x in) | in |
//! | `grad_input` (dgrad) | dY (tokens x out), W (out x in) | out |
//! | `grad_weight` (wgrad) | dY (tokens x out), X (tokens x in) | tokens |
//!
//! Weights and gradients of a group (q, k, v) are rounded member by member, as the tensors they are. The
//! input they share is one tensor and is rounded once, under the group's first operator. Where a recipe gives
//! it different numbers for different members, neighbours with the same numbers share one rounding, under the
//! first of them. `@joined` numbers make weights and gradients one tensor in `grad_input`, too.
//!
//! A rotation needs whole groups along the sum. Where they do not fill it, both operands are filled up with
//! zeros, each member for itself, which adds nothing to the product.
//!
//! Random bits come from a stream named by (step, layer, operator, product, operand). The element is the
//! row-major index in the tensor as it is rounded. `@shared` numbers use the stream of the first product that
//! reads the operand. An output's stream has the operand 3, a stochastic accumulator's 4 (5 in a patch's own
//! product). A place's has, after the layer, 64 plus the place, whether it is a gradient, and how many
//! tensors there were at this place before.

mod image;
mod images;
mod joined;
mod observer;
mod output;
mod patch;
mod phase;
mod side;
mod weight_cache;

pub use images::Images;
pub use observer::{Observer, Rounded};
pub use phase::Phase;
pub use weight_cache::WeightCache;

use super::device::{Quantize, Source};
use super::fast::{self, Store};
use super::plan::Plan;
use super::sums::Sums;
use super::tensor_format::TensorFormat;
use crate::nn::Cpu;
use crate::nn::chain::Chain;
use crate::nn::device::{Buffer, Matrix, MatrixMut, Slice, SliceMut};
use crate::nn::linear::{Group, Products};
use crate::nn::site::{Operand, Operator, Place, Product, Site, Vector};
use crate::nn::stopwatch::{Part, Stage, lap};
use core::ops::Range;
use exmy::gemm::Sum;
use exmy::gemm::f32::Output;
use exmy::quantizer::{Axis, Quantizer};
use exmy::random::{Philox, Stream};
use exmy::round::Rounding;
use exmy::slice::View;
use image::Given;
use side::Side;

/// A plan at work on a device: implements [`Products`].
pub struct Engine<'a, D: Quantize = Cpu> {
    plan: &'a Plan,
    seed: u64,
    phase: Phase,
    observer: Option<&'a mut dyn Observer>,
    images: &'a mut Images<D>,
    /// Tokens of a sequence; 0: all rows belong together, or nothing is known of them.
    sequence: usize,
    /// Where the sums of gradients come from and go to, if other devices add to them.
    chain: Option<&'a mut dyn Chain<D>>,
}

/// What follows the operands in random streams.
const OUTPUT: u64 = 3;
/// What precedes the words of a stochastic accumulator.
const SUMS: u64 = 4;
/// The same in the second product of a patched one.
const PATCHED: u64 = 5;
/// What precedes places.
const PLACES: u64 = 64;

impl<'a, D: Quantize> Engine<'a, D> {
    /// The products of `plan` in one phase of the run of `seed`.
    pub fn new(plan: &'a Plan, seed: u64, phase: Phase, images: &'a mut Images<D>) -> Self {
        images.seen.clear();
        Self { plan, seed, phase, observer: None, images, sequence: 0, chain: None }
    }

    /// The same, watched.
    #[must_use]
    pub fn observed(self, observer: &'a mut dyn Observer) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// The same for batches of sequences of so many tokens, which only exponents bumped by position ask for;
    /// 0, as without, for rows of one piece.
    #[must_use]
    pub fn with_sequences_of(self, tokens: usize) -> Self {
        Self { sequence: tokens, ..self }
    }

    /// The same as one part of a step that several devices take.
    #[must_use]
    pub fn chained(self, chain: &'a mut dyn Chain<D>) -> Self {
        Self { chain: Some(chain), ..self }
    }

    fn stream(&self, site: Site, product: Product) -> Stream {
        let layer = site.layer.map_or(0, |layer| u64::from(layer) + 1);
        self.phase.stream().with(layer).with(site.operator as u64).with(product as u64)
    }

    fn random(&self, site: Site, product: Product, operand: u64) -> Philox {
        Philox::new(self.seed, self.stream(site, product).with(operand))
    }

    /// The numbers of an operand in this phase.
    fn numbers(&self, site: Site, product: Product, operand: Operand) -> TensorFormat {
        self.plan.operand(self.phase.step(), site, product, operand)
    }

    /// The random bits of an operand.
    fn bits(
        &self,
        numbers: &TensorFormat,
        site: Site,
        product: Product,
        operand: Operand,
    ) -> Philox {
        let first = match operand {
            Operand::GradOutput => Product::GradInput,
            Operand::Input | Operand::Weight => Product::Forward,
        };
        self.random(site, if numbers.shared { first } else { product }, operand as u64)
    }

    /// The seed of a fresh rotation's signs.
    fn signs(&self, site: Site, product: Product) -> u64 {
        image::signs(self.stream(site, product), self.seed)
    }

    /// One product of some members: of what is packed as it is rounded where that will do, else of
    /// images. Whether the output was rounded on the way.
    fn multiply(
        &mut self,
        device: &D,
        layer: Option<u32>,
        members: &[(Operator, usize)],
        [left, right]: [&Side<'_, D>; 2],
        out: MatrixMut<'_, D>,
        (mode, to): Store,
    ) -> bool {
        let (operator, product) = (members[0].0, left.product);
        let (steps, cores) =
            match self.plan.sums(self.phase.step(), Site { layer, operator }, product) {
                None => (None, None),
                Some(Sums::Steps(sum)) => (Some(sum), None),
                Some(Sums::Cores(cores)) => (None, Some(cores)),
            };
        let sides = [left, right].map(|side| self.sources(layer, members, side));
        let stays = self.stays(layer, members, right);
        let site = Site { layer, operator };
        if let (None, [Some(a), Some(b)]) = (steps, &sides) {
            if self.observer.is_some() {
                self.show(device, layer, members, [left, right]);
            }
            let Images { packed, kept, .. } = &mut *self.images;
            let how = (packed, stays.then_some((kept, site)));
            fast::product(device, (operator, product), cores, [a, b], how, out, (mode, to));
            return to.is_some();
        }
        let mut buffers = [&mut self.images.left, &mut self.images.right].map(std::mem::take);
        let [a, b] = &mut buffers;
        let packs = |side: &&Side<'_, D>| self.packs(layer, members, side);
        if cores.is_some() && [left, right].iter().all(packs) {
            // Rotations have no whole groups; the tensors' scales stay apart all the same.
            let show = self.observer.is_some();
            let (a, widths) = self.filled(device, layer, members, left, a);
            let (b, _) = self.filled(device, layer, members, right, b);
            let filled = [Side { tensor: a, ..*left }, Side { tensor: b, ..*right }];
            let [a, b] = filled.each_ref().map(|side| self.sources(layer, &widths, side));
            let (Some(a), Some(b)) = (a, b) else { unreachable!("groups are filled") };
            if show {
                self.show(device, layer, members, [left, right]);
            }
            let how = (&mut self.images.packed, None);
            fast::product(device, (operator, product), cores, [&a, &b], how, out, (mode, to));
            [self.images.left, self.images.right] = buffers;
            return to.is_some();
        }
        let quantize = lap(Part::Linear(operator, product, Stage::Quantize));
        let a = self.image(device, layer, members, left, a);
        let mut kept = std::mem::take(&mut self.images.kept);
        let elements = right.tensor.rows() * right.tensor.cols();
        if stays && kept.image((site, 0)).is_none() && kept.fits(elements) {
            let mut own = Buffer::default();
            let image = self.image(device, layer, members, right, &mut own);
            let size = [image.rows(), image.cols()];
            // What nothing rounds is no image.
            if !own.is_empty() {
                kept.keep((site, 0), own, size);
            }
        }
        let b = match kept.image((site, 0)).filter(|_| stays) {
            Some(image) => image,
            None => self.image(device, layer, members, right, b),
        };
        drop(quantize);
        let rounded =
            cores.is_some() || steps.is_none() && self.rounds_all(layer, members, [left, right]);
        if rounded {
            let random = Philox::new(0, Stream::new("unused"));
            let source = |matrix| [Source { matrix, quantizer: Quantizer::NONE, random }];
            let (sides, how) = ([source(a), source(b)], (&mut self.images.packed, None));
            let sides = [&sides[0][..], &sides[1][..]];
            fast::product(device, (operator, product), cores, sides, how, out, (mode, to));
        } else {
            let _multiplying = lap(Part::Linear(operator, product, Stage::Multiply));
            match steps {
                None => device.matmul(product, a, b, out, mode),
                Some(sum) => self.sum(device, (layer, operator), sum, [a, b], product, out, mode),
            }
        }
        [self.images.left, self.images.right] = buffers;
        self.images.kept = kept;
        rounded && to.is_some()
    }

    /// Whether both operands of all members are rounded.
    fn rounds_all(
        &self,
        layer: Option<u32>,
        members: &[(Operator, usize)],
        sides: [&Side<'_, D>; 2],
    ) -> bool {
        sides.iter().all(|side| {
            let site = |operator| Site { layer, operator };
            let numbers = |operator| self.numbers(site(operator), side.product, side.operand);
            members.iter().all(|&(operator, _)| !numbers(operator).is_none())
        })
    }

    /// A product of images in an order and an accumulator of the recipe's.
    fn sum(
        &self,
        device: &D,
        (layer, operator): (Option<u32>, Operator),
        sum: Sum,
        [a, b]: [Matrix<'_, D>; 2],
        product: Product,
        out: MatrixMut<'_, D>,
        mode: Output,
    ) {
        let random = self.random(Site { layer, operator }, product, SUMS);
        device.sums(sum, random, product, a, b, out, mode);
    }

    /// Where the members end that follow `first` and whose shared input has the same numbers in a product,
    /// which is summed alike, and how wide they are together. A member with a patch in the forward product
    /// stands alone.
    fn run(&self, group: &Group<'_>, product: Product, first: usize) -> (usize, usize) {
        let numbers = |&(operator, _): &(Operator, usize)| {
            let site = Site { layer: group.layer, operator };
            let alone = product == Product::Forward && self.patch(site).is_some();
            let sums = self.plan.sums(self.phase.step(), site, product);
            (!alone).then(|| (self.numbers(site, product, Operand::Input), sums))
        };
        let members = &group.members[first..];
        let same = numbers(&members[0]);
        let more = members[1..].iter().take_while(|one| same.is_some() && numbers(one) == same);
        let count = 1 + more.count();
        (first + count, members[..count].iter().map(|&(_, width)| width).sum())
    }

    /// A tensor just before its last rounding, in the coordinates and the shape of its image.
    fn before(
        &mut self,
        device: &D,
        numbers: &TensorFormat,
        tensor: Matrix<'_, D>,
        given: Given,
        image: Matrix<'_, D>,
    ) -> Buffer<D> {
        let (rows, cols) = (image.rows(), image.cols());
        let mut padded = self.images.take(device, rows * cols);
        image::padded(device, tensor, MatrixMut::new(padded.first_mut(rows * cols), rows, cols));
        if numbers.quantizer.rotation.is_none() {
            return padded;
        }
        let mut before = self.images.take(device, rows * cols);
        let x = Matrix::new(padded.first(rows * cols), rows, cols);
        let out = MatrixMut::new(before.first_mut(rows * cols), rows, cols);
        image::before(device, numbers, x, given, &mut self.images.scratch, out);
        self.images.give(padded);
        before
    }

    /// Rounds what is at a place; what is rotated before is rotated back.
    fn round_place(
        &mut self,
        device: &D,
        layer: Option<u32>,
        (place, gradient): (Place, bool),
        values: SliceMut<'_, D>,
        width: usize,
    ) {
        let numbers = self.plan.place(self.phase.step(), layer, place, gradient);
        if numbers.is_none() {
            return;
        }
        let stream = self.phase.stream().with(layer.map_or(0, |layer| u64::from(layer) + 1));
        let stream = stream.with(PLACES + place as u64).with(gradient.into());
        let seen = &mut self.images.seen;
        let count = match seen.iter_mut().find(|(id, _)| *id == stream.id()) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                seen.push((stream.id(), 0));
                0
            }
        };
        let given = Given::bits(Philox::new(self.seed, stream.with(count)));
        let rows = values.len() / width;
        let mut values = MatrixMut::new(values, rows, width);
        self.image_in_place(device, &numbers, given, values.again());
        if let Some(rotation) = numbers.quantizer.rotation {
            // Without signs it is its own inverse.
            let back = Quantizer::NONE.rotated(rotation.in_f32());
            self.image_in_place(device, &back.into(), given, values);
        }
    }

    /// Rounds a matrix that is not an operand.
    fn image_in_place(
        &mut self,
        device: &D,
        numbers: &TensorFormat,
        given: Given,
        mut values: MatrixMut<'_, D>,
    ) {
        let (rows, cols) = (values.rows(), values.cols());
        let mut before = self.images.take(device, rows * cols);
        let copy = MatrixMut::new(before.first_mut(rows * cols), rows, cols);
        device.copy(values.read(), copy);
        let x = Matrix::new(before.first(rows * cols), rows, cols);
        image::image(device, numbers, x, given, &mut self.images.scratch, values.again());
        self.images.give(before);
    }
}

impl<D: Quantize> Products<D> for Engine<'_, D> {
    fn rounds(&self, layer: Option<u32>, place: Place, gradient: bool) -> bool {
        !self.plan.place(self.phase.step(), layer, place, gradient).is_none()
    }

    fn forward(
        &mut self,
        device: &D,
        group: &Group<'_>,
        x: Matrix<'_, D>,
        w: Matrix<'_, D>,
        mut y: MatrixMut<'_, D>,
    ) {
        let (layer, product) = (group.layer, Product::Forward);
        let (mut first, mut start, mut done) = (0, 0, false);
        let to = self.at_once(layer, group.members, product);
        while first < group.members.len() {
            let (end, width) = self.run(group, product, first);
            let (members, range) = (&group.members[first..end], start..start + width);
            (first, start) = (end, range.end);
            let w = w.rows_range(range.clone());
            let x_side = Side { product, operand: Operand::Input, tensor: x, axis: Axis::Cols };
            let w_side = Side { product, operand: Operand::Weight, tensor: w, axis: Axis::Cols };
            let site = Site { layer, operator: members[0].0 };
            let whole = members.len() == group.members.len();
            let y = y.cols_range(range);
            if let Some(patch) = self.patch(site) {
                self.patched(device, site, &patch, [x_side, w_side], y);
                continue;
            }
            let how = (Output::Overwrite, to.filter(|_| whole));
            done |= self.multiply(device, layer, members, [&x_side, &w_side], y, how);
        }
        if !done {
            self.store(device, group, product, y.again());
        }
        self.show_output(device, group, product, y.read());
    }

    fn grad_input(
        &mut self,
        device: &D,
        group: &Group<'_>,
        g: Matrix<'_, D>,
        w: Matrix<'_, D>,
        mut dx: MatrixMut<'_, D>,
    ) {
        let (layer, product) = (group.layer, Product::GradInput);
        let g_side = Side { product, operand: Operand::GradOutput, tensor: g, axis: Axis::Cols };
        let w_side = Side { product, operand: Operand::Weight, tensor: w, axis: Axis::Rows };
        let sides = [&g_side, &w_side];
        let how = (Output::Overwrite, self.at_once(layer, group.members, product));
        let done = if self.joins(group) {
            self.joined(device, group, [g, w], dx.again(), how)
        } else {
            self.multiply(device, layer, group.members, sides, dx.again(), how)
        };
        if done {
            return self.show_output(device, group, product, dx.read());
        }
        for (site, range) in group.sites() {
            if !self.patch(site).is_some_and(|patch| patch.grad_input) {
                continue;
            }
            let (g, w) = (g.cols_range(range.clone()), w.rows_range(range));
            let sides = [Side { tensor: g, ..g_side }, Side { tensor: w, ..w_side }];
            self.add_residual(device, site, sides, dx.again());
        }
        self.store(device, group, product, dx.again());
        self.show_output(device, group, product, dx.read());
    }

    fn grad_weight(
        &mut self,
        device: &D,
        group: &Group<'_>,
        g: Matrix<'_, D>,
        x: Matrix<'_, D>,
        mut dw: MatrixMut<'_, D>,
    ) {
        let (layer, product) = (group.layer, Product::GradWeight);
        let step = self.phase.step();
        let rounds =
            group.sites().any(|(site, _)| !self.plan.output(step, site, product).is_none());
        let (rows, cols) = (dw.rows(), dw.cols());
        // What is rounded is made apart and added at last.
        let len = if rounds { rows * cols } else { 0 };
        let mut own = self.images.take(device, len);
        let mode = if rounds { Output::Overwrite } else { Output::Accumulate };
        let (mut first, mut start) = (0, 0);
        while first < group.members.len() {
            let (end, width) = self.run(group, product, first);
            let (members, range) = (&group.members[first..end], start..start + width);
            (first, start) = (end, range.end);
            let g = g.cols_range(range.clone());
            let g_side =
                Side { product, operand: Operand::GradOutput, tensor: g, axis: Axis::Rows };
            let x_side = Side { product, operand: Operand::Input, tensor: x, axis: Axis::Rows };
            let mut target = match rounds {
                true => MatrixMut::new(own.first_mut(len), rows, cols),
                false => dw.again(),
            };
            let mut out = target.rows_range(range);
            self.multiply(device, layer, members, [&g_side, &x_side], out.again(), (mode, None));
            let mut start = 0;
            for &(operator, width) in members {
                let (site, rows) = (Site { layer, operator }, start..start + width);
                start += width;
                if self.patch(site).is_some_and(|patch| patch.grad_weight) {
                    let g_side = Side { tensor: g.cols_range(rows.clone()), ..g_side };
                    self.add_residual(device, site, [g_side, x_side], out.rows_range(rows));
                }
            }
        }
        if rounds {
            self.store(device, group, product, MatrixMut::new(own.first_mut(len), rows, cols));
            device.add_assign(dw.again().into_data(), own.first(len));
        }
        self.images.give(own);
        self.show_output(device, group, product, dw.read());
    }

    fn tensor(
        &mut self,
        device: &D,
        layer: Option<u32>,
        (place, gradient): (Place, bool),
        mut values: SliceMut<'_, D>,
        width: usize,
    ) {
        if values.is_empty() {
            return;
        }
        self.round_place(device, layer, (place, gradient), values.again(), width);
        if let Some(observer) = &mut self.observer {
            let numbers = device.read(values.read());
            let view = View::new(&numbers, numbers.len() / width, width);
            observer.place(layer, place, gradient, view);
        }
    }

    fn watches(&self) -> bool {
        self.observer.is_some()
    }

    fn sum_begins(&mut self, device: &D, grads: SliceMut<'_, D>, range: Range<usize>) {
        if let Some(chain) = &mut self.chain {
            chain.begins(device, grads, range);
        }
    }

    fn sum_ends(&mut self, device: &D, grads: Slice<'_, D>, range: Range<usize>) {
        if let Some(chain) = &mut self.chain {
            chain.ends(device, grads, range);
        }
    }

    fn sums_are_late(&self) -> bool {
        self.chain.is_some()
    }

    fn vector(&self, layer: Option<u32>, operation: Vector, gradient: bool) -> Option<Rounding> {
        self.plan.vector(self.phase.step(), layer, operation, gradient)
    }
}
