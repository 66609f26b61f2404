//! One row of an operand, decoded for a unit.

use super::factor::Factor;
use super::input::Input;
use super::parameters::Parameters;
use crate::format::Format;
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
    /// Whether a subnormal element or scale counts as zero, or what both make for IEEE operations.
    pub(super) fn zeroes(&self, k: usize, parameters: &Parameters) -> bool {
        let Self { input, codes, scales, operands, .. } = self;
        let image = operands.get(k).filter(|_| input.scale.is_some());
        let scale = input
            .scale
            .is_some_and(|scale| parameters.zeroes(scale.format, scales[k / scale.block as usize]));
        scale
            || parameters.zeroes(input.format, codes[k])
            || image.is_some_and(|image| parameters.zeroes(Format::F32, image.code))
    }

    /// The scale of an element, where there are scales.
    pub(super) fn scale(&self, k: usize, parameters: &Parameters) -> Option<Factor> {
        let scale = self.input.scale?;
        Some(parameters.read(scale.format, self.scales[k / scale.block as usize]))
    }
}
