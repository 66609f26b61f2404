//! Training: what happens to parameters between two batches, and everything around it.
//!
//! Parameters, gradients and the optimizer's moments are flat f32 slices (the masters); a recipe
//! decides what the products inside the model see, never what is stored here.

pub mod optimizer;
pub mod schedule;
