//! What a recipe does inside of a model: to each linear operator, and to the stream between the blocks.
//!
//! | of a linear operator | is |
//! |---|---|
//! | `error` | `\|Y - R\| / \|R\|` in Frobenius norms, Y its output, R that of its unrounded operands |
//! | `sqnr_db` of an operand | `10 log10(sum x² / sum (x - q)²)`, x before rounding and q after |
//! | `flushed` | share of its elements that were not zero and are |
//! | `kurtosis` | excess kurtosis of its elements before rounding, 0 of normal ones |
//! | `over_median` | the largest magnitude over the median of the channels' largest: hot channels |
//!
//! R is made by [`exmy::gemm::f32`] from what the operator was given, so `error` is this operator's own. What
//! all operators up to a block did together is the block's `drift`: `|S - F| / |F|`, S the residual stream
//! after the block and F that under the first recipe. Operands that are rotated are looked at in the
//! coordinates in which they are rounded. Kurtosis and hot channels are those of the probes `kurtosis` and
//! `channels`; they and flushed shares are the diagnostics of "Dissecting Outlier Dynamics in LLM NVFP4
//! Pretraining" (arXiv 2602.02047).
//!
//! Sums are in f64 over all windows that were looked at. [`Layers`] is an [`Observer`] and changes nothing.

use std::collections::BTreeMap;

use crate::nn::Cpu;
use crate::nn::decoder::{Config, Decoder};
use crate::nn::site::{Operand, Place, Product, Site};
use crate::recipe::{Engine, Images, Observer, Phase, Recipe, Rounded};
use crate::train::probe::moments::{Powers, column_maxima, elements, quantile, sorted};
use exmy::error::{Error, Result};
use exmy::gemm::f32::{Output, matmul};
use exmy::slice::{View, ViewMut};

/// Sums of squares of a difference and of what it is a difference from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Squares {
    difference: f64,
    whole: f64,
}

impl Squares {
    fn add(&mut self, x: f64, from: f64) {
        self.difference += (x - from) * (x - from);
        self.whole += from * from;
    }

    /// 0 where nothing differs, of zeros too.
    fn relative(&self) -> f64 {
        if self.difference == 0.0 { 0.0 } else { libm::sqrt(self.difference / self.whole) }
    }
}

/// What rounding did to one operand of a linear operator.
#[derive(Clone, Debug, Default)]
pub struct OperandError {
    squares: Squares,
    flushed: u64,
    count: u64,
    powers: Powers,
    maxima: Vec<f64>,
}

impl OperandError {
    fn see(&mut self, before: View<'_, f32>, after: View<'_, f32>) {
        for (x, q) in elements(before).zip(elements(after)) {
            self.squares.add(q, x);
            self.flushed += u64::from(x != 0.0 && q == 0.0);
            self.count += 1;
        }
        self.powers = self.powers.and(&Powers::of(elements(before)));
        let maxima = column_maxima(before);
        self.maxima.resize(maxima.len(), 0.0);
        self.maxima.iter_mut().zip(maxima).for_each(|(most, more)| *most = most.max(more));
    }

    /// Signal to quantization noise in decibels; infinite where nothing is lost.
    pub fn sqnr_db(&self) -> f64 {
        10.0 * libm::log10(self.squares.whole / self.squares.difference)
    }

    /// The share of elements that were not zero and are.
    pub fn flushed(&self) -> f64 {
        self.flushed as f64 / self.count as f64
    }

    /// The excess kurtosis before rounding.
    pub fn kurtosis(&self) -> f64 {
        self.powers.excess_kurtosis()
    }

    /// The largest magnitude of each channel before rounding.
    pub fn channels(&self) -> &[f64] {
        &self.maxima
    }

    /// The largest magnitude over the median of the channels' largest.
    pub fn over_median(&self) -> f64 {
        let maxima = sorted(self.maxima.clone());
        maxima.last().copied().unwrap_or(f64::NAN) / quantile(&maxima, 0.5)
    }
}

/// One linear operator.
#[derive(Clone, Debug, Default)]
pub struct OperatorError {
    /// Of its output.
    output: Squares,
    /// Its inputs.
    pub input: OperandError,
    /// Its weights.
    pub weight: OperandError,
}

impl OperatorError {
    /// How far its output is from that of its unrounded operands, relative to that.
    pub fn error(&self) -> f64 {
        self.output.relative()
    }
}

/// All linear operators of a model under one recipe, and the stream after each block.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    sites: BTreeMap<Site, OperatorError>,
    drifts: Vec<Squares>,
    /// Of the window that is looked at: inputs (rows, columns, elements) and reference outputs of operators
    /// whose turn it is, and the stream after each block.
    inputs: BTreeMap<Site, (usize, usize, Vec<f32>)>,
    references: BTreeMap<Site, Vec<f32>>,
    streams: Vec<Vec<f32>>,
}

