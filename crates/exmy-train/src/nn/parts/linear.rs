//! A group of linear operators with its weight's place, and its bias's if it has one.

use core::ops::Range;

use crate::nn::activation::add_assign;
use crate::nn::linear::{Group, Products};
use crate::nn::parameters::Layout;
use crate::nn::real::Real;
use crate::nn::site::{Operator, Vector};
use crate::nn::steps;
use exmy::simd::kernel;
use exmy::slice::{View, ViewMut};

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

    /// The same with a bias.
    pub fn with_bias(self, layout: &Layout, name: &str) -> Self {
        let entry = layout.find(name).expect("an entry that the model's layout writes");
        Self { bias: Some(entry.range.clone()), ..self }
    }

    pub(crate) fn group(&self) -> Group<'_> {
        Group { layer: self.layer, members: &self.members }
    }

    /// `y` (n, out) from `x` (n, in).
    pub fn forward<T: Real>(
        &self,
        products: &mut dyn Products<T>,
        params: &[T],
        x: &[T],
        y: &mut [T],
    ) {
        let group = self.group();
        let (n, outputs) = (x.len() / self.inputs, group.outputs());
        let weight = View::new(&params[self.weight.clone()], outputs, self.inputs);
        let x = View::new(x, n, self.inputs);
        products.forward(&group, x, weight, ViewMut::new(y, n, outputs));
        if let Some(bias) = self.bias.clone() {
            match products.vector(self.layer, Vector::Bias, false) {
                None => add_to_rows(y, &params[bias]),
                rounding => {
                    T::with_scratch(bias.len(), |rounded| {
                        rounded.copy_from_slice(&params[bias]);
                        steps::round_all(rounding, rounded);
                        add_to_rows(y, rounded);
                    });
                    steps::round_all(rounding, y);
                }
            }
        }
    }

    /// `dx` (n, in) from `g` (n, out), then the weight's gradient added to its place in `grads`,
    /// and the bias's.
    pub fn backward<T: Real>(
        &self,
        products: &mut dyn Products<T>,
        params: &[T],
        grads: &mut [T],
        g: &[T],
        x: &[T],
        dx: &mut [T],
    ) {
        let group = self.group();
        let (n, outputs) = (x.len() / self.inputs, group.outputs());
        let weight = View::new(&params[self.weight.clone()], outputs, self.inputs);
        let g_view = View::new(g, n, outputs);
        products.grad_input(&group, g_view, weight, ViewMut::new(dx, n, self.inputs));
        let dw = ViewMut::new(&mut grads[self.weight.clone()], outputs, self.inputs);
        products.grad_weight(&group, g_view, View::new(x, n, self.inputs), dw);
        if let Some(bias) = self.bias.clone() {
            match products.vector(self.layer, Vector::Bias, true) {
                None => add_rows_to(g, &mut grads[bias]),
                rounding => {
                    T::with_scratch(g.len() + bias.len(), |scratch| {
                        let (rounded, sums) = scratch.split_at_mut(g.len());
                        rounded.copy_from_slice(g);
                        steps::round_all(rounding, rounded);
                        sums.fill(T::ZERO);
                        add_rows_to(rounded, sums);
                        steps::round_all(rounding, sums);
                        add_assign(&mut grads[bias], sums);
                    });
                }
            }
        }
    }
}

kernel! {
    fn add_to_rows<'a, T: Real>(rows: &'a mut [T], bias: &'a [T]) {
        for row in rows.chunks_exact_mut(bias.len()) {
            for (x, &bias) in row.iter_mut().zip(bias) {
                *x += bias;
            }
        }
    }
}

kernel! {
    /// Rows in ascending order, one chain a column.
    fn add_rows_to<'a, T: Real>(rows: &'a [T], sums: &'a mut [T]) {
        for row in rows.chunks_exact(sums.len()) {
            for (sum, &x) in sums.iter_mut().zip(row) {
                *sum += x;
            }
        }
    }
}
