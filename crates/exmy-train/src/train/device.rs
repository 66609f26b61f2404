//! A device that trains, for callers that leave the compiling of it to the device's own crate.
//!
//! The training loop is generic over devices, and so are all layers and products below it. Whoever calls
//! [`train_among`](super::run::train_among) or [`serve`](super::together::serve) compiles them for that
//! device once more. An implementation of [`TrainingDevice`] calls both, so that what stands above the
//! devices need not.

use super::config::Config;
use super::data::Dataset;
use super::ranks::Ranks;
use super::run::{Job, Outcome};
use crate::recipe::device::Quantize;
use exmy::error::Result;

/// A device that trains. Implemented in its own crate, by a call of the function of each name.
pub trait TrainingDevice: Quantize + Sync {
    /// Trains a claimed run, with the other ranks if there are any: [`train_among`](super::run::train_among).
    ///
    /// # Errors
    /// As there.
    fn train(&self, ranks: Option<Ranks<Self>>, job: Job<'_>) -> Result<Outcome>;

    /// Takes its parts of a run that rank 0 leads: [`serve`](super::together::serve).
    ///
    /// # Errors
    /// As there.
    fn serve(
        &self,
        config: &Config,
        data: &Dataset,
        ranks: Ranks<Self>,
        stops: &dyn Fn() -> bool,
    ) -> Result<()>;
}
