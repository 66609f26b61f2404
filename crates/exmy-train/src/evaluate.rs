//! What a recipe costs a trained model: perplexity, divergence and agreement on a text.
//!
//! **Windows.** As Hugging Face's page "Perplexity of fixed-length models" has it: windows of `window` tokens
//! begin every `stride` tokens, and each scores the tokens that none before it scored, with all of the window
//! before them as context. The first token of the text is scored by none. Every scored token counts once.
//!
//! **Measures** of a recipe, sums in f64 over scored tokens: the mean loss in nats (perplexity is its
//! exponential); the mean of `KL(p || q)` in nats, p the distribution of the first recipe and q this one's;
//! the share of tokens whose likeliest successor is the first recipe's (equal logits: the lower token).
//! Losses and divergences of a token are in f32, of logits in f32.
//!
//! **Standard errors** come from blocks of text, which are the windows' scored parts: neighbouring tokens are
//! not independent. For a mean `m` of blocks with sums `s_i` over `n_i` tokens it is
//! `sqrt(B / (B - 1) sum((s_i - m n_i)²)) / sum(n_i)`, that of a ratio (Cochran, Sampling Techniques,
//! section 6.3).
//!
//! **Operands.** A window is one tensor: a recipe with scales of whole tensors takes each of its operands as
//! one. Of the head these are pieces of rows, so that logits take at most [`LOGITS`] bytes.

pub mod gptq;
mod grid;
pub mod layers;
mod needs;
mod pieces;
pub mod rotate;
pub mod search;
pub mod smooth;

use core::ops::Range;

pub use grid::{Stored, nearest_blocks, nearest_head};
pub use needs::{Needs, kept};

use crate::nn::decoder::{self, Config, Decoder, Position};
use crate::nn::device::{Buffer, Matrix, MatrixMut, Slice};
use crate::nn::device_rotation::DeviceRotation;
use crate::nn::loss::RowLoss;
use crate::nn::parameters::Layout;
use crate::nn::parts::Params;
use crate::recipe::device::Quantize;
use crate::recipe::{Engine, Images, Phase, Plan, Recipe, WeightCache};
use exmy::error::{Error, Result};
use layers::Layers;

/// Bytes that the logits of one recipe take at most, if a token's take no more.
pub const LOGITS: usize = 64 << 20;

/// How a text is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Tokens of a window.
    pub window: usize,
    /// Tokens from the beginning of one to that of the next.
    pub stride: usize,
}

/// One window of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its tokens.
    pub tokens: Range<usize>,
    /// Those of them that it scores.
    pub scored: Range<usize>,
}

impl Windows {
    /// The windows of a text of so many tokens.
    ///
    /// # Panics
    /// If the window has fewer than two tokens, or the stride is 0 or longer than the window.
    pub fn of(self, tokens: usize) -> Vec<Window> {
        let Self { window, stride } = self;
        assert!(window > 1 && (1..=window).contains(&stride), "{self:?} divide no text");
        let (mut windows, mut done) = (Vec::new(), 1);
        for begin in (0..tokens).step_by(stride) {
            let end = (begin + window).min(tokens);
            // A first token has nothing before it in its own window.
            let scored = done.max(begin + 1)..end;
            if !scored.is_empty() {
                windows.push(Window { tokens: begin..end, scored });
            }
            done = end;
            if end == tokens {
                break;
            }
        }
        windows
    }
}

/// What was measured of one recipe, block by block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measures {
    /// Tokens of each block.
    pub tokens: Vec<usize>,
    /// Sums of losses in nats.
    pub nats: Vec<f64>,
    /// Sums of divergences from the first recipe in nats.
    pub divergence: Vec<f64>,
    /// How often the likeliest token is the first recipe's.
    pub agreement: Vec<f64>,
}

/// A mean with its standard error; NaN where there is one block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// A token's.
    pub mean: f64,
    /// By blocks.
    pub error: f64,
}

