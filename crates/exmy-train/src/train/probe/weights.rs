//! Weights, gains and gradients by tensor.
//!
//! | probe | part | is |
//! |---|---|---|
//! | `norms` | `TENSOR.grad`, `TENSOR.weight` | l2 norms: gradient before clipping, weights after the step |
//! | `gamma` | `NORM.mean`, `.sd`, `.min`, `.max` | of the gains of each norm, and of its bias if any |
//! | `swiglu` | `layers.N.cos_mean` | mean of `|cos|` between the rows of gate and up of each hidden unit |
//! | | `layers.N.cos_p99`, `.cos_high` | their 99th percentile, their share above 0.5 |
//! | | `null` | the mean of `|cos|` between random directions, `sqrt(2 / (pi d))` |
//! | | `layers.N.correlation` | Pearson's of the outputs of gate and up, element by element |
//! | | `layers.N.tail_kurtosis`, `.tail_top` | excess kurtosis and largest magnitude of the input of down |
//!
//! The values: the norm of the whole gradient, the mean of all gains, the mean of all `|cos|`.
//!
//! Aligned gates and ups are how SwiGLU makes outliers (arXiv 2409.12517).

use super::moments::{Powers, elements, quantile, sorted};
use super::{Key, Of, Probe, Snapshot, Values};
use crate::nn::loss::mean;
use crate::nn::model;
use crate::nn::parameters::Role;
use crate::nn::site::Operator;
use crate::nn::site::Place;
use crate::recipe::Observer;
use exmy::slice::View;
use std::collections::BTreeMap;

fn norm(values: &[f32]) -> f64 {
    values.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt()
}

pub struct Norms;

impl Probe for Norms {
    fn name(&self) -> &str {
        "norms"
    }

    fn measure(&mut self, seen: &Snapshot<'_>, values: &mut Values) {
        // There is no gradient before the first step.
        let begun = seen.step > 0;
        if begun {
            values.set(norm(seen.grads));
        }
        for entry in seen.layout.iter() {
            if begun {
                let grads = &seen.grads[entry.range.clone()];
                values.part(format!("{}.grad", entry.name), norm(grads));
            }
            values.part(format!("{}.weight", entry.name), norm(&seen.params[entry.range.clone()]));
        }
    }
}

pub struct Gamma;

impl Probe for Gamma {
    fn name(&self) -> &str {
        "gamma"
    }

    fn measure(&mut self, seen: &Snapshot<'_>, values: &mut Values) {
        let mut all = Powers::default();
        let of = |role| seen.layout.iter().filter(move |entry| entry.role == role);
        for entry in of(Role::Norm).chain(of(Role::NormBias)) {
            let gains = || seen.params[entry.range.clone()].iter().map(|&gain| f64::from(gain));
            let found = Powers::of(gains());
            for (part, value) in [
                ("mean", found.mean()),
                ("sd", found.variance().sqrt()),
                ("min", gains().fold(f64::INFINITY, f64::min)),
                ("max", gains().fold(f64::NEG_INFINITY, f64::max)),
            ] {
                values.part(format!("{}.{part}", entry.name), value);
            }
            if entry.role == Role::Norm {
                all = all.and(&found);
            }
        }
        values.set(all.mean());
    }
}

/// `swiglu`.
pub struct Swiglu {
    correlations: BTreeMap<u32, f64>,
    tails: BTreeMap<u32, (f64, f64)>,
}

impl Swiglu {
    pub fn new(model: &model::Config) -> Result<Self, String> {
        if !model.is_gated() {
            return Err("the model's MLP has no gate".into());
        }
        Ok(Self { correlations: BTreeMap::new(), tails: BTreeMap::new() })
    }
}

/// Pearson's correlation of the two halves of the columns.
fn correlation(x: View<'_, f32>) -> f64 {
    let half = x.cols() / 2;
    let (gate, up) = (x.cols_range(0..half), x.cols_range(half..2 * half));
    let (a, b) = (Powers::of(elements(gate)), Powers::of(elements(up)));
    let products = elements(gate).zip(elements(up));
    let product = products.map(|(g, u)| (g - a.mean()) * (u - b.mean())).sum::<f64>() / a.count;
    product / (a.variance() * b.variance()).sqrt()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot: f64 = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
    dot / (norm(a) * norm(b))
}

impl Observer for Swiglu {
    fn place(&mut self, layer: Option<u32>, place: Place, gradient: bool, values: View<'_, f32>) {
        match (layer, gradient, place) {
            (Some(layer), false, Place::ActivationInput) => {
                self.correlations.insert(layer, correlation(values));
            }
            (Some(layer), false, Place::ActivationOutput) => {
                let kurtosis = Powers::of(elements(values)).excess_kurtosis();
                let top = elements(values).fold(0.0, |top: f64, x| top.max(x.abs()));
                self.tails.insert(layer, (kurtosis, top));
            }
            _ => {}
        }
    }
}

impl Probe for Swiglu {
    fn name(&self) -> &str {
        "swiglu"
    }

    fn observer(&mut self) -> Option<&mut dyn Observer> {
        Some(self)
    }

    fn measure(&mut self, seen: &Snapshot<'_>, values: &mut Values) {
        for (layer, value) in std::mem::take(&mut self.correlations) {
            values.part(Key::new(Of::Layer(layer), "correlation"), value);
        }
        for (layer, (kurtosis, top)) in std::mem::take(&mut self.tails) {
            values.part(Key::new(Of::Layer(layer), "tail_kurtosis"), kurtosis);
            values.part(Key::new(Of::Layer(layer), "tail_top"), top);
        }
        let mut all = Vec::new();
        let of = |operator: Operator| {
            let sites = seen.layout.iter().filter_map(|entry| Some((entry.site?, entry)));
            sites.filter(move |(site, _)| site.operator == operator)
        };
        for (layer, (site, gate)) in (0..).zip(of(Operator::Gate)) {
            let Some((_, up)) = of(Operator::Up).find(|up| up.0.layer == site.layer) else {
                continue;
            };
            let width = gate.shape[1];
            let rows = |range: std::ops::Range<usize>| seen.params[range].chunks(width);
            let pairs = rows(gate.range.clone()).zip(rows(up.range.clone()));
            let cosines = sorted(pairs.map(|(gate, up)| cosine(gate, up).abs()).collect());
            let count = cosines.len() as f64;
            let high = cosines.iter().filter(|&&cosine| cosine > 0.5).count();
            for (part, value) in [
                ("cos_mean", mean(&cosines)),
                ("cos_p99", quantile(&cosines, 0.99)),
                ("cos_high", high as f64 / count),
            ] {
                values.part(Key::new(Of::Layer(layer), part), value);
            }
            values.part("null", (2.0 / (core::f64::consts::PI * width as f64)).sqrt());
            all.extend(cosines);
        }
        values.set(mean(&all));
    }
}
