//! Case lines of Berkeley TestFloat 3e, and the verdict on them.
//!
//! A line holds the operands, the result and the exception flags, all in hexadecimal, as
//! `testfloat_gen FUNCTION` prints them and `testfloat_ver FUNCTION` reads them. Under a stochastic
//! rounding mode, which TestFloat does not have, the N-bit random integer stands between operands
//! and result. Results are compared bit for bit, except that any NaN equals any NaN unless NaN
//! codes are asked for; flags are compared but for "saturated", which TestFloat does not have.

use std::fmt;
use std::io::{self, Read};
use std::ops::ControlFlow;

pub use super::evaluate::Case;
use super::evaluate::{Evaluator, Outcome};
use super::exact;
use super::function::{Kind, TestFunction};
use super::lines::{Malformed, Sink, Words, Wrong, each_line, hexadecimal};
use crate::round::Flags;

impl Case {
    /// Reads a line of cases of `function`, whose rounding mode takes `random_bits` bits.
    ///
    /// # Errors
    /// If the line has another number of words, or a word is not hexadecimal or has bits beyond
    /// its width (flags: the five of IEEE 754).
    pub fn parse(
        function: &TestFunction,
        random_bits: u32,
        number: u64,
        line: &[u8],
    ) -> Result<Self, Malformed> {
        let mut words = Words::new(line);
        let expected = function.operands().len() + usize::from(random_bits > 0) + 2;
        let mut found = 0;
        let mut next = |bits| match words.next() {
            Some(word) => {
                found += 1;
                hexadecimal(word, bits).map_err(|wrong| Malformed::new(number, wrong, word))
            }
            None => Err(Malformed::new(number, Wrong::Words { found, expected }, line)),
        };
        let mut operands = [0; 3];
        for (word, kind) in operands.iter_mut().zip(function.operands()) {
            *word = next(kind.bits())?;
        }
        let random = match random_bits {
            0 => 0,
            bits => (next(bits)? as u32) << (32 - bits),
        };
        let result = next(function.result().bits())?;
        let flags = next(5)? as u8;
        match words.count() {
            0 => Ok(Self { operands, random, result, flags }),
            more => {
                let wrong = Wrong::Words { found: expected + more, expected };
                Err(Malformed::new(number, wrong, line))
            }
        }
    }
}

/// A case whose result or flags are not those computed.
#[derive(Clone, Copy, Debug)]
pub struct LineMismatch<'a> {
    /// The line, from 1.
    pub line: u64,
    /// What the line says.
    pub case: Case,
    /// What is right.
    pub computed: Outcome,
    /// What was evaluated.
    pub evaluator: &'a Evaluator,
}

impl fmt::Display for LineMismatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, case, computed, evaluator } = self;
        let function = evaluator.function();
        write!(f, "line {line}: {function}")?;
        for (kind, word) in function.operands().iter().zip(case.operands) {
            write!(f, " {word:0digits$x}", digits = kind.digits())?;
        }
        let bits = evaluator.random_bits();
        if bits > 0 {
            let digits = bits.div_ceil(4) as usize;
            write!(f, " R={:0digits$x}", case.random >> (32 - bits))?;
        }
        f.write_str("\n  operands  ")?;
        for (i, (kind, word)) in function.operands().iter().zip(case.operands).enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{}", exact::number(*kind, word))?;
        }
        if let Some(value) = exact::value(evaluator, case) {
            write!(f, "\n  exact     {value}")?;
        }
        let result = function.result();
        for (label, word, flags) in [
            ("given   ", case.result, case.flags),
            ("computed", computed.word, computed.flags.ieee().bits()),
        ] {
            let (number, digits) = (exact::number(result, word), result.digits());
            write!(f, "\n  {label}  {word:0digits$x} = {number}, flags {flags:02x}")?;
            write!(f, " {}", FlagNames(flags))?;
        }
        Ok(())
    }
}

/// Flags by TestFloat's names.
struct FlagNames(u8);

