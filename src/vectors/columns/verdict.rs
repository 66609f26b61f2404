//! Whether a column is what this crate computes, and where it is not.

use super::{BLOCK, Column, Columns, ColumnsError, Conversion, Table, digest};
use crate::format::Format;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// Mismatches that a verdict keeps.
const KEPT: usize = 5;

/// A row whose recorded word is not the computed one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColumnMismatch {
    /// The row, from 0; of digests the block.
    pub row: usize,
    /// The input, or the first input of the block.
    pub x: u64,
    /// The word of the file.
    pub recorded: u64,
    /// The word of this crate.
    pub computed: u64,
}

/// What became of a column.
///
/// Its text is `column: R rows, M mismatches` and below it the first mismatches, decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnVerdict<'a> {
    /// The column's name.
    pub column: &'a str,
    /// What it records; `None` if the name is not known, and then nothing was compared.
    pub conversion: Option<Conversion>,
    /// Whether the words are digests.
    pub digest: bool,
    /// Rows that were compared.
    pub rows: usize,
    /// How many of them differ.
    pub mismatches: usize,
    /// The first that do, up to five.
    pub first: Vec<ColumnMismatch>,
}

impl Columns {
    /// Recomputes a column of this file and compares. `progress` is called with how many rows more are
    /// done, from whichever thread did them, and says whether to go on; a column broken off has no
    /// verdict. Digests are computed by all threads that [`parallel`](crate::parallel) has.
    ///
    /// # Errors
    /// If the column's elements have not the size that its name implies.
    ///
    /// # Panics
    /// If the column is of another file.
    pub fn verify<'a>(
        &self,
        column: &'a Column,
        progress: &(dyn Fn(usize) -> bool + Sync),
    ) -> Result<Option<ColumnVerdict<'a>>, ColumnsError> {
        let digests = self.table() == Table::F32Digest;
        let mut verdict = ColumnVerdict {
            column: column.name(),
            conversion: Conversion::find(self.table(), column.name()),
            digest: digests,
            rows: 0,
            mismatches: 0,
            first: Vec::new(),
        };
        let Some(conversion) = verdict.conversion else { return Ok(Some(verdict)) };
        let expected = if digests { 8 } else { conversion.word_bytes() };
        if column.element_bytes() != expected {
            return Err(ColumnsError::ElementBytes {
                column: column.name().into(),
                found: column.element_bytes() as u32,
                expected: Some(expected),
            });
        }
        verdict.rows = self.rows();
        let mut compare = |row: usize, x: u64, recorded: u64, computed: u64| {
            if recorded != computed {
                verdict.mismatches += 1;
                if verdict.first.len() < KEPT {
                    verdict.first.push(ColumnMismatch { row, x, recorded, computed });
                }
            }
        };
        match self.inputs() {
            Some(inputs) => {
                for (row, (x, recorded)) in inputs.zip(self.elements(column)).enumerate() {
                    compare(row, x, recorded, conversion.apply(x));
                }
                if !progress(self.rows()) {
                    return Ok(None);
                }
            }
            None => {
                let Some(computed) = digests_of(&conversion, self.rows(), progress) else {
                    return Ok(None);
                };
                for (row, (recorded, computed)) in self.elements(column).zip(computed).enumerate() {
                    compare(row, row as u64 * BLOCK, recorded, computed);
                }
            }
        }
        Ok(Some(verdict))
    }
}

/// The digests of the first `rows` blocks, unless asked to stop.
fn digests_of(
    conversion: &Conversion,
    rows: usize,
    progress: &(dyn Fn(usize) -> bool + Sync),
) -> Option<Vec<u64>> {
    use std::sync::atomic::{AtomicBool, Ordering};
    let stopped = AtomicBool::new(false);
    let mut computed = vec![0; rows];
    let work = |block: usize, out: &mut [u64]| {
        if stopped.load(Ordering::Relaxed) {
            return;
        }
        out[0] = digest(conversion, block as u32);
        if !progress(1) {
            stopped.store(true, Ordering::Relaxed);
        }
    };
    #[cfg(feature = "std")]
    crate::parallel::for_each_chunk(&mut computed, 1, work);
    #[cfg(not(feature = "std"))]
    computed.chunks_mut(1).enumerate().for_each(|(block, out)| work(block, out));
    (!stopped.into_inner()).then_some(computed)
}

impl fmt::Display for ColumnVerdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { column, conversion, digest, rows, mismatches, first } = self;
        let Some(conversion) = conversion else {
            return write!(f, "{column}: skipped, no conversion is known by this name");
        };
        write!(f, "{column}: {rows} rows, {mismatches} mismatches")?;
        for ColumnMismatch { row, x, recorded, computed } in first {
            if *digest {
                let last = x + BLOCK - 1;
                write!(
                    f,
                    "\n  row {row}, x 0x{x:08x} to 0x{last:08x}: recorded {recorded:016x}, "
                )?;
                write!(f, "computed {computed:016x}")?;
                continue;
            }
            let Conversion { from, to, .. } = *conversion;
            let digits = 2 * conversion.word_bytes();
            let word =
                |word: u64| Decoded { format: to, code: conversion.code(word), word, digits };
            let digits = from.bits().div_ceil(4) as usize;
            let x = Decoded { format: from, code: *x, word: *x, digits };
            let (recorded, computed) = (word(*recorded), word(*computed));
            write!(f, "\n  row {row}: x {x}: recorded {recorded}, computed {computed}")?;
        }
        let more = mismatches - first.len();
        if more > 0 {
            write!(f, "\n  and {more} more")?;
        }
        if *mismatches > 0 {
            write!(f, "\n  computed with {conversion}")?;
        }
        Ok(())
    }
}

/// A word and its value: `0x7e = 448.0`.
struct Decoded {
    format: Format,
    code: u64,
    word: u64,
    digits: usize,
}

impl fmt::Display for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, code, word, digits } = *self;
        write!(f, "0x{word:0digits$x} = ")?;
        if format.is_exact_in_f32() {
            write!(f, "{:?}", format.to_f32(code))
        } else {
            write!(f, "{:?}", format.to_f64(code))
        }
    }
}
