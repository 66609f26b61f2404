//! The textual form of block formats: `element/shape:scale[+tensor][@rule]`, or a name of its own.
//!
//! Shapes are written `32`, `32x1`, `16x16`, `row` and `tensor`; the rule is left out where it is
//! the scale format's default. `mxfp4` reads as `e2m1/32:e8m0@floor`, and that prints as `mxfp4`.

use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

use super::{BlockFormat, BlockFormatError, Shape};
use crate::scale::ScaleRule;
use crate::text::{ParseFormatError, UnknownName};

/// The block formats with a name of their own.
pub(crate) const NAMED: [(&str, BlockFormat); 8] = [
    ("mxfp8-e4m3", BlockFormat::MXFP8_E4M3),
    ("mxfp8-e5m2", BlockFormat::MXFP8_E5M2),
    ("mxfp6-e3m2", BlockFormat::MXFP6_E3M2),
    ("mxfp6-e2m3", BlockFormat::MXFP6_E2M3),
    ("mxfp4", BlockFormat::MXFP4),
    ("mxint8", BlockFormat::MXINT8),
    ("nvfp4", BlockFormat::NVFP4),
    ("nvfp4-16x16", BlockFormat::NVFP4_16X16),
];

const FORMS: &str = "mxfp8-e4m3, mxfp8-e5m2, mxfp6-e3m2, mxfp6-e2m3, mxfp4, mxint8, nvfp4, \
                     nvfp4-16x16, or element/shape:scale[+tensor][@rule] such as e2m1/16:ue4m3+tensor";

/// Why a text is no block format.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseBlockFormatError {
    /// Neither a name nor `element/shape:scale`.
    Unknown(Box<UnknownName>),
    /// What stands before the slash, or after the colon, is no format.
    Format(Box<ParseFormatError>),
    /// What stands between slash and colon is no shape.
    Shape(Box<UnknownName>),
    /// What stands after `@` is no rule.
    Rule(Box<UnknownName>),
    /// The parts do not go together.
    Parts(BlockFormatError),
}

impl fmt::Display for ParseBlockFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(error) | Self::Shape(error) | Self::Rule(error) => error.fmt(f),
            Self::Format(error) => error.fmt(f),
            Self::Parts(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ParseBlockFormatError {}

impl ParseBlockFormatError {
    fn unknown(body: &str) -> Self {
        Self::Unknown(Box::new(UnknownName::new("block format", body, names(), FORMS)))
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Along(n) => write!(f, "{n}"),
            Self::Across(n) => write!(f, "{n}x1"),
            Self::Tile(m, n) => write!(f, "{m}x{n}"),
            Self::Row => f.write_str("row"),
            Self::Tensor => f.write_str("tensor"),
        }
    }
}

impl FromStr for Shape {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| text.parse::<u32>().ok()).flatten().filter(|n| *n > 0)
        };
        let sides = match text.split_once(['x', 'X']) {
            _ if text.eq_ignore_ascii_case("row") => return Ok(Self::Row),
            _ if text.eq_ignore_ascii_case("tensor") => return Ok(Self::Tensor),
            Some((across, along)) => number(across).zip(number(along)),
            None => number(text).map(|along| (1, along)),
        };
        match sides {
            Some((1, along)) => Ok(Self::Along(along)),
            Some((across, 1)) => Ok(Self::Across(across)),
            Some((across, along)) => Ok(Self::Tile(across, along)),
            None => Err(UnknownName::new(
                "block shape",
                text,
                ["row", "tensor", "32", "16", "32x1", "16x16"],
                "a number n along the reduction axis, nx1 across it, mxn, row, tensor; numbers from 1",
            )),
        }
    }
}

impl fmt::Display for BlockFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = NAMED.iter().find(|(_, format)| format == self) {
            return f.pad(name);
        }
        let Self { element, scale, shape, rule, tensor_scale } = self;
        write!(f, "{element}/{shape}:{scale}")?;
        if *tensor_scale {
            f.write_str("+tensor")?;
        }
        if *rule != ScaleRule::default_for(*scale) {
            write!(f, "@{rule}")?;
        }
        Ok(())
    }
}

impl FromStr for BlockFormat {
    type Err = ParseBlockFormatError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (body, rule) = match text.split_once('@') {
            Some((body, rule)) => (
                body,
                Some(rule.parse().map_err(|error| ParseBlockFormatError::Rule(Box::new(error)))?),
            ),
            None => (text, None),
        };
        with_rule(body, rule)
    }
}

/// A block format from its text up to `@`, and the rule if one was written.
pub(crate) fn with_rule(
    body: &str,
    rule: Option<ScaleRule>,
) -> Result<BlockFormat, ParseBlockFormatError> {
    let named = NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(body));
    let format = match (named, body.split_once('/')) {
        (Some((_, format)), _) => *format,
        (None, Some((element, rest))) => {
            let unknown = || ParseBlockFormatError::unknown(body);
            let (shape, scale) = rest.split_once(':').ok_or_else(unknown)?;
            let (scale, tensor_scale) = match scale.split_once('+') {
                Some((scale, word)) if word.eq_ignore_ascii_case("tensor") => (scale, true),
                Some(_) => return Err(unknown()),
                None => (scale, false),
            };
            let format = |error| ParseBlockFormatError::Format(Box::new(error));
            let element = element.parse().map_err(format)?;
            let shape =
                shape.parse().map_err(|error| ParseBlockFormatError::Shape(Box::new(error)))?;
            let scale = scale.parse().map_err(format)?;
            let rule = ScaleRule::default_for(scale);
            BlockFormat { element, scale, shape, rule, tensor_scale }
        }
        (None, None) => return Err(ParseBlockFormatError::unknown(body)),
    };
    let format = BlockFormat { rule: rule.unwrap_or(format.rule), ..format };
    format.check().map_err(ParseBlockFormatError::Parts)
}

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NAMED.iter().map(|(name, _)| *name)
}
