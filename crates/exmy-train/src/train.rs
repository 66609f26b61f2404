//! Training: from text to a run in a folder.
//!
//! [`data`] and [`language`] make tokens and batches, [`config`] and [`preset`] say what is trained.
//! [`trainer`] is the step, [`optimizer`] and [`schedule`] are its parts. [`run`] is the folder with its
//! [`record`]s and [`checkpoint`]s, [`sample`] the trained model at work.
//!
//! Parameters, gradients and moments are flat f32 slices, the masters; a recipe decides what the
//! products inside the model see, never what is stored here.

pub mod check;
pub mod checkpoint;
pub mod config;
pub mod control;
pub mod data;
pub mod device;
pub mod digest;
pub mod fingerprint;
pub mod fit;
pub mod language;
#[doc(hidden)]
pub mod matching;
pub mod memory;
pub mod old;
pub mod precision;
pub mod preset;
pub mod probe;
mod probing;
pub mod profile;
pub mod ranks;
pub mod record;
pub mod run;
pub mod running_median;
pub mod sample;
pub mod schedule;
pub mod start;
pub mod stop;
pub mod together;
pub mod trainer;
pub mod trigger;

pub use crate::nn::optimizer;
