//! What enters a unit: the format of an operand's elements, and of their block scales.

use core::fmt;

use crate::format::Format;

/// One side of a dot product.
///
/// Its text is a format, or a block format whose blocks run along the sum: `e4m3`, `mxfp4`,
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

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.format)?;
        match self.scale {
            Some(Scale { format, block }) => write!(f, "/{block}:{format}"),
            None => Ok(()),
        }
    }
}
