//! A pass forward piece by piece, with the parameters of one piece at a time.
//!
//! A model whose parameters do not fit the memory is computed for many sequences at once: the embedding of
//! all of them, then one block after the other. A caller loads the parameters of a piece (its
//! [range](Decoder::range)) and gives each sequence's stream to it. The numbers are those of
//! [`states`](Decoder::states), bit for bit.

use core::ops::Range;

use super::{Decoder, copy};
use crate::nn::device::{Device, Slice};
use crate::nn::linear::Products;
use crate::nn::parameters::Entry;
use crate::nn::parts::{Params, Pass};

/// A piece of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Tables of tokens and positions.
    Embedding,
    /// A block.
    Block(usize),
    /// The last norm.
    Norm,
    /// From the last norm to the logits; the table of tokens again where it is tied.
    Head,
}

impl<D: Device> Decoder<D> {
    /// The pieces in their order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + use<D> {
        let blocks = (0..self.config.layers).map(Piece::Block);
        [Piece::Embedding].into_iter().chain(blocks).chain([Piece::Norm, Piece::Head])
    }

    /// The range of the arena that a piece reads.
    pub fn range(&self, piece: Piece) -> Range<usize> {
        let is_of = |entry: &&Entry| match piece {
            Piece::Embedding => {
                ["model.embed_", "model.sink."].iter().any(|begin| entry.name.starts_with(begin))
            }
            Piece::Block(l) => entry.name.starts_with(&format!("model.layers.{l}.")),
            Piece::Norm => entry.name.starts_with("model.norm."),
            Piece::Head if self.config.tied => entry.name == "model.embed_tokens.weight",
            Piece::Head => entry.name.starts_with("lm_head."),
        };
        let ranges = self.layout.iter().filter(is_of).map(|entry| entry.range.clone());
        let whole = |a: Range<usize>, b: Range<usize>| a.start.min(b.start)..a.end.max(b.end);
        ranges.reduce(whole).unwrap_or(0..0)
    }

    /// The stream, (tokens, d_model), where one sequence enters the first block. `params` are those of
    /// [`Piece::Embedding`].
    ///
    /// # Panics
    /// As [`states`](Self::states).
    pub fn embedded(
        &mut self,
        params: Slice<'_, D>,
        tokens: &[u32],
        products: &mut dyn Products<D>,
    ) -> Slice<'_, D> {
        let shape = self.shape(1, tokens.len());
        self.reserve(&shape, Pass::Forward);
        let params = Params::from(self.range(Piece::Embedding).start, params);
        self.embed(params, tokens, &shape, 0, products);
        self.saved.stream[0].first(tokens.len() * self.config.d_model)
    }

    /// The stream of one sequence behind a block, or what the last norm writes. `params` are those of the
    /// piece.
    ///
    /// # Panics
    /// If `stream` has no whole rows or more than the context, or the piece is another.
    pub fn through(
        &mut self,
        piece: Piece,
        params: Slice<'_, D>,
        stream: Slice<'_, D>,
        products: &mut dyn Products<D>,
    ) -> Slice<'_, D> {
        let d = self.config.d_model;
        assert!(stream.len().is_multiple_of(d), "a stream has whole rows of {d}");
        let (n, pass) = (stream.len() / d, Pass::Forward);
        let shape = self.shape(1, n);
        self.reserve(&shape, pass);
        copy(&self.device, stream, self.saved.stream[0].first_mut(n * d));
        let params = Params::from(self.range(piece).start, params);
        match piece {
            Piece::Block(l) => {
                self.block(params, l, &shape, pass, None, products);
                self.saved.stream[0].first(n * d)
            }
            Piece::Norm => {
                self.last_norm(params, n, pass, products);
                self.saved.norm.y.first(n * d)
            }
            Piece::Embedding | Piece::Head => panic!("{piece:?} is not between streams"),
        }
    }
}
