//! The GPU against the CPU, bit for bit: every kernel of the library's operations over edge cases and random
//! numbers.
//!
//! [`library`] returns a table with one row for each kind of operation. A row says how many cases and numbers
//! were compared and, if there is one, the first number that differs. A NaN is as good as another only where
//! the library does not say which one results: in products of the order `gemm::f32`, and behind a rotation.

mod blocks;
mod conversions;
mod products;

use std::fmt;

use exmy::random::{Philox, Stream};

use crate::{Device, Result};

/// How much is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What a device that is emulated does in seconds.
    Small,
    /// What a GPU does in a minute or two.
    Full,
}

/// The first number of an operation that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Format, rounding, shape and axis.
    pub case: String,
    /// Which number of the output.
    pub at: usize,
    /// What the device wrote, as bits.
    pub found: u64,
    /// What the CPU wrote.
    pub expected: u64,
}

/// One kind of operation, and how it fared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The operation.
    pub operation: &'static str,
    /// Its kernels' file.
    pub kernels: &'static str,
    /// Cases that were compared.
    pub cases: usize,
    /// Numbers that were compared.
    pub numbers: u64,
    /// Cases with a number that differs.
    pub wrong: usize,
    /// The first of these.
    pub first: Option<Difference>,
    /// Why the device does not have the operation, if it has not.
    pub missing: Option<String>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, kernels, cases, numbers, wrong, first, missing } = self;
        write!(f, "{operation:<50} {kernels:<22} {cases:>6} cases {numbers:>12} numbers  ")?;
        match (first, missing) {
            (Some(Difference { case, at, found, expected }), _) => write!(
                f,
                "{wrong} DIFFER, first {case}, number {at}: {found:#x}, not {expected:#x}"
            ),
            (None, Some(why)) => write!(f, "not there: {why}"),
            (None, None) => f.write_str("equal"),
        }
    }
}

/// A device under comparison, and the rows so far.
struct Trial<'a> {
    device: &'a Device,
    extent: Extent,
    rows: Vec<Row>,
}

impl Trial<'_> {
    fn full(&self) -> bool {
        self.extent == Extent::Full
    }

    fn row(&mut self, operation: &'static str, kernels: &'static str) -> &mut Row {
        let found = self.rows.iter().position(|row| row.operation == operation);
        let at = found.unwrap_or_else(|| {
            let row = Row {
                operation,
                kernels,
                cases: 0,
                numbers: 0,
                wrong: 0,
                first: None,
                missing: None,
            };
            self.rows.push(row);
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }
}

impl Row {
    /// Compares what a case wrote.
    fn compare<T: Copy + Into<u64>>(
        &mut self,
        case: impl Fn() -> String,
        found: &[T],
        expected: &[T],
    ) {
        self.cases += 1;
        self.numbers += expected.len() as u64;
        let bits = |x: Option<&T>| x.map_or(u64::MAX, |x| (*x).into());
        let most = found.len().max(expected.len());
        let at = (0..most).find(|i| bits(found.get(*i)) != bits(expected.get(*i)));
        let Some(at) = at else { return };
        self.wrong += 1;
        if self.first.is_none() {
            let (found, expected) = (bits(found.get(at)), bits(expected.get(at)));
            self.first = Some(Difference { case: case(), at, found, expected });
        }
    }

    /// Compares numbers; a NaN is as good as another if so said.
    fn compare_f32(
        &mut self,
        case: impl Fn() -> String,
        found: &[f32],
        expected: &[f32],
        any_nan: bool,
    ) {
        let bits = |x: &[f32]| -> Vec<u32> {
            x.iter()
                .map(|x| if any_nan && x.is_nan() { 0x7FC0_0000 } else { x.to_bits() })
                .collect()
        };
        self.compare(case, &bits(found), &bits(expected));
    }
}

/// Compares every operation of the library that the device has; `seen` gets each row once it is complete.
///
/// # Errors
/// If the device fails; numbers that differ are no error.
pub fn library(device: &Device, extent: Extent, mut seen: impl FnMut(&Row)) -> Result<Vec<Row>> {
    let mut trial = Trial { device, extent, rows: Vec::new() };
    for part in [Trial::conversions, Trial::blocks, Trial::products] {
        let complete = trial.rows.len();
        part(&mut trial)?;
        trial.rows[complete..].iter().for_each(&mut seen);
    }
    Ok(trial.rows)
}

/// Numbers of every kind: zeros, infinities, NaN, subnormal ones, ends of ranges, ties, and random ones of
/// all magnitudes and of those around 1. `count` of them at least.
fn inputs(count: usize) -> Vec<f32> {
    let special = [
        0,
        1,
        0x0040_0000,
        0x0040_0001,
        0x007F_FFFF,
        0x0080_0000,
        0x7F7F_FFFF,
        0x7F80_0000,
        0x7F80_0001,
        0x7FC0_0000,
        0x7FFF_FFFF,
    ];
    let mut x: Vec<f32> =
        special.into_iter().flat_map(|bits| [bits, bits | 1 << 31]).map(f32::from_bits).collect();
    // Around every power of two and its half, and the ends of FP4, FP6 and FP8.
    for field in 1..255_u32 {
        let power = field << 23;
        for bits in [power - 1, power, power + 1, power + 0x0040_0000, power + 0x0020_0000] {
            if field % 7 == 0 || (110..146).contains(&field) {
                x.push(f32::from_bits(bits | (field & 1) << 31));
            }
        }
    }
    let ends = [
        0.25, 0.75, 1.75, 2.5, 5.0, 6.0, 7.0, 28.0, 30.0, 240.0, 448.0, 464.0, 480.0, 57344.0,
        61440.0,
    ];
    for end in ends.map(f32::to_bits) {
        x.extend([end, end | 1 << 31, end + 1, end - 1].map(f32::from_bits));
    }
    let random = Philox::new(2, Stream::new("inputs"));
    let mut i = 0;
    while x.len() < count || i < 64 {
        let word = random.word(i);
        // Half of any bits, half between 2^-15 and 2^16; half of these with few bits, which are ties.
        let near = (word & 0x807F_FFFF) | (112 + (word >> 23 & 31)) << 23;
        let near = if i % 4 == 3 { near & 0xFFFC_0000 } else { near };
        x.push(f32::from_bits(if i.is_multiple_of(2) { word } else { near }));
        i += 1;
    }
    x
}
