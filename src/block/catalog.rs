//! The block formats people name: MX (OCP MX 1.0) and NVFP4 (arXiv 2509.25149).

use super::{BlockFormat, BlockProfile, Shape};
use crate::block::scale::ScaleRule;
use crate::format::Format;

impl BlockFormat {
    /// MXFP8 with E4M3 (FN) elements: OCP MX 1.0.
    pub const MXFP8_E4M3: Self = Self::mx(Format::E4M3FN);
    /// MXFP8 with E5M2 elements: OCP MX 1.0.
    pub const MXFP8_E5M2: Self = Self::mx(Format::E5M2);
    /// MXFP6 with E3M2 elements: OCP MX 1.0.
    pub const MXFP6_E3M2: Self = Self::mx(Format::E3M2);
    /// MXFP6 with E2M3 elements: OCP MX 1.0.
    pub const MXFP6_E2M3: Self = Self::mx(Format::E2M3);
    /// MXFP4, E2M1 elements: OCP MX 1.0.
    pub const MXFP4: Self = Self::mx(Format::E2M1);
    /// MXINT8: OCP MX 1.0.
    pub const MXINT8: Self = Self::mx(Format::INT8);
    /// NVFP4: E2M1 in blocks of 16, E4M3 scales, one scale a tensor (arXiv 2509.25149).
    pub const NVFP4: Self = Self {
        element: Format::E2M1,
        scale: Format::UE4M3,
        shape: Shape::Along(16),
        rule: ScaleRule::Nearest,
        tensor_scale: true,
        profile: BlockProfile::Ocp,
    };
    /// NVFP4 with one scale for 16 x 16 elements, as for weights in arXiv 2509.25149: the matrix
    /// and its transpose then have the same values.
    pub const NVFP4_16X16: Self = Self { shape: Shape::Tile(16, 16), ..Self::NVFP4 };

    /// An MX format of the given elements: blocks of 32, E8M0 scales, the floor rule.
    ///
    /// ```
    /// use exmy::block::BlockFormat;
    /// use exmy::format::Format;
    ///
    /// // Any elements, not only the five formats of the standard: text says which.
    /// assert_eq!(BlockFormat::mx(Format::E2M1), BlockFormat::MXFP4);
    /// assert_eq!(BlockFormat::mx(Format::E3M0).to_string(), "e3m0/32:e8m0");
    /// ```
    pub const fn mx(element: Format) -> Self {
        Self {
            element,
            scale: Format::E8M0,
            shape: Shape::Along(32),
            rule: ScaleRule::Floor,
            tensor_scale: false,
            profile: BlockProfile::Ocp,
        }
    }
}

/// The block formats with a name of their own, by which they are printed.
///
/// ```
/// use exmy::block::{BlockFormat, NAMED};
///
/// for (name, format) in NAMED {
///     assert_eq!((name.parse(), format.to_string().as_str()), (Ok(format), name));
/// }
/// // The longer text of a named format prints as the name.
/// assert_eq!("e2m1/32:e8m0@floor".parse::<BlockFormat>()?.to_string(), "mxfp4");
/// # Ok::<(), exmy::block::ParseBlockFormatError>(())
/// ```
pub const NAMED: [(&str, BlockFormat); 8] = [
    ("mxfp8-e4m3", BlockFormat::MXFP8_E4M3),
    ("mxfp8-e5m2", BlockFormat::MXFP8_E5M2),
    ("mxfp6-e3m2", BlockFormat::MXFP6_E3M2),
    ("mxfp6-e2m3", BlockFormat::MXFP6_E2M3),
    ("mxfp4", BlockFormat::MXFP4),
    ("mxint8", BlockFormat::MXINT8),
    ("nvfp4", BlockFormat::NVFP4),
    ("nvfp4-16x16", BlockFormat::NVFP4_16X16),
];
