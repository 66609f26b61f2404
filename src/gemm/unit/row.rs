//! One row of an operand, decoded for a unit.

use super::factor::Factor;
use super::input::Input;
use super::parameters::Parameters;
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
    /// Whether a subnormal element or scale counts as zero.
    pub(super) fn zeroes(&self, k: usize, parameters: &Parameters) -> bool {
        let Self { input, codes, scales, .. } = self;
        let scale = input
            .scale
            .is_some_and(|scale| parameters.zeroes(scale.format, scales[k / scale.block as usize]));
        scale || parameters.zeroes(input.format, codes[k])
    }

    /// The scale of an element, where there are scales.
    pub(super) fn scale(&self, k: usize, parameters: &Parameters) -> Option<Factor> {
        let scale = self.input.scale?;
        Some(parameters.read(scale.format, self.scales[k / scale.block as usize]))
    }
}
