//! What enters a unit: the format of an operand's elements, and of their block scales.

use core::fmt;
use core::str::FromStr;

use super::error::UnitError;
use crate::block::{BlockFormat, Shape};
use crate::format::Format;

/// One side of a dot product.
///
/// Its text is a format, or a block format whose blocks run along the sum: `e4m3fn`, `mxfp4`,
/// `e2m1/16:ue4m3`. Of a block format only element, scale and block length matter, and those it
/// prints; a scale of the whole tensor multiplies the result and is not the unit's business.
///
/// ```
/// use exmy::gemm::unit::Input;
///
/// let input: Input = "nvfp4".parse()?;
/// assert_eq!(input.to_string(), "e2m1/16:ue4m3");
/// # Ok::<(), exmy::gemm::unit::UnitError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Input {
    /// The format of the elements.
    pub format: Format,
    /// The scales, if there are any.
    pub scale: Option<Scale>,
}

/// The scales of one side: one for so many consecutive elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scale {
    /// The format of a scale.
    pub format: Format,
    /// Elements that share one.
    pub block: u32,
}

impl Scale {
    /// Whether every scale is a power of two.
    pub const fn is_power_of_two(self) -> bool {
        self.format.man_bits() == 0 && !self.format.is_signed()
    }
}

impl Input {
    /// Elements without scales.
    pub const fn plain(format: Format) -> Self {
        Self { format, scale: None }
    }

    /// How many scales `k` elements have.
    pub const fn scales(self, k: usize) -> usize {
        match self.scale {
            Some(scale) => k.div_ceil(scale.block as usize),
            None => 0,
        }
    }
}

impl From<Format> for Input {
    fn from(format: Format) -> Self {
        Self::plain(format)
    }
}

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

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.format)?;
        match self.scale {
            Some(Scale { format, block }) => write!(f, "/{block}:{format}"),
            None => Ok(()),
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
