//! `grad_input` of a group that a recipe takes for one tensor (`@joined`).
//!
//! The gate and the up projection of an MLP are often one matrix of 2 h rows, up before gate. `grad_input`
//! sums over these rows, and so do its blocks run on from up to gate, where h is no multiple of their
//! length.

use super::side::Side;
use super::{Engine, Rounded};
use crate::nn::device::{Matrix, MatrixMut};
use crate::nn::linear::Group;
use crate::nn::site::{Operand, Operator, Product, Site};
use crate::recipe::device::Quantize;
use crate::recipe::fast::Store;
use crate::recipe::tensor_format::TensorFormat;
use exmy::block::Shape;
use exmy::quantizer::{Axis, Target};
use std::ops::Range;

impl<D: Quantize> Engine<'_, D> {
    /// Whether members of a group are one tensor in `grad_input`, and have other numbers for it: blocks that
    /// end where members do are the same either way. Residuals of a patch are those of its own operator.
    pub(super) fn joins(&self, group: &Group<'_>) -> bool {
        let patched = |(site, _): (Site, _)| self.patch(site).is_some_and(|patch| patch.grad_input);
        if group.members.len() < 2 || group.sites().any(patched) {
            return false;
        }
        let alike = |operand| {
            let of = |(site, _): (Site, _)| self.numbers(site, Product::GradInput, operand);
            let mut all = group.sites().map(of);
            all.next().filter(|first| first.joined && all.all(|other| other == *first))
        };
        let ends = |numbers: &TensorFormat| match numbers.quantizer.target {
            Target::Block(format) => match format.shape {
                Shape::Along(side) if !numbers.by_position => {
                    group.members.iter().all(|(_, width)| width.is_multiple_of(side as usize))
                }
                _ => false,
            },
            _ => true,
        };
        match [Operand::GradOutput, Operand::Weight].map(alike) {
            [Some(g), Some(w)] => !(ends(&g) && ends(&w)),
            _ => false,
        }
    }

    /// The product of one gradient and one weight; whether the output was rounded on the way.
    pub(super) fn joined(
        &mut self,
        device: &D,
        group: &Group<'_>,
        [g, w]: [Matrix<'_, D>; 2],
        out: MatrixMut<'_, D>,
        how: Store,
    ) -> bool {
        let product = Product::GradInput;
        let (tokens, outputs, inputs) = (g.rows(), g.cols(), w.cols());
        let is_up = |(site, _): &(Site, Range<usize>)| site.operator == Operator::Up;
        let parts = || group.sites().filter(is_up).chain(group.sites().filter(|part| !is_up(part)));
        let lens = [tokens * outputs, outputs * inputs];
        let mut buffers = lens.map(|len| self.images.take(device, len));
        let [gradient, weight] = &mut buffers;
        let mut to_gradient = MatrixMut::new(gradient.first_mut(lens[0]), tokens, outputs);
        let mut to_weight = MatrixMut::new(weight.first_mut(lens[1]), outputs, inputs);
        let mut start = 0;
        for (_, range) in parts() {
            let to = start..start + range.len();
            start = to.end;
            device.copy(g.cols_range(range.clone()), to_gradient.cols_range(to.clone()));
            device.copy(w.rows_range(range), to_weight.rows_range(to));
        }
        let tensor = to_gradient.read();
        let g = Side { product, operand: Operand::GradOutput, tensor, axis: Axis::Cols };
        let tensor = to_weight.read();
        let w = Side { product, operand: Operand::Weight, tensor, axis: Axis::Rows };
        let whole = [(group.members[0].0, outputs)];
        // Who watches sees the members.
        let observer = self.observer.take();
        let done = self.multiply(device, group.layer, &whole, [&g, &w], out, how);
        if let Some(observer) = observer {
            for side in [g, w] {
                let Side { operand, tensor, axis, .. } = side;
                let mut buffer = self.images.take(device, 0);
                let image = self.image(device, group.layer, &whole, &side, &mut buffer);
                let mut start = 0;
                for (site, range) in parts() {
                    let own = start..start + range.len();
                    start = own.end;
                    let [before, after] = [tensor, image].map(|all| {
                        device.read_matrix(match operand {
                            Operand::Weight => all.rows_range(own.clone()),
                            _ => all.cols_range(own.clone()),
                        })
                    });
                    let numbers = self.numbers(site, product, operand);
                    let (quantizer, clip) = (numbers.quantizer, numbers.clip());
                    let (before, after) = (before.view(), after.view());
                    let seen =
                        Rounded { site, product, operand, quantizer, clip, axis, before, after };
                    observer.operand(&seen);
                }
                self.images.give(buffer);
            }
            self.observer = Some(observer);
        }
        buffers.into_iter().for_each(|buffer| self.images.give(buffer));
        done
    }
}
