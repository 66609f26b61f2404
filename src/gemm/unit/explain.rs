//! A dot product step by step: what was aligned to what, which bits went, what was rounded.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::align::AlignedSum;
use super::factor::{Factor, FactorClass};
use super::parameters::Cut;
use crate::format::{Format, Value};
use crate::math::Operand;
use crate::round::{Exact, Rounding};
use crate::text::Short;

/// Which term of a sum.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Name {
    /// The product of the elements of this index.
    Product(usize),
    /// The exact sum of a group of products with its scales: the first index, and how many.
    Group(usize, usize),
    /// The addend c, or the result of the step before.
    Addend,
    /// The result of the fused step before, within one instruction.
    Partial,
    /// The sum of the products.
    Products,
    /// The sum of the products of even index.
    Even,
    /// The sum of the products of odd index.
    Odd,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        match self {
            Self::Product(k) => write!(text, "a{k}*b{k}")?,
            Self::Group(k, n) => write!(text, "{k}..{}", k + n - 1)?,
            Self::Addend => text.push('c'),
            Self::Partial => text.push_str("partial"),
            Self::Products => text.push_str("products"),
            Self::Even => text.push_str("even"),
            Self::Odd => text.push_str("odd"),
        }
        f.pad(&text)
    }
}

/// A term in its place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Placed {
    /// Which one.
    pub name: Name,
    /// The exact term.
    pub value: Factor,
    /// What alignment kept of it, in units of the sum's last place.
    pub kept: i64,
    /// Whether digits were cut off.
    pub lost: bool,
}

/// One thing that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Subnormal operands were read as zero.
    Zeroed {
        /// Terms that have one, as a factor or scale or by themselves.
        terms: Vec<Name>,
    },
    /// Terms were aligned, cut and added.
    Align {
        /// The exponent they were aligned to.
        exponent: i32,
        /// Fraction bits kept below it.
        fraction: u32,
        /// How they were cut.
        cut: Cut,
        /// The terms.
        terms: Vec<Placed>,
        /// Their sum.
        sum: AlignedSum,
    },
    /// Terms were cut at the last place of a register of fixed point and added to what it held.
    Register {
        /// What it held before, in units of its last place.
        before: i64,
        /// The terms.
        terms: Vec<Placed>,
        /// The sum.
        sum: i64,
        /// What it holds of that.
        kept: i64,
        /// The power of two of its last place.
        unit: i32,
    },
    /// Terms were added without loss.
    Exact {
        /// The terms.
        terms: Vec<(Name, Factor)>,
    },
    /// Infinities or NaN decided.
    Special {
        /// The terms that are no finite numbers.
        terms: Vec<(Name, Factor)>,
        /// The format of the result.
        format: Format,
        /// The result.
        code: u64,
    },
    /// A sum was rounded.
    Round {
        /// The sum.
        exact: Exact,
        /// The format it was rounded to.
        format: Format,
        /// By which mode.
        rounding: Rounding,
        /// The random word, where the mode is stochastic.
        word: Option<u32>,
        /// Whether it would be another number were it not below the smallest normal one.
        flushed: bool,
        /// The result.
        code: u64,
    },
    /// An IEEE operation, rounded once.
    Operate {
        /// Its name: add, mul or fma.
        operation: &'static str,
        /// Its operands.
        operands: Vec<Operand>,
        /// The format of its result.
        result: Format,
        /// The result.
        code: u64,
    },
}

/// Where events go; nothing is computed for a log that nobody reads.
pub(super) struct Log(Option<Vec<Event>>);

impl Log {
    /// One that keeps nothing.
    pub(super) const fn silent() -> Self {
        Self(None)
    }

    pub(super) const fn new() -> Self {
        Self(Some(Vec::new()))
    }

    pub(super) fn add(&mut self, event: impl FnOnce() -> Event) {
        if let Some(events) = &mut self.0 {
            events.push(event());
        }
    }

    pub(super) fn add_some(&mut self, event: impl FnOnce() -> Option<Event>) {
        if let Some(events) = &mut self.0 {
            events.extend(event());
        }
    }

