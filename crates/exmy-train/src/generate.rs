//! A published model that continues a sequence of tokens, with a cache: keys and values, or the states of
//! gated linear attention.
//!
//! Tokens are drawn as [`sample`](crate::train::sample) draws them. What a recipe says of keys and values
//! (`+k:tensor=mxfp8-e4m3`) is what the cache holds. All tokens that are given at once, a prompt or one new
//! token, are one operand of each product: a scale of a whole tensor is theirs. With recipes without such
//! scales and random bits the logits are, bit for bit, those of a pass over all tokens.

use crate::nn::decoder::{Cache, Config, Decoder};
use crate::nn::device::{Buffer, Cpu};
use crate::nn::site::Place;
use crate::recipe::device::Quantize;
use crate::recipe::{Engine, Images, Phase, Plan, Recipe, WeightCache};
use crate::train::sample::{Sampling, draw};
use exmy::error::{Error, Result};
use exmy::random::{Philox, Stream};

/// A model and the sequence it continues.
pub struct Generator<D: Quantize = Cpu> {
    device: D,
    decoder: Decoder<D>,
    params: Buffer<D>,
    plan: Plan,
    images: Images<D>,
    cache: Cache<D>,
    /// Places in the cache that a sink has.
    sunk: usize,
    options: Sampling,
}

impl<D: Quantize> Generator<D> {
    /// Of a model of this shape with these parameters; its context is what the sequence can grow to.
    ///
    /// # Errors
    /// If the recipe does not fit the model, or needs what a cache does not hold.
    ///
    /// # Panics
    /// If `params` are not the model's.
    pub fn new(
        device: D,
        config: Config,
        params: Vec<f32>,
        recipe: &Recipe,
        options: Sampling,
    ) -> Result<Self> {
        let decoder = Decoder::on(device.clone(), config);
        let decoder = decoder.map_err(Error::from_cause)?;
        let layout = decoder.layout();
        assert_eq!(params.len(), layout.len(), "parameters have the model's layout");
        let plan = recipe.settled(layout, 1)?;
        let mut layers = 0..config.layers as u32;
        let split = |layer| {
            let rounds = |place| !plan.place(0, Some(layer), place, false).is_none();
            rounds(Place::Scores) || rounds(Place::Probabilities)
        };
        if layers.any(split) {
            return Err(Error::new(format!("recipe {recipe} rounds scores or probabilities"))
                .hint(
                    "text is generated with a cache, which has keys and values: leave the rule out",
                ));
        }
        let (cache, params) = (decoder.cache(), device.buffer(params));
        Ok(Self {
            device,
            decoder,
            params,
            plan,
            images: Images::default(),
            cache,
            sunk: 0,
            options,
        })
    }

    /// Keeps rounded weights, of so many bytes at most, so that tokens after the first need not round them
    /// again; to the same bits.
    #[must_use]
    pub fn keeping(mut self, bytes: u64) -> Self {
        self.images.kept = WeightCache::new(bytes as usize / size_of::<f32>());
        self
    }

    /// Tokens of the sequence so far.
    pub fn tokens(&self) -> usize {
        self.cache.tokens() - self.sunk
    }

    /// How many more tokens fit; a sink takes the place of one.
    pub fn remaining(&self) -> usize {
        self.decoder.config().context - self.cache.tokens()
    }

    /// Logits of what follows the sequence and these tokens, which are added to it.
    ///
    /// # Errors
    /// If the device failed.
    ///
    /// # Panics
    /// If there are no tokens, more than [`remaining`](Self::remaining), or one is outside of the vocabulary.
    pub fn logits(&mut self, tokens: &[u32]) -> Result<Vec<f32>> {
        let phase = Phase::Sample((self.tokens() + tokens.len()) as u64);
        let Self { device, decoder, params, plan, images, cache, sunk, options } = self;
        let Config { sink, context, .. } = *decoder.config();
        let mut tokens = tokens.to_vec();
        // Without room for the sink's own place, it is in that of the first token.
        if sink && cache.tokens() == 0 && tokens.len() < context {
            tokens.insert(0, 0);
            *sunk = 1;
        }
        let mut engine = Engine::new(plan, options.seed, phase, images);
        let logits = decoder.continued(&*params, &tokens, cache, &mut engine);
        let logits = device.read(logits).into_owned();
        device.check()?;
        Ok(logits)
    }

    /// The token that follows the sequence and these tokens, which are added to it.
    ///
    /// # Errors
    /// As [`logits`](Self::logits).
    ///
    /// # Panics
    /// As [`logits`](Self::logits).
    pub fn next_token(&mut self, tokens: &[u32]) -> Result<u32> {
        let logits = self.logits(tokens)?;
        let random = Philox::new(self.options.seed, Stream::new("sample"));
        Ok(draw(&logits, self.options, random.uniform(self.tokens() as u64)))
    }
}
