//! A stream of codes of one format, converted to another line by line.
//!
//! A line holds one code in hexadecimal; so does the line it is answered with, zero-padded to the
//! target's width, and a blank line is answered with a blank one. A line that is no code is
//! reported and answered with a blank line too, so that line N of the output always belongs to
//! line N of the input.
//!
//! Stochastic modes take their random bits from Philox (the [`STREAM`] of a seed, element = line
//! number minus 1). Or they read them from a second column, so that hardware can be given the same
//! ones.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;

use super::lines::{Malformed, Sink, Words, Wrong, each_line, hexadecimal, write_hexadecimal};
use crate::format::Format;
use crate::math::{Context, Operand};
use crate::random::{Philox, Stream};
use crate::round::{Rounded, Rounding, Rules};

/// The random stream of conversions and test vectors.
pub const STREAM: Stream = Stream::new("golden");

/// Where stochastic modes take their random bits from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RandomSource {
    /// The [`STREAM`] of this seed: line `n` uses the top bits of word `n - 1`.
    Seed(u64),
    /// A second word on each line holds the N-bit random integer.
    Column,
}

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

/// What became of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Codes converted.
    pub converted: u64,
    /// Lines that hold no code.
    pub malformed: u64,
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
    let context = Context::new(options.to, options.rules);
    let bits = match options.rules.rounding {
        Rounding::Stochastic { bits, .. } => u32::from(bits),
        _ => 0,
    };
    let table = if options.from.bits() <= 16 && bits == 0 {
        options.from.codes().map(|code| context.convert(Operand::new(options.from, code))).collect()
    } else {
        Vec::new()
    };
    let seed = match options.random {
        RandomSource::Seed(seed) => Some(Philox::new(seed, STREAM)),
        RandomSource::Column => None,
    };
    let mut converter = LineConverter {
        options: *options,
        context,
        table,
        seed,
        bits,
        digits: options.to.bits().div_ceil(4) as usize,
        out: Vec::with_capacity(BUFFER + 64),
        sink,
        report,
        summary: Summary::default(),
    };
    each_line(source, &mut converter)?;
    converter.sink.flush()?;
    Ok(converter.summary)
}

/// Bytes gathered before they are written.
const BUFFER: usize = 1 << 20;

struct LineConverter<W, F> {
    options: ConvertOptions,
    context: Context,
    /// The result of every code, for narrow sources.
    table: Vec<Rounded>,
    seed: Option<Philox>,
    /// Random bits a conversion takes.
    bits: u32,
    digits: usize,
    out: Vec<u8>,
    sink: W,
    report: F,
    summary: Summary,
}

impl<W: Write, F> LineConverter<W, F> {
    /// The code and the random word of a line, `None` if it is blank.
    #[inline]
    fn parse(&self, number: u64, line: &[u8]) -> Result<Option<(u64, u32)>, Malformed> {
        let mut words = Words::new(line);
        let Some(word) = words.next() else { return Ok(None) };
        let code = hexadecimal(word, self.options.from.bits())
            .map_err(|wrong| Malformed::new(number, wrong, word))?;
        let mut random = 0;
        let mut expected = 1;
        if self.bits > 0 {
            if let Some(philox) = self.seed {
                random = philox.word(number - 1);
            } else {
                expected = 2;
                let word = words.next().ok_or_else(|| {
                    Malformed::new(number, Wrong::Words { found: 1, expected: 2 }, line)
                })?;
                let value = hexadecimal(word, self.bits)
                    .map_err(|wrong| Malformed::new(number, wrong, word))?;
                random = (value as u32) << (32 - self.bits);
            }
        }
        match words.count() {
            0 => Ok(Some((code as u64, random))),
            more => {
                let wrong = Wrong::Words { found: expected + more, expected };
                Err(Malformed::new(number, wrong, line))
            }
        }
    }
}

impl<W: Write, F: FnMut(&Malformed)> Sink for LineConverter<W, F> {
    #[inline]
    fn line(&mut self, number: u64, text: Option<&[u8]>) -> io::Result<ControlFlow<()>> {
        let parsed = match text {
            Some(line) => self.parse(number, line),
            None => Err(Malformed::new(number, Wrong::Long, b"")),
        };
        match parsed {
            Ok(Some((code, random))) => {
                self.summary.converted += 1;
                let Rounded { code, flags } = match self.table.get(code as usize) {
                    Some(rounded) => *rounded,
                    None => {
                        let operand = Operand::new(self.options.from, code);
                        self.context.with_random(random).convert(operand)
                    }
                };
                write_hexadecimal(&mut self.out, code.into(), self.digits, false);
                if self.options.flags {
                    self.out.push(b' ');
                    write_hexadecimal(&mut self.out, flags.bits().into(), 2, false);
                }
            }
            Ok(None) => {}
            Err(malformed) => {
                self.summary.malformed += 1;
                (self.report)(&malformed);
                if self.options.strict {
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