impl Layers {
    /// What the operators of a model's blocks read in a text, in f32, in pieces of the model's context.
    ///
    /// # Errors
    /// If the configuration is that of no model.
    ///
    /// # Panics
    /// If `params` are not the model's, or a token is outside of the vocabulary.
    pub fn of_text(config: &Config, params: &[f32], text: &[u32]) -> Result<Self> {
        let mut seen = Self::default();
        watch_text(config, params, text, &mut seen).map(|()| seen)
    }

    /// The linear operators in the model's order: the head is the last.
    pub fn linears(&self) -> impl Iterator<Item = (Site, &OperatorError)> {
        let blocks = self.sites.iter().filter(|(site, _)| site.layer.is_some());
        let head = self.sites.iter().filter(|(site, _)| site.layer.is_none());
        blocks.chain(head).map(|(site, linear)| (*site, linear))
    }

    /// How far the stream after each block is from the first recipe's, relative to that.
    pub fn drifts(&self) -> impl Iterator<Item = f64> {
        self.drifts.iter().map(Squares::relative)
    }

    /// Compares the streams of a window with the first recipe's.
    pub(super) fn compare(&mut self, first: &[Vec<f32>]) {
        self.drifts.resize(first.len(), Squares::default());
        let streams = core::mem::take(&mut self.streams);
        for ((sums, own), first) in self.drifts.iter_mut().zip(&streams).zip(first) {
            for (x, y) in own.iter().zip(first) {
                sums.add((*x).into(), (*y).into());
            }
        }
    }

    /// The streams of the last window.
    pub(super) fn streams(&self) -> Vec<Vec<f32>> {
        self.streams.clone()
    }
}

/// Shows an observer what happens in a model that reads a text in f32, in pieces of the model's context.
///
/// # Errors
/// If the configuration is that of no model.
///
/// # Panics
/// If `params` are not the model's, or a token is outside of the vocabulary.
pub fn watch_text(
    config: &Config,
    params: &[f32],
    text: &[u32],
    observer: &mut dyn Observer,
) -> Result<()> {
    let decoder = Decoder::<Cpu>::new(*config);
    let mut decoder = decoder.map_err(Error::from_cause)?;
    let plan = Recipe::default().settled(decoder.layout(), 1)?;
    let mut images = Images::default();
    for (number, piece) in text.chunks(config.context).enumerate() {
        let phase = Phase::Evaluate { step: 0, pass: number as u64 };
        let mut engine = Engine::new(&plan, 0, phase, &mut images).observed(&mut *observer);
        decoder.states(params, piece, 1, &mut engine);
    }
    Ok(())
}

/// The elements row by row.
fn numbers(x: View<'_, f32>) -> Vec<f32> {
    (0..x.rows()).flat_map(|i| (0..x.cols()).map(move |j| x.at(i, j))).collect()
}

impl Observer for Layers {
    fn operand(&mut self, seen: &Rounded<'_>) {
        let Rounded { site, product, operand, before, after, .. } = *seen;
        if product != Product::Forward {
            return;
        }
        let linear = self.sites.entry(site).or_default();
        if operand == Operand::Input {
            linear.input.see(before, after);
            self.inputs.insert(site, (before.rows(), before.cols(), numbers(before)));
            return;
        }
        linear.weight.see(before, after);
        // The product shows its input first.
        let Some((rows, cols, x)) = self.inputs.remove(&site) else { return };
        let mut reference = vec![0.0; rows * before.rows()];
        let out = ViewMut::new(&mut reference, rows, before.rows());
        matmul(View::new(&x, rows, cols), before.t(), out, Output::Overwrite);
        self.references.insert(site, reference);
    }

    fn output(&mut self, site: Site, product: Product, values: View<'_, f32>) {
        let reference = (product == Product::Forward).then(|| self.references.remove(&site));
        let (Some(reference), Some(linear)) = (reference.flatten(), self.sites.get_mut(&site))
        else {
            return;
        };
        for (y, r) in elements(values).zip(reference) {
            linear.output.add(y, r.into());
        }
    }

    fn place(&mut self, layer: Option<u32>, place: Place, gradient: bool, values: View<'_, f32>) {
        let (Some(layer), Place::Residual, false) = (layer, place, gradient) else { return };
        // A block adds twice; what it adds last stays.
        let layer = layer as usize;
        self.streams.resize_with(self.streams.len().max(layer + 1), Vec::new);
        self.streams[layer] = numbers(values);
    }
}
