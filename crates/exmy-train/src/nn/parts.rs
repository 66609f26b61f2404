//! What models are put together from: linear groups, norms and MLPs, each with its place in the
//! arena and with what a recipe may round around it.

mod affine;
#[doc(hidden)]
pub mod linear;
#[doc(hidden)]
pub mod mlp;

pub(crate) use affine::{Affine, Normed, Spare};
pub(crate) use linear::Linear;
pub(crate) use mlp::{Activation, Mlp, MlpSaved};

use core::ops::Range;

use crate::nn::device::{Cpu, Device, Slice, SliceMut};
use crate::nn::linear::Products;
use crate::nn::real::Real;
use crate::nn::site::Place;

/// What a pass forward is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pass {
    /// A backward pass follows.
    #[default]
    Training,
    /// Nothing follows.
    Forward,
}

impl Pass {
    /// The memory that a layer's activations have.
    pub(crate) const fn memory(self, layer: usize) -> usize {
        match self {
            Self::Training => layer,
            Self::Forward => 0,
        }
    }
}

/// What every part of a pass works with.
pub struct Context<'a, D: Device> {
    /// What computes.
    pub device: &'a D,
    /// What a recipe says.
    pub products: &'a mut dyn Products<D>,
    /// The arena of the parameters.
    pub params: Params<'a, D>,
}

/// The parameters of a model, or the range of its arena that is in memory.
pub struct Params<'a, D: Device> {
    numbers: Slice<'a, D>,
    /// Where in the arena they begin.
    start: usize,
}

impl<D: Device> Clone for Params<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device> Copy for Params<'_, D> {}

impl<'a, D: Device> From<Slice<'a, D>> for Params<'a, D> {
    fn from(numbers: Slice<'a, D>) -> Self {
        Self { numbers, start: 0 }
    }
}

impl<'a, T: Real, L: AsRef<[T]>> From<&'a L> for Params<'a, Cpu<T>> {
    fn from(numbers: &'a L) -> Self {
        Slice::from(numbers.as_ref()).into()
    }
}

impl<'a, D: Device> Params<'a, D> {
    /// Those of the arena from `start` on.
    pub fn from(start: usize, numbers: Slice<'a, D>) -> Self {
        Self { numbers, start }
    }

    /// A range of the arena.
    ///
    /// # Panics
    /// If it is not in memory.
    #[track_caller]
    pub fn part(self, range: Range<usize>) -> Slice<'a, D> {
        let Self { numbers, start } = self;
        assert!(range.start >= start, "{range:?} of the arena are not in memory from {start} on");
        numbers.part(range.start - start..range.end - start)
    }
}

impl<D: Device> Context<'_, D> {
    /// Lets the recipe round, and who watches see, the tensor at a place or (`gradient`) its gradient, in
    /// rows of `width`.
    pub(crate) fn tensor(
        &mut self,
        layer: Option<u32>,
        place: Place,
        gradient: bool,
        values: SliceMut<'_, D>,
        width: usize,
    ) {
        self.products.tensor(self.device, layer, (place, gradient), values, width);
    }
}
