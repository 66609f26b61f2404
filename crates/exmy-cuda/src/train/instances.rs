//! Training, measuring and generating, which exmy-train has for any device, compiled for a GPU here: in
//! whatever calls them by these traits they need not be compiled again.

use super::Cuda;
use exmy::error::Result;
use exmy_train::inference::{self, Evaluate, Generate, InferenceDevice};
use exmy_train::nn::decoder;
use exmy_train::recipe::Recipe;
use exmy_train::train::config::Config;
use exmy_train::train::data::Dataset;
use exmy_train::train::device::TrainingDevice;
use exmy_train::train::ranks::Ranks;
use exmy_train::train::run::{Job, Outcome, train_among};
use exmy_train::train::sample::Sampling;
use exmy_train::train::together::serve;

impl TrainingDevice for Cuda {
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

impl InferenceDevice for Cuda {
    fn evaluation(
        &self,
        config: decoder::Config,
        params: Option<Vec<f32>>,
        recipes: &[Recipe],
        spare: u64,
    ) -> Result<Box<dyn Evaluate>> {
        inference::evaluation(self, config, params, recipes, spare)
    }

    fn generator(
        &self,
        config: decoder::Config,
        params: Vec<f32>,
        recipe: &Recipe,
        options: Sampling,
        spare: u64,
    ) -> Result<Box<dyn Generate>> {
        inference::generator(self, (config, params), recipe, options, spare)
    }
}
