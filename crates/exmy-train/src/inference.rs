//! What a device does with a trained model, for callers that need not know which device it is.
//!
//! [`Evaluation`] and [`Generator`] are generic over devices: whoever makes one compiles all layers and
//! products for that device once more. An implementation of [`InferenceDevice`] makes them in the device's
//! own crate, so that what stands above the devices need not.

use crate::evaluate::layers::Layers;
use crate::evaluate::{Evaluation, Measures, Window};
use crate::generate::Generator;
use crate::nn::Cpu;
use crate::nn::decoder::Config;
use crate::nn::parameters::Entry;
use crate::recipe::Recipe;
use crate::recipe::device::Quantize;
use crate::train::sample::Sampling;
use exmy::error::Result;

/// A device that measures a trained model and generates with it. Implemented in its own crate, by a call of
/// the function of each name, [`evaluation`] and [`generator`].
pub trait InferenceDevice {
    /// The evaluation of a model with these parameters, or with none where they are loaded piece by piece;
    /// with so many bytes for rounded weights.
    ///
    /// # Errors
    /// As [`Evaluation::new`].
    ///
    /// # Panics
    /// As there.
    fn evaluation(
        &self,
        config: Config,
        params: Option<Vec<f32>>,
        recipes: &[Recipe],
        spare: u64,
    ) -> Result<Box<dyn Evaluate>>;

    /// A model that continues a sequence; with so many bytes for rounded weights.
    ///
    /// # Errors
    /// As [`Generator::new`].
    ///
    /// # Panics
    /// As there.
    fn generator(
        &self,
        config: Config,
        params: Vec<f32>,
        recipe: &Recipe,
        options: Sampling,
        spare: u64,
    ) -> Result<Box<dyn Generate>>;
}

impl InferenceDevice for Cpu {
    fn evaluation(
        &self,
        config: Config,
        params: Option<Vec<f32>>,
        recipes: &[Recipe],
        spare: u64,
    ) -> Result<Box<dyn Evaluate>> {
        evaluation(self, config, params, recipes, spare)
    }

    fn generator(
        &self,
        config: Config,
        params: Vec<f32>,
        recipe: &Recipe,
        options: Sampling,
        spare: u64,
    ) -> Result<Box<dyn Generate>> {
        generator(self, (config, params), recipe, options, spare)
    }
}

/// [`InferenceDevice::evaluation`] of a device.
///
/// # Errors
/// As there.
pub fn evaluation<D: Quantize>(
    device: &D,
    config: Config,
    params: Option<Vec<f32>>,
    recipes: &[Recipe],
    spare: u64,
) -> Result<Box<dyn Evaluate>>
where
    Evaluation<D>: 'static,
{
    let device = device.clone();
    let evaluation = match params {
        Some(params) => Evaluation::new(device, config, params, recipes)?,
        None => Evaluation::by_piece(device, config, recipes)?,
    };
    Ok(Box::new(evaluation.keeping(spare)))
}

/// [`InferenceDevice::generator`] of a device.
///
/// # Errors
/// As there.
pub fn generator<D: Quantize>(
    device: &D,
    (config, params): (Config, Vec<f32>),
    recipe: &Recipe,
    options: Sampling,
    spare: u64,
) -> Result<Box<dyn Generate>>
where
    Generator<D>: 'static,
{
    let generator = Generator::new(device.clone(), config, params, recipe, options)?;
    Ok(Box::new(generator.keeping(spare)))
}

/// An [`Evaluation`] on any device.
pub trait Evaluate {
    /// As [`Evaluation::change`].
    ///
    /// # Panics
    /// As there.
    fn change(&mut self, config: &Config, params: Vec<f32>);

    /// As [`Evaluation::block`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    fn block(&mut self, text: &[u32], window: &Window, number: u64, watched: bool) -> Result<()>;

    /// As [`Evaluation::blocks`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    fn blocks(
        &mut self,
        text: &[u32],
        windows: &[Window],
        first: u64,
        watched: bool,
        load: &mut dyn FnMut(&Entry, &mut [f32]) -> Result<()>,
    ) -> Result<()>;

    /// As [`Evaluation::measures`].
    fn measures(&self) -> Box<dyn Iterator<Item = &Measures> + '_>;

    /// As [`Evaluation::found`].
    fn found(self: Box<Self>) -> Vec<(Measures, Layers)>;
}

impl<D: Quantize> Evaluate for Evaluation<D> {
    fn change(&mut self, config: &Config, params: Vec<f32>) {
        self.change(config, params);
    }

    fn block(&mut self, text: &[u32], window: &Window, number: u64, watched: bool) -> Result<()> {
        self.block(text, window, number, watched)
    }

    fn blocks(
        &mut self,
        text: &[u32],
        windows: &[Window],
        first: u64,
        watched: bool,
        load: &mut dyn FnMut(&Entry, &mut [f32]) -> Result<()>,
    ) -> Result<()> {
        self.blocks(text, windows, first, watched, load)
    }

    fn measures(&self) -> Box<dyn Iterator<Item = &Measures> + '_> {
        Box::new(self.measures())
    }

    fn found(self: Box<Self>) -> Vec<(Measures, Layers)> {
        Self::found(*self)
    }
}

/// A [`Generator`] on any device.
pub trait Generate {
    /// As [`Generator::tokens`].
    fn tokens(&self) -> usize;

    /// As [`Generator::remaining`].
    fn remaining(&self) -> usize;

    /// As [`Generator::next_token`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    fn next_token(&mut self, tokens: &[u32]) -> Result<u32>;
}

impl<D: Quantize> Generate for Generator<D> {
    fn tokens(&self) -> usize {
        self.tokens()
    }

    fn remaining(&self) -> usize {
        self.remaining()
    }

    fn next_token(&mut self, tokens: &[u32]) -> Result<u32> {
        self.next_token(tokens)
    }
}
