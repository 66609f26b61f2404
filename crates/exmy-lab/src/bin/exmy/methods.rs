//! What is done to a model before, or while, its weights are rounded: methods that are better than rounding
//! to nearest. `exmy eval` changes parameters by them, `exmy quantize` writes what they made.

use crate::phase::Phase;
use crate::tokens::{known, read_tokens};
use exmy::BlockFormat;
use exmy::error::{Error, Result};
use exmy_lab::tokenizer::Tokenizer;
use exmy_train::evaluate::gptq::{Hessians, round_blocks};
use exmy_train::evaluate::layers::{Layers, watch_text};
use exmy_train::evaluate::rotate::{rotate, rotate_down};
use exmy_train::evaluate::search::search_blocks;
use exmy_train::evaluate::smooth::smooth;
use exmy_train::evaluate::{Needs, Stored, nearest_blocks};
use exmy_train::nn::decoder::Config;
use std::path::PathBuf;

/// The methods that are wanted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Methods {
    /// QuaRot's rotations, and the seed of their signs.
    pub(crate) rotate: Option<u64>,
    /// QuaRot's rotation of what `down_proj` reads, and the seed of its signs.
    pub(crate) rotate_down: Option<u64>,
    /// SmoothQuant, and its strength.
    pub(crate) smooth: Option<f64>,
    /// GPTQ, onto this format.
    pub(crate) gptq: Option<BlockFormat>,
    /// The best scale of each block, in this format.
    pub(crate) mse: Option<BlockFormat>,
    /// Nothing better: the format's own rule.
    pub(crate) nearest: Option<BlockFormat>,
    /// A text that shows what inputs are like, and how many tokens of it are read.
    pub(crate) calibrate: Option<(PathBuf, usize)>,
}

impl Methods {
    /// The option of the first that changes parameters, if one does.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--rotate", self.rotate.is_some()),
            ("--rotate-down", self.rotate_down.is_some()),
            ("--smooth", self.smooth.is_some()),
            ("--gptq", self.gptq.is_some()),
            ("--mse", self.mse.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// Whether parameters are changed.
    pub(crate) fn changes(&self) -> bool {
        self.given().is_some()
    }

    /// Whether the weights of blocks are rounded by a method.
    pub(crate) const fn rounds(&self) -> bool {
        self.gptq.is_some() || self.mse.is_some()
    }

    /// Refuses what cannot be done.
    pub(crate) fn check(&self) -> Result<()> {
        if self.calibrate.is_some() && self.smooth.is_none() && self.gptq.is_none() {
            return Err(Error::new("--calibrate calibrates nothing").hint("add --smooth or --gptq"));
        }
        if let Some(strength) = self.smooth.filter(|strength| !(0.0..=1.0).contains(strength)) {
            let what = format!("--smooth {strength} is impossible");
            return Err(Error::new(what).hint("from 0 to 1, for example 0.5"));
        }
        Ok(())
    }

    /// Bytes that [`apply`](Self::apply) takes besides the parameters, at most, for a configuration as there.
    pub(crate) fn memory(&self, config: &Config) -> u64 {
        let layout = config.layout();
        let stored = if self.rounds() { 2 * layout.len() as u64 } else { 0 };
        let calibrates = self.smooth.is_some() || self.gptq.is_some();
        let pass = Needs { weights: 0, logits: 0, ..Needs::of(config, 0, 1) };
        let pass = if calibrates { pass.watched(config).total() } else { 0 };
        let sums = match self.gptq {
            Some(_) => Hessians::memory(&layout, config.context),
            None => 0,
        };
        stored + pass + sums
    }

    /// The tokens of the text that calibrates; none of no text.
    ///
    /// # Errors
    /// If there are too few, or the model does not know one.
    pub(crate) fn calibrating(&self, tokenizer: &Tokenizer, vocab: usize) -> Result<Vec<u32>> {
        let Some((path, most)) = &self.calibrate else { return Ok(Vec::new()) };
        let tokens = read_tokens(path, tokenizer, ("--calibrate-tokens", *most))?;
        known(&tokens, vocab).map(|()| tokens)
    }

    /// Changes a model's parameters, by the tokens of the text that calibrates in windows of the
    /// configuration's context, and the configuration if it is to rotate something while it computes; what
    /// was rounded.
    pub(crate) fn apply(
        &self,
        config: &mut Config,
        params: &mut [f32],
        calibrating: &[u32],
        quiet: bool,
    ) -> Result<Stored> {
        let layout = config.layout();
        if let Some(seed) = self.rotate {
            let _rotating = Phase::begin("rotating the weights", quiet);
            rotate(config, &layout, params, seed)?;
        }
        if let Some(seed) = self.rotate_down {
            let _rotating = Phase::begin("rotating what down_proj reads", quiet);
            *config = rotate_down(config, &layout, params, seed)?;
        }
        if let Some(strength) = self.smooth {
            let _reading = Phase::begin("looking at inputs", quiet);
            let seen = Layers::of_text(config, params, calibrating)?;
            smooth(config, &layout, params, &seen, strength)?;
        }
        if let Some(format) = self.nearest {
            return Ok(nearest_blocks(&layout, params, format));
        }
        if let Some(format) = self.mse {
            let _searching = Phase::begin("searching for scales", quiet);
            return search_blocks(&layout, params, format);
        }
        let Some(format) = self.gptq else { return Ok(Stored::new()) };
        let _rounding = Phase::begin("rounding by GPTQ", quiet);
        let mut inputs = Hessians::default();
        watch_text(config, params, calibrating, &mut inputs)?;
        round_blocks(&layout, params, &inputs, format)
    }
}
