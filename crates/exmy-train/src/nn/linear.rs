//! Linear operators without bias: the three products of `Y = X Wᵀ`, behind one trait.
//!
//! A model never multiplies by itself; it hands each product to a [`Products`], which knows (or
//! does not) how the operands are quantized. [`Unquantized`] multiplies them as they are, in the
//! order of summation of [`exmy::gemm::f32`]. Operators that read the same input form a
//! [`Group`] and are one product: q|k|v and gate|up.

use core::ops::Range;

use crate::nn::real::Real;
use crate::nn::site::{Operator, Place, Site, Vector};
use exmy::gemm::f32::Output;
use exmy::round::Rounding;
use exmy::slice::{View, ViewMut};

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
pub trait Products<T: Real> {
    /// `y = x wᵀ`; x (n, in), w (out, in), y (n, out), overwritten.
    fn forward(&mut self, group: &Group<'_>, x: View<'_, T>, w: View<'_, T>, y: ViewMut<'_, T>);

    /// `dx = g w`: one sum over the outputs of all members; g = dL/dy (n, out), w (out, in),
    /// dx (n, in), overwritten.
    fn grad_input(&mut self, group: &Group<'_>, g: View<'_, T>, w: View<'_, T>, dx: ViewMut<'_, T>);

    /// `dw += gᵀ x`: a sum over tokens; g = dL/dy (n, out), x (n, in), dw (out, in).
    fn grad_weight(
        &mut self,
        group: &Group<'_>,
        g: View<'_, T>,
        x: View<'_, T>,
        dw: ViewMut<'_, T>,
    );

    /// Rounds in place a tensor that is no operand of these products, or (`gradient`) its gradient:
    /// rows of `width` elements. `layer` is the block, from 0, or `None` before the first and
    /// after the last. Here it stays as it is.
    fn tensor(
        &mut self,
        layer: Option<u32>,
        place: Place,
        gradient: bool,
        values: &mut [T],
        width: usize,
    ) {
        let _ = (layer, place, gradient, values, width);
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

    /// The rounding to bfloat16 after every step of an operation or (`gradient`) of its backward
    /// pass, or `None` for the precision of `T`. Here it is `None`.
    fn vector(&self, layer: Option<u32>, operation: Vector, gradient: bool) -> Option<Rounding> {
        let _ = (layer, operation, gradient);
        None
    }
}

/// The operands as they are: [`Real::matmul`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unquantized;

impl<T: Real> Products<T> for Unquantized {
    fn forward(&mut self, _: &Group<'_>, x: View<'_, T>, w: View<'_, T>, y: ViewMut<'_, T>) {
        T::matmul(x, w.t(), y, Output::Overwrite);
    }

    fn grad_input(&mut self, _: &Group<'_>, g: View<'_, T>, w: View<'_, T>, dx: ViewMut<'_, T>) {
        T::matmul(g, w, dx, Output::Overwrite);
    }

    fn grad_weight(&mut self, _: &Group<'_>, g: View<'_, T>, x: View<'_, T>, dw: ViewMut<'_, T>) {
        T::matmul(g.t(), x, dw, Output::Accumulate);
    }

    fn rounds(&self, _: Option<u32>, _: Place, _: bool) -> bool {
        false
    }
}
