//! What is done to a model before its numbers are rounded, by what a calibration text shows of it.

use crate::phase::Phase;
use clap::Args;
use exmy::error::{Error, Result};
use exmy_lab::tokenizer::Tokenizer;
use exmy_train::evaluate::layers::Layers;
use exmy_train::evaluate::smooth::smooth;
use exmy_train::nn::decoder::Config;
use exmy_train::published::Published;
use std::path::PathBuf;

/// Methods that are better than rounding alone.
#[derive(Args)]
pub(super) struct Calibration {
    /// SmoothQuant: divide the inputs of q, k, v and of the MLP by channel, and multiply their weights;
    /// ALPHA is how much of the inputs' range the weights take, from 0 to 1
    #[arg(long, value_name = "ALPHA", num_args = 0..=1, default_missing_value = "0.5", requires = "calibrate")]
    pub(super) smooth: Option<f64>,
    /// A text that shows what inputs are like; not the one of --data
    #[arg(long, value_name = "FILE", requires = "smooth")]
    calibrate: Option<PathBuf>,
    /// Take the first so many tokens of that text
    #[arg(long, value_name = "N", default_value_t = 2048, requires = "calibrate")]
    calibrate_tokens: usize,
}

impl Calibration {
    /// Changes the parameters as is wanted.
    pub(super) fn apply(
        &self,
        model: &Published,
        tokenizer: &Tokenizer,
        config: &Config,
        params: &mut [f32],
        quiet: bool,
    ) -> Result<()> {
        let (Some(strength), Some(path)) = (self.smooth, &self.calibrate) else { return Ok(()) };
        if !(0.0..=1.0).contains(&strength) {
            let what = format!("--smooth {strength} is impossible");
            return Err(Error::new(what).hint("from 0 to 1, for example 0.5"));
        }
        let tokens = super::read_tokens(path, tokenizer, self.calibrate_tokens)?;
        super::known(&tokens, config.vocab)?;
        let reading = Phase::begin("calibrating", quiet);
        let seen = Layers::of_text(config, params, &tokens)?;
        drop(reading);
        smooth(config, model.layout(), params, &seen, strength)
    }
}
