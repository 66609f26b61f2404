//! Memory of an engine: operands' images, packed operands, buffers to work in, and what a recipe remembers.

use super::weight_cache::WeightCache;
use crate::nn::Cpu;
use crate::nn::device::Buffer;
use crate::recipe::device::Quantize;
use crate::recipe::state::RecipeState;

/// Memory for two operands' images, used again from call to call, and what the recipe remembers from step to
/// step.
#[derive(Debug)]
pub struct Images<D: Quantize = Cpu> {
    pub(super) left: Buffer<D>,
    pub(super) right: Buffer<D>,
    pub(super) scratch: Buffer<D>,
    pub(super) packed: D::Packed,
    /// Weights of the parameters at hand that need not be rounded again.
    pub kept: WeightCache<D>,
    /// The hot channels of the product at hand.
    pub(super) channels: D::Tokens,
    /// Buffers that nobody has at the moment.
    spare: Vec<Buffer<D>>,
    /// Tensors seen at places, by the place's stream.
    pub(super) seen: Vec<(u64, u64)>,
    /// What a resumed run needs to go on with the same bits.
    pub memory: RecipeState,
}

impl<D: Quantize> Default for Images<D> {
    fn default() -> Self {
        Self {
            left: Buffer::default(),
            right: Buffer::default(),
            scratch: Buffer::default(),
            packed: D::Packed::default(),
            kept: WeightCache::default(),
            channels: D::Tokens::default(),
            spare: Vec::new(),
            seen: Vec::new(),
            memory: RecipeState::default(),
        }
    }
}

impl<D: Quantize> Images<D> {
    /// A buffer of at least `len` elements, which hold anything: the smallest spare one that is long enough,
    /// else the longest, which grows.
    pub(super) fn take(&mut self, device: &D, len: usize) -> Buffer<D> {
        let lens = || self.spare.iter().map(Buffer::len).enumerate();
        let fits = lens().filter(|(_, held)| *held >= len).min_by_key(|(_, held)| *held);
        let best = fits.or_else(|| lens().max_by_key(|(_, held)| *held));
        let mut buffer = best.map_or_else(Buffer::default, |(at, _)| self.spare.swap_remove(at));
        device.grow(&mut buffer, len);
        buffer
    }

    /// Puts a buffer back.
    pub(super) fn give(&mut self, buffer: Buffer<D>) {
        self.spare.push(buffer);
    }
}
