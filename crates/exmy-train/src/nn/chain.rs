//! The way of the gradients' sums from device to device, where several devices take the parts of a step.
//!
//! One device adds part after part to the same numbers, and sums of floating-point numbers depend on their
//! order. Products continue the chains of additions that they find, so a part's gradient by itself is not
//! what is added. So each layer's sum travels: whoever takes a part waits for the sum over the parts
//! before it, adds to it as if it were alone, and hands it on. The bits are those of one device.

use crate::nn::device::{Device, Slice, SliceMut};
use std::ops::Range;

/// Where sums come from and where they go, in one pass. Every pass names the ranges of all parameters once,
/// in the same order, those of one layer together.
pub trait Chain<D: Device> {
    /// Before the first addition to a range of the gradient: lets it hold what the parts before have added
    /// up.
    fn begins(&mut self, device: &D, grads: SliceMut<'_, D>, range: Range<usize>);

    /// After the last addition: the sum may be handed on.
    fn ends(&mut self, device: &D, grads: Slice<'_, D>, range: Range<usize>);
}
