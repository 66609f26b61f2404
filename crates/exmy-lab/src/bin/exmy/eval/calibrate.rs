//! What is done to a model before its numbers are rounded, by what a calibration text shows of it.

use crate::phase::Phase;
use clap::Args;
use exmy::BlockFormat;
use exmy::error::{Error, Result};
use exmy_lab::tokenizer::Tokenizer;
use exmy_train::evaluate::gptq::{Hessians, round_blocks};
use exmy_train::evaluate::layers::{Layers, watch_text};
use exmy_train::evaluate::smooth::smooth;
use exmy_train::nn::decoder::Config;
use exmy_train::published::Published;
use std::path::PathBuf;

/// Methods that are better than rounding to nearest. They change the parameters of all recipes but the first.
#[derive(Args)]
pub(super) struct Calibration {
    /// SmoothQuant: divide the inputs of q, k, v and of the MLP by channel, and multiply their weights;
    /// ALPHA is how much of the inputs' range the weights take, from 0 to 1
    #[arg(long, value_name = "ALPHA", num_args = 0..=1, default_missing_value = "0.5",
          requires = "calibrate")]
    pub(super) smooth: Option<f64>,
    /// GPTQ: round the weights of all blocks to this format one input after the other; recipes round them no
    /// more
    #[arg(long, value_name = "FORMAT", requires = "calibrate")]
    pub(super) gptq: Option<String>,
    /// A text that shows what inputs are like; not the one of --data
    #[arg(long, value_name = "FILE")]
    calibrate: Option<PathBuf>,
    /// Take the first so many tokens of that text
    #[arg(long, value_name = "N", default_value_t = 2048, requires = "calibrate")]
    calibrate_tokens: usize,
}

impl Calibration {
    /// Whether parameters are changed.
    pub(super) fn changes(&self) -> bool {
        self.smooth.is_some() || self.gptq.is_some()
    }

    /// The format of `--gptq`; that everything can be done.
    pub(super) fn check(&self) -> Result<Option<BlockFormat>> {
        if self.calibrate.is_some() && !self.changes() {
            return Err(
                Error::new("--calibrate calibrates nothing").hint("add --smooth or --gptq FORMAT")
            );
        }
        if let Some(strength) = self.smooth.filter(|strength| !(0.0..=1.0).contains(strength)) {
            let what = format!("--smooth {strength} is impossible");
            return Err(Error::new(what).hint("from 0 to 1, for example 0.5"));
        }
        let Some(name) = &self.gptq else { return Ok(None) };
        let format = name.parse();
        format.map(Some).map_err(|error| {
            Error::new(format!("--gptq {name:?}: {error}"))
                .hint("a block format: mxfp4, nvfp4, ...")
        })
    }

    /// The parameters as they are to be, if they are to be others.
    pub(super) fn changed(
        &self,
        model: &Published,
        tokenizer: &Tokenizer,
        config: &Config,
        params: &[f32],
        quiet: bool,
    ) -> Result<Option<Vec<f32>>> {
        let format = self.check()?;
        let Some(path) = &self.calibrate else { return Ok(None) };
        let tokens = super::read_tokens(path, tokenizer, self.calibrate_tokens)?;
        super::known(&tokens, config.vocab)?;
        let (layout, mut changed) = (model.layout(), params.to_vec());
        if let Some(strength) = self.smooth {
            let _reading = Phase::begin("looking at inputs", quiet);
            let seen = Layers::of_text(config, &changed, &tokens)?;
            smooth(config, layout, &mut changed, &seen, strength)?;
        }
        if let Some(format) = format {
            let _rounding = Phase::begin("rounding by GPTQ", quiet);
            let mut inputs = Hessians::default();
            watch_text(config, &changed, &tokens, &mut inputs)?;
            round_blocks(layout, &mut changed, &inputs, format)?;
        }
        Ok(Some(changed))
    }
}
