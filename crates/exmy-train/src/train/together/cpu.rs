//! The processor as a device that trains, compiled here.

use super::serve;
use crate::nn::Cpu;
use crate::train::config::Config;
use crate::train::data::Dataset;
use crate::train::device::TrainingDevice;
use crate::train::ranks::Ranks;
use crate::train::run::{Job, Outcome, train_among};
use exmy::error::Result;

impl TrainingDevice for Cpu {
    fn train(&self, ranks: Option<Ranks<Self>>, job: Job<'_>) -> Result<Outcome> {
        train_among(ranks, self, job)
    }

    fn serve(
        &self,
        config: &Config,
        data: &Dataset,
        ranks: Ranks<Self>,
        stops: &dyn Fn() -> bool,
    ) -> Result<()> {
        serve(self, config, data, ranks, stops)
    }
}
