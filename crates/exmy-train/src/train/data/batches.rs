//! Which windows of a text a step sees.
//!
//! A window of context `T` at `t` has the inputs `t..t + T` and the targets `t + 1..t + T + 1`.
//! Training draws its windows with replacement, uniformly over all `n - T` starts, as nanoGPT's
//! `get_batch` does: row `r` of step `s` starts at `Philox(seed, Stream::new("batch").with(s))
//! .below(r, n - T)`. So a batch depends on nothing but seed, step and shape; a row does not
//! depend on the number of rows. Validation walks all windows that do not overlap.
//!
//! A text may be [spoiled](Batches::spoiled): the token at place `i` is another one, drawn uniformly, where
//! `Philox(0, Stream::new("noise")).uniform(2 i)` is below the share. The places are of the text, not of
//! the seed, and the same wherever a window shows them.

use super::Tokens;
use exmy::random::{Philox, Stream};

/// Random windows of a text, by step.
#[derive(Clone, Copy, Debug)]
pub struct Batches<'a> {
    tokens: &'a Tokens,
    /// The share of tokens that are replaced, and of how many there are to choose from.
    noise: (f64, usize),
}

impl<'a> Batches<'a> {
    /// Batches of `tokens`; costs nothing, so that it can be made where it is needed.
    pub fn new(tokens: &'a Tokens) -> Self {
        Self { tokens, noise: (0.0, 0) }
    }

    /// The same with a share of the tokens replaced by any of `vocab`, the old one among them.
    #[must_use]
    pub fn spoiled(self, share: f64, vocab: usize) -> Self {
        Self { noise: (share, vocab), ..self }
    }

    /// Replaces what is spoiled of tokens from a place of the text on.
    fn spoil(&self, start: usize, tokens: &mut [u32]) {
        let (share, vocab) = self.noise;
        if share == 0.0 || vocab == 0 {
            return;
        }
        let random = Philox::new(0, Stream::new("noise"));
        for (i, token) in (start as u64..).zip(tokens) {
            if random.uniform(2 * i) < share {
                *token = random.below(2 * i + 1, vocab as u64) as u32;
            }
        }
    }

    /// Where the window of `row` begins.
    ///
    /// # Panics
    /// If there are not more than `context` tokens
    /// ([`Dataset::check_context`](super::Dataset::check_context) says so before).
    pub fn start(&self, seed: u64, step: u64, row: usize, context: usize) -> usize {
        let n = self.tokens.len();
        assert!(n > context, "{n} tokens hold no window of {context} inputs and their targets");
        let philox = Philox::new(seed, Stream::new("batch").with(step));
        philox.below(row as u64, (n - context) as u64) as usize
    }

    /// Writes the inputs and targets of one step, both `batch x context`, rows one after another.
    ///
    /// # Panics
    /// If `tokens` or `targets` is not `batch * context` long, or there are not more than
    /// `context` tokens.
    pub fn fill(
        &self,
        seed: u64,
        step: u64,
        batch: usize,
        context: usize,
        tokens: &mut [u32],
        targets: &mut [u32],
    ) {
        let rows = rows(batch, context, tokens, targets);
        for (row, (inputs, targets)) in rows.enumerate() {
            let start = self.start(seed, step, row, context);
            self.tokens.copy_to(start, inputs);
            self.tokens.copy_to(start + 1, targets);
            self.spoil(start, inputs);
            self.spoil(start + 1, targets);
        }
    }
}

/// All windows of a text that do not overlap, in order: `(n - 1) / context` of them.
///
/// The last `(n - 1) mod context` targets belong to none.
///
/// # Panics
/// If `context` is 0.
pub fn windows(tokens: &Tokens, context: usize) -> TokenWindows<'_> {
    assert!(context > 0, "windows of context 0");
    TokenWindows { tokens, context }
}

/// See [`windows`].
#[derive(Clone, Copy, Debug)]
pub struct TokenWindows<'a> {
    tokens: &'a Tokens,
    context: usize,
}

impl TokenWindows<'_> {
    /// How many windows there are.
    pub fn len(&self) -> usize {
        self.tokens.len().saturating_sub(1) / self.context
    }

    /// Whether the text is too short for a single one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the inputs and targets of the windows `first..first + batch`, both
    /// `batch x context`.
    ///
    /// # Panics
    /// If one of them does not exist, or `tokens` or `targets` is not `batch * context` long.
    pub fn fill(&self, first: usize, batch: usize, tokens: &mut [u32], targets: &mut [u32]) {
        assert!(
            first <= self.len() && batch <= self.len() - first,
            "windows {first} to {} of {}",
            first.saturating_add(batch),
            self.len()
        );
        let rows = rows(batch, self.context, tokens, targets);
        for (row, (inputs, targets)) in rows.enumerate() {
            let start = (first + row) * self.context;
            self.tokens.copy_to(start, inputs);
            self.tokens.copy_to(start + 1, targets);
        }
    }

    /// Inputs and targets of every window.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Vec<u32>, Vec<u32>)> + '_ {
        let (tokens, context) = (self.tokens, self.context);
        (0..self.len()).map(move |i| {
            let start = i * context;
            (tokens.get(start..start + context), tokens.get(start + 1..start + 1 + context))
        })
    }
}

/// The rows of two `batch x context` buffers, side by side.
fn rows<'b>(
    batch: usize,
    context: usize,
    tokens: &'b mut [u32],
    targets: &'b mut [u32],
) -> impl Iterator<Item = (&'b mut [u32], &'b mut [u32])> {
    assert!(context > 0, "windows of context 0");
    for (name, len) in [("tokens", tokens.len()), ("targets", targets.len())] {
        assert!(
            Some(len) == batch.checked_mul(context),
            "`{name}` has {len} elements, not {batch} x {context}"
        );
    }
    tokens.chunks_exact_mut(context).zip(targets.chunks_exact_mut(context))
}
