//! Exponents bumped by position: what the code of arXiv 2506.20752 does instead of what it means.
//!
//! Its modification of MX blocks is to raise a block's exponent by one where the largest element would
//! saturate. The code (Hither1/systems-scaling, `olmo/mx/mx_ops.py`) takes the maximum over the *blocks* of a
//! row, not within them. Position j of every block of the row is bumped if the largest magnitude at that
//! position, over the row's blocks, is above `max / 2^emax` of its own binade. A bumped element is rounded
//! with twice its block's scale, its neighbours with the scale itself.
//!
//! Of tensors of tokens the code sees (sequences, tokens, features), and blocks along tokens are those of one
//! sequence. Neither a block nor a maximum over blocks reaches into the next one.

use exmy::block::{BlockFormat, Shape};
use exmy::quantizer::{Axis, Quantizer, Target};
use exmy::random::Philox;
use exmy::slice::{View, ViewMut};

/// Writes to `out` the image of `x` with exponents bumped by position; blocks along rows are those of
/// `sequence` rows, where it is not 0.
///
/// # Panics
/// If the target is no block format of blocks along the sum with scales by a power rule.
pub fn image_into(
    quantizer: &Quantizer,
    x: View<'_, f32>,
    axis: Axis,
    random: Philox,
    sequence: usize,
    mut out: ViewMut<'_, f32>,
) {
    if axis == Axis::Cols || sequence == 0 || sequence >= x.rows() {
        return whole(quantizer, x, axis, random, out);
    }
    let stride = out.row_stride();
    for start in (0..x.rows()).step_by(sequence) {
        let rows = start..x.rows().min(start + sequence);
        let data = &mut out.data_mut()[start * stride..];
        let place = ViewMut::with_row_stride(data, rows.len(), x.cols(), stride);
        let place = place.expect("rows of the output");
        whole(quantizer, x.rows_range(rows), axis, random, place);
    }
}

/// The image of one tensor.
fn whole(
    quantizer: &Quantizer,
    x: View<'_, f32>,
    axis: Axis,
    random: Philox,
    mut out: ViewMut<'_, f32>,
) {
    let Target::Block(format @ BlockFormat { shape: Shape::Along(side), .. }) = quantizer.target
    else {
        panic!("{} has no blocks along the sum", quantizer.target)
    };
    let side = side as usize;
    quantizer.image_into(x, axis, random, out.reborrow());
    // The scale of a block is found as the format finds it, and doubled. The image of twice the numbers at
    // half the scale would overflow binary32 where this does not.
    let (rows, cols) = (x.rows(), x.cols());
    let mut doubled = vec![0.0; rows * cols];
    let emax = format.element.emax();
    let scale = |block: &[f32]| {
        let amax = block.iter().fold(0.0_f32, |a, &b| if b.is_nan() { b } else { a.max(b.abs()) });
        if amax.is_nan() || amax.is_infinite() {
            return f32::NAN;
        }
        let amax = if amax == 0.0 { f32::MIN_POSITIVE } else { amax };
        let exponent = (libm::ilogbf(amax) - emax).max(-127) + 1;
        libm::ldexpf(1.0, exponent)
    };
    quantizer.image_with(x, axis, random, scale, ViewMut::new(&mut doubled, rows, cols));
    let limit = f64::from(format.element.max().to_f32()) / libm::ldexp(1.0, emax);
    // What is seen by the code has been rounded to the format before.
    let mut before = vec![0.0; rows * cols];
    let first = Quantizer { target: Target::None, ..*quantizer };
    first.image_into(x, axis, random, ViewMut::new(&mut before, rows, cols));
    let stride = out.row_stride();
    let out = out.data_mut();
    let (lines, length) = match axis {
        Axis::Cols => (rows, cols),
        Axis::Rows => (cols, rows),
    };
    for line in 0..lines {
        let place = |along: usize| match axis {
            Axis::Cols => (line, along),
            Axis::Rows => (along, line),
        };
        for position in 0..side.min(length) {
            let all = || (position..length).step_by(side).map(place);
            let largest =
                all().fold(0.0_f64, |a, (i, j)| a.max(f64::from(before[i * cols + j].abs())));
            if largest > 0.0 && largest > limit * libm::ldexp(1.0, libm::ilogb(largest)) {
                for (i, j) in all() {
                    out[i * stride + j] = doubled[i * cols + j];
                }
            }
        }
    }
}