impl Measures {
    /// Scored tokens.
    pub fn count(&self) -> usize {
        self.tokens.iter().sum()
    }

    /// The mean a token of sums over blocks, which are a field of this or a difference of two.
    pub fn mean(&self, sums: &[f64]) -> Mean {
        let count = self.count() as f64;
        let mean = sums.iter().sum::<f64>() / count;
        let blocks = sums.len() as f64;
        let rests = sums.iter().zip(&self.tokens).map(|(sum, &n)| sum - mean * n as f64);
        let squares = rests.map(|rest| rest * rest);
        // Of one block nothing is known, whatever rounding leaves.
        let spread = if sums.len() < 2 { f64::NAN } else { blocks / (blocks - 1.0) };
        let error = libm::sqrt(spread * squares.sum::<f64>()) / count;
        Mean { mean, error }
    }

    /// The mean loss.
    pub fn loss(&self) -> Mean {
        self.mean(&self.nats)
    }

    /// How much more loss it has than another, block by block of the same text.
    pub fn loss_above(&self, other: &Self) -> Mean {
        let more = self.nats.iter().zip(&other.nats).map(|(a, b)| a - b);
        self.mean(&more.collect::<Vec<_>>())
    }
}

/// A model and the recipes that are compared.
pub struct Evaluation<D: Quantize> {
    device: D,
    decoder: Decoder<D>,
    params: Buffer<D>,
    /// Those of all recipes but the first, if they are others.
    changed: Option<Changed<D>>,
    recipes: Vec<Compared<D>>,
    images: Images<D>,
    /// Of the first recipe, and losses.
    first: Buffer<D>,
    losses: Buffer<D>,
    targets: D::Tokens,
}

/// Parameters of recipes that have others than the first, and what turns the inputs of down in their model.
struct Changed<D: Quantize> {
    params: Buffer<D>,
    rotation: Option<DeviceRotation<D>>,
}

/// A recipe with what it was found to cost.
struct Compared<D: Quantize> {
    plan: Plan,
    /// Whether it rounds anything.
    rounds: bool,
    /// Rounded weights, while another recipe's are in use.
    kept: WeightCache<D>,
    states: Buffer<D>,
    measures: Measures,
    layers: Layers,
}

/// How many windows go through a model whose pieces are loaded one at a time together: as many as have
/// streams of 256 MiB.
pub fn together(config: &Config, recipes: usize) -> usize {
    const STREAMS: usize = 256 << 20;
    (STREAMS / size_of::<f32>() / (recipes * config.context * config.d_model)).max(1)
}

/// The shape of a model for windows of so many tokens: rotations are tabulated for no more.
pub fn shape(config: &Config, window: usize) -> Config {
    match config.position {
        Position::Learned => *config,
        Position::Rope { .. } | Position::None => Config { context: window, ..*config },
    }
}

impl<D: Quantize> Evaluation<D> {
    /// Of a model of this [`shape`] with these parameters.
    ///
    /// # Errors
    /// If a recipe does not fit the model.
    ///
    /// # Panics
    /// If `params` are not the model's or there is no recipe.
    pub fn new(device: D, config: Config, params: Vec<f32>, recipes: &[Recipe]) -> Result<Self> {
        let empty = Self::by_piece(device.clone(), config, recipes)?;
        let expected = empty.decoder.layout().len();
        assert_eq!(params.len(), expected, "parameters have the model's layout");
        Ok(Self { params: device.buffer(params), ..empty })
    }

