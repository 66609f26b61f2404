//! A stream of operands, answered line by line with results and flags.
//!
//! A line holds the operands of a function in hexadecimal. Its answer is the result, zero-padded to its
//! width, and the flags. Line N of the output always belongs to line N of the input: a blank line gives a
//! blank one, and so does a line that holds no operands, which is reported.
//!
//! Stochastic modes take their random bits from Philox (the [`STREAM`] of a seed, element = line number
//! minus 1), or from a word behind the operands, so that hardware can be given the same ones.
//!
//! ```
//! use exmy::vectors::compute::{ComputeOptions, compute};
//! use exmy::vectors::evaluate::Settings;
//! use exmy::vectors::function::TestFunction;
//!
//! let multiply = "e4m3_mul".parse::<TestFunction>()?.evaluator(&Settings::default())?;
//! let mut out = Vec::new();
//! let lines = &b"3c 3c\n\n7e 40\n"[..]; // 1.5 * 1.5, 448 * 2
//! compute(lines, &mut out, &multiply, &ComputeOptions::default(), |_| {})?;
//! assert_eq!(out, b"41 00\n\n7f 15\n"); // 2.25; NaN: inexact, overflow, invalid
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::{self, Read, Write};

use super::answer::{Form, answer};
pub use super::answer::{RandomSource, STREAM, Summary};
use super::evaluate::Evaluator;
use super::lines::Malformed;

/// How lines are read and answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ComputeOptions {
    /// Whether a second column has the flags.
    pub flags: bool,
    /// Whether the first malformed line ends the stream.
    pub strict: bool,
    /// The random bits of stochastic modes.
    pub random: RandomSource,
}

impl Default for ComputeOptions {
    /// With flags, to the end, random bits in a column.
    fn default() -> Self {
        Self { flags: true, strict: false, random: RandomSource::Column }
    }
}

/// Answers every line of `source` by a line of `sink`; malformed ones go to `report` as well.
///
/// # Errors
/// Those of reading and writing; and an elementary function that cannot be decided, with the line's number,
/// after the answers to the lines before.
pub fn compute(
    source: impl Read,
    sink: impl Write,
    evaluator: &Evaluator,
    options: &ComputeOptions,
    report: impl FnMut(&Malformed),
) -> io::Result<Summary> {
    let form = Form {
        operands: evaluator.function().operands(),
        result: evaluator.function().result(),
        random_bits: evaluator.random_bits(),
        random: options.random,
        flags: options.flags,
        strict: options.strict,
    };
    let evaluate = |words, random| evaluator.evaluate(words, random).map_err(io::Error::other);
    answer(source, sink, form, evaluate, report)
}
