//! What is done to a model before, or while, its weights are rounded: methods that are better than rounding
//! to nearest. `exmy eval` changes parameters by them, `exmy quantize` writes what they made.

use crate::phase::Phase;
use exmy::BlockFormat;
use exmy::error::{Error, Result};
use exmy_train::evaluate::gptq::{Hessians, round_blocks};
use exmy_train::evaluate::layers::{Layers, watch_text};
use exmy_train::evaluate::rotate::{rotate, rotate_down};
use exmy_train::evaluate::search::search_blocks;
use exmy_train::evaluate::smooth::smooth;
use exmy_train::evaluate::{Stored, nearest_blocks};
use exmy_train::nn::decoder::Config;
use std::path::{Path, PathBuf};

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

/// Tokens of a text in a file, so many at most.
pub(crate) type Text<'a> = &'a dyn Fn(&Path, usize) -> Result<Vec<u32>>;

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

    /// Changes a model's parameters, for windows of the configuration's context, and the configuration if it
    /// is to rotate something while it computes; what was rounded.
    pub(crate) fn apply(
        &self,
        config: &mut Config,
        params: &mut [f32],
        text: Text<'_>,
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
        let tokens = match &self.calibrate {
            Some((path, most)) => text(path, *most)?,
            None => Vec::new(),
        };
        if let Some(strength) = self.smooth {
            let _reading = Phase::begin("looking at inputs", quiet);
            let seen = Layers::of_text(config, params, &tokens)?;
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
        watch_text(config, params, &tokens, &mut inputs)?;
        round_blocks(&layout, params, &inputs, format)
    }
}
