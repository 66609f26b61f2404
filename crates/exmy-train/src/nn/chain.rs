//! The way of the gradients' sums from device to device, where several devices take the parts of a step.
//!
//! One device adds part after part to the same numbers, and sums of floating-point numbers depend on their
//! order. Products continue the chains of additions that they find, so a part's gradient by itself is not
//! what is added. So each parameter's sum travels: whoever takes a part waits for the sum over the parts
//! before it, adds to it as if it were alone, and hands it on. The bits are those of one device.

use crate::nn::device::{Device, Slice, SliceMut};

/// Where sums come from and where they go, in one pass. Every pass names the same ranges of the gradient in
/// the same order.
pub trait Chain<D: Device> {
    /// Before the first addition: lets `sum` hold what the parts before have added up.
    fn begins(&mut self, device: &D, sum: SliceMut<'_, D>);

    /// After the last addition: hands the sum on.
    fn ends(&mut self, device: &D, sum: Slice<'_, D>);

    /// Whether sums come from another device.
    fn is_late(&self) -> bool;
}