    pub(super) fn into_events(self) -> Vec<Event> {
        self.0.unwrap_or_default()
    }
}

/// A dot product step by step; made by [`Unit::explain`](super::Unit::explain).
///
/// Its text has lines of up to about 80 characters; with a width, as in `{:40}`, terms that do not
/// fit take two lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// What happened, in order.
    pub events: Vec<Event>,
    /// The format of the result.
    pub format: Format,
    /// The result.
    pub code: u64,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = f.width().unwrap_or(usize::MAX);
        for event in &self.events {
            event.write(f, width)?;
        }
        write!(f, "result {}", Coded(self.format, self.code))
    }
}

impl Event {
    fn write(&self, f: &mut fmt::Formatter<'_>, width: usize) -> fmt::Result {
        match self {
            Self::Zeroed { terms } => {
                let mut words = alloc::vec![Short::new("subnormal operands read as zero in")];
                words.extend(terms.iter().map(|name| text(format_args!("{name}"))));
                wrapped(f, width, &words)
            }
            Self::Align { exponent, fraction, cut, terms, sum } => {
                let how = match cut {
                    Cut::Truncate => "truncated",
                    Cut::Floor => "cut toward -inf",
                    Cut::Sticky => "truncated with a sticky bit",
                    Cut::Exact => "exact",
                };
                wrapped(
                    f,
                    width,
                    &[
                        Short::new("align to"),
                        text(format_args!("2^{exponent},")),
                        text(format_args!("{fraction} fraction bits,")),
                        text(format_args!("{how};")),
                        text(format_args!("unit 2^{}", sum.unit)),
                    ],
                )?;
                let mut zeros = 0;
                for Placed { name, value, kept, lost } in terms {
                    if value.is_zero() {
                        zeros += 1;
                        continue;
                    }
                    let number = text(format_args!("{}", Exactly(*value)));
                    let exponent = text(format_args!("e {}", value.exponent));
                    let note = match (*kept, lost) {
                        (0, true) => "all bits cut",
                        (_, true) => "bits cut",
                        _ => "",
                    };
                    let one = 2 + 9 + 2 + 26 + 2 + 7 + 2 + 14 + 2 + note.len();
                    if one <= width {
                        let line = text2(format_args!(
                            "  {name:<9}  {number:<26}  {exponent:<7}  {kept:>14}  {note}"
                        ));
                        writeln!(f, "{}", line.trim_end())?;
                    } else {
                        writeln!(f, "  {name}  {number}")?;
                        let line = text2(format_args!("    {exponent}  kept {kept}  {note}"));
                        writeln!(f, "{}", line.trim_end())?;
                    }
                }
                if zeros > 0 {
                    writeln!(f, "  {zeros} {}", if zeros == 1 { "zero" } else { "zeros" })?;
                }
                let total = Value::Finite {
                    negative: sum.sum < 0,
                    significand: sum.sum.unsigned_abs(),
                    exponent: sum.unit,
                };
                writeln!(f, "  sum {} x 2^{} = {total}", sum.sum, sum.unit)
            }
            Self::Register { before, terms, sum, kept, unit } => {
                writeln!(f, "register {before} x 2^{unit}")?;
                for Placed { name, value, kept, lost } in
                    terms.iter().filter(|x| !x.value.is_zero())
                {
                    let number = text(format_args!("{}", Exactly(*value)));
                    let note = if *lost { "  bits cut" } else { "" };
                    writeln!(f, "  {name:<9}  {number:<26}  {kept:>14}{note}")?;
                }
                if kept == sum {
                    return writeln!(f, "  sum {sum} x 2^{unit}");
                }
                writeln!(f, "  sum {sum} x 2^{unit}, beyond the register's ends: {kept}")
            }
            Self::Exact { terms } => {
                writeln!(f, "add exactly")?;
                write_terms(f, terms)
            }
            Self::Special { terms, format, code } => {
                writeln!(f, "infinity or NaN")?;
                write_terms(f, terms)?;
                writeln!(f, "  -> {}", Coded(*format, *code))
            }
            Self::Round { exact, format, rounding, word, flushed, code } => {
                if let (Some(word), Rounding::Stochastic { bits, .. }) = (word, rounding) {
                    let random = u64::from(*word) << bits >> 32;
                    writeln!(f, "random word 0x{word:08x}: {random} of {}", 1_u64 << bits)?;
                }
                let note = match changed(*exact, *format, *code) {
                    _ if *flushed => ", flushed",
                    true => "",
                    false => ", exact",
                };
                writeln!(f, "round {rounding} to {format}: {}{note}", Coded(*format, *code))
            }
            Self::Operate { operation, operands, result, code } => {
                let mut parts: Vec<Short> = [Short::new(operation)].into();
                parts.extend(operands.iter().map(|x| text(format_args!("{}", x.value()))));
                parts.push(text(format_args!("= {}", result.decode(*code))));
                wrapped(f, width, &parts)
            }
        }
    }
}

