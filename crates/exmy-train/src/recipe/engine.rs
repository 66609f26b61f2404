//! The three products of a linear layer under a recipe.
//!
//! Each operand is rounded to its numbers' image, the images are multiplied, and the result is
//! rounded to the recipe's output format. Where both operands are rounded, the order of summation is
//! that of [`gemm::fast`](exmy::gemm::fast), else that of [`gemm::f32`](exmy::gemm::f32). Numbers that
//! are a quantizer and nothing more are packed as they are rounded, and their tensor scales
//! multiply the sums ([`fast`] has the details); images of any other numbers are in f32. A patched
//! forward product has the order of [`gemm::f32`](exmy::gemm::f32), too. Where a recipe says how a
//! product is summed, images are multiplied by [`gemm`](exmy::gemm::gemm()) in that order. The blocks of an operand run
//! along the reduction axis of the product it enters, so one tensor has different images in
//! different products:
//!
//! | product | operands | reduction over |
//! |---|---|---|
//! | `forward` (fprop) | X (tokens x in), W (out x in) | in |
//! | `grad_input` (dgrad) | dY (tokens x out), W (out x in) | out |
//! | `grad_weight` (wgrad) | dY (tokens x out), X (tokens x in) | tokens |
//!
//! Weights and gradients of a group (q, k, v) are rounded member by member, as the tensors they
//! are; the input they share is one tensor and is rounded once, under the group's first operator.
//! Where a recipe gives it different numbers for different members, neighbours with the same numbers
//! share one rounding, under the first of them. `@joined` numbers make weights and gradients one tensor in
//! `grad_input`, too.
//!
//! A rotation needs whole groups along the sum. Where they do not fill it, both operands are filled up with
//! zeros, each member for itself, which adds nothing to the product.
//!
//! Random bits come from a stream named by (step, layer, operator, product, operand), element =
//! row-major index in the tensor as it is rounded; `@shared` numbers use the stream of the first
//! product that reads the operand. An output's stream has the operand 3, a stochastic accumulator's 4; a place's has, after the layer, 64
//! plus the place, whether it is a gradient, and how many tensors there were at this place before.

mod image;
mod joined;
mod observer;
mod output;
mod patch;
mod phase;
mod side;

pub use observer::{Observer, Rounded};
pub use phase::Phase;

use super::fast::{self, Packs};
use super::hot::Patch;
use super::memory::{Hot, Memory};
use super::plan::Plan;
use super::tensor_format::TensorFormat;
use crate::nn::linear::{Group, Products};
use crate::nn::site::{Operand, Operator, Place, Product, Site, Vector};
use crate::nn::stopwatch::{Part, Work, lap};
use exmy::gemm::f32::{Output, matmul};
use exmy::gemm::fast::Source;
use exmy::gemm::{Accumulation, Spec, Sum, gemm};
use exmy::pool::Pooled;
use exmy::quantizer::{Axis, Quantizer};
use exmy::random::{Philox, Stream};
use exmy::round::Rounding;
use exmy::slice::{Converter, View, ViewMut};
use image::Given;
use patch::Both;
use side::Side;
use std::ops::Range;

/// A plan at work: implements [`Products`] for f32.
pub struct Engine<'a> {
    plan: &'a Plan,
    seed: u64,
    phase: Phase,
    observer: Option<&'a mut dyn Observer>,
    images: &'a mut Images,
    /// Tokens of a sequence; 0: all rows belong together, or nothing is known of them.
    sequence: usize,
}

/// Room for two operands' images, kept from call to call, and what the recipe remembers from step to step.
#[derive(Clone, Debug, Default)]
pub struct Images {
    left: Vec<f32>,
    right: Vec<f32>,
    scratch: Vec<f32>,
    packs: Packs,
    /// Tensors seen at places, by the place's stream.
    seen: Vec<(u64, u64)>,
    /// What a resumed run needs to go on with the same bits.
    pub memory: Memory,
}

/// What follows the operands in random streams.
const OUTPUT: u64 = 3;
/// What precedes the words of a stochastic accumulator.
const SUMS: u64 = 4;
/// What precedes places.
const PLACES: u64 = 64;

