//! A norm with its gain and bias, where it has them, and with what a recipe may round around it.

use core::ops::Range;

use super::grow;
use crate::nn::activation::add_assign;
use crate::nn::linear::Products;
use crate::nn::norm::{Norm, layer_norm, layer_norm_backward, rms_norm, rms_norm_backward};
use crate::nn::parameters::Layout;
use crate::nn::real::Real;
use crate::nn::site::{Place, Vector};
use crate::nn::steps;

/// A norm's output, its statistics, and what of its inputs was rounded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Normed<T> {
    pub(crate) y: Vec<T>,
    mean: Vec<T>,
    rstd: Vec<T>,
    /// Copies that a recipe may have rounded; empty where it does not.
    x: Vec<T>,
    gain: Vec<T>,
    bias: Vec<T>,
}

impl<T: Real> Normed<T> {
    /// Room for `rows` of `width`.
    pub(crate) fn reserve(&mut self, rows: usize, width: usize) {
        grow(&mut self.y, rows * width);
        grow(&mut self.mean, rows);
        grow(&mut self.rstd, rows);
    }
}

/// Gains of norms that have none, and gradients of gain and bias before they are added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spare<T> {
    ones: Vec<T>,
    gain: Vec<T>,
    bias: Vec<T>,
}

/// A norm and the places of its gain and bias.
#[derive(Clone, Debug)]
pub(crate) struct Affine {
    layer: Option<u32>,
    norm: Norm,
    eps: f64,
    width: usize,
    gain: Option<Range<usize>>,
    bias: Option<Range<usize>>,
}

/// The copy where there is one, else the original.
fn either<'a, T>(image: &'a [T], original: &'a [T]) -> &'a [T] {
    if image.is_empty() { original } else { image }
}

impl Affine {
    /// The norm over rows of `width` whose gain, if it has one, is `name.weight`.
    pub(crate) fn new(
        layout: &Layout,
        layer: Option<u32>,
        name: &str,
        width: usize,
        norm: Norm,
        eps: f64,
    ) -> Self {
        let find =
            |rest: &str| layout.find(&format!("{name}.{rest}")).map(|entry| entry.range.clone());
        let (gain, bias) = (find("weight"), find("bias"));
        Self { layer, norm, eps, width, gain, bias }
    }

    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    /// How the steps forward are rounded; where the first ones are, so are the last.
    fn steps<T: Real>(&self, products: &dyn Products<T>) -> steps::Steps {
        let head = products.vector(self.layer, Vector::Norm, false);
        [head, head.or_else(|| products.vector(self.layer, Vector::NormTail, false))]
    }

    /// `out.y` from `x`.
    pub(crate) fn forward<T: Real>(
        &self,
        products: &mut dyn Products<T>,
        params: &[T],
        x: &[T],
        out: &mut Normed<T>,
        spare: &mut Spare<T>,
    ) {
        let (layer, width, n) = (self.layer, self.width, x.len() / self.width);
        let part = |range: &Option<Range<usize>>| range.clone().map(|range| &params[range]);
        let (gain, bias) = (part(&self.gain), part(&self.bias));
        for (place, from, to) in [
            (Place::NormInput, Some(x), &mut out.x),
            (Place::NormGamma, gain, &mut out.gain),
            (Place::NormBeta, bias, &mut out.bias),
        ] {
            to.clear();
            if let Some(from) = from
                && products.rounds(layer, place, false)
            {
                to.extend_from_slice(from);
                products.tensor(layer, place, false, to, width);
            }
        }
        if spare.ones.len() < width {
            spare.ones.resize(width, T::ONE);
        }
        let x = either(&out.x, x);
        let gain = either(&out.gain, gain.unwrap_or(&spare.ones[..width]));
        let bias = bias.map(|bias| either(&out.bias, bias));
        let (eps, y) = (T::from_f64(self.eps), &mut out.y[..x.len()]);
        let roundings = self.steps(products);
        if roundings[1].is_some() {
            steps::norm(self.norm, roundings, x, gain, bias, self.eps, y);
        } else {
            let (mean, rstd) = (&mut out.mean[..n], &mut out.rstd[..n]);
            match self.norm {
                Norm::LayerNorm => layer_norm(x, gain, bias, eps, y, mean, rstd),
                Norm::RmsNorm => rms_norm(x, gain, eps, y, rstd),
            }
        }
        products.tensor(layer, Place::NormOutput, false, y, width);
    }

    /// `dx` from `dy`; the gradients of gain and bias are added to their places in `grads`.
    pub(crate) fn backward<T: Real>(
        &self,
        products: &mut dyn Products<T>,
        params: &[T],
        grads: &mut [T],
        x: &[T],
        kept: &Normed<T>,
        dy: &mut [T],
        dx: &mut [T],
        spare: &mut Spare<T>,
    ) {
        let (layer, width, n) = (self.layer, self.width, x.len() / self.width);
        let Spare { ones, gain: d_gain, bias: d_bias } = spare;
        products.tensor(layer, Place::NormOutput, true, dy, width);
        let x = either(&kept.x, x);
        let forward = self.steps(products);
        let rounding = products.vector(layer, Vector::Norm, true);
        // Without rounding on the way back that of the gain is left out, too: what is kept is the gain.
        let left_out = forward[0].is_some() && rounding.is_none();
        let gain = match &self.gain {
            Some(range) if left_out => &params[range.clone()],
            Some(range) => either(&kept.gain, &params[range.clone()]),
            None => &ones[..width],
        };
        // Apart from `grads`, so that what this pass adds can be rounded before it is added.
        for d in [&mut *d_gain, &mut *d_bias] {
            d.clear();
            d.resize(width, T::ZERO);
        }
        let with_bias = self.bias.is_some();
        if forward[1].is_some() || rounding.is_some() {
            let (eps, roundings) = (self.eps, (forward, rounding));
            steps::norm_backward(self.norm, roundings, x, gain, eps, dy, dx, d_gain, d_bias);
        } else {
            let rstd = &kept.rstd[..n];
            match self.norm {
                Norm::LayerNorm => {
                    let d_bias = with_bias.then_some(&mut d_bias[..]);
                    layer_norm_backward(x, gain, &kept.mean[..n], rstd, dy, dx, d_gain, d_bias);
                }
                Norm::RmsNorm => rms_norm_backward(x, gain, rstd, dy, dx, d_gain),
            }
        }
        for (place, range, d) in
            [(Place::NormGamma, &self.gain, d_gain), (Place::NormBeta, &self.bias, d_bias)]
        {
            if let Some(range) = range.clone() {
                products.tensor(layer, place, true, d, width);
                add_assign(&mut grads[range], d);
            }
        }
        products.tensor(layer, Place::NormInput, true, dx, width);
    }
}
