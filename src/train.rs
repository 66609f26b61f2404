//! Training a model from text to checkpoints: data, the loop and its records.

pub mod data;
pub mod language;
