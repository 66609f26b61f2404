//! Rounded weights that are kept from call to call, where parameters do not change in between.
//!
//! An evaluation reads the same weights in each window, and text in each token. Who owns the parameters says
//! how much may be kept ([`WeightCache::new`]) and forgets it when they change ([`WeightCache::forget`]).
//! Kept are weights of forward products that no random bits and no memory of earlier steps enter: what is
//! kept is what would be made again, bit for bit. Training keeps nothing.

use std::collections::BTreeMap;

use super::side::Side;
use super::{Engine, Phase};
use crate::nn::Cpu;
use crate::nn::device::{Buffer, Matrix};
use crate::nn::site::{Operand, Operator, Product, Site};
use crate::recipe::device::Quantize;

/// An operator, and which member of what is multiplied together with it.
pub(in crate::recipe) type Key = (Site, usize);

/// Rounded weights of one model under one recipe.
#[derive(Debug)]
pub struct WeightCache<D: Quantize = Cpu> {
    /// Elements that still fit.
    free: usize,
    /// Elements that are kept.
    held: usize,
    packed: BTreeMap<Key, D::Packed>,
    images: BTreeMap<Key, (Buffer<D>, [usize; 2])>,
}

impl<D: Quantize> Default for WeightCache<D> {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<D: Quantize> WeightCache<D> {
    /// With space for so many elements, each of which takes four bytes at most.
    pub fn new(free: usize) -> Self {
        Self { free, held: 0, packed: BTreeMap::new(), images: BTreeMap::new() }
    }

    /// Elements that are kept.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Gives up all that is kept: other parameters come.
    pub fn forget(&mut self) {
        *self = Self::new(self.free + self.held);
    }

    /// Whether so many elements more fit.
    pub(super) fn fits(&self, elements: usize) -> bool {
        elements <= self.free
    }

    /// Takes space for a weight that is not kept yet; whether there is enough.
    fn reserve(&mut self, elements: usize) -> bool {
        let fits = self.fits(elements);
        if fits {
            (self.free, self.held) = (self.free - elements, self.held + elements);
        }
        fits
    }

    /// The packed operands of a product whose right one stays; whether that is yet to be packed. `None` if
    /// there is no space.
    pub(in crate::recipe) fn packed(
        &mut self,
        key: Key,
        elements: usize,
    ) -> Option<(&mut D::Packed, bool)> {
        let is_new = !self.packed.contains_key(&key);
        if is_new && !self.reserve(elements) {
            return None;
        }
        Some((self.packed.entry(key).or_default(), is_new))
    }

    /// The image of a weight.
    pub(super) fn image(&self, key: Key) -> Option<Matrix<'_, D>> {
        let (buffer, [rows, cols]) = self.images.get(&key)?;
        Some(Matrix::new(buffer.first(rows * cols), *rows, *cols))
    }

    /// Keeps the image that a buffer holds, if it fits.
    pub(super) fn keep(&mut self, key: Key, buffer: Buffer<D>, size: [usize; 2]) {
        if self.reserve(size[0] * size[1]) {
            self.images.insert(key, (buffer, size));
        }
    }
}

impl<D: Quantize> Engine<'_, D> {
    /// Whether the rounded weight of some members is the same in every call.
    pub(super) fn stays(
        &self,
        layer: Option<u32>,
        members: &[(Operator, usize)],
        side: &Side<'_, D>,
    ) -> bool {
        let waits = matches!(self.phase, Phase::Evaluate { .. } | Phase::Sample(_));
        let fixed = |&(operator, _): &(Operator, usize)| {
            let numbers = self.numbers(Site { layer, operator }, side.product, side.operand);
            let first = numbers.first_quantizer();
            let random =
                numbers.quantizer.is_stochastic() || first.is_some_and(|q| q.is_stochastic());
            !random && !numbers.fresh && numbers.window == 0
        };
        waits
            && self.observer.is_none()
            && (side.product, side.operand) == (Product::Forward, Operand::Weight)
            && members.iter().all(fixed)
    }
}
