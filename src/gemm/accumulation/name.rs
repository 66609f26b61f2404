//! The textual form of accumulations; the parent module has the grammar.

use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

use super::{Accumulation, Order, Sum, TeAlpha};
use crate::format::Format;
#[cfg(feature = "std")]
use crate::gemm::unit::Description;
use crate::gemm::unit::{Model, Preset, UnitError};
use crate::quantizer::Cast;
use crate::text::{ParseFormatError, Short, UnknownName};

const FORMS: &str = "exact, fma, mul-add, pairwise, blockedN (the last four with an accumulator \
                     such as :bf16 or :e8m13@rtz), promoteN(SUM), te-nvfp4, te-nvfp4-kernel, or a \
                     matrix unit such as hopper, blackwell or fast";

/// Names that a wrong one is compared with.
const NAMES: [&str; 8] = [
    "exact",
    "fma",
    "mul-add",
    "pairwise",
    "blocked256",
    "promote128(fma:e8m13@rtz)",
    "te-nvfp4",
    "te-nvfp4-kernel",
];

/// Why a text is no accumulation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseAccumulationError {
    /// There is no such name.
    Unknown(Box<UnknownName>),
    /// The accumulator is no format.
    Format(Box<ParseFormatError>),
    /// A suffix of the accumulator is neither a rounding mode nor an overflow policy, or the second
    /// of its kind.
    Suffix(Box<UnknownName>),
    /// The number of elements is missing or not from 1 to 2^31.
    Count(Short),
    /// An accumulator where there is none: `exact:bf16`.
    NoAccumulator(Short),
    /// The part of a promotion is not in parentheses, or is no sum.
    Part(Short),
    /// An accumulator without zero or sign.
    Accumulator(Format),
    /// A setting of a matrix unit is none.
    Unit(Box<UnitError>),
}

impl fmt::Display for ParseAccumulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(error) | Self::Suffix(error) => error.fmt(f),
            Self::Format(error) => error.fmt(f),
            Self::Count(text) => write!(
                f,
                "{text:?}: blockedN and promoteN(SUM) take a number of elements from 1 to \
                 2147483648, as in blocked256"
            ),
            Self::NoAccumulator(text) => write!(
                f,
                "{text:?}: this accumulation has no accumulator to choose; the format of its result \
                 is the output's"
            ),
            Self::Part(text) => write!(
                f,
                "{text:?}: promoteN takes a sum in parentheses, as promote128(fma:e8m13@rtz)"
            ),
            Self::Unit(error) => error.fmt(f),
            Self::Accumulator(format) => {
                write!(f, "{format} accumulators: an accumulator has a sign and a zero")
            }
        }
    }
}

impl core::error::Error for ParseAccumulationError {}

/// The number behind a word: `256` of `blocked256`.
fn count(text: &str, word: &str) -> Option<Result<u32, ParseAccumulationError>> {
    let head = text.get(..word.len())?;
    let digits = head.eq_ignore_ascii_case(word).then(|| &text[word.len()..])?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    let number = digits.parse().ok().filter(|n| plain && (1..=1 << 31).contains(n));
    Some(number.ok_or(ParseAccumulationError::Count(Short::new(text))))
}

/// An accumulator: `FORMAT[@MODE][@POLICY]`, or binary32 if there is none.
fn accumulator(text: Option<&str>) -> Result<Cast, ParseAccumulationError> {
    let Some(text) = text else { return Ok(Cast::new(Format::F32)) };
    let mut parts = text.split('@');
    let format = parts.next().unwrap_or_default();
    let format: Format =
        format.parse().map_err(|error| ParseAccumulationError::Format(Box::new(error)))?;
    if !format.is_signed() || !format.has_zero() {
        return Err(ParseAccumulationError::Accumulator(format));
    }
    let mut cast = Cast::new(format);
    let (mut rounding, mut overflow) = (None, None);
    for part in parts {
        if rounding.is_none() && part.parse().is_ok_and(|mode| rounding.replace(mode).is_none()) {
            cast.rounding = rounding.unwrap_or(cast.rounding);
        } else if overflow.is_none()
            && part.parse().is_ok_and(|policy| overflow.replace(policy).is_none())
        {
            cast.overflow = overflow.unwrap_or(cast.overflow);
        } else {
            let names = ["rne", "rna", "rnz", "rtz", "rup", "rdn", "raz", "odd", "sr8", "sr16"];
            let policies = ["sat-none", "sat-finite", "sat-propagate", "to-nan", "to-inf", "onnx"];
            return Err(ParseAccumulationError::Suffix(Box::new(UnknownName::new(
                "suffix of an accumulator",
                part,
                names.into_iter().chain(policies),
                "one rounding mode (rne, rna, rnz, rtz, rup, rdn, raz, odd, srN[a|b|c]) and one \
                 overflow policy (sat-none, sat-finite, sat-propagate, to-nan, to-inf, onnx)",
            ))));
        }
    }
    Ok(cast)
}

/// A text before its accumulator, and the accumulator: cut at the first colon outside of
/// parentheses.
fn cut(text: &str) -> (&str, Option<&str>) {
    let inside = text.rfind(')').map_or(0, |at| at + 1);
    match text[inside..].find(':') {
        Some(at) => (&text[..inside + at], Some(&text[inside + at + 1..])),
        None => (text, None),
    }
}

