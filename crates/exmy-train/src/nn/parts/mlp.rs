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
pub(crate) enum Activation {
    Gelu,
    Swiglu,
    Plain(Function),
}

/// gate|up or up alone, the function, down.
#[derive(Clone, Debug)]
pub(crate) struct Mlp {
    pub(crate) layer: Option<u32>,
    pub(crate) activation: Activation,
    pub(crate) hidden: usize,
    pub(crate) up: Linear,
    pub(crate) down: Linear,
}

/// What the backward pass reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct MlpKept<T> {
    pub(crate) before: Vec<T>,
    pub(crate) after: Vec<T>,
}

impl<T: Real> MlpKept<T> {
    /// Room for `rows`.
    pub(crate) fn reserve(&mut self, mlp: &Mlp, rows: usize) {
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
    pub(crate) fn forward<T: Real>(
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
    pub(crate) fn backward<T: Real>(
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

#[cfg(test)]
mod tests {
    use super::super::linear::tests::Watch;
    use super::*;
    use crate::nn::parameters::{Init, Layout, Role};
    use crate::nn::site::Operator;

    /// The gradient of the last weight reads `silu(gate) up` as it was multiplied, where the backward pass is not
    /// rounded: silu in bfloat16, seen beside up projections of 1, times an up projection.
    #[test]
    fn the_product_that_backward_reads_is_rounded_with_backward() {
        let mut layout = Layout::default();
        layout.push("in".into(), &[6, 1], Role::Matrix, Init::Zeros);
        layout.push("out".into(), &[1, 3], Role::Matrix, Init::Zeros);
        let members = [(Operator::Gate, 3), (Operator::Up, 3)];
        let mlp = Mlp {
            layer: Some(0),
            activation: Activation::Swiglu,
            hidden: 3,
            up: Linear::new(&layout, Some(0), &members, 1, ["in", "in"]),
            down: Linear::new(&layout, Some(0), &[(Operator::Down, 1)], 3, ["out", "out"]),
        };
        let read = |ways, up: [f32; 3]| {
            let params = [[0.3, -1.27, 2.11], up, [1.0; 3]].concat();
            let (mut kept, mut grads) = (MlpKept::default(), [0.0; 9]);
            let (mut y, mut dx, mut after, mut before) = ([0.0], [0.0], [0.0; 3], [0.0; 6]);
            let mut watch = Watch { operation: Vector::Activation, ways, read: Vec::new() };
            kept.reserve(&mlp, 1);
            mlp.forward(&mut watch, &params, 1, &[1.0], &mut kept, &mut y);
            let buffers = [&mut after[..], &mut before[..]];
            let (x, dy) = ([1.0], [1.0]);
            mlp.backward(&mut watch, &params, &mut grads, 1, &x, &kept, &dy, buffers, &mut dx);
            watch.read
        };
        let up = [0.8046875, 1.2578125, -0.75390625]; // of bfloat16
        let silu = read([true, true], [1.0; 3]);
        let product: Vec<f32> = silu.iter().zip(up).map(|(silu, up)| silu * up).collect();
        let away = |x: &f32| f32::from_bits((x.to_bits() + 0x8000) & 0xFFFF_0000);
        let rounded: Vec<f32> = product.iter().map(away).collect();
        assert!(product.iter().zip(&rounded).all(|(product, rounded)| product != rounded));
        assert_eq!(read([true, false], up), product);
        assert_eq!(read([true, true], up), rounded);
    }
}
