//! Operands of many dot products, decoded once.

use alloc::vec::Vec;

use super::error::UnitError;
use super::factor::Factor;
use super::input::Input;
use super::lanes::UnitLanes;
use super::parameters::Parameters;
use super::row::Row;
use crate::format::Format;
use crate::math::{Context, Operand};
use crate::round::{Overflow, Rules};

/// Rows of the left operand, or columns of the right one: `k` consecutive elements each, decoded for
/// one unit. Made by [`Unit::rows`](super::Unit::rows) and [`Unit::columns`](super::Unit::columns).
#[derive(Clone, Debug)]
pub struct Rows {
    input: Input,
    parameters: Parameters,
    count: usize,
    k: usize,
    codes: Vec<u64>,
    factors: Vec<Factor>,
    scales: Vec<u64>,
    /// Numbers of the operations, for the orders of IEEE operations.
    operands: Vec<Operand>,
    lanes: Option<UnitLanes>,
}

impl Rows {
    pub(super) fn new(
        input: Input,
        parameters: &Parameters,
        codes: &[u64],
        scales: &[u64],
        k: usize,
    ) -> Result<Self, UnitError> {
        let count = codes.len().checked_div(k).unwrap_or(usize::from(codes.is_empty()));
        let lengths = |what, expected, found: usize| match found == expected {
            true => Ok(()),
            false => Err(UnitError::Lengths { what, expected, found }),
        };
        lengths("codes", count * k, codes.len())?;
        lengths("scales", count * input.scales(k), scales.len())?;
        let mut rows = Self {
            input,
            parameters: *parameters,
            count,
            k,
            codes: codes.to_vec(),
            factors: codes.iter().map(|code| parameters.read(input.format, *code)).collect(),
            scales: scales.to_vec(),
            operands: Vec::new(),
            lanes: None,
        };
        if parameters.order.is_aligned() {
            let all: Vec<Row<'_>> = (0..count).map(|i| rows.row(i)).collect();
            rows.lanes = UnitLanes::new(input.format, k, &all, parameters);
        } else {
            rows.operands = (0..count).flat_map(|i| rows.images(i).collect::<Vec<_>>()).collect();
        }
        Ok(rows)
    }

    /// A row as numbers of IEEE operations: the codes themselves, or with scales code times scale in
    /// binary32, infinite where that is too large.
    fn images(&self, i: usize) -> impl Iterator<Item = Operand> {
        let row = self.row(i);
        let format = self.input.format;
        let rules = Rules::DEFAULT.with_overflow(Overflow::Infinity);
        let image = Context::new(Format::F32, rules.with_operands(self.parameters.operands));
        (0..self.k).map(move |k| {
            let element = Operand::new(format, row.codes[k]);
            let Some(scale) = self.input.scale else { return element };
            let scale = Operand::new(scale.format, row.scales[k / scale.block as usize]);
            Operand::new(Format::F32, image.mul(element, scale).code)
        })
    }

    /// The format of the elements.
    pub const fn format(&self) -> Format {
        self.input.format
    }

    /// How many rows there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Elements of a row.
    pub const fn k(&self) -> usize {
        self.k
    }

    /// One row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, i: usize) -> Row<'_> {
        assert!(i < self.count, "row {i} of {}", self.count);
        let scales = self.input.scales(self.k);
        let operands = if self.operands.is_empty() { 0..0 } else { i * self.k..(i + 1) * self.k };
        Row {
            input: self.input,
            codes: &self.codes[i * self.k..(i + 1) * self.k],
            scales: &self.scales[i * scales..(i + 1) * scales],
            factors: &self.factors[i * self.k..(i + 1) * self.k],
            operands: &self.operands[operands],
        }
    }

    /// Whether they were made for this side of a unit with these parameters.
    pub(super) fn are_of(&self, input: Input, parameters: &Parameters) -> bool {
        self.input == input && self.parameters == *parameters
    }

    /// The rows as the fast kernel takes them, if it does.
    pub(super) const fn lanes(&self) -> Option<&UnitLanes> {
        self.lanes.as_ref()
    }
}
