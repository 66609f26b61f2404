//! What is more than a comparison of cells: analyses that figures name, one file each.

pub(super) mod forecast;
pub(super) mod lead;
pub(super) mod margins;
pub(super) mod products;
pub(super) mod surface;
