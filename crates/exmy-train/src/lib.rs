//! Training of small transformers in the number formats of [`exmy`].
//!
//! [`nn`] has the layers and models, [`recipe`] the number formats of their products, [`train`] the loop
//! from text to a run in a folder. [`published`] reads models of others, [`evaluate`] says what a recipe
//! costs one, [`generate`] lets one write, both of a device that the caller chooses by [`inference`].
//! [`verify`] compares devices. Every bit of a run is a function of its configuration and its
//! data: not of threads, SIMD level, or where it was resumed.

#![deny(unsafe_code)]

pub mod evaluate;
pub mod generate;
pub mod inference;
pub mod minimize;
pub mod nn;
pub mod published;
pub mod recipe;
pub mod train;
pub mod verify;
