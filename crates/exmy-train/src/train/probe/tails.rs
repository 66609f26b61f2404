//! How heavy the tails of operands are before rounding.
//!
//! | probe | part | is |
//! |---|---|---|
//! | `kurtosis` | `SITE.OPERAND` | excess kurtosis of all elements, 0 for normal ones |
//! | | `SITE.OPERAND.channels_mean`, `_max`, `_top` | of columns: mean, maximum, mean of the top hundredth |
//! | `channels` | `SITE.input` | the list of `M_j`, largest magnitude of each input channel, four digits |
//! | | `SITE.input.top` | M of rank 1, 2, 3 and 10, and the median |
//! | | `SITE.input.over_p999`, `.over_median` | the largest magnitude over this percentile, and the median |
//! | | `SITE.output.top` | the largest magnitude of the output |
//! | `spikes` | `SITE.OPERAND.rms_max`, `_p99` | `amax / rms` over blocks of 16 x 16 |
//! | | `SITE.OPERAND.median_max`, `_p99` | `amax` over the median `amax` of all blocks |
//!
//! The values: the mean kurtosis of inputs, the largest output of all sites, the largest p99 of inputs.
//!
//! Source: arXiv 2602.02047. It does not print how magnitudes and blocks are normalized; the usual way is
//! taken. Blocks of zeros have no spike.

use super::moments::{Powers, brief, column_maxima, elements, quantile, sorted};
use super::{Key, Of, Probe, Snapshot, Values};
use crate::nn::loss::mean;
use crate::nn::site::{Operand, Product, Site};
use crate::recipe::{Observer, Rounded};
use exmy::slice::View;

/// Rows and columns of a block.
const BLOCK: usize = 16;

/// Which of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Kurtosis,
    Channels,
    Spikes,
}

pub struct Tails {
    kind: Kind,
    seen: Values,
    /// What the value is made of.
    totals: Vec<f64>,
}

/// Whether a product is the one in which an operand is looked at: the first that reads it.
pub(super) fn is_first(product: Product, operand: Operand) -> bool {
    match operand {
        Operand::Input | Operand::Weight => product == Product::Forward,
        Operand::GradOutput => product == Product::GradInput,
    }
}

/// The largest magnitude and the root mean square of each block that is not all zeros.
fn blocks(x: View<'_, f32>) -> Vec<(f64, f64)> {
    let mut blocks = Vec::new();
    for i in (0..x.rows()).step_by(BLOCK) {
        let rows = x.rows_range(i..(i + BLOCK).min(x.rows()));
        for j in (0..x.cols()).step_by(BLOCK) {
            let block = rows.cols_range(j..(j + BLOCK).min(x.cols()));
            let most = elements(block).fold(0.0, |most: f64, x| most.max(x.abs()));
            let squares: f64 = elements(block).map(|x| x * x).sum();
            let count = (block.rows() * block.cols()) as f64;
            if most > 0.0 {
                blocks.push((most, (squares / count).sqrt()));
            }
        }
    }
    blocks
}

impl Tails {
    pub fn new(kind: Kind) -> Self {
        Self { kind, seen: Values::default(), totals: Vec::new() }
    }

    fn kurtosis(&mut self, of: &Of, operand: Operand, x: View<'_, f32>) {
        let columns: Vec<Powers> = (0..x.cols())
            .map(|j| Powers::of((0..x.rows()).map(|i| f64::from(x.at(i, j)))))
            .collect();
        let all = columns.iter().fold(Powers::default(), Powers::and).excess_kurtosis();
        let each = columns.iter().map(Powers::excess_kurtosis).filter(|k| k.is_finite());
        let each = sorted(each.collect());
        let top = &each[each.len() - each.len().div_ceil(100)..];
        for (part, value) in [
            ("", all),
            ("channels_mean", mean(&each)),
            ("channels_max", quantile(&each, 1.0)),
            ("channels_top", mean(top)),
        ] {
            self.seen.part(Key::new(of.clone(), part), value);
        }
        if operand == Operand::Input && all.is_finite() {
            self.totals.push(all);
        }
    }

    fn channels(&mut self, of: &Of, x: View<'_, f32>) {
        let maxima = column_maxima(x);
        let ranked = sorted(maxima.clone());
        let rank = |rank: usize| ranked[ranked.len() - rank.min(ranked.len())];
        let top = vec![rank(1), rank(2), rank(3), rank(10), quantile(&ranked, 0.5)];
        let magnitudes = sorted(elements(x).map(f64::abs).collect());
        let key = |part| Key::new(of.clone(), part);
        self.seen.list(key(""), maxima.into_iter().map(brief).collect());
        self.seen.list(key("top"), top);
        for (part, q) in [("over_p999", 0.999), ("over_median", 0.5)] {
            self.seen.part(key(part), rank(1) / quantile(&magnitudes, q));
        }
        self.totals.push(rank(1));
    }

    fn spikes(&mut self, of: &Of, operand: Operand, x: View<'_, f32>) {
        let blocks = blocks(x);
        let most = sorted(blocks.iter().map(|(most, _)| *most).collect());
        let median = quantile(&most, 0.5);
        let over_rms = sorted(blocks.iter().map(|(most, rms)| most / rms).collect());
        let over_median: Vec<f64> = most.iter().map(|most| most / median).collect();
        for (part, figures, share) in [
            ("rms_max", &over_rms, 1.0),
            ("rms_p99", &over_rms, 0.99),
            ("median_max", &over_median, 1.0),
            ("median_p99", &over_median, 0.99),
        ] {
            self.seen.part(Key::new(of.clone(), part), quantile(figures, share));
        }
        if operand == Operand::Input {
            self.totals.push(quantile(&over_rms, 0.99));
        }
    }
}

impl Observer for Tails {
    fn operand(&mut self, seen: &Rounded<'_>) {
        let Rounded { site, product, operand, before, .. } = *seen;
        if !is_first(product, operand) || before.rows() == 0 || before.cols() == 0 {
            return;
        }
        let of = Of::Operator(site, None, Some(operand));
        match self.kind {
            Kind::Kurtosis => self.kurtosis(&of, operand, before),
            Kind::Spikes => self.spikes(&of, operand, before),
            Kind::Channels if operand == Operand::Input => self.channels(&of, before),
            Kind::Channels => {}
        }
    }

    fn output(&mut self, site: Site, product: Product, values: View<'_, f32>) {
        if self.kind == Kind::Channels && product == Product::Forward {
            let most = elements(values).fold(0.0, |most: f64, y| most.max(y.abs()));
            self.seen.part(Key::new(site, "output.top"), most);
        }
    }
}

impl Probe for Tails {
    fn name(&self) -> &str {
        match self.kind {
            Kind::Kurtosis => "kurtosis",
            Kind::Channels => "channels",
            Kind::Spikes => "spikes",
        }
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn measure(&mut self, _: &Snapshot<'_>, values: &mut Values) {
        *values = std::mem::take(&mut self.seen);
        let totals = std::mem::take(&mut self.totals);
        let most = totals.iter().copied().fold(f64::NAN, f64::max);
        values.set(if self.kind == Kind::Kurtosis { mean(&totals) } else { most });
    }
}
