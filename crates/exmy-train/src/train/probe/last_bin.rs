//! Shares of a tensor's elements in the last bin of their block. The OCP scale rule makes all of these the
//! format's largest value, so the block no longer distinguishes them.
//!
//! An element is in the last bin if its magnitude exceeds `limit * 2^floor(log2 m)`. `m` is the largest
//! magnitude of its block of 32 along the rows of its tensor. `limit` is the format's largest value over
//! its power of two: 1.75 for E4M3 (the default), E5M2 and E3M2, 1.875 for E2M3, 1.5 for E2M1. Source:
//! arXiv 2506.20752, section on the mechanism, and its code.

use super::{Argument, Key, Probe, Snapshot, Values};
use crate::nn::parameters::Role;
use crate::nn::site::Place;
use crate::recipe::Observer;
use exmy::format::{Format, Sign};
use exmy::slice::View;
use std::collections::BTreeMap;

/// Elements that share a scale.
const BLOCK: usize = 32;

/// The largest finite value of a format over its power of two: what a block's elements are
/// compared with, in units of the power of two of the block's maximum.
pub fn last_bin(format: Format) -> f64 {
    let max = format.max().to_f64();
    libm::ldexp(max, -libm::ilogb(max))
}

/// How many of `values` are in the last bin of their block.
pub fn saturated(values: &[f32], limit: f64) -> usize {
    let blocks = values.chunks(BLOCK).map(|block| {
        let magnitudes = || block.iter().map(|value| f64::from(*value).abs());
        let max = magnitudes().fold(0.0, f64::max);
        if max == 0.0 || max.is_infinite() {
            return 0;
        }
        let bin = libm::ldexp(limit, libm::ilogb(max));
        magnitudes().filter(|magnitude| *magnitude > bin).count()
    });
    blocks.sum()
}

/// Elements found, of how many.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    found: usize,
    all: usize,
}

impl Count {
    fn add(&mut self, values: &[f32], limit: f64) {
        self.found += saturated(values, limit);
        self.all += values.len();
    }

    fn share(self) -> f64 {
        self.found as f64 / self.all as f64
    }
}

fn note(counts: &BTreeMap<Key, Count>, values: &mut Values) {
    let mut total = Count::default();
    for (name, count) in counts {
        values.part(name.clone(), count.share());
        total.found += count.found;
        total.all += count.all;
    }
    values.set(total.share());
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Gamma,
    Weights,
    Activations,
}

pub(super) struct LastBin {
    name: String,
    of: Of,
    limit: f64,
    activations: BTreeMap<Key, Count>,
}

impl LastBin {
    /// The probe called `name`, for the format that is its argument.
    pub(super) fn new(of: Of, name: &str, argument: Argument<'_>) -> Result<Self, String> {
        let format = match argument {
            None => Format::E4M3FN,
            Some(text) => text.parse().map_err(|error| format!("{error}"))?,
        };
        if format.sign() == Sign::Unsigned {
            return Err(format!("{format} has no sign, elements of blocks have one"));
        }
        let (name, limit) = (name.to_owned(), last_bin(format));
        Ok(Self { name, of, limit, activations: BTreeMap::new() })
    }
}

impl Probe for LastBin {
    fn name(&self) -> &str {
        &self.name
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        (self.of == Of::Activations).then_some(self as &mut dyn Observer)
    }

    fn measure(&mut self, seen: &Snapshot<'_>, values: &mut Values) {
        let role = match self.of {
            Of::Activations => {
                note(&std::mem::take(&mut self.activations), values);
                return;
            }
            Of::Gamma => Role::Norm,
            Of::Weights => Role::Matrix,
        };
        let mut counts = BTreeMap::new();
        for entry in seen.layout.iter().filter(|entry| entry.role == role) {
            let mut count = Count::default();
            // Blocks end with rows.
            let row = entry.shape.last().copied().unwrap_or(1).max(1);
            let tensor = &seen.params[entry.range.clone()];
            tensor.chunks(row).for_each(|row| count.add(row, self.limit));
            counts.insert(Key::from(entry.name.as_str()), count);
        }
        note(&counts, values);
    }
}

impl Observer for LastBin {
    fn place(&mut self, layer: Option<u32>, place: Place, gradient: bool, values: View<'_, f32>) {
        let watched = [Place::NormOutput, Place::ActivationOutput, Place::Residual];
        if !gradient && watched.contains(&place) {
            let count =
                self.activations.entry(Key::new(super::Of::Place(layer, place), "")).or_default();
            for row in (0..values.rows()).filter_map(|row| values.row(row)) {
                count.add(row, self.limit);
            }
        }
    }
}
