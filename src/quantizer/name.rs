//! The textual form of quantizers; the parent module has the grammar and the defaults.

use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;

use super::cast::{Cast, suffixes};
use super::{Quantizer, Target};
use crate::block::hadamard::Hadamard;
use crate::block::{self, ParseBlockFormatError, Written};
use crate::format::{Format, NAMED};
use crate::round::{Overflow, Rounding};
use crate::text::{ParseFormatError, Short, UnknownName};

/// Why a text is no quantizer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseQuantizerError {
    /// The target is neither a format nor a block format nor `none`.
    Unknown(Box<UnknownName>),
    /// The target looks like a format and is none.
    Format(Box<ParseFormatError>),
    /// The target looks like a block format and is none.
    Block(ParseBlockFormatError),
    /// A suffix is no rounding mode, scale rule, block profile or overflow policy.
    Suffix(Box<UnknownName>),
    /// Two suffixes say the same kind of thing; the text and the kind.
    Twice(Short, &'static str),
    /// A scale rule or block profile for a target without scales; the text.
    NoScale(Short),
    /// A suffix for `none`, or `none` as the first format; the text.
    NothingToDo(Short),
    /// What stands before the target begins like a rotation and is none.
    Rotation(Box<UnknownName>),
    /// A rotation before the first format, or two; the text.
    RotationFirst(Short),
    /// Both roundings are stochastic, of the same random words; the text.
    TwoStochastic(Short),
}

#[cfg(feature = "serde")]
crate::text::as_text!(Quantizer: "a quantizer");

impl fmt::Display for ParseQuantizerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(error) | Self::Suffix(error) | Self::Rotation(error) => error.fmt(f),
            Self::Format(error) => error.fmt(f),
            Self::Block(error) => error.fmt(f),
            Self::Twice(text, what) => write!(f, "{text:?} has two {what}s: one is possible"),
            Self::NoScale(text) => {
                write!(
                    f,
                    "{text:?} has a scale rule or block profile, but only block formats have scales"
                )
            }
            Self::NothingToDo(text) => write!(
                f,
                "{text:?}: `none` takes no suffix, and stands alone or after a first format"
            ),
            Self::RotationFirst(text) => write!(
                f,
                "{text:?}: one rotation is possible, after the first format: bf16>rht16>nvfp4"
            ),
            Self::TwoStochastic(text) => write!(
                f,
                "{text:?} rounds stochastically twice: one of the two needs a deterministic mode"
            ),
        }
    }
}

impl core::error::Error for ParseQuantizerError {}

/// The suffixes of one target.
#[derive(Default)]
struct Suffixes {
    rounding: Option<Rounding>,
    block: Written,
    overflow: Option<Overflow>,
}

const SUFFIXES: &str = "a rounding mode (rne, rna, rnz, rtz, rup, rdn, raz, odd, srN[a|b|c]), a \
                        scale rule (floor, ceil, even, rceil, nearest, max-abs, 4over6[-mse][-448]), a \
                        block profile (ocp, microxcaling, microxcaling-torch, torchao, torchao-0.18, te, \
                        te-2.13), an overflow policy (sat-none, sat-finite, sat-propagate, to-nan, \
                        to-inf, onnx)";

fn suffix_names() -> impl Iterator<Item = &'static str> {
    ["rne", "rna", "rnz", "rtz", "rup", "rdn", "raz", "odd", "sr8", "sr16"]
        .into_iter()
        .chain(Written::names())
        .chain(["sat-none", "sat-finite", "sat-propagate", "to-nan", "to-inf", "onnx"])
}

/// Splits a text without `>` into what it names and its suffixes.
fn split(text: &str) -> Result<(&str, Suffixes), ParseQuantizerError> {
    fn set<T>(
        place: &mut Option<T>,
        value: T,
        text: &str,
        what: &'static str,
    ) -> Result<(), ParseQuantizerError> {
        match place.replace(value) {
            None => Ok(()),
            Some(_) => Err(ParseQuantizerError::Twice(Short::new(text), what)),
        }
    }
    let mut parts = text.split('@');
    let body = parts.next().unwrap_or_default();
    let mut suffixes = Suffixes::default();
    for part in parts {
        if let Ok(rounding) = part.parse() {
            set(&mut suffixes.rounding, rounding, text, "rounding mode")?;
        } else if let Some(twice) = suffixes.block.take(part) {
            if let Some(what) = twice {
                return Err(ParseQuantizerError::Twice(Short::new(text), what));
            }
        } else if let Ok(overflow) = part.parse() {
            set(&mut suffixes.overflow, overflow, text, "overflow policy")?;
        } else {
            let unknown = UnknownName::new("suffix", part, suffix_names(), SUFFIXES);
            return Err(ParseQuantizerError::Suffix(Box::new(unknown)));
        }
    }
    Ok((body, suffixes))
}

