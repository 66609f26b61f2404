//! The studies as tables, one file a paper.

pub(super) mod bit_reduction;
