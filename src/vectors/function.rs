//! A function under test: an operation, the formats of its operands and of its result, written as
//! Berkeley TestFloat 3e writes it.
//!
//! TestFloat's names are `F_add`, `F_mulAdd`, `F_roundToInt`, `F_le_quiet`, `F_to_G`, `F_to_i32`,
//! `ui64_to_F` and so on. Operations that round to an integer also have names with a mode:
//! `F_to_i32_r_minMag` (inexact not raised), `F_to_i32_rx_minMag` (raised), `F_roundToInt_r_minMag`
//! and `F_roundToInt_x`. Here `F` and `G` are any formats under any of their names, integers have
//! any width from 1 to 128 bits, and two forms are added for mixed formats: `F_add_to_G`, and a
//! list of operand formats, `F,G,H_mulAdd_to_I`.
//!
//! ```
//! use exmy::vectors::evaluate::Settings;
//! use exmy::vectors::function::TestFunction;
//!
//! let fma: TestFunction = "float8_e4m3fn_mulAdd_to_f16".parse()?;
//! assert_eq!(fma.to_string(), "e4m3_mulAdd_to_f16");
//! let evaluate = fma.evaluator(&Settings::default())?;
//! let outcome = evaluate.evaluate([0x38, 0x40, 0x38], 0)?; // 1 * 2 + 1
//! assert_eq!((outcome.word, outcome.flags.bits()), (0x4200, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::str::FromStr;

pub use super::operation::Operation;
use super::operation::Returns;
use crate::error::Error;
use crate::format::Format;
use crate::round::Rounding;
use crate::text::{Nearest, Short};

/// What an operand or a result is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// A code of a format.
    Format(Format),
    /// An integer, two's complement if signed.
    Integer {
        /// The width, 1 to 128.
        bits: u32,
        /// Whether there are negative ones.
        signed: bool,
    },
    /// 0 or 1.
    Truth,
}

impl Kind {
    /// Bits of a word.
    pub fn bits(self) -> u32 {
        match self {
            Self::Format(format) => format.bits(),
            Self::Integer { bits, .. } => bits,
            Self::Truth => 1,
        }
    }

    /// Hexadecimal digits of a word.
    pub fn digits(self) -> usize {
        self.bits().div_ceil(4) as usize
    }

    /// A mask of the bits of a word.
    pub fn mask(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }

    /// An integer's name or a format's.
    fn parse(text: &str) -> Option<Self> {
        Self::integer(text).or_else(|| text.parse().ok().map(Self::Format))
    }

    fn integer(text: &str) -> Option<Self> {
        let (signed, digits) = match text.as_bytes() {
            [b'u', b'i', ..] => (false, &text[2..]),
            [b'u', ..] => (false, &text[1..]),
            [b'i', ..] => (true, &text[1..]),
            _ => return None,
        };
        let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
        let bits = digits.parse().ok().filter(|bits| plain && (1..=128).contains(bits))?;
        Some(Self::Integer { bits, signed })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(format) => format.fmt(f),
            Self::Integer { bits, signed: true } => write!(f, "i{bits}"),
            Self::Integer { bits, signed: false } => write!(f, "ui{bits}"),
            Self::Truth => f.write_str("bool"),
        }
    }
}

/// An operation on operands of stated formats.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TestFunction {
    operation: Operation,
    operands: [Kind; 3],
    result: Kind,
    rounding: Option<Rounding>,
    exact: Option<bool>,
}

impl TestFunction {
    /// What is computed.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// What the operands are, one to three.
    pub fn operands(&self) -> &[Kind] {
        &self.operands[..self.operation.arity()]
    }

    /// What the result is.
    pub fn result(&self) -> Kind {
        self.result
    }

    /// The rounding mode that the name fixes (`_r_minMag`).
    pub fn rounding(&self) -> Option<Rounding> {
        self.rounding
    }

    /// Whether the name fixes that rounding to an integer raises inexact (`_rx_minMag`) or does
    /// not (`_r_minMag`).
    pub fn exact(&self) -> Option<bool> {
        self.exact
    }

