//! The options of `exmy eval` about methods that are better than rounding to nearest.

use crate::methods::Methods;
use clap::Args;
use exmy::BlockFormat;
use exmy::error::{Error, Result};
use std::path::PathBuf;

/// Methods that are better than rounding to nearest. They change the parameters of all recipes but the first.
#[derive(Args)]
pub(super) struct Calibration {
    /// QuaRot: rotate the stream and the values by random Hadamard matrices, which spreads hot channels;
    /// SEED is that of their signs
    #[arg(long, value_name = "SEED", num_args = 0..=1, default_missing_value = "1")]
    pub(super) rotate: Option<u64>,
    /// QuaRot: rotate what down_proj reads while the model computes, and its weights before, by a random
    /// Hadamard matrix of the whole hidden width; SEED is that of its signs
    #[arg(long, value_name = "SEED", num_args = 0..=1, default_missing_value = "1")]
    pub(super) rotate_down: Option<u64>,
    /// SmoothQuant: divide the inputs of q, k, v and of the MLP by channel, and multiply their weights;
    /// ALPHA is how much of the inputs' range the weights take, from 0 to 1
    #[arg(long, value_name = "ALPHA", num_args = 0..=1, default_missing_value = "0.5",
          requires = "calibrate")]
    pub(super) smooth: Option<f64>,
    /// GPTQ: round the weights of all blocks to this format one input after the other; recipes round them no
    /// more
    #[arg(long, value_name = "FORMAT", requires = "calibrate", conflicts_with = "mse")]
    pub(super) gptq: Option<String>,
    /// Round the weights of all blocks to this format with the scale of each block that has the least squared
    /// error; recipes round them no more
    #[arg(long, value_name = "FORMAT")]
    pub(super) mse: Option<String>,
    /// A text that shows what inputs are like; not the one of --data
    #[arg(long, value_name = "FILE")]
    calibrate: Option<PathBuf>,
    /// Take the first so many tokens of that text
    #[arg(long, value_name = "N", default_value_t = 2048, requires = "calibrate")]
    calibrate_tokens: usize,
}

impl Calibration {
    /// What is wanted, if it can be done.
    pub(super) fn methods(&self) -> Result<Methods> {
        let format = |option: &str, name: &Option<String>| -> Result<Option<BlockFormat>> {
            let Some(name) = name else { return Ok(None) };
            name.parse().map(Some).map_err(|error| {
                Error::new(format!("{option} {name:?}: {error}"))
                    .hint("a block format: mxfp4, nvfp4, ...")
            })
        };
        let methods = Methods {
            rotate: self.rotate,
            rotate_down: self.rotate_down,
            smooth: self.smooth,
            gptq: format("--gptq", &self.gptq)?,
            mse: format("--mse", &self.mse)?,
            nearest: None,
            calibrate: self.calibrate.clone().map(|path| (path, self.calibrate_tokens)),
        };
        methods.check().map(|()| methods)
    }
}
