//! Products of operands that are both rounded: packed as they are rounded, and multiplied in the
//! order of [`gemm::fast`](exmy::gemm::fast).
//!
//! The definition is [`multiply_plain`](exmy::gemm::fast::multiply_plain) of the operands' codes and
//! scales. Members of a group that have tensor scales of their own are multiplied one after the
//! other, as these scales multiply their sums: where the group is summed over (`grad_input`), the
//! first one's product is stored and those of the others are added in the group's order.

use crate::nn::site::{Operator, Product};
use crate::nn::stopwatch::{Part, Work, lap};
use exmy::gemm::f32::Output;
use exmy::gemm::fast::{Packed, Scaling, Side, Source, multiply_and_round};
use exmy::parallel;
use exmy::quantizer::Target;
use exmy::slice::{Converter, ViewMut};

/// Packed operands, whose memory is used again.
#[derive(Clone, Debug)]
pub(super) struct Packs {
    left: Packed,
    right: Packed,
}

impl Default for Packs {
    fn default() -> Self {
        Self { left: Packed::nothing(Side::Left), right: Packed::nothing(Side::Right) }
    }
}

/// Computes a product from the members of both operands: one where all share a tensor, else one a
/// member. `out` is overwritten or added to, as `mode` says, and rounded at last if there is what
/// rounds it.
pub(super) fn product(
    (operator, product): (Operator, Product),
    left: &[Source<'_>],
    right: &[Source<'_>],
    packs: &mut Packs,
    mut out: ViewMut<'_, f32>,
    (mode, round): (Output, Option<Converter<'static>>),
) {
    let Packs { left: a, right: b } = packs;
    let scaled = |sources: &[Source<'_>]| {
        let tensor_scale = |source: &Source<'_>| matches!(source.quantizer.target, Target::Block(format) if format.tensor_scale);
        sources.len() > 1 && sources.iter().any(tensor_scale)
    };
    // Stored matrices are transposed in these places: Y = X Wᵀ, dX = dY W, dW = dYᵀ X.
    let (left_turned, right_turned) = (product == Product::GradWeight, product == Product::Forward);
    // Gradients of outputs lie beside each other, weights below.
    let left_beside = true;
    let with = match mode {
        Output::Accumulate => Scaling::ACCUMULATE,
        Output::Overwrite => Scaling::OVERWRITE,
    };
    let time = |work| lap(Part::Linear(operator, product, work));
    if !scaled(left) && !scaled(right) {
        let packing = time(Work::Quantize);
        let left = || a.round(left, left_turned, left_beside);
        parallel::both(left, || b.round(right, right_turned, false));
        drop(packing);
        let _multiplying = time(Work::Multiply);
        return run(a, b, out, with, round);
    }
    let (count, mut start) = (left.len().max(right.len()), 0);
    for member in 0..count {
        let packing = time(Work::Quantize);
        // What they share is packed once.
        for (packed, sources, turned) in
            [(&mut *a, left, left_turned), (&mut *b, right, right_turned)]
        {
            match sources {
                [shared] if member == 0 => packed.round(&[*shared], turned, false),
                [_] => {}
                _ => packed.round(&sources[member..=member], turned, false),
            }
        }
        drop(packing);
        let _multiplying = time(Work::Multiply);
        let (rows, cols, stride) = (out.rows(), out.cols(), out.row_stride());
        let (height, width) = (a.lanes(), b.lanes());
        match product {
            Product::GradInput => {
                let with = if member == 0 { with } else { Scaling::ACCUMULATE };
                let round = round.filter(|_| member + 1 == count);
                run(a, b, out.reborrow(), with, round);
            }
            Product::Forward => {
                let data = &mut out.data_mut()[start.min(rows * stride)..];
                run(a, b, place(data, rows, width, stride), with, round);
                start += width;
            }
            Product::GradWeight => {
                let data = &mut out.data_mut()[start * stride..];
                run(a, b, place(data, height, cols, stride), with, round);
                start += height;
            }
        }
    }
}

fn place(data: &mut [f32], rows: usize, cols: usize, stride: usize) -> ViewMut<'_, f32> {
    match ViewMut::with_row_stride(data, rows, cols, stride) {
        Ok(view) => view,
        Err(_) => unreachable!("a part of the output"),
    }
}

fn run(
    a: &Packed,
    b: &Packed,
    out: ViewMut<'_, f32>,
    with: Scaling,
    round: Option<Converter<'static>>,
) {
    if let Err(error) = multiply_and_round(a, b, out, with, round) {
        panic!("{error}");
    }
}
