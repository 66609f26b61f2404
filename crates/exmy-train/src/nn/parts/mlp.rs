//! The inside of an MLP: into it, the activation function, out of it.

use super::{Linear, grow};
use crate::nn::activation::{gelu, gelu_backward, swiglu, swiglu_backward};
use crate::nn::linear::Products;
use crate::nn::real::Real;
use crate::nn::relu::{self, Function};
use crate::nn::site::{Place, Vector};
use crate::nn::steps;

/// The function between the products of an MLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    Gelu,
    Swiglu,
    Plain(Function),
}

/// gate|up or up alone, the function, down.
#[derive(Clone, Debug)]
pub struct Mlp {
    pub layer: Option<u32>,
    pub activation: Activation,
    pub hidden: usize,
    pub up: Linear,
    pub down: Linear,
}

/// What the backward pass reads.
#[derive(Clone, Debug, Default)]
pub struct MlpKept<T> {
    pub(crate) before: Vec<T>,
    pub(crate) after: Vec<T>,
}

impl<T: Real> MlpKept<T> {
    /// Room for `rows`.
    pub fn reserve(&mut self, mlp: &Mlp, rows: usize) {
        grow(&mut self.before, rows * mlp.outputs());
        grow(&mut self.after, rows * mlp.hidden);
    }
}

impl Mlp {
    /// Output features of the group up.
    pub(crate) const fn outputs(&self) -> usize {
        match self.activation {
            Activation::Swiglu => 2 * self.hidden,
            Activation::Gelu | Activation::Plain(_) => self.hidden,
        }
    }

    /// Columns of the gradient of what enters the activation, where it is not formed in place.
    pub(crate) const fn d_before(&self) -> usize {
        match self.activation {
            Activation::Swiglu => 2 * self.hidden,
            Activation::Gelu | Activation::Plain(_) => 0,
        }
    }

    /// `y` (n, out) from `x` (n, in).
    pub fn forward<T: Real>(
        &self,
        products: &mut dyn Products<T>,
        params: &[T],
        n: usize,
        x: &[T],
        kept: &mut MlpKept<T>,
        y: &mut [T],
    ) {
        let (outputs, hidden, layer) = (self.outputs(), self.hidden, self.layer);
        let before = &mut kept.before[..n * outputs];
        self.up.forward(products, params, x, before);
        products.tensor(layer, Place::ActivationInput, false, before, outputs);
        let after = &mut kept.after[..n * hidden];
        match (self.activation, products.vector(layer, Vector::Activation, false)) {
            (Activation::Gelu, Some(rounding)) => steps::gelu(rounding, before, after),
            (Activation::Swiglu, Some(rounding)) => {
                // What the backward pass reads is rounded with that: the product itself takes its input
                // as it rounds it.
                let kept = products.vector(layer, Vector::Activation, true);
                steps::swiglu((rounding, kept), before, hidden, after);
            }
            (Activation::Gelu, None) => gelu(before, after),
            (Activation::Swiglu, None) => swiglu(before, hidden, after),
            (Activation::Plain(function), rounding) => {
                relu::apply(function, before, after);
                steps::round_all(rounding, after);
            }
        }
        products.tensor(layer, Place::ActivationOutput, false, after, hidden);
        self.down.forward(products, params, after, y);
    }

    /// `dx` (n, in) from `dy`; `d_after` and `d_before` are working memory of (n, hidden) and
    /// (n, [`d_before`](Self::d_before)).
    pub fn backward<T: Real>(
        &self,
        products: &mut dyn Products<T>,
        params: &[T],
        grads: &mut [T],
        n: usize,
        x: &[T],
        kept: &MlpKept<T>,
        dy: &[T],
        [d_after, d_before]: [&mut [T]; 2],
        dx: &mut [T],
    ) {
        let (outputs, hidden, layer) = (self.outputs(), self.hidden, self.layer);
        let d_after = &mut d_after[..n * hidden];
        self.down.backward(products, params, grads, dy, &kept.after[..n * hidden], d_after);
        products.tensor(layer, Place::ActivationOutput, true, d_after, hidden);
        let before = &kept.before[..n * outputs];
        let forward = products.vector(layer, Vector::Activation, false);
        let rounding = products.vector(layer, Vector::Activation, true);
        let d_before = match self.activation {
            Activation::Swiglu => {
                let d_before = &mut d_before[..n * outputs];
                match forward {
                    Some(forward) => {
                        let roundings = (forward, rounding);
                        steps::swiglu_backward(roundings, before, hidden, d_after, d_before);
                    }
                    None => {
                        swiglu_backward(before, hidden, d_after, d_before);
                        steps::round_all(rounding, d_before);
                    }
                }
                d_before
            }
            Activation::Gelu => {
                match forward {
                    Some(forward) => steps::gelu_backward((forward, rounding), before, d_after),
                    None => {
                        gelu_backward(before, d_after);
                        steps::round_all(rounding, d_after);
                    }
                }
                d_after
            }
            Activation::Plain(function) => {
                relu::apply_backward(function, before, d_after);
                steps::round_all(rounding, d_after);
                d_after
            }
        };
        products.tensor(layer, Place::ActivationInput, true, d_before, outputs);
        self.up.backward(products, params, grads, d_before, x, dx);
    }
}
