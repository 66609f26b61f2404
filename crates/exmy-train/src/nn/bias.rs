//! Biases of linear operators: added to each row, and the sums that are their gradients.
//!
//! With a rounding to bfloat16 these are vector operations of the microxcaling library, as in
//! [`steps`](super::steps): the bias is rounded before and the sum after; on the way back the gradients
//! before, and their sum after.

use super::activation::add_assign;
use super::real::Real;
use super::steps::round_all;
use exmy::round::Rounding;
use exmy::simd::kernel;

/// `rows += bias`, for each row of `bias.len()` elements.
pub fn add_bias<T: Real>(rounding: Option<Rounding>, rows: &mut [T], bias: &[T]) {
    if rounding.is_none() {
        return add_to_rows(rows, bias);
    }
    T::with_scratch(bias.len(), |rounded| {
        rounded.copy_from_slice(bias);
        round_all(rounding, rounded);
        add_to_rows(rows, rounded);
    });
    round_all(rounding, rows);
}

/// Adds the sum of the rows of `dy` to `d_bias`.
pub fn bias_backward<T: Real>(rounding: Option<Rounding>, dy: &[T], d_bias: &mut [T]) {
    if rounding.is_none() {
        return add_rows_to(dy, d_bias);
    }
    T::with_scratch(dy.len() + d_bias.len(), |scratch| {
        let (rounded, sums) = scratch.split_at_mut(dy.len());
        rounded.copy_from_slice(dy);
        round_all(rounding, rounded);
        sums.fill(T::ZERO);
        add_rows_to(rounded, sums);
        round_all(rounding, sums);
        add_assign(d_bias, sums);
    });
}

kernel! {
    fn add_to_rows<'a, T: Real>(rows: &'a mut [T], bias: &'a [T]) {
        for row in rows.chunks_exact_mut(bias.len()) {
            for (x, &bias) in row.iter_mut().zip(bias) {
                *x += bias;
            }
        }
    }
}

kernel! {
    /// Rows in ascending order, one chain a column.
    fn add_rows_to<'a, T: Real>(rows: &'a [T], sums: &'a mut [T]) {
        for row in rows.chunks_exact(sums.len()) {
            for (sum, &x) in sums.iter_mut().zip(row) {
                *sum += x;
            }
        }
    }
}
