//! Text from a trained model, one token at a time.
//!
//! Each token is drawn from softmax(logits / temperature) by inversion: the uniform number of token
//! i is addressed by (seed, "sample", i), so the same seed gives the same text. The model sees the
//! last `context` tokens.
//!
//! While the text fits the context, and where the recipe takes each token by itself, what was computed of the
//! tokens so far stays in a cache, and rounded weights stay, too: the same text, sooner.

use crate::nn::decoder::{Cache, Config, Decoder};
use crate::recipe::{Engine, Images, Phase, Plan, WeightCache};
use crate::train::config;
use crate::train::run::Folder;
use crate::train::{checkpoint, memory};
use exmy::error::{Error, Result};
use exmy::random::{Philox, Stream};
use exmy::shown::printable_path;

/// How tokens are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 1 draws from the model's own distribution, 0 takes the likeliest token.
    pub temperature: f64,
    /// Only the so many likeliest tokens are candidates; 0: all.
    pub top_k: usize,
    /// Seed of the draws.
    pub seed: u64,
}

/// A model that continues token sequences, on the CPU.
pub struct Sampler {
    config: config::Config,
    decoder: Decoder,
    params: Vec<f32>,
    plan: Plan,
    images: Images,
    options: Sampling,
    /// What stays of tokens, and these tokens; `None` where nothing is kept.
    cache: Option<(Cache, Vec<u32>)>,
}

impl Sampler {
    /// The model of a run: its final weights, or its newest checkpoint while it is unfinished.
    ///
    /// # Errors
    /// If the folder holds no run, the run has no weights yet, or they cannot be read.
    pub fn open(folder: &Folder, options: Sampling) -> Result<Self> {
        let config = folder.config()?;
        let Some(shape) = config.model.decoder().copied() else {
            return Err(Error::new(format!(
                "{} holds no language model to draw text from",
                printable_path(folder.path())
            )));
        };
        let layout = shape.layout();
        let params = checkpoint::load_model(&folder.weights()?, &layout)?;
        let decoder = Decoder::new(shape).map_err(Error::from_cause)?;
        let plan = config.recipe.settled(&layout, config.train.steps)?;
        let step = Phase::Sample(0).step();
        let cache = plan.is_by_token(step).then(|| (decoder.cache(), Vec::new()));
        let mut images = Images::default();
        images.kept = WeightCache::new(memory::available().map_or(0, |bytes| bytes as usize / 8));
        Ok(Self { config, decoder, params, plan, images, options, cache })
    }

    /// The same without anything that is kept: every token is computed from the whole text.
    #[must_use]
    pub fn forgetful(mut self) -> Self {
        self.cache = None;
        self.images.kept = WeightCache::default();
        self
    }

    /// Whether what was computed of tokens stays.
    pub fn keeps(&self) -> bool {
        self.cache.is_some()
    }

    /// The run's configuration.
    pub fn config(&self) -> &config::Config {
        &self.config
    }

    /// Draws the token that follows `tokens`.
    ///
    /// # Panics
    /// If `tokens` is empty or holds a token outside the vocabulary.
    pub fn next_token(&mut self, tokens: &[u32]) -> u32 {
        let Config { context, sink, .. } = *self.decoder.config();
        let seen = &tokens[tokens.len().saturating_sub(context)..];
        let position = tokens.len() as u64;
        let phase = Phase::Sample(position);
        let mut engine = Engine::new(&self.plan, self.options.seed, phase, &mut self.images);
        // Without room for the sink's own place, it is in that of the first token.
        let fits = tokens.len() + usize::from(sink) <= context;
        let logits = match self.cache.as_mut().filter(|_| fits) {
            Some((cache, held)) => {
                if held.is_empty() || !tokens.starts_with(held) || tokens.len() == held.len() {
                    cache.clear();
                    held.clear();
                }
                let mut new = tokens[held.len()..].to_vec();
                if sink && held.is_empty() {
                    new.insert(0, 0);
                }
                *held = tokens.to_vec();
                self.decoder.continued(&*self.params, &new, cache, &mut engine)
            }
            None => self.decoder.last_logits(&*self.params, seen, &mut engine),
        };
        let random = Philox::new(self.options.seed, Stream::new("sample"));
        draw(logits.numbers(), self.options, random.uniform(position))
    }
}

/// The token at which the cumulative probability first exceeds `uniform`.
pub fn draw(logits: &[f32], options: Sampling, uniform: f64) -> u32 {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    // Equal logits keep their order, so the result does not depend on the sorting algorithm.
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
    if options.temperature == 0.0 {
        return order[0] as u32;
    }
    if options.top_k > 0 {
        order.truncate(options.top_k);
    }
    let largest = f64::from(logits[order[0]]);
    let weight = |i: usize| libm::exp((f64::from(logits[i]) - largest) / options.temperature);
    let total: f64 = order.iter().map(|&i| weight(i)).sum();
    let mut left = uniform * total;
    for &i in &order {
        left -= weight(i);
        if left < 0.0 {
            return i as u32;
        }
    }
    order[order.len() - 1] as u32
}
