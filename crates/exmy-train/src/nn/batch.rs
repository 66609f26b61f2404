//! What a model is given, and what it does with it: one interface for every family.

use crate::nn::device::{Device, Slice, SliceMut};
use crate::nn::linear::Products;
use crate::nn::parameters::Layout;
use exmy::random::Stream;

/// What one pass is over.
#[derive(Clone, Copy, Debug)]
pub enum Batch<'a> {
    /// Sequences of tokens, one after the other, and the token that follows each.
    Tokens {
        /// What is read.
        tokens: &'a [u32],
        /// What is predicted.
        targets: &'a [u32],
        /// How many sequences of equal length they are.
        sequences: usize,
    },
    /// Rows that the model draws by address and labels by its teacher.
    Drawn {
        /// Seed of the run.
        seed: u64,
        /// Which part of the data.
        stream: Stream,
        /// The first row of that part.
        first: u64,
        /// How many rows.
        rows: usize,
    },
}

impl Batch<'_> {
    /// Losses of this batch: one a token, or one a row.
    pub const fn len(&self) -> usize {
        match self {
            Self::Tokens { tokens, .. } => tokens.len(),
            Self::Drawn { rows, .. } => *rows,
        }
    }

    /// Whether there is nothing in it.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A model in training.
pub trait Model<D: Device>: Send {
    /// The table of the parameter arena.
    fn layout(&self) -> &Layout;

    /// The mean loss of `batch`; adds its gradient to `grads`, which has the layout of `params`.
    ///
    /// # Panics
    /// If the lengths do not fit the layout, or `batch` is not of the model's kind and sizes.
    fn forward_backward(
        &mut self,
        params: Slice<'_, D>,
        grads: SliceMut<'_, D>,
        batch: &Batch<'_>,
        products: &mut dyn Products<D>,
    ) -> D::Scalar;

    /// The loss of each token or row of `batch`, without gradients.
    ///
    /// # Panics
    /// As [`forward_backward`](Self::forward_backward), and if `losses` has not [`Batch::len`]
    /// elements.
    fn losses(
        &mut self,
        params: Slice<'_, D>,
        batch: &Batch<'_>,
        products: &mut dyn Products<D>,
        losses: SliceMut<'_, D>,
    );

    /// From now on gradients are those of the loss plus `coefficient` times the mean square of the
    /// logarithm of the softmax's normalizer, where the model has a softmax over tokens. The losses that are
    /// returned stay without.
    fn set_z_loss(&mut self, _coefficient: f64) {}

    /// The logits of what follows one sequence; `None` of a model that reads no tokens.
    ///
    /// # Panics
    /// As [`Decoder::last_logits`](crate::nn::decoder::Decoder::last_logits).
    fn last_logits(
        &mut self,
        _params: Slice<'_, D>,
        _tokens: &[u32],
        _products: &mut dyn Products<D>,
    ) -> Option<Slice<'_, D>> {
        None
    }
}
