//! A group of linear operators with its weight's place, and its bias's if it has one.

use core::ops::Range;

use super::Context;
use crate::nn::device::{Device, Matrix, MatrixMut, Slice, SliceMut};
use crate::nn::linear::Group;
use crate::nn::parameters::Layout;
use crate::nn::site::{Operator, Vector};

/// A group of linear operators and the place of its weight.
#[derive(Clone, Debug)]
pub struct Linear {
    layer: Option<u32>,
    members: Box<[(Operator, usize)]>,
    inputs: usize,
    weight: Range<usize>,
    /// Added to the product.
    bias: Option<Range<usize>>,
}

impl Linear {
    /// The weights from the entry `first` to the entry `last`, which lie below each other.
    ///
    /// # Panics
    /// If the layout has no such entries or they have not these sizes.
    pub fn new(
        layout: &Layout,
        layer: Option<u32>,
        members: &[(Operator, usize)],
        inputs: usize,
        [first, last]: [&str; 2],
    ) -> Self {
        let [first, last] = [first, last].map(|name| {
            let entry = layout.find(name).expect("an entry that the model's layout writes");
            entry.range.clone()
        });
        let weight = first.start..last.end;
        let outputs: usize = members.iter().map(|(_, outputs)| outputs).sum();
        assert_eq!(weight.len(), outputs * inputs, "weights of a group lie below each other");
        Self { layer, members: members.into(), inputs, weight, bias: None }
    }

    /// The same with biases, from the entry `first` to the entry `last`.
    ///
    /// # Panics
    /// If the layout has no such entries or they have not these sizes.
    pub fn with_bias(self, layout: &Layout, [first, last]: [&str; 2]) -> Self {
        let [first, last] = [first, last].map(|name| {
            let entry = layout.find(name).expect("an entry that the model's layout writes");
            entry.range.clone()
        });
        let bias = first.start..last.end;
        assert_eq!(bias.len(), self.group().outputs(), "biases of a group lie behind each other");
        Self { bias: Some(bias), ..self }
    }

    /// The same with the biases of these names, if the layout has them.
    pub(crate) fn with_bias_of(self, layout: &Layout, names: [&str; 2]) -> Self {
        if layout.find(names[0]).is_some() { self.with_bias(layout, names) } else { self }
    }

    pub(crate) fn group(&self) -> Group<'_> {
        Group { layer: self.layer, members: &self.members }
    }

    /// `y` (n, out) from `x` (n, in).
    pub fn forward<D: Device>(
        &self,
        cx: &mut Context<'_, D>,
        x: Slice<'_, D>,
        mut y: SliceMut<'_, D>,
    ) {
        let group = self.group();
        let (n, outputs) = (x.len() / self.inputs, group.outputs());
        let weight = Matrix::new(cx.params.part(self.weight.clone()), outputs, self.inputs);
        let x = Matrix::new(x, n, self.inputs);
        cx.products.forward(cx.device, &group, x, weight, MatrixMut::new(y.again(), n, outputs));
        if let Some(bias) = self.bias.clone() {
            let rounding = cx.products.vector(self.layer, Vector::Bias, false);
            cx.device.add_bias(rounding, y, cx.params.part(bias));
        }
    }

    /// `dx` (n, in) from `g` (n, out), then the weight's gradient added to its place in `grads`,
    /// and the bias's.
    pub fn backward<D: Device>(
        &self,
        cx: &mut Context<'_, D>,
        grads: &mut SliceMut<'_, D>,
        g: Slice<'_, D>,
        x: Slice<'_, D>,
        dx: SliceMut<'_, D>,
    ) {
        self.input_backward(cx, g, dx);
        cx.products.sum_begins(cx.device, grads.again(), self.weight.clone());
        self.weight_backward(cx, grads, g, x);
        cx.products.sum_ends(cx.device, grads.read(), self.weight.clone());
        if let Some(bias) = self.bias.clone() {
            let rounding = cx.products.vector(self.layer, Vector::Bias, true);
            cx.products.sum_begins(cx.device, grads.again(), bias.clone());
            cx.device.bias_backward(rounding, g, grads.part(bias.clone()));
            cx.products.sum_ends(cx.device, grads.read(), bias);
        }
    }

    /// `dx` (n, in) from `g` (n, out).
    pub(crate) fn input_backward<D: Device>(
        &self,
        cx: &mut Context<'_, D>,
        g: Slice<'_, D>,
        dx: SliceMut<'_, D>,
    ) {
        let group = self.group();
        let (n, outputs) = (dx.len() / self.inputs, group.outputs());
        let weight = Matrix::new(cx.params.part(self.weight.clone()), outputs, self.inputs);
        let (rows, dx) = (Matrix::new(g, n, outputs), MatrixMut::new(dx, n, self.inputs));
        cx.products.grad_input(cx.device, &group, rows, weight, dx);
    }

    /// The weight's gradient, added to its place in `grads`, whose sum has begun.
    pub(crate) fn weight_backward<D: Device>(
        &self,
        cx: &mut Context<'_, D>,
        grads: &mut SliceMut<'_, D>,
        g: Slice<'_, D>,
        x: Slice<'_, D>,
    ) {
        let group = self.group();
        let (n, outputs) = (x.len() / self.inputs, group.outputs());
        let (rows, x) = (Matrix::new(g, n, outputs), Matrix::new(x, n, self.inputs));
        let dw = MatrixMut::new(grads.part(self.weight.clone()), outputs, self.inputs);
        cx.products.grad_weight(cx.device, &group, rows, x, dw);
    }
}
