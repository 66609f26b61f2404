//! NVFP4's two levels of scales, a block's and the tensor's, under the rule `nearest`; without a tensor scale
//! one of them.
//!
//! Every line is one binary32 operation, to nearest even; [`Order`] says which lines.

use super::choices::Order;
use crate::format::Format;

/// What all blocks of a tensor share under [`ScaleRule::Nearest`](super::ScaleRule::Nearest) and
/// [`FourOverSix`](super::ScaleRule::FourOverSix).
#[derive(Clone, Copy)]
pub(crate) struct TensorFactors {
    /// The element format's largest value.
    pub(crate) largest: f32,
    /// `s_enc * (1 / max)`.
    block: f32,
    /// `s_enc`.
    pub(super) encode: f32,
    /// `s_dec`, what decoded values are multiplied by.
    pub(crate) decode: f32,
    /// The smallest normal scale, which torchao does not go below.
    lowest: f32,
    /// The largest scale.
    highest: f32,
    order: Order,
    /// `amax` of the whole tensor, if it has a scale.
    pub(super) amax: Option<f32>,
}

/// The smaller one, and NaN if `x` is NaN.
#[inline(always)]
pub(super) fn at_most_max(x: f32) -> f32 {
    if x > f32::MAX { f32::MAX } else { x }
}

impl TensorFactors {
    /// `amax` of the whole tensor, or `None` without tensor scale; `bound` is the scale that the block
    /// with the tensor's largest element gets.
    pub(crate) fn with_order(
        amax: Option<f32>,
        element: Format,
        scale: Format,
        bound: f32,
        order: Order,
    ) -> Self {
        let largest = element.max().to_f32();
        let (encode, decode) = match (amax, order) {
            (None, _) => (1.0, 1.0),
            (Some(amax), Order::Torchao) => {
                let decode = amax / (bound * largest);
                (1.0 / decode, decode)
            }
            (Some(amax), _) => {
                let encode = if amax == 0.0 { 1.0 } else { at_most_max(largest * bound / amax) };
                let encode = if encode == 0.0 { 1.0 } else { encode };
                (encode, 1.0 / encode)
            }
        };
        let lowest = scale.min_normal().unwrap_or(scale.min_positive()).to_f32();
        let highest = scale.max().to_f32();
        let block = encode * (1.0 / largest);
        Self { largest, block, encode, decode, lowest, highest, order, amax }
    }

    /// `d`: a block's scale before it is rounded to its format.
    #[inline(always)]
    pub(crate) fn unrounded(&self, amax: f32) -> f32 {
        match self.order {
            Order::Folded => at_most_max(amax * self.block),
            Order::Divided => at_most_max(amax / self.largest * self.encode),
            Order::Torchao => {
                // Comparisons that let NaN through, as `torch.clamp` does.
                let d = amax / self.largest / self.decode;
                let d = if d < self.lowest { self.lowest } else { d };
                if d > self.highest { self.highest } else { d }
            }
        }
    }

    /// What the elements of a block are multiplied by.
    #[inline(always)]
    pub(crate) fn factor(&self, scale: f32) -> f32 {
        match self.order {
            Order::Torchao => self.encode / scale,
            _ => at_most_max(1.0 / (scale * self.decode)),
        }
    }
}
