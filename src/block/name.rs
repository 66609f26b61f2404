//! The textual form of block formats: `element/shape:scale[+tensor][@rule][@profile]`, or a name of
//! its own in place of what stands before the first `@`.
//!
//! Shapes are written `32`, `32x1`, `16x16`, `row` and `tensor`; the rule is left out where it is
//! the default of scale format and profile, the profile where it is `ocp`. `mxfp4` reads as
//! `e2m1/32:e8m0@floor@ocp`, and that prints as `mxfp4`.

use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

use super::{BlockFormat, BlockFormatError, BlockProfile, NAMED, Shape};
use crate::block::scale::ScaleRule;
use crate::text::{ParseFormatError, Short, UnknownName};

const FORMS: &str = "mxfp8-e4m3, mxfp8-e5m2, mxfp6-e3m2, mxfp6-e2m3, mxfp4, mxint8, nvfp4, \
                     nvfp4-16x16, or element/shape:scale[+tensor][@rule][@profile] such as \
                     e2m1/16:ue4m3+tensor";

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
    /// What stands after `@` is neither a rule nor a profile.
    Suffix(Box<UnknownName>),
    /// Two rules or two profiles; the text and which of the two.
    Twice(Short, &'static str),
    /// The parts do not go together.
    Parts(BlockFormatError),
}

impl fmt::Display for ParseBlockFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(error) | Self::Shape(error) | Self::Suffix(error) => error.fmt(f),
            Self::Twice(text, what) => write!(f, "{text:?} has two {what}s: one is possible"),
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
        let Self { element, scale, shape, rule, tensor_scale, profile } = self;
        let parts =
            |format: &Self| (format.element, format.scale, format.shape, format.tensor_scale);
        match NAMED.iter().find(|(_, format)| parts(format) == parts(self)) {
            Some((name, format)) if format == self => return f.pad(name),
            Some((name, _)) => f.write_str(name)?,
            None => {
                write!(f, "{element}/{shape}:{scale}")?;
                if *tensor_scale {
                    f.write_str("+tensor")?;
                }
            }
        }
        if *rule != profile.default_rule(*scale) {
            write!(f, "@{rule}")?;
        }
        if *profile != BlockProfile::Ocp {
            write!(f, "@{profile}")?;
        }
        Ok(())
    }
}

/// The suffixes of a block format, as far as they are written.
#[derive(Clone, Copy, Default)]
pub(crate) struct Written {
    pub(crate) rule: Option<ScaleRule>,
    pub(crate) profile: Option<BlockProfile>,
}

impl Written {
    /// Takes a rule or profile in. `None` if the word is neither, else what there are two of now.
    pub(crate) fn take(&mut self, word: &str) -> Option<Option<&'static str>> {
        if let Ok(rule) = word.parse() {
            return Some(self.rule.replace(rule).map(|_| "scale rule"));
        }
        if let Ok(profile) = word.parse() {
            return Some(self.profile.replace(profile).map(|_| "block profile"));
        }
        None
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.rule.is_none() && self.profile.is_none()
    }

    /// The words that are taken.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        let rules = ScaleRule::NAMED.into_iter().map(|(name, _)| name);
        rules.chain(BlockProfile::NAMED.into_iter().map(|(name, _)| name))
    }
}

impl FromStr for BlockFormat {
    type Err = ParseBlockFormatError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut words = text.split('@');
        let body = words.next().unwrap_or_default();
        let mut written = Written::default();
        for word in words {
            match written.take(word) {
                Some(None) => {}
                Some(Some(what)) => {
                    return Err(ParseBlockFormatError::Twice(Short::new(text), what));
                }
                None => {
                    let kind = "scale rule or block profile";
                    let unknown = UnknownName::new(kind, word, Written::names(), SUFFIXES);
                    return Err(ParseBlockFormatError::Suffix(Box::new(unknown)));
                }
            }
        }
        with_rule(body, written)
    }
}

const SUFFIXES: &str = "floor, ceil, even, rceil, nearest, max-abs, 4over6[-mse][-448]; ocp, \
                        microxcaling, microxcaling-torch (each with -flush), torchao, torchao-0.18, \
                        te, te-2.13";

/// A block format from its text up to `@`, and what was written after it.
pub(crate) fn with_rule(
    body: &str,
    written: Written,
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
            let (rule, profile) = (ScaleRule::default_for(scale), BlockProfile::Ocp);
            BlockFormat { element, scale, shape, rule, tensor_scale, profile }
        }
        (None, None) => return Err(ParseBlockFormatError::unknown(body)),
    };
    let profile = written.profile.unwrap_or_default();
    let rule = written.rule.unwrap_or(profile.default_rule(format.scale));
    let format = BlockFormat { rule, profile, ..format };
    format.check().map_err(ParseBlockFormatError::Parts)
}

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    NAMED.iter().map(|(name, _)| *name)
}