impl fmt::Display for FlagNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Flags::INEXACT, "inexact"),
            (Flags::UNDERFLOW, "underflow"),
            (Flags::OVERFLOW, "overflow"),
            (Flags::DIVIDE_BY_ZERO, "infinite"),
            (Flags::INVALID, "invalid"),
        ];
        let mut between = "";
        f.write_str("(")?;
        for (flag, name) in names {
            if self.0 & flag.bits() != 0 {
                write!(f, "{between}{name}")?;
                between = " ";
            }
        }
        f.write_str(if between.is_empty() { "none)" } else { ")" })
    }
}

/// How a stream is judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Strictness {
    /// Whether a NaN result must have the right code too.
    pub nan_codes: bool,
    /// Whether the first malformed line ends the stream.
    pub lines: bool,
}

/// What became of a stream of cases.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinesVerdict {
    /// Cases as computed.
    pub passed: u64,
    /// Cases that differ.
    pub failed: u64,
    /// Lines that are no cases.
    pub malformed: u64,
}

/// What a stream has in it that a person should see.
#[derive(Clone, Copy, Debug)]
pub enum Finding<'a> {
    /// A case that differs.
    Mismatch(&'a LineMismatch<'a>),
    /// A line that is no case.
    Malformed(&'a Malformed),
}

/// Judges every line of `source`; blank ones are passed over. What is wrong goes to `report`,
/// which may end the stream.
///
/// # Errors
/// Those of reading, and of `report`; and an elementary function that cannot be decided.
pub fn verify(
    evaluator: &Evaluator,
    strictness: Strictness,
    source: impl Read,
    report: impl FnMut(Finding<'_>) -> io::Result<ControlFlow<()>>,
) -> io::Result<LinesVerdict> {
    let mut judge = Judge {
        evaluator,
        random_bits: evaluator.random_bits(),
        result: evaluator.function().result(),
        strictness,
        report,
        verdict: LinesVerdict::default(),
    };
    each_line(source, &mut judge)?;
    Ok(judge.verdict)
}

struct Judge<'a, F> {
    evaluator: &'a Evaluator,
    random_bits: u32,
    result: Kind,
    strictness: Strictness,
    report: F,
    verdict: LinesVerdict,
}

impl<F> Judge<'_, F> {
    fn agree(&self, case: &Case, computed: Outcome) -> bool {
        let words = case.result == computed.word
            || (!self.strictness.nan_codes
                && self.result.is_nan(case.result)
                && self.result.is_nan(computed.word));
        words && case.flags == computed.flags.ieee().bits()
    }
}

impl<F: FnMut(Finding<'_>) -> io::Result<ControlFlow<()>>> Sink for Judge<'_, F> {
    #[inline]
    fn line(&mut self, number: u64, text: Option<&[u8]>) -> io::Result<ControlFlow<()>> {
        let function = self.evaluator.function();
        let case = match text {
            Some(line) => Case::parse(function, self.random_bits, number, line),
            None => Err(Malformed::new(number, Wrong::Long, b"")),
        };
        match case {
            Ok(case) => {
                let computed = self.evaluator.evaluate(case.operands, case.random);
                let computed = computed.map_err(io::Error::other)?;
                if self.agree(&case, computed) {
                    self.verdict.passed += 1;
                    return Ok(ControlFlow::Continue(()));
                }
                self.verdict.failed += 1;
                let evaluator = self.evaluator;
                let mismatch = LineMismatch { line: number, case, computed, evaluator };
                (self.report)(Finding::Mismatch(&mismatch))
            }
            Err(malformed) => {
                if text.is_some_and(|line| Words::new(line).next().is_none()) {
                    return Ok(ControlFlow::Continue(()));
                }
                self.verdict.malformed += 1;
                let flow = (self.report)(Finding::Malformed(&malformed))?;
                Ok(if self.strictness.lines { ControlFlow::Break(()) } else { flow })
            }
        }
    }
}
