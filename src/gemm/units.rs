//! Operands as a matrix unit takes them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::error::Why;
use super::operand::{Operand, Store};
use super::rows::codes;
use super::unit::{Input, Model, Rows, Scale, Unit, UnitError};
use crate::format::Format;
use crate::math::Operand as Number;
use crate::slice::View;

/// One side's codes and scales, vectors along the sum.
struct UnitOperand {
    codes: Vec<u64>,
    scales: Vec<u64>,
}

/// Two operands in a matrix unit.
pub(super) struct UnitProduct {
    unit: Unit,
    rows: usize,
    cols: usize,
    k: usize,
    a: UnitOperand,
    columns: Rows,
}

/// What the rows of an operand are to a unit.
fn input(rows: &Operand<'_>) -> Input {
    let scale = rows.block_format().zip(rows.block()).map(|(format, (_, along))| Scale {
        format: format.scale,
        // Longer blocks than the sum is, as those of whole rows, are one.
        block: u32::try_from(along.max(1)).unwrap_or(u32::MAX),
    });
    Input { format: rows.format(), scale }
}

impl UnitOperand {
    /// The rows of an operand.
    fn of(rows: &Operand<'_>) -> Self {
        let mut scales = Vec::new();
        if let Store::Blocks(tensor) = rows.store() {
            let (stored, blocks) = (tensor.scales(), tensor.blocks());
            let view = View::new(&stored, blocks.0, blocks.1);
            let view = if rows.is_transposed() { view.t() } else { view };
            // Rows of a tile share its scales.
            let down = rows.block().map_or(1, |(down, _)| down);
            let row = |i: usize| (0..view.cols()).map(move |j| u64::from(view.at(i / down, j)));
            scales.extend((0..rows.rows()).flat_map(row));
        }
        Self { codes: codes(rows), scales }
    }
}

/// The unit for the rows of A and the columns of B, the latter as rows.
pub(super) fn unit(
    model: &Model,
    result: Format,
    a: &Operand<'_>,
    b: &Operand<'_>,
) -> Result<Unit, Why> {
    model.unit(input(a), input(&b.t()), result).map_err(wrong)
}

fn wrong(error: UnitError) -> Why {
    Why::Unit(Box::new(error))
}

impl UnitProduct {
    pub(super) fn new(unit: Unit, a: &Operand<'_>, b: &Operand<'_>) -> Result<Self, Why> {
        let (rows, k) = a.shape();
        let UnitOperand { codes, scales } = UnitOperand::of(&b.t());
        let columns = unit.columns(&codes, &scales, k).map_err(wrong)?;
        Ok(Self { unit, rows, cols: b.cols(), k, a: UnitOperand::of(a), columns })
    }

    /// The results of rows `first..first + count` with every column. `draw` writes the random words of a
    /// result, if the unit needs any.
    pub(super) fn band(
        &self,
        first: usize,
        count: usize,
        draw: impl Fn(usize, &mut [u32]),
        mut done: impl FnMut(usize, Number),
    ) {
        let Self { unit, rows, cols, k, a, columns } = self;
        let result = unit.result();
        // The unit's rows know their number by their codes, of which there are none then.
        if *k == 0 {
            return (0..count * cols).for_each(|at| done(at, Number::new(result, 0)));
        }
        let share = a.scales.len() / rows;
        let (from, to) = (first, first + count);
        let band = unit.rows(&a.codes[from * k..to * k], &a.scales[from * share..to * share], *k);
        let Ok(band) = band else { unreachable!("whole rows of an operand") };
        if unit.is_stochastic() {
            let mut words = alloc::vec![0; unit.words(*k)];
            for at in 0..count * cols {
                draw(at, &mut words);
                let (row, column) = (band.row(at / cols), columns.row(at % cols));
                done(at, Number::new(result, unit.dot_with(&row, &column, 0, &words)));
            }
            return;
        }
        let mut sums = alloc::vec![0; count * cols];
        unit.multiply(&band, columns, &mut sums);
        for (at, sum) in sums.into_iter().enumerate() {
            done(at, Number::new(result, sum));
        }
    }
}