fn write_terms(f: &mut fmt::Formatter<'_>, terms: &[(Name, Factor)]) -> fmt::Result {
    for (name, term) in terms.iter().filter(|(_, term)| !term.is_zero()) {
        writeln!(f, "  {name:<9}  {}", Exactly(*term))?;
    }
    Ok(())
}

/// Words on as many lines as the width asks for.
fn wrapped(f: &mut fmt::Formatter<'_>, width: usize, words: &[Short]) -> fmt::Result {
    let mut used = 0;
    for (i, word) in words.iter().enumerate() {
        let len = word.as_str().chars().count();
        if i > 0 && used + 1 + len > width {
            f.write_str("\n    ")?;
            used = 4;
        } else if i > 0 {
            f.write_str(" ")?;
            used += 1;
        }
        write!(f, "{word}")?;
        used += len;
    }
    writeln!(f)
}

fn text(parts: fmt::Arguments<'_>) -> Short {
    Short::new(&text2(parts))
}

fn text2(parts: fmt::Arguments<'_>) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = text.write_fmt(parts);
    text
}

/// Whether a rounded code is another number than the exact one.
fn changed(exact: Exact, format: Format, code: u64) -> bool {
    let Value::Finite { significand, exponent, .. } = format.decode(code) else { return true };
    if exact.sticky {
        return true;
    }
    if exact.significand == 0 || significand == 0 {
        return exact.significand != u128::from(significand);
    }
    let odd = |significand: u128, exponent: i32| {
        let zeros = significand.trailing_zeros();
        (significand >> zeros, exponent + zeros as i32)
    };
    odd(exact.significand, exact.exponent) != odd(significand.into(), exponent)
}

/// A term: its number, or what else it is.
struct Exactly(Factor);

impl fmt::Display for Exactly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.class {
            // The limit of a product is infinity though its digits are there.
            FactorClass::Infinite => write!(f, "{}inf", if self.0.negative { "-" } else { "" }),
            _ => write!(f, "{}", self.0.value()),
        }
    }
}

/// A code and its number: `0x3f800000 = 1`. What has more than 17 digits is written in hexadecimal,
/// and then as short as reads back.
///
/// ```
/// use exmy::format::Format;
/// use exmy::gemm::unit::Coded;
///
/// assert_eq!(Coded(Format::E4M3FN, 0x7E).to_string(), "0x7e = 448");
/// let tenth = Coded(Format::F32, 0x3DCC_CCCD).to_string();
/// assert_eq!(tenth, "0x3dcccccd = 0x1.99999ap-4 (0.1)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Coded(pub Format, pub u64);

impl fmt::Display for Coded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(format, code) = *self;
        let digits = format.bits().div_ceil(4) as usize;
        let exact = text2(format_args!("{}", format.decode(code)));
        write!(f, "0x{code:0digits$x} = {exact}")?;
        if exact.contains("0x") {
            write!(f, " ({:?})", format.display(code))?;
        }
        Ok(())
    }
}