    /// The same without parameters, which [`blocks`](Self::blocks) loads piece by piece.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// If there is no recipe.
    pub fn by_piece(device: D, config: Config, recipes: &[Recipe]) -> Result<Self> {
        assert!(!recipes.is_empty(), "something is compared");
        let decoder = Decoder::on(device.clone(), config).map_err(Error::from_cause)?;
        let layout: &Layout = decoder.layout();
        let compared = |recipe: &Recipe| {
            let plan = recipe.settled(layout, 1)?;
            let (measures, layers) = (Measures::default(), Layers::default());
            let (rounds, kept) = (!recipe.rules().is_empty(), WeightCache::default());
            Ok(Compared { plan, rounds, kept, states: Buffer::default(), measures, layers })
        };
        let recipes = recipes.iter().map(compared).collect::<Result<Vec<_>>>()?;
        Ok(Self {
            params: Buffer::default(),
            changed: None,
            device,
            decoder,
            recipes,
            images: Images::default(),
            first: Buffer::default(),
            losses: Buffer::default(),
            targets: D::Tokens::default(),
        })
    }

    /// Keeps rounded weights, of so many bytes at most, so that windows after the first need not round them
    /// again; to the same bits.
    #[must_use]
    pub fn keeping(mut self, bytes: u64) -> Self {
        let rounds = self.recipes.iter().filter(|compared| compared.rounds).count();
        let elements = bytes as usize / size_of::<f32>() / rounds.max(1);
        self.recipes.iter_mut().for_each(|compared| compared.kept = WeightCache::new(elements));
        self
    }

    /// Gives all recipes but the first other parameters than the model's, and the rotation of what down
    /// reads that their configuration has.
    ///
    /// # Panics
    /// If they have not the model's layout.
    pub fn change(&mut self, config: &Config, params: Vec<f32>) {
        self.recipes.iter_mut().for_each(|compared| compared.kept.forget());
        let expected = self.decoder.layout().len();
        assert_eq!(params.len(), expected, "parameters have the model's layout");
        let rotation = decoder::device_rotation(&self.device, config);
        self.changed = Some(Changed { params: self.device.buffer(params), rotation });
    }

    /// Measures one more block of a text; blocks are numbered from 0, which names their random bits. If it is
    /// `watched`, each linear operator is, too, which takes the time of another evaluation.
    ///
    /// # Errors
    /// If the device failed.
    ///
    /// # Panics
    /// If the window is longer than the model's context or a token is outside of the vocabulary.
    pub fn block(
        &mut self,
        text: &[u32],
        window: &Window,
        number: u64,
        watched: bool,
    ) -> Result<()> {
        let Self { device, decoder, params, changed, recipes, images, .. } = self;
        let phase = Phase::Evaluate { step: 0, pass: number };
        let mut streams = None;
        for (r, compared) in recipes.iter_mut().enumerate() {
            let Compared { plan, kept, states, layers, .. } = compared;
            core::mem::swap(&mut images.kept, kept);
            let mut engine = engine(plan, phase, images, watched.then_some(&mut *layers));
            let tokens = &text[window.tokens.clone()];
            let len = tokens.len() * decoder.config().d_model;
            device.grow(states, len);
            match changed.as_mut().filter(|_| r > 0) {
                Some(Changed { params, rotation }) => {
                    decoder.swap_rotation(rotation);
                    copy(device, decoder.states(&*params, tokens, 1, &mut engine), states, len);
                    decoder.swap_rotation(rotation);
                }
                None => copy(device, decoder.states(&*params, tokens, 1, &mut engine), states, len),
            }
            core::mem::swap(&mut images.kept, kept);
            if watched {
                layers.compare(streams.get_or_insert_with(|| layers.streams()));
            }
        }
        let (params, changed) = (core::mem::take(&mut self.params), self.changed.take());
        let others = changed.as_ref().map_or(&params, |changed| &changed.params).all();
        self.score([params.all(), others], 0, text, window, phase, watched);
        (self.params, self.changed) = (params, changed);
        self.device.check()
    }