    /// From the operand list and what follows it; `None` if that is no function.
    fn assemble(operands: &str, rest: &str) -> Option<Self> {
        let mut kinds = [Kind::Truth; 3];
        let mut given = 0;
        for name in operands.split(',') {
            *kinds.get_mut(given)? = Kind::parse(name)?;
            given += 1;
        }
        let new = |operation, operands, result| Self {
            operation,
            operands,
            result,
            rounding: None,
            exact: None,
        };
        if let (Some(to), 1) = (rest.strip_prefix("to_"), given) {
            let to = Kind::parse(to)?;
            let operation = match (kinds[0], to) {
                (Kind::Format(_), Kind::Format(_)) => Operation::Convert,
                (Kind::Format(_), _) => Operation::ToInteger,
                (_, Kind::Format(_)) => Operation::FromInteger,
                _ => return None,
            };
            return Some(new(operation, [kinds[0]; 3], to));
        }
        let (operation, to) = match Operation::from_name(rest) {
            Some(operation) => (operation, None),
            None => rest.match_indices("_to_").find_map(|(i, _)| {
                let operation = Operation::from_name(&rest[..i])?;
                let to = rest[i + 4..].parse().ok()?;
                Some((operation, Some(to)))
            })?,
        };
        let arity = operation.arity();
        if given == 1 {
            kinds = [kinds[0]; 3];
            if operation == Operation::ScaleB {
                kinds[1] = Kind::Integer { bits: 32, signed: true };
            }
        } else if given != arity {
            return None;
        }
        let first = kinds[0];
        kinds[arity..].fill(first);
        for (i, kind) in kinds[..arity].iter().enumerate() {
            let integer = Kind::Integer { bits: 32, signed: true };
            match kind {
                Kind::Format(_) if operation != Operation::ScaleB || i == 0 => {}
                _ if operation == Operation::ScaleB && i == 1 && *kind == integer => {}
                _ => return None,
            }
        }
        let numbers = if operation == Operation::ScaleB { 1 } else { arity };
        let uniform = kinds[..numbers].iter().all(|kind| *kind == kinds[0]);
        let result = match (operation.returns(), to) {
            (Returns::Truth, None) => Kind::Truth,
            (Returns::Number, Some(to)) => Kind::Format(to),
            (Returns::Number | Returns::Same, None) if uniform => kinds[0],
            _ => return None,
        };
        Some(new(operation, kinds, result))
    }

    /// Why a name is none.
    fn explain(body: &str) -> Error {
        let splits = || body.match_indices('_').map(|(i, _)| (&body[..i], &body[i + 1..]));
        let list = |text: &str| text.split(',').all(|name| Kind::parse(name).is_some());
        let Some((operands, rest)) = splits().rfind(|(head, _)| list(head)) else {
            let first = body.split(['_', ',']).next().unwrap_or_default();
            return no_format(first, body);
        };
        let name = Short::new(rest);
        if let Some(to) = rest.strip_prefix("to_") {
            return match Kind::parse(to) {
                None => no_format(to, to),
                Some(_) => {
                    Error::new(format!("{:?} converts no format", Short::new(body).as_str())).hint(
                        "one operand, and a format on at least one side: e4m3_to_i8, i8_to_e4m3fn",
                    )
                }
            };
        }
        let operation = Operation::from_name(rest).or_else(|| {
            rest.match_indices("_to_").find_map(|(i, _)| Operation::from_name(&rest[..i]))
        });
        let Some(operation) = operation else {
            let nearest = Nearest::new(rest, Operation::names());
            let guess = match nearest.names() {
                [] => String::new(),
                _ => format!("; did you mean {nearest}?"),
            };
            let names = Operation::names().collect::<Vec<_>>().join(", ");
            return Error::new(format!("no operation is called {:?}{guess}", name.as_str()))
                .hint(format!("F_to_G, and after a format: {names}"));
        };
        let to = rest.find("_to_").map(|i| &rest[i + 4..]);
        if let Some(to) = to.filter(|to| to.parse::<Format>().is_err()) {
            return no_format(to, to);
        }
        let (given, arity) = (operands.split(',').count(), operation.arity());
        let what = Short::new(body);
        if given != 1 && given != arity {
            Error::new(format!("{:?} names {given} operand formats", what.as_str()))
                .hint(format!("{} takes {arity}: name one for all, or each", operation.name()))
        } else if to.is_some() {
            Error::new(format!("{:?} names a result format", what.as_str()))
                .hint(format!("that of {} is fixed; leave it away", operation.name()))
        } else if operands.split(',').any(|name| Kind::integer(name).is_some()) {
            Error::new(format!("{:?} is arithmetic on integers", what.as_str()))
                .hint("only conversions and the second operand of scaleB (i32) are integers")
        } else {
            Error::new(format!("{:?} mixes operand formats and names no result", what.as_str()))
                .hint(format!("add one, for example {what}_to_f32"))
        }
    }
}

