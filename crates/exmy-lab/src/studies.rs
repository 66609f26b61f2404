//! The studies there are, one file and folder a paper: its figures as a table of values, in the order of its
//! report, and below it the analyses that no claim can say.

#[doc(hidden)]
pub mod bit_reduction;
#[doc(hidden)]
pub mod mx_instabilities;
#[doc(hidden)]
pub mod nvfp4_outliers;

pub use crate::finding::Paper;

/// All of them.
pub const ALL: &[Paper] = &[bit_reduction::PAPER, mx_instabilities::PAPER, nvfp4_outliers::PAPER];

/// The study of that name.
pub fn by_name(name: &str) -> Option<&'static Paper> {
    ALL.iter().find(|paper| paper.name == name)
}