fn unknown(text: &str) -> ParseAccumulationError {
    let units = Preset::ALL.into_iter().map(Preset::name);
    let error = UnknownName::new("accumulation", text, NAMES.into_iter().chain(units), FORMS);
    ParseAccumulationError::Unknown(Box::new(error))
}

impl FromStr for Order {
    type Err = ParseAccumulationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let simple = [Self::Fma, Self::MulAdd, Self::Pairwise].into_iter().zip(NAMES[1..].iter());
        for (order, name) in simple {
            if name.eq_ignore_ascii_case(text) {
                return Ok(order);
            }
        }
        match count(text, "blocked") {
            Some(n) => n.map(Self::Blocked),
            None => Err(unknown(text)),
        }
    }
}

impl FromStr for Sum {
    type Err = ParseAccumulationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (order, text) = cut(text);
        let order = order.parse()?;
        Ok(Self { order, accumulator: accumulator(text)? })
    }
}

impl FromStr for Accumulation {
    type Err = ParseAccumulationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, wanted) = cut(text);
        let alone = [
            ("exact", Self::Exact),
            ("te-nvfp4", Self::TeNvfp4(TeAlpha::Divided)),
            ("te-nvfp4-kernel", Self::TeNvfp4(TeAlpha::Multiplied)),
        ];
        for (word, accumulation) in alone {
            if word.eq_ignore_ascii_case(name) {
                return match wanted {
                    None => Ok(accumulation),
                    Some(_) => Err(ParseAccumulationError::NoAccumulator(Short::new(text))),
                };
            }
        }
        if name.get(..7).is_some_and(|head| head.eq_ignore_ascii_case("promote")) {
            let (head, part) = name.split_once('(').unwrap_or((name, ""));
            let Some(every) = count(head, "promote") else { return Err(unknown(text)) };
            let every = every?;
            let part = part.strip_suffix(')').filter(|part| !part.contains(['(', ')']));
            let part = part.ok_or_else(|| ParseAccumulationError::Part(Short::new(text)))?;
            return Ok(Self::Promote { every, part: part.parse()?, into: accumulator(wanted)? });
        }
        if let Some(unit) = unit(text) {
            return unit;
        }
        text.parse().map(Self::Sum)
    }
}

#[cfg(feature = "std")]
impl Accumulation {
    /// By name, or the matrix unit that a file describes whose name ends in `.toml`: `unit.toml`,
    /// `unit.toml+f16`. The result is the file's where none is named, else f32.
    ///
    /// # Errors
    /// If there is no such accumulation, or its file cannot be used.
    pub fn named(text: &str) -> crate::error::Result<Self> {
        use crate::error::Error;
        let Some((found, behind)) = Description::of(text, '+')? else {
            return text.parse().map_err(Error::from_cause);
        };
        let result = match behind {
            Some(format) => format.parse().map_err(|error: ParseFormatError| {
                Error::new(format!("the result of {text:?}")).because(error)
            })?,
            None => found.formats.map_or(Format::F32, |formats| formats.result),
        };
        Ok(Self::Unit { model: found.model, result })
    }
}

/// A matrix unit, if the text begins with the name of one: `MODEL[+RESULT]`.
fn unit(text: &str) -> Option<Result<Accumulation, ParseAccumulationError>> {
    let (model, result) = match text.rsplit_once('+') {
        Some((model, result)) => (model, Some(result)),
        None => (text, None),
    };
    let name = model.split(',').next().unwrap_or_default();
    if name.parse::<Preset>().is_err() {
        return None;
    }
    let unit = || {
        let model: Model =
            model.parse().map_err(|error| ParseAccumulationError::Unit(Box::new(error)))?;
        let format = |text: &str| text.parse::<Format>();
        let result = result.map_or(Ok(Format::F32), format);
        let result = result.map_err(|error| ParseAccumulationError::Format(Box::new(error)))?;
        Ok(Accumulation::Unit { model, result })
    };
    Some(unit())
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fma => f.write_str("fma"),
            Self::MulAdd => f.write_str("mul-add"),
            Self::Pairwise => f.write_str("pairwise"),
            Self::Blocked(n) => write!(f, "blocked{n}"),
        }
    }
}

/// `:FORMAT[@MODE][@POLICY]`; nothing if it is binary32 as it is by itself.
fn write_accumulator(f: &mut fmt::Formatter<'_>, cast: Cast) -> fmt::Result {
    let plain = Cast::new(cast.format);
    if cast == Cast::new(Format::F32) {
        return Ok(());
    }
    write!(f, ":{}", cast.format)?;
    if cast.rounding != plain.rounding {
        write!(f, "@{}", cast.rounding)?;
    }
    if cast.overflow != plain.overflow {
        write!(f, "@{}", cast.overflow)?;
    }
    Ok(())
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.order.fmt(f)?;
        write_accumulator(f, self.accumulator)
    }
}

impl fmt::Display for Accumulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("exact"),
            Self::Sum(sum) => sum.fmt(f),
            Self::Promote { every, part, into } => {
                write!(f, "promote{every}({part})")?;
                write_accumulator(f, *into)
            }
            Self::TeNvfp4(TeAlpha::Divided) => f.write_str("te-nvfp4"),
            Self::TeNvfp4(TeAlpha::Multiplied) => f.write_str("te-nvfp4-kernel"),
            Self::Unit { model, result: Format::F32 } => model.fmt(f),
            Self::Unit { model, result } => write!(f, "{model}+{result}"),
        }
    }
}