impl<'a> Engine<'a> {
    /// The products of `plan` in one phase of the run of `seed`.
    pub fn new(plan: &'a Plan, seed: u64, phase: Phase, images: &'a mut Images) -> Self {
        images.seen.clear();
        Self { plan, seed, phase, observer: None, images, sequence: 0 }
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
    /// images. Whether the output was rounded by `round`.
    fn multiply(
        &mut self,
        layer: Option<u32>,
        members: &[(Operator, usize)],
        [left, right]: [&Side<'_>; 2],
        mut out: ViewMut<'_, f32>,
        (mode, round): (Output, Option<Converter<'static>>),
    ) -> bool {
        let place = (members[0].0, left.product);
        if let Some(sum) = self.sums(layer, place.0, place.1) {
            self.sum(layer, members, [left, right], sum, out, mode);
            return false;
        }
        let sides = [left, right].map(|side| self.sources(layer, members, side));
        if let [Some(a), Some(b)] = &sides {
            if self.observer.is_some() {
                self.show(layer, members, [left, right]);
            }
            fast::product(place, a, b, &mut self.images.packs, out, (mode, round));
            return round.is_some();
        }
        let rounded = [left, right].iter().all(|side| {
            let site = |operator| Site { layer, operator };
            let numbers = |operator| self.numbers(site(operator), side.product, side.operand);
            members.iter().all(|&(operator, _)| !numbers(operator).is_none())
        });
        let mut left_buffer = std::mem::take(&mut self.images.left);
        let mut right_buffer = std::mem::take(&mut self.images.right);
        let part = |work| Part::Linear(place.0, place.1, work);
        let quantize = lap(part(Work::Quantize));
        let a = self.image(layer, members, left, &mut left_buffer);
        let b = self.image(layer, members, right, &mut right_buffer);
        drop(quantize);
        if rounded {
            let random = Philox::new(0, Stream::new("unused"));
            let source = |matrix| [Source { matrix, quantizer: Quantizer::NONE, random }];
            let (a, b) = (source(a), source(b));
            fast::product(place, &a, &b, &mut self.images.packs, out, (mode, round));
        } else {
            let _multiplying = lap(part(Work::Multiply));
            match place.1 {
                Product::Forward => matmul(a, b.t(), out.reborrow(), mode),
                Product::GradInput => matmul(a, b, out.reborrow(), mode),
                Product::GradWeight => matmul(a.t(), b, out.reborrow(), mode),
            }
        }
        (self.images.left, self.images.right) = (left_buffer, right_buffer);
        rounded && round.is_some()
    }

    /// How a product is summed, where a recipe says it.
    fn sums(&self, layer: Option<u32>, operator: Operator, product: Product) -> Option<Sum> {
        self.plan.sums(self.phase.step(), Site { layer, operator }, product)
    }

    /// [`multiply`](Self::multiply) of images in an order and an accumulator of the recipe's.
    fn sum(
        &mut self,
        layer: Option<u32>,
        members: &[(Operator, usize)],
        [left, right]: [&Side<'_>; 2],
        sum: Sum,
        mut out: ViewMut<'_, f32>,
        mode: Output,
    ) {
        let (operator, product) = (members[0].0, left.product);
        let mut buffers = [&mut self.images.left, &mut self.images.right].map(std::mem::take);
        let [a, b] = &mut buffers;
        let quantize = lap(Part::Linear(operator, product, Work::Quantize));
        let a = self.image(layer, members, left, a);
        let b = self.image(layer, members, right, b);
        drop(quantize);
        let _multiplying = lap(Part::Linear(operator, product, Work::Multiply));
        let (a, b) = match product {
            Product::Forward => (a, b.t()),
            Product::GradInput => (a, b),
            Product::GradWeight => (a.t(), b),
        };
        let mut spec = Spec::from(Accumulation::Sum(sum));
        spec.random = Some(self.random(Site { layer, operator }, product, SUMS));
        let sums = gemm(a, b, &spec).unwrap_or_else(|error| panic!("{error}"));
        let (cols, stride) = (out.cols(), out.row_stride());
        for (out, sums) in out.data_mut().chunks_mut(stride).zip(sums.chunks(cols)) {
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = if mode == Output::Overwrite { *sum } else { *out + sum };
            }
        }
        [self.images.left, self.images.right] = buffers;
    }

    /// Where the members end that follow `first` and whose shared input has the same numbers in a
    /// product, which is summed alike, and how wide they are together. A member with a patch in the forward product stands alone.
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

    fn patch(&self, site: Site) -> Option<Patch> {
        let patch = self.plan.patch(self.phase.step(), site);
        patch.filter(|patch| {
            patch.count != Some(super::hot::Count::Channels(0))
                && patch.count != Some(super::hot::Count::Percent(0))
        })
    }

    /// The hot channels of an operator's forward product, chosen anew where that is due.
    fn channels(&mut self, site: Site, patch: &Patch, x: Both<'_>, w: Both<'_>) -> Pooled<u32> {
        let known = self.images.memory.hot.get(&site);
        let last = known.map(|hot| hot.step);
        let due = match self.phase.trains() {
            Some(step) => patch.is_due(step, last),
            None => known.is_none(),
        };
        if let (false, Some(known)) = (due, known) {
            return copied(&known.channels);
        }
        let mut scores = patch.scores([x.before, x.after], [w.before, w.after]);
        if let Some(hot) = known.filter(|hot| patch.average && hot.average.len() == scores.len()) {
            let averaged = hot.average.iter().zip(&scores);
            scores = averaged.map(|(old, new)| 0.9 * old + 0.1 * new).collect();
        }
        let channels = patch.choose(&scores);
        let chosen = copied(&channels);
        if let Some(step) = self.phase.trains() {
            let average = if patch.average { scores } else { Vec::new() };
            self.images.memory.hot.insert(site, Hot { step, channels, average });
        }
        chosen
    }

    /// The hot channels of an operator that were chosen last.
    fn chosen(&self, site: Site) -> Pooled<u32> {
        self.images.memory.hot.get(&site).map(|hot| copied(&hot.channels)).unwrap_or_default()
    }
}

fn copied(channels: &[u32]) -> Pooled<u32> {
    let mut all = Pooled::with_capacity(channels.len());
    all.extend_from_slice(channels);
    all
}

/// Rows of `w` as columns of an output.
fn part<'b>(y: &'b mut ViewMut<'_, f32>, range: &Range<usize>) -> ViewMut<'b, f32> {
    let (rows, stride) = (y.rows(), y.row_stride());
    let data = &mut y.data_mut()[range.start..];
    ViewMut::with_row_stride(data, rows, range.len(), stride).expect("columns of the output")
}

impl Products<f32> for Engine<'_> {
    fn rounds(&self, layer: Option<u32>, place: Place, gradient: bool) -> bool {
        !self.plan.place(self.phase.step(), layer, place, gradient).is_none()
    }

    fn forward(
        &mut self,
        group: &Group<'_>,
        x: View<'_, f32>,
        w: View<'_, f32>,
        mut y: ViewMut<'_, f32>,
    ) {
        let (layer, product) = (group.layer, Product::Forward);
        let (mut first, mut start, mut done) = (0, 0, false);
        let round = self.at_once(layer, group.members, product);
        while first < group.members.len() {
            let (end, width) = self.run(group, product, first);
            let (members, range) = (&group.members[first..end], start..start + width);
            (first, start) = (end, range.end);
            let w = w.rows_range(range.clone());
            let x_side = Side { product, operand: Operand::Input, tensor: x, axis: Axis::Cols };
            let w_side = Side { product, operand: Operand::Weight, tensor: w, axis: Axis::Cols };
            let site = Site { layer, operator: members[0].0 };
            let whole = members.len() == group.members.len();
            let y = part(&mut y, &range);
            let Some(patch) = self.patch(site) else {
                let how = (Output::Overwrite, round.filter(|_| whole));
                if self.multiply(layer, members, [&x_side, &w_side], y, how) {
                    done = true;
                }
                continue;
            };
            let [left, right] = [&mut self.images.left, &mut self.images.right];
            let mut buffers = [std::mem::take(left), std::mem::take(right)];
            let [left, right] = &mut buffers;
            let (xq, wq) = (
                self.image(layer, members, &x_side, left),
                self.image(layer, members, &w_side, right),
            );
            let numbers = [Operand::Input, Operand::Weight]
                .map(|operand| self.numbers(site, product, operand));
            let x = Both { numbers: &numbers[0], before: x, after: xq };
            let w = Both { numbers: &numbers[1], before: w, after: wq };
            let channels = self.channels(site, &patch, x, w);
            let parts = patch::Parts::new(&patch, &channels, x, w);
            let inputs = xq.cols();
            // An operand that nothing rounds has no image yet.
            for ((buffer, side), numbers) in buffers.iter_mut().zip([x_side, w_side]).zip(&numbers)
            {
                if numbers.is_none() {
                    image::copy(side.tensor, buffer);
                }
            }
            patch::forward(&patch, &parts, buffers.each_mut(), inputs, y);
            [self.images.left, self.images.right] = buffers;
        }
        if !done {
            self.store(group, product, &mut y);
        }
        self.show_output(group, product, &mut y);
    }

    fn grad_input(
        &mut self,
        group: &Group<'_>,
        g: View<'_, f32>,
        w: View<'_, f32>,
        mut dx: ViewMut<'_, f32>,
    ) {
        let (layer, product) = (group.layer, Product::GradInput);
        let g_side = Side { product, operand: Operand::GradOutput, tensor: g, axis: Axis::Cols };
        let w_side = Side { product, operand: Operand::Weight, tensor: w, axis: Axis::Rows };
        let sides = [&g_side, &w_side];
        let how = (Output::Overwrite, self.at_once(layer, group.members, product));
        let done = if self.joins(group) {
            self.joined(group, [g, w], dx.reborrow(), how)
        } else {
            self.multiply(layer, group.members, sides, dx.reborrow(), how)
        };
        if done {
            return self.show_output(group, product, &mut dx);
        }
        for (site, range) in group.sites() {
            if !self.patch(site).is_some_and(|patch| patch.grad_input) {
                continue;
            }
            let channels = self.chosen(site);
            let (g, w) = (g.cols_range(range.clone()), w.rows_range(range.clone()));
            let members = [(site.operator, range.len())];
            let (g_side, w_side) = (Side { tensor: g, ..g_side }, Side { tensor: w, ..w_side });
            let mut buffers = [g, w].map(|x| Pooled::with_capacity(x.rows() * x.cols()));
            let [left, right] = &mut buffers;
            let observer = self.observer.take();
            let gq = self.image(layer, &members, &g_side, left);
            let wq = self.image(layer, &members, &w_side, right);
            self.observer = observer;
            let residual = self.residual(site, &w_side, wq, &channels);
            let residual = View::new(&residual, wq.rows(), channels.len());
            patch::add_columns(gq, residual, &channels, &mut dx);
        }
        self.store(group, product, &mut dx);
        self.show_output(group, product, &mut dx);
    }

    fn grad_weight(
        &mut self,
        group: &Group<'_>,
        g: View<'_, f32>,
        x: View<'_, f32>,
        mut dw: ViewMut<'_, f32>,
    ) {
        let (layer, product) = (group.layer, Product::GradWeight);
        let step = self.phase.step();
        let rounds =
            group.sites().any(|(site, _)| !self.plan.output(step, site, product).is_none());
        let (rows, cols) = (dw.rows(), dw.cols());
        let mut own = Pooled::zeros(if rounds { rows * cols } else { 0 });
        let mode = if rounds { Output::Overwrite } else { Output::Accumulate };
        let mut target = if rounds { ViewMut::new(&mut own, rows, cols) } else { dw.reborrow() };
        let (mut first, mut start) = (0, 0);
        while first < group.members.len() {
            let (end, width) = self.run(group, product, first);
            let (members, range) = (&group.members[first..end], start..start + width);
            (first, start) = (end, range.end);
            let g = g.cols_range(range.clone());
            let g_side =
                Side { product, operand: Operand::GradOutput, tensor: g, axis: Axis::Rows };
            let x_side = Side { product, operand: Operand::Input, tensor: x, axis: Axis::Rows };
            let stride = target.row_stride();
            let out = &mut target.data_mut()[range.start * stride..];
            let out = ViewMut::with_row_stride(out, range.len(), cols, stride);
            let mut out = out.expect("rows of the weight");
            self.multiply(layer, members, [&g_side, &x_side], out.reborrow(), (mode, None));
            let mut start = 0;
            for &(operator, width) in members {
                let site = Site { layer, operator };
                let rows = start..start + width;
                start += width;
                if !self.patch(site).is_some_and(|patch| patch.grad_weight) {
                    continue;
                }
                let channels = self.chosen(site);
                let members = [(operator, width)];
                let g_side = Side { tensor: g.cols_range(rows.clone()), ..g_side };
                let mut buffers =
                    [g_side.tensor, x].map(|x| Pooled::with_capacity(x.rows() * x.cols()));
                let [left, right] = &mut buffers;
                let observer = self.observer.take();
                let gq = self.image(layer, &members, &g_side, left);
                let xq = self.image(layer, &members, &x_side, right);
                self.observer = observer;
                let residual = self.residual(site, &x_side, xq, &channels);
                let residual = View::new(&residual, xq.rows(), channels.len());
                let data = &mut out.data_mut()[rows.start * stride..];
                let part = ViewMut::with_row_stride(data, width, cols, stride);
                let mut part = part.expect("rows of the weight");
                patch::add_columns(gq.t(), residual, &channels, &mut part);
            }
        }
        if rounds {
            let mut own = ViewMut::new(&mut own, rows, cols);
            self.store(group, product, &mut own);
            let stride = dw.row_stride();
            let sums = dw.data_mut().chunks_mut(stride).zip(own.data_mut().chunks(cols));
            for (sums, own) in sums {
                sums.iter_mut().zip(own).for_each(|(sum, one)| *sum += one);
            }
        }
        self.show_output(group, product, &mut dw);
    }

    fn tensor(
        &mut self,
        layer: Option<u32>,
        place: Place,
        gradient: bool,
        values: &mut [f32],
        width: usize,
    ) {
        if values.is_empty() {
            return;
        }
        self.round_place(layer, place, gradient, values, width);
        if let Some(observer) = &mut self.observer {
            observer.place(layer, place, gradient, View::new(values, values.len() / width, width));
        }
    }

    fn watches(&self) -> bool {
        self.observer.is_some()
    }

    fn vector(&self, layer: Option<u32>, operation: Vector, gradient: bool) -> Option<Rounding> {
        self.plan.vector(self.phase.step(), layer, operation, gradient)
    }
}

impl Engine<'_> {
    /// Rounds what is at a place.
    fn round_place(
        &mut self,
        layer: Option<u32>,
        place: Place,
        gradient: bool,
        values: &mut [f32],
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
        let random = Philox::new(self.seed, stream.with(count));
        let given = Given { axis: Axis::Cols, random, scale: None, signs: 0, sequence: 0 };
        let rows = values.len() / width;
        let mut before = Pooled::with_capacity(values.len());
        before.extend_from_slice(values);
        let view = View::new(&before, rows, width);
        let out = ViewMut::new(values, rows, width);
        image::image(&numbers, view, given, &mut self.images.scratch, out);
    }

    /// What rounding took from some columns of an operand of a backward product, in the coordinates and the
    /// shape of its image.
    fn residual(
        &mut self,
        site: Site,
        side: &Side<'_>,
        after: View<'_, f32>,
        channels: &[u32],
    ) -> Pooled<f32> {
        let numbers = self.numbers(site, side.product, side.operand);
        let given =
            self.given(&numbers, site, (side.product, side.operand, side.axis), side.tensor);
        let (rows, cols) = (after.rows(), after.cols());
        let padded = image::padded(side.tensor, rows, cols);
        let before = match numbers.quantizer.rotation {
            None => padded,
            Some(_) => image::before(&numbers, View::new(&padded, rows, cols), given),
        };
        let both = Both { numbers: &numbers, before: View::new(&before, rows, cols), after };
        patch::residual(both, channels)
    }
}
