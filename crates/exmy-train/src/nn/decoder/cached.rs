//! One sequence that grows: the keys and values of its tokens stay in a cache.
//!
//! Where a recipe takes each token's row as an operand of its own, the logits are those of a pass over the
//! whole sequence, bit for bit. Scales of whole tensors are those of the tokens that are given together.

use super::{Config, Decoder, Mixer};
use crate::nn::device::{Buffer, Device, Slice};
use crate::nn::linear::Products;
use crate::nn::parts::Pass;

/// Keys and values of one sequence, as the attention of each block reads them.
#[derive(Debug)]
pub struct Cache<D: Device> {
    layers: Vec<Buffer<D>>,
    tokens: usize,
}

/// The cache of one block: rows k|v, the first `tokens` of which are there.
pub(super) struct Past<'a, D: Device> {
    pub(super) rows: &'a mut Buffer<D>,
    pub(super) tokens: usize,
}

impl<D: Device> Cache<D> {
    /// Tokens of which it has keys and values.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Forgets the sequence.
    pub fn clear(&mut self) {
        self.tokens = 0;
    }

    pub(super) fn layer(&mut self, l: usize) -> Past<'_, D> {
        Past { rows: &mut self.layers[l], tokens: self.tokens }
    }
}

/// Bytes of a cache of so many tokens; 0 of a model that has [none](Decoder::cache).
pub fn cache_bytes(config: &Config, tokens: usize) -> u64 {
    if config.mixer.any(Mixer::Gla, config.layers) {
        return 0;
    }
    (config.layers * tokens * 2 * config.kv_heads * config.head_dim() * size_of::<f32>()) as u64
}

impl<D: Device> Decoder<D> {
    /// An empty cache for as many tokens as a sequence may have; `None` of a model with another mixer than
    /// softmax attention.
    pub fn cache(&self) -> Option<Cache<D>> {
        let config = &self.config;
        if config.mixer.any(Mixer::Gla, config.layers) {
            return None;
        }
        let len = config.context * 2 * config.kv_heads * config.head_dim();
        let layer = |_| {
            let mut rows = Buffer::default();
            self.device.grow(&mut rows, len);
            rows
        };
        Some(Cache { layers: (0..config.layers).map(layer).collect(), tokens: 0 })
    }

    /// The logits, one a token of the vocabulary, of what follows a sequence that goes on by `tokens`. Scores
    /// and probabilities of the attention are not rounded, whatever a recipe says of them.
    ///
    /// # Panics
    /// As [`last_logits`](Self::last_logits), and if the sequence becomes longer than the context.
    pub fn continued<'a>(
        &mut self,
        params: impl Into<Slice<'a, D>>,
        tokens: &[u32],
        cache: &mut Cache<D>,
        products: &mut dyn Products<D>,
    ) -> Slice<'_, D> {
        let (params, n, context) = (params.into(), tokens.len(), self.config.context);
        let all = cache.tokens + n;
        assert!(all <= context, "{all} tokens are more than the context of {context}");
        self.forward(params, tokens, 1, Pass::Forward, products, Some(cache));
        cache.tokens = all;
        self.logits(params, n - 1..n, products);
        self.saved.logits.first(self.config.vocab)
    }
}