    /// Measures what recipes make of a window from the states that they have, by the head's parameters, the
    /// first recipe's and those of others, which begin at a place of the arena.
    fn score(
        &mut self,
        params: [Slice<'_, D>; 2],
        start: usize,
        text: &[u32],
        window: &Window,
        phase: Phase,
        watched: bool,
    ) {
        let Self { device, decoder, recipes, images, first, losses, targets, .. } = self;
        let Config { d_model, vocab, .. } = *decoder.config();
        let rows = rows(vocab);
        for Compared { measures, .. } in recipes.iter_mut() {
            measures.tokens.push(window.scored.len());
            for sums in [&mut measures.nats, &mut measures.divergence, &mut measures.agreement] {
                sums.push(0.0);
            }
        }
        for begin in window.scored.clone().step_by(rows) {
            let scored = begin..(begin + rows).min(window.scored.end);
            let n = scored.len();
            device.set_tokens(&text[scored.clone()], targets);
            device.grow(losses, n);
            let mut likeliest = Vec::new();
            for (r, compared) in recipes.iter_mut().enumerate() {
                let Compared { plan, kept, states, measures, layers, .. } = compared;
                core::mem::swap(&mut images.kept, kept);
                // The state before a token predicts it.
                let at = scored.start - 1 - window.tokens.start;
                let states = states.part(at * d_model..(at + n) * d_model);
                let mut engine = engine(plan, phase, images, watched.then_some(layers));
                let params = Params::from(start, params[r.min(1)]);
                let logits = decoder.logits_by(params, states, &mut engine);
                core::mem::swap(&mut images.kept, kept);
                let tops = device.likeliest(logits, vocab);
                if r == 0 {
                    device.grow(first, n * vocab);
                    copy(device, logits, first, n * vocab);
                    likeliest = tops;
                    *measures.agreement.last_mut().expect("a block") += n as f64;
                } else {
                    let (a, y) = (logits, first.first(n * vocab));
                    device.row_loss(RowLoss::Kl, a, y, vocab, losses.first_mut(n));
                    add(&device.read(losses.first(n)), &mut measures.divergence);
                    let same = tops.iter().zip(&likeliest).filter(|(a, b)| a == b).count();
                    *measures.agreement.last_mut().expect("a block") += same as f64;
                }
                let logits = decoder.logits_again(n);
                device.cross_entropy(logits, vocab, targets, None, losses.first_mut(n));
                add(&device.read(losses.first(n)), &mut measures.nats);
            }
        }
    }

    /// What was found inside of the model in watched blocks, of each recipe.
    pub fn layers(&self) -> impl Iterator<Item = &Layers> {
        self.recipes.iter().map(|compared| &compared.layers)
    }

    /// What was measured and what was found inside, of each recipe.
    pub fn found(self) -> Vec<(Measures, Layers)> {
        self.recipes.into_iter().map(|compared| (compared.measures, compared.layers)).collect()
    }

    /// What was measured so far, of each recipe.
    pub fn measures(&self) -> impl Iterator<Item = &Measures> {
        self.recipes.iter().map(|compared| &compared.measures)
    }
}

/// A plan at work, watched if somebody watches.
fn engine<'a, D: Quantize>(
    plan: &'a Plan,
    phase: Phase,
    images: &'a mut Images<D>,
    layers: Option<&'a mut Layers>,
) -> Engine<'a, D> {
    let engine = Engine::new(plan, 0, phase, images);
    match layers {
        Some(layers) => engine.observed(layers),
        None => engine,
    }
}

/// Rows of logits that are made at once.
fn rows(vocab: usize) -> usize {
    (LOGITS / size_of::<f32>() / vocab).max(1)
}

/// Adds losses to the sum of the last block.
fn add(losses: &[f32], sums: &mut [f64]) {
    let sum: f64 = losses.iter().map(|&loss| f64::from(loss)).sum();
    *sums.last_mut().expect("a block") += sum;
}

fn copy<D: Quantize>(device: &D, from: Slice<'_, D>, to: &mut Buffer<D>, len: usize) {
    device.copy(Matrix::new(from, 1, len), MatrixMut::new(to.first_mut(len), 1, len));
}
