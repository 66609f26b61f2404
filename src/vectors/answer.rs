//! Lines of operands, each answered by a line with the result.
//!
//! A line holds operands in hexadecimal; so does the line it is answered with, zero-padded to the
//! result's width, and a blank line is answered with a blank one. A line that holds no operands is
//! reported and answered with a blank line too, so that line N of the output always belongs to
//! line N of the input.
//!
//! Stochastic modes take their random bits from Philox (the [`STREAM`] of a seed, element = line
//! number minus 1). Or they read them from a word behind the operands, so that hardware can be given
//! the same ones. Operands of up to 16 bits together are evaluated once for each combination.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;

use super::evaluate::Outcome;
use super::function::Kind;
use super::lines::{Malformed, Sink, Words, Wrong, each_line, hexadecimal, write_hexadecimal};
use crate::random::{Philox, Stream};
use crate::round::Rounded;

/// The random stream of conversions and test vectors.
pub const STREAM: Stream = Stream::new("golden");

/// Where stochastic modes take their random bits from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RandomSource {
    /// The [`STREAM`] of this seed: line `n` uses the top bits of word `n - 1`.
    Seed(u64),
    /// A word behind the operands of each line holds the N-bit random integer.
    Column,
}

/// What became of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Lines that were answered with a result.
    pub converted: u64,
    /// Lines that hold no operands.
    pub malformed: u64,
}

/// What the lines hold, and how they are answered.
pub(super) struct Form<'a> {
    pub(super) operands: &'a [Kind],
    pub(super) result: Kind,
    /// Bits of the random integer that a result takes, 0 if none.
    pub(super) random_bits: u32,
    pub(super) random: RandomSource,
    /// Whether a second column has the flags.
    pub(super) flags: bool,
    /// Whether the first malformed line ends the stream.
    pub(super) strict: bool,
}

/// Answers every line of `source` by a line of `sink`; malformed ones go to `report` as well. Where
/// `evaluate` fails, the lines before are answered, and the error names the line.
pub(super) fn answer(
    source: impl Read,
    sink: impl Write,
    form: Form<'_>,
    evaluate: impl FnMut([u128; 3], u32) -> io::Result<Outcome>,
    report: impl FnMut(&Malformed),
) -> io::Result<Summary> {
    let operands: u32 = form.operands.iter().map(|kind| kind.bits()).sum();
    let once = operands <= 16 && form.random_bits == 0 && form.result.bits() <= 64;
    let mut answers = Answers {
        known: vec![None; if once { 1 << operands } else { 0 }],
        seed: match form.random {
            RandomSource::Seed(seed) => Some(Philox::new(seed, STREAM)),
            RandomSource::Column => None,
        },
        digits: form.result.digits(),
        form,
        evaluate,
        out: Vec::with_capacity(BUFFER + 64),
        sink,
        report,
        summary: Summary::default(),
    };
    each_line(source, &mut answers)?;
    answers.sink.flush()?;
    Ok(answers.summary)
}

/// Bytes gathered before they are written.
const BUFFER: usize = 1 << 20;

struct Answers<'a, W, E, F> {
    form: Form<'a>,
    evaluate: E,
    /// The results of narrow operands that have been met.
    known: Vec<Option<Rounded>>,
    seed: Option<Philox>,
    digits: usize,
    out: Vec<u8>,
    sink: W,
    report: F,
    summary: Summary,
}

