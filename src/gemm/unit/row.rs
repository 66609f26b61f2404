//! One row of an operand, decoded for a unit.

use super::factor::Factor;
use super::input::Input;
use crate::math::Operand;

/// One of [`Rows`](super::Rows).
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// What the codes are.
    pub(super) input: Input,
    /// The elements as they were given.
    pub(super) codes: &'a [u64],
    /// The scales as they were given.
    pub(super) scales: &'a [u64],
    pub(super) factors: &'a [Factor],
    pub(super) operands: &'a [Operand],
}

impl Row<'_> {
    /// The scale of an element, where there are scales.
    pub(super) fn scale(&self, k: usize) -> Option<Factor> {
        let scale = self.input.scale?;
        Some(Factor::new(scale.format, self.scales[k / scale.block as usize]))
    }
}
