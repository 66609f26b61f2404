//! `attention`: the softmax of each layer, computed again in f64 from its queries and keys, for the first
//! four sequences of the batch.
//!
//! | part | is |
//! |---|---|
//! | `layers.N.entropy` | mean over heads and queries of `-sum p ln p`, nats; the value: over layers |
//! | `layers.N.entropy_share` | the same over `ln(keys)`, of queries with two keys or more |
//! | `layers.N.logit_max` | mean over heads and queries of the largest `q k / sqrt(head width)` |
//! | `layers.N.logit_top` | the largest of all |
//! | `layers.N.logit_kurtosis` | excess kurtosis of all logits that the mask lets through |
//! | `layers.N.sink` | mean probability of the first key, of queries with two keys or more |
//!
//! Entropy, kurtosis and the mean largest logit are those of arXiv 2602.02047, Figure 7.

use super::moments::{Powers, elements};
use super::{Key, Of, Probe, Snapshot, Values};
use crate::nn::decoder::{Mixer, Mixers};
use crate::nn::model;
use crate::nn::site::Place;
use crate::recipe::Observer;
use exmy::slice::View;
use std::collections::BTreeMap;

/// Sequences that are looked at.
const SEQUENCES: usize = 4;

/// Queries and keys of one layer, row-major.
#[derive(Clone, Debug, Default)]
struct Read {
    queries: Vec<f64>,
    keys: Vec<f64>,
}

pub struct Attention {
    context: usize,
    heads: usize,
    kv_heads: usize,
    width: usize,
    mixer: Mixers,
    layers: BTreeMap<u32, Read>,
}

/// What is measured of a layer.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    rows: f64,
    entropy: f64,
    share: f64,
    most: f64,
    top: f64,
    sink: f64,
    /// Rows with two keys or more.
    several: f64,
    logits: Powers,
}

impl Figures {
    /// Takes the logits of one query.
    fn row(&mut self, logits: &[f64]) {
        let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logits.iter().map(|x| libm::exp(x - most)).sum();
        let log = libm::log(sum);
        // -ln p = most + log - x.
        let entropy: f64 =
            logits.iter().map(|x| libm::exp(x - most) / sum * (most + log - x)).sum();
        self.top = if self.rows == 0.0 { most } else { self.top.max(most) };
        self.rows += 1.0;
        self.entropy += entropy;
        self.most += most;
        if logits.len() > 1 {
            self.several += 1.0;
            self.share += entropy / libm::log(logits.len() as f64);
            self.sink += libm::exp(logits[0] - most) / sum;
        }
        logits.iter().for_each(|&x| self.logits.add(x));
    }
}

impl Attention {
    pub fn new(model: &model::Config) -> Result<Self, String> {
        let none = || "the model has no softmax attention".to_owned();
        let config = model.decoder().filter(|c| c.mixer.any(Mixer::Attention, c.layers));
        let config = config.ok_or_else(none)?;
        let (context, heads, kv_heads) = (config.context, config.heads, config.kv_heads);
        let (width, mixer, layers) = (config.head_dim(), config.mixer, BTreeMap::new());
        Ok(Self { context, heads, kv_heads, width, mixer, layers })
    }

    fn figures(&self, read: &Read) -> Figures {
        let (heads, kv_heads, width, context) =
            (self.heads, self.kv_heads, self.width, self.context);
        let (q_row, k_row) = (heads * width, kv_heads * width);
        let scale = 1.0 / (width as f64).sqrt();
        let mut figures = Figures::default();
        let mut logits = Vec::with_capacity(context);
        let sequences = read.queries.chunks(context * q_row).zip(read.keys.chunks(context * k_row));
        for (queries, keys) in sequences {
            for head in 0..heads {
                let of_key = head / (heads / kv_heads) * width;
                for (t, row) in queries.chunks(q_row).enumerate() {
                    let q = &row[head * width..(head + 1) * width];
                    logits.clear();
                    logits.extend(keys.chunks(k_row).take(t + 1).map(|row| {
                        let k = &row[of_key..of_key + width];
                        scale * q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>()
                    }));
                    figures.row(&logits);
                }
            }
        }
        figures
    }
}

impl Observer for Attention {
    fn place(&mut self, layer: Option<u32>, place: Place, gradient: bool, values: View<'_, f32>) {
        let (Some(layer), false, Place::Q | Place::K) = (layer, gradient, place) else { return };
        // Those of gated linear attention meet no softmax.
        if self.mixer.of(layer as usize) != Mixer::Attention {
            return;
        }
        let rows = values.rows().min(SEQUENCES * self.context);
        let all = elements(values.rows_range(0..rows)).collect();
        let read = self.layers.entry(layer).or_default();
        *(if place == Place::Q { &mut read.queries } else { &mut read.keys }) = all;
    }
}

impl Probe for Attention {
    fn name(&self) -> &str {
        "attention"
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn measure(&mut self, _: &Snapshot<'_>, values: &mut Values) {
        let (mut sum, mut count) = (0.0, 0.0);
        for (layer, read) in std::mem::take(&mut self.layers) {
            let found = self.figures(&read);
            for (part, value) in [
                ("entropy", found.entropy / found.rows),
                ("entropy_share", found.share / found.several),
                ("logit_max", found.most / found.rows),
                ("logit_top", found.top),
                ("logit_kurtosis", found.logits.excess_kurtosis()),
                ("sink", found.sink / found.several),
            ] {
                values.part(Key::new(Of::Layer(layer), part), value);
            }
            (sum, count) = (sum + found.entropy / found.rows, count + 1.0);
        }
        values.set(sum / count);
    }
}
