//! One sequence that grows: what its next tokens need of those so far stays in a cache. Of softmax attention
//! these are keys and values, of gated linear attention a state that does not grow.
//!
//! Where a recipe takes each token's row as an operand of its own, the logits are those of a pass over the
//! whole sequence, bit for bit. Scales of whole tensors are those of the tokens that are given together.

use super::{Config, Decoder, Mixer};
use crate::nn::device::{Buffer, Cpu, Device, Slice, empty};
use crate::nn::gla;
use crate::nn::linear::Products;
use crate::nn::parts::Pass;

/// What the blocks hold of one sequence.
#[derive(Debug)]
pub struct Cache<D: Device = Cpu> {
    layers: Vec<Held<D>>,
    tokens: usize,
}

/// What a block holds.
#[derive(Debug)]
pub(super) struct Held<D: Device> {
    /// k|v of all tokens; of gated linear attention q|k|v of those behind the last whole chunk,
    pub(super) rows: Buffer<D>,
    /// their decays,
    pub(super) decays: Buffer<D>,
    /// and the states of the heads behind that chunk.
    pub(super) states: Buffer<D>,
}

empty!(Held { rows, decays, states });

/// What a block holds of so many tokens.
pub(super) struct Past<'a, D: Device> {
    pub(super) held: &'a mut Held<D>,
    pub(super) tokens: usize,
}

impl<D: Device> Cache<D> {
    /// Tokens of the sequence so far.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Forgets the sequence.
    pub fn clear(&mut self) {
        self.tokens = 0;
    }

    pub(super) fn layer(&mut self, l: usize) -> Past<'_, D> {
        Past { held: &mut self.layers[l], tokens: self.tokens }
    }
}

/// Elements of the rows, decays and states that a block holds of so many tokens.
fn sizes(config: &Config, layer: usize, tokens: usize) -> [usize; 3] {
    if config.mixer.of(layer) == Mixer::Attention {
        return [tokens * 2 * config.kv_heads * config.head_dim(), 0, 0];
    }
    let (heads, keys, values) = (config.gla.heads, config.gla_keys(), config.gla_values());
    let (key, value) = (keys / heads, values / heads);
    let shape = gla::Shape { batch: 1, sequence: gla::CHUNK - 1, heads, key, value };
    [shape.sequence * shape.qkv_width(), shape.sequence * keys, shape.states()]
}

/// Bytes of a cache of so many tokens.
pub fn cache_bytes(config: &Config, tokens: usize) -> u64 {
    let of = |layer| sizes(config, layer, tokens).iter().sum::<usize>() as u64;
    (0..config.layers).map(of).sum::<u64>() * size_of::<f32>() as u64
}

impl<D: Device> Decoder<D> {
    /// An empty cache for as many tokens as a sequence may have.
    pub fn cache(&self) -> Cache<D> {
        let layer = |layer| {
            let mut held = Held::default();
            let Held { rows, decays, states } = &mut held;
            let sizes = sizes(&self.config, layer, self.config.context);
            [rows, decays, states]
                .into_iter()
                .zip(sizes)
                .for_each(|(buffer, len)| self.device.grow(buffer, len));
            held
        };
        Cache { layers: (0..self.config.layers).map(layer).collect(), tokens: 0 }
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