/// What a name without suffixes names. The error is that of a format where one could be meant.
fn target(body: &str, written: Written) -> Result<Target, ParseQuantizerError> {
    if body.eq_ignore_ascii_case("none") {
        return Ok(Target::None);
    }
    match body.parse::<Format>() {
        Ok(format) => Ok(Target::Format(format)),
        Err(format_error) => match block::with_rule(body, written) {
            Ok(format) => Ok(Target::Block(format)),
            Err(ParseBlockFormatError::Unknown(_)) if !body.contains('/') => {
                let formats = NAMED.iter().map(|(name, _)| *name);
                let unknown = UnknownName::new(
                    "format or block format",
                    body,
                    formats.chain(block::names()).chain(["none"]),
                    "none, a format such as e4m3 or e8m3, a block format such as mxfp8-e4m3, \
                     nvfp4 or e2m1/16:ue4m3+tensor",
                );
                match format_error {
                    ParseFormatError::Unknown(_) => {
                        Err(ParseQuantizerError::Unknown(Box::new(unknown)))
                    }
                    error => Err(ParseQuantizerError::Format(Box::new(error))),
                }
            }
            Err(error) => Err(ParseQuantizerError::Block(error)),
        },
    }
}

/// The first format, the rotation and the target of a text.
fn split_steps(text: &str) -> Result<(Option<&str>, Option<Hadamard>, &str), ParseQuantizerError> {
    let rotation =
        |text: &str| text.parse().map_err(|error| ParseQuantizerError::Rotation(Box::new(error)));
    match text.split_once('>') {
        None => Ok((None, None, text)),
        Some((first, rest)) if Hadamard::is_meant(first) => match rest.split_once('>') {
            Some(_) => Err(ParseQuantizerError::RotationFirst(Short::new(text))),
            None => Ok((None, Some(rotation(first)?), rest)),
        },
        Some((first, rest)) => match rest.split_once('>') {
            Some((second, last)) if Hadamard::is_meant(second) => {
                Ok((Some(first), Some(rotation(second)?), last))
            }
            _ => Ok((Some(first), None, rest)),
        },
    }
}

impl FromStr for Quantizer {
    type Err = ParseQuantizerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (first, rotation, last) = split_steps(text)?;
        let before = match first {
            None => None,
            Some(first) => {
                let (body, suffixes) = split(first)?;
                let format = if body.eq_ignore_ascii_case("none") {
                    return Err(ParseQuantizerError::NothingToDo(Short::new(text)));
                } else {
                    body.parse().map_err(|error| ParseQuantizerError::Format(Box::new(error)))?
                };
                if !suffixes.block.is_empty() {
                    return Err(ParseQuantizerError::NoScale(Short::new(first)));
                }
                let cast = Cast::new(format);
                Some(Cast {
                    format,
                    rounding: suffixes.rounding.unwrap_or(cast.rounding),
                    overflow: suffixes.overflow.unwrap_or(cast.overflow),
                })
            }
        };
        let (body, Suffixes { rounding, block, overflow }) = split(last)?;
        let target = target(body, block)?;
        if target == Target::None && (rounding.is_some() || !block.is_empty() || overflow.is_some())
        {
            return Err(ParseQuantizerError::NothingToDo(Short::new(last)));
        }
        if !block.is_empty() && !matches!(target, Target::Block(_)) {
            return Err(ParseQuantizerError::NoScale(Short::new(last)));
        }
        let plain = Self::new(target);
        let quantizer = Self {
            before,
            rotation,
            target,
            rounding: rounding.unwrap_or(plain.rounding),
            overflow: overflow.unwrap_or(plain.overflow),
        };
        let twice = before.is_some_and(|cast| cast.rounding.is_stochastic())
            && quantizer.rounding.is_stochastic();
        if twice {
            return Err(ParseQuantizerError::TwoStochastic(Short::new(text)));
        }
        Ok(quantizer)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Format(format) => format.fmt(f),
            Self::Block(format) => format.fmt(f),
        }
    }
}

impl fmt::Display for Quantizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(before) = &self.before {
            write!(f, "{before}>")?;
        }
        if let Some(rotation) = &self.rotation {
            write!(f, "{rotation}>")?;
        }
        write!(f, "{}", self.target)?;
        match self.target {
            Target::None => Ok(()),
            target => suffixes(f, target, self.rounding, self.overflow),
        }
    }
}
