//! Products of operands that are both rounded: packed as they are rounded, and multiplied in the
//! order of [`gemm::fast`](exmy::gemm::fast) or of [tensor cores](super::sums).
//!
//! The definition is [`multiply_plain`](exmy::gemm::fast::multiply_plain) of the operands' codes and
//! scales. Members of a group that have tensor scales of their own are multiplied one after the
//! other, as these scales multiply their sums. Where the group is summed over (`grad_input`), the
//! first one's product is stored and those of the others are added in the group's order.

use crate::nn::device::MatrixMut;
use crate::nn::site::{Operator, Product};
use crate::nn::stopwatch::{Part, Work, lap};
use crate::recipe::device::{Quantize, Source};
use crate::recipe::sums::TensorCores;
use exmy::format::Format;
use exmy::gemm::f32::Output;
use exmy::round::Rules;

/// What a product becomes: it is stored or added, and rounded at last if there is something to round it to.
pub(super) type Store = (Output, Option<(Format, Rules)>);

/// Computes a product from the members of both operands: one where all share a tensor, else one a
/// member.
pub(super) fn product<D: Quantize>(
    device: &D,
    (operator, product): (Operator, Product),
    cores: Option<TensorCores>,
    [left, right]: [&[Source<'_, D>]; 2],
    packed: &mut D::Packed,
    mut out: MatrixMut<'_, D>,
    (mode, to): Store,
) {
    let scaled = |sources: &[Source<'_, D>]| {
        let splits = |source: &Source<'_, D>| TensorCores::splits(cores, &source.quantizer);
        sources.len() > 1 && sources.iter().any(splits)
    };
    let time = |work| lap(Part::Linear(operator, product, work));
    if !scaled(left) && !scaled(right) {
        let packing = time(Work::Quantize);
        device.pack(packed, cores, product, left, right);
        drop(packing);
        let _multiplying = time(Work::Multiply);
        return device.multiply(packed, out, mode, to);
    }
    let (count, mut start) = (left.len().max(right.len()), 0);
    for member in 0..count {
        // What they share is packed once.
        let own = |sources: &[Source<'_, D>]| match sources.len() {
            1 if member == 0 => 0..1,
            1 => 0..0,
            _ => member..member + 1,
        };
        let packing = time(Work::Quantize);
        device.pack(packed, cores, product, &left[own(left)], &right[own(right)]);
        drop(packing);
        let _multiplying = time(Work::Multiply);
        let (right, left) = (right[member.min(right.len() - 1)], left[member.min(left.len() - 1)]);
        match product {
            Product::GradInput => {
                let mode = if member == 0 { mode } else { Output::Accumulate };
                let to = to.filter(|_| member + 1 == count);
                device.multiply(packed, out.again(), mode, to);
            }
            Product::Forward => {
                let end = start + right.matrix.rows();
                device.multiply(packed, out.cols_range(start..end), mode, to);
                start = end;
            }
            Product::GradWeight => {
                let end = start + left.matrix.cols();
                device.multiply(packed, out.rows_range(start..end), mode, to);
                start = end;
            }
        }
    }
}
