//! Passes forward alone: losses, the logits of what follows, and the stream's end from which a part of the
//! logits can be made at a time.

use core::ops::Range;

use super::{Decoder, Saved};
use crate::nn::device::{Device, Slice, SliceMut};
use crate::nn::linear::Products;
use crate::nn::parts::{Context, Params, Pass};
use crate::nn::site::Place;

impl<D: Device> Decoder<D> {
    /// The loss in nats of each token, without gradients.
    ///
    /// # Panics
    /// As [`forward_backward`](Self::forward_backward), and if `losses` has not one element a token.
    pub fn losses<'a>(
        &mut self,
        params: impl Into<Slice<'a, D>>,
        tokens: &[u32],
        targets: &[u32],
        batch: usize,
        products: &mut dyn Products<D>,
        losses: impl Into<SliceMut<'a, D>>,
    ) {
        let (params, losses) = (params.into(), losses.into());
        assert_eq!(tokens.len(), losses.len(), "every token has one loss");
        self.forward(params, tokens, batch, Pass::Forward, products, None);
        self.logits(params, 0..tokens.len(), products);
        self.list_targets(tokens, targets);
        let vocab = self.config.vocab;
        let Saved { logits, targets, .. } = &mut self.saved;
        let logits = logits.first_mut(tokens.len() * vocab);
        self.device.cross_entropy(logits, vocab, targets, None, losses);
    }

    /// The logits, one a token of the vocabulary, of what follows one sequence.
    ///
    /// # Panics
    /// If `params` has not the layout's length, `tokens` is not one to `context` tokens, or a token
    /// is not below `vocab`.
    pub fn last_logits<'a>(
        &mut self,
        params: impl Into<Slice<'a, D>>,
        tokens: &[u32],
        products: &mut dyn Products<D>,
    ) -> Slice<'_, D> {
        let params = params.into();
        let mut seen = tokens.to_vec();
        if self.config.sink && seen.len() < self.config.context {
            // The sink takes the place of the first token: here of one that is put in front.
            seen.insert(0, 0);
        }
        self.forward(params, &seen, 1, Pass::Forward, products, None);
        self.logits(params, seen.len() - 1..seen.len(), products);
        self.saved.logits.first(self.config.vocab)
    }

    /// What the last norm writes, (tokens, d_model), of `batch` sequences. [`logits_of`](Self::logits_of)
    /// makes logits of its rows, as many at a time as there is memory for.
    ///
    /// # Panics
    /// As [`forward_backward`](Self::forward_backward).
    pub fn states<'a>(
        &mut self,
        params: impl Into<Slice<'a, D>>,
        tokens: &[u32],
        batch: usize,
        products: &mut dyn Products<D>,
    ) -> Slice<'_, D> {
        self.forward(params.into(), tokens, batch, Pass::Forward, products, None);
        self.saved.norm.y.first(tokens.len() * self.config.d_model)
    }

    /// The logits, (rows, vocab), of rows that [`states`](Self::states) gave. A recipe takes them as one
    /// operand of the head.
    ///
    /// # Panics
    /// If `params` has not the layout's length, or `states` no whole rows.
    pub fn logits_of<'a>(
        &mut self,
        params: impl Into<Slice<'a, D>>,
        states: impl Into<Slice<'a, D>>,
        products: &mut dyn Products<D>,
    ) -> Slice<'_, D> {
        let (params, states) = (params.into(), states.into());
        assert_eq!(params.len(), self.layout.len(), "parameters have the model's layout");
        self.logits_by(params.into(), states, products)
    }

    /// The same with parameters of which the head's are in memory.
    pub(crate) fn logits_by(
        &mut self,
        params: Params<'_, D>,
        states: Slice<'_, D>,
        products: &mut dyn Products<D>,
    ) -> Slice<'_, D> {
        let (d, vocab) = (self.config.d_model, self.config.vocab);
        assert!(states.len().is_multiple_of(d), "states are whole rows of {d}");
        let len = states.len() / d * vocab;
        let Self { device, places, saved, .. } = self;
        let cx = &mut Context { device: &*device, products, params };
        device.grow(&mut saved.logits, len);
        places.head.forward(cx, states, saved.logits.first_mut(len));
        cx.tensor(None, Place::Logits, false, saved.logits.first_mut(len), vocab);
        saved.logits.first(len)
    }

    /// The logits of as many rows that [`logits_of`](Self::logits_of) made last, to be changed.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn logits_again(&mut self, rows: usize) -> SliceMut<'_, D> {
        self.saved.logits.first_mut(rows * self.config.vocab)
    }

    /// The logits of the given tokens of the batch, from the last norm's output.
    pub(super) fn logits(
        &mut self,
        params: Slice<'_, D>,
        tokens: Range<usize>,
        products: &mut dyn Products<D>,
    ) {
        let d = self.config.d_model;
        let norm = core::mem::take(&mut self.saved.norm.y);
        self.logits_of(params, norm.part(tokens.start * d..tokens.end * d), products);
        self.saved.norm.y = norm;
    }
}
