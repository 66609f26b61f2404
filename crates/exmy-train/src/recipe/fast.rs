//! Products of operands that are both rounded: packed as they are rounded, and multiplied in the
//! order of [`gemm::fast`](exmy::gemm::fast) or of [tensor cores](super::sums).
//!
//! The definition is [`multiply_plain`](exmy::gemm::fast::multiply_plain) of the operands' codes and
//! scales. Members of a group that have tensor scales of their own are multiplied one after the
//! other, as these scales multiply their sums. Where the group is summed over (`grad_input`), the
//! first one's product is stored and those of the others are added in the group's order.

use crate::nn::device::MatrixMut;
use crate::nn::site::{Operator, Product, Site};
use crate::nn::stopwatch::{Part, Stage, lap};
use crate::recipe::WeightCache;
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
    (packed, mut kept): (&mut D::Packed, Option<(&mut WeightCache<D>, Site)>),
    mut out: MatrixMut<'_, D>,
    (mode, to): Store,
) {
    let scaled = |sources: &[Source<'_, D>]| {
        let splits = |source: &Source<'_, D>| TensorCores::splits(cores, &source.quantizer);
        sources.len() > 1 && sources.iter().any(splits)
    };
    let time = |work| lap(Part::Linear(operator, product, work));
    // Packs operands, a right one that is kept once, multiplies, and lends the left one's memory.
    let mut multiply =
        |member: usize, left: &[_], right: &[Source<'_, D>], out: MatrixMut<'_, D>, how: Store| {
            let own = kept.as_mut().and_then(|(kept, site)| {
                let elements = right.iter().map(|one| one.matrix.rows() * one.matrix.cols()).sum();
                kept.packed((*site, member), elements)
            });
            let packing = time(Stage::Quantize);
            let Some((own, is_new)) = own else {
                device.pack(packed, cores, product, left, right);
                drop(packing);
                let _multiplying = time(Stage::Multiply);
                return device.multiply(packed, out, how.0, how.1);
            };
            device.exchange_left(own, packed);
            device.pack(own, cores, product, left, if is_new { right } else { &[] });
            drop(packing);
            let _multiplying = time(Stage::Multiply);
            device.multiply(own, out, how.0, how.1);
            device.exchange_left(own, packed);
        };
    if !scaled(left) && !scaled(right) {
        return multiply(0, left, right, out, (mode, to));
    }
    let (count, mut start) = (left.len().max(right.len()), 0);
    for member in 0..count {
        // What they share is packed once.
        let own = |sources: &[Source<'_, D>]| match sources.len() {
            1 if member == 0 => 0..1,
            1 => 0..0,
            _ => member..member + 1,
        };
        let (lefts, rights) = (&left[own(left)], &right[own(right)]);
        let (right, left) = (right[member.min(right.len() - 1)], left[member.min(left.len() - 1)]);
        match product {
            Product::GradInput => {
                let mode = if member == 0 { mode } else { Output::Accumulate };
                let to = to.filter(|_| member + 1 == count);
                multiply(member, lefts, rights, out.again(), (mode, to));
            }
            Product::Forward => {
                let end = start + right.matrix.rows();
                multiply(member, lefts, rights, out.cols_range(start..end), (mode, to));
                start = end;
            }
            Product::GradWeight => {
                let end = start + left.matrix.cols();
                multiply(member, lefts, rights, out.rows_range(start..end), (mode, to));
                start = end;
            }
        }
    }
}
