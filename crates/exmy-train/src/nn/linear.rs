//! Linear operators without bias: the three products of `Y = X Wᵀ`, behind one trait.
//!
//! A model never multiplies by itself; it hands each product to a [`Products`], which knows (or
//! does not) how the operands are quantized. [`Unquantized`] multiplies them as they are, in the
//! order of summation of [`exmy::gemm::f32`]. Operators that read the same input form a
//! [`Group`] and are one product: q|k|v and gate|up.

use core::ops::Range;

use crate::nn::device::{Device, Matrix, MatrixMut, Slice, SliceMut};
use crate::nn::site::{Operator, Place, Product, Site, Vector};
use exmy::gemm::f32::Output;
use exmy::round::Rounding;

/// Linear operators that share one input: their weights (out, in) lie below each other, their
/// outputs (tokens, out) beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group<'a> {
    /// The block, from 0; `None` for the head.
    pub layer: Option<u32>,
    /// The operators with their numbers of output features, top to bottom.
    pub members: &'a [(Operator, usize)],
}

impl Group<'_> {
    /// Output features of all members together: rows of the weight, columns of the output.
    pub fn outputs(&self) -> usize {
        self.members.iter().map(|(_, outputs)| outputs).sum()
    }

    /// Each member with its rows of the weight (its columns of the output).
    pub fn sites(&self) -> impl Iterator<Item = (Site, Range<usize>)> {
        let layer = self.layer;
        self.members.iter().scan(0, move |start, &(operator, outputs)| {
            let range = *start..*start + outputs;
            *start = range.end;
            Some((Site { layer, operator }, range))
        })
    }
}

/// How the three products of a group of linear operators are computed, and how precise everything
/// else is.
///
/// Shapes: `n` tokens, `in` input features, `out` output features of the whole group.
pub trait Products<D: Device> {
    /// `y = x wᵀ`; x (n, in), w (out, in), y (n, out), overwritten.
    fn forward(
        &mut self,
        device: &D,
        group: &Group<'_>,
        x: Matrix<'_, D>,
        w: Matrix<'_, D>,
        y: MatrixMut<'_, D>,
    );

    /// `dx = g w`: one sum over the outputs of all members; g = dL/dy (n, out), w (out, in),
    /// dx (n, in), overwritten.
    fn grad_input(
        &mut self,
        device: &D,
        group: &Group<'_>,
        g: Matrix<'_, D>,
        w: Matrix<'_, D>,
        dx: MatrixMut<'_, D>,
    );

    /// `dw += gᵀ x`: a sum over tokens; g = dL/dy (n, out), x (n, in), dw (out, in).
    fn grad_weight(
        &mut self,
        device: &D,
        group: &Group<'_>,
        g: Matrix<'_, D>,
        x: Matrix<'_, D>,
        dw: MatrixMut<'_, D>,
    );

    /// Rounds in place a tensor that is no operand of these products, or (`gradient`) its gradient:
    /// rows of `width` elements. `layer` is the block, from 0, or `None` before the first and
    /// after the last. Here it stays as it is.
    fn tensor(
        &mut self,
        device: &D,
        layer: Option<u32>,
        (place, gradient): (Place, bool),
        values: SliceMut<'_, D>,
        width: usize,
    ) {
        let _ = (device, layer, place, gradient, values, width);
    }

    /// Whether [`tensor`](Self::tensor) may change what is at this place. A model keeps copies of
    /// what it must not change itself (the stream a norm reads, a norm's weight) only where it may;
    /// `true`, as here, is always right.
    fn rounds(&self, layer: Option<u32>, place: Place, gradient: bool) -> bool {
        let _ = (layer, place, gradient);
        true
    }

    /// Whether somebody looks at tensors: a model then gives [`tensor`](Self::tensor) copies of what
    /// it does not keep in one piece, even where nothing rounds it.
    fn watches(&self) -> bool {
        false
    }

    /// Before anything is added to a range of the gradient: it is to hold the sum over the parts of the step
    /// before this one. Here it does.
    fn sum_begins(&mut self, device: &D, grads: SliceMut<'_, D>, range: Range<usize>) {
        let _ = (device, grads, range);
    }

    /// After the last addition to it.
    fn sum_ends(&mut self, device: &D, grads: Slice<'_, D>, range: Range<usize>) {
        let _ = (device, grads, range);
    }

    /// Whether sums travel between devices: then a sum that a pass could begin early and ends late is begun
    /// late, for it travels as it ends.
    fn sums_are_late(&self) -> bool {
        false
    }

    /// The rounding to bfloat16 after every step of an operation or (`gradient`) of its backward
    /// pass, or `None` for the precision of the device's numbers. Here it is `None`.
    fn vector(&self, layer: Option<u32>, operation: Vector, gradient: bool) -> Option<Rounding> {
        let _ = (layer, operation, gradient);
        None
    }
}

/// The operands as they are: [`Layers::matmul`](crate::nn::device::Layers::matmul).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unquantized;

impl<D: Device> Products<D> for Unquantized {
    fn forward(
        &mut self,
        device: &D,
        _: &Group<'_>,
        x: Matrix<'_, D>,
        w: Matrix<'_, D>,
        y: MatrixMut<'_, D>,
    ) {
        device.matmul(Product::Forward, x, w, y, Output::Overwrite);
    }

    fn grad_input(
        &mut self,
        device: &D,
        _: &Group<'_>,
        g: Matrix<'_, D>,
        w: Matrix<'_, D>,
        dx: MatrixMut<'_, D>,
    ) {
        device.matmul(Product::GradInput, g, w, dx, Output::Overwrite);
    }

    fn grad_weight(
        &mut self,
        device: &D,
        _: &Group<'_>,
        g: Matrix<'_, D>,
        x: Matrix<'_, D>,
        dw: MatrixMut<'_, D>,
    ) {
        device.matmul(Product::GradWeight, g, x, dw, Output::Accumulate);
    }

    fn rounds(&self, _: Option<u32>, _: Place, _: bool) -> bool {
        false
    }
}
