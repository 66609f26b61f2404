//! What is more than a comparison of cells: analyses that figures name, one file each.

pub(super) mod abilities;
pub(super) mod depth;
pub(super) mod flushed;
pub(super) mod forecast;
pub(super) mod hot_channels;
pub(super) mod lead;
pub(super) mod margins;
pub(super) mod operators;
pub(super) mod overhead;
pub(super) mod patches;
pub(super) mod products;
pub(super) mod recall;
pub(super) mod rotations;
pub(super) mod surface;
pub(super) mod weights;
