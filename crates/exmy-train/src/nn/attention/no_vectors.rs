//! Where there are no vectors of sixteen, nothing is done by them.

use super::causal::Rows;
use crate::nn::real::Real;

/// Not done.
pub(super) fn scores<T: Real>(
    _n: usize,
    _hd: usize,
    _row: usize,
    _a: Rows<'_, T>,
    _b: Rows<'_, T>,
    _packed: &mut [T],
    _out: &mut [T],
) -> bool {
    false
}

/// Not done.
pub(super) fn lower<T: Real>(
    _n: usize,
    _hd: usize,
    _row: usize,
    _p: &[T],
    _x: Rows<'_, T>,
    _packed: &mut [T],
    _out: &mut [T],
) -> bool {
    false
}

/// Not done.
pub(super) fn lower_transposed<T: Real>(
    n: usize,
    hd: usize,
    row: usize,
    p: &[T],
    x: Rows<'_, T>,
    packed: &mut [T],
    out: &mut [T],
) -> bool {
    lower(n, hd, row, p, x, packed, out)
}
