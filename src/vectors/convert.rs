//! A stream of codes of one format, converted to another line by line.
//!
//! Lines hold one code; [`compute`](mod@super::compute) describes them.

use std::io::{self, Read, Write};

use super::answer::{Form, answer};
pub use super::answer::{RandomSource, STREAM, Summary};
use super::evaluate::Outcome;
use super::function::Kind;
use super::lines::Malformed;
use crate::format::Format;
use crate::math::{Context, Operand};
use crate::round::{Rounding, Rules};

/// What is converted, and how.
#[derive(Clone, Copy, Debug)]
pub struct ConvertOptions {
    /// The format of the codes read.
    pub from: Format,
    /// The format of the codes written.
    pub to: Format,
    /// How one becomes the other.
    pub rules: Rules,
    /// Whether a second column has the flags.
    pub flags: bool,
    /// Whether the first malformed line ends the stream.
    pub strict: bool,
    /// The random bits of stochastic modes.
    pub random: RandomSource,
}

/// Converts every line of `source` into a line of `sink`; malformed ones go to `report` as well.
///
/// # Errors
/// Those of reading and writing.
pub fn convert(
    source: impl Read,
    sink: impl Write,
    options: &ConvertOptions,
    report: impl FnMut(&Malformed),
) -> io::Result<Summary> {
    let ConvertOptions { from, to, rules, flags, strict, random } = *options;
    let context = Context::new(to, rules);
    let form = Form {
        operands: &[Kind::Format(from)],
        result: Kind::Format(to),
        random_bits: match rules.rounding {
            Rounding::Stochastic { bits, .. } => bits.into(),
            _ => 0,
        },
        random,
        flags,
        strict,
    };
    let evaluate = |words: [u128; 3], random| {
        let rounded = context.with_random(random).convert(Operand::new(from, words[0] as u64));
        Ok(Outcome { word: rounded.code.into(), flags: rounded.flags })
    };
    answer(source, sink, form, evaluate, report)
}