impl<W, E: FnMut([u128; 3], u32) -> io::Result<Outcome>, F> Answers<'_, W, E, F> {
    /// The operands and the random word of a line, `None` if it is blank.
    #[inline]
    fn parse(&self, number: u64, line: &[u8]) -> Result<Option<([u128; 3], u32)>, Malformed> {
        let Form { operands: kinds, random_bits, .. } = self.form;
        let column = random_bits > 0 && self.seed.is_none();
        let expected = kinds.len() + usize::from(column);
        let mut words = Words::new(line);
        let mut found = 0;
        let mut next = |bits| match words.next() {
            Some(word) => {
                found += 1;
                hexadecimal(word, bits).map_err(|wrong| Malformed::new(number, wrong, word))
            }
            None => Err(Malformed::new(number, Wrong::Words { found, expected }, line)),
        };
        let mut operands = [0; 3];
        for (operand, kind) in operands.iter_mut().zip(kinds) {
            *operand = match next(kind.bits()) {
                Err(_) if Words::new(line).next().is_none() => return Ok(None),
                word => word?,
            };
        }
        let random = match (self.seed, column) {
            (Some(philox), _) if random_bits > 0 => philox.word(number - 1),
            (_, true) => (next(random_bits)? as u32) << (32 - random_bits),
            _ => 0,
        };
        match words.count() {
            0 => Ok(Some((operands, random))),
            more => {
                let wrong = Wrong::Words { found: expected + more, expected };
                Err(Malformed::new(number, wrong, line))
            }
        }
    }

    #[inline]
    fn result(&mut self, operands: [u128; 3], random: u32) -> io::Result<Outcome> {
        if self.known.is_empty() {
            return (self.evaluate)(operands, random);
        }
        let kinds = self.form.operands.iter().zip(operands);
        let at = kinds.fold(0, |at, (kind, word)| at << kind.bits() | word as usize);
        if let Some(Rounded { code, flags }) = self.known[at] {
            return Ok(Outcome { word: code.into(), flags });
        }
        let Outcome { word, flags } = (self.evaluate)(operands, random)?;
        self.known[at] = Some(Rounded { code: word as u64, flags });
        Ok(Outcome { word, flags })
    }
}

impl<W, E, F> Sink for Answers<'_, W, E, F>
where
    W: Write,
    E: FnMut([u128; 3], u32) -> io::Result<Outcome>,
    F: FnMut(&Malformed),
{
    #[inline]
    fn line(&mut self, number: u64, text: Option<&[u8]>) -> io::Result<ControlFlow<()>> {
        let parsed = match text {
            Some(line) => self.parse(number, line),
            None => Err(Malformed::new(number, Wrong::Long, b"")),
        };
        match parsed {
            Ok(Some((operands, random))) => {
                self.summary.converted += 1;
                let Outcome { word, flags } = match self.result(operands, random) {
                    Ok(outcome) => outcome,
                    Err(error) => {
                        // What was answered before stays answered.
                        self.idle()?;
                        return Err(io::Error::other(format!("line {number}: {error}")));
                    }
                };
                write_hexadecimal(&mut self.out, word, self.digits, false);
                if self.form.flags {
                    self.out.push(b' ');
                    write_hexadecimal(&mut self.out, flags.bits().into(), 2, false);
                }
            }
            Ok(None) => {}
            Err(malformed) => {
                self.summary.malformed += 1;
                (self.report)(&malformed);
                if self.form.strict {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        self.out.push(b'\n');
        if self.out.len() >= BUFFER {
            self.sink.write_all(&self.out)?;
            self.out.clear();
        }
        Ok(ControlFlow::Continue(()))
    }

    fn idle(&mut self) -> io::Result<()> {
        self.sink.write_all(&self.out)?;
        self.out.clear();
        self.sink.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;
    use crate::round::Flags;

    #[test]
    fn lines_before_an_error_are_answered() {
        let byte = Kind::Format(Format::E4M3FN);
        for operands in [&[byte][..], &[byte; 3]] {
            let form = Form {
                operands,
                result: byte,
                random_bits: 0,
                random: RandomSource::Column,
                flags: true,
                strict: false,
            };
            let evaluate = |words: [u128; 3], _| match words[0] {
                0x7F => Err(io::Error::other("no answer")),
                word => Ok(Outcome { word, flags: Flags::INEXACT }),
            };
            let line = |word: &str| [word].repeat(operands.len()).join(" ") + "\n";
            let source = ["1", "", "2", "7f", "3"].map(line).concat();
            let mut out = Vec::new();
            let error = answer(source.as_bytes(), &mut out, form, evaluate, |_| {}).unwrap_err();
            assert_eq!(String::from_utf8(out).unwrap(), "01 01\n\n02 01\n");
            assert_eq!(error.to_string(), "line 4: no answer");
        }
    }
}
