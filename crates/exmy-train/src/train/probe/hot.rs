//! `hot`: the input channels of each linear operator whose rounding does most harm.
//!
//! | part | is |
//! |---|---|
//! | `SITE.error` | the channels with the largest `s_j`, largest first |
//! | `SITE.magnitude` | those with the largest magnitude `M_j` before rounding, largest first |
//! | `SITE.overlap` | the Jaccard index of the two sets; the value is its mean |
//!
//! `s_j = mean over tokens |RX_j| + mean over outputs |RW_j|` with the residuals `R = before - after` of
//! the forward product's operands (arXiv 2602.02047). The argument is the size of the sets; without it, a
//! twentieth of the channels and at least 16, as the hot-channel patch. A site that nothing rounds has no
//! error set.

use super::moments::column_maxima;
use super::{Argument, Key, Probe, Snapshot, Values};
use crate::nn::site::{Operand, Product, Site};
use crate::recipe::{Observer, Rounded};
use exmy::slice::View;
use std::collections::BTreeMap;

/// The fewest channels of a set.
const LEAST: usize = 16;

#[derive(Clone, Debug, Default)]
struct Scores {
    magnitudes: Vec<f64>,
    errors: Vec<f64>,
}

pub struct Hot {
    name: String,
    count: Option<usize>,
    sites: BTreeMap<Site, Scores>,
}

impl Hot {
    /// The probe called `name`, for as many channels as its argument says.
    pub fn new(name: &str, argument: Argument<'_>) -> Result<Self, String> {
        let count = argument.map(|text| {
            let count = text.parse::<usize>().ok().filter(|count| *count > 0);
            count.ok_or_else(|| format!("`{text}` is no number of channels"))
        });
        Ok(Self { name: name.to_owned(), count: count.transpose()?, sites: BTreeMap::new() })
    }
}

/// The mean magnitude of what rounding took from each column.
fn residuals(before: View<'_, f32>, after: View<'_, f32>) -> Vec<f64> {
    let mut sums = vec![0.0; before.cols()];
    for i in 0..before.rows() {
        for (j, sum) in sums.iter_mut().enumerate() {
            *sum += f64::from(before.at(i, j) - after.at(i, j)).abs();
        }
    }
    let rows = before.rows() as f64;
    sums.into_iter().map(|sum| sum / rows).collect()
}

/// The places of the largest scores, largest first.
fn largest(scores: &[f64], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    order.truncate(count);
    order
}

impl Observer for Hot {
    fn operand(&mut self, seen: &Rounded<'_>) {
        if seen.product != Product::Forward || seen.operand == Operand::GradOutput {
            return;
        }
        let scores = self.sites.entry(seen.site).or_default();
        if seen.operand == Operand::Input {
            scores.magnitudes = column_maxima(seen.before);
        }
        let found = residuals(seen.before, seen.after);
        if scores.errors.is_empty() {
            scores.errors = found;
        } else {
            scores.errors.iter_mut().zip(found).for_each(|(sum, more)| *sum += more);
        }
    }
}

impl Probe for Hot {
    fn name(&self) -> &str {
        &self.name
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn measure(&mut self, _: &Snapshot<'_>, values: &mut Values) {
        let mut overlaps = Vec::new();
        for (site, Scores { magnitudes, errors }) in std::mem::take(&mut self.sites) {
            let count = self.count.unwrap_or(LEAST.max(magnitudes.len().div_ceil(20)));
            let list = |set: &[usize]| set.iter().map(|&channel| channel as f64).collect();
            let magnitude = largest(&magnitudes, count);
            values.list(Key::new(site, "magnitude"), list(&magnitude));
            if errors.iter().all(|&error| error == 0.0) {
                continue;
            }
            let error = largest(&errors, count);
            values.list(Key::new(site, "error"), list(&error));
            let common = error.iter().filter(|channel| magnitude.contains(channel)).count();
            let overlap = common as f64 / (error.len() + magnitude.len() - common) as f64;
            values.part(Key::new(site, "overlap"), overlap);
            overlaps.push(overlap);
        }
        values.set(overlaps.iter().sum::<f64>() / overlaps.len() as f64);
    }
}
