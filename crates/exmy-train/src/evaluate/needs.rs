//! The memory of an evaluation, before it is taken: a bound, of which each term is one or more arrays that
//! are there at the same time.
//!
//! Not in it are the file, which is mapped and whose pages the system takes back when it needs them, and what
//! the program holds besides: its code, the text, a vocabulary.

use super::{rows, together};
use crate::nn::decoder::Config;
use crate::nn::hadamard;
use crate::nn::parameters::Layout;
use crate::nn::site::{Operand, Product};
use crate::recipe::{Linear, Recipe};
use exmy::error::Result;
use exmy::parallel;

/// Bytes that an evaluation takes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Parameters in f32.
    pub weights: u64,
    /// Weights that recipes have rounded and keep: [`kept`].
    pub kept: u64,
    /// Of a window's pass, and the last norm's output of each recipe.
    pub activations: u64,
    /// The largest operands of a product, rounded.
    pub operands: u64,
    /// Of the first recipe and of another.
    pub logits: u64,
    /// What each thread works in: scores of a head, and parts of operands in the order of a product.
    pub threads: u64,
    /// What changes the weights before windows are computed takes so much meanwhile.
    pub before: u64,
}

fn bytes(numbers: usize) -> u64 {
    size_of::<f32>() as u64 * numbers as u64
}

impl Needs {
    /// Of a model of this [`shape`](super::shape) with so many parameters, in windows of its context, where
    /// no rounded weights are kept.
    pub fn of(config: &Config, parameters: usize, recipes: usize) -> Self {
        let Config { d_model: d, vocab, context, hidden, .. } = *config;
        let turned = |numbers| if config.rotate_down.is_some() { numbers } else { 0 };
        let token = (6 + recipes) * d
            + turned(hidden)
            + config.qkv_outputs()
            + config.query_width()
            + config.mlp_outputs()
            + hidden;
        // As far as products were seen to take it, and some more.
        const PARTS: usize = 1 << 19;
        let own = 2 * context * context + PARTS;
        Self {
            weights: bytes(parameters + turned(hadamard::held(hidden))),
            kept: 0,
            activations: bytes(context * token),
            operands: bytes(d.max(hidden) * context + vocab * d),
            logits: 2 * bytes(vocab * rows(vocab).min(context)),
            threads: bytes(parallel::threads() * own),
            before: 0,
        }
    }

    /// The same where the parameters of one piece of the model are in memory at a time, for as many of so
    /// many windows as are computed [`together`].
    pub fn by_piece(config: &Config, recipes: usize, windows: usize) -> Self {
        let own = Self::of(config, largest_piece(config), recipes);
        let windows = together(config, recipes).min(windows);
        let streams = windows * recipes * config.context * config.d_model;
        Self { activations: own.activations + bytes(streams), ..own }
    }

    /// The same where one window is watched ([`Evaluation::block`](super::Evaluation::block)): streams after
    /// all blocks, operands before they were rounded, and an output of unrounded ones.
    #[must_use]
    pub fn watched(self, config: &Config) -> Self {
        let streams = 3 * config.layers * config.context * config.d_model;
        let seen = 2 * self.operands + self.logits;
        Self { activations: self.activations + bytes(streams) + seen, ..self }
    }

    /// All that is there at once.
    pub fn total(&self) -> u64 {
        let windows = self.kept + self.logits;
        let both = self.weights + self.activations + self.operands + self.threads;
        both + windows.max(self.before)
    }
}

/// Parameters of the largest piece of a model that is loaded at a time.
fn largest_piece(config: &Config) -> usize {
    let layout = config.layout();
    let block = layout.iter().filter(|entry| entry.name.starts_with("model.layers.0."));
    let block: usize = block.map(|entry| entry.range.len()).sum();
    block.max(config.vocab * config.d_model)
}

/// Bytes of the rounded weights that recipes keep at most, of which so many fit
/// ([`Evaluation::keeping`](super::Evaluation::keeping)): all of a model, or those of one piece of it at a
/// time.
///
/// # Errors
/// If a recipe does not fit the model.
pub fn kept(recipes: &[Recipe], config: &Config, spare: u64, by_piece: bool) -> Result<u64> {
    let layout = config.layout();
    let rounding = recipes.iter().filter(|recipe| !recipe.rules().is_empty());
    let share = spare / rounding.clone().count().max(1) as u64;
    let piece = bytes(largest_piece(config));
    let mut sum = 0;
    for recipe in rounding {
        let all = bytes(rounded(recipe, &layout)?);
        sum += share.min(if by_piece { all.min(piece) } else { all });
    }
    Ok(sum)
}

/// Weights that a recipe rounds before they are multiplied.
fn rounded(recipe: &Recipe, layout: &Layout) -> Result<usize> {
    let plan = recipe.settled(layout, 1)?;
    let is_rounded = |linear: &&Linear| {
        !plan.operand(0, linear.site, Product::Forward, Operand::Weight).is_none()
    };
    Ok(plan.linears().iter().filter(is_rounded).map(|linear| linear.size() as usize).sum())
}