/// Why a format's name is none; two of TestFloat's have messages of their own, and integers of other widths.
fn no_format(name: &str, rest: &str) -> Error {
    let lower = name.to_ascii_lowercase();
    if ["f128", "float128", "binary128", "extf80", "extfloat80", "x87"].contains(&lower.as_str()) {
        return Error::new(format!(
            "{lower} is not a format of exmy, whose formats have at most 16 exponent and 52 \
             trailing significand bits"
        ))
        .hint("of TestFloat's formats f16, bf16, f32 and f64 work");
    }
    let digits = ["ui", "u", "i"].iter().find_map(|mark| lower.strip_prefix(mark));
    if digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit())) {
        return Error::new(format!("no integer is called {:?}", Short::new(name).as_str()))
            .hint("integers have 1 to 128 bits: i1 to i128, ui1 to ui128");
    }
    match name.parse::<Format>() {
        Err(error) => Error::from_cause(error),
        // Only integers were found, or a list with a hole.
        Ok(_) => Error::new(format!("{:?} is no function", Short::new(rest).as_str()))
            .hint("a function is written like f16_add, e4m3_to_e2m1 or e4m3,e5m2_mul_to_f32"),
    }
}

/// TestFloat's names of rounding modes, and this crate's.
const MODES: [(&str, Rounding); 6] = [
    ("near_even", Rounding::TiesToEven),
    ("near_maxMag", Rounding::TiesToAway),
    ("minMag", Rounding::TowardZero),
    ("min", Rounding::TowardNegative),
    ("max", Rounding::TowardPositive),
    ("odd", Rounding::ToOdd),
];

/// Cuts `_r_MODE`, `_rx_MODE` or `_x` off the end.
fn suffix(text: &str) -> (&str, Option<Rounding>, Option<bool>) {
    for (mark, exact) in [("_r_", false), ("_rx_", true)] {
        if let Some(i) = text.rfind(mark) {
            let name = &text[i + mark.len()..];
            let mode = MODES.iter().find(|(mode, _)| mode.eq_ignore_ascii_case(name));
            if let Some((_, mode)) = mode {
                return (&text[..i], Some(*mode), Some(exact));
            }
            if let Some(mode) = Rounding::DETERMINISTIC.iter().find(|m| m.to_string() == name) {
                return (&text[..i], Some(*mode), Some(exact));
            }
        }
    }
    match text.strip_suffix("_x") {
        Some(body) => (body, None, Some(true)),
        None => (text, None, None),
    }
}

impl FromStr for TestFunction {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (body, rounding, exact) = suffix(text);
        let splits = body.match_indices('_').map(|(i, _)| (&body[..i], &body[i + 1..]));
        let mut found = splits.filter_map(|(operands, rest)| Self::assemble(operands, rest));
        let Some(function) = found.next() else {
            return Err(Self::explain(body));
        };
        if exact.is_some() && !function.operation.rounds_to_integer() {
            return Err(Error::new(format!("{:?} fixes a mode", Short::new(text).as_str()))
                .hint("only conversions to integers and roundToInt do; use --round for others"));
        }
        Ok(Self { rounding, exact, ..function })
    }
}

impl fmt::Display for TestFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operands = self.operands();
        write!(f, "{}", operands[0])?;
        let scale = self.operation == Operation::ScaleB;
        let mixed = !scale && operands.iter().any(|kind| *kind != operands[0]);
        if mixed {
            for kind in &operands[1..] {
                write!(f, ",{kind}")?;
            }
        }
        write!(f, "_{}", self.operation.name())?;
        let conversion = matches!(
            self.operation,
            Operation::Convert | Operation::ToInteger | Operation::FromInteger
        );
        if conversion {
            write!(f, "_{}", self.result)?;
        } else if self.operation.returns() == Returns::Number
            && (mixed || self.result != operands[0])
        {
            write!(f, "_to_{}", self.result)?;
        }
        match (self.rounding, self.exact) {
            (Some(mode), exact) => {
                let name = MODES.iter().find(|(_, known)| *known == mode);
                let x = if exact == Some(true) { "x" } else { "" };
                match name {
                    Some((name, _)) => write!(f, "_r{x}_{name}"),
                    None => write!(f, "_r{x}_{mode}"),
                }
            }
            (None, Some(true)) => f.write_str("_x"),
            _ => Ok(()),
        }
    }
}

impl Kind {
    /// Whether a word is NaN.
    pub fn is_nan(self, word: u128) -> bool {
        match self {
            Self::Format(format) => format.decode(word as u64).is_nan(),
            _ => false,
        }
    }
}
