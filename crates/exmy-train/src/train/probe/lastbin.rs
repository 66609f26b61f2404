//! Shares of a tensor's elements in the last bin of their block: those that the OCP scale rule makes the
//! format's largest value, so that the block no longer distinguishes them.
//!
//! An element is in the last bin if its magnitude exceeds `limit * 2^floor(log2 m)`. `m` is the largest
//! magnitude of its block of 32 along the rows of its tensor. `limit` is the format's largest value over
//! its power of two: 1.75 for E4M3 (the default), E5M2 and E3M2, 1.875 for E2M3, 1.5 for E2M1. Blocks of
//! zeros count as 0. Source: "Characterization and Mitigation of Training Instabilities in Microscaling
//! Formats", arXiv 2506.20752, section on the mechanism, and its code.
//!
//! The places of `lastbin.activations` are `norm_output`, `activation_output` and `residual`.

use super::{Argument, Key, Probe, Seen, Values};
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
fn last_bin(format: Format) -> f64 {
    let max = format.max().to_f64();
    libm::ldexp(max, -libm::ilogb(max))
}

/// How many of `values` are in the last bin of their block.
fn saturated(values: &[f32], limit: f64) -> usize {
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

    fn measure(&mut self, seen: &Seen<'_>, values: &mut Values) {
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

#[cfg(test)]
mod tests {
    use super::super::registry::{
        by_name,
        tests::{measured, proxy, seen},
    };
    use super::*;
    use crate::nn::parameters::{Init, Layout};

    /// The bands are those of the paper's table: 1.75 for E4M3, E5M2 and E3M2, 1.875 for E2M3, 1.5
    /// for E2M1.
    #[test]
    fn bands() {
        let band = |name: &str| last_bin(name.parse().unwrap());
        assert_eq!(
            ["e4m3fn", "e5m2", "e3m2", "e2m3", "e2m1"].map(band),
            [1.75, 1.75, 1.75, 1.875, 1.5]
        );
    }

    #[test]
    fn blocks_by_hand() {
        // All of 0.90 to 0.99 lie above 0.875 = 1.75 / 2; one of 1.0 opens the next binade.
        let mut block: Vec<f32> = (0..32).map(|i| 0.90 + 0.0029 * i as f32).collect();
        assert_eq!(saturated(&block, 1.75), 32);
        block[7] = -1.0;
        assert_eq!(saturated(&block, 1.75), 0);
        assert_eq!(saturated(&[0.875; 32], 1.75), 0, "the limit itself is representable");
        assert_eq!(saturated(&[0.0; 32], 1.75), 0);
        // Blocks end with their tensor.
        assert_eq!(saturated(&[vec![1.0; 32], vec![0.95; 3]].concat(), 1.75), 3);
    }

    #[test]
    fn the_share_is_of_all_gains_and_of_gains_alone() {
        let mut layout = Layout::default();
        layout.push("a".into(), &[32], Role::Norm, Init::Ones);
        layout.push("w".into(), &[2, 32], Role::Matrix, Init::Ones);
        layout.push("b".into(), &[96], Role::Norm, Init::Ones);
        let mut params = vec![0.95; layout.len()];
        params[100..].fill(1.0);
        params[70] = 1.0;
        let model = proxy();
        let seen = seen(&model, &layout, &params);
        let share = |name: &str| {
            let mut values = Values::default();
            by_name(name, &model).unwrap().measure(&seen, &mut values);
            values
        };
        // 32 of the first tensor; the second one's first block has four below 1 and is saved by
        // the others.
        let all = share("lastbin.gamma");
        assert_eq!(all.value, Some(0.25));
        assert_eq!(all.parts["a"].number(), Some(1.0));
        assert_eq!(all.parts["b"].number(), Some(0.0));
        assert_eq!(share("lastbin.gamma:e2m3").value, Some(0.25));
        // Two rows of the matrix, the second one saved by its one 1.
        assert_eq!(share("lastbin.weights").value, Some(0.5));
    }
    /// A block of 1 and 0.95 has nothing in its last bin, one of 0.95 alone all.
    #[test]
    fn activations_are_of_three_places_and_forward() {
        let mut probe = by_name("lastbin.activations", &proxy()).unwrap();
        let mut show = |layer: Option<u32>, place: Place, gradient: bool, values: &[f32]| {
            let values = View::new(values, 2, values.len() / 2);
            probe.observer().unwrap().place(layer, place, gradient, values);
        };
        // Two rows: as one block nothing would be found.
        show(Some(0), Place::NormOutput, false, &[1.0, 0.95, 0.95, 0.95, 0.95, 0.95]);
        show(Some(1), Place::ActivationOutput, false, &[0.95, -0.95, 1.0, 1.0]);
        // A place that is shown twice counts all it had.
        show(None, Place::Residual, false, &[1.0, 0.0]);
        show(None, Place::Residual, false, &[-0.95, -0.95]);
        // Gradients and other places do not count.
        show(Some(0), Place::NormOutput, true, &[0.95; 64]);
        show(Some(0), Place::Logits, false, &[0.95; 64]);
        let values = measured(&mut *probe);
        let parts: Vec<(&str, f64)> = values
            .parts
            .iter()
            .map(|(name, part)| (name.as_str(), part.number().unwrap()))
            .collect();
        let expected =
            [("layers.0.norm_output", 0.5), ("layers.1.activation_output", 0.5), ("residual", 0.5)];
        assert_eq!(parts, expected);
        // 3 + 2 + 2 of 6 + 4 + 4.
        assert_eq!(values.value, Some(0.5));
        // The next measurement begins anew.
        probe.observer().unwrap().place(
            None,
            Place::Residual,
            false,
            View::new(&[0.95, 0.95, 0.95], 1, 3),
        );
        let again = measured(&mut *probe);
        assert_eq!((again.value, again.parts.len()), (Some(1.0), 1));
    }
}
