//! Operands of units from text and from block formats.

use core::str::FromStr;

use super::error::UnitError;
use super::input::{Input, Scale};
use crate::block::{BlockFormat, Shape};
use crate::format::Format;

impl TryFrom<BlockFormat> for Input {
    type Error = UnitError;

    /// # Errors
    /// If the blocks do not run along the sum, so that their scales cannot be taken out of it.
    fn try_from(format: BlockFormat) -> Result<Self, UnitError> {
        match format.shape {
            Shape::Along(block) | Shape::Tile(_, block) => Ok(Self {
                format: format.element,
                scale: Some(Scale { format: format.scale, block }),
            }),
            shape => Err(UnitError::Shape(shape)),
        }
    }
}

impl FromStr for Input {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let block = text.contains('/');
        match text.parse::<Format>() {
            Ok(format) => Ok(Self::plain(format)),
            Err(error) => match text.parse::<BlockFormat>() {
                Ok(format) => format.try_into(),
                Err(wrong) if block => Err(UnitError::Block(wrong)),
                Err(_) => Err(UnitError::Element(error)),
            },
        }
    }
}
