//! A norm with its gain and bias, where it has them, and with what a recipe may round around it.

use core::ops::Range;

use super::Context;
use crate::nn::device::{Buffer, Device, Matrix, MatrixMut, NormSteps, Slice, SliceMut, empty};
use crate::nn::linear::Products;
use crate::nn::norm::Norm;
use crate::nn::parameters::Layout;
use crate::nn::real::Real;
use crate::nn::site::{Place, Vector};

/// A norm's output, its statistics, and what of its inputs was rounded.
#[derive(Debug)]
pub(crate) struct Normed<D: Device> {
    pub(crate) y: Buffer<D>,
    mean: Buffer<D>,
    rstd: Buffer<D>,
    x: Rounded<D>,
    gain: Rounded<D>,
    bias: Rounded<D>,
}

empty!(Normed { y, mean, rstd, x, gain, bias });

impl<D: Device> Normed<D> {
    /// Makes it large enough for `rows` of `width`.
    pub(crate) fn reserve(&mut self, device: &D, rows: usize, width: usize) {
        device.grow(&mut self.y, rows * width);
        device.grow(&mut self.mean, rows);
        device.grow(&mut self.rstd, rows);
    }
}

/// A copy that a recipe may have rounded; without elements where it does not.
#[derive(Debug)]
struct Rounded<D: Device> {
    buffer: Buffer<D>,
    len: usize,
}

empty!(Rounded { buffer, len });

impl<D: Device> Rounded<D> {
    /// The copy where there is one, else the original.
    fn or<'a>(&'a self, original: Slice<'a, D>) -> Slice<'a, D> {
        if self.len == 0 { original } else { self.buffer.first(self.len) }
    }

    /// Copies and rounds what is at a place, if the recipe does.
    fn set(
        &mut self,
        cx: &mut Context<'_, D>,
        layer: Option<u32>,
        place: Place,
        from: Option<Slice<'_, D>>,
        width: usize,
    ) {
        self.len = 0;
        let Some(from) = from.filter(|_| cx.products.rounds(layer, place, false)) else { return };
        self.len = from.len();
        cx.device.grow(&mut self.buffer, self.len);
        let copy = MatrixMut::new(self.buffer.first_mut(self.len), 1, self.len);
        cx.device.copy(Matrix::new(from, 1, self.len), copy);
        cx.tensor(layer, place, false, self.buffer.first_mut(self.len), width);
    }
}

/// Gains of norms that have none, and gradients of gain and bias before they are added.
#[derive(Debug)]
pub(crate) struct Spare<D: Device> {
    ones: Buffer<D>,
    gain: Buffer<D>,
    bias: Buffer<D>,
}

empty!(Spare { ones, gain, bias });

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

    /// How the steps are rounded; where the first ones forward are, so are the last.
    fn steps<D: Device>(&self, products: &dyn Products<D>) -> NormSteps {
        let head = products.vector(self.layer, Vector::Norm, false);
        let tail = head.or_else(|| products.vector(self.layer, Vector::NormTail, false));
        let back = products.vector(self.layer, Vector::Norm, true);
        NormSteps { norm: self.norm, eps: self.eps, head, tail, back }
    }

    /// `out.y` from `x`.
    pub(crate) fn forward<D: Device>(
        &self,
        cx: &mut Context<'_, D>,
        x: Slice<'_, D>,
        out: &mut Normed<D>,
        spare: &mut Spare<D>,
    ) {
        let (layer, width, n) = (self.layer, self.width, x.len() / self.width);
        let (device, params) = (cx.device, cx.params);
        let part = |range: &Option<Range<usize>>| range.clone().map(|range| params.part(range));
        let (gain, bias) = (part(&self.gain), part(&self.bias));
        out.x.set(cx, layer, Place::NormInput, Some(x), width);
        out.gain.set(cx, layer, Place::NormGamma, gain, width);
        out.bias.set(cx, layer, Place::NormBeta, bias, width);
        let ones = &mut spare.ones;
        if ones.len() < width {
            device.grow(ones, width);
            device.fill(MatrixMut::new(ones.first_mut(width), 1, width), D::Real::ONE);
        }
        let gain = out.gain.or(gain.unwrap_or(ones.first(width)));
        let bias = bias.map(|bias| out.bias.or(bias));
        let statistics = [out.mean.first_mut(n), out.rstd.first_mut(n)];
        let y = out.y.first_mut(x.len());
        device.norm(&self.steps(cx.products), out.x.or(x), gain, bias, y, statistics);
        cx.tensor(layer, Place::NormOutput, false, out.y.first_mut(x.len()), width);
    }

    /// `dx` from `dy`; the gradients of gain and bias are added to their places in `grads`.
    pub(crate) fn backward<D: Device>(
        &self,
        cx: &mut Context<'_, D>,
        grads: &mut SliceMut<'_, D>,
        x: Slice<'_, D>,
        saved: &Normed<D>,
        mut dy: SliceMut<'_, D>,
        mut dx: SliceMut<'_, D>,
        spare: &mut Spare<D>,
    ) {
        let (layer, width, n) = (self.layer, self.width, x.len() / self.width);
        let (device, params) = (cx.device, cx.params);
        let Spare { ones, gain: d_gain, bias: d_bias } = spare;
        cx.tensor(layer, Place::NormOutput, true, dy.again(), width);
        let steps = self.steps(cx.products);
        // Without rounding on the way back that of the gain is left out, too: what is saved is the gain.
        let left_out = steps.head.is_some() && steps.back.is_none();
        let gain = match &self.gain {
            Some(range) if left_out => params.part(range.clone()),
            Some(range) => saved.gain.or(params.part(range.clone())),
            None => ones.first(width),
        };
        // Apart from `grads`, so that what this pass adds can be rounded before it is added.
        for d in [&mut *d_gain, &mut *d_bias] {
            device.grow(d, width);
            device.fill(MatrixMut::new(d.first_mut(width), 1, width), D::Real::ZERO);
        }
        let statistics = [saved.mean.first(n), saved.rstd.first(n)];
        let to_bias = self.bias.is_some().then(|| d_bias.first_mut(width));
        let (x, d) = (saved.x.or(x), d_gain.first_mut(width));
        device.norm_backward(&steps, x, gain, statistics, dy.read(), dx.again(), d, to_bias);
        for (place, range, d) in
            [(Place::NormGamma, &self.gain, d_gain), (Place::NormBeta, &self.bias, d_bias)]
        {
            if let Some(range) = range.clone() {
                cx.tensor(layer, place, true, d.first_mut(width), width);
                cx.products.sum_begins(device, grads.again(), range.clone());
                device.add_assign(grads.part(range.clone()), d.first(width));
                cx.products.sum_ends(device, grads.read(), range);
            }
        }
        cx.tensor(layer, Place::NormInput, true, dx, width);
    }
}
