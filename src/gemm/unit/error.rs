//! What a unit cannot do, and what would work.

use core::fmt;

use super::input::Input;
use super::preset::Preset;
use crate::block::{ParseBlockFormatError, Shape};
use crate::format::Format;
use crate::text::{ParseFormatError, Short, UnknownName};

/// Why there is no such unit, or why it does not take these operands.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum UnitError {
    /// No preset, or no parameter, is called so.
    Unknown(UnknownName),
    /// An operand's text is no format.
    Element(ParseFormatError),
    /// An operand's text is no block format.
    Block(ParseBlockFormatError),
    /// Blocks that do not run along the sum.
    Shape(Shape),
    /// The unit does not take these formats together.
    Operands {
        /// The unit.
        preset: Preset,
        /// The left operand.
        a: Input,
        /// The right operand.
        b: Input,
        /// The format of addend and result.
        result: Format,
    },
    /// A text without formats where formats must be named.
    NoOperands(Short),
    /// A text with formats where a model is named alone.
    WithOperands {
        /// What was given.
        given: Short,
        /// The model in it.
        model: Short,
    },
    /// A parameter's value.
    Value {
        /// The parameter.
        key: &'static str,
        /// What was given.
        given: Short,
        /// What it may be.
        possible: &'static str,
    },
    /// A parameter that a text sets a second time.
    Twice(Short),
    /// A parameter that the unit's order has no use for with these formats.
    Impossible(&'static str),
    /// Operands of different lengths, or a number of codes that is no multiple of the length.
    Lengths {
        /// What is counted.
        what: &'static str,
        /// How many there must be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(unknown) => unknown.fmt(f),
            Self::Element(error) => error.fmt(f),
            Self::Block(error) => error.fmt(f),
            Self::Shape(shape) => write!(
                f,
                "blocks of shape {shape} do not run along the sum, so their scales cannot be taken \
                 out of it; blocks of N elements along it work"
            ),
            Self::Operands { preset, a, b, result } => {
                write!(
                    f,
                    "{} does not multiply {a} by {b} into {result}; it takes ",
                    preset.name()
                )?;
                f.write_str(preset.takes())
            }
            Self::NoOperands(given) => write!(
                f,
                "{given:?} names no operands: MODEL:A, MODEL:A,B or MODEL:A,B+RESULT, such as \
                 hopper:e4m3,e5m2+f32"
            ),
            Self::WithOperands { given, model } => write!(
                f,
                "{given:?} names operands, whose formats come from the file or the matrices that the \
                 model is used with; say it without operands: {model}"
            ),
            Self::Value { key, given, possible } => {
                write!(f, "{key}={given:?} is not possible: {possible}")
            }
            Self::Twice(key) => write!(f, "{key}= is set a second time: a parameter has one value"),
            Self::Impossible(why) => f.write_str(why),
            Self::Lengths { what, expected, found } => {
                write!(f, "{found} {what}, where {expected} are needed")
            }
        }
    }
}

impl core::error::Error for UnitError {}
