//! What models are put together from: linear groups, norms and MLPs, each with its place in the
//! arena and with what a recipe may round around it.

mod affine;
#[doc(hidden)]
pub mod linear;
#[doc(hidden)]
pub mod mlp;

pub(crate) use affine::{Affine, Normed, Spare};
pub(crate) use linear::Linear;
pub(crate) use mlp::{Activation, Mlp, MlpKept};

use crate::nn::real::Real;

/// What a pass forward is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pass {
    /// A backward pass follows.
    #[default]
    Training,
    /// Nothing follows.
    Forward,
}

impl Pass {
    /// The memory that a layer's activations have.
    pub(crate) const fn memory(self, layer: usize) -> usize {
        match self {
            Self::Training => layer,
            Self::Forward => 0,
        }
    }
}

/// Grows `buffer` to at least `len`; never shrinks, so that steps of two sizes do not alternate
/// between allocations.
pub(crate) fn grow<T: Real>(buffer: &mut Vec<T>, len: usize) {
    if buffer.is_empty() && len > 0 {
        // Zeros of the system: its pages are first touched by the threads that write to them.
        *buffer = vec![T::ZERO; len];
    } else if buffer.len() < len {
        buffer.resize(len, T::ZERO);
    }
}

/// Copies `width` columns at `column` of rows of `stride` to dense rows.
pub(crate) fn gather<T: Real>(
    rows: &[T],
    stride: usize,
    column: usize,
    width: usize,
    dense: &mut [T],
) {
    for (row, dense) in rows.chunks_exact(stride).zip(dense.chunks_exact_mut(width)) {
        dense.copy_from_slice(&row[column..][..width]);
    }
}

/// Copies dense rows to `width` columns at `column` of rows of `stride`.
pub(crate) fn scatter<T: Real>(
    dense: &[T],
    width: usize,
    rows: &mut [T],
    stride: usize,
    column: usize,
) {
    for (row, dense) in rows.chunks_exact_mut(stride).zip(dense.chunks_exact(width)) {
        row[column..][..width].copy_from_slice(dense);
    }
}
