//! The inside of an MLP: into it, the activation function, out of it.

use super::{Context, Linear};
use crate::nn::device::{Buffer, Device, Roundings, Slice, SliceMut, empty};
use crate::nn::device_rotation::DeviceRotation;
use crate::nn::linear::Products;
use crate::nn::relu::Function;
use crate::nn::site::{Place, Vector};

/// The function between the products of an MLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
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

/// Activations that the backward pass reads.
#[derive(Debug)]
pub struct MlpSaved<D: Device> {
    pub(crate) before: Buffer<D>,
    pub(crate) after: Buffer<D>,
    /// What down reads, where that is turned.
    turned: Buffer<D>,
}

empty!(MlpSaved { before, after, turned });

impl<D: Device> MlpSaved<D> {
    /// Makes it large enough for `rows`.
    pub fn reserve(&mut self, device: &D, mlp: &Mlp, rows: usize) {
        device.grow(&mut self.before, rows * mlp.outputs());
        device.grow(&mut self.after, rows * mlp.hidden);
    }
}

impl Mlp {
    /// Output features of the group up.
    pub(crate) const fn outputs(&self) -> usize {
        match self.activation {
            Activation::Swiglu => 2 * self.hidden,
            Activation::Plain(_) => self.hidden,
        }
    }

    /// Columns of the gradient of what enters the activation, where it is not formed in place.
    pub(crate) const fn d_before(&self) -> usize {
        match self.activation {
            Activation::Swiglu => 2 * self.hidden,
            Activation::Plain(_) => 0,
        }
    }

    fn roundings<D: Device>(&self, products: &dyn Products<D>) -> Roundings {
        [false, true].map(|gradient| products.vector(self.layer, Vector::Activation, gradient))
    }

    /// `y` (n, out) from `x` (n, in); what down reads is turned first, if it is to be.
    pub fn forward<D: Device>(
        &self,
        cx: &mut Context<'_, D>,
        n: usize,
        x: Slice<'_, D>,
        rotation: Option<&DeviceRotation<D>>,
        saved: &mut MlpSaved<D>,
        y: SliceMut<'_, D>,
    ) {
        let (outputs, hidden, layer) = (self.outputs(), self.hidden, self.layer);
        let MlpSaved { before, after, turned } = saved;
        let (mut before, mut after) = (before.first_mut(n * outputs), after.first_mut(n * hidden));
        self.up.forward(cx, x, before.again());
        cx.tensor(layer, Place::ActivationInput, false, before.again(), outputs);
        let (roundings, before) = (self.roundings(cx.products), before.read());
        match self.activation {
            Activation::Swiglu => cx.device.swiglu(roundings, before, hidden, after.again()),
            Activation::Plain(function) => {
                cx.device.activate(function, roundings, before, after.again());
            }
        }
        cx.tensor(layer, Place::ActivationOutput, false, after.again(), hidden);
        let Some(rotation) = rotation else { return self.down.forward(cx, after.read(), y) };
        cx.device.grow(turned, n * hidden);
        rotation.apply(cx.device, after, turned.first_mut(n * hidden));
        self.down.forward(cx, turned.first(n * hidden), y);
    }

    /// `dx` (n, in) from `dy`; `d_after` and `d_before` are working memory of (n, hidden) and
    /// (n, [`d_before`](Self::d_before)).
    pub fn backward<D: Device>(
        &self,
        cx: &mut Context<'_, D>,
        grads: &mut SliceMut<'_, D>,
        n: usize,
        x: Slice<'_, D>,
        saved: &MlpSaved<D>,
        dy: Slice<'_, D>,
        [mut d_after, mut d_before]: [SliceMut<'_, D>; 2],
        dx: SliceMut<'_, D>,
    ) {
        let (outputs, hidden, layer) = (self.outputs(), self.hidden, self.layer);
        let mut d_after = d_after.part(0..n * hidden);
        let after = saved.after.first(n * hidden);
        self.down.backward(cx, grads, dy, after, d_after.again());
        cx.tensor(layer, Place::ActivationOutput, true, d_after.again(), hidden);
        let before = saved.before.first(n * outputs);
        let roundings = self.roundings(cx.products);
        let mut d_before = match self.activation {
            Activation::Swiglu => {
                let mut d_before = d_before.part(0..n * outputs);
                let dy = d_after.read();
                cx.device.swiglu_backward(roundings, before, hidden, dy, d_before.again());
                d_before
            }
            Activation::Plain(function) => {
                cx.device.activate_backward(function, roundings, before, d_after.again());
                d_after
            }
        };
        cx.tensor(layer, Place::ActivationInput, true, d_before.again(), outputs);
        self.up.backward(cx, grads, d_before.read(), x, dx);
    }
}
